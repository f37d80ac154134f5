# SPDX-License-Identifier: Apache-2.0
"""usage: embed.py OUTPUT.c NAME.yaml...

The presets as a C file, so that a lone program has them.
"""

import os
import sys


def literal(data):
    out = []
    for line in data.splitlines(keepends=True):
        text = line.replace('\\', '\\\\').replace('"', '\\"').replace('\n', '\\n')
        out.append(f'\t\t"{text}"')
    return '\n'.join(out)


def main(output, *files):
    rows = []
    for path in files:
        with open(path, encoding='ascii') as f:
            text = literal(f.read())
        name = os.path.splitext(os.path.basename(path))[0]
        rows.append(f'\t{{ "{name}", STR(\n{text}) }},\n')
    with open(output, 'w', encoding='ascii') as f:
        f.write('/* SPDX-License-Identifier: Apache-2.0 */\n/* Made by embed.py from policies. */\n'
                '#include "policy/presets.h"\n\nconst struct policy_preset policy_presets[] = {\n'
                + ''.join(rows) + '\t{ 0 },\n};\n')


main(*sys.argv[1:])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No two objects of an archive define the same global name. TAP on stdout.

usage: symbol_check.py NM ARCHIVE
"""

import subprocess
import sys


def definitions(nm, archive):
    """(object, name) of each global definition; weak ones do not count."""
    out = subprocess.run([nm, '--defined-only', '--extern-only', '--print-file-name', archive],
                         check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        words = line.split()
        if len(words) == 3 and words[1].isupper() and words[1] not in 'VW':
            yield words[0].rsplit(':', 1)[0].rsplit('/', 1)[-1], words[2]


def main(nm, archive):
    seen, twice, count = {}, 0, 0
    print('1..1')
    for obj, name in definitions(nm, archive):
        count += 1
        if seen.setdefault(name, obj) != obj:
            print(f'# {name} is defined by {seen[name]} and by {obj}')
            twice += 1
    ok = count > 0 and twice == 0
    print(f"{'' if ok else 'not '}ok 1 - each global name is defined once ({count} names)")
    return 0 if ok else 1


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:3]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every promise of SECURITY.md names a test, and every named test exists. TAP on stdout.

usage: promises_check.py ROOT
"""

import glob
import os
import re
import sys

TABLE = '## Which test fails if a promise breaks'
SPECIAL = {'programs'}  # checks of tests/check/meson.build that are no file of their own name


def promised(text):
    """Numbers of the promises."""
    section = text.split('## Promises', 1)[1].split('\n## ', 1)[0]
    return {int(n) for n in re.findall(r'^(\d+)\. \*\*', section, re.M)}


def table(text):
    """[(first cell, names in the second)]"""
    section = text.split(TABLE, 1)[1].split('\n## ', 1)[0]
    rows = re.findall(r'^\| ([^|]+) \| ([^|]+) \|$', section, re.M)
    return [(cell.strip(), re.findall(r'`([\w-]+)`', names)) for cell, names in rows if cell not in ('promise', '---')]


def existing(root):
    names = set(SPECIAL)
    for pattern, strip in (('tests/system/test_*.py', ''), ('src/**/*_test.c', '_test'), ('tests/contain/*.c', ''),
                           ('tests/fuzz/fuzz_*.c', 'fuzz_')):
        for path in glob.glob(os.path.join(root, pattern), recursive=True):
            stem = os.path.splitext(os.path.basename(path))[0]
            names.add(stem[:-len(strip)] if strip == '_test' else stem.removeprefix(strip))
    return names


def main(root):
    with open(os.path.join(root, 'SECURITY.md'), encoding='utf-8') as f:
        text = f.read()
    rows, known = table(text), existing(root) | {'locked'}
    missing = sorted(promised(text) - {int(cell) for cell, names in rows if cell.isdigit() and names})
    unknown = sorted({name for _, names in rows for name in names} - known)
    print('1..2')
    print(*(f'# promise {n} names no test' for n in missing), *(f'# there is no test {n}' for n in unknown), sep='\n')
    print(f"{'not ' if missing or not promised(text) else ''}ok 1 - every promise names a test")
    print(f"{'not ' if unknown else ''}ok 2 - every named test exists")
    return 1 if missing or unknown or not rows else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else '.'))

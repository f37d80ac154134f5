#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every program that is installed is a static PIE: position independent, and loaded by the kernel alone.

usage: program_check.py MESON BUILD-DIRECTORY
"""

import json
import struct
import subprocess
import sys

ET_DYN, PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_GNU_STACK, PT_GNU_RELRO = 3, 1, 2, 3, 0x6474e551, 0x6474e552
DT_NEEDED, DT_TEXTREL, PF_X, PF_W = 1, 22, 1, 2


def programs(meson, build):
    """Installed files of the build that are programs, by path."""
    listed = json.loads(subprocess.run([meson, 'introspect', '--installed', build], check=True, stdout=subprocess.PIPE).stdout)
    found = []
    for path in listed:
        try:
            with open(path, 'rb') as f:
                if f.read(4) == b'\x7fELF':
                    found.append(path)
        except (FileNotFoundError, IsADirectoryError):
            pass  # a manual that is not built yet, or a directory
    return sorted(found)


def faults(data):
    """What is wrong with one program."""
    kind, = struct.unpack_from('<H', data, 16)
    offset, = struct.unpack_from('<Q', data, 32)
    size, count = struct.unpack_from('<HH', data, 54)
    heads = [struct.unpack_from('<IIQQQQQQ', data, offset + i * size) for i in range(count)]
    kinds = {h[0] for h in heads}
    if kind != ET_DYN:
        yield f'its type is {kind}, not {ET_DYN} (ET_DYN): it is loaded at a fixed address'
    if PT_INTERP in kinds:
        yield 'it names an interpreter: it is not static'
    if PT_GNU_RELRO not in kinds:
        yield 'it has no RELRO segment'
    if any(h[0] == PT_LOAD and h[1] & PF_X and h[1] & PF_W for h in heads):
        yield 'a segment is writable and executable'
    if any(h[0] == PT_GNU_STACK and h[1] & PF_X for h in heads) or PT_GNU_STACK not in kinds:
        yield 'its stack is executable'
    for h in heads:
        if h[0] == PT_DYNAMIC:
            tags = {struct.unpack_from('<Q', data, h[2] + i)[0] for i in range(0, h[5], 16)}
            if DT_NEEDED in tags:
                yield 'it needs a shared library'
            if DT_TEXTREL in tags:
                yield 'its code is relocated when it starts, so it is not shared'


def main(meson, build):
    found = programs(meson, build)
    failed = not found
    print(f'1..{len(found)}')
    for number, path in enumerate(found, 1):
        with open(path, 'rb') as f:
            wrong = list(faults(f.read()))
        for line in wrong:
            print(f'# {path}: {line}')
        print(f'{"not " if wrong else ""}ok {number} - {path.rsplit("/", 1)[1]} is a static PIE')
        failed |= bool(wrong)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))

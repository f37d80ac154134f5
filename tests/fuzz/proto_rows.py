#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: proto_rows.py PROTO_H OUT

Write what fuzzers need of src/wire/proto.h: each message with its sender and its fields, and all
tags. A message that is added there is sent by the fuzzers from then on."""

import re
import sys


def main():
    with open(sys.argv[1], encoding='utf-8') as f:
        text = f.read()
    tags = sorted(set(re.findall(r'^\t(TAG_\w+)', text, re.M)))
    rows = []
    for name, number, comment in re.findall(r'^\t(MSG_\w+) = (\d+), /\* (.*?) \*/', text, re.M):
        sender, _chan, fields, _meaning = (p.strip() for p in comment.split('|', 3))
        own = [t for t in dict.fromkeys('TAG_' + w for w in re.findall(r'\b[A-Z][A-Z_0-9]+\b', fields)) if t in tags]
        rows.append((name, int(number) < 64, sender, own[:63]))
    if len(rows) < 50 or len(tags) < 90:
        sys.exit('proto.h is not written as expected')
    out = ['/* Made by proto_rows.py. */', '#pragma once', '#include <stdbool.h>', '#include "wire/proto.h"', '',
           'struct proto_row {', '\tuint8_t type;', '\tbool init;   /* of the init protocol */',
           '\tbool up;     /* may come from init, or from a client */', '\tint ntags;',
           '\tuint16_t tags[64];', '};', 'static const struct proto_row proto_rows[] = {']
    for name, init, sender, own in rows:
        up = sender != 'warden'
        listed = ', '.join(own) or '0'
        out.append(f'\t{{ {name}, {str(init).lower()}, {str(up).lower()}, {len(own)}, {{ {listed} }} }},')
    out += ['};', 'static const uint16_t proto_tags[] = {', *(f'\t{t},' for t in tags), '};', '']
    with open(sys.argv[2], 'w', encoding='utf-8') as f:
        f.write('\n'.join(out))


main()

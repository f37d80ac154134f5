# SPDX-License-Identifier: Apache-2.0
"""
How long snapshot, rollback, fork and transactions take, and how that grows with the sandbox's content: one file,
1,000 files, 100,000 files, 1 GiB. For snapshot and rollback the time in the warden counts, which does all the work.
The time of the whole command, with process start and catalog write, is listed beside it.
"""

import json
import statistics

FILLS = [('1 file', 'echo x > /tmp/f'),
         ('1,000 files', 'mkdir /tmp/t; cd /tmp/t; seq 1000 | xargs touch'),
         ('100,000 files',
          'mkdir /tmp/t; cd /tmp/t; for i in $(seq 100); do mkdir $i; (cd $i; seq 1000 | xargs touch); done'),
         ('1 GiB', 'head -c 1G /dev/zero > /tmp/big')]


def measure(lab, state, fill, times):
    ref = lab.timed(state, 'create')[0]
    lab.cay_says(state, 'exec', ref, '--', 'sh', '-c', fill)
    found = {k: [] for k in ('snapshot', 'snapshot command', 'rollback', 'rollback command', 'tx', 'exec')}
    first = json.loads(lab.timed(state, 'snapshot', ref, '--json')[0])
    for i in range(times):
        lab.cay_says(state, 'exec', ref, '--', 'sh', '-c', f'echo {i} > /tmp/g{i}')
        for what in ('snapshot', 'rollback'):
            out, ms = lab.timed(state, what, ref, '--json')
            found[what].append(json.loads(out)['took_ms'])
            found[what + ' command'].append(ms)
            lab.cay_says(state, 'exec', ref, '--', 'sh', '-c', f'rm -rf /tmp/g{i}; echo {what} > /tmp/h')
        found['tx'].append(lab.timed(state, 'exec', '--tx', ref, '--', 'true')[1])
        found['exec'].append(lab.timed(state, 'exec', ref, '--', 'true')[1])
    lab.cay_says(state, 'kill', ref)
    lab.cay_says(state, 'gc')
    return {'first snapshot': first['took_ms'], **{k: statistics.median(v) for k, v in found.items()}}


# In each of three directories in turn: what a snapshot, a rollback and an exec find when they come right behind.
WRITE = '''
import os
os.mkdir('/tmp/{d}')
for k in range(({n} + 999) // 1000):
    os.mkdir(f'/tmp/{d}/{{k}}')
    for i in range(min({n}, 1000)):
        os.close(os.open(f'/tmp/{d}/{{k}}/{{i}}', os.O_CREAT | os.O_WRONLY, 0o644))
'''


def behind_a_large_call(lab, state, n, times):
    """Right after a call that wrote n files: the whole commands, since the warden may be busy before it begins."""
    found = {'snapshot': [], 'rollback': [], 'exec': []}
    for _ in range(times):
        ref = lab.timed(state, 'create')[0]
        for act in ('exec', 'snapshot', 'exec'):  # the first of each takes longer
            lab.cay_says(state, act, ref, *(['--', 'true'] if act == 'exec' else []))
        for what, args in (('snapshot', ['snapshot', ref]), ('rollback', ['rollback', ref]), ('exec', ['exec', ref, '--', 'true'])):
            lab.cay_says(state, 'exec', ref, '--', 'python3', '-c', WRITE.format(d=what, n=n))
            found[what].append(lab.timed(state, *args)[1])
        lab.cay_says(state, 'kill', ref)
        lab.cay_says(state, 'gc')
    return {k: statistics.median(v) for k, v in found.items()}


def large_calls(lab):
    state = lab.state('state-on-disk', in_memory=False)
    times = lab.pick(7, 3)
    rows = {n: behind_a_large_call(lab, state, n, times) for n in ((1, 20000) if lab.quick else (1, 20000, 100000))}
    lab.raw['behind a large call'] = rows
    for n, row in rows.items():
        for what, ms in row.items():
            if n == 1:
                lab.fact(f'{what} right after a call that wrote 1 file, on disk', ms, 'ms')
            else:
                lab.promise(f'{what} right after {n:,} files / after 1 file, on disk', ms / rows[1][what], 1.5, 'x', f'{ms:.1f} ms')


def single_forks(lab, state, times):
    """A fork of a snapshot against a new sandbox, in turns, each first as often as second."""
    ref = lab.timed(state, 'create')[0]
    lab.cay_says(state, 'exec', ref, '--', 'sh', '-c', FILLS[0][1])
    snap = lab.timed(state, 'snapshot', ref)[0]
    found = {'fork': [], 'create': []}
    for i in range(times):
        pair = [('fork', ['fork', snap]), ('create', ['create'])]
        for what, args in pair if i % 2 else reversed(pair):
            out, ms = lab.timed(state, *args)
            found[what].append(ms)
            lab.cay_says(state, 'kill', out)
    lab.cay_says(state, 'kill', ref)
    lab.cay_says(state, 'gc')
    return {k: statistics.median(v) for k, v in found.items()}


# About 5 s on one CPU: many small compilations, each with files of its own.
BUILD = ('cd $(mktemp -d); i=0; while [ $i -lt {n} ]; do i=$((i + 1)); '
         'printf "#include <stdio.h>\\n#include <stdlib.h>\\n#include <string.h>\\nint f%d(int x) {{ return printf(\\"%%d\\", x); }}\\n" $i > $i.c; '
         'cc -O2 -c $i.c; done')


def builds(lab, state, times):
    """A build in a transaction against the same without one, in turn."""
    ref = lab.timed(state, 'create')[0]
    script = BUILD.format(n=lab.pick(120, 20))  # in a new directory: what lies below is not touched
    found = {'plain': [], 'tx': []}
    for _ in range(times):
        for what, tx in (('plain', []), ('tx', ['--tx'])):
            found[what].append(lab.timed(state, 'exec', *tx, ref, '--', 'sh', '-c', script)[1])
    lab.cay_says(state, 'kill', ref)
    lab.cay_says(state, 'gc')
    return {k: min(v) for k, v in found.items()}  # whatever disturbs only adds, and a median shows that by more than 1 %


def many_forks(lab, state, count):
    ref = lab.timed(state, 'create')[0]
    lab.cay_says(state, 'exec', ref, '--', 'sh', '-c', FILLS[0][1])
    snap = lab.timed(state, 'snapshot', ref)[0]
    out, ms = lab.timed(state, 'fork', snap, '--count', str(count))
    lab.cay_says(state, 'kill', ref, *out.split())
    lab.cay_says(state, 'gc')
    return ms


def bench(lab):
    state = lab.state('state', in_memory=True)
    times = lab.pick(15, 5)
    rows = {name: measure(lab, state, fill, times) for name, fill in (FILLS[:2] if lab.quick else FILLS)}
    lab.raw['state'] = rows
    small = rows['1 file']
    for what in ('snapshot', 'rollback'):
        lab.promise(f'{what} of an idle sandbox', small[what], 2, 'ms', f'whole command {small[what + " command"]:.1f} ms')
        for name, row in list(rows.items())[1:]:
            lab.promise(f'{what}: {name} / 1 file', row[what] / small[what], 1.5, 'x', f'{row[what]:.2f} ms')
    for name, row in rows.items():
        lab.fact(f'first snapshot, which seals {name}', row['first snapshot'], 'ms')
    one = single_forks(lab, state, lab.pick(50, 5))
    lab.raw['state']['one fork'] = one
    lab.promise('fork of a snapshot / cold create', one['fork'] / one['create'], 1, 'x', f'{one["fork"]:.1f} ms')
    lab.promise('exec --tx of true', small['tx'], 5, 'ms', f'without a transaction {small["exec"]:.1f} ms')
    build = builds(lab, state, lab.pick(7, 1))
    lab.raw['state']['build'] = build
    lab.promise('a build in a transaction / without', build['tx'] / build['plain'], 1.01, 'x', f'{build["plain"] / 1e3:.1f} s')
    count = lab.pick(100, 10)
    lab.promise(f'{count} forks of one snapshot', many_forks(lab, state, count), count, 'ms', 'one after the other, without a warm pool')
    large_calls(lab)

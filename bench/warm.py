# SPDX-License-Identifier: Apache-2.0
"""A call in a running sandbox against a bare fork+exec, from a client that stays connected."""

import collections
import os
import statistics
import subprocess

import lab as lab_module

LEVELS = ('full', 'calls')


def ask(lab, mode, numbers, folders):
    said = subprocess.run([os.path.join(lab.folder, 'bench-exec-client'), mode, *map(str, numbers), *folders, '--',
                           '/bin/true'], capture_output=True, text=True, check=False)
    if said.returncode != 0:
        raise RuntimeError(said.stderr.strip())
    times = collections.defaultdict(list)
    for line in said.stdout.splitlines():
        target, ns = line.split()
        times[LEVELS[int(target)] if target.isdigit() else target].append(int(ns))
    return times


def latency(lab, folders):
    times = ask(lab, 'latency', [lab.pick(1000, 200)], folders)
    lab.raw['call latency us'] = {
        name: {f'p{int(q * 100)}': round(lab_module.quantile(ns, q) / 1e3, 1) for q in (0.5, 0.9, 0.99)}
        for name, ns in times.items()}
    for level in LEVELS:
        for q in (0.5, 0.9, 0.99):
            ours, bare = (lab_module.quantile(times[name], q) for name in (level, 'fork'))
            what = f'call / fork+exec, p{int(q * 100)}, trace {level}'
            detail = f'{ours / 1e3:.0f} / {bare / 1e3:.0f} us'
            if q == 0.5:
                lab.promise(what, ours / bare, 1.5, detail=detail)
            else:
                lab.fact(what, ours / bare, 'x', detail)
        lab.fact(f'call / posix_spawn, p50, trace {level}',
                 statistics.median(times[level]) / statistics.median(times['spawn']), 'x')


def throughput(lab, folders):
    times = ask(lab, 'flight', [lab.pick(2000, 400), 8], folders)
    rate = {name: 1e9 / statistics.median(ns) for name, ns in times.items()}
    lab.raw['calls per second, 8 in flight'] = {name: round(r) for name, r in rate.items()}
    for level in LEVELS:
        lab.fact(f'throughput of 8 in flight / 8 fork+exec, trace {level}', rate[level] / rate['fork'], 'x',
                 f'{rate[level]:.0f} / {rate["fork"]:.0f} per second')


def bench(lab):
    state = lab.state('ready', in_memory=True)
    folders = [os.path.join(state, 'sandboxes', lab.create(state, '--trace', level)) for level in LEVELS]
    latency(lab, folders)
    throughput(lab, folders)
    lab.cay_says(state, 'kill', '--all')

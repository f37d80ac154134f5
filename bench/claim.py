# SPDX-License-Identifier: Apache-2.0
"""
Ready sandboxes. Measures the time from a claim to the end of `true`, in a running client, against a bare fork+exec;
a whole `cay run` with and without a pool; and 100 forks of a snapshot.
"""

import collections
import os
import statistics
import subprocess
import time

FORKS = 100


def ask(lab, state, rounds):
    kind, = [name for name in os.listdir(f'{state}/ready') if name != 'lock']
    said = subprocess.run([os.path.join(lab.folder, 'bench-claim-client'), str(rounds), state, kind, '--', '/bin/true'],
                          capture_output=True, text=True, check=False)
    if said.returncode != 0:
        raise RuntimeError(said.stderr.strip())
    return [(name, int(ns)) for name, ns in map(str.split, said.stdout.splitlines())]


def refill(lab, state, template, n):
    """All ready, and the machine done with those that were claimed."""
    lab.cay_says(state, 'pool', 'set', template, str(n), '--wait')
    time.sleep(1)


def claims(lab, state):
    times, rounds = collections.defaultdict(list), 40
    for _ in range(lab.pick(10, 2)):
        refill(lab, state, 'host', rounds * 5 // 4)
        for name, ns in ask(lab, state, rounds):
            times[name].append(ns / 1e3)
    mid = {name: statistics.median(us) for name, us in times.items()}
    lab.raw['claim us'] = {name: {'median': round(statistics.median(us), 1), 'p10': round(sorted(us)[len(us) // 10], 1)}
                           for name, us in times.items()}
    lab.promise('claim and true / fork+exec, p50', mid['claim'] / mid['fork'], 3,
                detail=f'{mid["claim"]:.0f} / {mid["fork"]:.0f} us')
    lab.promise('the claim alone', mid['yes'] / 1e3, 1, 'ms')


def commands(lab, state):
    found, n = {}, lab.pick(40, 10)
    for name in ('cold', 'ready'):
        if name == 'ready':
            refill(lab, state, 'host', n)
        found[name] = []
        for _ in range(n):
            start = time.perf_counter()
            lab.cay_says(state, 'run', '--', 'true')
            found[name].append((time.perf_counter() - start) * 1e3)
        if name == 'ready':
            lab.cay_says(state, 'pool', 'set', 'host', '0')
    cold, ready = (statistics.median(found[name]) for name in ('cold', 'ready'))
    lab.fact('cay run true with a pool / without', ready / cold, 'x', f'{ready:.1f} / {cold:.1f} ms')


def forks(lab, state):
    ref = lab.create(state)
    lab.cay_says(state, 'exec', ref, '--', 'sh', '-c', 'echo x > /tmp/f')
    lab.cay_says(state, 'snapshot', ref, '--name', 'base')
    found = collections.defaultdict(list)
    for i in range(lab.pick(6, 2)):
        name = 'ready' if i else 'cold'
        if i:
            refill(lab, state, 'snap:base', FORKS)
        start = time.perf_counter()
        ids = lab.cay_says(state, 'fork', 'base', '--count', str(FORKS)).split()
        found[name].append((time.perf_counter() - start) * 1e3)
        lab.cay_says(state, 'kill', *ids)
    lab.cay_says(state, 'pool', 'set', 'snap:base', '0')
    lab.cay_says(state, 'kill', ref)
    lab.promise(f'{FORKS} forks of a snapshot, all ready', statistics.median(found['ready']), 100, 'ms',
                f'without a pool {found["cold"][0]:.0f} ms')


def bench(lab):
    state = lab.state('claim', in_memory=True)
    lab.cay_says(state, 'run', '--', 'true')
    commands(lab, state)
    claims(lab, state)
    lab.cay_says(state, 'pool', 'set', 'host', '0')
    forks(lab, state)

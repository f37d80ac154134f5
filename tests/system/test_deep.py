# SPDX-License-Identifier: Apache-2.0
"""
Snapshots in a loop, as an agent takes one after each step for days: CAY_DEEP of them. Whatever was merged below in
the background, each one holds what it held, and taking one more takes as long as it took in the beginning.
"""

import json
import os
import random
import sqlite3
import statistics
import time

from caylib import wait_until

STEPS = int(os.environ.get('CAY_DEEP', '60'))
LOOKS = int(os.environ.get('CAY_DEEP_LOOKS', '12'))
LAYERS_MAX = 48  # what one overlay can be told of

# Writes, deletions, renames, directories that come again (opaque), links and modes; then all of it in one number.
STEP = r'''
cd /tmp/t; i=$1
echo $i > f$((i % 83)); mkdir -p d$((i % 7)); echo $i > d$((i % 7))/x$((i % 11))
[ $((i % 5)) = 0 ] && rm -rf d$((i * 3 % 7))
[ $((i % 13)) = 0 ] && mv f$((i % 83)) g$((i % 17))
[ $((i % 17)) = 0 ] && { rm -f l$((i % 5)); ln -s $i l$((i % 5)); }
[ $((i % 19)) = 0 ] && chmod $((600 + i % 7 * 10)) f$((i % 83)) 2> /dev/null
[ $((i % 23)) = 0 ] && { rm -rf f$((i % 83)); mkdir f$((i % 83)); } && rmdir f$((i % 83))
tar c --sort=name --format=pax --pax-option=delete=atime,delete=ctime . | sha256sum
'''
LOOK = 'cd /tmp/t; tar c --sort=name --format=pax --pax-option=delete=atime,delete=ctime . | sha256sum'


def depths(cay):
    """How many layers lie below each snapshot."""
    db = sqlite3.connect(os.path.join(cay.state, 'catalog.db'), timeout=120)
    parents = dict(db.execute('SELECT id, parent FROM layers'))
    tops = dict(db.execute('SELECT id, top FROM snapshots'))
    db.close()
    known = {None: 0}

    def depth(layer):
        path = []
        while layer not in known:
            path.append(layer)
            layer = parents[layer]
        for n, x in enumerate(reversed(path), known[layer] + 1):
            known[x] = n
        return known[path[0]] if path else known[layer]

    return {s: depth(t) for s, t in tops.items()}


def layers(cay):
    return [x for x in os.listdir(os.path.join(cay.state, 'layers')) if not x.startswith('.')]


def check(cay, name, want):
    fork = cay('fork', name, check=True).out.strip()
    assert cay('exec', fork, '--', 'sh', '-c', LOOK, check=True).out == want, name
    cay('kill', fork, check=True)


def test_snapshots_in_a_loop_keep_what_they_hold(fresh_cay):
    cay = fresh_cay
    seed = int(os.environ.get('CAY_SEED') or time.time_ns() % 10**9)
    print(f'seed {seed}')
    r = random.Random(seed)
    ref = cay.create()
    cay('exec', ref, '--', 'mkdir', '/tmp/t', check=True)
    known, took, whole = [], [], []
    for i in range(1, STEPS + 1):
        seen = cay('exec', ref, '--', 'sh', '-c', STEP, 'sh', i, check=True).out
        start = time.perf_counter()
        made = json.loads(cay('snapshot', ref, '--json', check=True).out)
        whole.append((time.perf_counter() - start) * 1e3)
        took.append(made['took_ms'])
        known.append((made['id'], seen))
        if i % max(STEPS // 8, 25) == 0:  # while layers are being merged
            check(cay, *r.choice(known))
            assert max(depths(cay).values()) <= LAYERS_MAX
    n = max(STEPS // 20, 10)
    print(f'{STEPS} snapshots: in the warden {statistics.median(took[:n]):.2f} ms for the first {n}, '
          f'{statistics.median(took[-n:]):.2f} for the last; whole command {statistics.median(whole[:n]):.2f} and '
          f'{statistics.median(whole[-n:]):.2f}, longest {max(whole):.0f}')
    wait_until(lambda: cay('tidy', check=True, timeout=300), what='quiet')
    deep = depths(cay)
    print(f'deepest stack {max(deep.values())}, {len(layers(cay))} layers')
    for name, want in r.sample(known, min(LOOKS, len(known))) + [known[0], known[-1]]:
        check(cay, name, want)
    for name, want in r.sample(known, min(LOOKS // 2, len(known))):
        cay('rollback', ref, name, check=True)
        assert cay('exec', ref, '--', 'sh', '-c', LOOK, check=True).out == want, name
    cay('kill', ref, check=True)
    start = time.perf_counter()
    for k in range(0, len(known), 500):
        cay('snapshot', 'rm', *[s[0] for s in known[k:k + 500]], check=True, timeout=120)
    wait_until(lambda: cay('gc', check=True, timeout=300) and not layers(cay),
               timeout=60, what='no layers')
    print(f'removed in {time.perf_counter() - start:.1f} s')

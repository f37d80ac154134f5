# SPDX-License-Identifier: Apache-2.0
"""
Snapshots in storage (btrfs): of an idle sandbox, and how long a snapshot freezes running commands, with 100 MiB
and 10,000 files of changes. The warden reports the times.
"""

import json
import os
import statistics
import subprocess
import time

CHANGES = ('mkdir /tmp/t; cd /tmp/t; for i in $(seq 100); do mkdir $i; (cd $i; seq 100 | xargs touch); done; '
           'head -c 100M /dev/zero > /tmp/big')
BUSY = 'while :; do echo x > /tmp/busy; done'


def told(lab, state, *args):
    return json.loads(lab.cay_says(state, *args, '--json'))


def idle(lab, state, ref, times):
    found = {'snapshot': [], 'rollback': []}
    for i in range(times):
        lab.cay_says(state, 'exec', ref, '--', 'sh', '-c', f'echo {i} > /tmp/g{i}')
        for what, took in found.items():
            took.append(told(lab, state, what, ref)['took_ms'])
            lab.cay_says(state, 'exec', ref, '--', 'sh', '-c', f'rm -f /tmp/g{i}; echo {what} > /tmp/h')
    return {what: statistics.median(took) for what, took in found.items()}


def busy(lab, state, ref, times):
    lab.cay_says(state, 'exec', ref, '--', 'sh', '-c', CHANGES)
    with subprocess.Popen([lab.cay, 'exec', ref, '--', 'sh', '-c', BUSY], env=lab.env(state), stdin=subprocess.DEVNULL) as loop:
        time.sleep(0.2)
        found = [told(lab, state, 'snapshot', ref) for _ in range(times)]
        loop.terminate()
    return {'freeze': max(s['freeze_ms'] for s in found), 'whole': statistics.median(s['took_ms'] for s in found)}


def bench(lab):
    if not lab.is_root:
        lab.skip('pooled', 'a storage pool needs root')
        return
    state = lab.state('pooled')
    try:
        lab.cay_says(state, 'setup', 'storage', '--size', '4G')
    except RuntimeError as e:
        lab.skip('pooled', str(e))
        return
    try:
        ref = lab.create(state)
        lab.cay_says(state, 'exec', ref, '--', 'sh', '-c', 'echo x > /tmp/f')
        lab.cay_says(state, 'snapshot', ref)
        still, moving = idle(lab, state, ref, lab.pick(15, 3)), busy(lab, state, ref, lab.pick(5, 2))
        lab.raw['pooled'] = {'idle': still, 'busy': moving}
        for what, ms in still.items():
            lab.promise(f'in a pool: {what} of an idle sandbox', ms, 2, 'ms')
        lab.promise('in a pool: longest stand still for a snapshot', moving['freeze'], 50, 'ms', f'the whole snapshot {moving["whole"]:.0f} ms')
    finally:
        lab.cay_says(state, 'kill', '--all')
        for snapshot in lab.cay_says(state, 'snapshots', '-q').split():
            lab.cay_says(state, 'snapshot', 'rm', snapshot)
        lab.cay_says(state, 'gc')
        lab.cay_says(state, 'setup', 'storage', '--remove')
        assert not os.path.ismount(os.path.join(state, 'storage'))

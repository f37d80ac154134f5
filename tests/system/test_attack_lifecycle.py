# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments: nothing hangs, and a clean-up leaves nothing behind."""

import os
import random
import signal
import subprocess
import time

import caylib
import pytest

ROUNDS = int(os.environ.get('CAY_KILL_ROUNDS', '12'))
# Makes the time of building longer, which is when most can go wrong.
MOUNTS = [arg for i in range(24) for arg in ('--ro', f'/usr/bin/env:/mnt/{i}')]


def own_processes():
    """Live descendants of this process: pid -> name"""
    found, ours, more = caylib.processes(), {os.getpid()}, True
    while more:
        more = {p for p, (parent, _, _) in found.items() if parent in ours} - ours
        ours |= more
    return {p: found[p][2] for p in ours - {os.getpid()} if found[p][1] != 'Z'}


def is_target(name, target):
    return name in ('memfd:cay-init', 'cay-init') if target == 'init' else name == target


def kill_one(target):
    victims = [p for p, name in own_processes().items() if is_target(name, target)]
    if victims:
        try:
            os.kill(random.choice(victims), signal.SIGKILL)
        except ProcessLookupError:
            pass


def age_locks(cay):
    """gc leaves a lock alone that is younger than a minute: its creator may be about to take it."""
    for name in caylib.list_dir(f'{cay.state}/locks'):
        os.utime(f'{cay.state}/locks/{name}', (1, 1))


def clean_up(cay, before):
    """What is left after a kill of all and gc; a warden that was ending may need a second one."""
    for _ in range(5):
        age_locks(cay)
        cay('kill', '--all', '--yes')
        cay('gc')
        left = caylib.leftovers([cay], before)
        if not left:
            break
    return left


@pytest.mark.parametrize('target', ['cay', 'cay-warden', 'init'])
def test_a_kill_at_any_moment_leaves_nothing_and_hangs_nothing(fresh_cay, target):
    random.seed(target)
    fresh_cay('run', '--', 'true', check=True)
    before = caylib.everything([fresh_cay])
    for i in range(ROUNDS):
        kind = ('run', 'create', 'exec', 'cp')[i % 4]
        sandbox = fresh_cay('create', check=True).out.strip() if kind in ('exec', 'cp') else ''
        args = {'run': ['run', '--', 'sh', '-c', 'setsid sleep 50 & sleep 0.02'],
                'create': ['create', *MOUNTS],
                'exec': ['exec', sandbox, '--', 'sleep', '0.03'],
                'cp': ['cp', '/usr/bin/env', f'{sandbox}:/tmp/x']}[kind]
        with fresh_cay.popen(*args) as process:
            time.sleep(random.random() * 0.03)  # the moment is what is varied
            kill_one(target)
            try:
                process.communicate(timeout=30 * caylib.SLOWER)
            except subprocess.TimeoutExpired:
                process.kill()
                pytest.fail(f'cay {kind} hangs after the death of {target} in round {i}')
        fresh_cay.pids.discard(process.pid)
        assert not clean_up(fresh_cay, before), f'round {i}, {kind}'

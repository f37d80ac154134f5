# SPDX-License-Identifier: Apache-2.0
"""
Every durable step of a snapshot or rollback, with the process that comes to it killed there; and kill -9 of
random processes of ours under load. Afterwards all that was acknowledged is there, and nothing else is left.

Named places exist only in programs of their own (tests/crash), which lie below those that are tested.
"""

import collections
import os
import random
import signal
import subprocess
import time

import caylib
import pytest
from caylib import wait_until
from statelib import check_invariants, content, end, ours, settled, sh

ROUNDS = int(os.environ.get('CAY_CRASH_ROUNDS', '25'))
SECONDS = float(os.environ.get('CAY_CRASH_SECONDS', '60'))
KNOWN_MAX = 40
IN_CLI = ['op.begun', 'op.switched', 'op.done']
IN_WARDEN = ['switch.moving', 'switch.moved', 'switch.renewed', 'switch.entered', 'switch.top', 'switch.renamed']
IN_COPY = ['copy.copied', 'copy.renamed']
IN_LOST = ['lost.begun', 'lost.sealed', 'lost.moved']


@pytest.fixture(params=['plain', 'pool'])
def place(request, fresh_cay):
    """A cay of which the sandboxes lie in the state directory, or in a pool."""
    if request.param == 'pool':
        if caylib.why_no_pool():
            pytest.skip(caylib.why_no_pool())
        fresh_cay('setup', 'pool', '--size', '512M', check=True)
    yield fresh_cay
    if request.param == 'pool':
        fresh_cay('kill', '--all', '--yes')
        subprocess.run(['umount', '-l', f'{fresh_cay.state}/pool'], check=True)


@pytest.fixture
def world(place, monkeypatch):
    monkeypatch.setattr(caylib, 'CAY', os.path.join(os.path.dirname(caylib.CAY), 'tests/crash/cay'))
    return place


def arm(cay, point):
    with open(os.path.join(cay.state, 'failpoint'), 'w', encoding='ascii') as f:
        f.write(point)


def armed(cay):
    return os.path.exists(os.path.join(cay.state, 'failpoint'))


@pytest.mark.parametrize('what', ['snapshot', 'rollback'])
@pytest.mark.parametrize('point', IN_CLI + IN_WARDEN)
def test_death_at_each_step(world, point, what):
    cay = world
    ref = cay.create()
    sh(cay, ref, 'echo one > /tmp/f')
    one = cay('snapshot', ref, check=True).out.strip()
    sh(cay, ref, 'echo two > /tmp/f')
    arm(cay, point)
    result = cay(what, ref)
    assert not armed(cay) and result.code != 0, result
    if point in IN_CLI:
        # The sandbox lives; the next operation puts the journal right.
        assert sh(cay, ref, 'cat /tmp/f') in (('two\n',) if what == 'snapshot' else ('one\n', 'two\n'))
        two = cay('snapshot', ref, check=True).out.strip()
        assert content(cay, two) == sh(cay, ref, 'cat /tmp/f')
        check_invariants(cay)
    else:
        wait_until(lambda: cay('gc', check=True) and cay.json('ls', '--all')[0]['state'] == 'lost', what='lost')
        check_invariants(cay)
        (lost,) = [s['id'] for s in cay.json('snapshots', ref) if s['kind'] == 'lost']
        assert content(cay, lost) in (('two\n',) if what == 'snapshot' else ('one\n', 'two\n'))
        for s in cay.json('snapshots', ref):
            assert content(cay, s['id']) in ('one\n', 'two\n')
    assert content(cay, one) == 'one\n'
    end(cay)


@pytest.mark.parametrize('point', IN_COPY)
def test_death_while_a_busy_sandbox_is_copied(world, point, mode):
    if mode == 'rootless':
        pytest.skip('needs a control group that can be frozen')
    cay = world
    ref = cay.create()
    sh(cay, ref, 'echo one > /tmp/f')
    with cay.popen('exec', ref, '--', 'sh', '-c', 'echo up; sleep 100') as running:
        running.read_until(b'up')
        arm(cay, point)
        assert cay('snapshot', ref).code != 0 and not armed(cay)
        running.finish()
    wait_until(lambda: cay('gc', check=True) and cay.json('ls', '--all')[0]['state'] == 'lost', what='lost')
    check_invariants(cay)
    for s in cay.json('snapshots', ref):
        assert content(cay, s['id']) == 'one\n'
    end(cay)


@pytest.mark.parametrize('point', IN_LOST)
def test_death_while_the_lost_are_kept(world, point):
    cay = world
    ref = cay.create()
    sh(cay, ref, 'echo one > /tmp/f')
    if point == 'lost.moved':
        arm(cay, 'switch.moved')
        assert cay('snapshot', ref).code != 0
    else:
        os.kill(cay.warden(ref), signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f'/proc/{ref}') and alive(cay, ref) is False, what='dead')
    arm(cay, point)
    assert cay('gc').code != 0 and not armed(cay)
    cay('gc', check=True)
    check_invariants(cay)
    (lost,) = [s['id'] for s in cay.json('snapshots', ref) if s['kind'] == 'lost']
    assert content(cay, lost) == 'one\n'
    end(cay)


def alive(cay, ref):
    return cay('exec', ref, '--', 'true').code == 0


@pytest.mark.parametrize('point', ['flatten.made', 'flatten.renamed'])
def test_death_while_layers_are_merged(world, point):
    cay = world
    ref = cay.create()
    snaps = []
    for i in range(13):
        sh(cay, ref, f'echo {i} > /tmp/f')
        snaps.append(cay('snapshot', ref, check=True).out.strip())
    wait_until(lambda: cay('tidy', check=True), what='quiet')
    for i in range(13, 22):
        sh(cay, ref, f'echo {i} > /tmp/f')
        snaps.append(cay('snapshot', ref, check=True).out.strip())
        if i == 14:
            arm(cay, point)
    wait_until(lambda: cay('tidy') and not armed(cay), what='the failpoint')
    cay('tidy', check=True)
    check_invariants(cay)
    for i in (0, 5, 8, 13, 21):
        assert content(cay, snaps[i]) == f'{i}\n'
    assert sh(cay, ref, 'cat /tmp/f') == '21\n'
    end(cay)


def load(cay, ref, first):
    """Everything at once that changes a sandbox, and a command that goes on."""
    return [cay.popen(*args) for args in (
        ['snapshot', ref], ['exec', '--tx', ref, '--', 'sh', '-c', 'echo x > /tmp/x; exit 1'], ['rollback', ref],
        ['fork', first], ['exec', ref, '--', 'sh', '-c', 'for i in 1 2 3 4 5; do echo $i > /tmp/g$i; done'])]


def test_random_deaths_under_load(place):
    """Acknowledged snapshots hold exactly what they held; acknowledged changes of the living are there."""
    cay = place
    seed = int(os.environ.get('CAY_SEED') or time.time_ns() % 10**9)
    print(f'seed {seed}')
    r = random.Random(seed)
    known, stop = {}, time.monotonic() + SECONDS
    rounds, killed = 0, collections.Counter()
    while rounds < ROUNDS and time.monotonic() < stop:
        rounds += 1
        # Every third has a gateway.
        ref = cay.create(*(['--allow', 'example.com'] if rounds % 3 == 0 else []))
        sh(cay, ref, f'echo {rounds} > /tmp/f')
        first = cay('snapshot', ref, check=True).out.strip()
        known[first] = f'{rounds}\n'
        sh(cay, ref, f'echo {rounds}b > /tmp/f')
        work = load(cay, ref, first)
        time.sleep(r.random() * 0.03)
        victims = ours(cay)
        by_name = sorted(set(victims.values()))
        if victims:  # by name first: there is one init and many commands
            name = r.choice(by_name)
            try:
                os.kill(r.choice(sorted(p for p in victims if victims[p] == name)), signal.SIGKILL)
                killed[name] += 1
            except ProcessLookupError:
                pass
        for w in work:
            with w:
                out, _ = w.communicate(timeout=30 * caylib.SLOWER)
            if w.args[1] == 'snapshot' and w.returncode == 0:
                known[out.decode().strip()] = None
        wait_until(lambda: settled(cay), timeout=15, what='all invariants')
        cay('kill', '--all', '--yes')
        cay('gc', '--lost', check=True)
        while len(known) > KNOWN_MAX:
            look(cay, known, r.choice(list(known)), seed)
    print(f'{rounds} rounds, killed {dict(killed)}')
    for name in list(known):
        look(cay, known, name, seed)
    assert rounds >= 5
    end(cay)


def look(cay, known, name, seed):
    """At one that was acknowledged, which then may go."""
    got, want = content(cay, name), known.pop(name)
    assert want is None or got == want, (seed, name)
    cay('snapshot', 'rm', name, check=True)

# SPDX-License-Identifier: Apache-2.0
"""Pausing, resuming, and times after which a sandbox ends or pauses by itself."""

import time

import pytest

import caylib


@pytest.fixture
def make(cay, no_leftovers):
    made = []

    def one(*args):
        made.append(cay.create(*args))
        return made[-1]

    yield one
    for ref in made:
        cay('kill', ref)


def kinds(cay, ref):
    return [e['kind'] for e in cay.events(ref)]


def state(cay, ref):
    return cay.json('show', ref)[0]['state']


def gone(cay, ref):
    return cay('show', ref).code == 5


COUNT = 'n=0; while :; do n=$((n + 1)); echo $n > /tmp/n.new; mv /tmp/n.new /tmp/n; done'


def count(cay, ref):
    """How far the loop has come, read from outside: a call would resume the sandbox."""
    path = f'{cay.state}/sandboxes/{ref}/upper/0/tmp/n'
    return caylib.read_text(path)


def test_nothing_runs_while_paused(cay, make):
    ref = make()
    with cay.popen('exec', ref, '--', 'sh', '-c', COUNT) as p:
        caylib.wait_until(lambda: count(cay, ref))
        assert cay('pause', ref, check=True).out.strip() == ref
        assert state(cay, ref) == 'paused' and cay.json('ls')[0]['state'] == 'paused'
        assert cay('pause', ref).code == 0
        before = count(cay, ref)
        time.sleep(0.3)
        assert count(cay, ref) == before
        cay('resume', ref, check=True)
        assert state(cay, ref) == 'running'
        caylib.wait_until(lambda: count(cay, ref) not in ('', before))
        p.terminate()
        p.wait()
    assert [k for k in kinds(cay, ref) if 'pause' in k or 'resume' in k] == ['sandbox.pause', 'sandbox.resume']


def test_the_clock_of_a_time_limit_stops(cay, make):
    ref = make()
    with cay.popen('exec', ref, '--timeout', '3s', '--', 'sleep', '60') as p:
        caylib.wait_until(lambda: cay.json('show', ref)[0]['calls_running'] == 1)
        cay('pause', ref, check=True)
        time.sleep(3.5)
        assert p.poll() is None
        cay('resume', ref, check=True)
        assert p.wait(20) == 124


def test_a_command_resumes(cay, make):
    ref = make()
    cay('pause', ref, check=True)
    assert cay('exec', ref, '--', 'echo', 'hi', check=True).out == 'hi\n'
    assert state(cay, ref) == 'running'
    events = [e for e in cay.events(ref) if e['kind'] == 'sandbox.resume']
    assert len(events) == 1 and events[0]['reason'] == 'a call was asked for'


def test_a_paused_sandbox_can_be_killed_and_read(cay, make):
    ref = make()
    cay('exec', ref, '--', 'touch', '/tmp/x', check=True)
    cay('pause', ref, check=True)
    assert '/tmp/x' in cay('diff', ref, check=True).out
    start = time.monotonic()
    cay('kill', ref, check=True)
    assert time.monotonic() - start < 5 * caylib.SLOWER and gone(cay, ref)


def test_time_to_live(cay, make):
    ref = make('--ttl', '3s')
    assert 0 < cay.json('ls')[0]['ttl_left_ms'] <= 3000
    caylib.wait_until(lambda: gone(cay, ref))
    events = cay.events(ref)
    assert events[-1]['reason'] == 'its time to live has passed'
    assert [e for e in events if e['kind'] == 'sandbox.timeout'][0]['what'] == 'ttl'


def test_time_to_live_that_pauses(cay, make):
    ref = make('--ttl', '500ms', '--on-timeout', 'pause')
    caylib.wait_until(lambda: state(cay, ref) == 'paused')
    assert cay('exec', ref, '--', 'echo', 'again', check=True).out == 'again\n'
    caylib.wait_until(lambda: state(cay, ref) == 'paused')
    cay('extend', ref, 'never', check=True)
    cay('resume', ref, check=True)
    time.sleep(0.8)
    assert state(cay, ref) == 'running' and 'ttl_left_ms' not in cay.json('show', ref)[0]


def test_extend(cay, make):
    ref = make('--ttl', '3s')
    assert cay.json('extend', ref, '1h')[0]['ttl_left_ms'] > 3500000
    time.sleep(3.2)
    assert state(cay, ref) == 'running'
    assert cay('extend', ref, 'soon').code == 2
    cay('extend', ref, '300ms', check=True)
    caylib.wait_until(lambda: gone(cay, ref))


def test_the_time_to_live_stops_while_paused(cay, make):
    ref = make('--ttl', '3s')
    cay('pause', ref, check=True)
    left = cay.json('show', ref)[0]['ttl_left_ms']
    time.sleep(1.2)
    assert cay.json('show', ref)[0]['ttl_left_ms'] == left
    cay('resume', ref, check=True)
    caylib.wait_until(lambda: gone(cay, ref))


def test_idle(cay, make):
    ref = make('--idle', '800ms')
    cay('exec', ref, '--', 'sleep', '1.5', check=True)  # a command that runs is no idleness
    assert state(cay, ref) == 'running'
    caylib.wait_until(lambda: gone(cay, ref))
    assert cay.events(ref)[-1]['reason'] == 'it was idle for too long'


def test_idle_that_pauses_and_goes_on(cay, make):
    ref = make('--idle', '300ms', '--on-timeout', 'pause')
    for _ in range(2):
        caylib.wait_until(lambda: state(cay, ref) == 'paused')
        cay('exec', ref, '--', 'true', check=True)
    assert kinds(cay, ref).count('sandbox.pause') >= 2


def test_wrong_options(cay):
    assert cay('create', '--ttl', '1s', '--on-timeout', 'sleep').code == 2
    assert cay('create', '--on-timeout', 'pause').code == 2
    assert cay('pause').code == 2 and cay('pause', 'nosuch').code == 5

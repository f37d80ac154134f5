# SPDX-License-Identifier: Apache-2.0
"""
A switch that is announced, and a call that is asked for together with one: whatever comes between, the files are
those that were there, and nothing runs where it should not.
"""

import os
import struct
import time

import caylib
import pytest
from caylib import wait_until
from statelib import check_invariants, content, end, sh
from test_attack_warden import EXEC, EXIT, INFO, SIGNAL, TAG_SIGNAL, Sandbox, args, field, frame, kinds_of

SWITCH, SOON, SWITCHED, STARTED, ERROR = 75, 76, 107, 97, 127
TAG_LAYER, TAG_SEAL, TAG_SNAPSHOT, TAG_SWITCHING = 60, 61, 64, 66
AFTER = field(TAG_SWITCHING, 1)


@pytest.fixture
def box(fresh_cay):
    b = Sandbox(fresh_cay)
    sh(fresh_cay, b.id, 'echo one > /tmp/f')
    yield b
    end(fresh_cay)


def next_is_mounted(box):
    return os.path.isdir(f'{box.cay.state}/sandboxes/{box.id}/next/0')


def announce(box):
    s = box.connect()
    s.sendall(frame(SOON))
    wait_until(lambda: next_is_mounted(box), what='the next generation')
    return s


def frames(s, until):
    """Types and channels, up to the first of a type."""
    data, seen = b'', []
    while not any(kind == until for kind, _ in seen):
        data += s.recv(65536)
        seen, at = [], 0
        while len(data) - at >= 12 and len(data) - at >= 12 + struct.unpack_from('<I', data, at)[0]:
            seen.append((data[at + 4], struct.unpack_from('<I', data, at + 8)[0]))
            at += 12 + struct.unpack_from('<I', data, at)[0]
    return seen


def test_one_that_is_never_asked_for_is_forgotten(box):
    announce(box).close()
    wait_until(lambda: not next_is_mounted(box), what='nothing ahead')
    assert sh(box.cay, box.id, 'cat /tmp/f') == 'one\n'
    snap = box.cay('snapshot', box.id, check=True).out.strip()
    assert content(box.cay, snap) == 'one\n'
    check_invariants(box.cay)


def test_what_a_call_changes_in_between_is_in_the_snapshot(box):
    with announce(box):
        sh(box.cay, box.id, 'echo two > /tmp/f; mkdir /tmp/d; echo new > /tmp/d/g')
        assert not next_is_mounted(box)
        snap = box.cay('snapshot', box.id, check=True).out.strip()
        assert content(box.cay, snap) == 'two\n'
        assert sh(box.cay, box.id, 'cat /tmp/f /tmp/d/g') == 'two\nnew\n'
    check_invariants(box.cay)


@pytest.mark.parametrize('what', ['rollback', 'pause', 'snapshot', 'exec --tx', 'kill'])
def test_somebody_else_comes_first(box, what):
    first = box.cay('snapshot', box.id, check=True).out.strip()
    sh(box.cay, box.id, 'echo two > /tmp/f')
    with announce(box):
        if what == 'exec --tx':
            assert box.cay('exec', '--tx', box.id, '--', 'sh', '-c', 'echo three > /tmp/f; exit 1').code == 1
        else:
            box.cay(what, box.id, check=True)
        if what == 'pause':
            box.cay('resume', box.id, check=True)
        if what != 'kill':
            assert sh(box.cay, box.id, 'cat /tmp/f') == ('one\n' if what == 'rollback' else 'two\n')
    assert content(box.cay, first) == 'one\n'
    check_invariants(box.cay)


@pytest.mark.parametrize('layers', [b'', field(TAG_SEAL, b'dddddddddddd') + field(TAG_LAYER, b'aaaaaaaaaaaa')], ids=['rollback', 'other layers'])
def test_something_else_is_asked_for_than_was_announced(box, layers):
    """Here the same client goes back to nothing, or goes on above a layer that it has not been above."""
    with box.connect() as s:
        s.sendall(frame(SWITCH, field(TAG_SEAL, b'aaaaaaaaaaaa'), chan=2))
        frames(s, SWITCHED)
        s.sendall(frame(SWITCH, chan=2))
        frames(s, SWITCHED)
    sh(box.cay, box.id, 'echo two > /tmp/g')
    with announce(box) as s:
        s.sendall(frame(SWITCH, layers, chan=2))
        frames(s, SWITCHED)
    assert sh(box.cay, box.id, 'cat /tmp/f /tmp/g 2>&1 || true').count('No such file') == (0 if layers else 2)


def test_it_is_announced_while_a_call_runs(box):
    """Then it is nothing: what runs may change files."""
    with box.connect() as s:
        s.sendall(frame(EXEC, args('sleep', '60')) + frame(SOON) * 3)
        frames(s, STARTED)
        time.sleep(0.05)  # nothing tells that nothing comes of it
        assert not next_is_mounted(box)
        s.sendall(frame(SIGNAL, field(TAG_SIGNAL, 9)))
        frames(s, EXIT)
    assert sh(box.cay, box.id, 'cat /tmp/f') == 'one\n'


def test_a_call_that_follows_a_switch_runs_behind_it(box):
    """With what is sent to its stdin, though all comes at once."""
    with box.connect() as s:
        s.sendall(frame(SWITCH, field(TAG_SEAL, b'aaaaaaaaaaaa'), chan=2) +
                  frame(EXEC, AFTER + args('sh', '-c', 'cat >> /tmp/f')) +
                  frame(67, b'two\n') + frame(68))
        seen = frames(s, EXIT)
    assert (SWITCHED, 2) in seen and ERROR not in [kind for kind, _ in seen]
    assert sh(box.cay, box.id, 'cat /tmp/f') == 'one\ntwo\n'
    kinds = [e['kind'] for e in box.cay.events(box.id) if e['kind'] in ('sandbox.snapshot', 'call.start')]
    assert kinds[-3:] == ['sandbox.snapshot', 'call.start', 'call.start'], 'not in the order in which it happened'
    layer = f'{box.cay.state}/layers/aaaaaaaaaaaa/0/tmp/f'
    with open(layer, encoding='ascii') as f:
        assert f.read() == 'one\n', 'the call ran before the layer was sealed'


@pytest.mark.parametrize('switch', [b'', frame(SWITCH, field(TAG_SEAL, b'../../x'), chan=2),
                                    frame(SWITCH, field(TAG_LAYER, b'nosuchlayer1'), chan=2),
                                    frame(SWITCH, b'\xff' * 7, chan=2)], ids=['none', 'a bad name', 'no such layer', 'garbage'])
def test_a_call_whose_switch_was_not_done_does_not_run(box, switch):
    with box.connect() as s:
        s.sendall(switch + frame(EXEC, AFTER + args('sh', '-c', 'echo ran > /tmp/ran')))
        s.settimeout(1)
        data = b''
        try:
            while part := s.recv(65536):
                data += part
        except OSError:
            pass
    kinds = list(kinds_of(data))
    assert kinds.count(ERROR) == (2 if switch else 1) and STARTED not in kinds
    assert sh(box.cay, box.id, 'cat /tmp/f; ls /tmp') == 'one\nf\n'


def test_a_call_does_not_follow_a_rollback(box):
    """Which makes no layer that could tell how far it came."""
    with box.connect() as s:
        s.sendall(frame(SWITCH, chan=2) + frame(EXEC, AFTER + args('sh', '-c', 'echo ran > /tmp/ran')))
        assert sorted(frames(s, SWITCHED)) == [(SWITCHED, 2), (ERROR, 1)]
    assert sh(box.cay, box.id, 'ls /tmp') == ''


def test_what_calls_have_left_behind_is_not_forgotten(box):
    """A process that goes on may change files: nothing is mounted ahead then, and a transaction copies."""
    sh(box.cay, box.id, 'while :; do echo busy > /tmp/busy; sleep 0.01; done > /dev/null 2>&1 &')
    with box.connect() as s:
        s.sendall(frame(SOON))
        time.sleep(0.05)  # nothing tells that nothing comes of it
        assert not next_is_mounted(box)
    done = box.cay('exec', '--tx', box.id, '--', 'sh', '-c', 'cat; echo two > /tmp/f; exit 3', input='in')
    assert done.code == 3 or (not caylib.GROUPS and 'no control group' in done.err), done
    assert sh(box.cay, box.id, 'cat /tmp/f') == 'one\n'
    check_invariants(box.cay)


def test_one_switch_right_behind_another_leaves_nothing_open(box):
    """What is about to be sealed is sealed first."""
    def held():
        return len(os.listdir(f'/proc/{box.warden}/fd'))

    counts = []
    for i in range(12):
        sh(box.cay, box.id, f'echo {i} > /tmp/f')
        with box.connect() as s:
            s.sendall(frame(SWITCH, field(TAG_SEAL, f'eeeeeeeeee{i:02}'.encode()), chan=2) + frame(INFO))
            frames(s, SWITCHED)
            s.sendall(frame(SWITCH, chan=2))
            frames(s, SWITCHED)
        wait_until(lambda: box.cay('ps', box.id).code == 0)
        counts.append(held())
    time.sleep(0.2)
    assert held() <= counts[2] + 4, (counts, held())


def test_a_second_call_needs_a_switch_of_its_own_client(box):
    """One that another client asked for does not count."""
    with box.connect() as s, box.connect() as other:
        s.sendall(frame(SWITCH, field(TAG_SEAL, b'bbbbbbbbbbbb'), chan=2))
        frames(s, SWITCHED)
        other.sendall(frame(EXEC, AFTER + args('true')))
        assert frames(other, ERROR) == [(ERROR, 1)]
        s.sendall(frame(EXEC, AFTER + args('true')))
        frames(s, EXIT)


def test_a_client_that_leaves_in_the_midst_of_it(box):
    """The switch is gone through with; its call is not, or ends."""
    for i in range(10):
        sh(box.cay, box.id, f'echo {i} > /tmp/f')
        with box.connect() as s:
            s.sendall(frame(SOON) + frame(SWITCH, field(TAG_SEAL, f'cccccccccc{i:02}'.encode()) +
                                          b''.join(field(TAG_LAYER, f'cccccccccc{j:02}'.encode()) for j in reversed(range(i))), chan=2) +
                      frame(EXEC, AFTER + args('sleep', '4712')))
            time.sleep(i / 2000)
    wait_until(lambda: '4712' not in box.processes(), what='the end of calls without a client')
    assert sh(box.cay, box.id, 'cat /tmp/f') == '9\n'

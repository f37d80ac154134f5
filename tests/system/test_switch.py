# SPDX-License-Identifier: Apache-2.0
"""Requests of a client to switch a sandbox to its next generation of files, in orders that cay never sends."""

import os
import struct
import time

import caylib
import pytest
from caylib import wait_until
from statelib import check_invariants, end, sh
from test_attack_warden import EXEC, INFO, Sandbox, args, field, frame

SWITCH, SWITCHED, ERROR = 75, 107, 127
TAG_LAYER, TAG_SEAL = 60, 61


@pytest.fixture
def box(fresh_cay):
    b = Sandbox(fresh_cay)
    b.hello = frame(64, field(1, 2), chan=0)  # what it asks for needs no lease
    sh(fresh_cay, b.id, 'echo one > /tmp/f')
    yield b
    end(fresh_cay)


def frames(s, *chans):
    """Types and channels, until there is a frame on each of these channels."""
    data, seen = b'', []
    while not set(chans) <= {chan for _, chan in seen}:
        data += s.recv(65536)
        seen, at = [], 0
        while len(data) - at >= 12 and len(data) - at >= 12 + struct.unpack_from('<I', data, at)[0]:
            seen.append((data[at + 4], struct.unpack_from('<I', data, at + 8)[0]))
            at += 12 + struct.unpack_from('<I', data, at)[0]
    return seen


def test_what_calls_have_left_behind_is_not_forgotten(box):
    """A process that goes on may change files: a transaction copies them."""
    sh(box.cay, box.id, 'while :; do echo busy > /tmp/busy; sleep 0.01; done > /dev/null 2>&1 &')
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
            frames(s, 2)
            s.sendall(frame(SWITCH, chan=2))
            frames(s, 2)
        wait_until(lambda: box.cay('ps', box.id).code == 0)
        counts.append(held())
    time.sleep(0.2)
    assert held() <= counts[2] + 4, (counts, held())


def test_a_client_that_leaves_in_the_midst_of_it(box):
    """The switch is gone through with; its call is not, or ends."""
    for i in range(10):
        sh(box.cay, box.id, f'echo {i} > /tmp/f')
        with box.connect() as s:
            s.sendall(frame(SWITCH, field(TAG_SEAL, f'cccccccccc{i:02}'.encode()) +
                            b''.join(field(TAG_LAYER, f'cccccccccc{j:02}'.encode()) for j in reversed(range(i))), chan=2) +
                      frame(EXEC, args('sleep', '4712')))
            time.sleep(i / 2000)
    wait_until(lambda: '4712' not in box.processes(), what='the end of calls without a client')
    assert sh(box.cay, box.id, 'cat /tmp/f') == '9\n'


def test_two_switches_in_one_write_are_done_one_after_the_other_or_refused(box):
    """The second one must not free what the answer to the first one needs."""
    for i in range(5):
        sh(box.cay, box.id, f'echo {i} > /tmp/f')
        with box.connect() as s:
            s.sendall(frame(SWITCH, field(TAG_SEAL, f'dddddddddd{i:02}'.encode()) +
                            b''.join(field(TAG_LAYER, f'dddddddddd{j:02}'.encode()) for j in reversed(range(i))), chan=2) +
                      frame(SWITCH, b'\xff' * 7, chan=4))
            assert {(SWITCHED, 2), (ERROR, 4)} <= set(frames(s, 2, 4))
    assert sh(box.cay, box.id, 'cat /tmp/f') == '4\n'

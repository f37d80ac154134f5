# SPDX-License-Identifier: Apache-2.0
"""
A disk that is full or broken, or the death of who is about to write to it, at every single change that a command or a
warden makes (fault.c). What was acknowledged stays as it was, what failed says why, and once the disk works again everything goes on.

There are some hundred such changes; CAY_FAULTS of each kind are tried, 'all' for every one. test_faults_commands.py has the rest.
"""

import errno
import fcntl
import os
import signal
import subprocess

import caylib
import pytest
from caylib import wait_until
from faultlib import HOW_MANY, KILL, KILLED, Lab, attached, count, gone, only_here, tracing
from statelib import content, rows, sh

pytestmark = only_here

def test_snapshots(place_lab):
    lab = place_lab
    lab.put('second')
    result, seen = count(lab, 'snapshot', lab.ref)
    lab.known[result.out.strip()] = 'second\n'
    for n, error in lab.points(seen):
        lab.put(f'at{n}')
        result = lab.run(n, error, 'snapshot', lab.ref)
        if result.code == 0:
            lab.known[result.out.strip()] = f'at{n}\n'
        lab.holds(f'at{n}\n')
    lab.finish()


def test_rollbacks(place_lab):
    lab = place_lab
    lab.put('second')
    _, seen = count(lab, 'rollback', lab.ref, lab.first)
    for n, error in lab.points(seen):
        lab.put(f'at{n}')
        result = lab.run(n, error, 'rollback', lab.ref, lab.first)
        lab.holds('first\n', *([f'at{n}\n'] if result.code else []))
    lab.finish()


def test_transactions(lab):
    inner = ['exec', '--tx', lab.ref, '--', 'sh', '-c', 'echo inner > /tmp/f; exit 3']
    lab.put('second')
    result, seen = count(lab, *inner)
    assert result.code == 3 and lab.now() == 'second\n'
    for n, error in lab.points(seen):
        lab.put(f'at{n}')
        inner[2] = lab.ref
        result = lab.run(n, error, *inner, own=3)
        if lab.cay('exec', lab.ref, '--', 'cat', '/tmp/f').out in ('inner\n', ''):  # or a part, where it ended with its client
            # It could not be aborted then, said so, and can be now.
            assert result.code == KILLED or 'abort the transaction' in result.err, (lab.what, result)
            lab.cay('tx', 'abort', lab.ref, check=True)
        lab.holds(f'at{n}\n')
    lab.finish()


def test_removal_of_snapshots(place_lab):
    lab = place_lab
    def one():
        lab.put('x')
        return lab.cay('snapshot', lab.ref, check=True).out.strip()
    _, seen = count(lab, 'snapshot', 'rm', one())
    for n, error in lab.points(seen):
        name = one()
        result = lab.run(n, error, 'snapshot', 'rm', name)
        there = name in [s['id'] for s in lab.cay.json('snapshots')]
        assert not (there and result.code == 0), lab.what
        if there:
            assert content(lab.cay, name) == 'x\n'
            lab.cay('snapshot', 'rm', name, check=True)
        lab.holds('x\n')
    lab.finish()


@pytest.mark.parametrize('what', ['create', 'fork'])
def test_making_of_sandboxes(place_lab, what):
    """It is there, with what it should have, or it was not made, and nothing of it is left. Its warden's disk fails too."""
    lab = place_lab
    args = ['create'] if what == 'create' else ['fork', lab.first]
    result, seen = count(lab, *args)
    assert seen > 10
    gone(lab, result.out.strip())
    for n, error in lab.points(seen):
        before = {box['id'] for box in lab.cay.json('ls', '--all')}
        result = lab.run(n, error, *args)
        made = result.out.strip()
        if result.code == 0 and lab.cay('exec', made, '--', 'true').code == 0:
            assert what == 'create' or sh(lab.cay, made, 'cat /tmp/f') == 'first\n', lab.what
        gone(lab, *({box['id'] for box in lab.cay.json('ls', '--all')} - before))
        lab.holds('first\n')
    lab.finish()


def test_ends(place_lab):
    """cay kill says that it is gone, or it can be told again."""
    lab = place_lab
    def another():
        return lab.cay('fork', lab.first, check=True).out.strip()
    _, seen = count(lab, 'kill', another())
    assert seen > 3
    for n, error in lab.points(seen):
        ref = another()
        result = lab.run(n, error, 'kill', ref)
        if result.code == 0:
            assert ref not in {box['id'] for box in lab.cay.json('ls', '--all')}, lab.what
        gone(lab, ref)
        lab.holds('first\n')
    lab.finish()


def test_keeping_what_was_lost(place_lab):
    lab = place_lab
    def lose():
        lab.put('last')
        warden = lab.cay.warden(lab.ref)
        os.kill(warden, signal.SIGKILL)
        wait_until(lambda: warden not in caylib.processes() or caylib.processes()[warden][1] == 'Z', what='its end')
    lose()
    _, seen = count(lab, 'gc')
    lab.holds('last\n')
    for n, error in lab.points(seen):
        lose()
        lab.run(n, error, 'gc')
        lab.holds('last\n')
    lab.finish()


def test_merging_of_layers(lab):
    def deepen():
        # Who merges in the background finds that somebody is at it.
        with open(os.path.join(lab.cay.state, 'layers/.lock'), 'w', encoding='ascii') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for i in range(14):
                lab.put(f'd{i}')
                lab.known[lab.cay('snapshot', lab.ref, check=True).out.strip()] = f'd{i}\n'
    deepen()
    _, seen = count(lab, 'tidy')
    assert seen > 20
    points = list(lab.points(seen))
    for n, error in points[:2] if HOW_MANY.isdigit() else points:
        if rows(lab.cay, 'SELECT count(*) FROM layers WHERE level = 0')[0][0] < 12:
            deepen()
        lab.run(n, error, 'tidy')
        lab.holds('d13\n')
    lab.cay('tidy', check=True)
    lab.finish()


@pytest.mark.parametrize('where', ['/next', 'rename'])
def test_a_switch_that_can_neither_be_made_nor_undone(lab, where):
    """The files were moved away and cannot be moved back: they are found where they are."""
    lab.put('second')
    lab.cay('snapshot', 'rm', lab.cay('snapshot', lab.ref, check=True).out.strip(), check=True)
    lab.put('third')
    assert attached(lab, where, -errno.ENOSPC, 'rollback', lab.ref, lab.first).code != 0
    assert where in lab.what
    lab.holds('third\n')
    lab.finish()


def test_the_warden_itself(lab):
    """Its trace, its switches: it goes on, or it ends and the files are kept."""
    commands = [lambda: ['snapshot', lab.ref], lambda: ['rollback', lab.ref, lab.first],
                lambda: ['exec', lab.ref, '--', 'touch', '/tmp/y']]
    for command in commands:
        lab.put('second')
        result = attached(lab, 0, errno.EIO, *command())
        seen = int(lab.seen)
        assert result.code == 0 and seen > 0
        lab.holds('first\n', 'second\n')
        for n, error in lab.points(seen):
            lab.put(f'at{n}')
            result = attached(lab, n, error, *command())
            assert result.code >= 0
            if command is commands[0] and result.code == 0:
                lab.known[result.out.strip()] = f'at{n}\n'
            lab.holds(f'at{n}\n', *(['first\n'] if command is commands[1] else []))
    lab.finish()


def test_a_trace_that_fails_while_a_command_runs(lab):
    """Whoever waits for the command is told why it was ended: 137 alone would be the command's own."""
    with lab.cay.popen('exec', lab.ref, '--', 'sh', '-c', 'echo up; read x; true; /bin/true; sleep 100', stdin=subprocess.PIPE) as running:
        running.read_until(b'up')
        with tracing(lab, 'trace.jsonl', errno.ENOSPC):
            running.stdin.write(b'x\n')
            running.stdin.flush()
            result = running.finish()
    assert result.code == 125 and os.strerror(errno.ENOSPC) in result.err, result
    lab.holds('first\n')
    lab.finish()


@pytest.mark.parametrize('when', ['ahead', 'asked'])
def test_a_helper_that_dies_on_its_way(fresh_cay, fault, tmp_path, when):
    """
    Of those that make the next generation, before any system call from the first to the last: the one that waited is
    replaced by another, who was started for it says that it could not be made, and the next one can.
    """
    work = tmp_path / 'work'
    work.mkdir()
    for path in (tmp_path, work):
        path.chmod(0o755)
    lab = Lab(fresh_cay, fault, tmp_path)

    def snapshot(text):
        lab.put(text)
        made = lab.cay('snapshot', lab.ref)
        if made.code == 0:
            lab.known[made.out.strip()] = f'{text}\n'
        assert lab.now() == f'{text}\n' and sh(lab.cay, lab.ref, 'ls -A /sys; ls -A /w') == 'devices\n', (text, lab.what)
        return made

    def switch(n):
        lab.ref = lab.cay.create('--dir', f'{work}:/w')  # which stays what it is from one to the next
        lab.prefix = '*'  # what it changes are mounts
        with tracing(lab, n, KILL, child=1 if when == 'asked' else 3) as tracer:
            if when == 'ahead':  # after who made that one and who takes the last one apart
                assert snapshot(f'before{n}').code == 0
                assert tracer.stdout.readline() == b'started\n'
            made = snapshot(f'at{n}')
        assert made.code == 0 or (when == 'asked' and 'its helper has died' in made.err), (n, lab.what, made)
        for i in range(3):
            assert snapshot(f'after{n}-{i}').code == 0, (n, lab.what)
        lab.prefix = lab.cay.state
    first = lab.ref
    switch(0)
    seen = int(lab.seen)
    assert seen > 80, seen
    for n in sorted({n for n, _ in lab.points(seen)}):
        lab.cay('kill', lab.ref, check=True)
        switch(n)
    lab.holds(f'after{n}-2\n')
    lab.cay('kill', lab.ref, check=True)
    lab.ref = first
    lab.holds('first\n')
    lab.finish()

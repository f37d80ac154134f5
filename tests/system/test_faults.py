# SPDX-License-Identifier: Apache-2.0
"""
A disk that is full or broken, or the death of who is about to write to it, at every single change that a command or a
warden makes (fault.c). What was acknowledged stays as it was, what failed says why, and once the disk works again everything goes on.

There are some hundred such changes; CAY_FAULTS of each kind are tried, 'all' for every one.
"""

import errno
import fcntl
import os
import random
import signal
import subprocess
import time

import caylib
import pytest
from caylib import wait_until
from statelib import check_invariants, content, end, rows, sh, until_it_holds

HERE = os.path.dirname(os.path.abspath(__file__))
HOW_MANY = os.environ.get('CAY_FAULTS', '4')
ERRORS = [errno.ENOSPC, errno.EIO]
KILL = 0  # no error: whoever is about to make the change is killed
KILLED = 200 + signal.SIGKILL

pytestmark = pytest.mark.skipif(os.uname().machine != 'x86_64' or not caylib.ROOTFUL, reason='needs root on amd64')


@pytest.fixture(scope='module')
def fault(tmp_path_factory):
    program = str(tmp_path_factory.mktemp('fault') / 'fault')
    subprocess.run(['gcc', '-D_GNU_SOURCE', '-O1', '-o', program, os.path.join(HERE, 'fault.c')], check=True)
    return program


class Lab:
    """A sandbox, what it and its snapshots hold, and a disk that fails on demand."""

    def __init__(self, cay, fault, tmp_path, *create):
        self.cay, self.fault, self.report, self.create = cay, fault, str(tmp_path / 'report'), create
        self.known, self.ref, self.first, self.prefix = {}, None, None, cay.state
        self.seed = int(os.environ.get('CAY_SEED') or time.time_ns() % 10**9)
        self.dice = random.Random(self.seed)
        print(f'seed {self.seed}')
        self.begin()

    def begin(self):
        self.ref = self.cay.create(*self.create)
        self.put('first')
        self.first = self.cay('snapshot', self.ref, check=True).out.strip()
        self.known[self.first] = 'first\n'

    def put(self, text):
        sh(self.cay, self.ref, f'echo {text} > /tmp/f')

    def now(self):
        return sh(self.cay, self.ref, 'cat /tmp/f')

    def run(self, n, error, *args):
        """A command of which the n-th change of the disk fails, and all after it where error is negative."""
        how = f'{abs(error)}{"*" if error < 0 else ""}'
        done = subprocess.run([self.fault, self.report, str(n), how, self.prefix, caylib.CAY, *args],
                              env=self.cay.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
        result = caylib.Result(args, done.returncode, done.stdout, done.stderr)
        with open(self.report, encoding='utf-8') as f:
            self.seen, self.what = f.read().strip().split(' ', 1)
        assert result.code not in (97, 98, 99), (result, self.what)
        assert result.code < 200 or (error == KILL and result.code == KILLED), (result, self.what)
        if result.code and n and error != KILL:
            # The warden's C library has other words for one. SQLite opens a file that it may not write to again, to read, and forgets why.
            assert os.strerror(abs(error)) in result.err or (abs(error) == errno.EIO and 'I/O error' in result.err) or \
                (self.what.startswith('create /catalog.db') and 'cannot open the catalog' in result.err) or \
                (self.what.startswith('fdatasync /catalog.db') and 'cannot use the catalog' in result.err), (self.what, result)
        return result

    def points(self, seen):
        every = list(range(1, seen + 1))
        chosen = every if HOW_MANY == 'all' else sorted(self.dice.sample(every, min(int(HOW_MANY), seen)))
        kinds = [sign * error for error in ERRORS for sign in (1, -1)] + [KILL]
        return [(n, kind) for n in chosen for kind in (kinds if HOW_MANY == 'all' else [self.dice.choice(kinds)])]

    def settled(self):
        """'running' or 'lost'; None while it is just ending."""
        if self.cay('exec', self.ref, '--', 'true').code == 0:
            return 'running'
        return 'lost' if {b['id']: b['state'] for b in self.cay.json('ls', '--all')}[self.ref] == 'lost' else None

    def holds(self, *allowed):
        """The sandbox lives and has one of these, or was lost with it; all else is in order."""
        cay = self.cay
        wait_until(self.settled, what='alive, or lost')
        cay('snapshot', 'rm', cay('snapshot', self.ref).out.strip())  # settles what was begun
        until_it_holds(lambda: check_invariants(cay))
        if self.settled() == 'running':
            assert self.now() in allowed, self.what
        else:
            (lost,) = [s['id'] for s in cay.json('snapshots', self.ref) if s['kind'] == 'lost']
            assert content(cay, lost) in allowed, self.what
            cay('kill', self.ref, check=True)
            self.begin()
        name = self.dice.choice(list(self.known))
        assert content(cay, name) == self.known[name], (self.what, name)

    def finish(self):
        for name, want in self.known.items():
            assert content(self.cay, name) == want, name
        end(self.cay)


@pytest.fixture
def lab(fresh_cay, fault, tmp_path):
    return Lab(fresh_cay, fault, tmp_path)


def count(lab, *args):
    """How many changes there are, when nothing fails."""
    result = lab.run(0, errno.EIO, *args)
    return result, int(lab.seen)


def test_snapshots(lab):
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


def test_rollbacks(lab):
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
        result = lab.run(n, error, *inner)
        if lab.cay('exec', lab.ref, '--', 'cat', '/tmp/f').out == 'inner\n':
            # It could not be aborted then, said so, and can be now.
            assert result.code == KILLED or 'abort the transaction' in result.err, (lab.what, result)
            lab.cay('tx', 'abort', lab.ref, check=True)
        lab.holds(f'at{n}\n')
    lab.finish()


def test_removal_of_snapshots(lab):
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


def gone(lab, *refs):
    """Of these nothing is left, whoever had to end it."""
    for ref in refs:
        lab.cay('kill', ref)
    wait_until(lambda: not set(refs) & {box['id'] for box in lab.cay.json('ls', '--all')}, what='no such sandbox')


@pytest.mark.parametrize('what', ['create', 'fork'])
def test_making_of_sandboxes(lab, what):
    """It is there, with what it should have, or it was not made, and nothing of it is left. Its warden's disk fails too."""
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


def test_ends(lab):
    """cay kill says that it is gone, or it can be told again."""
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


def test_keeping_what_was_lost(lab):
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
    points = lab.points(seen)
    for n, error in points if HOW_MANY == 'all' else points[:2]:
        if rows(lab.cay, 'SELECT count(*) FROM layers WHERE level = 0')[0][0] < 12:
            deepen()
        lab.run(n, error, 'tidy')
        lab.holds('d13\n')
    lab.cay('tidy', check=True)
    lab.finish()


def attached(lab, n, error, *args):
    """A command, while a change of the disk by the warden fails."""
    how = f'{abs(error)}{"*" if error < 0 else ""}'
    with subprocess.Popen([lab.fault, lab.report, str(n), how, lab.prefix, '-p', str(lab.cay.warden(lab.ref))],
                          stdout=subprocess.PIPE) as tracer:
        assert tracer.stdout.readline() == b'attached\n'
        result = lab.cay(*args)
        tracer.terminate()
    with open(lab.report, encoding='utf-8') as f:
        lab.seen, lab.what = f.read().strip().split(' ', 1)
    return result


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


def test_taking_changes_over(fresh_cay, fault, tmp_path):
    """All or nothing, also where the disk says no in the middle: rerun, it completes."""
    host = tmp_path / 'host'
    host.mkdir()
    old = {'a': 'a\n', 'b': 'b\n', 'sub/c': 'c\n', 'gone': 'x\n'}
    new = {'a': 'A\n', 'b': 'b\n', 'sub/c': 'C\n', 'sub/d/e': 'E\n', 'n': 'N\n'}

    def reset():
        subprocess.run(['rm', '-rf', *map(str, host.iterdir())], check=True)
        for name, text in old.items():
            (host / name).parent.mkdir(parents=True, exist_ok=True)
            (host / name).write_text(text)

    def tree():
        return {str(p.relative_to(host)): p.read_text() for p in sorted(host.rglob('*'))
                if p.is_file() and '.cay-apply' not in p.parts}

    def change():
        ref = fresh_cay.create('--dir', f'{host}:/w')
        sh(fresh_cay, ref, 'cd /w && echo A > a && echo C > sub/c && mkdir sub/d && echo E > sub/d/e && echo N > n && rm gone')
        return ref
    reset()
    lab = Lab(fresh_cay, fault, tmp_path)
    lab.prefix = str(host)
    ref = change()
    _, seen = count(lab, 'apply', ref)
    assert tree() == new and seen > 10
    fresh_cay('kill', ref, check=True)
    for n, error in lab.points(seen):
        reset()
        ref = change()
        result = lab.run(n, error, 'apply', ref)
        if result.code == 0:
            assert tree() == new, lab.what
        elif not (host / '.cay-apply').exists():
            assert tree() == old, lab.what
        else:
            again = fresh_cay('apply', ref, '--undo' if lab.dice.random() < 0.5 else '--resume')
            # Where there was no journal yet, what is staged is nothing.
            assert again.code == 0 or (tree() == old and 'nothing was cut off' in again.err), (lab.what, again)
            assert tree() in (old, new), lab.what
        if tree() == old:
            # What was moved and moved back has another ctime, and counts as changed.
            again = fresh_cay('apply', ref)
            assert tree() == (old if again.code else new), (lab.what, again)
            assert again.code == 0 or 'changed on the host meanwhile' in again.err, (lab.what, again)
        assert not (host / '.cay-apply' / 'journal').exists(), lab.what
        fresh_cay('kill', ref, check=True)
    lab.finish()

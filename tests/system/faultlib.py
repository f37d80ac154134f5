# SPDX-License-Identifier: Apache-2.0
"""A disk that fails on demand (fault.c), and a sandbox of which it is known what it and its snapshots hold."""

import contextlib
import errno
import os
import random
import signal
import subprocess
import time

import caylib
import pytest
from caylib import wait_until
from statelib import check_belongings, check_invariants, content, end, sh, until_it_holds

HOW_MANY = os.environ.get('CAY_FAULTS', '2')
ERRORS = [errno.ENOSPC, errno.EIO]
KILL = 0  # no error: whoever is about to make the change is killed
KILLED = 200 + signal.SIGKILL

only_here = pytest.mark.skipif(os.uname().machine != 'x86_64', reason='writes registers of amd64')


class Lab:
    """A sandbox, what it and its snapshots hold, and a disk that fails on demand."""

    def __init__(self, cay, fault, tmp_path, *create):
        self.cay, self.fault, self.report, self.create = cay, fault, str(tmp_path / 'report'), create
        self.known, self.ref, self.first, self.prefix, self.what = {}, None, None, cay.state, '-'
        self.seed = int(os.environ.get('CAY_SEED') or time.time_ns() % 10**9)
        self.dice, self.point = random.Random(self.seed), None
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

    def run(self, n, error, *args, own=0):
        """A command of which the n-th change of the disk fails, and all after it where error is negative. own: with which it ends when all is well."""
        how = f'{abs(error)}{"*" if error < 0 else ""}'
        done = subprocess.run([self.fault, self.report, str(n), how, self.prefix, caylib.CAY, *args],
                              env=self.cay.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
        result = caylib.Result(args, done.returncode, done.stdout, done.stderr)
        with open(self.report, encoding='utf-8') as f:
            self.seen, self.what = f.read().strip().split(' ', 1)
        assert result.code not in (97, 98, 99), (result, self.what)
        assert result.code < 200 or (error == KILL and result.code == KILLED), (result, self.what)
        if result.code not in (0, own) and n and error != KILL:
            # The warden's C library has other words for one. SQLite opens a file that it may not write to again, to read, and forgets why.
            assert os.strerror(abs(error)) in result.err + result.out or (abs(error) == errno.EIO and 'I/O error' in result.err + result.out) or \
                ((error < 0 or self.what.startswith(('create /catalog.db', 'fchown /catalog.db'))) and 'cannot open the catalog' in result.err) or \
                ((error < 0 or self.what.startswith('fdatasync /catalog.db')) and 'cannot use the catalog' in result.err) or \
                (error < 0 and self.warden_ended(result)), (self.what, result)
        return result

    @staticmethod
    def warden_ended(result):
        """Where every change of the disk fails, the warden cannot write the trace and ends; its client sees only that."""
        return 'no warden answers' in result.err or 'the sandbox ended before it answered' in result.err

    def unsure(self, result):
        """Killed, or a commit of the catalog that was written and could not be synced: done, or not."""
        return result.code == KILLED or self.what.startswith('fdatasync /catalog.db')

    def points(self, seen, most=None, few=None):
        """(change, fault) as CAY_FAULTS says: so many of each kind, 'all', or N:FAULT,... to repeat some."""
        kinds = [sign * error for error in ERRORS for sign in (1, -1)] + [KILL]
        if ':' in HOW_MANY:
            points = [tuple(map(int, point.split(':'))) for point in HOW_MANY.split(',')]
        else:
            count = min(seen, most or seen) if HOW_MANY == 'all' else min(int(HOW_MANY), few or seen)
            chosen = sorted(self.dice.sample(range(1, seen + 1), count))
            points = [(n, kind) for n in chosen for kind in (kinds if HOW_MANY == 'all' else [self.dice.choice(kinds)])]
        print(f'{seen} changes of the disk, {len(points)} faults')
        for self.point in points:
            yield self.point

    def settled(self):
        """'running' or 'lost'; None while it is just ending."""
        if self.cay('exec', self.ref, '--', 'true').code == 0:
            return 'running'
        return 'lost' if {b['id']: b['state'] for b in self.cay.json('ls', '--all')}[self.ref] == 'lost' else None

    def in_order(self):
        check_invariants(self.cay)
        check_belongings(self.cay)

    def holds(self, *allowed):
        """The sandbox lives and has one of these, or was lost with it; all else is in order."""
        cay = self.cay
        wait_until(self.settled, what='alive, or lost')
        cay('snapshot', 'rm', cay('snapshot', self.ref).out.strip())  # settles what was begun
        until_it_holds(self.in_order)
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


def count(lab, *args):
    """How many changes there are, when nothing fails."""
    result = lab.run(0, errno.EIO, *args)
    return result, int(lab.seen)


def gone(lab, *refs):
    """Of these nothing is left, whoever had to end it."""
    for ref in refs:
        lab.cay('kill', ref)
    wait_until(lambda: not set(refs) & {box['id'] for box in lab.cay.json('ls', '--all')}, what='no such sandbox')


@contextlib.contextmanager
def tracing(lab, n, error, pid=None, child=None):
    """Meanwhile a change of the disk by the warden, or this process, or the so-manyeth that it starts, fails."""
    how = f'{abs(error)}{"*" if error < 0 else ""}'
    of = ['-p', str(pid or lab.cay.warden(lab.ref)), *([str(child)] if child else [])]
    with subprocess.Popen([lab.fault, lab.report, str(n), how, lab.prefix, *of], stdout=subprocess.PIPE) as tracer:
        if tracer.stdout.readline() != b'attached\n':
            pytest.skip('a user may not trace the own processes here')
        try:
            yield tracer
        finally:  # or the end of this block waits for it without end
            tracer.terminate()
    with open(lab.report, encoding='utf-8') as f:
        lab.seen, lab.what = f.read().strip().split(' ', 1)


def attached(lab, n, error, *args):
    """A command, of which the warden's n-th change of the disk fails."""
    with tracing(lab, n, error):
        return lab.cay(*args)

# SPDX-License-Identifier: Apache-2.0
"""
A disk that is full or broken (faultlib.py) under cay apply in all its forms, in the host's directory and in the state
directory: all or nothing, and what was cut off can be finished or undone.
"""

import os
import subprocess

import pytest
from caylib import wait_until
from faultlib import KILLED, Lab, count, only_here
from statelib import sh

pytestmark = only_here

OLD = {'a': 'a\n', 'b': 'b\n', 'sub/c': 'c\n', 'gone': 'x\n', 'text': '1\n2\n3\n4\n5\n6\n7\n'}
NEW = {'a': 'A\n', 'b': 'b\n', 'sub/c': 'C\n', 'sub/d/e': 'E\n', 'n': 'N\n', 'text': '1\n2\n3\n4\n5\n6\nseven\n'}
CHANGE = ('echo A > a && echo C > sub/c && mkdir sub/d && echo E > sub/d/e && echo N > n && rm gone &&'
          ' sed -i s/7/seven/ text')


class Host:
    """A directory of the host, and sandboxes that have changed it."""

    def __init__(self, cay, fault, tmp_path):
        self.cay, self.path = cay, tmp_path / 'host'
        self.path.mkdir()
        tmp_path.chmod(0o755)
        self.lab = Lab(cay, fault, tmp_path)
        self.lab.prefix = f'{self.path}:{cay.state}'

    def reset(self):
        subprocess.run(['rm', '-rf', *map(str, self.path.iterdir())], check=True)
        for name, text in OLD.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_text(text)

    def tree(self):
        return {str(p.relative_to(self.path)): p.read_text() for p in sorted(self.path.rglob('*'))
                if p.is_file() and '.cay-apply' not in p.parts}

    def changed(self):
        """A sandbox that has changed what the directory holds anew."""
        self.reset()
        ref = self.cay.create('--dir', f'{self.path}:/w')
        sh(self.cay, ref, f'cd /w && {CHANGE}')
        return ref

    def bases(self, ref):
        return [name for _, _, names in os.walk(f'{self.cay.state}/sandboxes/{ref}/base') for name in names]

    def cut_off(self):
        """One of which an apply has died in the middle."""
        ref = self.changed()
        assert self.lab.run('rename /.cay-apply/n2', 0, 'apply', ref).code == KILLED and self.tree() not in (OLD, NEW)
        return ref

    def settle(self, ref, new, old=None):
        """Whatever was cut off is finished or undone; one of both is there then, and nothing else."""
        old = old or OLD
        for word in ('--undo', '--resume') if self.lab.dice.random() < 0.5 else ('--resume', '--undo'):
            self.cay('apply', ref, word)
        assert self.tree() in (old, new), (self.lab.point, self.lab.what)
        assert not (self.path / '.cay-apply' / 'journal').exists(), (self.lab.point, self.lab.what)
        assert not self.cay('apply', ref, '--resume').code == 0, 'there was something to resume'


@pytest.fixture
def host(fresh_cay, fault, tmp_path):
    return Host(fresh_cay, fault, tmp_path)


@pytest.mark.parametrize('what', ['plain', 'merge', 'to', 'resume', 'undo'])
def test_applying(host, what):
    lab, cay = host.lab, host.cay
    merged = {**NEW, 'text': 'one\n2\n3\n4\n5\n6\nseven\n'}
    ways = {'plain': ([], host.changed, OLD, NEW), 'merge': (['--merge'], host.changed, {**OLD, 'text': 'one\n2\n3\n4\n5\n6\n7\n'}, merged),
            'to': (['--to', str(host.path)], host.changed, OLD, NEW), 'resume': (['--resume'], host.cut_off, OLD, NEW),
            'undo': (['--undo'], host.cut_off, NEW, OLD)}
    options, prepare, old, new = ways[what]

    def ready():
        ref = prepare()
        if what == 'merge':  # once the warden has seen what was there before
            wait_until(lambda: len(host.bases(ref)) == 4, what='what merges start from')
            (host.path / 'text').write_text('one\n2\n3\n4\n5\n6\n7\n')
        return ref
    ref = ready()
    _, seen = count(lab, 'apply', ref, *options)
    assert host.tree() == new and seen > 5
    cay('kill', ref, check=True)
    for n, error in lab.points(seen):
        ref = ready()
        result = lab.run(n, error, 'apply', ref, *options)
        if result.code == 0:
            assert host.tree() == new, (lab.point, lab.what)
        elif what not in ('resume', 'undo') and not (host.path / '.cay-apply' / 'journal').exists():
            done = result.code == KILLED or 'all was taken over' in result.err
            assert host.tree() in ((old, new) if done else (old,)), (lab.point, lab.what, result)
        host.settle(ref, new, old)
        if host.tree() == OLD and what != 'merge':
            again = cay('apply', ref)
            assert again.code == 0 and host.tree() == NEW, (lab.point, lab.what, again)
        cay('kill', ref, check=True)
    lab.finish()


def test_a_run_that_applies(host):
    """The command has run, and what it did is taken over or it is said that it was not."""
    lab, cay = host.lab, host.cay

    def args():
        host.reset()
        return ['run', '--dir', f'{host.path}:/w', '--apply', 'always', '--', 'sh', '-c', CHANGE]
    result, seen = count(lab, *args())
    assert result.code == 0 and host.tree() == NEW
    for n, error in lab.points(seen, most=80):
        result = lab.run(n, error, *args())
        if result.code == 0:
            assert host.tree() == NEW, (lab.point, lab.what, result)
        for word in ('--resume', '--undo'):
            cay('apply', word, '--to', str(host.path))
        assert host.tree() in (OLD, NEW), (lab.point, lab.what, result)
        lab.holds('first\n')
    lab.finish()


def test_what_was_applied_is_remembered_or_applied_again_in_vain(host):
    """A memory that could not be written never lets something of the host's be overwritten."""
    lab, cay = host.lab, host.cay
    lab.prefix = cay.state
    ref = host.changed()
    _, seen = count(lab, 'apply', ref)
    cay('kill', ref, check=True)
    for n, error in lab.points(seen):
        ref = host.changed()
        lab.run(n, error, 'apply', ref)
        host.settle(ref, NEW)
        (host.path / 'a').write_text('of the host\n')
        sh(cay, ref, 'echo again > /w/a')
        again = cay('apply', ref)
        assert again.code and (host.path / 'a').read_text() == 'of the host\n', (lab.point, lab.what, again)
        cay('kill', ref, check=True)
    lab.finish()

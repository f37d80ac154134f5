# SPDX-License-Identifier: Apache-2.0
"""
A disk that is full or broken (faultlib.py), under all commands besides those of test_faults.py: what only looks, what
runs, transactions of one's own, ready sandboxes, templates, copies, and cay apply in all its forms.
"""

import contextlib
import errno
import os
import subprocess
import time

import caylib
import pytest
from caylib import wait_until
from faultlib import KILL, KILLED, Lab, attached, count, gone, only_here
from statelib import sh, until_it_holds

pytestmark = only_here

# What changes nothing that a user has: it works or says why not, and everything is as it was.
HARMLESS = {
    'ls': lambda lab: ['ls', '--all'],
    'show': lambda lab: ['show', lab.ref],
    'ps': lambda lab: ['ps', lab.ref],
    'diff': lambda lab: ['diff', lab.ref],
    'snapshots': lambda lab: ['snapshots'],
    'trace': lambda lab: ['trace', lab.ref],
    'doctor': lambda lab: ['doctor'],
    'exec': lambda lab: ['exec', lab.ref, '--', 'true'],
    'run': lambda lab: ['run', '--', 'true'],
    'run-long': lambda lab: ['run', '--', 'sleep', '0.1'],
    'run-snapshot': lambda lab: ['run', '--template', f'snap:{lab.first}', '--', 'cat', '/tmp/f'],
    'pause': lambda lab: ['pause', lab.ref],
    'resume': lambda lab: ['resume', lab.ref],
    'extend': lambda lab: ['extend', lab.ref, '10m'],
    'gc': lambda lab: ['gc'],
    'gc-lost': lambda lab: ['gc', '--lost'],
}


@pytest.mark.parametrize('what', HARMLESS)
def test_commands_that_change_nothing(lab, what):
    result, seen = count(lab, *HARMLESS[what](lab))
    assert result.code == 0
    for n, error in lab.points(seen, most=40 if '-' in what else None):
        lab.put(f'at{n}')
        before = {box['id'] for box in lab.cay.json('ls', '--all')}
        result = lab.run(n, error, *HARMLESS[what](lab))
        assert result.code in (0, 1, 125, KILLED), (lab.point, lab.what, result)
        assert {box['id'] for box in lab.cay.json('ls', '--all')} == before or what.startswith('run'), (lab.point, lab.what)
        lab.holds(f'at{n}\n')
        lab.cay('resume', lab.ref)
    lab.finish()


def open_tx(lab):
    """Whether one is; it is ended."""
    return lab.cay('tx', 'abort', lab.ref).code == 0


@pytest.mark.parametrize('verb', ['begin', 'commit', 'abort'])
def test_steps_of_a_transaction(lab, verb):
    """It is open or not, as was said; where nothing was said, either."""
    def ready(text):
        lab.put(text)
        if verb != 'begin':
            lab.cay('tx', 'begin', lab.ref, check=True)
            lab.put('inner')
    ready('second')
    _, seen = count(lab, 'tx', verb, lab.ref)
    open_tx(lab)
    for n, error in lab.points(seen):
        before = f'at{n}\n'
        ready(f'at{n}')
        result = lab.run(n, error, 'tx', verb, lab.ref)
        now = lab.now()
        if verb == 'begin':
            lab.put('inner')
            was_open = open_tx(lab)
            assert was_open == (result.code == 0) or lab.unsure(result), (lab.point, lab.what, result)
            assert lab.now() == (before if was_open else 'inner\n'), (lab.point, lab.what)
        elif verb == 'commit':
            assert now == 'inner\n', (lab.point, lab.what)
            was_open = open_tx(lab)
            assert was_open != (result.code == 0) or lab.unsure(result), (lab.point, lab.what, result)
            assert lab.now() == (before if was_open else 'inner\n'), (lab.point, lab.what)
        else:
            assert now == before or result.code, (lab.point, lab.what, result)
            assert now in (before, 'inner\n'), (lab.point, lab.what)
            assert open_tx(lab) != (result.code == 0) or lab.unsure(result), (lab.point, lab.what, result)
            assert lab.now() in (before, now), (lab.point, lab.what)
        lab.holds(lab.now())
    lab.finish()


def test_a_transaction_that_is_kept(lab):
    """What it did is there, or it says that it could not be committed, and can be then."""
    def args():
        return ['exec', '--tx', lab.ref, '--', 'sh', '-c', 'echo inner > /tmp/f']
    _, seen = count(lab, *args())
    for n, error in lab.points(seen):
        lab.put(f'at{n}')
        result = lab.run(n, error, *args())
        now = lab.now()
        # Of a command that ends with its client there may be a part.
        assert now in (f'at{n}\n', 'inner\n', *([''] if result.code == KILLED else [])), (lab.point, lab.what, result)
        assert result.code or now == 'inner\n', (lab.point, lab.what, result)
        was_open = open_tx(lab)
        assert not was_open or result.code, (lab.point, lab.what, result)
        assert lab.now() == (f'at{n}\n' if was_open else now), (lab.point, lab.what)
        lab.holds(lab.now())
    lab.finish()


def test_several_forks(lab):
    """Those that were named are there; no other is."""
    _, seen = count(lab, 'fork', lab.first, '--count', '3')
    lab.cay('kill', '--all', '--yes', check=True)
    lab.begin()
    for n, error in lab.points(seen):
        result = lab.run(n, error, 'fork', lab.first, '--count', '3')
        named = result.out.split()
        assert len(named) == 3 or result.code, (lab.point, lab.what, result)
        there = {box['id']: box['state'] for box in lab.cay.json('ls', '--all') if box['id'] != lab.ref}
        for ref in named:
            assert ref in there, (lab.point, lab.what, result)
            if there[ref] == 'running':
                assert sh(lab.cay, ref, 'cat /tmp/f') == 'first\n', (lab.point, lab.what)
        if result.code not in (0, KILLED) and error != KILL and not lab.unsure(result):
            wait_until(lambda: {box['id'] for box in lab.cay.json('ls', '--all')} <= {lab.ref, *named},
                       what=f'only those, after {lab.point} {lab.what} {result!r},')
        gone(lab, *there)
        lab.holds('first\n')
    lab.finish()


def test_exploring(lab):
    args = ['explore', lab.ref, '--count', '2', '--pick', '1', '--', 'sh', '-c', 'echo $CAY_FORK > /tmp/f']
    result, seen = count(lab, *args)
    assert result.code == 0
    gone(lab, *({box['id'] for box in lab.cay.json('ls', '--all')} - {lab.ref}))
    for n, error in lab.points(seen, most=80):
        lab.put(f'at{n}')
        args[1] = lab.ref
        result = lab.run(n, error, *args)
        there = {box['id'] for box in lab.cay.json('ls', '--all')} - {lab.ref}
        if result.code == 0:
            (kept,) = there
            assert sh(lab.cay, kept, 'cat /tmp/f') == '1\n', (lab.point, lab.what)
        gone(lab, *there)
        lab.holds(f'at{n}\n')
    lab.finish()


def test_a_new_policy(fresh_cay, fault, tmp_path):
    lab = Lab(fresh_cay, fault, tmp_path, '--allow', 'one.example')
    file = tmp_path / 'net.yaml'
    file.write_text('version: 1\nrules:\n  - allow: two.example\n')
    file = 'coding'
    result, seen = count(lab, 'policy', 'set', lab.ref, file)
    assert result.code == 0, result
    for n, error in lab.points(seen):
        result = lab.run(n, error, 'policy', 'set', lab.ref, file)
        assert result.code in (0, 1, 125, KILLED), (lab.point, lab.what, result)
        lab.holds('first\n')
    lab.finish()


# --- ready sandboxes ---

def is_ready(cay):
    return any(row['ready'] for row in cay.json('pool', 'ls'))


def no_pool(lab):
    lab.cay('pool', 'set', 'host', '0')
    wait_until(lambda: not any(kind != 'lock' for kind in caylib.list_dir(f'{lab.cay.state}/ready')), what='nothing ready')


def test_setting_a_pool(lab):
    """There is one as was said, and it can be taken away."""
    _, seen = count(lab, 'pool', 'set', 'host', '1')
    no_pool(lab)
    for n, error in lab.points(seen, most=80):
        result = lab.run(n, error, 'pool', 'set', 'host', '1')
        assert bool(lab.cay.json('pool', 'ls')) == (result.code == 0) or lab.unsure(result), (lab.point, lab.what, result)
        lab.cay('run', '--', 'true', check=True)
        no_pool(lab)
        lab.holds('first\n')
    lab.finish()


@pytest.mark.parametrize('what', ['run', 'create', 'fork'])
def test_claims(lab, what):
    """Who claims gets one, or makes one, or says why not; the one that was ready is nobody's twice."""
    # A code of its own: how many changes there are, and whether the chosen one comes, depends on whether one is ready.
    args = {'run': ['run', '--', 'sh', '-c', 'test ! -e /tmp/f && exit 3'], 'create': ['create'], 'fork': ['fork', lab.first]}[what]
    own = 3 if what == 'run' else 0
    template = f'snap:{lab.first}' if what == 'fork' else 'host'

    def until_ready():
        lab.cay('pool', 'set', template, '1', check=True)
        wait_until(lambda: is_ready(lab.cay), what='a ready one')
    until_ready()
    result, seen = count(lab, *args)
    gone(lab, *([result.out.strip()] if what != 'run' else []))
    for n, error in lab.points(seen):
        until_ready()
        result = lab.run(n, error, *args, own=own)
        assert result.code == own or result.code in (1, 125, KILLED), (lab.point, lab.what, result)
        if result.code == 0:
            ref = result.out.strip()
            assert sh(lab.cay, ref, 'cat /tmp/f || true') == ('first\n' if what == 'fork' else ''), (lab.point, lab.what)
        lab.cay('pool', 'set', template, '0', check=True)
        gone(lab, *({box['id'] for box in lab.cay.json('ls', '--all')} - {lab.ref}))
        lab.holds('first\n')
    lab.finish()


def keeper(lab):
    """Its pid, once there is one that we have not started."""
    return next((row['keeper_pid'] for row in lab.cay.json('pool', 'ls') if row['keeper_pid']), None)


def test_the_keeper(lab):
    """It makes one, or tries again; when nothing is wanted any more it ends, and nothing is left."""
    def keep(n, error):
        lab.cay('pool', 'set', 'host', '1', check=True)
        pid = wait_until(lambda: keeper(lab), what='a keeper')
        os.kill(pid, 9)
        how = f'{abs(error)}{"*" if error < 0 else ""}'
        with subprocess.Popen([lab.fault, lab.report, str(n), how, lab.prefix, caylib.CAY, 'pool', 'keep'], env=lab.cay.env) as tracer:
            with contextlib.suppress(AssertionError):  # on a disk that stays full there is none
                wait_until(lambda: tracer.poll() is not None or is_ready(lab.cay), timeout=0.7, what='a ready one')
            lab.cay('pool', 'set', 'host', '0', check=True)
            wait_until(lambda: tracer.poll() is not None, timeout=20, what='the end of the keeper')
        with open(lab.report, encoding='utf-8') as f:
            lab.seen, lab.what = f.read().strip().split(' ', 1)
    keep(0, errno.EIO)
    for n, error in lab.points(int(lab.seen), most=40):
        keep(n, error)
        lab.cay('run', '--', 'true', check=True)
        lab.holds('first\n')
    lab.finish()


# --- the template ---

def test_building_the_template(empty_cay, fault, tmp_path):
    """It is whole or not there; what was begun is removed by the next one."""
    cay = empty_cay
    made = os.path.join(cay.state, 'templates/host')
    cay('run', '--', 'true', check=True)
    whole = {os.path.join(d, f)[len(made) + 1:].split('/', 1)[-1] for d, _, files in os.walk(made) for f in files}
    lab = Lab(cay, fault, tmp_path)
    cay('kill', '--all', '--yes', check=True)
    cay('snapshot', 'rm', lab.first, check=True)
    lab.known.clear()
    subprocess.run(['rm', '-rf', made], check=True)
    _, seen = count(lab, 'run', '--', 'true')
    assert seen > 1000
    for n, error in lab.points(seen, most=24, few=2):  # some seconds each
        subprocess.run(['rm', '-rf', made], check=True)
        result = lab.run(n, error, 'run', '--', 'true')
        assert result.code in (0, 125, KILLED), (lab.point, lab.what, result)
        cay('run', '--', 'test', '-x', '/usr/bin/env', '-a', '-e', '/etc/passwd', check=True)
        names = [name for name in caylib.list_dir(made) if '.new-' not in name]
        assert len(names) == 1, (lab.point, lab.what, names)
        for name in caylib.list_dir(made):  # goes when it is old enough
            os.utime(os.path.join(made, name), (0, 0))
        cay('gc', check=True)
        assert caylib.list_dir(made) == names, (lab.point, lab.what)
        got = {os.path.join(d, f)[len(made) + 1:].split('/', 1)[-1] for d, _, files in os.walk(made) for f in files}
        assert got == whole, (lab.point, lab.what, sorted(got ^ whole)[:5])
        until_it_holds(lab.in_order)  # what the commands were in may just be ending


# --- copies ---

def test_copies_out(lab, tmp_path):
    """As tar: what there is then may be a part, and it is said."""
    sh(lab.cay, lab.ref, 'mkdir /tmp/d; for i in 1 2 3; do echo $i > /tmp/d/$i; done; ln -s 1 /tmp/d/l')
    out = tmp_path / 'out'
    lab.prefix = f'{out}:{lab.cay.state}'

    def copy(n, error):
        subprocess.run(['rm', '-rf', str(out)], check=True)
        return lab.run(n, error, 'cp', f'{lab.ref}:/tmp/d', str(out))
    copy(0, errno.EIO)
    for n, error in lab.points(int(lab.seen)):
        result = copy(n, error)
        if result.code == 0:
            got = {p.name: p.read_text() for p in out.iterdir()}
            assert got == {'1': '1\n', '2': '2\n', '3': '3\n', 'l': '1\n'}, (lab.point, lab.what)
        sh(lab.cay, lab.ref, 'true')
    lab.holds('first\n')
    lab.finish()


def test_copies_in(lab, tmp_path):
    source = tmp_path / 'in'
    source.mkdir()
    for i in range(3):
        (source / str(i)).write_text(f'{i}\n')
    result, seen = count(lab, 'cp', str(source), f'{lab.ref}:/tmp/in')
    for k, (n, error) in enumerate(lab.points(seen)):  # each to a place of its own
        result = lab.run(n, error, 'cp', str(source), f'{lab.ref}:/tmp/in{k}')
        if result.code == 0:
            assert sh(lab.cay, lab.ref, f'cat /tmp/in{k}/*') == '0\n1\n2\n', (lab.point, lab.what)
        lab.holds('first\n')
    attached(lab, 0, errno.EIO, 'cp', str(source), f'{lab.ref}:/tmp/w')
    for k, (n, error) in enumerate(lab.points(int(lab.seen))):
        result = attached(lab, n, error, 'cp', str(source), f'{lab.ref}:/tmp/w{k}')
        if result.code == 0 and lab.settled() == 'running':
            assert sh(lab.cay, lab.ref, f'cat /tmp/w{k}/*') == '0\n1\n2\n', (lab.point, lab.what)
        lab.holds('first\n')
    lab.finish()

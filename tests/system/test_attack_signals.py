# SPDX-License-Identifier: Apache-2.0
"""Locks and leases as messages: between two sandboxes, and between a sandbox and the host."""

import contextlib
import fcntl
import os
import subprocess

import pytest

# Takes every kind of lock that a file opened for reading can have, says so, and keeps them until its input ends.
HOLD = '''
import fcntl, sys
f, g = open(sys.argv[1]), open(sys.argv[1])
fcntl.flock(f, fcntl.LOCK_EX)
fcntl.lockf(g, fcntl.LOCK_SH)
try:
    fcntl.fcntl(g, fcntl.F_SETLEASE, fcntl.F_RDLCK)
except OSError as e:
    print(e, file=sys.stderr)
print('held', flush=True)
sys.stdin.read()
'''


@contextlib.contextmanager
def holding(process):
    with process:
        try:
            line = process.stdout.readline()
            assert line.strip() == b'held', (line, process.stderr.read())
            yield
        finally:
            process.stdin.close()


PIPES = {name: subprocess.PIPE for name in ('stdin', 'stdout', 'stderr')}


def held_inside(cay, ref, path):
    return holding(cay.popen('exec', ref, '--', 'python3', '-c', HOLD, path, **PIPES))


def taken(path):
    """What the host finds taken."""
    found = []
    with open(path, 'r+b') as f:
        for name, take in (('flock', fcntl.flock), ('lockf', fcntl.lockf)):
            try:
                take(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                take(f, fcntl.LOCK_UN)
            except BlockingIOError:
                found.append(name)
    return found


def lease_is_taken(path):
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except BlockingIOError:
        return True
    return False


@pytest.fixture
def create(cay):
    """Makes sandboxes that end with the test."""
    made = []
    yield lambda *options: made.append(cay.create(*options)) or made[-1]
    for ref in made:
        cay('kill', ref, check=True)


@pytest.fixture
def shown(tmp_path):
    path = tmp_path / 'shown'
    path.write_text('content\n')
    tmp_path.chmod(0o755)
    return path


def test_control_a_lock_outside_is_found(shown):
    with holding(subprocess.Popen(['python3', '-c', HOLD, shown], **PIPES)):
        # First: an open for writing makes the kernel break the lease.
        assert lease_is_taken(shown)
    with holding(subprocess.Popen(['python3', '-c', HOLD.replace('F_SETLEASE, fcntl.F_RDLCK', 'F_GETFD'), shown], **PIPES)):
        assert taken(shown) == ['flock', 'lockf']


@pytest.mark.parametrize('what', ['file', 'directory'])
def test_a_lock_inside_is_not_on_the_hosts_file(cay, create, shown, what):
    ref = create('--ro', f'{shown}:/shown' if what == 'file' else f'{shown.parent}:/dir')
    with held_inside(cay, ref, '/shown' if what == 'file' else '/dir/shown'):
        assert not lease_is_taken(shown)
        assert taken(shown) == []


def test_a_shown_file_is_live_and_keeps_its_mode(cay, create, shown):
    shown.chmod(0o640)
    ref = create('--ro', f'{shown}:/shown')
    with open(shown, 'a', encoding='ascii') as f:
        f.write('more\n')
    assert cay('exec', ref, '--', 'cat', '/shown', check=True).out == 'content\nmore\n'
    assert cay('exec', ref, '--', 'stat', '-c', '%a %U', '/shown', check=True).out == '640 user\n'


def test_a_file_that_no_overlay_shows_is_copied(cay):
    """The kernel refuses an overlay over /proc."""
    with open('/proc/version', encoding='ascii') as f:
        assert cay('run', '--ro', '/proc/version:/v', '--', 'cat', '/v', check=True).out == f.read()
    done = cay('run', '--ro', '/proc/version:/v', '--', 'sh', '-c', 'echo x > /v; grep " /v " /proc/self/mountinfo')
    assert 'Read-only' in done.err and 'tmpfs' in done.out


def test_locks_of_one_sandbox_are_not_seen_in_another(cay, create):
    one, other = create(), create()
    cay('exec', one, '--', 'touch', '/tmp/f', check=True)
    with held_inside(cay, one, '/tmp/f'):
        with open('/proc/locks', encoding='ascii') as f:
            assert 'FLOCK' in f.read()
        assert cay('exec', other, '--', 'cat', '/proc/locks', check=True).out == ''


@pytest.mark.parametrize('path', ['/proc/locks', '/proc/cmdline', '/proc/sys/kernel/osrelease', '/usr/bin/env', '/etc/os-release'])
def test_a_file_that_all_sandboxes_have_is_each_ones_own(cay, create, path):
    one, other = create(), create()
    with held_inside(cay, one, path):
        assert cay('exec', other, '--', 'flock', '-n', path, 'echo', 'free').out == 'free\n'


def test_a_boot_id_is_the_sandboxs_own(cay):
    name = '/proc/sys/kernel/random/boot_id'
    one, other = (cay('run', '--', 'cat', name, check=True).out for _ in range(2))
    with open(name, encoding='ascii') as f:
        assert len({one, other, f.read()}) == 3 and len(one) == 37

# SPDX-License-Identifier: Apache-2.0
"""What a hostile process inside finds of init, of its children, and of the host behind them."""

import os
import stat
import pathlib
import shutil
import tempfile
import time

import caylib
import pytest

STEAL = r'''
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
end = time.monotonic() + float(sys.argv[1])
seen = set()
print('ready', flush=True)
while time.monotonic() < end:
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            name = open(f'/proc/{pid}/comm').read()
            pidfd = os.pidfd_open(int(pid))
        except OSError:
            continue
        if pid != '1' and ('cay-init' in name or name[0] in '0123456789'):
            seen.add(pid)
            for fd in range(3, 32):
                got = libc.syscall(438, pidfd, fd, 0)
                if got < 0:
                    continue
                link = os.readlink(f'/proc/self/fd/{got}')
                os.close(got)
                # It has become the command meanwhile, which loads its libraries.
                if not link.startswith(('/usr/lib/', '/lib/', '/etc/ld.so')):
                    print('stole', fd, link, flush=True)
                    sys.exit(1)
        os.close(pidfd)
print('saw', len(seen))
'''

# Without root what is under way between sockets is counted together with the user's own.
FLOOD = r'''
import array, errno, resource, signal, socket
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0] * 253))]
pairs, why = [], 0
while not why and len(pairs) < 400:
    pairs.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
    pairs[-1][0].setblocking(False)
    try:
        while True:
            pairs[-1][0].sendmsg([b'x'], rights)
    except BlockingIOError:
        pass
    except OSError as e:
        why = e.errno
print(errno.errorcode.get(why), flush=True)
signal.pause()
'''


@pytest.fixture
def sandbox(cay):
    name = cay('create', check=True).out.strip()
    yield name
    cay('kill', name, check=True)


@pytest.fixture
def open_dir():
    """A directory of the host that everyone may enter and write to."""
    path = pathlib.Path(tempfile.mkdtemp(dir='/tmp'))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path)


def test_a_path_through_descriptors_of_a_file_operation_does_not_reach_the_host(cay, sandbox, open_dir):
    secret, got, planted = open_dir / 'host.txt', open_dir / 'got', open_dir / 'planted'
    secret.write_text('of the host')
    secret.chmod(0o644)
    up = '/'.join(['..'] * 12)
    cay('exec', sandbox, '--', 'sh', '-c',
              f'for n in $(seq 3 16); do ln -s /proc/self/fd/$n/{up} /tmp/d$n; done', check=True)
    for n in range(3, 17):
        cay('cp', f'{sandbox}:/tmp/d{n}{secret}', got)
        assert not got.exists(), f'descriptor {n} leads to the host'
        cay('cp', secret, f'{sandbox}:/tmp/d{n}{planted}')
        assert not planted.exists(), f'descriptor {n} leads to the host'


def test_descriptors_of_inits_children_cannot_be_taken(cay, sandbox, tmp_path):
    cay('exec', sandbox, '--', 'sh', '-c', 'head -c 20M /dev/zero > /tmp/big', check=True)
    with cay.popen('exec', sandbox, '--', 'python3', '-c', STEAL, '3') as thief:
        assert thief.stdout.readline() == b'ready\n'
        for _ in range(3):
            cay('cp', f'{sandbox}:/tmp/big', tmp_path / 'big', check=True)
        for _ in range(20):
            cay('exec', sandbox, '--', 'true', check=True)
        out = thief.stdout.read().decode()
    cay.pids.discard(thief.pid)
    assert thief.returncode == 0, out
    assert out.startswith('saw ') and int(out.split()[1]) > 0, 'the thief saw no child of init: the test proves nothing'


@pytest.mark.skipif(not caylib.ROOTFUL, reason='there is no root inside')
def test_passwd_that_is_a_fifo_does_not_stop_calls(cay, sandbox):
    cay('exec', '--user', 'root', sandbox, '--', 'sh', '-c', 'rm /etc/passwd && mkfifo /etc/passwd', check=True)
    assert cay('exec', '--user', '1000', sandbox, '--', 'true', timeout=20).code == 0


def test_a_copy_out_writes_to_a_fifo_or_device_and_does_not_replace_it(cay, sandbox, tmp_path):
    fifo = tmp_path / 'fifo'
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    cay('cp', f'{sandbox}:/etc/hostname', fifo, timeout=10, check=True)
    assert os.read(reader, 100).strip() and fifo.is_fifo()
    os.close(reader)
    cay('cp', f'{sandbox}:/etc/hostname', '/dev/null', timeout=10, check=True)
    assert stat.S_ISCHR(os.stat('/dev/null').st_mode)
    # below a directory the name comes from inside: there it is refused
    (tmp_path / 'd').mkdir()
    os.mkfifo(tmp_path / 'd' / 'hostname')
    result = cay('cp', f'{sandbox}:/etc/hostname', tmp_path / 'd', timeout=10)
    assert result.code != 0 and 'special file' in result.err


def test_descriptors_under_way_in_one_sandbox_end_no_other(cay, sandbox):
    neighbour = cay('create', check=True).out.strip()
    cay('exec', neighbour, '--', 'true', check=True)
    with cay.popen('exec', sandbox, '--', '/usr/bin/python3', '-c', FLOOD) as flood:
        assert flood.stdout.readline() == b'ETOOMANYREFS\n'
        calls = [cay.popen('exec', neighbour, '--', 'echo', 'well') for _ in range(3)]
        time.sleep(0.3)  # those that have to wait, as without root, do so now
        flood.kill()
    for call in calls:
        out, err = call.communicate(timeout=20)
        assert (call.returncode, out) == (0, b'well\n'), err
    assert cay('exec', sandbox, '--', 'echo', 'well', check=True).out == 'well\n'
    cay('kill', neighbour, check=True)

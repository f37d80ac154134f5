# SPDX-License-Identifier: Apache-2.0
"""What a --ro or --dir directory holds besides files: the host's sockets and pipes are not reached through it."""

import os
import socket
import subprocess
import tempfile

import pytest

CONNECT = r'''
use Socket; socket(my $s, PF_UNIX, SOCK_STREAM, 0) or die "socket: $!";
connect($s, pack_sockaddr_un($ARGV[0])) or die "connect: $!\n"; print "CONNECTED\n";
'''


@pytest.fixture
def exposed():
    """A directory with a listening socket and a pipe that everybody may use."""
    with tempfile.TemporaryDirectory(prefix='cay-sock-') as path:
        os.chmod(path, 0o755)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f'{path}/sock')
            server.listen(5)
            os.mkfifo(f'{path}/pipe')
            os.mkdir(f'{path}/below', 0o755)
            for name in ('sock', 'pipe'):
                os.chmod(f'{path}/{name}', 0o777)
            with open(f'{path}/file', 'w', encoding='ascii') as f:
                f.write('content\n')
            yield path


def test_control(exposed):
    """Outside they can be used."""
    done = subprocess.run(['perl', '-e', CONNECT, f'{exposed}/sock'], capture_output=True, text=True, check=False)
    assert done.stdout == 'CONNECTED\n', done.stderr


@pytest.mark.parametrize('option', ['--ro', '--dir'])
@pytest.mark.parametrize('user', ['user', 'root'])
def test_a_socket_is_not_connected_to(cay, mode, exposed, option, user):
    if user == 'root' and mode == 'rootless':
        user = '1000'
    done = cay('run', option, f'{exposed}:/data', '--user', user, '--', 'perl', '-e', CONNECT, '/data/sock')
    assert b'connect: Connection refused' in done.stderr, done
    assert done.stdout == b''


@pytest.mark.parametrize('option', ['--ro', '--dir'])
def test_a_pipe_is_another_pipe(cay, exposed, option):
    reader = os.open(f'{exposed}/pipe', os.O_RDONLY | os.O_NONBLOCK)
    try:
        # Opened for both, so that the sandbox does not wait for a reader of its own.
        cay('run', option, f'{exposed}:/data', '--', 'sh', '-c', 'exec 3<>/data/pipe; echo leak >&3', check=True)
        assert os.read(reader, 100) == b''
    finally:
        os.close(reader)


def test_files_show_and_stay_read_only(cay, exposed):
    done = cay('run', '--ro', f'{exposed}:/data', '--', 'sh', '-c',
               'cat /data/file; echo x >/data/file; echo x >/data/new; rm -f /data/file; ls /data')
    assert done.out.split() == ['content', 'below', 'file', 'pipe', 'sock'], done
    assert done.err.count('Read-only file system') == 3, done
    assert sorted(os.listdir(exposed)) == ['below', 'file', 'pipe', 'sock']


def test_a_socket_itself_is_refused(cay, exposed):
    done = cay('run', '--ro', f'{exposed}/sock:/sock', '--', 'true')
    assert done.code == 125 and 'neither a file nor a directory' in done.err


def test_what_the_host_writes_later_shows(cay, exposed):
    sandbox = cay.create('--ro', f'{exposed}:/data')
    try:
        with open(f'{exposed}/file', 'a', encoding='ascii') as f:
            f.write('more\n')
        with open(f'{exposed}/late', 'w', encoding='ascii') as f:
            f.write('late\n')
        assert cay('exec', sandbox, '--', 'cat', '/data/file', '/data/late', check=True).out == 'content\nmore\nlate\n'
    finally:
        cay('kill', sandbox, check=True)



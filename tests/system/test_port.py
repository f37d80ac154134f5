# SPDX-License-Identifier: Apache-2.0
"""cay port: which servers inside it reaches, what it says, and how fast bytes go."""

import ctypes
import os
import socket

import pytest

SYS_PIDFD_GETFD = 438
SERVER = '''
import socket, sys
s = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET)
s.bind((sys.argv[1], 3000)); s.listen(); print('up', flush=True)
while True:
    c, _ = s.accept()
    while data := c.recv(65536): c.sendall(data.upper())
    c.close()
'''


def address_of(port):
    host, number = port.read_until(b'\n').decode().strip().rsplit(':', 1)
    return host, int(number)


def answer_of(address):
    with socket.create_connection(address, 10) as s:
        s.settimeout(10)
        s.sendall(b'hello')
        return s.recv(10)


@pytest.mark.parametrize('listens', ['127.0.0.1', '::1'])
def test_a_server_of_either_loopback_address_is_reached(cay, box, listens):
    """Vite, for one, listens on [::1] only."""
    with cay.popen('exec', box, '--', 'python3', '-c', SERVER, listens) as server, \
            cay.popen('port', box, 3000, '--listen', '0') as port:
        server.read_until(b'up\n')
        address = address_of(port)
        for _ in range(3):
            assert answer_of(address) == b'HELLO'
        port.terminate()
        assert port.wait(10) == 0
        server.kill()


def test_a_port_without_a_server_is_named(cay, box):
    with cay.popen('port', box, 4321, '--listen', '0') as port:
        assert answer_of_closed(address_of(port)) == b''
        port.terminate()
        assert port.wait(10) == 0
        assert b'cay: nothing listens on port 4321 inside\n' in port.stderr.read()


def answer_of_closed(address):
    with socket.create_connection(address, 10) as s:
        s.settimeout(10)
        return s.recv(10)


def tcp_sockets_of(pid):
    """Copies of the established TCP sockets of a process."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    try:
        for name in os.listdir(f'/proc/{pid}/fd'):
            if not os.readlink(f'/proc/{pid}/fd/{name}').startswith('socket:'):
                continue
            fd = libc.syscall(SYS_PIDFD_GETFD, pidfd, int(name), 0)
            if fd < 0:
                raise OSError(ctypes.get_errno(), 'pidfd_getfd')
            with socket.socket(fileno=fd) as s:
                if s.family in (socket.AF_INET, socket.AF_INET6) and not s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    yield s
    finally:
        os.close(pidfd)


def test_small_writes_do_not_wait_for_each_other(cay, box):
    """TCP_NODELAY on both connections that cay port joins."""
    with cay.popen('exec', box, '--', 'python3', '-c', SERVER, '127.0.0.1') as server, \
            cay.popen('port', box, 3000, '--listen', '0') as port:
        server.read_until(b'up\n')
        with socket.create_connection(address_of(port), 10) as s:
            s.settimeout(10)
            s.sendall(b'hello')
            assert s.recv(10) == b'HELLO'
            try:
                flags = [x.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for x in tcp_sockets_of(port.pid)]
            except PermissionError:
                pytest.skip('this host does not let a test look into its own process')
            assert len(flags) == 2 and all(flags)
        port.terminate()
        assert port.wait(10) == 0
        server.kill()

# SPDX-License-Identifier: Apache-2.0
"""Runs inside a sandbox: tries every attempt of a list (JSON on stdin) and says what came back.

An attempt is {"name", "how", ...}; bytes are latin-1 text. The answer is one JSON object by name:
{"got": what was received, "error": or null, "ms": how long it took}.
"""

import concurrent.futures
import ctypes
import json
import os
import socket
import struct
import subprocess
import sys
import time

GATEWAY = '198.18.0.1'
WAIT_S = 0.7


def raw(text):
    return text.encode('latin1')


def receive(s, enough=65536):
    s.settimeout(WAIT_S)
    got = b''
    try:
        while len(got) < enough:
            data = s.recv(65536)
            if not data:
                break
            got += data
    except OSError:
        pass
    return got


def talk(s, sends):
    got = b''
    for data in sends:
        try:
            s.sendall(raw(data))
        except OSError:
            break
        got += receive(s)
    return got


def tcp(host, port, sends):
    with socket.create_connection((host, port), 3) as s:
        return talk(s, sends)


def pieces(host, port, sends):
    """One packet each, so that what is sent arrives in parts."""
    with socket.create_connection((host, port), 3) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for data in sends:
            s.sendall(raw(data))
            time.sleep(0.02)
        return receive(s)


def slow(host, port, sends):
    """With pauses in between."""
    with socket.create_connection((host, port), 3) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for data in sends:
            s.sendall(raw(data))
            time.sleep(0.8)
        return receive(s)


def connect(target, sends, host=None):
    """Through the HTTP proxy."""
    with socket.create_connection((GATEWAY, 3128), 3) as s:
        target = raw(target)
        s.sendall(b'CONNECT ' + target + b' HTTP/1.1\r\nHost: ' + (raw(host) if host else target) + b'\r\n\r\n')
        s.settimeout(5)
        answer = s.recv(65536)
        return talk(s, sends) if b' 200 ' in answer[:20] else b'proxy: ' + answer


def socks(kind, target, port, sends, command=1):
    with socket.create_connection((GATEWAY, 1080), 3) as s:
        s.settimeout(5)
        s.sendall(b'\5\1\0')
        if s.recv(2) != b'\5\0':
            return b'no socks'
        target = raw(target)
        if kind == 3:
            target = bytes([len(target)]) + target
        s.sendall(bytes([5, command, 0, kind]) + target + struct.pack('>H', port))
        answer = s.recv(100)
        return talk(s, sends) if answer[1:2] == b'\0' else b'socks: ' + answer


def dns(server, port, message, stream=False, bound=4096):
    message = raw(message)
    kind = socket.SOCK_STREAM if stream else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET6 if ':' in server else socket.AF_INET, kind) as s:
        s.settimeout(2)
        s.connect((server, port))
        s.sendall(struct.pack('>H', len(message)) + message if stream else message)
        got = s.recv(bound)
        # The length may come alone.
        while stream and got and (len(got) < 2 or len(got) < 2 + struct.unpack('>H', got[:2])[0]):
            more = s.recv(bound)
            if not more:
                break
            got += more
        return got


def udp(host, port, data):
    with socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(0.7)
        s.connect((host, port))
        s.send(raw(data))
        return s.recv(4096)


def odd_socket(family, kind, protocol, host, port, data):
    with socket.socket(family, kind, protocol) as s:
        s.settimeout(WAIT_S)
        if kind == socket.SOCK_RAW or kind == socket.SOCK_DGRAM:
            s.sendto(raw(data), (host, port) if host else ('lo', 0))
            return s.recv(4096)
        s.connect((host, port))
        s.sendall(raw(data))
        return receive(s)


def fast_open(host, port, data):
    with socket.socket() as s:
        s.settimeout(3)
        s.sendto(raw(data), 0x20000000, (host, port))  # MSG_FASTOPEN
        return receive(s)


def extended6(host, port, data):
    """IPv6 with a hop-by-hop and a destination header."""
    with socket.socket(socket.AF_INET6) as s:
        s.settimeout(3)
        for option in (54, 59):  # IPV6_HOPOPTS, IPV6_DSTOPTS
            try:
                s.setsockopt(socket.IPPROTO_IPV6, option, b'\0\0\1\4\0\0\0\0')
            except OSError:
                pass
        s.connect((host, port))
        s.sendall(raw(data))
        return receive(s)


def bound(address, host, port, data):
    with socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET) as s:
        s.settimeout(3)
        s.bind((address, 0))
        s.connect((host, port))
        s.sendall(raw(data))
        return receive(s)


def device(name, host, port, data):
    with socket.socket() as s:
        s.settimeout(3)
        s.setsockopt(socket.SOL_SOCKET, 25, name.encode())  # SO_BINDTODEVICE
        s.connect((host, port))
        s.sendall(raw(data))
        return receive(s)


def mark(host, port, data):
    with socket.socket() as s:
        s.settimeout(3)
        s.setsockopt(socket.SOL_SOCKET, 36, 1)  # SO_MARK
        s.connect((host, port))
        s.sendall(raw(data))
        return receive(s)


def then_tcp(script, host, port, sends):
    """Change something first; whatever that gives, does the connection get through?"""
    subprocess.run(['sh', '-c', script], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   timeout=5, check=False)
    return tcp(host, port, sends)


def netfilter(host, port, sends):
    """Delete every table by netlink, then connect."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as s:
        for kind in (0x10, (10 << 8) | 2, 0x11):  # begin, NFT_MSG_DELTABLE, end
            s.sendto(struct.pack('=IHHII', 20, kind, 5, 1, 0) + struct.pack('=BBH', 0, 0, 0x0a00), (0, 0))
    return tcp(host, port, sends)


def namespace(host, port, sends):
    """A network namespace of one's own, or init's."""
    libc = ctypes.CDLL(None, use_errno=True)
    pid = os.fork()
    if pid == 0:
        got = b''
        try:
            fd = os.open('/proc/1/ns/net', os.O_RDONLY)
            libc.setns(fd, 0)
        except OSError:
            pass
        try:
            libc.unshare(0x10000000 | 0x40000000)
            got = tcp(host, port, sends)
        except OSError:
            pass
        os._exit(1 if got else 0)
    return b'REACHED!' if os.waitpid(pid, 0)[1] else b''


HOWS = {f.__name__: f for f in (tcp, pieces, slow, connect, socks, dns, udp, odd_socket, fast_open, extended6, bound, device, mark,
                                then_tcp, netfilter, namespace)}


def attempt(a):
    begin, got, error = time.monotonic(), b'', None
    try:
        got = HOWS[a['how']](*a['args'])
    except Exception as e:  # pylint: disable=broad-except
        error = f'{type(e).__name__}: {e}'
    return a['name'], {'got': got[:4096].decode('latin1'), 'error': error, 'ms': int((time.monotonic() - begin) * 1000)}


def main():
    attempts = json.load(sys.stdin)
    together = [a for a in attempts if not a.get('alone')]
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        found = dict(pool.map(attempt, together))
    found.update(attempt(a) for a in attempts if a.get('alone'))
    json.dump(found, sys.stdout)


main()

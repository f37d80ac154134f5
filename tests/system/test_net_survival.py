# SPDX-License-Identifier: Apache-2.0
"""What hostile or broken peers do to a gateway: it goes on serving others, and what it holds is bounded."""

import os
import re
import subprocess

import pytest

import caylib
from netlib import Net, gateway_pid, is_small, net, netbox, world  # noqa: F401


def cpu_ms(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii') as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 // os.sysconf('SC_CLK_TCK')


def open_fds(pid):
    return len(os.listdir(f'/proc/{pid}/fd')) if caylib.ROOTFUL else 0


def test_a_flood_of_dns_is_bounded_and_others_are_answered(net, netbox):
    box = netbox('--allow', '*.hang.test', '--allow', 'web.test:7000')
    pid = gateway_pid(net, box)
    r = net('exec', box, '--', '/usr/bin/python3', '-c', r'''
import os, socket, struct, time
def query(name):
    return struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, 0) + b''.join(bytes([len(x)]) + x for x in name.split(b'.')) + b'\0\0\1\0\1'
talk = socket.create_connection(('web.test', 7000), 5)
socks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(8)]
begin = time.monotonic()
for i in range(20000):  # half of them wait for an upstream that never answers, half are refused
    name = (b'%d.hang.test' if i % 2 else b'%d.evil.example') % i
    try: socks[i % 8].sendto(query(name), ('198.18.0.1', 53))
    except OSError: pass
print(time.monotonic() - begin < 20)
begin = time.monotonic()
talk.sendall(b'hello'); print(talk.recv(10).decode(), time.monotonic() - begin < 2)
# There is no room for another name, which is said at once; one that is refused needs none.
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)
for name in (b'more.hang.test', b'other.test'):
    s.sendto(query(name), ('198.18.0.1', 53)); print(s.recv(512)[3] & 15)
print(time.monotonic() - begin < 3)
''', timeout=60)
    assert r.out == 'True\nhello True\n2\n3\nTrue\n', r
    assert gateway_pid(net, box) == pid and is_small(pid)
    told = net.events(box)
    assert len(told) < 200 * 40, 'a flood is one number'
    gaps = [e for e in net.events(box, 'trace.gap') if e['what'] == 'net.dns']
    assert not told or gaps
    # Nothing of it that was refused has left.
    assert not [q for q in net.world.ask('state')['queries'] if 'evil' in q[0]]


def test_upstreams_that_hang_do_not_stop_others(net, netbox):
    box = netbox('--allow', 'web.test:7000', '--allow', 'a.web.test:7002', '--allow', 'web.test:7003')
    pid = gateway_pid(net, box)
    r = net('exec', box, '--', '/usr/bin/python3', '-c', r'''
import socket, time
def dial(port, name='web.test'):
    return socket.create_connection((name, port), 10)
hanging = [dial(7002, 'a.web.test') for _ in range(150)]
silent = [dial(7003) for _ in range(50)]
sent = 0
for s in silent:  # as much as goes until somebody would have to read it
    s.setblocking(False)
    try:
        for _ in range(400): sent += s.send(bytes(65536))
    except BlockingIOError: pass
begin = time.monotonic(); s = dial(7000); s.sendall(b'hello'); print(s.recv(10).decode(), time.monotonic() - begin < 5)
print(sent < 50 * (16 << 20))
ends = set()
for h in hanging:
    h.settimeout(12)
    try: ends.add(h.recv(1) == b'')
    except ConnectionResetError: ends.add('reset')
print(ends)
''', timeout=60)
    assert r.out == "hello True\nTrue\n{'reset'}\n", r
    assert gateway_pid(net, box) == pid and is_small(pid)
    fails = net.events(box, 'net.fail')
    assert len(fails) == 150 and {f['reason'] for f in fails} == {'timeout'}
    # What was sent to those that are silent waits there, as it would without us: two sockets and a pipe each.
    caylib.wait_until(lambda: open_fds(pid) < 60 + 50 * 4, what='the others to be closed')


def spends_in_a_second(pid):
    before = cpu_ms(pid)
    subprocess.run(['sleep', '1'], check=True)  # the time that is measured, not one to wait for something
    return cpu_ms(pid) - before


def test_a_reader_that_stops_costs_no_time_and_little_memory(net, netbox):
    box = netbox('--allow', 'web.test:7004')
    pid = gateway_pid(net, box)
    # The server has sent all and closed, the client has said that it says no more, and does not read.
    with net.popen('exec', box, '--', '/usr/bin/python3', '-c', r'''
import socket, sys
socks = []
for _ in range(200):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(('web.test', 7004)); s.shutdown(socket.SHUT_WR); socks.append(s)
print('open', flush=True)
sys.stdin.readline()
got = 0
while True:
    n = len(socks[0].recv(1 << 16))
    if not n: break
    got += n
print(got)
''', stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == 'open\n'
        caylib.wait_until(lambda: len(net.events(box, 'net.connect')) == 200, what='all connections')
        # Until all buffers are full there is something to do.
        caylib.wait_until(lambda: spends_in_a_second(pid) < 50, timeout=15, what='a second in which nothing happens, and costs nothing')
        assert is_small(pid)
        if caylib.ROOTFUL:
            def buffers():
                return [int(n) for n in re.findall(r'skmem:\(r\d+,rb(\d+)', net.world.output_in(net.world.host, 'ss -tmnH'))]
            caylib.wait_until(lambda: len(buffers()) >= 100, timeout=15, what='connections to the host')
            large = [n for n in buffers() if n > 4 * 65536]
            assert len(large) <= 70, sorted(large)
        p.stdin.write('\n')
        p.stdin.flush()
        assert p.stdout.readline() == f'{8 << 20}\n'
    caylib.wait_until(lambda: open_fds(pid) < 60, what='no descriptors left open')


def test_a_refusal_that_is_still_being_read_outlives_its_policy(net, netbox):
    """The rule of a connection is of the policy that was; when it ends that policy is gone."""
    rules = ['  - {id: other-rule-%d, hosts: [other.test]}\n',
             '  - {id: keeps-its-id, hosts: [web.test], ports: [8080], limits: {concurrent: 500}, paths: [/ok]}\n']

    def policy(number):  # all of one size, so that one lies where another was
        return net.policy('changing.yaml', 'rules:\n' + ''.join(rules[::1 if number == 1 else -1]) % number)
    box = netbox('--net', policy(1))
    pid = gateway_pid(net, box)
    with net.popen('exec', box, '--', '/usr/bin/python3', '-c', r'''
import socket
socks = [socket.create_connection(('web.test', 8080), 5) for _ in range(20)]
for s in socks: s.sendall(b'GET /ok HTTP/1.1\r\nHost: web.test:8080\r\n\r\n')
for s in socks: s.recv(1000)
for s in socks: s.sendall(b'GET /no HTTP/1.1\r\nHost: web.test:8080\r\n\r\n')
for s in socks: s.recv(1000)
print('refused', flush=True)
input()
''', stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == 'refused\n'
        for number in (2, 3, 4):
            net('policy', 'set', box, policy(number), check=True)
        caylib.wait_until(lambda: len(net.events(box, 'net.close')) == 20, what='all ends')
        p.communicate('\n')
    assert [e.get('rule') for e in net.events(box, 'net.close')] == ['keeps-its-id'] * 20
    assert gateway_pid(net, box) == pid


def test_connections_that_change_their_rule_are_counted_once(net, netbox):
    def policy(name, *rules):
        limits = {'a': 'limits: {concurrent: 2}', 'b': 'limits: {concurrent: 9}'}
        return net.policy(f'{name}.yaml', 'rules:\n' + ''.join('  - {id: %s, hosts: [web.test], ports: [7000], %s}\n' % (r, limits[r]) for r in rules))
    box = netbox('--net', policy('one', 'a'))
    with net.popen('exec', box, '--', '/usr/bin/python3', '-c', r'''
import socket
def dial():
    try:
        s = socket.create_connection(('web.test', 7000), 5); s.sendall(b'x')
        return s if s.recv(1) else None
    except OSError: return None
for _ in range(3):
    held = [dial(), dial()]
    print(sum(s is not None for s in held + [dial()]), flush=True)
    input()
    [s.close() for s in held if s]
    print('closed', flush=True)
    input()
''', stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        def go():
            p.stdin.write('\n')
            p.stdin.flush()
        for _ in range(2):
            assert p.stdout.readline() == '2\n'
            net('policy', 'set', box, policy('two', 'b', 'a'), check=True)  # now they are of another rule
            go()
            assert p.stdout.readline() == 'closed\n'
            caylib.wait_until(lambda: len(net.events(box, 'net.close')) % 2 == 0 and net.events(box, 'net.close'), what='the ends')
            net('policy', 'set', box, policy('one', 'a'), check=True)
            go()
        assert p.stdout.readline() == '2\n'
        go()
        go()


@pytest.mark.parametrize('most', [40, 41])  # a connection takes two: with one of these all are taken
def test_a_gateway_without_descriptors_waits_for_some(net, netbox, most):
    if not caylib.ROOTFUL:
        pytest.skip('its limits can be changed by root only')
    box = netbox('--allow', 'web.test:7000')
    pid = gateway_pid(net, box)
    subprocess.run(['prlimit', f'--pid={pid}', f'--nofile={most}:{most}'], check=True)
    with net.popen('exec', box, '--', '/usr/bin/python3', '-c', r'''
import socket, time
address = socket.gethostbyname('web.test')  # once: a resolver without descriptors finds no names
held = []
for _ in range(60):
    try: held.append(socket.create_connection((address, 7000), 5))
    except OSError: pass  # it came when there was one descriptor, and it takes two
print('open', flush=True)
input()
[s.close() for s in held]
for _ in range(100):  # the first may still come too early, and that no name was found is remembered for 2 s
    try:
        s = socket.create_connection((address, 7000), 5); s.sendall(b'hello'); print(s.recv(5).decode(), flush=True)
        break
    except OSError: time.sleep(0.1)
''', stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == 'open\n'
        before = cpu_ms(pid)
        subprocess.run(['sleep', '1'], check=True)  # the time that is measured
        used = cpu_ms(pid) - before
        out, _ = p.communicate('\n')
    assert out == 'hello\n' and used < 300, used

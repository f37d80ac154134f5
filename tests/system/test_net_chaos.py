# SPDX-License-Identifier: Apache-2.0
"""Many connections with sudden ends on both sides: nothing leaks, nothing is lost, all adds up."""

import os

import pytest

import caylib
from netlib import Net, gateway_pid, net, netbox, world  # noqa: F401

CLIENT = r'''
import os, random, socket, struct, sys, threading, time
total, seconds = int(sys.argv[1]), float(sys.argv[2])
random.seed(7)
end, done, lock = time.monotonic() + seconds, [0], threading.Lock()
def one():
    s = socket.create_connection(('web.test', 7000), 10); s.settimeout(10)
    kind = random.random()
    data = os.urandom(random.choice((1, 100, 5000, 70000)))
    if kind < 0.1: # gone at once
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); s.close(); return
    s.sendall(b'\1' + data)
    if kind < 0.2: # gone in the middle
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); s.close(); return
    if kind < 0.3: s.close(); return
    s.shutdown(socket.SHUT_WR)
    while s.recv(65536): pass
    s.close()
def work():
    while time.monotonic() < end:
        with lock:
            if done[0] >= total: return
            done[0] += 1
        try: one()
        except OSError: pass
threads = [threading.Thread(target=work) for _ in range(16)]
[t.start() for t in threads]; [t.join() for t in threads]
print(done[0])
'''


def descriptors(pid):
    return len(os.listdir(f'/proc/{pid}/fd'))


@pytest.mark.slow
def test_chaos(net, netbox):
    total = int(os.environ.get('CAY_TEST_CHAOS', '3000'))
    box = netbox('--allow', 'web.test:7000')
    script = net.policy('chaos.py', CLIENT)
    net('exec', box, '--', 'python3', '-c', 'import socket; socket.create_connection(("web.test", 7000), 5)', check=True)
    pid = gateway_pid(net, box)
    with open(script, encoding='utf-8') as f:
        r = net('exec', box, '--', '/usr/bin/python3', '-c', f.read(), str(total), '60', timeout=120)
    made = int(r.out)
    assert made == total
    assert gateway_pid(net, box) == pid

    def ended():
        events = net.events(box)
        connects = [e for e in events if e['kind'] == 'net.connect']
        closes = [e for e in events if e['kind'] == 'net.close']
        return len(connects) == len(closes) and (connects, closes, events)
    connects, closes, events = caylib.wait_until(ended, timeout=20, what='an end for each begin')
    assert {c['parent'] for c in closes} == {c['seq'] for c in connects}
    assert not [e for e in events if e['kind'] in ('net.gateway', 'net.deny')]
    fails = [e for e in events if e['kind'] == 'net.fail']
    assert all(f['reason'] == 'reset by the client' for f in fails)
    # One more: the first. Some were reset before they could be accepted.
    assert total * 0.95 <= len(connects) + len(fails) <= total + 1
    state = net.world.ask('state')
    # What a reset destroyed on its way was sent by us and not seen there, and the other way round.
    whole = [c for c in closes if c['reason'] == 'closed']
    assert len(whole) >= total * 0.5
    assert sum(c['up'] for c in closes) >= state['up'] >= sum(c['up'] for c in whole if c['down'])
    if caylib.ROOTFUL:
        caylib.wait_until(lambda: descriptors(pid) < 100, what='no descriptors left open')

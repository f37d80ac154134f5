# SPDX-License-Identifier: Apache-2.0
"""Many connections with sudden ends on both sides: nothing leaks, nothing is lost, all adds up."""

import collections
import os

import pytest

import caylib
from netlib import Net, gateway_pid, is_small, net, netbox, world  # noqa: F401

# Each sends another number of bytes, so that an event tells which one it is about.
CLIENT = r'''
import random, socket, struct, sys, threading, time
total, seconds = int(sys.argv[1]), float(sys.argv[2])
random.seed(7)
sizes = [4 + n for n in random.sample(range(max(60000, total)), total)]
end, lock, done = time.monotonic() + seconds, threading.Lock(), [0]
def die(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); s.close()
def one(size):
    s = socket.create_connection(('web.test', 7001), 10); s.settimeout(10)
    kind = random.random()
    if kind < 0.1: return die(s) # at once
    last = random.randrange(1, size + 1) if kind < 0.3 else 0 # the server dies
    s.sendall(struct.pack('>I', last) + bytes(size - 4))
    if 0.3 <= kind < 0.4: return die(s) # in the middle
    if 0.4 <= kind < 0.5: return s.close()
    s.shutdown(socket.SHUT_WR)
    while s.recv(65536): pass
    s.close()
def work():
    while time.monotonic() < end:
        with lock:
            if not sizes: return
            size = sizes.pop(); done[0] += 1
        try: one(size)
        except OSError: pass
threads = [threading.Thread(target=work) for _ in range(16)]
[t.start() for t in threads]; [t.join() for t in threads]
print(done[0])
'''


def descriptors(pid):
    return len(os.listdir(f'/proc/{pid}/fd'))


def all_ended(net, box):
    events = net.events(box)
    connects = [e for e in events if e['kind'] == 'net.connect']
    closes = [e for e in events if e['kind'] == 'net.close']
    return len(connects) == len(closes) and (connects, closes, events)


def compare(closes, served):
    """The bytes of the events with those that the server has counted."""
    told = collections.Counter((c['up'], c['down']) for c in closes if c['reason'] == 'closed')
    counted = collections.Counter(tuple(s) for s in served)
    # One that the client closed before it had the echo: how much of that went out is another matter.
    whole = collections.Counter({k: n for k, n in told.items() if k[0] == k[1]})
    assert not whole - counted, whole - counted
    counted -= whole
    # Of the others some bytes were destroyed on their way: sent on by us, never seen there; or the other way round.
    rest = [(c['up'], c['down']) for c in closes]
    for pair in whole.elements():
        rest.remove(pair)
    ups, seen = sorted(r[0] for r in rest), sorted(k[0] for k in counted.elements())
    assert len(seen) <= len(ups) and all(s <= u for s, u in zip(reversed(seen), reversed(ups)))
    downs, sent = sorted(r[1] for r in rest), sorted(k[1] for k in counted.elements())
    assert sum(downs) <= sum(sent)
    return sum(whole.values())


@pytest.mark.slow
def test_chaos(net, netbox):
    total = int(os.environ.get('CAY_TEST_CHAOS', '1000'))
    box = netbox('--allow', 'web.test:7001')
    net('exec', box, '--', 'python3', '-c', 'import socket; socket.create_connection(("web.test", 7001), 5)', check=True)
    pid = gateway_pid(net, box)
    r = net('exec', box, '--', '/usr/bin/python3', '-c', CLIENT, str(total), str(60 * caylib.SLOWER), timeout=120)
    assert int(r.out) == total, r
    assert gateway_pid(net, box) == pid
    connects, closes, events = caylib.wait_until(lambda: all_ended(net, box), timeout=20, what='an end for each begin')
    assert {c['parent'] for c in closes} == {c['seq'] for c in connects}
    assert not [e for e in events if e['kind'] in ('net.gateway', 'net.deny')]
    fails = [e for e in events if e['kind'] == 'net.fail']
    assert all(f['reason'] == 'reset by the client' for f in fails)
    # One more: the first. Some were reset before they could be accepted.
    assert total * 0.95 <= len(connects) + len(fails) <= total + 1
    reasons = collections.Counter(c['reason'] for c in closes)
    assert reasons.keys() >= {'closed', 'reset by the client', 'reset by the server'}
    served = caylib.wait_until(lambda: len(net.world.ask('state')['chaos']) >= len(connects) * 0.95 and net.world.ask('state')['chaos'],
                               what='the server to have ended too')
    # Some clients were gone when the dialer had connected for them: the server saw a connection that carried nothing.
    unused = sum(e['kind'] == 'net.dial' for e in events) - len(connects)
    assert 0 <= unused <= len(fails)
    for _ in range(min(unused, served.count([0, 0]))):
        served.remove([0, 0])
    assert compare(closes, served) >= total * 0.35
    if caylib.ROOTFUL:
        caylib.wait_until(lambda: descriptors(pid) < 100, what='no descriptors left open')
    assert is_small(pid, 2048)

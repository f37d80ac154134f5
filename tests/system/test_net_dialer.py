# SPDX-License-Identifier: Apache-2.0
"""The two processes of a gateway: what a front that was taken over cannot do, and what outlives a death."""

import contextlib
import os
import shutil
import signal

import pytest

import caylib
import world as w
from netlib import Net, dialer_pid, gateway_pid, net, netbox, world  # noqa: F401

CURL = 'curl -sS --max-time 10'
PROGRAMS = os.path.dirname(caylib.CAY)


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Puts a program with a fault (tests/faults) in the place of a real one."""
    tmp_path.chmod(0o755)

    def instead_of(name, real):
        for program in ('cay', 'cay-warden', 'cay-init', 'cay-gateway'):
            shutil.copy(os.path.join(PROGRAMS, program), tmp_path)
        shutil.copy(os.path.join(PROGRAMS, 'tests/faults', name), tmp_path / real)
        monkeypatch.setattr(caylib, 'CAY', str(tmp_path / 'cay'))
    return instead_of


def dial(net, box, port, name='a.web.test'):
    """Whether a program inside reads or writes anything there."""
    return net('exec', box, '--', '/usr/bin/python3', '-c', f'''
import socket
try:
    s = socket.create_connection(({name!r}, {port}), 10)
    s.sendall(b'hello\\r\\n\\r\\n'); print(s.recv(100) != b'')
except OSError: print(False)
''', check=True).out == 'True\n'


def evil_policy(net, more=''):
    return net.policy('evil.yaml', f'rules:\n  - {{id: evil, hosts: [a.web.test], ports: [7100-7200]}}\n{more}')


def refusals(net, box):
    return list(dict.fromkeys((e.get('name', e.get('address')), e['port'], e['refused']) for e in net.events(box, 'net.dial')))


# --- a front that was taken over (tests/faults/gateway.c) ---

def test_a_front_that_was_taken_over_dials_only_what_the_policy_allows(net, netbox, put):
    put('gateway-evil', 'cay-gateway')
    box = netbox('--net', evil_policy(net))
    assert [dial(net, box, 7100 + i) for i in range(7)] == [False] * 7
    # A client that was refused may try the other of two addresses.
    refused = caylib.wait_until(lambda: len(found := refusals(net, box)) == 7 and found, what='all refusals')
    assert refused == [('other.test', 80, 'default'), ('a.web.test', 22, 'default'), (w.WEB4, 80, 'default'), ('127.0.0.1', 80, 'never'),
                       (w.METADATA4, 80, 'address'), (w.HOST4, 80, 'default'), ('localhost', 80, 'localhost')]
    state = net.world.ask('state')
    assert state['connections'] == 0 and not state['requests']
    assert {q[0] for q in state['queries']} == {'a.web.test'}
    # The same front, where the policy allows it: so it was asked for, and refused by the dialer alone.
    net('policy', 'set', box, evil_policy(net, '  - {id: other, hosts: [other.test], ports: [80]}\n'), check=True)
    assert dial(net, box, 7100)
    # The dialer reports beside the front: its event may come after the client's answer.
    caylib.wait_until(lambda: net.events(box, 'net.dial')[-1].get('address') == w.OTHER4, what='the report of the dial')


def test_an_address_beside_a_name_ends_the_gateway(net, netbox, put):
    put('gateway-evil', 'cay-gateway')
    box = netbox('--net', evil_policy(net))
    assert not dial(net, box, 7107)
    caylib.wait_until(lambda: [e['what'] for e in net.events(box, 'net.gateway')] == ['died', 'restarted'], what='another gateway')
    assert {e['refused'] for e in net.events(box, 'net.dial')} == {'malformed'}
    died = net.events(box, 'net.gateway')[0]
    assert died['part'] == 'dialer' and died['code'] == 3
    assert net.world.ask('state')['connections'] == 0


@pytest.mark.skipif(caylib.SANITIZED, reason='its run-time library needs more system calls')
@pytest.mark.parametrize('program,code', [('gateway-evil', 42), ('gateway-evil-unfiltered', 40)])
def test_a_front_cannot_dial_itself(net, netbox, put, program, code):
    """It may make no socket; and if it could, its network namespace leads nowhere."""
    put(program, 'cay-gateway')
    box = netbox('--net', evil_policy(net))
    assert not dial(net, box, 7200)
    died = caylib.wait_until(lambda: net.events(box, 'net.gateway'), what='its end')[0]
    assert (died['part'], died['code']) == ('front', code)
    assert net.world.ask('state')['connections'] == 0


@pytest.mark.skipif(not caylib.ROOTFUL, reason='only root may look into another process')
def test_the_front_has_no_network_and_knows_no_password(net):
    secret = 'not-for-the-front'
    box = net('create', '--ro', f'{net.world.dir}/cert.pem:/cert.pem', '--allow', 'web.test', '--allow', 'a.web.test:7000', check=True,
              env={'ALL_PROXY': f'http://me:{secret}@{w.PROXY4}:3128', 'NO_PROXY': 'a.web.test'}).out.strip()
    try:
        net('exec', box, '--', 'sh', '-c', f'{CURL} http://web.test/', check=True)
        front, dialer = gateway_pid(net, box), dialer_pid(net, box)
        networks = {os.readlink(f'/proc/{pid}/ns/net') for pid in (front, dialer, net.cay.warden(box))}
        assert len(networks) == 2
        devices = [line.split(':')[0].strip() for line in caylib.read_text(f'/proc/{front}/net/dev').splitlines()[2:]]
        assert set(devices) <= {'lo', 'sit0', 'tunl0', 'ip6tnl0', 'gre0', 'gretap0', 'erspan0', 'ip_vti0', 'ip6_vti0', 'ip6gre0'}
        assert caylib.read_text(f'/proc/{front}/net/fib_trie') == '' and secret.encode() in memory_of(dialer)
        assert not [x for x in (secret, 'bWU6bm90LWZvci10aGUtZnJvbnQ') if x.encode() in memory_of(front)]
    finally:
        net('kill', box)


def memory_of(pid):
    found = b''
    with open(f'/proc/{pid}/maps', encoding='ascii') as maps, open(f'/proc/{pid}/mem', 'rb') as mem:
        for line in maps:
            first, last = (int(x, 16) for x in line.split()[0].split('-'))
            if line.split()[1].startswith('rw'):
                mem.seek(first)
                found += mem.read(last - first)
    return found


# --- death ---

@pytest.mark.parametrize('part', ['front', 'dialer'])
def test_both_processes_are_replaced_when_one_dies(net, netbox, part):
    box = netbox('--allow', 'web.test', '--allow', 'web.test:7000')
    assert dial(net, box, 7000, 'web.test')
    was = {p: gateway_pid(net, box, p) for p in ('front', 'dialer')}
    os.kill(was[part], signal.SIGKILL)
    for p in was:
        caylib.wait_until(lambda p=p: gateway_pid(net, box, p) != was[p], what=f'another {p}')
    assert dial(net, box, 7000, 'web.test')
    died, restarted = net.events(box, 'net.gateway')
    assert (died['what'], died['part'], died['signal'], restarted['what']) == ('died', part, signal.SIGKILL, 'restarted')


def kill_gateway(net, box, part):
    pid = gateway_pid(net, box, part)
    os.kill(pid, signal.SIGKILL)
    caylib.wait_until(lambda: gateway_pid(net, box, part) != pid, what='another gateway')


def test_a_budget_of_connections_outlives_the_gateway(net, netbox):
    box = netbox('--net', net.policy('budget.yaml', '''
limits: {connections: 6}
rules:
  - {id: few, hosts: [web.test], ports: [7000], limits: {connections: 4}}
  - {id: rest, hosts: [other.test], ports: [7000]}
'''))
    assert [dial(net, box, 7000, 'web.test') for _ in range(2)] == [True] * 2
    kill_gateway(net, box, 'front')
    assert [dial(net, box, 7000, 'web.test') for _ in range(3)] == [True, True, False]
    kill_gateway(net, box, 'dialer')
    assert not dial(net, box, 7000, 'web.test')
    assert [dial(net, box, 7000, 'other.test') for _ in range(3)] == [True, True, False]
    assert {e['reason'] for e in net.events(box, 'net.deny')} == {'connections'}


def test_a_budget_of_bytes_outlives_the_gateway(net, netbox):
    box = netbox('--net', net.policy('bytes.yaml', 'rules:\n  - {id: few, hosts: [web.test], ports: [80], limits: {bytes_down: 300000}}\n'))

    def get():
        return int(net('exec', box, '--', 'sh', '-c', f'{CURL} http://web.test/bytes/200000 | wc -c', check=True).out)
    assert get() == 200000
    kill_gateway(net, box, 'front')
    assert get() < 110000


# --- the warden's part ---

def links_of(pid):
    found = []
    for fd in os.listdir(f'/proc/{pid}/fd'):
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            found.append(os.readlink(f'/proc/{pid}/fd/{fd}'))
    return found


def test_a_gateway_that_cannot_be_configured_leaves_nothing_behind(net, netbox, put):
    put('warden-forgets-config', 'cay-warden')
    box = netbox('--allow', 'web.test:7000')
    warden = net.cay.warden(box)
    assert dial(net, box, 7000, 'web.test')

    def belongings():
        children = sorted(name for parent, _, name in caylib.processes().values() if parent == warden)
        links = links_of(warden) if caylib.ROOTFUL else []
        return children, {kind: sum(kind in x for x in links) for kind in ('socket:', 'cay-ledger')}
    before = belongings()
    os.kill(gateway_pid(net, box), signal.SIGKILL)
    caylib.wait_until(lambda: [e['what'] for e in net.events(box, 'net.gateway')] == ['died', 'restarted'], timeout=20, what='another gateway')
    assert dial(net, box, 7000, 'web.test')

    def nothing_more():
        children, counts = belongings()
        return children == before[0] and all(n <= before[1][kind] for kind, n in counts.items())
    caylib.wait_until(nothing_more, what=f'{before}, and not {belongings()},')

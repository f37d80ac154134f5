# SPDX-License-Identifier: Apache-2.0
"""Programs find inside what they find on a developer's own machine."""

import os
import subprocess

import pytest

import caylib
from netlib import netbox, net, world  # noqa: F401  fixtures

rootful = pytest.mark.skipif(not caylib.ROOTFUL, reason='needs root: a rootless sandbox has no root inside')


def python(cay, script, *args, **options):
    return cay('run', *args, '--', 'python3', '-c', script, **options)


# --- sockets ---

@pytest.mark.parametrize('profile', ['dev', 'locked'])
def test_low_ports_can_be_bound(cay, profile):
    script = 'import socket\nfor port in (1, 80, 443): socket.create_server(("127.0.0.1", port))\nprint("ok")'
    assert python(cay, script, '--profile', profile, check=True).out == 'ok\n'


@rootful
def test_root_binds_low_ports(cay):
    assert python(cay, 'import socket; socket.create_server(("", 22)); print("ok")', '--user', 'root', check=True).out == 'ok\n'


@pytest.mark.parametrize('family, protocol, host, kind', [('AF_INET', 'IPPROTO_ICMP', '127.0.0.1', 8), ('AF_INET6', 'IPPROTO_ICMPV6', '::1', 128)])
def test_an_echo_on_loopback_is_answered(cay, family, protocol, host, kind):
    script = f'''
import socket
s = socket.socket(socket.{family}, socket.SOCK_DGRAM, socket.{protocol})
s.settimeout(5)
s.sendto(bytes([{kind}, 0, 0, 0, 0, 0, 0, 1]) + b"hello", ("{host}", 0))
print(s.recv(100)[8:])
'''
    assert python(cay, script, check=True).out == "b'hello'\n"


def test_an_echo_goes_nowhere_else(net):  # noqa: F811
    script = 'import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)\n' \
             's.settimeout(2)\ns.sendto(bytes([8, 0, 0, 0, 0, 0, 0, 1]), ("192.0.2.1", 0))\ns.recv(100)'
    r = net('run', '--net', 'open', '--', 'python3', '-c', script)
    assert r.code == 1 and 'PermissionError' in r.err, r


MULTICAST = '''
import socket
listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
listener.bind(("", 5007))
listener.settimeout(5)
here = socket.inet_aton("127.0.0.1")
listener.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("224.1.1.1") + here)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, here)
sender.sendto(b"hello", ("224.1.1.1", 5007))
print(listener.recv(100))
'''


def test_multicast_works_on_loopback_without_network(cay):
    assert python(cay, MULTICAST, check=True).out == "b'hello'\n"


def test_multicast_works_on_loopback_with_network(net):  # noqa: F811
    assert net('run', '--net', 'coding', '--', 'python3', '-c', MULTICAST, check=True).out == "b'hello'\n"


def test_ss_lists_what_listens(cay):
    script = 'python3 -c "import socket, subprocess; s = socket.create_server((\'\', 8123)); subprocess.run([\'ss\', \'-ltn\'])"'
    r = cay('run', '--', 'sh', '-c', script, check=True)
    assert ':8123' in r.out, r


# --- devices ---

def test_message_queues_are_files(cay):
    script = '''
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
queue = libc.mq_open(b"/hello", os.O_CREAT | os.O_RDWR, 0o600, None)
assert queue >= 0, os.strerror(ctypes.get_errno())
print(os.listdir("/dev/mqueue"))
'''
    assert python(cay, script, check=True).out == "['hello']\n"


# --- profiles ---

def test_a_program_with_the_leak_sanitizer_runs_in_locked(cay, tmp_path):
    program = str(tmp_path / 'asan')
    made = subprocess.run(['gcc', '-xc', '-', '-fsanitize=address', '-o', program], input=b'int main(void) { return 7; }', check=False)
    if made.returncode:
        pytest.skip('no compiler with AddressSanitizer')
    os.chmod(tmp_path, 0o755)
    for profile in ('dev', 'locked'):
        r = cay('run', '--profile', profile, '--ro', f'{program}:/asan', '--', '/asan')
        assert r.code == 7, (profile, r)


# --- speed ---

def test_reading_writes_no_times(cay):
    r = cay('run', '--', 'sh', '-c', 'grep " / / " /proc/self/mountinfo', check=True)
    assert 'noatime' in r.out.split()[5].split(','), r


# --- the network's words ---

def test_a_proxy_connection_that_closes_without_a_byte_is_no_denial(net, netbox):  # noqa: F811
    ref = netbox('--allow', 'web.test')
    script = 'import socket\nfor port in (3128, 1080): socket.create_connection(("198.18.0.1", port), 5).shutdown(1)'
    r = net('exec', ref, 'python3', '-c', script)
    assert r.code == 0 and 'refused' not in r.err, r
    caylib.wait_until(lambda: len(net.events(ref, 'net.fail')) == 2, what='two ends')
    assert {e['reason'] for e in net.events(ref, 'net.fail')} == {'closed without data'}
    assert net.events(ref, 'net.deny') == []

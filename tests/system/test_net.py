# SPDX-License-Identifier: Apache-2.0
"""The gateway with real clients, against servers in network namespaces of the test's own."""

import base64
import contextlib
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse

import pytest

import caylib
import world as w
from netlib import Net, gateway_pid, net, netbox, world  # noqa: F401

CURL = 'curl -sS --max-time 8 --cacert /cert.pem'


def test_https_http_and_ipv6_work_without_any_setting_inside(net):
    r = net.run(f'{CURL} https://web.test/a && {CURL} -6 https://web.test/b && {CURL} http://web.test/c', '--allow', 'web.test',
                check=True)
    assert r.out.splitlines() == [f'GET /a at {w.WEB4}', f'GET /b at {w.WEB4}', f'GET /c at {w.WEB4}']


def test_a_name_with_only_an_ipv6_address_is_reached_by_ipv4_inside(net):
    r = net.run(f'{CURL} -4 http://v6.test/x', '--allow', 'v6.test', check=True)
    assert r.out == f'GET /x at {w.WEB6}\n'


def test_without_network_nothing_is_there(net):
    r = net.run(f'{CURL} http://web.test/; cat /proc/net/route | wc -l; ls /sys/class/net 2>/dev/null')
    assert 'resolve' in r.err
    assert not net.world.ask('state')['queries']


def test_a_name_that_is_not_allowed_never_leaves(net):
    r = net.run(f'{CURL} http://other.test/; {CURL} http://deadbeef.evil.example/', '--allow', 'web.test')
    assert r.code != 0
    assert net.world.ask('state')['queries'] == []
    assert 'cay: refused: other.test (no rule matches; rule default)' in r.err
    assert 'hosts: [other.test]' in r.err


def test_the_result_lists_refusals_as_json(net):
    r = net.run(f'{CURL} http://other.test/; {CURL} http://{w.OTHER4}:8080/; exit 3', '--allow', 'web.test', '--json')
    result = json.loads(r.err.splitlines()[-1])
    assert r.code == 3 and result['exit_code'] == 3
    assert [(d.get('name'), d.get('address'), d.get('port')) for d in result['denied']] == \
        [('other.test', None, None), (None, w.OTHER4, 8080)]
    assert all(d['rule'] == 'default' and d['allow'] for d in result['denied'])


def test_plain_http_is_refused_in_words(net):
    policy = net.policy('methods.yaml', '''
rules:
  - {id: read, hosts: [web.test], ports: [80], methods: [GET], paths: ["/public/**"]}
''')
    r = net.run(f'''
{CURL} http://web.test/public/x
{CURL} -w '%{{http_code}}\n' http://web.test/private
{CURL} -w '%{{http_code}}\n' -X DELETE http://web.test/public/x
{CURL} -w '%{{http_code}}\n' -H 'Host: other.test' http://web.test/public/x
{CURL} http://web.test/public/1 http://web.test/public/2
''', '--net', policy)
    lines = r.out.splitlines()
    assert lines[0].startswith('GET /public/x at')
    for at in (1, 3, 5):
        body = json.loads(lines[at])
        assert body['error'] == 'denied_by_policy' and body['target'] == 'web.test:80' and lines[at + 1] == '403'
    assert lines[7:] == [f'GET /public/1 at {w.WEB4}', f'GET /public/2 at {w.WEB4}']
    assert [q[1] for q in net.world.ask('state')['requests']] == ['/public/x', '/public/1', '/public/2']


def test_tls_must_name_the_host_that_was_asked_for(net):
    r = net.run(f'''
{CURL} -k --connect-to evil.test:443:web.test:443 https://evil.test/ ; echo $?
python3 - <<'E'
import socket, ssl
c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
s = socket.create_connection(('web.test', 443), 5)
try:
    c.wrap_socket(s); print('open')
except OSError as e:
    print('reset' if isinstance(e, ConnectionResetError) else type(e).__name__)
E''', '--allow', 'web.test')
    assert r.out.splitlines()[0] == '35'
    assert r.out.splitlines()[1] in ('reset', 'SSLEOFError')
    assert net.world.ask('state')['requests'] == []


def test_bodies_of_all_kinds_pass(net):
    r = net.run(f'''set -e
head -c 3000000 /dev/urandom > /tmp/f
sha256sum < /tmp/f
for o in '' '-H Transfer-Encoding:chunked'; do {CURL} $o --data-binary @/tmp/f http://web.test/up; echo; done
{CURL} --data-binary @/tmp/f https://web.test/up; echo
{CURL} http://web.test/bytes/5000000 | wc -c
{CURL} http://web.test/chunked/1000 | tail -1
{CURL} -I http://web.test/bytes/77 | grep -i length
{CURL} http://web.test/slow
''', '--allow', 'web.test', check=True)
    lines = r.out.split('\n')
    assert lines[1] == lines[2] == lines[3] == lines[0].split()[0]
    assert lines[4] == '5000000' and lines[5] == 'piece 999' and lines[6].strip() == 'Content-Length: 77'
    assert lines[7:10] == ['0', '1', '2']


def test_a_websocket_passes_in_both_directions(net):
    r = net.run('''python3 - <<'E'
import os, socket
s = socket.create_connection(('web.test', 8080), 5)
s.sendall(b'GET /ws HTTP/1.1\\r\\nHost: web.test:8080\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n'
          b'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\nSec-WebSocket-Version: 13\\r\\n\\r\\n')
f = s.makefile('rb')
print(f.readline().split()[1].decode())
while f.readline().strip(): pass
for text in (b'one', b'two'):
    s.sendall(bytes([0x81, 0x80 | len(text)]) + bytes(4) + text)
    head = f.read(2)
    print(f.read(head[1]).decode())
E''', '--allow', 'web.test:8080', check=True)
    assert r.out.splitlines() == ['101', 'one', 'two']


@pytest.mark.parametrize('client', ['wget', 'python', 'node'])
def test_real_clients_work_unmodified(net, client):
    if client != 'python' and not shutil.which(client):
        pytest.skip(f'{client} is not installed')
    script = {
        'wget': 'wget -q -T 8 --ca-certificate=/cert.pem -O - https://web.test/x http://web.test/y',
        'python': 'SSL_CERT_FILE=/cert.pem /usr/bin/python3 -c "import urllib.request as u; '
                  '[print(u.urlopen(a, timeout=8).read().decode(), end=\'\') for a in (\'https://web.test/x\', \'http://web.test/y\')]"',
        'node': 'NODE_EXTRA_CA_CERTS=/cert.pem node -e "(async()=>{for(const u of [\'https://web.test/x\',\'http://web.test/y\'])'
                'process.stdout.write(await (await fetch(u)).text())})()"',
    }[client]
    r = net.run(script, '--allow', 'web.test')
    assert r.out.splitlines() == [f'GET /x at {w.WEB4}', f'GET /y at {w.WEB4}'], r


def test_a_server_that_speaks_first_is_heard(net):
    script = '''python3 -c "
import socket
for port, first in ((2525, b''), (22, b'SSH-2.0-client\\r\\n')):
    s = socket.create_connection(('web.test', port), 5)
    s.sendall(first)
    print(s.recv(100).decode().strip())"'''
    r = net.run(script, '--allow', 'web.test:22', '--allow', 'web.test:2525')
    assert r.out == 'SSH-2.0-test\n' * 2, r


def test_explicit_proxies_for_clients_that_insist(net):
    r = net.run(f'''
{CURL} -x http://198.18.0.1:3128 https://web.test/connect
{CURL} -x http://198.18.0.1:3128 http://web.test/absolute
{CURL} --socks5-hostname 198.18.0.1:1080 https://web.test/socks
{CURL} --socks5-hostname 198.18.0.1:1080 https://other.test/; echo $?
{CURL} -x http://198.18.0.1:3128 https://other.test/; echo $?
{CURL} -o /dev/null -w '%{{http_code}}\n' -x http://198.18.0.1:3128 http://other.test/
''', '--allow', 'web.test')
    lines = r.out.splitlines()
    assert lines[0] == f'GET /connect at {w.WEB4}' and lines[1] == f'GET http://web.test/absolute at {w.WEB4}'
    assert lines[2] == f'GET /socks at {w.WEB4}'
    assert lines[3] == '97' and lines[4] == '56' and lines[5] == '403'


DNS = '''
import socket, struct, sys
def ask(name, qtype, tcp=False, server='198.18.0.1', edns=True):
    q = struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, 1 if edns else 0)
    for label in name.split('.'):
        q += bytes([len(label)]) + label.encode()
    q += b'\\0' + struct.pack('>HH', qtype, 1)
    if edns: q += b'\\0' + struct.pack('>HHIH', 41, 1232, 0, 0)
    if tcp:
        s = socket.create_connection((server, 53), 5); s.sendall(struct.pack('>H', len(q)) + q)
        n = struct.unpack('>H', s.recv(2))[0]; a = s.recv(n)
    else:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5); s.connect((server, 53)); s.send(q); a = s.recv(4096)
    flags, _, answers, _, extra = struct.unpack('>HHHHH', a[2:12])
    return flags & 15, answers, a
'''


def test_the_resolver_answers_what_it_should(net):
    r = net.run(f'''python3 - <<'E'
{DNS}
for name, qtype, tcp in (('web.test', 1, 0), ('web.test', 28, 0), ('web.test', 1, 1), ('web.test', 65, 0), ('web.test', 64, 0),
                         ('web.test', 16, 0), ('other.test', 1, 0), ('other.test', 16, 0), ('nosuch.web.test', 1, 0),
                         ('0.1.18.198.in-addr.arpa', 12, 0), ('9.9.18.198.in-addr.arpa', 12, 0)):
    code, n, a = ask(name, qtype, tcp)
    print(name, qtype, code, n, 'no rule matches' if b'no rule matches' in a else '', 'web' if b'\\3web\\4test' in a[40:] else '')
print(ask('web.test', 1, server='8.8.8.8')[1])
E
getent hosts 198.18.1.0; python3 -c "import socket; print(socket.gethostbyaddr('198.18.1.0')[0])"
''', '--allow', 'web.test', '--allow', '*.web.test', check=True)
    lines = [line.split() for line in r.out.splitlines()]
    assert [line[2:4] for line in lines[:6]] == [['0', '1']] * 3 + [['0', '0']] * 3
    assert lines[6][2:] == lines[7][2:] == ['3', '0', 'no', 'rule', 'matches']
    assert lines[8][2:4] == ['3', '0']
    assert lines[9][2:] == ['0', '1', 'web'] and lines[10][2] == '3'
    assert lines[11] == ['1'] and lines[12][1] == 'web.test' and lines[13] == ['web.test']
    asked = {q[0] for q in net.world.ask('state')['queries']}
    assert asked == {'web.test', 'nosuch.web.test'}


def test_identifiers_of_queries_cannot_be_guessed(net):
    seen = []
    for _ in range(2):  # a generator that always begins with the same number gives the same ones twice
        net.world.ask('reset')
        net.run('for n in a.web.test b.web.test git.test other.test; do getent ahostsv4 $n; done', '--allow', '*.test', check=True)
        seen.append(net.world.ask('state')['ids'])
    assert len(seen[0]) >= 4 and not set(seen[0][:4]) & set(seen[1][:4])


def test_everything_but_tcp_and_dns_is_refused_at_once(net):
    r = net.run('''python3 - <<'E'
import errno, socket, time
begin = time.monotonic()
for family, kind, proto, to in ((socket.AF_INET, socket.SOCK_DGRAM, 0, ('45.90.0.10', 443)), (socket.AF_INET, socket.SOCK_DGRAM, 0, ('198.18.1.0', 443)),
                         (socket.AF_INET6, socket.SOCK_DGRAM, 0, ('2a0c:99::10', 443)), (socket.AF_INET, socket.SOCK_DGRAM, 1, ('45.90.0.10', 0)),
                         (socket.AF_INET, socket.SOCK_RAW, 1, ('45.90.0.10', 0)), (socket.AF_INET, socket.SOCK_STREAM, 262, ('45.90.0.10', 80)),
                         (socket.AF_INET, socket.SOCK_STREAM, 132, ('45.90.0.10', 80)), (40, socket.SOCK_STREAM, 0, (2, 1))):
    try:
        s = socket.socket(family, kind, proto); s.settimeout(3)
        s.connect(to) if kind == socket.SOCK_STREAM else s.sendto(b'x', to)
        print('sent')
    except OSError as e:
        print(errno.errorcode.get(e.errno, e))
print(time.monotonic() - begin < 2.5)  # one that is not refused would take 3 s
E''', '--allow', '**', '--user', 'root' if caylib.ROOTFUL else '1000')
    assert 'sent' not in r.out and r.out.splitlines()[-1] == 'True', r


def test_a_rule_must_name_an_address_that_is_not_global(net):
    names = ['private', 'loop', 'loop6', 'mapped', 'zero', 'meta', 'self', 'nat64']
    script = '; '.join(f'{CURL} -f -o /dev/null http://{n}.test/ 2>/dev/null; echo {n} $?' for n in names)
    r = net.run(script, *(x for n in names for x in ('--allow', f'{n}.test')))
    assert all(line.split()[1] != '0' for line in r.out.splitlines()), r
    policy = net.policy('private.yaml', f'rules:\n  - {{id: db, hosts: [private.test], addresses: [{w.PRIVATE4}], ports: [80]}}\n')
    r = net.run(f'{CURL} http://private.test/x', '--net', policy)
    assert r.out == f'GET /x at {w.PRIVATE4}\n', r
    r = net.run(f'{CURL} http://{w.PRIVATE4}/x', '--allow', f'{w.PRIVATE4}:80')
    assert r.out == f'GET /x at {w.PRIVATE4}\n', r


def test_a_dead_target_fails_soon_and_is_told(net, netbox):
    box = netbox('--allow', 'dead.test', '--allow', 'web.test:9')
    r = net('exec', box, '--', 'sh', '-c', f'{CURL} http://dead.test/; {CURL} telnet://web.test:9 </dev/null; true')
    assert r.code == 0
    fails = net.events(box, 'net.fail')
    assert {f['name'] for f in fails} == {'dead.test', 'web.test'}


def test_events_say_who_did_what_and_how_much(net, netbox):
    box = netbox('--allow', 'web.test')
    net('exec', box, '--', 'true', check=True)
    net('exec', box, '--', 'sh', '-c', f'{CURL} https://web.test/bytes/100000 >/dev/null; {CURL} http://web.test/p?q=1 >/dev/null; '
        f'{CURL} http://other.test/; true', check=True)
    events = [e for e in net.events(box) if e['kind'] != 'net.dial']  # the dialer does not know calls
    assert all(e['call'] == 2 for e in events)
    connect = [e for e in events if e['kind'] == 'net.connect']
    assert [(e['name'], e['address'], e['port'], e['protocol'], e['rule']) for e in connect] == \
        [('web.test', w.WEB4, 443, 'tls', 'cli/allow-1'), ('web.test', w.WEB4, 80, 'http', 'cli/allow-1')]
    execs = {e['pid'] for e in net.events(box, 'process.exec') if e['path'].endswith('/curl')}
    assert all(e['process'] in execs for e in connect)
    tls, = [e for e in events if e['kind'] == 'net.tls']
    assert tls['sni'] == 'web.test' and tls['version'].startswith('TLS 1') and tls['parent'] == connect[0]['seq']
    request, = [e for e in events if e['kind'] == 'net.http']
    assert (request['method'], request['path'], request['status']) == ('GET', '/p', 200)
    closes = [e for e in events if e['kind'] == 'net.close']
    assert [e['parent'] for e in closes] == [e['seq'] for e in connect]
    assert closes[0]['down'] > 100000 and closes[0]['up'] > 300 and closes[0]['duration_us'] > 0
    assert closes[0]['reason'] == 'closed'
    denied = [e for e in events if e['kind'] == 'net.deny']
    assert denied and all(e['name'] == 'other.test' and e['allow'] for e in denied)
    rows = {(x['host'], x['port']): x for x in net.cay.json('net', box)}
    assert rows['web.test', 443]['connections'] == 1 and rows['web.test', 443]['down_bytes'] == closes[0]['down']
    assert rows['other.test', 0]['denied'] == len(denied)
    assert 'web.test' in net('net', box, '--by-call', check=True).out
    assert 'net.connect' in net('trace', '--kind', 'net', box, check=True).out


def test_calls_are_told_apart_also_in_the_background(net, netbox):
    box = netbox('--allow', 'web.test')
    late = 'sh -c "sleep 0.6; exec curl -s -o /dev/null http://web.test/late"'
    net('exec', box, '--', 'sh', '-c', f'{late} >/dev/null 2>&1 & true', check=True)
    net('exec', box, '--', 'sh', '-c', f'for i in 1 2 3 4 5; do {CURL} -o /dev/null http://web.test/now; sleep 0.2; done', check=True)
    found = [(e['call'], e['path']) for e in net.events(box, 'net.http')]
    assert (1, '/late') in found and found.count((2, '/now')) == 5 and len(found) == 6


# Makes a socket and gives it to whoever asks; with a second argument it keeps its own descriptor.
GIVER = '''
import os, socket, sys
here = socket.socket(socket.AF_UNIX)
here.bind('/tmp/giver.tmp')
here.listen()
os.rename('/tmp/giver.tmp', '/tmp/giver')
for i in range(2):
    peer = here.accept()[0]
    tcp = socket.socket()
    socket.send_fds(peer, [b'x'], [tcp.fileno()])
    if i == 0:
        tcp.close()
    peer.recv(1)
'''
TAKER = '''
import os, socket, time
while not os.path.exists('/tmp/giver'):
    time.sleep(0.01)
for path in ('/passed', '/shared'):
    peer = socket.socket(socket.AF_UNIX)
    peer.connect('/tmp/giver')
    tcp = socket.socket(fileno=socket.recv_fds(peer, 1, 1)[1][0])
    tcp.connect(('web.test', 80))
    tcp.send(f'GET {path} HTTP/1.1\\r\\nHost: web.test\\r\\nConnection: close\\r\\n\\r\\n'.encode())
    while tcp.recv(4096):
        pass
    peer.send(b'x')
    peer.close()
own = socket.create_connection(('web.test', 80))
own.send(b'GET /own HTTP/1.1\\r\\nHost: web.test\\r\\nConnection: close\\r\\n\\r\\n')
while own.recv(4096):
    pass
'''


def test_a_socket_passed_between_calls_is_not_certain(net, netbox):
    """Given away, and given away and kept; one of the call's own is certain though another call runs."""
    box = netbox('--allow', 'web.test')
    net('exec', box, '--', 'sh', '-c', 'sleep 30 >/dev/null 2>&1 & python3 -c "$0" >/dev/null 2>&1 &', GIVER, check=True)
    net('exec', box, '--', 'python3', '-c', TAKER, check=True)
    connects = {e['seq']: e for e in net.events(box, 'net.connect')}
    of = {e['path']: connects[e['parent']] for e in net.events(box, 'net.http')}
    certain = {path: e.get('certain', True) for path, e in of.items()}
    assert not certain['/shared'] and certain['/own'] and of['/own']['call'] == 2
    # Without control groups only the call that has the socket is known, and it is the one that connects.
    assert not certain['/passed'] or of['/passed']['call'] == 2


def test_processes_of_one_call_are_told_apart(net, netbox):
    """Though they take turns, and their sockets have the same numbers."""
    box = netbox('--allow', 'web.test:7000')
    r = net('exec', box, '--', '/usr/bin/python3', '-c', '''
import os, socket
def connect():
    s = socket.create_connection(('web.test', 7000), 5); s.sendall(b'!'); s.recv(1); return s
here, there = socket.socketpair()
child = os.fork()
for _ in range(5):
    if child: connect().close(); here.send(b'x'); here.recv(1)
    else: there.recv(1); connect().close(); there.send(b'x')
if child: print(os.getpid(), child)
''', check=True)
    parent, child = map(int, r.out.split())
    found = [e.get('process') for e in net.events(box, 'net.connect')]
    assert found == [parent, child] * 5, found


def test_a_client_that_is_silent_first_is_judged_all_the_same(net):
    policy = net.policy('silent.yaml', '''
rules:
  - {id: not-this, action: deny, hosts: [web.test], ports: [8080], paths: [/secret]}
  - {id: any, hosts: [web.test], ports: [8080]}
  - {id: read, hosts: [other.test], ports: [80], methods: [GET], paths: ["/ok"]}
''')
    r = net.run('''python3 -c "
import socket, time
asks = [('web.test', 8080, 'GET', '/secret'), ('web.test', 8080, 'GET', '/ok'), ('other.test', 80, 'POST', '/ok'),
        ('other.test', 80, 'GET', '/no'), ('web.test', 8080, 'GET', '/secret')]
open = [socket.create_connection(a[:2], 20) for a in asks]
time.sleep(10.6)  # longer than the gateway waits to hear what is spoken
for s, (host, port, method, path) in zip(open, asks):
    try:
        s.sendall(f'{method} {path} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\nContent-Length: 0\\r\\n\\r\\n'.encode())
        print(s.recv(100).split()[1:2])
    except OSError as e:
        print(type(e).__name__)
"''', '--net', policy, check=True)
    assert [x[:5] == '[b\'20' for x in r.out.splitlines()] == [False, True, False, False, False], r
    assert [q[:2] for q in net.world.ask('state')['requests']] == [['GET', '/ok']]


def test_an_unfinished_line_and_then_much_leaves_the_gateway_whole(net, netbox):
    """What is let go while the first line is unfinished is bounded, whenever the bytes come."""
    ref = netbox('--allow', 'web.test:7000')
    # Many busy connections make the turns of the gateway's loop long: bytes then come between its look and its deadline.
    script = '''
import os, select, socket, time
def dial():
    s = socket.create_connection(("web.test", 7000), 5)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s
def keep_busy(until):
    busy = [dial() for _ in range(100)]
    for s in busy:
        s.sendall(b"x\\n")
    while time.monotonic() < until:
        for s in select.select(busy, [], [], 1)[0]:
            s.sendall(s.recv(1000))
def probe(s, wait):
    try:
        s.sendall(b"a" * 4084)
        time.sleep(0.7)
        s.sendall(b"a")
        time.sleep(wait)
        s.sendall(b"a" * 70000)
        time.sleep(0.3)
        s.sendall(b"a" * 300000)
    except OSError:
        pass
until = time.monotonic() + 8
if os.fork() == 0:
    keep_busy(until)
    os._exit(0)
for wait in range(200, 600, 4):
    if os.fork() == 0:
        probe(dial(), wait / 1000)
        os._exit(0)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
s = dial()
s.sendall(b"hello\\n")
print(s.recv(100))
'''
    net('exec', ref, 'python3', '-c', 'import socket; socket.create_connection(("web.test", 7000), 5)', check=True)
    pid = gateway_pid(net, ref)
    assert net('exec', ref, 'python3', '-c', script, check=True, timeout=60).out == "b'hello\\n'\n"
    assert gateway_pid(net, ref) == pid


def test_a_connection_that_closes_without_a_byte_is_no_denial(net, netbox):
    ref = netbox('--allow', 'web.test')
    script = 'import socket\nfor port in (80, 443): socket.create_connection(("web.test", port), 5).shutdown(1)'
    r = net('exec', ref, 'python3', '-c', script, check=True)
    assert 'refused' not in r.err
    caylib.wait_until(lambda: len(net.events(ref, 'net.fail')) == 2, what='two ends')
    assert {e['reason'] for e in net.events(ref, 'net.fail')} == {'closed without data'}
    assert net.events(ref, 'net.deny') == []


def test_a_policy_changes_under_a_living_sandbox(net, netbox):
    box = netbox('--allow', 'web.test:7000', '--allow', 'other.test')
    script = '''python3 -u -c "
import socket
s = socket.create_connection(('web.test', 7000), 5)
s.sendall(b'one'); print(s.recv(10).decode())
try:
    print('end' if s.recv(10) == b'' else 'data')
except ConnectionResetError:
    print('reset')"'''
    with net.popen('exec', box, '--', 'sh', '-c', script) as p:
        p.read_until(b'one\n')
        r = net('policy', 'set', box, 'none', '--allow', 'other.test', '--json', check=True)
        told = json.loads(r.out)
        assert told['connections_cut'] == 1 and not told['added']
        assert len(told['removed']) == 1 and 'web.test' in told['removed'][0], told
        assert p.finish().stdout == b'reset\n'
    r = net('exec', box, '--', 'sh', '-c', f'{CURL} -o /dev/null http://web.test:7000/; echo $?; {CURL} http://other.test/')
    assert r.out.splitlines() == ['6', f'GET / at {w.OTHER4}']
    assert net.events(box, 'policy.set')
    bad = net.policy('bad.yaml', 'rules:\n  - {id: x, host: y}\n')
    r = net('policy', 'set', box, bad)
    assert r.code == 2 and 'bad.yaml:2' in r.err


def test_a_gateway_that_dies_is_replaced_with_its_policy(net, netbox):
    box = netbox('--allow', 'web.test')
    net('exec', box, '--', 'sh', '-c', f'{CURL} http://web.test/', check=True)
    pid = gateway_pid(net, box)
    os.kill(pid, signal.SIGKILL)
    caylib.wait_until(lambda: gateway_pid(net, box) != pid, what='another gateway')
    r = net('exec', box, '--', 'sh', '-c', f'{CURL} http://web.test/after; {CURL} http://other.test/', env={})
    assert r.out == f'GET /after at {w.WEB4}\n' and 'resolve' in r.err
    whats = [e['what'] for e in net.events(box, 'net.gateway')]
    assert whats == ['died', 'restarted']


@pytest.mark.skipif(caylib.SANITIZED, reason='its run-time library needs files')
def test_the_gateway_is_jailed(net, netbox):
    box = netbox('--allow', 'web.test')
    net('exec', box, '--', 'sh', '-c', f'{CURL} http://web.test/', check=True)
    pid = gateway_pid(net, box)
    status = dict(line.split(':\t', 1) for line in caylib.read_text(f'/proc/{pid}/status').splitlines() if ':\t' in line)
    assert status['NoNewPrivs'] == '1' and status['Seccomp'] == '2' and status['NSpid'].split()[-1] == '1'
    for key in ('CapEff', 'CapPrm', 'CapBnd', 'CapAmb', 'CapInh'):
        assert int(status[key], 16) == 0, key
    for kind in ('user', 'mnt', 'pid', 'ipc', 'uts', 'cgroup'):
        try:
            assert os.readlink(f'/proc/{pid}/ns/{kind}') != os.readlink(f'/proc/self/ns/{kind}'), kind
        except PermissionError:
            pass  # not dumpable: then it is not ours to look
    if caylib.ROOTFUL:
        assert os.listdir(f'/proc/{pid}/root') == []
        assert int(status['Uid'].split()[0]) != 0
        links = {os.readlink(f'/proc/{pid}/fd/{fd}') for fd in os.listdir(f'/proc/{pid}/fd')}
        assert all(x.startswith(('socket:', 'anon_inode:', 'pipe:', '/null', '/dev/null')) for x in links), links


def test_budgets_and_rates_hold(net):
    policy = net.policy('limits.yaml', '''
limits: {connections: 5}
rules:
  - {id: few, hosts: [web.test], ports: [80], limits: {bytes_down: 300000}}
  - {id: slow, hosts: [other.test], ports: [80], limits: {rate_down: 200000}}
''')
    r = net.run(f'''
{CURL} http://web.test/bytes/200000 | wc -c
{CURL} http://web.test/bytes/200000 | wc -c
b=$(date +%s%N); {CURL} http://other.test/bytes/500000 | wc -c; e=$(date +%s%N); echo $(( (e - b) / 1000000 ))
for i in 1 2 3 4; do {CURL} -f -o /dev/null http://other.test/; echo $?; done
''', '--net', policy)
    lines = r.out.splitlines()
    assert lines[0] == '200000' and int(lines[1]) < 110000
    assert lines[2] == '500000' and 1000 < int(lines[3]) < 6000
    assert lines[4:6] == ['0', '0'] and '0' not in lines[6:], r


def test_limits_of_rules_for_requests_hold(net, netbox):
    policy = net.policy('requests.yaml', '''
rules:
  - {id: few, hosts: [web.test], ports: [80], paths: ["/bytes/**"], limits: {bytes_down: 300000}}
  - {id: rest, hosts: [web.test], ports: [80]}
''')
    box = netbox('--net', policy)
    r = net('exec', box, '--', 'sh', '-c', f'''
{CURL} http://web.test/bytes/200000 http://web.test/x | wc -c
{CURL} http://web.test/bytes/200000 | wc -c
{CURL} http://web.test/y
''')
    lines = r.out.splitlines()
    assert int(lines[0]) > 200000 > 110000 > int(lines[1]) and lines[2] == f'GET /y at {w.WEB4}', r
    assert [(e['path'], e['rule']) for e in net.events(box, 'net.http')] == \
        [('/bytes/200000', 'few'), ('/x', 'rest'), ('/bytes/200000', 'few'), ('/y', 'rest')]


def test_the_host_s_proxy_is_used_for_dialling(net):
    r = net.run(f'{CURL} https://web.test/x; {CURL} http://web.test/y; {CURL} http://other.test/z', '--allow', 'web.test',
                '--allow', 'other.test', env={'HTTPS_PROXY': f'http://me:secret@{w.PROXY4}:3128', 'NO_PROXY': 'other.test'})
    assert r.out.splitlines() == [f'GET /x at {w.WEB4}', f'GET /y at {w.WEB4}', f'GET /z at {w.OTHER4}'], r
    auth = 'Basic ' + base64.b64encode(b'me:secret').decode()
    assert net.world.ask('state')['proxied'] == [['web.test:443', auth], ['web.test:80', auth]]


def test_a_proxy_or_nameserver_that_is_none_is_said_at_once(net):
    for env, word in (({'HTTPS_PROXY': 'https://me:secret@proxy.test:443'}, 'proxy.test:443'), ({'ALL_PROXY': 'socks4://me:secret@proxy.test'}, 'proxy.test'),
                      ({'CAY_NAMESERVERS': f'{w.DNS4},dns.test'}, "'dns.test'")):
        r = net('run', '--allow', 'web.test', '--', 'true', env=env)
        assert r.code == 125 and word in r.err and 'secret' not in r.err, r
        net('run', '--', 'true', env=env, check=True)  # without a network nobody needs them


@pytest.mark.parametrize('proxy', [f'socks5://{w.PROXY4}:1080', 'socks5h://proxy.test'])
def test_the_host_s_socks_proxy_is_used_for_dialling(net, netbox, proxy):
    env = {'ALL_PROXY': proxy, 'NO_PROXY': 'a.web.test'}
    box = net('create', '--ro', f'{net.world.dir}/cert.pem:/cert.pem', '--allow', '*.test', '--allow', '*.web.test', env=env,
              check=True).out.strip()
    try:
        r = net('exec', box, '--', 'sh', '-c', f'{CURL} https://web.test/x; {CURL} http://git.test/bytes/300000 | wc -c; {CURL} http://a.web.test/z; '
                f'{CURL} -w "%{{http_code}}" -o /dev/null http://other.test/')
        assert r.out.splitlines() == [f'GET /x at {w.WEB4}', '300000', f'GET /z at {w.WEB4}', '502'], r
        state = net.world.ask('state')
        assert state['proxied'] == [['web.test:443', '05010003'], ['git.test:80', '05010003'], ['other.test:80', '05010003']]
        # The proxy looks names up: only its own, and those that are dialled directly, were asked for here.
        assert {q[0] for q in state['queries']} <= {'proxy.test', 'a.web.test'}
        assert [e['reason'] for e in net.events(box, 'net.fail')] == ['refused']
    finally:
        net('kill', box)


def told_by(net, box, secret):
    """Where a secret can be read that only a proxy should be told."""
    found = [words for words in (['trace', '--json', box], ['show', box], ['show', '--json', box], ['net', box], ['exec', box, '--', 'env'])
             if secret in (lambda r: r.out + r.err)(net(*words, check=True))]
    for pid, (parent, _, name) in caylib.processes().items():
        with contextlib.suppress(OSError), open(f'/proc/{pid}/cmdline', encoding='utf-8', errors='replace') as f:
            if secret in f.read() and name.startswith('cay'):
                found.append(f'{name} {pid}')
    for folder, _, files in os.walk(net.cay.state):
        for name in files:
            with contextlib.suppress(OSError), open(os.path.join(folder, name), 'rb') as f:
                if secret.encode() in f.read():
                    found.append(os.path.join(folder, name))
    return found


@pytest.mark.parametrize('proxy', [f'socks5://me%40corp:{{}}@{w.PROXY4}:1081', f'http://me%40corp:{{}}@{w.PROXY4}:3128'])
def test_the_password_of_a_proxy_is_told_to_the_proxy_alone(net, proxy):
    env = {'ALL_PROXY': proxy.format(urllib.parse.quote(w.PASSWORD, safe=''))}
    box = net('create', '--ro', f'{net.world.dir}/cert.pem:/cert.pem', '--allow', 'web.test', env=env, check=True).out.strip()
    try:
        r = net('exec', box, '--', 'sh', '-c', f'{CURL} https://web.test/x', check=True)
        assert r.out == f'GET /x at {w.WEB4}\n'
        (target, how), = net.world.ask('state')['proxied']
        assert target == 'web.test:443'
        coded = base64.b64encode(f'me@corp:{w.PASSWORD}'.encode()).decode()
        assert how in ('05010003', f'Basic {coded}')
        assert not [x for secret in (w.PASSWORD, env['ALL_PROXY'].split(':')[2].split('@')[0], coded) for x in told_by(net, box, secret)]
    finally:
        net('kill', box)


@pytest.mark.parametrize('user', ['', 'me%40corp:wrong@', 'somebody@'])
def test_a_proxy_that_wants_another_password_is_said(net, user):
    env = {'ALL_PROXY': f'socks5://{user}{w.PROXY4}:1081'}
    box = net('create', '--ro', f'{net.world.dir}/cert.pem:/cert.pem', '--allow', 'web.test', env=env, check=True).out.strip()
    try:
        r = net('exec', box, '--', 'sh', '-c', f'{CURL} http://web.test/x')
        assert 'unreachable' in r.out and "the host's proxy wants another user and password" in r.out
        assert [e['reason'] for e in net.events(box, 'net.fail')] == ["the host's proxy wants another user and password"]
        assert not net.world.ask('state')['proxied']
    finally:
        net('kill', box)


def test_a_port_inside_is_reached_from_the_host(net, netbox):
    box = netbox()
    server = '''exec python3 -u -c "
import socket
s = socket.create_server(('127.0.0.1', 3000)); print('up')
while True:
    c, _ = s.accept()
    while data := c.recv(65536): c.sendall(data.upper())
    c.close()"'''
    with net.popen('exec', box, '--', 'sh', '-c', server) as p, net.cay.popen('port', box, 3000, '--listen', '0') as port:
        p.read_until(b'up\n')
        host, number = port.read_until(b'\n').decode().strip().rsplit(':', 1)
        for _ in range(3):
            with socket.create_connection((host, int(number)), 5) as s:
                payload = os.urandom(300000).hex().encode()
                s.settimeout(10)
                got = b''
                for at in range(0, len(payload), 30000):
                    s.sendall(payload[at:at + 30000])
                    while len(got) < at + 30000 and len(got) < len(payload):
                        got += s.recv(65536)
                assert got == payload.upper()
                s.shutdown(socket.SHUT_WR)
                assert s.recv(10) == b''
        port.send_signal(signal.SIGINT)
        assert port.wait(5) == 0
        p.kill()
    with net.cay.popen('port', box, 3001, '--listen', '0') as port:
        host, number = port.read_until(b'\n').decode().strip().rsplit(':', 1)
        with socket.create_connection((host, int(number)), 5) as s:
            assert s.recv(10) == b''


def test_sandboxes_do_not_reach_each_other(net, netbox):
    one, two = netbox('--allow', 'web.test'), netbox('--allow', 'web.test', '--allow', '198.18.0.2')
    with net.popen('exec', one, '--', 'python3', '-u', '-c', "import socket; s = socket.create_server(('0.0.0.0', 4000)); print('up'); s.accept()") as p:
        p.read_until(b'up\n')
        r = net('exec', two, '--', 'python3', '-c', '''
import socket
for a in ('198.18.0.2', '198.18.0.1', '127.0.0.1', '0.0.0.0', '198.18.1.0'):
    try:
        s = socket.create_connection((a, 4000), 3); s.settimeout(3); s.sendall(b'x'); print('open' if s.recv(1) == b'' and 0 else 'closed')
    except OSError: print('refused')''')
        assert 'open' not in r.out and len(r.out.splitlines()) == 5
        assert p.poll() is None
        p.kill()


def test_root_inside_cannot_change_the_network(net):
    if not caylib.ROOTFUL:
        pytest.skip('without root there is no root inside')
    r = net.run('''
ip addr add 1.2.3.4/32 dev lo; ip route del local default table local; ip link set lo down; nft flush ruleset
python3 -c "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)"
true''', '--allow', 'web.test', '--user', 'root')
    assert r.err.count('not permitted') >= 2, r
    r = net.run(f'ip link set lo down; ip route flush table local; {CURL} http://web.test/', '--allow', 'web.test', '--user', 'root')
    assert r.out == f'GET / at {w.WEB4}\n', r


def test_upstream_addresses_are_pinned_against_rebinding(net):
    r = net.run(f'{CURL} http://rebind.test/; sleep 1.2; {CURL} -f -o /dev/null http://rebind.test/; echo $?', '--allow', 'rebind.test')
    assert r.out.splitlines()[0] == f'GET / at {w.WEB4}' and r.out.splitlines()[1] != '0', r


def test_many_connections_at_once_and_slow_readers(net, netbox):
    box = netbox('--allow', 'web.test:7000')
    r = net('exec', box, '--', 'python3', '-c', '''
import socket, select
socks = [socket.create_connection(('web.test', 7000), 10) for _ in range(300)]
for s in socks: s.sendall(b'hello')
for s in socks:
    s.settimeout(10); assert s.recv(10) == b'hello'
slow = socks[0]
slow.setblocking(False)
sent = 0
try:
    while True: sent += slow.send(b'\\n' + b'x' * 65535)
except BlockingIOError: pass
fast = socks[1]; fast.sendall(b'still'); assert fast.recv(10) == b'still'
slow.settimeout(10); got = 0
while got < sent: got += len(slow.recv(1 << 20))
print('ok', sent > 100000)
''', timeout=60)
    assert r.out == 'ok True\n', r
    caylib.wait_until(lambda: len(net.events(box, 'net.close')) == 300, what='all ends')
    state = net.world.ask('state')
    closes = net.events(box, 'net.close')
    assert sum(c['up'] for c in closes) == state['up'] and sum(c['down'] for c in closes) == state['down']


def test_a_sandbox_that_ends_has_an_end_for_each_connection(net):
    dial = 'import socket, os; s = [socket.create_connection((\'web.test\', 7000), 5) for _ in range(50)]; s[9].sendall(b\'x\\n\'); s[9].recv(1); '
    for script in (f'{CURL} -o /dev/null http://web.test/bytes/1000',  # the client's own end is just before
                   f'python3 -c "{dial} os._exit(0)"',
                   f'python3 -c "{dial} os.read(0, 1)" <&3 & sleep 1'):
        box = net.create('--allow', 'web.test', '--allow', 'web.test:7000')
        net('exec', box, '--', 'sh', '-c', f'mkfifo /tmp/f; exec 3<>/tmp/f; {script}', check=True)
        net('kill', box, check=True)
        events = net.events(box)
        connects = [e['seq'] for e in events if e['kind'] == 'net.connect']
        closes = [e for e in events if e['kind'] == 'net.close']
        assert connects and sorted(e['parent'] for e in closes) == connects, script


def test_the_kernel_remembers_sockets_and_forgets_connections(net, netbox):
    box = netbox('--allow', 'web.test:7000')
    knobs = {'ipv4/tcp_fin_timeout': '70'} | {f'netfilter/nf_conntrack_tcp_timeout_{state}': '2' for state in (
        'time_wait', 'close', 'close_wait', 'fin_wait', 'last_ack')}
    for name, value in knobs.items():
        assert net('exec', box, '--', 'cat', f'/proc/sys/net/{name}', check=True).out.strip() == value, name
        assert net('exec', box, '--', 'sh', '-c', f'echo 9 >/proc/sys/net/{name}').code != 0, name


def test_short_connections_and_forked_children_are_attributed(net, netbox):
    box = netbox('--allow', 'web.test:7000')
    net('exec', box, '--', 'true', check=True)
    # A bystander of another call that connects to the same place all the time.
    with net.popen('exec', box, '--', '/usr/bin/python3', '-c', '''
import socket, time
print('go', flush=True)
for _ in range(40):
    s = socket.create_connection(('web.test', 7000), 5); s.sendall(b'bystander!\\n'); s.recv(20); s.close(); time.sleep(0.02)
''', stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == 'go\n'
        r = net('exec', box, '--', '/usr/bin/python3', '-c', '''
import os, socket
for _ in range(20): socket.create_connection(('web.test', 7000), 5).close()
def child():
    s = socket.create_connection(('web.test', 7000), 5); s.sendall(b'short\\n'); os._exit(0)
pids = []
for _ in range(30):
    pid = os.fork()
    if pid == 0: child()
    pids.append(pid); os.waitpid(pid, 0)
inherited = socket.create_connection(('web.test', 7000), 5)
pid = os.fork()
if pid == 0: inherited.sendall(b'made by the parent, used by the child\\n'); inherited.recv(100); os._exit(0)
os.waitpid(pid, 0)
print(os.getpid(), pid, *pids)
''', check=True)
        p.wait()
    parent, heir, *children = map(int, r.out.split())
    closes = {}

    def all_ended():
        closes.update({e['parent']: e for e in net.events(box, 'net.close')})
        return len(closes) == 40 + 51
    caylib.wait_until(all_ended, what='all ends')
    connects = net.events(box, 'net.connect')
    if not caylib.ROOTFUL:  # without control groups who is gone cannot be found; but nobody is taken for another
        assert all(e.get('call') in (None, 2 if closes[e['seq']]['up'] == 11 else 3) for e in connects)
        assert sum(e.get('call') == 2 for e in connects) == 40
        return
    by_call = {call: [e for e in connects if e['call'] == call] for call in (2, 3)}
    # Told apart by what they sent: the events of each call are about the connections of that call.
    assert [closes[e['seq']]['up'] for e in by_call[2]] == [11] * 40
    assert sorted(closes[e['seq']]['up'] for e in by_call[3]) == [0] * 20 + [6] * 30 + [38]
    short = [e for e in by_call[3] if closes[e['seq']]['up'] == 6]
    # The process is the right one or, where it was gone before anybody could look, none.
    found = [e.get('process') == child for e, child in zip(short, children)]
    assert all(right or e.get('process') is None for right, e in zip(found, short))
    print(sum(found), 'of', len(found), 'short-lived processes were found')
    assert next(e for e in by_call[3] if closes[e['seq']]['up'] == 38)['process'] in (parent, heir)

# SPDX-License-Identifier: Apache-2.0
"""Ways around the gateway, all of them refused.

One sandbox may reach web.test and nothing else. Each attempt asks for a path of its own, by which
the servers tell whether it arrived: those of the world, and one on the "host", on all of its own
addresses. Controls use the same means for what is allowed, and must arrive.
"""

import json
import os
import subprocess

import pytest

import caylib
import world as w
from netlib import Net, net, netbox, world  # noqa: F401

HOST_SERVER = r'''
import http.server, socket, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        open(sys.argv[1], 'a').write(self.path + '\n')
        self.send_response(200); self.send_header('Content-Length', '4'); self.end_headers(); self.wfile.write(b'host')
    def log_message(self, *a): pass
class S(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0); super().server_bind()
s = S(('::', 80), H)
print('up', flush=True)
s.serve_forever()
'''

# What may not be reached, in every spelling that somebody's parser takes for it.
SPELLINGS = [
    '127.0.0.1', '127.1', '127.0.1', '0177.0.0.1', '0x7f.0.0.1', '0x7f000001', '2130706433', '017700000001', '127.0.0.1.',
    '127.00.00.01', '127.0.0.1 ', 'localhost', 'localhost.', 'LOCALHOST', 'a.localhost', 'LocalHost.', '0', '0.0.0.0', '0x0', '00',
    '[::1]', '[::]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[0:0:0:0:0:0:0:1]', '[64:ff9b::7f00:1]', '[64:ff9b::a9fe:a9fe]',
    '[2002:7f00:1::]', '[::127.0.0.1]', '[::ffff:0:127.0.0.1]', '[::1%lo]',
    '169.254.169.254', '0xa9fea9fe', '2852039166', '0251.0376.0251.0376', '169.254.43518', '[::ffff:169.254.169.254]', '[fe80::1]',
    '[fd00:ec2::254]', 'meta.test', 'loop.test', 'private.test', '10.99.0.10', '0xa.0x63.0x0.0xa', '174260234',
    'web.test@127.0.0.1', '127.0.0.1#web.test', '127.0.0.1%00.web.test', '127.0.0.1\\x00.web.test', 'other.test\\x00.web.test',
    'other.test', 'OTHER.TEST', 'other.test.', 'web.test.other.test', 'web.test%2eother.test', 'xn--othr-bpa.test', '\\u043ether.test',
    'other.test?web.test', 'other.test/web.test', 'other.test,web.test', ' web.test', 'web..test', '-web.test', 'web.test:80:80',
    w.OTHER4, w.HOST4, '198.18.0.1', '198.18.0.2', '198.18.9.9', '[fdca:7a1e:c0de::1]', '[fdca:7a1e:c0de:1::9999]', '255.255.255.255', '224.0.0.1',
]

INSIDE = r'''
import json, os, socket, ssl, struct, sys, time
cases = json.load(open('/cases.json'))
GW = '198.18.0.1'
def tcp(host, port):
    s = socket.create_connection((host, port), 4); s.settimeout(4); return s
def read(s):
    data = b''
    try:
        while len(data) < 65536:
            more = s.recv(65536)
            if not more: break
            data += more
    except OSError: pass
    return data
def raw(s): return s.encode('utf-8').decode('unicode_escape').encode('utf-8', 'surrogatepass') if '\\' in s else s.encode()
def connect(target, path):
    s = tcp(GW, 3128); t = raw(target)
    s.sendall(b'CONNECT ' + t + b':80 HTTP/1.1\r\nHost: ' + t + b':80\r\n\r\n')
    head = s.recv(4096)
    if b' 200 ' not in head: return
    host = t.strip(b'[]') if t.startswith(b'[') else t
    s.sendall(b'GET ' + path.encode() + b' HTTP/1.1\r\nHost: ' + t + b'\r\nConnection: close\r\n\r\n'); read(s)
def absolute(target, path):
    s = tcp(GW, 3128); t = raw(target)
    s.sendall(b'GET http://' + t + path.encode() + b' HTTP/1.1\r\nHost: ' + t + b'\r\nConnection: close\r\n\r\n'); read(s)
def socks(target, path):
    s = tcp(GW, 1080); t = raw(target).strip(b'[]')
    s.sendall(b'\5\1\0'); s.recv(2)
    s.sendall(b'\5\1\0\3' + bytes([len(t)]) + t + b'\0\x50')
    answer = s.recv(64)
    if len(answer) < 2 or answer[1] != 0: return
    s.sendall(b'GET ' + path.encode() + b' HTTP/1.1\r\nHost: ' + t + b'\r\nConnection: close\r\n\r\n'); read(s)
def direct(target, path, port=80):
    s = tcp(target.strip('[]'), port)
    s.sendall(b'GET ' + path.encode() + b' HTTP/1.1\r\nHost: ' + target.encode() + b'\r\nConnection: close\r\n\r\n'); s.shutdown(1); read(s)
def bytes_to(target, path, text, port=80):
    """Raw bytes with PATH in them."""
    s = tcp(target, port); s.sendall(raw(text.replace('PATH', path))); s.shutdown(1); read(s)
def tls(target, path, sni=None, host=None):
    c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
    s = c.wrap_socket(tcp(target, 443), server_hostname=sni)
    s.sendall(f'GET {path} HTTP/1.1\r\nHost: {host or sni or target}\r\nConnection: close\r\n\r\n'.encode()); read(s)
def nested(target, path):
    s = tcp(GW, 3128); s.sendall(b'CONNECT web.test:80 HTTP/1.1\r\nHost: web.test\r\n\r\n'); s.recv(4096)
    s.sendall(f'CONNECT {target}:80 HTTP/1.1\r\nHost: {target}\r\n\r\nGET {path} HTTP/1.1\r\nHost: {target}\r\n\r\n'.encode()); read(s)
def mptcp(target, path):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.settimeout(4); s.connect((target, 80))
    s.sendall(f'GET {path} HTTP/1.1\r\nHost: {target}\r\n\r\n'.encode()); read(s)
def fastopen(target, path):
    s = socket.socket()
    for opt in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO): s.setsockopt(socket.SOL_SOCKET, opt, struct.pack('ll', 4, 0))
    s.sendto(f'GET {path} HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n'.encode(), 0x20000000, (target, 80)); read(s)
def udp(target, path, port=80):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1); s.sendto(path.encode(), (target, port)); s.recv(10)
def options(target, path):
    s = socket.socket(socket.AF_INET6); s.settimeout(4)
    for opt in (54, 55, 59): # HOPOPTS, RTHDRDSTOPTS, DSTOPTS
        try: s.setsockopt(socket.IPPROTO_IPV6, opt, bytes([0, 0, 1, 4, 0, 0, 0, 0]))
        except OSError: pass
    s.connect((target, 80)); s.sendall(f'GET {path} HTTP/1.1\r\nHost: {target}\r\n\r\n'.encode()); read(s)
def rawip(target, path, proto=6):
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, proto); s.sendto(path.encode(), (target, 0))
def bound(target, path, source):
    s = socket.socket(); s.settimeout(4); s.bind((source, 0)); s.connect((target, 80))
    s.sendall(f'GET {path} HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n'.encode()); read(s)
def dns(target, path, qtype=1, server=GW, tcp_=False):
    q = struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, 0)
    for label in (path.strip('/') + '.' + target).split('.'): q += bytes([len(label)]) + label.encode()
    q += b'\0' + struct.pack('>HH', qtype, 1)
    if tcp_:
        s = tcp(server, 53); s.sendall(struct.pack('>H', len(q)) + q); s.recv(512); return
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.sendto(q, (server, 53)); s.recv(512)
slow = []
for case in cases:
    began = time.monotonic()
    try: globals()[case['how']](case['target'], case['path'], **case['args'])
    except Exception: pass
    if time.monotonic() - began > 3: slow.append(case['path'])
print(json.dumps(slow))
'''

SMUGGLED = {
    'two lengths': 'POST /x HTTP/1.1\\r\\nHost: web.test\\r\\nContent-Length: 4\\r\\nContent-Length: 0\\r\\n\\r\\nGET PATH HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n',
    'length and chunked': 'POST /x HTTP/1.1\\r\\nHost: web.test\\r\\nContent-Length: 6\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nGET PATH HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n',
    'unknown coding': 'POST /x HTTP/1.1\\r\\nHost: web.test\\r\\nTransfer-Encoding: xchunked\\r\\n\\r\\nGET PATH HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n',
    'folded': 'GET PATH HTTP/1.1\\r\\nHost: web.test\\r\\nX: a\\r\\n b\\r\\n\\r\\n',
    'bare LF': 'GET PATH HTTP/1.1\\nHost: other.test\\n\\n',
    'bare LF in a header': 'GET PATH HTTP/1.1\\r\\nHost: web.test\\r\\nX: a\\nHost: other.test\\r\\n\\r\\n',
    'bare CR': 'GET PATH HTTP/1.1\\r\\nHost: web.test\\r\\nX: a\\rHost: other.test\\r\\n\\r\\n',
    'blank before colon': 'GET PATH HTTP/1.1\\r\\nHost : other.test\\r\\n\\r\\n',
    'two hosts': 'GET PATH HTTP/1.1\\r\\nHost: web.test\\r\\nHost: other.test\\r\\n\\r\\n',
    'no host': 'GET PATH HTTP/1.1\\r\\n\\r\\n',
    'another host': 'GET PATH HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n',
    'another port': 'GET PATH HTTP/1.1\\r\\nHost: web.test:8080\\r\\n\\r\\n',
    'host in the target': 'GET http://other.testPATH HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n',
    'userinfo': 'GET http://web.test@other.testPATH HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n',
    'NUL in a header': 'GET PATH HTTP/1.1\\r\\nHost: web.test\\x00.other.test\\r\\n\\r\\n',
    'old version': 'GET PATH\\r\\n',
    'version 2': 'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\nGET PATH HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n',
    'bad chunk size': 'POST /x HTTP/1.1\\r\\nHost: web.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n-1\\r\\n\\r\\nGET PATH HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n',
    'huge chunk size': 'POST /x HTTP/1.1\\r\\nHost: web.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\nffffffffffffffff1\\r\\nGET PATH HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n',
    'CONNECT to the world': 'CONNECT other.test:80 HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\nGET PATH HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n',
    'second request to another host': 'GET /first HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\nGET PATH HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n',
    'Host with a tab': 'GET PATH HTTP/1.1\\r\\nHost: web.test\\tother.test\\r\\n\\r\\n',
}


def attempts():
    out = [(how, target, {}) for target in SPELLINGS for how in ('connect', 'absolute', 'socks')]
    out += [('bytes_to', 'web.test', {'text': text}) for text in SMUGGLED.values()]
    out += [('tls', 'web.test', {'sni': 'other.test'}), ('tls', 'web.test', {'sni': None}), ('tls', 'web.test', {'sni': 'WEB.TEST.other.test'}),
            ('tls', w.WEB4, {'sni': 'web.test'}), ('tls', 'other.test', {'sni': 'web.test'})]
    out += [('nested', t, {}) for t in ('other.test', w.OTHER4, '127.0.0.1')]
    plain = (w.OTHER4, w.WEB4, w.PRIVATE4, w.METADATA4, w.HOST4, '10.99.0.1')
    out += [(how, t, {}) for t in plain for how in ('direct', 'mptcp', 'fastopen', 'udp', 'rawip')]
    out += [('options', w.WEB6, {}), ('options', w.HOST6, {}), ('direct', w.WEB6, {}), ('direct', w.HOST6, {})]
    out += [('direct', '198.18.0.1', {'port': p}) for p in (15001, 80, 53, 22, 3128, 1080)]
    out += [('rawip', w.OTHER4, {'proto': p}) for p in (1, 47, 255)]
    out += [('bound', w.OTHER4, {'source': s}) for s in ('198.18.0.1', w.OTHER4, '127.0.0.1', '8.8.8.8')]
    out += [('udp', w.DNS4, {'port': p}) for p in (443, 5353, 123)]
    out += [('dns', 'other.test', {'qtype': t}) for t in (1, 28, 5, 15, 16, 33, 65, 255, 10)]
    out += [('dns', 'other.test', {'server': w.DNS4}), ('dns', 'other.test', {'tcp_': True}), ('dns', 'a' * 63 + '.' + 'b' * 63 + '.evil.test', {})]
    return out


CONTROLS = [('connect', 'web.test', {}), ('absolute', 'web.test', {}), ('socks', 'web.test', {}), ('direct', 'web.test', {}),
            ('bytes_to', 'web.test', {'text': 'GET PATH HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n'}), ('tls', 'web.test', {'sni': 'web.test'}),
            ('absolute', 'WEB.test', {}), ('connect', 'web.test.', {}), ('bound', 'web.test', {'source': '198.18.0.2'}), ('fastopen', 'web.test', {})]


def cases_of(table, letter):
    return [{'how': how, 'target': target, 'args': args, 'path': f'/{letter}{i}'} for i, (how, target, args) in enumerate(table)]


@pytest.fixture
def host_server(world):
    hits = os.path.join(world.dir, 'hits')
    open(hits, 'w', encoding='ascii').close()
    p = subprocess.Popen(['/usr/bin/python3', '-c', HOST_SERVER, hits], stdout=subprocess.PIPE, preexec_fn=lambda: world.enter(world.host))
    assert p.stdout.readline() == b'up\n'
    yield lambda: caylib.read_text(hits).split()
    p.kill()
    p.wait()
    p.stdout.close()


def test_no_way_around(net, host_server):
    table = attempts()
    assert len(table) >= 120
    cases = cases_of(table, 'b') + cases_of(CONTROLS, 'c')
    path = net.policy('cases.json', json.dumps(cases))
    script = net.policy('inside.py', INSIDE)
    r = net('run', '--ro', f'{path}:/cases.json', '--ro', f'{script}:/inside.py', '--allow', 'web.test', '--user',
            'root' if caylib.ROOTFUL else '1000', '--', '/usr/bin/python3', '/inside.py', timeout=200)
    assert r.code == 0, r
    state = net.world.ask('state')
    arrived = {q[1].split('/')[-1] for q in state['requests']} | {q[0].split('.')[0] for q in state['queries']}
    arrived |= {p.split('/')[-1] for p in host_server()}
    through = [c for c in cases if c['path'][1:] in arrived]
    assert [c for c in through if c['path'][1] == 'b'] == []
    missing = [c for c in cases if c['path'][1] == 'c' and c not in through]
    assert missing == []
    slow = json.loads(r.out.splitlines()[-1])
    assert slow == [], [c for c in cases if c['path'] in slow]


def test_outside_the_same_targets_answer(net, host_server):
    """The controls of the table: without the gateway they could all be reached."""
    code = ('import urllib.request as u, sys\n'
            'o = u.build_opener(u.ProxyHandler({}))\n'
            'for a in sys.argv[1:]: print(o.open(f"http://{a}/", timeout=5).status)')
    targets = ['127.0.0.1', '[::1]', w.HOST4, w.OTHER4, w.WEB4, w.PRIVATE4, w.METADATA4, f'[{w.WEB6}]']
    r = subprocess.run(['/usr/bin/python3', '-c', code, *targets], capture_output=True, text=True, check=True,
                       preexec_fn=lambda: net.world.enter(net.world.host))
    assert r.stdout.split() == ['200'] * len(targets)

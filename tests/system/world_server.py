# SPDX-License-Identifier: Apache-2.0
"""Servers of the test world (world.py): DNS, HTTP, HTTPS, echo, and a proxy. Counts what it serves."""

import base64
import gzip
import hashlib
import http.server
import json
import os
import select
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading
import time

import world

ZONE = {
    'web.test': [world.WEB4, world.WEB6],
    'a.web.test': [world.WEB4],
    'b.web.test': [world.WEB4],
    'git.test': [world.WEB4],
    'v6.test': [world.WEB6],
    'other.test': [world.OTHER4],
    'private.test': [world.PRIVATE4],
    'loop.test': ['127.0.0.1'],
    'loop6.test': ['::1'],
    'mapped.test': ['::ffff:127.0.0.1'],
    'zero.test': ['0.0.0.0'],
    'meta.test': [world.METADATA4],
    'self.test': [world.HOST4],
    'nat64.test': ['64:ff9b::7f00:1'],
    'dead.test': ['45.90.0.99'],
    'mixed.test': ['127.0.0.1', world.WEB4],
    'proxy.test': [world.PROXY4],
    'hang.test': [],
}
FOLDER = sys.argv[1] if len(sys.argv) > 1 else '.'
LOCK = threading.Lock()
STATE = {'queries': [], 'connections': 0, 'up': 0, 'down': 0, 'requests': [], 'proxied': [], 'rebind': 0, 'ids': [], 'chaos': []}


def count(key, n=1):
    with LOCK:
        STATE[key] += n


def note(key, value):
    with LOCK:
        STATE[key].append(value)


def dns_answer(msg):
    ident, flags, n = struct.unpack('>HHH', msg[:6])
    at, labels = 12, []
    while msg[at]:
        labels.append(msg[at + 1:at + 1 + msg[at]].decode('latin1'))
        at += 1 + msg[at]
    qtype = struct.unpack('>H', msg[at + 1:at + 3])[0]
    question = msg[12:at + 5]
    name = '.'.join(labels).lower()
    note('queries', [name, qtype])
    note('ids', ident)
    if name.endswith('hang.test'):
        return None
    if name == 'rebind.test':
        with LOCK:
            STATE['rebind'] += 1
            addrs = [world.WEB4] if STATE['rebind'] <= 2 else ['127.0.0.1']
    else:
        addrs = ZONE.get(name)
    rcode = 0 if addrs is not None else 3
    family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(qtype)
    out = []
    for a in addrs or []:
        f = socket.AF_INET6 if ':' in a else socket.AF_INET
        if f == family:
            data = socket.inet_pton(f, a)
            out.append(b'\xc0\x0c' + struct.pack('>HHIH', qtype, 1, 1, len(data)) + data)
    return struct.pack('>HHHHHH', ident, 0x8180 | rcode, 1, len(out), 0, 0) + question + b''.join(out)


class Dns(socketserver.BaseRequestHandler):
    def handle(self):
        answer = dns_answer(self.request[0])
        if answer:
            self.request[1].sendto(answer, self.client_address)


class Web(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def reply(self, code, body, **headers):
        self.send_response(code)
        self.send_header('Content-Length', str(len(body)))
        for key, value in headers.items():
            self.send_header(key.replace('_', '-'), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        note('requests', [self.command, self.path, self.headers.get('Host', '')])
        if self.headers.get('Upgrade', '').lower() == 'websocket':
            self.websocket()
        elif self.path.startswith('/repo.git/'):
            self.git(b'')
        elif self.path.startswith('/bytes/'):
            self.bytes(int(self.path.split('/')[2]))
        elif self.path.startswith('/chunked/'):
            self.chunked(int(self.path.split('/')[2]))
        elif self.path == '/slow':
            self.send_response(200)
            self.end_headers()
            self.close_connection = True
            for i in range(3):
                self.wfile.write(b'%d\n' % i)
                time.sleep(0.2)
        else:
            self.reply(200, f'{self.command} {self.path} at {self.connection.getsockname()[0]}\n'.encode())

    do_HEAD = do_DELETE = do_FOO = do_GET

    def do_POST(self):
        note('requests', [self.command, self.path, self.headers.get('Host', '')])
        if self.headers.get('Transfer-Encoding') == 'chunked':
            body = b''
            while True:
                size = int(self.rfile.readline().split(b';')[0], 16)
                body += self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    break
        else:
            body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        if self.path.startswith('/repo.git/'):
            self.git(body)
            return
        self.reply(200, hashlib.sha256(body).hexdigest().encode())

    do_PUT = do_POST

    def git(self, body):
        """git's own server, as any web server runs it."""
        path, _, query = self.path.partition('?')
        if self.headers.get('Content-Encoding') == 'gzip':
            body = gzip.decompress(body)
        env = {**os.environ, 'GIT_PROJECT_ROOT': FOLDER, 'GIT_HTTP_EXPORT_ALL': '1', 'PATH_INFO': path, 'QUERY_STRING': query,
               'REQUEST_METHOD': self.command, 'CONTENT_TYPE': self.headers.get('Content-Type', ''),
               'CONTENT_LENGTH': str(len(body)), 'GIT_PROTOCOL': self.headers.get('Git-Protocol', ''), 'HOME': FOLDER,
               'REMOTE_USER': 'test'}
        out = subprocess.run(['git', '-c', 'safe.directory=*', 'http-backend'], input=body, env=env, check=False,
                             stdout=subprocess.PIPE).stdout
        head, _, data = out.partition(b'\r\n\r\n')
        fields = dict(line.split(': ', 1) for line in head.decode().splitlines())
        self.reply(int(fields.pop('Status', '200').split()[0]), data, **fields)

    def bytes(self, n):
        self.send_response(200)
        self.send_header('Content-Length', str(n))
        self.end_headers()
        block = b'x' * 65536
        while n > 0:
            self.wfile.write(block[:n])
            n -= len(block)

    def chunked(self, n):
        self.send_response(200)
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        for i in range(n):
            piece = b'piece %d\n' % i
            self.wfile.write(b'%x\r\n%s\r\n' % (len(piece), piece))
        self.wfile.write(b'0\r\n\r\n')

    def websocket(self):
        key = self.headers['Sec-WebSocket-Key'].encode() + b'258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
        self.send_response(101)
        self.send_header('Upgrade', 'websocket')
        self.send_header('Connection', 'Upgrade')
        self.send_header('Sec-WebSocket-Accept', base64.b64encode(hashlib.sha1(key).digest()).decode())
        self.end_headers()
        self.close_connection = True
        while True:  # echo of short masked frames
            head = self.rfile.read(2)
            if len(head) < 2 or head[0] & 15 == 8:
                return
            n = head[1] & 127
            mask = self.rfile.read(4)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(n)))
            self.wfile.write(bytes([0x81, n]) + data)


class Lenient(Web):
    """Skips lines that are no request, as servers behind a balancer do."""

    def parse_request(self):
        while self.raw_requestline.startswith((b'SSH-', b'PROXY ')):
            self.raw_requestline = self.rfile.readline(65537)
        return super().parse_request()


class Echo(socketserver.BaseRequestHandler):
    """Gives back what it gets, until the end, and counts both."""

    def handle(self):
        count('connections')
        try:
            while True:
                data = self.request.recv(65536)
                if not data:
                    break
                count('up', len(data))
                self.request.sendall(data)
                count('down', len(data))
            self.request.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Chaos(socketserver.BaseRequestHandler):
    """An echo that dies after so many bytes, which the first four say; notes what each connection had."""

    def handle(self):
        up = down = 0
        last = None
        try:
            while last is None or up < last:
                data = self.request.recv(65536)
                if not data:
                    break
                if last is None:
                    last = struct.unpack('>I', data[:4])[0] or 1 << 62
                up += len(data)
                self.request.sendall(data)
                down += len(data)
            if last is not None and up >= last:
                # Closed here: socketserver would first send a FIN, and then a reset can come too late to be seen.
                self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
                self.request.close()
            else:
                self.request.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        note('chaos', [up, down])


class Silent(socketserver.BaseRequestHandler):
    """Accepts, and that is all."""

    def handle(self):
        time.sleep(60)


class Flood(socketserver.BaseRequestHandler):
    """Sends 8 MB at once and closes."""

    def handle(self):
        try:
            self.request.sendall(bytes(8 << 20))
        except OSError:
            pass


def deaf(address):
    """A port at which connections hang: its queue is full and nobody empties it."""
    s = socket.socket()
    s.bind(address)
    s.listen(0)
    held = [s]
    for _ in range(4):
        c = socket.socket()
        c.setblocking(False)
        c.connect_ex(address)
        held.append(c)
    return held


class Banner(socketserver.BaseRequestHandler):
    """Speaks first, as ssh and mail servers do."""

    def handle(self):
        try:
            self.request.sendall(b'SSH-2.0-test\r\n')
            self.request.recv(100)
        except OSError:
            pass


def relay(a, b):
    ends = {a: b, b: a}
    while True:
        for s in select.select(list(ends), [], [])[0]:
            data = s.recv(65536)
            if not data:
                return
            ends[s].sendall(data)


class Proxy(socketserver.StreamRequestHandler):
    """CONNECT, with what was asked for noted."""

    def handle(self):
        line = self.rfile.readline().decode('latin1').split()
        auth = ''
        while True:
            header = self.rfile.readline().strip()
            if not header:
                break
            if header.lower().startswith(b'proxy-authorization:'):
                auth = header.split(b':', 1)[1].strip().decode()
        note('proxied', [line[1], auth])
        host, port = line[1].rsplit(':', 1)
        with socket.create_connection((ZONE[host][0], int(port)), 5) as up:
            self.wfile.write(b'HTTP/1.1 200 fine\r\n\r\n')
            relay(self.connection, up)


class Socks(socketserver.StreamRequestHandler):
    """SOCKS5, names only, in packets of one byte; other.test it refuses."""

    def say(self, data):
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in data:
            self.connection.sendall(bytes([byte]))
            time.sleep(0.002)

    def is_welcome(self, methods):
        self.say(b'\5\0' if 0 in methods else b'\5\xff')
        return 0 in methods

    def handle(self):
        version, n = self.rfile.read(2)
        if version != 5 or not self.is_welcome(self.rfile.read(n)):
            return
        head = self.rfile.read(4)
        host = self.rfile.read(self.rfile.read(1)[0]).decode()
        port, = struct.unpack('>H', self.rfile.read(2))
        note('proxied', [f'{host}:{port}', head.hex()])
        if host == 'other.test':
            self.say(b'\5\2\0\1' + bytes(6))
            return
        with socket.create_connection((ZONE[host][0], port), 5) as up:
            self.say(b'\5\0\0\3\x07bound.x\0\1')
            relay(self.connection, up)


class SocksPassword(Socks):
    """The same for those who know the password."""

    def short(self):
        return self.rfile.read(self.rfile.read(1)[0]).decode()

    def is_welcome(self, methods):
        if 2 not in methods:
            self.say(b'\5\xff')
            return False
        self.say(b'\5\2')
        version, user, password = self.rfile.read(1)[0], self.short(), self.short()
        welcome = (version, user, password) == (1, 'me@corp', world.PASSWORD)
        self.say(b'\1\0' if welcome else b'\1\1')
        return welcome


class Threads(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, *_):
        pass


class Threads6(Threads):
    address_family = socket.AF_INET6


def serve(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main(folder):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f'{folder}/cert.pem', f'{folder}/key.pem')
    serve(socketserver.ThreadingUDPServer((world.DNS4, 53), Dns))
    for kind, address in ((Threads, world.WEB4), (Threads, world.OTHER4), (Threads, world.PRIVATE4),
                          (Threads, world.METADATA4), (Threads6, world.WEB6)):
        for port in (80, 8080):
            serve(kind((address, port), Web))
        tls = kind((address, 443), Web)
        tls.socket = context.wrap_socket(tls.socket, server_side=True, do_handshake_on_connect=False)
        serve(tls)
        serve(kind((address, 8081), Lenient))
        serve(kind((address, 7000), Echo))
        serve(kind((address, 7001), Chaos))
        serve(kind((address, 7003), Silent))
        serve(kind((address, 7004), Flood))
        serve(kind((address, 22), Banner))
        serve(kind((address, 2525), Banner))
    serve(Threads((world.PROXY4, 3128), Proxy))
    serve(Threads((world.PROXY4, 1080), Socks))
    serve(Threads((world.PROXY4, 1081), SocksPassword))
    hanging = deaf((world.WEB4, 7002))  # noqa: F841, kept open
    print('ready', flush=True)
    for line in sys.stdin:
        what, *args = json.loads(line)
        with LOCK:
            if what == 'state':
                print(json.dumps(STATE), flush=True)
            elif what == 'reset':
                STATE.update(queries=[], connections=0, up=0, down=0, requests=[], proxied=[], rebind=0, ids=[], chaos=[])
                print('null', flush=True)
    os._exit(0)


if __name__ == '__main__':
    main(sys.argv[1])

# SPDX-License-Identifier: Apache-2.0
"""cay serve: its processes, its keys, and E2B's control plane; what its clients see is in tests/e2b."""

import base64
import datetime
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import urllib.parse

import pytest

import caylib

E2B = os.path.join(caylib.ROOT, 'tests', 'e2b')


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__('localhost', timeout=30 * caylib.SLOWER)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Server:
    """A running cay serve."""

    def __init__(self, cay, *args):
        self.cay = cay
        self.process = cay.popen('serve', '--listen', '127.0.0.1:0', *args)
        text = self.process.read_until(b'/sandboxes\n').decode()
        self.said = text
        self.url = re.search(r'E2B_API_URL=(http://\S+)', text)[1]
        self.key = re.search(r'E2B_API_KEY=(\S+)', text)[1]
        self.address = self.url.removeprefix('http://')

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.finish()
        self.process.__exit__(*exc)

    def ask(self, method, path, body=None, key=None, headers=None, unix=False):
        """Status, parsed body (or text), headers."""
        c = UnixConnection(f'{self.cay.state}/cay.sock') if unix else \
            http.client.HTTPConnection(self.address, timeout=30 * caylib.SLOWER)
        sent = dict(headers or {})
        if key is not False and not unix:
            sent['X-API-Key'] = key or self.key
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        try:
            c.request(method, path, data, sent)
            r = c.getresponse()
            text = r.read().decode()
        finally:
            c.close()
        try:
            return r.status, json.loads(text), r.headers
        except ValueError:
            return r.status, text, r.headers

    def create(self, **fields):
        key = fields.pop('key', None)
        status, box, _ = self.ask('POST', '/v2/sandboxes', {'templateID': 'base', 'allow_internet_access': False, **fields}, key=key)
        assert status == 201, box
        return box

    def children(self, role):
        with open(f'/proc/{self.process.pid}/task/{self.process.pid}/children', encoding='ascii') as f:
            pids = [int(p) for p in f.read().split()]
        return [p for p in pids if role in command_of(p)]


def command_of(pid):
    try:
        with open(f'/proc/{pid}/cmdline', encoding='utf-8') as f:
            return f.read().split('\0')
    except OSError:
        return []


@pytest.fixture
def server(fresh_cay):
    with Server(fresh_cay) as s:
        yield s
        for box in s.ask('GET', '/sandboxes', unix=True)[1]:
            s.ask('DELETE', f'/sandboxes/{box["sandboxID"]}', unix=True)


def envd(box):
    return {'E2b-Sandbox-Id': box['sandboxID'], 'E2b-Sandbox-Port': '49983', 'X-Access-Token': box['envdAccessToken']}


def test_what_is_printed_can_be_used(server):
    assert re.fullmatch(r'e2b_[0-9a-f]{40}', server.key)
    curl = re.search(r"^Try: (curl .*)$", server.said, re.M)[1]
    assert subprocess.run(curl, shell=True, capture_output=True, check=True).stdout == b'[]'
    assert server.ask('GET', '/health', key=False)[0] == 200
    assert server.ask('GET', '/ready', key=False)[0] == 200


def test_only_a_known_key_is_let_in(server):
    for key in (False, 'e2b_' + '0' * 40, 'x' * 300):
        status, body, _ = server.ask('GET', '/sandboxes', key=key)
        assert (status, body['code']) == (401, 401)
        # What does not exist is not told to strangers.
        assert server.ask('GET', '/nowhere', key=key)[0] == 401
    assert server.ask('GET', '/nowhere')[0] == 404
    assert server.ask('PATCH', '/sandboxes')[0] == 405


def test_a_key_sees_its_own_sandboxes_and_no_others(server):
    other = server.cay('key', 'create', '-q', 'other').out.strip()
    box = server.create()
    path = f'/sandboxes/{box["sandboxID"]}'
    caylib.wait_until(lambda: server.ask('GET', '/sandboxes', key=other)[0] == 200, what='the new key')
    assert server.ask('GET', '/sandboxes', key=other)[1] == []
    missing = server.ask('GET', '/sandboxes/aaaaaaaaaaaa', key=other)[1]['message']
    for method, sub, body in (('GET', '', None), ('DELETE', '', None), ('POST', '/timeout', {'timeout': 5}), ('POST', '/pause', {}),
                              ('POST', '/connect', {'timeout': 5}), ('POST', '/refreshes', {}), ('POST', '/resume', {})):
        status, answer, _ = server.ask(method, path + sub, body, key=other)
        assert (status, answer['code']) == (404, 404)
        assert answer['message'] == missing.replace('aaaaaaaaaaaa', box['sandboxID'])
    assert [b['sandboxID'] for b in server.ask('GET', '/sandboxes')[1]] == [box['sandboxID']]
    # The host's user sees all of them, by the socket and on the command line.
    assert [b['sandboxID'] for b in server.ask('GET', '/sandboxes', unix=True)[1]] == [box['sandboxID']]
    assert server.cay('ls', '-q').out.split() == [box['sandboxID']]


def test_a_sandbox_without_an_owner_is_hidden_from_keys(server):
    made = server.cay('create', '-q', '--', check=True).out.strip()
    assert server.ask('GET', f'/sandboxes/{made}')[0] == 404
    assert server.ask('GET', f'/sandboxes/{made}', unix=True)[0] == 200


def test_a_fork_belongs_to_the_key_of_its_source(server):
    other = server.cay('key', 'create', '-q', 'other').out.strip()
    caylib.wait_until(lambda: server.ask('GET', '/sandboxes', key=other)[0] == 200, what='the new key')
    source = server.create()['sandboxID']
    snapshot = server.cay('snapshot', '-q', source, check=True).out.strip()
    forks = [server.cay('fork', '-q', source, check=True).out.strip()]
    assert server.ask('DELETE', f'/sandboxes/{source}')[0] == 204
    forks.append(server.cay('fork', '-q', snapshot, check=True).out.strip())  # of a source that is gone
    for fork in forks:
        assert server.ask('GET', f'/sandboxes/{fork}')[0] == 200
        assert server.ask('GET', f'/sandboxes/{fork}', key=other)[0] == 404
    own = server.cay('create', '-q', check=True).out.strip()
    assert server.ask('GET', f'/sandboxes/{server.cay("fork", "-q", own, check=True).out.strip()}')[0] == 404


def test_a_revoked_key_is_refused_within_a_second(server):
    key = server.cay('key', 'create', '-q', 'short').out.strip()
    caylib.wait_until(lambda: server.ask('GET', '/sandboxes', key=key)[0] == 200, what='the new key')
    box = server.create(key=key)
    assert server.ask('GET', '/health', headers=envd(box))[0] == 204
    stream = http.client.HTTPConnection(server.address, timeout=20 * caylib.SLOWER)
    message = json.dumps({'process': {'cmd': '/bin/sleep', 'args': ['100']}}).encode()
    stream.request('POST', '/process.Process/Start', b'\0' + len(message).to_bytes(4, 'big') + message,
                   {**envd(box), 'Content-Type': 'application/connect+json'})
    answer = stream.getresponse()
    assert b'"start"' in answer.read1()
    server.cay('key', 'revoke', 'short', check=True)
    assert b'"error"' in answer.read()  # and that is its end
    stream.close()
    began = time.monotonic()
    caylib.wait_until(lambda: server.ask('GET', '/sandboxes', key=key)[0] == 401, what='the end of the key')
    assert time.monotonic() - began < 1 * caylib.SLOWER
    assert server.ask('GET', '/health', headers=envd(box))[0] == 403
    assert 'short' not in server.cay('key', 'ls').out


def test_keys_are_stored_as_hashes(server):
    with open(f'{server.cay.state}/catalog.db', 'rb') as f, open(f'{server.cay.state}/catalog.db-wal', 'rb') as w:
        stored = f.read() + w.read()
    assert server.key[4:].encode() not in stored
    assert server.cay('key', 'create', 'default').code != 0  # the name of the first one


@pytest.mark.parametrize('body', [b'', b'[]', b'{', b'{"templateID":"base","templateID":"base"}', {'templateID': 7}, {},
                                  {'templateID': 'base', 'timeout': 0}, {'templateID': 'base', 'timeout': '9'},
                                  {'templateID': 'base', 'metadata': []}, {'templateID': 'base', 'envVars': {'A': 1}},
                                  {'templateID': 'base', 'volumeMounts': [{'name': 'v', 'path': '/v'}]}])
def test_bad_requests_make_nothing(server, body):
    status, answer, _ = server.ask('POST', '/v2/sandboxes', body)
    assert (status, answer['code']) == (400, 400)
    assert server.cay('ls', '-q').out == ''


def test_an_unknown_template_is_not_found(server):
    status, answer, _ = server.ask('POST', '/sandboxes', {'templateID': 'nope'})
    assert (status, answer['message']) == (404, "template 'nope' not found")


def test_pages_follow_each_other(server):
    made = [server.create(metadata={'n': str(i)})['sandboxID'] for i in range(3)]
    for order, want in (('asc', made), ('desc', made[::-1])):
        got, token = [], ''
        for _ in range(5):
            _, page, headers = server.ask('GET', f'/v2/sandboxes?limit=2&order={order}&nextToken={token}')
            got += [b['sandboxID'] for b in page]
            token = headers.get('x-next-token')
            if not token:
                break
        assert got == want
    assert server.ask('GET', '/v2/sandboxes?limit=0')[0] == 400
    assert server.ask('GET', '/v2/sandboxes?nextToken=x')[0] == 400
    assert [b['metadata'] for b in server.ask('GET', '/v2/sandboxes?metadata=n%3D1')[1]] == [{'n': '1'}]
    assert server.ask('GET', '/v2/sandboxes?state=paused')[1] == []


def test_the_token_of_a_sandbox_opens_that_one_only(server):
    a, b = server.create(), server.create()
    assert server.ask('GET', '/health', key=False, headers=envd(a))[0] == 204
    for token in ('', b['envdAccessToken'], a['envdAccessToken'][:-1]):
        headers = {**envd(a), 'X-Access-Token': token, 'Content-Type': 'application/json'}
        assert server.ask('POST', '/process.Process/List', {}, key=False, headers=headers)[0] == 401
    status, answer, _ = server.ask('GET', '/health', headers={**envd(a), 'E2b-Sandbox-Id': 'aaaaaaaaaaaa'})
    assert (status, answer['message']) == (502, 'The sandbox was not found')


INSIDE = r'''
import hashlib, json, socketserver, sys
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline().decode().split()
        headers = {}
        while (text := self.rfile.readline().decode().strip()):
            name, value = text.split(': ', 1)
            headers[name.lower()] = value
        if headers.get('upgrade') == 'echo':
            self.wfile.write(b'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n')
            while (data := self.rfile.readline()):
                self.wfile.write(data.upper())
            return
        body = self.rfile.read(int(headers.get('content-length', 0)))
        if line[1] == '/garbage':
            self.wfile.write(b'this is not HTTP\r\n\r\n')
            return
        out = json.dumps({'line': line, 'headers': headers, 'body': hashlib.sha256(body).hexdigest()}).encode()
        self.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' % len(out) + out)
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
Server(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
'''


def start(server, box, cmd, *args):
    """A process inside that goes on."""
    c = http.client.HTTPConnection(server.address, timeout=20 * caylib.SLOWER)
    message = json.dumps({'process': {'cmd': cmd, 'args': list(args)}}).encode()
    c.request('POST', '/process.Process/Start', b'\0' + len(message).to_bytes(4, 'big') + message,
              {**envd(box), 'Content-Type': 'application/connect+json'})
    assert b'"start"' in c.getresponse().read1()
    c.close()


def port(box, number, **more):
    return {'E2b-Sandbox-Id': box['sandboxID'], 'E2b-Sandbox-Port': str(number), **more}


def serve_inside(server, box, number, **more):
    start(server, box, 'python3', '-c', INSIDE, str(number))
    caylib.wait_until(lambda: server.ask('GET', '/', headers=port(box, number, **more))[0] == 200, what=f'port {number} inside')


def test_requests_to_ports_go_inside(server):
    box = server.create()
    status, answer, _ = server.ask('GET', '/', key=False, headers=port(box, 8000))
    assert (status, answer) == (502, {'sandboxId': box['sandboxID'], 'message': 'The sandbox is running but port is not open',
                                      'port': 8000, 'code': 502})
    serve_inside(server, box, 8000)
    body = os.urandom(3_000_000)
    status, got, _ = server.ask('POST', '/a%2Fb?q=1', body, headers=port(box, 8000, Authorization='Bearer own', Cookie='c=1'))
    assert status == 200
    assert got['line'] == ['POST', '/a%2Fb?q=1', 'HTTP/1.1']
    assert got['body'] == hashlib.sha256(body).hexdigest()
    assert got['headers']['authorization'] == 'Bearer own' and got['headers']['cookie'] == 'c=1'
    assert got['headers']['x-forwarded-for'] == '127.0.0.1'
    # By the name of the host, too.
    host = f'8000-{box["sandboxID"]}.sandboxes.test'
    status, got, _ = server.ask('GET', '/', key=False, headers={'Host': host})
    assert (status, got['headers']['host']) == (200, host)
    assert server.ask('GET', '/garbage', headers=port(box, 8000))[0] == 502
    assert server.ask('GET', '/', key=False, headers={'Host': '8000-aaaaaaaaaaaa.sandboxes.test'})[0] == 502


def test_what_opens_the_server_stays_outside(server):
    box = server.create()
    serve_inside(server, box, 8000)
    for sent in ({'X-API-Key': server.key}, {'Authorization': f'Bearer {server.key}'}, {'X-Access-Token': box['envdAccessToken']},
                 {'E2b-Traffic-Access-Token': 'tat'}):
        _, got, _ = server.ask('GET', '/', key=False, headers=port(box, 8000, **sent))
        assert not set(got['headers']) & {name.lower() for name in sent}
        assert list(sent.values())[0] not in json.dumps(got)


def test_ports_of_a_private_sandbox_need_its_token(server):
    box = server.create(network={'allowPublicTraffic': False})
    token = box['trafficAccessToken']
    assert server.create()['trafficAccessToken'] is None
    serve_inside(server, box, 8000, **{'E2b-Traffic-Access-Token': token})
    for wrong, what in (({}, 'missing'), ({'E2b-Traffic-Access-Token': token[:-1] + '-'}, 'invalid')):
        status, answer, _ = server.ask('GET', '/', headers=port(box, 8000, **wrong))
        assert (status, answer['code'], answer['sandboxId']) == (403, 403, box['sandboxID'])
        assert what in answer['message']
    assert server.ask('GET', '/health', headers=envd(box))[0] == 204  # envd has a token of its own
    path = f'/sandboxes/{box["sandboxID"]}'
    assert server.ask('POST', path + '/connect', {'timeout': 60})[1]['trafficAccessToken'] == token
    info = server.ask('GET', path)[1]
    assert (info['network']['allowPublicTraffic'], info['metadata']) == (False, {})
    status, answer, _ = server.ask('POST', '/sandboxes', {'templateID': 'base', 'metadata': {'cay/traffic': 'x'}})
    assert (status, 'reserved' in answer['message']) == (400, True)


def test_one_connection_reaches_only_what_each_request_may(server):
    """A proxy that authorised connections would let the second request in."""
    a, b = server.create(), server.create(network={'allowPublicTraffic': False})
    serve_inside(server, a, 8000)
    serve_inside(server, b, 8000, **{'E2b-Traffic-Access-Token': b['trafficAccessToken']})
    c = http.client.HTTPConnection(server.address, timeout=20 * caylib.SLOWER)
    for box, want in ((a, 200), (b, 403), (a, 200)):
        c.request('GET', '/', headers=port(box, 8000))
        r = c.getresponse()
        r.read()
        assert r.status == want
    c.close()


def upgrade(server, box, number):
    host, at = server.address.split(':')
    s = socket.create_connection((host, int(at)), timeout=20 * caylib.SLOWER)
    s.sendall(f'GET /up HTTP/1.1\r\nHost: {number}-{box["sandboxID"]}.test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n'.encode())
    f = s.makefile('rwb')
    assert f.readline().startswith(b'HTTP/1.1 101')
    while f.readline().strip():
        pass
    return s, f


def test_an_upgraded_connection_is_a_tunnel_and_ends_with_its_key(server):
    key = server.cay('key', 'create', '-q', 'short').out.strip()
    caylib.wait_until(lambda: server.ask('GET', '/sandboxes', key=key)[0] == 200, what='the new key')
    box = server.create(key=key)
    serve_inside(server, box, 8000)
    s, f = upgrade(server, box, 8000)
    for text in (b'hello\n', b'again\n'):
        f.write(text)
        f.flush()
        assert f.readline() == text.upper()
    server.cay('key', 'revoke', 'short', check=True)
    try:
        assert f.readline() == b''
    except ConnectionResetError:
        pass
    s.close()
    assert server.ask('GET', '/', headers=port(box, 8000))[0] == 403


def run_inside(server, box, text):
    return server.cay('exec', box['sandboxID'], '--', 'sh', '-c', text).out


def test_a_snapshot_is_a_template_of_its_key_only(server):
    other = server.cay('key', 'create', '-q', 'other').out.strip()
    caylib.wait_until(lambda: server.ask('GET', '/sandboxes', key=other)[0] == 200, what='the new key')
    box = server.create()
    run_inside(server, box, 'echo one >/tmp/kept')
    status, plain, _ = server.ask('POST', f'/sandboxes/{box["sandboxID"]}/snapshots', {})
    assert (status, plain['names']) == (201, [])
    run_inside(server, box, 'echo two >/tmp/kept')
    for _ in range(2):  # the second takes the name
        status, named, _ = server.ask('POST', f'/sandboxes/{box["sandboxID"]}/snapshots', {'name': 'mine'})
        assert (status, named) == (201, {'snapshotID': 'mine:default', 'names': ['mine:default']})
    server.cay('snapshot', box['sandboxID'], '--name', 'theirs', check=True)  # of the command line: hidden
    for ref, text in ((plain['snapshotID'], 'one\n'), ('mine:default', 'two\n'), ('mine', 'two\n')):
        made = server.create(templateID=ref)
        assert run_inside(server, made, 'cat /tmp/kept') == text
    assert server.ask('GET', '/snapshots')[1] == [plain, named]
    assert server.ask('GET', '/snapshots?name=mine')[1] == [named]
    assert server.ask('GET', f'/snapshots?sandboxID={box["sandboxID"]}')[1] == [plain, named]
    _, first, headers = server.ask('GET', '/snapshots?limit=1')
    assert first == [plain]
    assert server.ask('GET', f'/snapshots?limit=1&nextToken={headers["x-next-token"]}')[1] == [named]
    assert server.ask('GET', '/snapshots?limit=x')[0] == 400
    # Neither seen, nor used, nor deleted by another key.
    assert server.ask('GET', '/snapshots', key=other)[1] == []
    for ref in ('mine:default', plain['snapshotID'], 'theirs'):
        path = '/templates/' + ref.replace(':', '%3A')
        assert server.ask('POST', '/sandboxes', {'templateID': ref}, key=other)[0] == 404
        assert server.ask('DELETE', path, key=other)[0] == 404
    assert server.ask('POST', '/sandboxes', {'templateID': 'theirs'})[0] == 404
    assert server.ask('DELETE', '/templates/mine%3Adefault')[0] == 204
    assert server.ask('DELETE', '/templates/mine%3Adefault')[0] == 404
    assert server.ask('GET', '/snapshots')[1] == [plain]
    assert server.ask('POST', f'/sandboxes/{box["sandboxID"]}/snapshots', {'name': 'a b'})[0] == 400
    assert server.ask('POST', '/sandboxes/aaaaaaaaaaaa/snapshots', {})[0] == 404


def test_forks_belong_to_the_key_and_have_a_time_of_their_own(server):
    box = server.create(metadata={'k': 'v'}, network={'allowPublicTraffic': False})
    run_inside(server, box, 'echo before >/tmp/kept')
    status, forks, _ = server.ask('POST', f'/sandboxes/{box["sandboxID"]}/fork', {'count': 2, 'timeout': 1000})
    assert (status, len(forks)) == (201, 2)
    for fork in forks:
        made = fork['sandbox']
        assert run_inside(server, made, 'cat /tmp/kept') == 'before\n'
        info = server.ask('GET', f'/sandboxes/{made["sandboxID"]}')[1]
        assert info['metadata'] == {'k': 'v'} and made['trafficAccessToken']
        assert 900 < when(info['endAt']) - time.time() < 1001
        assert server.ask('GET', '/health', headers=envd(made))[0] == 204
    for count in (0, 101, 'x'):
        assert server.ask('POST', f'/sandboxes/{box["sandboxID"]}/fork', {'count': count})[0] == 400
    assert server.ask('POST', '/sandboxes/aaaaaaaaaaaa/fork', {})[0] == 404


def when(text):
    return datetime.datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp()


@pytest.mark.parametrize('field, value', [('egressProxy', {'address': 'x:1'}), ('rules', {'a.test': [{}]}), ('maskRequestHost', 'x'),
                                          ('allowOut', 'a.test'), ('allowOut', [7]), ('allowOut', ['10.0.0.0/8']),
                                          ('allowOut', ['169.254.169.254']), ('allowOut', ['a b']), ('denyOut', ['a.test'])])
def test_rules_of_the_network_that_cannot_be_kept_are_refused(server, field, value):
    status, answer, _ = server.ask('POST', '/v2/sandboxes', {'templateID': 'base', 'network': {field: value}})
    assert (status, answer['code']) == (400, 400), answer
    assert server.cay('ls', '-q').out == ''


def decision(server, box, host, *more):
    """0: what holds in the sandbox now allows it, 6: denies it."""
    file = f'{server.cay.state}/shown.yaml'
    with open(file, 'w', encoding='utf-8') as f:
        f.write(server.cay('policy', 'show', box['sandboxID'], check=True).out)
    return server.cay('policy', 'explain', file, '--host', host, *more).code


def test_rules_of_the_network_hold_and_can_be_changed(server):
    box = server.create(allow_internet_access=True, network={'allowOut': ['a.test', '192.0.9.0/24'], 'denyOut': ['0.0.0.0/0']})
    path = f'/sandboxes/{box["sandboxID"]}'
    assert decision(server, box, 'a.test') == 0
    assert decision(server, box, 'b.test', '--address', '192.0.3.5') == 6
    assert decision(server, box, 'b.test', '--address', '192.0.9.5') == 0
    assert server.ask('GET', path)[1]['allowInternetAccess'] is False
    assert server.ask('PUT', path + '/network', {'denyOut': ['192.0.9.7']})[0] == 204
    assert (decision(server, box, '192.0.9.7'), decision(server, box, '192.0.9.8')) == (6, 0)
    assert server.ask('GET', path)[1]['allowInternetAccess'] is True
    assert server.ask('PUT', path + '/network', {'allow_internet_access': False})[0] == 204
    assert decision(server, box, '192.0.9.8') == 6
    assert server.ask('PUT', path + '/network', {'rules': {'a.test': [{}]}})[0] == 400
    assert server.ask('PUT', '/sandboxes/aaaaaaaaaaaa/network', {})[0] == 404
    # One that was made without a network stays without one.
    none = server.create()
    status, answer, _ = server.ask('PUT', f'/sandboxes/{none["sandboxID"]}/network', {})
    assert status in (400, 409), answer


def test_requests_are_counted_by_route_and_code(server):
    box = server.create()
    for _ in range(3):
        server.ask('GET', '/sandboxes/aaaaaaaaaaaa')
    server.ask('GET', f'/secret-name-{box["sandboxID"]}')
    server.ask('GET', '/health', headers=envd(box))
    server.ask('GET', '/', headers=port(box, 8000))
    status, text, headers = server.ask('GET', '/metrics')
    assert (status, headers['Content-Type']) == (200, 'text/plain; version=0.0.4')
    counted = dict(line.rsplit(' ', 1) for line in text.splitlines() if not line.startswith('#'))

    def count(method, route, code):
        return counted.get(f'cay_requests_total{{method="{method}",route="{route}",code="{code}"}}')
    assert count('GET', '/sandboxes/{id}', 404) == '3'
    assert count('POST', '/v2/sandboxes', 201) == '1'
    assert count('', 'none', 404) == '1' and box['sandboxID'] not in text
    assert count('GET', '/health', 204) == '1'
    assert count('', 'port', 502) == '1'
    assert counted['cay_connections'] == '1'
    assert server.ask('GET', '/metrics', key=False)[0] == 401


def test_the_front_is_jailed(server, mode):
    front, = server.children('serve-front')
    with open(f'/proc/{front}/status', encoding='ascii') as f:
        status = dict(line.split(':\t', 1) for line in f.read().splitlines() if ':\t' in line)
    assert (status['CapEff'], status['CapBnd'], status['NoNewPrivs'], status['Seccomp']) == ('0' * 16, '0' * 16, '1', '2')
    if mode == 'rootful':
        assert status['Uid'].split()[0] == '65534'
        assert os.listdir(f'/proc/{front}/root') == []
        assert os.readlink(f'/proc/{front}/ns/net') != os.readlink('/proc/self/ns/net')


def test_a_front_or_worker_that_dies_is_replaced_and_sandboxes_stay(server):
    box = server.create()
    path = f'/sandboxes/{box["sandboxID"]}'
    for role in ('serve-front', 'serve-worker'):
        for pid in server.children(role):
            os.kill(pid, signal.SIGKILL)

        def answers():
            try:
                return server.ask('GET', path)[0] == 200
            except OSError:
                return False
        caylib.wait_until(answers, what=f'an answer after the death of {role}')
    # A token is made of the server's key: it holds.
    assert server.ask('GET', '/health', headers=envd(box))[0] == 204


def open_stream(server, box, rpc, **message):
    """The answer of a streaming RPC of process.Process, which goes on."""
    c = http.client.HTTPConnection(server.address, timeout=20 * caylib.SLOWER)
    text = json.dumps(message).encode()
    c.request('POST', f'/process.Process/{rpc}', b'\0' + len(text).to_bytes(4, 'big') + text,
              {**envd(box), 'Content-Type': 'application/connect+json'})
    return c.getresponse()


def next_event(stream):
    head = stream.read(5)
    return json.loads(stream.read(int.from_bytes(head[1:], 'big')))


def test_a_new_front_finds_the_processes_of_the_old_one(server):
    box = server.create()

    def ask(rpc, **message):
        return server.ask('POST', f'/process.Process/{rpc}', message, headers={**envd(box), 'Content-Type': 'application/json'})
    script = 'echo before; read line; echo "got $line"; exit 3'
    first = open_stream(server, box, 'Start', process={'cmd': '/bin/sh', 'args': ['-c', script], 'envs': {'A': '1'}}, stdin=True, tag='mine')
    pid = next_event(first)['event']['start']['pid']
    assert 'stdout' in next_event(first)['event']['data']
    server.cay('exec', '-d', box['sandboxID'], '--', 'sleep', '600', check=True)  # the host's own is not the key's
    old, = server.children('serve-front')
    os.kill(old, signal.SIGKILL)
    first.close()

    def listed():
        try:
            return ask('List')[1]['processes']
        except (OSError, http.client.HTTPException):
            return None
    found = caylib.wait_until(listed, what='an answer of the next front')
    assert server.children('serve-front') != [old]
    assert found == [{'config': {'cmd': '/bin/sh', 'args': ['-c', script], 'envs': {}, 'cwd': ''}, 'pid': pid, 'tag': 'mine'}]
    again = open_stream(server, box, 'Connect', process={'tag': 'mine'})
    assert next_event(again)['event'] == {'start': {'pid': pid}}
    assert ask('SendInput', process={'pid': pid}, input={'stdin': base64.b64encode(b'word\n').decode()})[0] == 200
    assert base64.b64decode(next_event(again)['event']['data']['stdout']) == b'got word\n'  # and not what was said before
    assert next_event(again)['event']['end']['exitCode'] == 3
    again.close()
    assert ask('List')[1] == {'processes': []}
    assert ask('SendSignal', process={'pid': pid}, signal='SIGNAL_SIGKILL')[0] == 404


def test_a_tag_that_is_too_long_for_an_id_does_not_hinder_a_process(server):
    box = server.create()
    stream = open_stream(server, box, 'Start', process={'cmd': '/bin/true'}, tag='t' * 100)
    assert next_event(stream)['event']['start']['pid'] > 0
    assert 'end' in next_event(stream)['event']
    stream.close()


def test_sigterm_ends_the_server_and_no_sandbox(fresh_cay):
    with Server(fresh_cay) as first:
        box = first.create()
        first.process.send_signal(signal.SIGTERM)
        assert first.process.finish().code == 0
    assert not os.path.exists(f'{fresh_cay.state}/cay.sock')
    with Server(fresh_cay) as second:
        assert 'YOUR_KEY' in second.said  # there is one already
        assert second.ask('GET', '/health', key=first.key, headers=envd(box))[0] == 204
        assert second.ask('DELETE', f'/sandboxes/{box["sandboxID"]}', key=first.key)[0] == 204
        assert second.ask('DELETE', f'/sandboxes/{box["sandboxID"]}', key=first.key)[0] == 404


def test_a_second_server_is_refused(server):
    second = server.cay('serve')
    assert second.code != 0 and 'a server runs already' in second.err
    port = server.cay('serve', '--listen', server.address, '--socket', f'{server.cay.state}/other.sock')
    assert port.code != 0 and 'already in use' in port.err


def test_the_socket_is_for_its_owner(server):
    assert os.stat(f'{server.cay.state}/cay.sock').st_mode & 0o777 == 0o600


def test_the_npm_client_works_with_it(server, mode):
    if not shutil.which('node') or not os.path.isdir(f'{E2B}/node_modules/e2b'):
        pytest.skip('the npm package e2b is not installed (scripts/setup e2b)')
    env = {**os.environ, 'E2B_API_URL': server.url, 'E2B_SANDBOX_URL': server.url, 'E2B_API_KEY': server.key,
           'CAY_TEST_USER': 'root' if mode == 'rootful' else 'user'}
    done = subprocess.run(['node', f'{E2B}/client.mjs'], env=env, capture_output=True, timeout=180 * caylib.SLOWER, check=False)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    assert done.stdout.count(b'ok - ') == done.stdout.count(b'\n') > 110


def test_the_python_client_works_with_it(server, mode):
    """Each claim with the sync classes and with the async ones."""
    python = f'{E2B}/venv/bin/e2b-ready'
    if not os.path.exists(python):
        pytest.skip('the Python package e2b is not installed (scripts/setup e2b)')
    env = {**os.environ, 'E2B_API_URL': server.url, 'E2B_SANDBOX_URL': server.url, 'E2B_VOLUME_API_URL': server.url,
           'E2B_API_KEY': server.key, 'CAY_TEST_USER': 'root' if mode == 'rootful' else 'user'}
    done = subprocess.run([python, f'{E2B}/client.py'], env=env, capture_output=True, timeout=300 * caylib.SLOWER, check=False)
    assert done.returncode == 0, '\n'.join(line for line in done.stdout.decode().splitlines() if not line.startswith('ok')) + done.stderr.decode()
    assert done.stdout.count(b'ok - ') == done.stdout.count(b'\n') > 200


def test_secrets_are_of_their_key(server):
    other = server.cay('key', 'create', 'other', check=True).out.strip().splitlines()[-1]
    status, made, _ = server.ask('POST', '/secrets', {'name': 'token', 'value': 'v-a-l-u-e'})
    assert status == 201 and 'v-a-l-u-e' not in json.dumps(made)
    assert server.ask('POST', '/secrets', {'name': 'token', 'value': 'x'})[0] == 409
    caylib.wait_until(lambda: server.ask('GET', '/secrets', key=other)[0] == 200, what='the new key')
    assert server.ask('GET', '/secrets', key=other)[1] == []
    for ref in ('token', made['secretID']):
        assert server.ask('GET', f'/secrets/{ref}', key=other)[0] == 404
        assert server.ask('POST', f'/secrets/{ref}', {'value': 'y'}, key=other)[0] == 404
        assert server.ask('DELETE', f'/secrets/{ref}', key=other)[0] == 404
    assert server.ask('GET', '/secrets', unix=True)[1] == []
    assert os.stat(f'{server.cay.state}/catalog.db').st_mode & 0o77 == 0
    assert server.ask('DELETE', '/secrets/token')[0] == 204


def test_a_signature_opens_files_only(server):
    """It is made for one path; no other request may go by it."""
    box = server.create()
    place = {k: v for k, v in envd(box).items() if k != 'X-Access-Token'}
    text = f'x:write::{box["envdAccessToken"]}'
    signature = 'v1_' + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip('=')
    query = urllib.parse.urlencode({'path': 'x', 'signature': signature})
    body = {'Content-Type': 'application/octet-stream'}
    assert server.ask('POST', f'/files?{query}', b'1', key=False, headers={**place, **body})[0] == 200
    assert server.ask('POST', f'/files?{query}', b'1', key=False, headers=body)[0] == 200
    for path in ('/process.Process/StreamInput', '/process.Process/List', '/filesystem.Filesystem/CreateWatcher'):
        assert server.ask('POST', f'{path}?{query}', b'{}', key=False, headers={**place, 'Content-Type': 'application/json'})[0] == 401
        assert server.ask('POST', f'{path}?{query}', b'{}', key=False)[0] == 401


def test_only_a_use_wakes_a_sandbox(server):
    box = server.create(autoPause=True, autoResume={'enabled': True}, network={'allowPublicTraffic': False})
    state = lambda: server.ask('GET', f'/sandboxes/{box["sandboxID"]}')[1]['state']
    assert server.ask('POST', f'/sandboxes/{box["sandboxID"]}/pause', {})[0] == 204
    assert server.ask('GET', '/health', key=False, headers=envd(box))[0] == 502
    port = {'E2b-Sandbox-Id': box['sandboxID'], 'E2b-Sandbox-Port': '8000'}
    assert server.ask('GET', '/', key=False, headers=port)[0] == 502
    bad = {**envd(box), 'X-Access-Token': '0' * 32, 'Content-Type': 'application/json'}
    assert server.ask('POST', '/process.Process/List', {}, key=False, headers=bad)[0] == 401
    assert state() == 'paused'
    server.ask('GET', '/', key=False, headers={**port, 'E2b-Traffic-Access-Token': box['trafficAccessToken']})
    assert state() == 'running'
    assert server.ask('POST', '/v2/sandboxes', {'templateID': 'base', 'autoResume': {'enabled': True}})[0] == 400


def test_a_client_that_left_before_it_was_accepted_is_nobody(server):
    """Its address is not known any more. That must not make it a client of the unix socket, which needs no key."""
    box = server.create()
    front, = server.children('serve-front')
    host, port = server.address.split(':')
    os.kill(front, signal.SIGSTOP)
    try:
        for _ in range(8):
            with socket.create_connection((host, int(port)), timeout=10 * caylib.SLOWER) as s:
                s.sendall(b'DELETE /sandboxes/%s HTTP/1.1\r\nHost: localhost\r\n\r\n' % box['sandboxID'].encode())
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    finally:
        os.kill(front, signal.SIGCONT)
    server.ask('GET', '/health')
    assert server.ask('GET', f'/sandboxes/{box["sandboxID"]}')[0] == 200


def signed(box, path, **more):
    """A URL of /files without a token, as the SDKs make it."""
    text = f'{path}:read::{box["envdAccessToken"]}'
    signature = 'v1_' + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip('=')
    return '/files?' + urllib.parse.urlencode({'path': path, 'signature': signature, **more})


def test_a_signed_url_is_for_the_user_that_it_names(server, mode):
    box = server.create()
    place = {k: v for k, v in envd(box).items() if k != 'X-Access-Token'}
    root = {'Authorization': 'Basic ' + base64.b64encode(b'root:').decode()}
    if mode == 'rootful':
        assert server.ask('POST', '/files?path=note&username=root', b'of root', key=False,
                          headers={**envd(box), 'Content-Type': 'application/octet-stream'})[0] == 200
        assert server.ask('GET', '/files?path=note', key=False, headers={**envd(box), **root})[:2] == (200, 'of root')
    url = signed(box, 'note')
    without = server.ask('GET', url, key=False, headers=place)[:2]
    assert without[0] == 404 and 'does not exist' in without[1]['message']
    assert server.ask('GET', url, key=False, headers={**place, **root})[:2] == without
    assert server.ask('GET', signed(box, 'note', username='root'), key=False, headers=place)[0] == 401


def test_health_makes_nobody_known(server):
    """Else the limit for clients without a key would hold for none."""
    box = server.create()
    heads = (b'Host: localhost\r\n', b'Host: localhost\r\nE2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: 49983\r\n' % box['sandboxID'].encode())
    host, port = server.address.split(':')
    for head in heads:
        clients = []
        answered = 0
        try:
            for _ in range(270):
                s = socket.create_connection((host, int(port)), timeout=30 * caylib.SLOWER)
                clients.append(s)
                try:
                    s.sendall(b'GET /health HTTP/1.1\r\n' + head + b'\r\n')
                    answered += s.recv(4096).startswith(b'HTTP/1.1 20')
                except ConnectionError:
                    pass
        finally:
            for s in clients:
                s.close()
        assert 200 < answered <= 256


def test_the_socket_replaces_no_other_file(fresh_cay, tmp_path):
    path = tmp_path / 'precious'
    path.write_text('x')
    with fresh_cay.popen('serve', '--socket', str(path)) as process:
        caylib.wait_until(lambda: process.poll() is not None or not path.is_file(), what='the end, or harm')
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        done = process.finish()
    assert path.read_text() == 'x'
    assert done.code != 0 and 'not a socket' in done.err, done


def test_a_list_without_end_is_refused(server):
    """All clients wait while one list is sorted."""
    box = server.create()
    script = 'import os; os.makedirs("/tmp/many"); [os.close(os.open(f"/tmp/many/{i}", os.O_CREAT)) for i in range(50000)]'
    server.cay('exec', box['sandboxID'], '--', 'python3', '-c', script, check=True)
    for n, code in ((50000, None), (50001, 'resource_exhausted')):
        if code:
            server.cay('exec', box['sandboxID'], '--', 'touch', '/tmp/many/one-more', check=True)
        status, answer, _ = server.ask('POST', '/filesystem.Filesystem/ListDir', {'path': '/tmp/many'}, key=False,
                                       headers={**envd(box), 'Content-Type': 'application/json'})
        assert (status, answer.get('code'), len(answer.get('entries', []))) == (429 if code else 200, code, 0 if code else n)


def test_input_that_nobody_reads_is_bounded(server):
    """The front keeps it, and has one memory for all sandboxes."""
    box = server.create()
    rpc = {**envd(box), 'Content-Type': 'application/json'}
    message = json.dumps({'process': {'cmd': 'sleep', 'args': ['1000']}, 'stdin': True}).encode()
    clients, pids = [], []
    host, port = server.address.split(':')
    try:
        for _ in range(8):
            c = http.client.HTTPConnection(host, int(port), timeout=30 * caylib.SLOWER)
            clients.append(c)
            c.request('POST', '/process.Process/Start', struct.pack('>BI', 0, len(message)) + message,
                      {**envd(box), 'Content-Type': 'application/connect+json'})
            r = c.getresponse()
            _, n = struct.unpack('>BI', r.read(5))
            pids.append(json.loads(r.read(n))['event']['start']['pid'])
        data = base64.b64encode(b'x' * 3_000_000).decode()
        answers = [server.ask('POST', '/process.Process/SendInput', {'process': {'pid': pid}, 'input': {'stdin': data}}, key=False, headers=rpc)
                   for pid in pids]
    finally:
        for c in clients:
            c.close()
    assert [a[0] for a in answers[:5]] == [200] * 5 and answers[-1][0] == 429, answers
    # What they had does not count for others.
    for pid in pids:
        server.ask('POST', '/process.Process/SendSignal', {'process': {'pid': pid}, 'signal': 'SIGNAL_SIGKILL'}, key=False, headers=rpc)
    message = json.dumps({'process': {'cmd': 'sh', 'args': ['-c', 'wc -c']}, 'stdin': True}).encode()
    c = http.client.HTTPConnection(host, int(port), timeout=30 * caylib.SLOWER)
    c.request('POST', '/process.Process/Start', struct.pack('>BI', 0, len(message)) + message, {**envd(box), 'Content-Type': 'application/connect+json'})
    r = c.getresponse()
    _, n = struct.unpack('>BI', r.read(5))
    name = {'process': {'pid': json.loads(r.read(n))['event']['start']['pid']}}
    caylib.wait_until(lambda: server.ask('POST', '/process.Process/SendInput', {**name, 'input': {'stdin': data}}, key=False, headers=rpc)[0] == 200,
                      what='room for input')
    assert server.ask('POST', '/process.Process/CloseStdin', name, key=False, headers=rpc)[0] == 200
    assert base64.b64encode(b'3000000\n') in r.read()
    c.close()

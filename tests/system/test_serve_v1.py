# SPDX-License-Identifier: Apache-2.0
"""cay serve: the native API. Every answer is checked against the OpenAPI document that the server gives."""

import base64
import concurrent.futures
import hashlib
import io
import json
import os
import signal
import socket
import struct
import subprocess
import tarfile
import urllib.parse

import pytest

import caylib
from test_serve import Server, UnixConnection

jsonschema = pytest.importorskip('jsonschema')
DOCUMENT = os.path.join(caylib.ROOT, 'docs', 'openapi.json')
S = caylib.SLOWER


def strict(schema):
    """Answers have no field that the document does not name."""
    if isinstance(schema, dict):
        if 'properties' in schema and 'additionalProperties' not in schema:
            schema = {**schema, 'additionalProperties': False}
        return {k: strict(v) for k, v in schema.items()}
    return [strict(v) for v in schema] if isinstance(schema, list) else schema


class Native:
    """A server."""

    driven = set()  # operations, by all tests of this file

    def __init__(self, server):
        self.server = server
        self.document = server.ask('GET', '/v1/openapi.json', unix=True)[1]
        self.routes = [(m.upper(), p, op) for p, ops in self.document['paths'].items() for m, op in ops.items()]
        self.schemas = strict(self.document)

    def route(self, method, path):
        want = urllib.parse.urlsplit(path).path.split('/')
        for m, pattern, op in self.routes:
            parts = pattern.split('/')
            if m == method and len(parts) == len(want) and all(a == b or a.startswith('{') for a, b in zip(parts, want)):
                return op
        return None

    def check(self, op, status, body, headers):
        self.driven.add(op['operationId'])
        answers = op['responses']
        answer = answers.get(str(status), answers['default'])
        assert str(status) in answers or status >= 400, (op['operationId'], status, body)
        schema = answer.get('content', {}).get('application/json', {}).get('schema')
        if schema and headers.get('content-type') == 'application/json':
            jsonschema.Draft202012Validator({**strict(schema), 'components': self.schemas['components']}).validate(body)

    def ask(self, method, path, body=None, want=None, unix=True, **more):
        status, answer, headers = self.server.ask(method, '/v1' + path, body, unix=unix, **more)
        op = self.route(method, '/v1' + path)
        if op:
            self.check(op, status, answer, headers)
        elif not (status == 404 or status == 405 or status == 401):
            raise AssertionError((method, path, status))
        assert want is None or status == want, (status, answer)
        return answer

    def raw(self, method, path, body=None, headers=None):
        c = UnixConnection(f'{self.server.cay.state}/cay.sock')
        try:
            c.request(method, '/v1' + path, body, headers or {})
            r = c.getresponse()
            data = r.read()
        finally:
            c.close()
        op = self.route(method, '/v1' + path)
        self.check(op, r.status, None, {})
        return r.status, data, r.headers

    def make(self, **fields):
        return self.ask('POST', '/sandboxes', fields, 201)['id']

    def run(self, box, shell, **fields):
        return self.ask('POST', f'/sandboxes/{box}/calls?wait_ms=60000', {'shell': shell, **fields}, 200)


@pytest.fixture
def api(fresh_cay):
    with Server(fresh_cay) as s:
        n = Native(s)
        yield n
        for box in n.ask('GET', '/sandboxes?limit=1000')['items']:
            n.ask('DELETE', f'/sandboxes/{box["id"]}')


def events(data):
    out = []
    for block in data.decode().strip().split('\n\n'):
        e = dict(line.split(': ', 1) for line in block.split('\n'))
        out.append((e['event'], e.get('id'), json.loads(e['data'])))
    return out


def error(answer):
    return answer['error']['code']


# --- the document


def test_the_committed_document_is_the_servers(api):
    text = json.dumps(api.document, indent=1, ensure_ascii=False) + '\n'
    if os.environ.get('CAY_WRITE_OPENAPI'):
        with open(DOCUMENT, 'w', encoding='utf-8') as f:
            f.write(text)
    with open(DOCUMENT, encoding='utf-8') as f:
        assert f.read() == text, 'run this test with CAY_WRITE_OPENAPI=1'
    assert api.document['openapi'] == '3.1.0'
    names = [op['operationId'] for _, _, op in api.routes]
    assert len(names) == len(set(names))
    jsonschema.Draft202012Validator.check_schema(api.document['components']['schemas'])


# --- sandboxes


def test_a_sandbox_from_its_beginning_to_its_end(api):
    made = api.ask('POST', '/sandboxes', {'name': 'box', 'labels': {'task': '42'}, 'env': {'A': 'b'}, 'ttl_ms': 3600000,
                                          'limits': {'files': 500}}, 201)
    assert made['name'] == 'box'
    row, = api.ask('GET', '/sandboxes', want=200)['items']
    assert (row['id'], row['state'], row['labels']) == (made['id'], 'running', {'task': '42'})
    # The same object as of the command line.
    listed = json.loads(api.server.cay('ls', '--json').out)
    assert {**listed, 'ttl_left_ms': 0} == {**row, 'ttl_left_ms': 0}
    shown = api.ask('GET', '/sandboxes/box', want=200)
    assert shown['options']['env_keys'] == ['A']
    assert api.ask('PATCH', '/sandboxes/box', {'ttl_ms': 0}, 200)['ttl_left_ms'] is None
    assert api.ask('POST', '/sandboxes/box/pause', want=200)['state'] == 'paused'
    assert error(api.ask('POST', '/sandboxes/box/calls', {'argv': ['true']}, 409)) == 'sandbox.not_running'
    assert api.ask('POST', '/sandboxes/box/resume', {}, 200)['state'] == 'running'
    assert api.ask('GET', '/sandboxes/box/why', want=200)['state'] == 'running'
    api.ask('DELETE', '/sandboxes/box', want=204)
    assert error(api.ask('DELETE', '/sandboxes/box', want=404)) == 'sandbox.unknown'
    assert api.ask('GET', f'/sandboxes/{made["id"]}/why', want=200)['cause'] == 'killed'
    assert made['id'] in [r['id'] for r in api.ask('GET', '/ended?limit=10', want=200)['items']]


def test_pages_hold_every_sandbox_once(api):
    made = [b['id'] for b in api.ask('POST', '/sandboxes', {'count': 5, 'labels': {'a': 'x y'}}, 201)['items']]
    other = api.make()
    for order in ('asc', 'desc'):
        got, after = [], ''
        while after is not None:
            page = api.ask('GET', f'/sandboxes?limit=2&order={order}&label={urllib.parse.quote("a=x y")}&state=running{after and "&after=" + after}', want=200)
            got += [b['id'] for b in page['items']]
            after = page['next']
        assert sorted(got) == sorted(made)
    assert other in [b['id'] for b in api.ask('GET', '/sandboxes?order=desc&limit=1')['items']]
    for bad in ('limit=0', 'limit=x', 'after=7', 'order=up', 'nothing=1', 'limit=1&limit=2'):
        assert api.ask('GET', f'/sandboxes?{bad}', want=400)['error']['field'] in bad


def test_a_wrong_field_is_named(api):
    for body, field in (({'nmae': 'a'}, 'nmae'), ({'name': 7}, 'name'), ({'env': {'A': 1}}, 'env.A'), ({'ttl_ms': -1}, 'ttl_ms'),
                        ({'limits': {'memory': 1}}, 'limits.memory'), ({'dirs': [{'path': 5}]}, 'dirs[0].path'), ({'dirs': [{}]}, 'dirs[0].path'),
                        ({'on_timeout': 'never'}, 'on_timeout'), ({'count': 1000}, 'count'), ({'network': {'preset': 'all'}}, 'network.preset')):
        e = api.ask('POST', '/sandboxes', body, 400)['error']
        assert e['field'] == field
        assert e['code'] in ('field.unknown', 'field.invalid')
        assert field != 'nmae' or 'name' in e['hint']
    for body in (b'{', b'[]', b'{"name":"a","name":"b"}', b'\xff', b'{"a":' * 40):
        assert error(api.ask('POST', '/sandboxes', body, 400)) == 'request.invalid'
    assert api.ask('GET', '/sandboxes')['items'] == []


def test_unknown_routes_and_methods(api):
    assert error(api.ask('GET', '/nowhere', want=404)) == 'not_found'
    assert error(api.ask('PATCH', '/sandboxes', want=405)) == 'method.not_allowed'
    assert error(api.server.ask('GET', '/v1/sandboxes', key=False)[1]) == 'key.unknown'


# --- who may do what


def test_a_key_reaches_neither_the_host_nor_others(api):
    s = api.server
    for body in ({'dirs': [{'path': '/etc'}]}, {'ros': [{'path': '/etc'}]}, {'nested': True}, {'template': 'dir:/etc'}):
        assert error(api.ask('POST', '/sandboxes', body, 403, unix=False)) == 'host.only'
    for method, path in (('GET', '/keys'), ('GET', '/doctor'), ('POST', '/gc'), ('GET', '/pools'), ('GET', '/ended')):
        api.ask(method, path, {} if method == 'POST' else None, 403, unix=False)
    assert api.ask('PUT', '/sandboxes/x/policy', {'policy': 'version: 1'}, unix=False)['error']
    hosts = api.make(name='hosts')
    snapshot = api.ask('POST', '/sandboxes/hosts/snapshots', {'name': 'base'}, 201)['id']
    mine = api.ask('POST', '/sandboxes', {}, 201, unix=False)['id']
    assert [b['id'] for b in api.ask('GET', '/sandboxes', unix=False)['items']] == [mine]
    for ref in ('hosts', hosts):
        for method, path, body in (('GET', '', None), ('DELETE', '', None), ('POST', '/pause', {}), ('POST', '/calls', {'argv': ['true']}), ('GET', '/calls', None),
                                   ('GET', '/files?path=/etc/passwd', None), ('GET', '/trace', None), ('GET', '/diff', None), ('POST', '/fork', {}),
                                   ('GET', '/policy', None), ('POST', '/snapshots', {}), ('GET', '/ps', None), ('GET', '/why', None), ('GET', '/trace/verify', None)):
            assert error(api.ask(method, f'/sandboxes/{ref}{path}', body, 404, unix=False)) == 'sandbox.unknown', path
    assert api.ask('GET', '/snapshots', unix=False)['items'] == []
    for ref in ('base', snapshot):
        assert error(api.ask('GET', f'/snapshots/{ref}', want=404, unix=False)) == 'snapshot.unknown'
        assert error(api.ask('DELETE', f'/snapshots/{ref}', want=404, unix=False)) == 'snapshot.unknown'
        assert error(api.ask('POST', f'/sandboxes/{mine}/rollback', {'snapshot': ref}, 404, unix=False)) == 'snapshot.unknown'
        assert error(api.ask('GET', f'/sandboxes/{mine}/diff?from={ref}', want=404, unix=False)) == 'snapshot.unknown'
        assert error(api.ask('POST', '/sandboxes', {'template': f'snap:{ref}'}, 404, unix=False)) == 'snapshot.unknown'
    # A transaction of another sandbox is no transaction of mine.
    tx = api.ask('POST', '/sandboxes/hosts/transactions', {}, 201)['transaction']
    for step in ('commit', 'abort'):
        assert error(api.ask('POST', f'/sandboxes/{mine}/transactions/{tx}/{step}', {}, 404, unix=False)) == 'tx.unknown'
        assert error(api.ask('POST', f'/sandboxes/{mine}/transactions/{snapshot}/{step}', {}, 404, unix=False)) == 'tx.unknown'
    # A name that is taken does not tell by whom.
    taken = api.ask('POST', '/sandboxes', {'name': 'hosts'}, 409, unix=False)
    assert hosts not in json.dumps(taken)
    own = api.ask('POST', f'/sandboxes/{mine}/snapshots', {'name': 'base'}, 201, unix=False)
    assert own['name'] == 'base' and own['id'] != snapshot
    assert [x['name'] for x in api.ask('GET', '/snapshots', unix=False)['items']] == ['base']
    assert s.ask('GET', f'/v1/sandboxes/{mine}', unix=True)[0] == 200


# --- repeated requests


def test_a_repeated_create_answers_with_the_same_sandbox(api):
    key = {'Idempotency-Key': 'try 1'}
    first = api.ask('POST', '/sandboxes', {'labels': {'a': '1'}}, 201, headers=key)
    again = api.ask('POST', '/sandboxes', {'labels': {'a': '1'}}, 201, headers=key)
    assert (again['id'], again['created']) == (first['id'], first['created'])
    assert error(api.ask('POST', '/sandboxes', {'labels': {'a': '2'}}, 422, headers=key)) == 'idempotency.mismatch'
    # Keys of clients are their own.
    assert api.ask('POST', '/sandboxes', {'labels': {'a': '1'}}, 201, headers=key, unix=False)['id'] != first['id']
    several = {'count': 3}
    a = api.ask('POST', '/sandboxes', several, 201, headers={'Idempotency-Key': 'several'})
    b = api.ask('POST', '/sandboxes', several, 201, headers={'Idempotency-Key': 'several'})
    assert [x['id'] for x in a['items']] == [x['id'] for x in b['items']]


def test_one_key_at_the_same_time_makes_one_sandbox(api):
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda _: api.ask('POST', '/sandboxes', {}, 201, headers={'Idempotency-Key': 'k'})['id'], range(6)))
    assert len(set(made)) == 1
    assert len(api.ask('GET', '/sandboxes')['items']) == 1


def test_a_repeated_call_runs_once_also_through_a_new_front(api):
    box = api.make()
    body = {'shell': 'echo ran >> /tmp/ran; cat; echo done', 'stdin': 'in', 'id': 'job-1'}
    for i in range(4):
        r = api.ask('POST', f'/sandboxes/{box}/calls?wait_ms=60000', body, 200)
        assert (r['stdout'], r['exit_code']) == ('indone\n', 0)
        if i == 1:
            front, = api.server.children('serve-front')
            os.kill(front, signal.SIGKILL)
            caylib.wait_until(lambda: api.server.children('serve-front') not in ([], [front]), what='the next front')
            caylib.wait_until(lambda: ready(api.server), what='its answers')
    assert api.run(box, 'cat /tmp/ran')['stdout'] == 'ran\n'
    assert error(api.ask('POST', f'/sandboxes/{box}/calls', {**body, 'shell': 'true'}, 409)) == 'call.conflict'
    assert api.ask('GET', f'/sandboxes/{box}/calls/job-1', want=200)['state'] == 'exit'


def ready(server):
    try:
        return server.ask('GET', '/ready', unix=True)[0] == 200
    except OSError:
        return False


# --- calls


def test_a_call_is_started_watched_and_ended(api):
    box = api.make()
    call = api.ask('POST', f'/sandboxes/{box}/calls', {'argv': ['sh', '-c', 'trap "echo bye; exit 5" TERM; echo up; while :; do sleep 0.1; done']}, 201)
    assert call['state'] == 'running'
    path = f'/sandboxes/{box}/calls/{call["call"]}'
    caylib.wait_until(lambda: api.raw('GET', f'{path}/output?follow=false')[1] == b'up\n', what='its output')
    assert api.ask('POST', f'{path}/wait?timeout_ms=10', want=202)['state'] == 'running'
    assert any(p['call'] == call['call'] for p in api.ask('GET', f'/sandboxes/{box}/ps', want=200)['items'])
    assert api.ask('POST', f'{path}/signal', {'signal': 'NOPE'}, 400)['error']['field'] == 'signal'
    api.ask('POST', f'{path}/signal', {'signal': 'SIGTERM'}, 204)
    assert api.ask('POST', f'{path}/wait', want=200)['exit_code'] == 5
    assert error(api.ask('POST', f'{path}/signal', {'signal': 'TERM'}, 409)) == 'call.ended'
    assert [c['call'] for c in api.ask('GET', f'/sandboxes/{box}/calls', want=200)['items']] == [call['call']]
    for sub in ('999', 'no-such-id'):
        assert error(api.ask('GET', f'/sandboxes/{box}/calls/{sub}', want=404)) == 'call.not_found'
        assert error(api.ask('POST', f'/sandboxes/{box}/calls/{sub}/wait', want=404)) == 'call.not_found'


def test_bad_calls_are_refused(api):
    box = api.make()
    for body, field in (({}, 'argv'), ({'argv': []}, 'argv'), ({'argv': ['a'], 'shell': 'a'}, 'argv'), ({'argv': ['a'], 'id': '77'}, 'id'),
                        ({'argv': ['a'], 'id': 'a b'}, 'id'), ({'argv': ['a'], 'stdin_b64': '!'}, 'stdin_b64'), ({'argv': [1]}, 'argv[0]'),
                        ({'argv': ['a'], 'tty_size': {'rows': 0, 'cols': 1}}, 'tty_size.rows')):
        assert api.ask('POST', f'/sandboxes/{box}/calls', body, 400)['error']['field'] == field
    e = api.ask('POST', f'/sandboxes/{box}/calls?wait_ms=60000', {'argv': ['/no/such/program']})
    assert error(e) == 'exec.failed'


def test_events_go_on_where_they_were_cut(api):
    box = api.make()
    r = api.raw('POST', f'/sandboxes/{box}/calls', json.dumps({'shell': 'for i in 1 2 3; do echo $i; echo e$i >&2; sleep 0.05; done; printf "\\377"', 'id': 'x'}),
                {'Accept': 'text/event-stream'})
    whole = events(r[1])
    assert [e[0] for e in whole][0] == 'started' and whole[-1][0] == 'exit'
    assert whole[-2][2] == {'b64': '/w=='}

    def text(es):
        return b''.join(e[2]['text'].encode() if 'text' in e[2] else base64.b64decode(e[2]['b64']) for e in es if e[0] in ('stdout', 'stderr'))
    all_of_it = text(whole)
    assert sorted(all_of_it.split()) == sorted(b'1 e1 2 e2 3 e3 \377'.split())
    for at in range(len(all_of_it) + 1):
        rest = events(api.raw('GET', f'/sandboxes/{box}/calls/x/output', None, {'Accept': 'text/event-stream', 'Last-Event-ID': str(at)})[1])
        assert text(rest) == all_of_it[at:]
    assert api.raw('GET', f'/sandboxes/{box}/calls/x/output')[1] == all_of_it
    assert api.raw('GET', f'/sandboxes/{box}/calls/x/output?stream=stdout')[1] == b'1\n2\n3\n\377'
    assert api.raw('GET', f'/sandboxes/{box}/calls/x/output?stream=stderr&from=2')[1].endswith(b'e3\n')


def test_input_comes_in_pieces(api):
    box = api.make()
    call = api.ask('POST', f'/sandboxes/{box}/calls', {'argv': ['sha256sum'], 'stdin_open': True}, 201)['call']
    path = f'/sandboxes/{box}/calls/{call}'
    data = os.urandom(3 << 20)
    api.raw('POST', f'{path}/stdin', data[:1000])
    assert api.raw('POST', f'{path}/stdin?eof=true', data[1000:])[0] == 204
    assert api.ask('POST', f'{path}/wait', want=200)['exit_code'] == 0
    assert api.raw('GET', f'{path}/output')[1].split()[0].decode() == hashlib.sha256(data).hexdigest()
    assert error(api.ask('POST', f'{path}/stdin', b'x', 409)) == 'call.ended'


class WebSocket:
    def __init__(self, state, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30 * S)
        self.sock.connect(f'{state}/cay.sock')
        self.sock.sendall(f'GET /v1{path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n'
                          f'Sec-WebSocket-Protocol: cay.v1\r\nSec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n\r\n'.encode())
        self.file = self.sock.makefile('rb')
        self.status = int(self.file.readline().split()[1])
        while self.file.readline() != b'\r\n':
            pass

    def send(self, data, text=False):
        data = data.encode() if text else data
        n = len(data)
        size = bytes([0x80 | n]) if n < 126 else b'\xfe' + struct.pack('>H', n) if n < 65536 else b'\xff' + struct.pack('>Q', n)
        self.sock.sendall(bytes([0x81 if text else 0x82]) + size + b'\0\0\0\0' + data)

    def next(self):
        """(opcode, data)"""
        head = self.file.read(2)
        if len(head) < 2:
            return None, b''
        n = head[1] & 127
        n = struct.unpack('>H', self.file.read(2))[0] if n == 126 else struct.unpack('>Q', self.file.read(8))[0] if n == 127 else n
        return head[0] & 15, self.file.read(n)

    def until(self, stop):
        """Messages up to the one that stop() takes."""
        got = []
        while not got or not stop(got):
            op, data = self.next()
            assert op is not None, got
            if op == 9:
                continue
            got.append(json.loads(data) if op == 1 else (data[0], data[1:]) if op == 2 else ('close', struct.unpack('>H', data[:2])[0]))
        return got

    def close(self):
        self.file.close()
        self.sock.close()


def written(got):
    return b''.join(m[1] for m in got if isinstance(m, tuple) and m[0] == 1)


def test_a_terminal_by_websocket(api):
    box = api.make()
    call = api.ask('POST', f'/sandboxes/{box}/calls', {'argv': ['sh'], 'tty': True, 'tty_size': {'rows': 30, 'cols': 90}, 'env': {'PS1': '> '}}, 201)['call']
    path = f'/sandboxes/{box}/calls/{call}/attach'
    state = api.server.cay.state
    w = WebSocket(state, path)
    assert w.status == 101
    w.send(b'\0stty size\n')
    w.until(lambda got: b'30 90' in written(got))
    w.send('{"resize":{"rows":40,"cols":100}}', text=True)
    w.send(b'\0stty size\n')
    w.until(lambda got: b'40 100' in written(got))
    # Another client can watch, but not write.
    other = WebSocket(state, path)
    assert other.status == 409
    other.close()
    watcher = WebSocket(state, path + '?stdin=false')
    watcher.until(lambda got: b'40 100' in written(got))
    w.close()  # the call goes on
    watcher.close()
    api.driven.add('attachCall')
    api.ask('POST', f'/sandboxes/{box}/calls/{call}/resize', {'rows': 20, 'cols': 70}, 204)
    w = None

    def joined():
        nonlocal w
        w = WebSocket(state, path)
        return w.status == 101
    caylib.wait_until(joined, what='the first client to be forgotten')
    w.send(b'\0stty size; exit 7\n')
    got = w.until(lambda got: got[-1][0] == 'close' if isinstance(got[-1], tuple) else False)
    assert b'20 70' in written(got)
    assert [m['exit']['exit_code'] for m in got if isinstance(m, dict) and 'exit' in m] == [7]
    assert got[-1] == ('close', 1000)
    w.close()
    assert api.raw('GET', path)[0] == 426


def test_a_signal_and_an_end_by_websocket(api):
    box = api.make()
    call = api.ask('POST', f'/sandboxes/{box}/calls', {'argv': ['cat'], 'stdin_open': True}, 201)['call']
    w = WebSocket(api.server.cay.state, f'/sandboxes/{box}/calls/{call}/attach')
    data = os.urandom(700000)
    w.send(b'\0' + data)
    got = w.until(lambda got: len(written(got)) == len(data))
    assert written(got) == data
    w.send('{"eof":true}', text=True)
    got = w.until(lambda got: isinstance(got[-1], dict) and 'exit' in got[-1])
    assert got[-1]['exit']['exit_code'] == 0
    w.close()


def test_a_port_by_websocket(api):
    box = api.make()
    server = 'import socket; s=socket.socket(); s.bind(("127.0.0.1",4321)); s.listen(); c,_=s.accept(); d=b""\nwhile x:=c.recv(65536): d+=x\nc.sendall(d[::-1]); c.close()'
    api.ask('POST', f'/sandboxes/{box}/calls', {'argv': ['python3', '-c', server]}, 201)
    w = None

    def dialed():
        nonlocal w
        w = WebSocket(api.server.cay.state, f'/sandboxes/{box}/ports/4321/connect')
        return w.status == 101
    caylib.wait_until(dialed, what='the port')
    data = os.urandom(300000)
    w.send(data[:1])
    w.send(data[1:])
    w.send(b'')
    got = b''
    while True:
        op, piece = w.next()
        if op == 8 or op is None:
            break
        got += piece if op == 2 else b''
    assert got == data[::-1]
    w.close()
    api.driven.add('connectPort')
    assert api.raw('GET', f'/sandboxes/{box}/ports/4321/connect')[0] == 426


# --- files


def test_files_are_written_read_and_listed(api):
    box = api.make()
    files = f'/sandboxes/{box}/files'
    data = os.urandom(2 << 20)
    assert api.ask('POST', f'{files}/mkdir?path=/tmp/d', {}, 200)['type'] == 'directory'
    assert error(api.ask('POST', f'{files}/mkdir?path=/tmp/d', {}, 409)) == 'file.exists'
    assert api.raw('PUT', f'{files}?path=/tmp/d/a%20b&mode=0750', data)[0] == 204
    assert api.raw('GET', f'{files}?path=/tmp/d/a%20b')[1] == data
    for given, want in (('bytes=0-9', data[:10]), ('bytes=100-', data[100:]), ('bytes=-5', data[-5:])):
        status, got, headers = api.raw('GET', f'{files}?path=/tmp/d/a%20b', headers={'Range': given})
        assert (status, got) == (206, want)
        assert headers['content-range'].endswith(f'/{len(data)}')
    assert api.raw('GET', f'{files}?path=/tmp/d/a%20b', headers={'Range': f'bytes={len(data)}-'})[0] == 416
    entry = api.ask('GET', f'{files}/stat?path=/tmp/d/a%20b', want=200)
    assert (entry['name'], entry['type'], entry['size'], entry['mode']) == ('a b', 'file', len(data), '0750')
    api.run(box, 'ln -s nowhere /tmp/d/link; mkdir -p /tmp/d/sub/deep')
    assert [e['name'] for e in api.ask('GET', f'{files}/list?path=/tmp/d', want=200)['items']] == ['a b', 'link', 'sub']
    assert 'deep' in [e['name'] for e in api.ask('GET', f'{files}/list?path=/tmp/d&depth=2', want=200)['items']]
    assert api.ask('GET', f'{files}/stat?path=/tmp/d/link', want=200)['target'] == 'nowhere'
    assert api.ask('POST', f'{files}/move?path=/tmp/d/a%20b', {'to': '/tmp/e/c'}, 200)['path'] == '/tmp/e/c'
    api.ask('DELETE', f'{files}?path=/tmp/d', want=204)
    for method, sub in (('GET', ''), ('DELETE', ''), ('GET', '/stat'), ('GET', '/list')):
        assert error(api.ask(method, f'{files}{sub}?path=/tmp/d', want=404)) == 'file.unknown', sub
    assert error(api.ask('GET', f'{files}?path=/tmp', want=409)) == 'file.is_directory'
    assert error(api.ask('GET', f'{files}/list?path=/tmp/e/c', want=409)) == 'file.not_directory'
    for bad in ('', '?path=', '?path=rel', '?path=/a&path=/b'):
        assert api.ask('GET', files + bad, want=400)['error']['field'] == 'path'


def test_trees_travel_as_tar(api):
    a, b = api.make(), api.make()
    api.run(a, 'mkdir -p /tmp/t/x; echo 1 > /tmp/t/x/one; ln -s x/one /tmp/t/l; chmod 640 /tmp/t/x/one')
    status, tar, _ = api.raw('GET', f'/sandboxes/{a}/tree?path=/tmp/t')
    assert status == 200
    names = tarfile.open(fileobj=io.BytesIO(tar)).getnames()
    assert any(n.endswith('x/one') for n in names)
    assert api.raw('PUT', f'/sandboxes/{b}/tree?path=/tmp', tar)[0] == 204
    show = 'cd /tmp/t && find . -printf "%p %y %m %l\\n" | sort && cat x/one'
    assert api.run(b, show)['stdout'] == api.run(a, show)['stdout']


# --- state


def test_snapshots_rollback_fork_and_diff(api):
    box = api.make()
    api.run(box, 'echo 1 > /root/f || echo 1 > ~/f; echo 1 > /var/tmp/f')
    first = api.ask('POST', f'/sandboxes/{box}/snapshots', {'name': 'one', 'note': 'n'}, 201)
    api.run(box, 'echo 2 > /var/tmp/f; echo new > /var/tmp/g')
    changed = {c['path']: c['kind'] for c in api.ask('GET', f'/sandboxes/{box}/diff?from=one&path=/var/tmp', want=200)['items']}
    assert changed == {'/var/tmp/f': 'changed', '/var/tmp/g': 'added'}
    stat = api.ask('GET', f'/sandboxes/{box}/diff?from=one&format=stat&path=/var/tmp', want=200)
    assert stat['totals']['added_lines'] == 2
    status, patch, headers = api.raw('GET', f'/sandboxes/{box}/diff?from=one&format=patch&path=/var/tmp')
    assert (status, headers['content-type']) == (200, 'text/x-patch') and b'+new' in patch
    forks = api.ask('POST', f'/sandboxes/{box}/fork', {'count': 2, 'name': 'try'}, 201)['items']
    assert [f['name'] for f in forks] == ['try-1', 'try-2']
    assert api.run('try-1', 'cat /var/tmp/f')['stdout'] == '2\n'
    assert api.ask('POST', f'/sandboxes/{box}/rollback', {'snapshot': 'one'}, 200)['snapshot'] == first['id']
    assert api.run(box, 'cat /var/tmp/f')['stdout'] == '1\n'
    back, = api.ask('POST', '/snapshots/one/fork', {}, 201)['items']
    assert api.run(back['id'], 'cat /var/tmp/f')['stdout'] == '1\n'
    tx = api.ask('POST', f'/sandboxes/{box}/transactions', {}, 201)['transaction']
    api.run(box, 'echo 3 > /var/tmp/f')
    api.ask('POST', f'/sandboxes/{box}/transactions/{tx}/abort', {}, 200)
    assert api.run(box, 'cat /var/tmp/f')['stdout'] == '1\n'
    tx = api.ask('POST', f'/sandboxes/{box}/transactions', {'alone': True}, 201)['transaction']
    api.ask('POST', f'/sandboxes/{box}/transactions/{tx}/commit', {}, 200)
    shown = api.ask('GET', '/snapshots/one', want=200)
    assert (shown['id'], shown['note']) == (first['id'], 'n')
    assert first['id'] in [s['id'] for s in api.ask('GET', f'/snapshots?sandbox={box}', want=200)['items']]
    assert error(api.ask('POST', f'/sandboxes/{box}/snapshots', {'name': 'one'}, 409))
    api.ask('DELETE', '/snapshots/one', want=204)
    assert error(api.ask('GET', '/snapshots/one', want=404)) == 'snapshot.unknown'


# --- the record


def test_the_trace_is_read_followed_and_verified(api):
    box = api.make()
    api.run(box, 'true', id='first')
    status, text, headers = api.raw('GET', f'/sandboxes/{box}/trace')
    lines = [json.loads(x) for x in text.splitlines()]
    assert (status, headers['content-type']) == (200, 'application/x-ndjson')
    assert text.decode() == api.server.cay('trace', '--json', box).out[:len(text)]
    assert [x['seq'] for x in lines] == list(range(1, len(lines) + 1))
    some = [json.loads(x)['kind'] for x in api.raw('GET', f'/sandboxes/{box}/trace?kind=call.*&call=first')[1].splitlines()]
    assert some and all(k.startswith('call.') for k in some)
    assert len(api.raw('GET', f'/sandboxes/{box}/trace?limit=2')[1].splitlines()) == 2
    assert api.ask('GET', f'/sandboxes/{box}/trace?kind=nope', want=400)
    assert api.ask('GET', f'/sandboxes/{box}/trace/verify', want=200)['ok']
    c = UnixConnection(f'{api.server.cay.state}/cay.sock')
    c.request('GET', f'/v1/sandboxes/{box}/trace?follow=true&since={lines[-1]["seq"]}', None, {'Accept': 'text/event-stream'})
    answer = c.getresponse()
    api.run(box, 'true', id='second')
    seen = b''
    while b'"second"' not in seen:
        seen += answer.read1()
    api.ask('DELETE', f'/sandboxes/{box}', want=204)
    seen += answer.read()
    got = events(seen)
    assert [int(e[1]) for e in got] == [e[2]['seq'] for e in got] == list(range(lines[-1]['seq'] + 1, lines[-1]['seq'] + 1 + len(got)))
    assert got[-1][2]['kind'] == 'sandbox.end'
    c.close()


def test_policies_are_shown_set_and_checked(api):
    box = api.make(network={'preset': 'none', 'allow': ['example.com:443']})
    before = api.ask('GET', f'/sandboxes/{box}/policy', want=200)
    assert len(before['history']) == 1
    done = api.ask('PUT', f'/sandboxes/{box}/policy', {'preset': 'none', 'allow': ['example.org']}, 200)
    assert 'example.org' in str(done['added']) and 'example.com' in str(done['removed'])
    after = api.ask('GET', f'/sandboxes/{box}/policy', want=200)
    assert (after['hash'] != before['hash'], len(after['history'])) == (True, 2)
    assert api.ask('GET', f'/sandboxes/{box}/net?by_call=true', want=200)['items'] == []
    checked = api.ask('POST', '/policies/check', {'preset': 'coding'}, 200)
    assert checked['rules']
    for body in ({'policy': '{'}, {'policy': 'rules: 7'}, {'preset': 'none', 'policy': '{}'}, {'allow': ['a b']}):
        assert api.ask('POST', '/policies/check', body, 400)['error']['message']
    # YAML is read from the host's user alone.
    assert api.ask('POST', '/policies/check', {'policy': 'version: 1\n'}, 400, unix=False)['error']['field'] == 'policy'


# --- the host


def test_the_host_is_asked_and_cleaned(api):
    assert api.ask('GET', '/version', want=200) == json.loads(api.server.cay('version', '--json').out)
    assert api.ask('GET', '/doctor', want=200)['checks']
    assert api.ask('POST', '/gc', {}, 200)['lost_removed'] == 0
    api.ask('PUT', '/pools', {'template': 'host', 'wanted': 1}, 204)
    pool, = api.ask('GET', '/pools', want=200)['items']
    assert (pool['template'], pool['wanted']) == ('host', 1)
    api.ask('PUT', '/pools', {'template': 'host', 'wanted': 0}, 204)
    made = api.ask('POST', '/keys', {'name': 'ci'}, 201)
    assert 'ci' in [k['name'] for k in api.ask('GET', '/keys', want=200)['items']]
    caylib.wait_until(lambda: api.server.ask('GET', '/v1/sandboxes', key=made['key'])[0] == 200, what='the new key')
    api.ask('DELETE', '/keys/ci', want=204)
    caylib.wait_until(lambda: api.server.ask('GET', '/v1/sandboxes', key=made['key'])[0] == 401, what='the end of the key')


# --- random requests

SCHEMATHESIS = os.path.join(caylib.ROOT, 'tests', 'api', 'venv', 'bin', 'schemathesis')
# These make sandboxes without end, or end the one that the others use.
LEFT_OUT = ('createSandbox', 'forkSandbox', 'forkSnapshot', 'deleteSandbox', 'pauseSandbox', 'startCall', 'getTrace', 'writeTree')
SETTINGS = """
[checks]
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 409, 413, 416, 422, 426, 431]
"""
HOOKS = """
import schemathesis


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    return {**path_parameters, 'id': 'box'} if path_parameters and 'id' in path_parameters else path_parameters
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists(SCHEMATHESIS), reason='no schemathesis: scripts/setup api')
def test_random_requests_keep_to_the_document(api, tmp_path):
    api.ask('POST', '/sandboxes', {'name': 'box'}, 201, unix=False)
    (tmp_path / 'hooks.py').write_text(HOOKS, encoding='utf-8')
    seconds = os.environ.get('CAY_SCHEMATHESIS_SECONDS', '15')
    (tmp_path / 'schemathesis.toml').write_text(SETTINGS, encoding='utf-8')
    command = [SCHEMATHESIS, 'run', f'{api.server.url}/v1/openapi.json', '--header', f'X-API-Key: {api.server.key}', '--max-time', seconds,
               '--max-examples', '20', '--phases', 'fuzzing', '--continue-on-failure', '--request-timeout', str(30 * S), '--no-color', '--warnings', 'off',
               '--generation-database', 'none', *([] if 'CAY_SCHEMATHESIS_SECONDS' in os.environ else ['--seed', '1']),
               '--checks', 'not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,negative_data_rejection']
    for name in LEFT_OUT:
        command += ['--exclude-operation-id', name]
    env = {**os.environ, 'SCHEMATHESIS_HOOKS': 'hooks', 'PYTHONPATH': str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    # The sandbox may be gone: a random time to live ends it. The server is not.
    assert api.ask('GET', '/version', want=200, unix=False)


def test_every_route_was_driven(request):
    """Last: after the tests above."""
    here = [i for i in request.session.items if i.path == request.path]
    if len({i.originalname for i in here}) < len([n for n in globals() if n.startswith('test_')]):
        pytest.skip('only a part of the file runs')
    with open(DOCUMENT, encoding='utf-8') as f:
        names = {op['operationId'] for ops in json.load(f)['paths'].values() for op in ops.values()}
    assert names - Native.driven - {'getOpenAPI'} == set()

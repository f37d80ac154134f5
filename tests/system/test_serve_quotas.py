# SPDX-License-Identifier: Apache-2.0
"""cay serve: what a key may do and use, and what clients without one can cost."""

import http.client
import json
import os
import re
import signal
import socket
import threading
import time

import pytest

import caylib
from test_serve import Server, UnixConnection, envd, next_event, open_stream, port

WAIT = 30 * caylib.SLOWER


@pytest.fixture
def server(fresh_cay):
    with Server(fresh_cay) as s:
        yield s
        end_all(s)


def end_all(s):
    for box in s.ask('GET', '/sandboxes', unix=True)[1]:
        s.ask('DELETE', f'/sandboxes/{box["sandboxID"]}', unix=True)


def new_key(server, name, *options):
    """The text of a key that the server knows."""
    key = server.cay('key', 'create', '-q', name, *options, check=True).out.strip()
    caylib.wait_until(lambda: server.ask('GET', '/nowhere', key=key)[0] == 404, what='the new key')
    return key


def try_create(server, key, **fields):
    return server.ask('POST', '/v2/sandboxes', {'templateID': 'base', 'allow_internet_access': False, **fields}, key=key)


def limits_of(server, box):
    return json.loads(server.cay('show', '--json', box['sandboxID'], check=True).out)['options']['limits']


def test_every_sandbox_over_http_has_limits(server):
    default = server.create()
    assert {k: limits_of(server, default)[k] for k in ('memory', 'cpu_milli', 'pids', 'disk')} == \
        {'memory': 2 << 30, 'cpu_milli': 2000, 'pids': 2048, 'disk': 10 << 30}
    info = server.ask('GET', f'/sandboxes/{default["sandboxID"]}')[1]
    assert (info['memoryMB'], info['cpuCount'], info['diskSizeMB']) == (2048, 2, 10240)
    small = new_key(server, 'small', '--sandbox-memory', '256M', '--sandbox-pids', '100', '--sandbox-disk', 'none')
    got = limits_of(server, server.create(key=small))
    assert (got['memory'], got['pids'], got.get('disk'), got['cpu_milli']) == (256 << 20, 100, None, 2000)
    # The host's user gets the same by the socket, and may have others on the command line.
    status, box, _ = server.ask('POST', '/sandboxes', {'templateID': 'base', 'allow_internet_access': False}, unix=True)
    assert (status, limits_of(server, box)['memory']) == (201, 2 << 30)


def test_the_server_says_what_keys_do_not_say(fresh_cay):
    with Server(fresh_cay, '--sandbox-memory', '300M', '--max-sandboxes', '1') as server:
        box = server.create()
        assert limits_of(server, box)['memory'] == 300 << 20
        assert try_create(server, server.key)[0] == 429
        more = new_key(server, 'more', '--max-sandboxes', '2')
        for want in (201, 201, 429):
            assert try_create(server, more)[0] == want
        end_all(server)
    bad = fresh_cay('serve', '--sandbox-memory', 'much')
    assert bad.code == 2 and "--sandbox-memory 'much'" in bad.err


def create_many(server, key, n):
    answers = []

    def one():
        answers.append(try_create(server, key))
    threads = [threading.Thread(target=one) for _ in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return answers


def test_a_quota_of_sandboxes_is_exact_and_outlives_the_server(fresh_cay):
    with Server(fresh_cay) as server:
        key = new_key(server, 'five', '--max-sandboxes', '5')
        answers = create_many(server, key, 50)
        made = [a[1]['sandboxID'] for a in answers if a[0] == 201]
        refused = [a for a in answers if a[0] != 201]
        assert (len(made), len(refused)) == (5, 45), [a[:2] for a in answers]
        for status, body, headers in refused:
            assert (status, body['code'], body['error_code']) == (429, 429, 'quota.sandboxes')
            assert int(headers['Retry-After']) > 0 and 'allowed 5' in body['message']
        assert sorted(server.cay('ls', '-q').out.split()) == sorted(made)  # nothing is left of the others
        assert server.ask('GET', '/sandboxes')[0] == 200 and try_create(server, server.key)[0] == 201  # another key has its own
        # One that the command line ends is no longer counted; nor is one that ended by itself.
        server.cay('kill', made[0], check=True)
        assert [try_create(server, key)[0] for _ in range(2)] == [201, 429]
        assert server.ask('POST', f'/sandboxes/{made[1]}/timeout', {'timeout': 0}, key=key)[0] == 204
        caylib.wait_until(lambda: try_create(server, key)[0] == 201, what='room after a timeout')
        front, = server.children('serve-front')
        os.kill(front, signal.SIGKILL)

        def answers_again():
            try:
                return try_create(server, key)[0]
            except (OSError, http.client.HTTPException):
                return None
        assert caylib.wait_until(answers_again, what='the next front') == 429
    with Server(fresh_cay) as server:
        assert try_create(server, key)[0] == 429
        row = next(json.loads(line) for line in server.cay('key', 'ls', '--json').out.splitlines() if '"five"' in line)
        assert (row['use']['sandboxes'], row['limits']['sandboxes']) == (5, 5)
        server.cay('key', 'set', 'five', '--max-sandboxes', '6', check=True)
        assert [try_create(server, key)[0] for _ in range(2)] == [201, 429]
        end_all(server)


def test_memory_and_cpus_are_summed_and_forks_count(server):
    memory = new_key(server, 'memory', '--memory', '1G', '--sandbox-memory', '400M')
    assert [try_create(server, memory)[0] for _ in range(2)] == [201, 201]
    status, body, _ = try_create(server, memory)
    assert (status, body['error_code']) == (429, 'quota.memory')
    cpus = new_key(server, 'cpus', '--cpus', '1.5', '--sandbox-cpus', '0.5', '--max-sandboxes', '3')
    box = server.create(key=cpus)
    status, forks, _ = server.ask('POST', f'/sandboxes/{box["sandboxID"]}/fork', {'count': 4}, key=cpus)
    assert status == 201
    assert [('sandbox' in f, f.get('error', {}).get('code')) for f in forks] == [(True, None)] * 2 + [(False, 429)] * 2
    assert server.ask('POST', f'/sandboxes/{box["sandboxID"]}/fork', {}, key=cpus)[0] == 429
    ls = server.cay('key', 'ls').out
    assert '3/3' in ls and '1.5/1.5' in ls and '800M/1.0G' in ls.replace('1G', '1.0G'), ls


def test_snapshots_have_a_quota(server):
    key = new_key(server, 'snaps', '--snapshots', '1')
    path = f'/sandboxes/{server.create(key=key)["sandboxID"]}/snapshots'
    assert server.ask('POST', path, {}, key=key)[0] == 201
    status, body, _ = server.ask('POST', path, {}, key=key)
    assert (status, body['error_code']) == (429, 'quota.snapshots')


def test_creations_have_a_rate(server):
    key = new_key(server, 'slow', '--rate', '3/min')
    assert [server.ask('POST', '/sandboxes', {'templateID': 'nope'}, key=key)[0] for _ in range(3)] == [404] * 3
    status, body, headers = server.ask('POST', '/sandboxes', {'templateID': 'nope'}, key=key)
    assert (status, body['error_code']) == (429, 'quota.rate')
    assert 1 <= int(headers['Retry-After']) <= 20
    assert server.ask('GET', '/sandboxes', key=key)[0] == 200
    assert server.ask('POST', '/sandboxes', {'templateID': 'nope'})[0] == 404  # other keys have their own
    # Many forks are as many creations.
    assert server.ask('POST', '/sandboxes/aaaaaaaaaaaa/fork', {'count': 100}, key=new_key(server, 'forks', '--rate', '50'))[0] == 429


def test_calls_at_once_have_a_limit(server):
    key = new_key(server, 'calls', '--calls', '2')
    box = server.create(key=key)
    streams = [open_stream(server, box, 'Start', process={'cmd': '/bin/sleep', 'args': ['100']}) for _ in range(2)]
    for s in streams:
        assert next_event(s)['event']['start']['pid'] > 0
    status, body, headers = server.ask('GET', '/sandboxes', key=key)
    assert (status, body['error_code'], headers['Retry-After']) == (429, 'quota.calls', '1')
    assert server.ask('GET', '/', key=False, headers={**envd(box), 'E2b-Sandbox-Port': '49983'})[0] == 404
    assert server.ask('POST', '/process.Process/List', {}, key=False, headers={**envd(box), 'Content-Type': 'application/json'})[0] == 429
    assert server.ask('GET', '/', key=False, headers=port(box, 8000))[0] == 502  # a visitor takes nothing from the key
    assert server.ask('GET', '/sandboxes')[0] == 200
    streams.pop().close()
    caylib.wait_until(lambda: server.ask('GET', '/sandboxes', key=key)[0] == 200, what='room for a call')
    streams.pop().close()


def test_scopes(server):
    box = server.create()
    path = f'/sandboxes/{box["sandboxID"]}'
    viewer = new_key(server, 'viewer', '--scope', 'read', '--shares', 'default')
    assert [b['sandboxID'] for b in server.ask('GET', '/sandboxes', key=viewer)[1]] == [box['sandboxID']]
    status, info, _ = server.ask('GET', path, key=viewer)
    assert (status, info.get('envdAccessToken')) == (200, None)
    assert server.ask('GET', path)[1]['envdAccessToken'] == box['envdAccessToken']
    for method, sub, body, verb in (('DELETE', '', None, 'use'), ('POST', '/timeout', {'timeout': 5}, 'use'), ('POST', '/connect', {'timeout': 5}, 'use'),
                                    ('POST', '/snapshots', {}, 'snapshot'), ('POST', '/fork', {}, 'create,use'), ('PUT', '/network', {}, 'network')):
        status, answer, _ = server.ask(method, path + sub, body, key=viewer)
        assert (status, answer['message']) == (403, f"the scope of this key does not include '{verb}'")
    assert try_create(server, viewer)[0] == 403
    maker = new_key(server, 'maker', '--scope', 'create')
    assert try_create(server, maker)[0] == 201
    status, answer, _ = try_create(server, maker, allow_internet_access=True)
    assert (status, "'network'" in answer['message']) == (403, True)
    assert server.ask('GET', '/sandboxes', key=maker)[0] == 403
    # A copy would show what is inside.
    copier = new_key(server, 'copier', '--scope', 'create', '--shares', 'default')
    assert server.ask('POST', path + '/fork', {}, key=copier)[0] == 403
    # A key that shares another ends with it.
    server.cay('key', 'revoke', 'default', check=True)
    caylib.wait_until(lambda: server.ask('GET', '/sandboxes', key=viewer)[0] == 401, what='the end of the key')
    assert server.cay('key', 'create', 'x', '--scope', 'everything').code == 2


def test_a_key_that_expires_ends_its_streams(server):
    key = new_key(server, 'short')
    box = server.create(key=key)
    stream = open_stream(server, box, 'Start', process={'cmd': '/bin/sleep', 'args': ['100']})
    assert 'start' in next_event(stream)['event']
    server.cay('key', 'set', 'short', '--expires', '500ms', check=True)
    assert b'"error"' in stream.read()  # and that is its end
    stream.close()
    assert server.ask('GET', '/sandboxes', key=key)[0] == 401
    server.cay('key', 'set', 'short', '--expires', 'none', check=True)
    caylib.wait_until(lambda: server.ask('GET', '/sandboxes', key=key)[0] == 200, what='the key')


def test_a_page_that_is_led_here_by_a_name_of_its_own_gets_nothing(server):
    """DNS rebinding: the browser sends the name of the page."""
    box = server.create()
    evil = {'Host': 'evil.test:3000'}
    assert server.ask('GET', '/health', key=False, headers=evil)[0] == 421
    assert server.ask('GET', '/sandboxes', key=False, headers=evil)[0] == 401
    assert server.ask('GET', '/', key=False, headers={**evil, **port(box, 8000)})[0] == 421
    assert server.ask('GET', '/health', key=False, headers={**evil, **port(box, 49983)})[0] == 421
    # A key or a token cannot come from such a page.
    assert server.ask('GET', '/sandboxes', headers=evil)[0] == 200
    assert server.ask('GET', '/health', key=False, headers={**evil, **envd(box)})[0] == 204
    for good in ('localhost:1', '127.0.0.1', '[::1]:99', 'a.localhost'):
        assert server.ask('GET', '/health', key=False, headers={'Host': good})[0] == 200
    assert server.ask('GET', '/health', unix=True, headers=evil)[0] == 200


def test_foreign_pages_change_nothing(server):
    own = {'Origin': server.url}
    for origin in ('http://evil.test', 'null', server.url + '1'):
        status, body, _ = server.ask('POST', '/sandboxes', {'templateID': 'nope'}, headers={'Origin': origin})
        assert (status, 'origin' in body['message']) == (403, True)
        assert server.ask('GET', '/sandboxes', headers={'Origin': origin})[0] == 200
    assert server.ask('POST', '/sandboxes', {'templateID': 'nope'}, headers=own)[0] == 404
    assert server.ask('POST', '/sandboxes', {'templateID': 'nope'}, headers={'Origin': 'http://evil.test'}, unix=True)[0] == 404


def test_names_and_origins_can_be_allowed(fresh_cay):
    with Server(fresh_cay, '--domain', 'own.test', '--origin', 'https://app.test') as server:
        for host, want in (('own.test', 200), ('x.own.test', 200), ('notown.test', 421)):
            assert server.ask('GET', '/health', key=False, headers={'Host': host})[0] == want
        box = server.create()
        for domain, want in (('own.test', 502), ('other.test', 401)):  # names elsewhere are no ports
            host = f'8000-{box["sandboxID"]}.{domain}'
            assert server.ask('GET', '/', key=False, headers={'Host': host})[0] == want
        assert server.ask('POST', '/sandboxes', {'templateID': 'nope'}, headers={'Origin': 'https://app.test'})[0] == 404
        end_all(server)
    for option, value in (('--domain', 'a b'), ('--origin', 'app.test')):
        bad = fresh_cay('serve', option, value)
        assert bad.code == 2 and option in bad.err


def test_health_of_a_sandbox_needs_no_worker(server):
    box = server.create()
    place = port(box, 49983)
    assert server.ask('GET', '/health', key=False, headers=place)[0] == 204
    workers = server.children('serve-worker')
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    try:
        for _ in range(20):
            assert server.ask('GET', '/health', key=False, headers=place)[0] == 204
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGCONT)


def test_an_address_that_fails_often_is_put_off_and_keys_are_not(server):
    box = server.create()
    wrong = 0
    while server.ask('GET', '/sandboxes', key='e2b_' + '0' * 40)[0] == 401:
        wrong += 1
        assert wrong < 300
    assert wrong >= 40

    def put_off(method, path, **more):
        """A slow machine may earn a token between two requests."""
        def answer():
            got = server.ask(method, path, key=False, **more)
            return got if got[0] == 429 else None
        return caylib.wait_until(answer, what=f'a 429 for {path}')
    _, body, headers = put_off('GET', '/sandboxes')
    assert (body['error_code'], headers['Connection']) == ('auth.failures', 'close')
    assert int(headers['Retry-After']) > 0
    # Nothing that needs a job is begun for such an address without proof: not even a look for a sandbox.
    for headers in (port({'sandboxID': 'a' * 12}, 49983), port({'sandboxID': 'b' * 12}, 8000)):
        put_off('GET', '/health', headers=headers)
    put_off('POST', '/process.Process/List', body={}, headers={**envd(box), 'X-Access-Token': 'x', 'Content-Type': 'application/json'})
    assert server.ask('GET', '/sandboxes')[0] == 200
    assert server.ask('GET', '/health', key=False, headers=envd(box))[0] == 204
    assert server.ask('GET', '/health', key=False)[0] == 200


def test_one_key_that_floods_the_queue_does_not_stop_another(server):
    """Requests for a sandbox of another key wait in a lane of their own, and take turns with those of its owner."""
    box = server.create()
    greedy = new_key(server, 'greedy')
    head = f'GET /sandboxes/{box["sandboxID"]} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {greedy}\r\n\r\n'.encode()
    host, at = server.address.split(':')
    clients = []
    try:
        for _ in range(200):  # fewer than the connections that one address may have before it shows a key
            s = socket.create_connection((host, int(at)), timeout=WAIT)
            s.sendall(head)
            clients.append(s)
        began = time.monotonic()
        assert server.ask('GET', f'/sandboxes/{box["sandboxID"]}')[0] == 200
        assert time.monotonic() - began < 10 * caylib.SLOWER
        codes = {s.recv(4096).split()[1] for s in clients}
        assert codes <= {b'404', b'429'} and b'404' in codes
    finally:
        for s in clients:
            s.close()


def codes_of(server, data):
    """The statuses of what is answered until the server closes."""
    host, at = server.address.split(':')
    with socket.create_connection((host, int(at)), timeout=WAIT) as s:
        s.sendall(data)
        out = b''
        while (more := s.recv(65536)):
            out += more
    return [int(code) for code in re.findall(rb'HTTP/1\.1 (\d+) ', out)]


def test_each_request_of_a_connection_is_judged_by_itself(server):
    box = server.create()['sandboxID']
    assert codes_of(server, (f'GET /sandboxes/{box} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {server.key}\r\n\r\n'
                             f'DELETE /sandboxes/{box} HTTP/1.1\r\nHost: localhost\r\n\r\n'
                             'GET /health HTTP/1.1\r\nHost: evil.test\r\n\r\n').encode()) == [200, 401, 421]
    for line, hosts in (('/health', ['localhost', 'evil.test']), ('/health', ['evil.test', 'localhost']), ('http://evil.test/health', ['localhost']),
                        ('/health', ['localhost@evil.test']), ('/health', ['evil.test#localhost']), ('/health', [])):
        head = f'GET {line} HTTP/1.1\r\nConnection: close\r\n' + ''.join(f'Host: {host}\r\n' for host in hosts) + '\r\n'
        assert codes_of(server, head.encode()) == [400], head
    assert codes_of(server, b'GET http://evil.test/health HTTP/1.1\r\nConnection: close\r\nHost: evil.test\r\n\r\n') == [421]


def test_no_spelling_of_a_path_reaches_the_sandbox_of_another_key(server):
    other = new_key(server, 'other')
    box = server.create()['sandboxID']
    for path in (f'/sandboxes//{box}', f'//sandboxes/{box}', f'/sandboxes/../sandboxes/{box}', f'/sandboxes/%2e%2e/sandboxes/{box}', f'/sandboxes/{box}%00',
                 f'/sandboxes/{box}/', f'/sandboxes/{box[:-1]}%{ord(box[-1]):02x}', f'/sandboxes/{box};x', f'/sandboxes/{box}?owner=', f'/sandboxes/%2F{box}'):
        for method in ('GET', 'DELETE'):
            assert server.ask(method, path, key=other)[0] in (400, 404), path
    assert server.ask('GET', f'/sandboxes?owner=&scope=31&id={box}', key=other)[:2] == (200, [])
    status, made, _ = try_create(server, other, owner='', limits={'memory': 1 << 40}, memoryMB=1 << 20)
    assert (status, server.ask('GET', f'/sandboxes/{made["sandboxID"]}', key=other)[1]['memoryMB']) == (201, 2048)
    assert server.ask('GET', f'/sandboxes/{box}')[0] == 200


def test_a_quota_holds_while_sandboxes_come_and_go(server):
    key = new_key(server, 'busy', '--max-sandboxes', '4')
    source = server.create(key=key)['sandboxID']
    until = time.monotonic() + 3
    failed = []

    def others():
        return [b['sandboxID'] for b in server.ask('GET', '/sandboxes', key=key)[1] if b['sandboxID'] != source]

    def churn(act):
        while time.monotonic() < until:
            try:
                act()
            except Exception as e:  # pylint: disable=broad-except
                failed.append(e)
                return
    acts = (lambda: try_create(server, key),
            lambda: server.ask('POST', f'/sandboxes/{source}/fork', {'count': 3}, key=key),
            lambda: [server.ask('DELETE', f'/sandboxes/{box}', key=key) for box in others()])
    threads = [threading.Thread(target=churn, args=(act,)) for act in acts * 2]
    for t in threads:
        t.start()
    most = 0
    while time.monotonic() < until:
        # Not the use that `cay key ls` tells: what is being removed counts there.
        most = max(most, len(others()) + 1)
    for t in threads:
        t.join()
    assert not failed and 1 <= most <= 4, (failed, most)


def test_a_key_that_is_revoked_in_use_harms_nobody(server):
    front = server.children('serve-front')
    key = new_key(server, 'short')
    box = server.create(key=key)
    connections = [http.client.HTTPConnection(server.address, timeout=WAIT) for _ in range(4)]
    for c in connections:
        c.request('GET', '/sandboxes', headers={'X-API-Key': key})
        assert c.getresponse().read() != b''
    streams = [open_stream(server, box, 'Start', process={'cmd': '/bin/cat', 'args': ['/dev/zero']}) for _ in range(4)]
    creates = threading.Thread(target=create_many, args=(server, key, 4))
    creates.start()
    server.cay('key', 'revoke', 'short', check=True)
    creates.join()
    caylib.wait_until(lambda: server.ask('GET', '/sandboxes', key=key)[0] == 401, what='the end of the key')
    new_key(server, 'next')  # the list is read again: what nobody uses is freed
    for c in connections:
        c.request('GET', '/sandboxes', headers={'X-API-Key': key})
        assert c.getresponse().status in (401, 429)
        c.close()
    for s in streams:
        s.close()
    assert server.children('serve-front') == front
    assert server.ask('GET', '/sandboxes')[0] == 200


def memory_of(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as f:
        return next(int(line.split()[1]) for line in f if line.startswith('VmRSS'))


def test_output_that_nobody_takes_is_bounded(server):
    box = server.create()
    front, = server.children('serve-front')
    before = memory_of(front)
    streams = [open_stream(server, box, 'Start', process={'cmd': '/bin/cat', 'args': ['/dev/zero']}) for _ in range(24)]
    for s in streams:
        assert 'start' in next_event(s)['event']
    last = 0
    for _ in range(100):  # until it grows no more
        now = memory_of(front)
        if now == last:
            break
        last = now
        time.sleep(0.1)
    assert memory_of(front) - before < 64 * 1024
    assert server.ask('GET', '/sandboxes')[0] == 200
    for s in streams:
        s.close()


def test_the_socket_needs_no_key_and_has_no_quota(server):
    c = UnixConnection(f'{server.cay.state}/cay.sock')
    for _ in range(3):
        c.request('GET', '/sandboxes')
        r = c.getresponse()
        assert (r.status, r.read()) == (200, b'[]')
    c.close()

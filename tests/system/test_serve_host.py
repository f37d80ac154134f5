# SPDX-License-Identifier: Apache-2.0
"""cay serve as its operator sees it: config file, access log, restart."""

import base64
import http.client
import json
import os
import signal
import struct
import threading
import time

import pytest

import caylib
from test_serve import Server, command_of, envd, server  # noqa: F401, a fixture


def log_lines(path):
    with open(path, encoding='utf-8') as f:
        return [json.loads(line) for line in f]


def test_options_come_from_the_file_and_the_command_line_wins(fresh_cay, tmp_path):
    log = tmp_path / 'log'
    with open(f'{fresh_cay.state}/serve.conf', 'w', encoding='ascii') as f:
        f.write(f'# for the test\nlisten = 127.0.0.2:0\n\naccess-log = {log}\n')
    with Server(fresh_cay) as s:
        assert s.address.startswith('127.0.0.1:')
        assert s.ask('GET', '/health')[0] == 200
        caylib.wait_until(lambda: log.exists() and log_lines(log), what='a line of the log')
    # Another file instead.
    (tmp_path / 'other').write_text(f'socket = {tmp_path}/sock\n')
    with Server(fresh_cay, '--config', tmp_path / 'other'):
        assert os.path.exists(tmp_path / 'sock')


@pytest.mark.parametrize('text, words', [
    ('listen = 127.0.0.1:0\nlisten-on = x\n', ['serve.conf:2', "'listen-on'"]),
    ('\nlisten\n', ['serve.conf:2', 'name = value']),
    ('listen = nowhere\n', ['serve.conf:1', "'nowhere'"]),
    ('# x\ndomain = not a domain\n', ['serve.conf:2', 'not a domain']),
    ('access-log = /nonexistent/log\n', ['serve.conf:1', '/nonexistent/log']),
    ('config = x\n', ['serve.conf:1', "'config'"]),
])
def test_a_wrong_file_is_an_error_with_its_line(fresh_cay, text, words):
    with open(f'{fresh_cay.state}/serve.conf', 'w', encoding='ascii') as f:
        f.write(text)
    r = fresh_cay('serve')
    assert r.code != 0
    for word in words:
        assert word in r.err, r.err
    assert fresh_cay('serve', '--config', '/nonexistent').code != 0


def test_each_request_is_one_line_without_secrets(fresh_cay, tmp_path):
    log = tmp_path / 'log'
    with Server(fresh_cay, '--access-log', log) as s:
        box = s.create()
        one = s.ask('GET', f'/sandboxes/{box["sandboxID"]}?secret=hunter2', headers={'X-Access-Token': 'hunter3'})
        s.ask('GET', '/sandboxes', key='e2b_' + '1' * 40)
        s.ask('GET', '/hunter4/', unix=True)
        s.ask('DELETE', f'/sandboxes/{box["sandboxID"]}')
        caylib.wait_until(lambda: len(log_lines(log)) >= 5, what='five lines')
        lines = log_lines(log)
    assert [(r['method'], r['route'], r['status']) for r in lines] == [
        ('POST', '/v2/sandboxes', 201), ('GET', '/sandboxes/{id}', 200), ('GET', '/sandboxes', 401), ('GET', 'none', 404),
        ('DELETE', '/sandboxes/{id}', 204)]
    assert [r['sandbox'] for r in lines] == [None, box['sandboxID'], None, None, box['sandboxID']]
    assert [r['address'] for r in lines] == ['127.0.0.1'] * 3 + ['unix', '127.0.0.1']
    assert lines[0]['key'] == lines[1]['key'] != None and lines[2]['key'] is None  # noqa: E711
    assert lines[1]['request'] == one[2]['Cay-Request-Id'] and len({r['request'] for r in lines}) == 5
    assert lines[1]['bytes_out'] > 0 and lines[0]['bytes_in'] > 0 and all(r['ms'] >= 0 for r in lines)
    text = log.read_text()
    assert s.key not in text and 'hunter' not in text and box['envdAccessToken'] not in text
    assert os.stat(log).st_mode & 0o007 == 0


def test_a_renamed_log_is_opened_again(fresh_cay, tmp_path):
    log = tmp_path / 'log'
    with Server(fresh_cay, '--access-log', log) as s:
        s.ask('GET', '/health')
        caylib.wait_until(lambda: log_lines(log), what='a line')
        os.rename(log, tmp_path / 'log.1')
        s.process.send_signal(signal.SIGHUP)
        caylib.wait_until(log.exists, what='the new log')
        s.ask('GET', '/ready')
        caylib.wait_until(lambda: log_lines(log), what='a line in the new log')
        assert [r['route'] for r in log_lines(log)] == ['/ready']
        assert [r['route'] for r in log_lines(tmp_path / 'log.1')] == ['/health']


def test_a_log_that_cannot_be_written_stops_nobody(fresh_cay):
    """/dev/full has no room for a byte."""
    with Server(fresh_cay, '--access-log', '/dev/full') as s:
        for _ in range(20):
            assert s.ask('GET', '/health')[0] == 200


def test_the_log_can_go_to_stdout(fresh_cay):
    with Server(fresh_cay, '--access-log', '-') as s:
        s.ask('GET', '/health')
        line = json.loads(s.process.read_until(b'}\n').decode().splitlines()[-1])
        assert line['route'] == '/health'


class Load:
    """Clients that ask all the time on kept connections; whatever fails is noted."""

    def __init__(self, server, n=4):
        self.server, self.failed, self.answers, self.ended = server, [], 0, threading.Event()
        self.threads = [threading.Thread(target=self.ask, args=(i,)) for i in range(n)]

    def ask(self, i):
        c = http.client.HTTPConnection(self.server.address, timeout=60 * caylib.SLOWER)
        while not self.ended.is_set():
            if i % 2:  # a new connection each time
                c = http.client.HTTPConnection(self.server.address, timeout=60 * caylib.SLOWER)
            try:
                c.request('GET', '/sandboxes', headers={'X-API-Key': self.server.key})
                r = c.getresponse()
                r.read()
                if r.status != 200:
                    self.failed.append(r.status)
                self.answers += 1
            except (OSError, http.client.HTTPException) as e:
                self.failed.append(repr(e))
                c.close()
        c.close()

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *exc):
        self.ended.set()
        for t in self.threads:
            t.join()


def ready(s):
    return s.ask('GET', '/ready', unix=True)[1].get('generation')


def test_a_restart_loses_no_request_and_no_connection(server):
    pid = server.process.pid
    kept = http.client.HTTPConnection(server.address, timeout=60 * caylib.SLOWER)
    kept.request('GET', '/health')
    assert kept.getresponse().read()
    kept.sock.settimeout(60 * caylib.SLOWER)
    before = kept.sock
    with Load(server) as load:
        for i in range(3):
            front = server.children('serve-front')
            r = server.cay('serve', '--restart')
            assert r.code == 0, r.err
            # For a moment both accept.
            caylib.wait_until(lambda: ready(server) == i + 1, what='the new front')  # noqa: B023
            assert 'restarted' in server.process.stderr.readline().decode()
            # The old front ends when it has given its connections away.
            caylib.wait_until(lambda: len(server.children('serve-front')) == 1, what='the end of the old front')
            assert server.children('serve-front') != front  # noqa: B023
        asked = load.answers
        caylib.wait_until(lambda: load.answers > asked + 20, what='answers after the last restart')
    assert load.failed == [] and server.process.pid == pid and server.process.poll() is None
    # The idle connection has come along.
    kept.request('GET', '/ready')
    assert json.loads(kept.getresponse().read())['generation'] == 3
    assert kept.sock is before
    kept.close()
    assert zombies(pid) == []


def zombies(pid):
    found = []
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as f:
        for child in f.read().split():
            try:
                with open(f'/proc/{child}/stat', encoding='ascii') as g:
                    if g.read().rpartition(')')[2].split()[0] == 'Z':
                        found.append(child)
            except OSError:
                pass
    return found


def rpc(server, box, name, body):
    c = http.client.HTTPConnection(server.address, timeout=60 * caylib.SLOWER)
    c.request('POST', f'/process.Process/{name}', json.dumps(body), {**envd(box), 'Content-Type': 'application/json'})
    r = c.getresponse()
    return r.status, r.read()


class Stream:
    """A streaming RPC, message by message."""

    def __init__(self, server, box, name, body):
        data = json.dumps(body).encode()
        self.c = http.client.HTTPConnection(server.address, timeout=60 * caylib.SLOWER)
        self.c.request('POST', f'/process.Process/{name}', struct.pack('>BI', 0, len(data)) + data,
                       {**envd(box), 'Content-Type': 'application/connect+json'})
        self.r = self.c.getresponse()

    def next(self):
        flags, n = struct.unpack('>BI', self.r.read(5))
        return flags, json.loads(self.r.read(n) or b'{}')

    def until(self, key):
        while True:
            flags, message = self.next()
            if key in message.get('event', {}):
                return message['event'][key]
            assert not flags & 2, message


def test_a_stream_and_its_process_live_through_a_restart(server):
    box = server.create()
    s = Stream(server, box, 'Start', {'process': {'cmd': '/bin/sh', 'args': ['-c', 'echo up; read x; echo got $x; read y; echo and $y']},
                                      'stdin': True})
    pid = s.until('start')['pid']
    assert base64.b64decode(s.until('data')['stdout']) == b'up\n'
    assert server.cay('serve', '--restart').code == 0
    # The new front writes, and both the old stream and a new one hear the answer.
    t = Stream(server, box, 'Connect', {'process': {'pid': pid}})
    assert t.until('start')['pid'] == pid
    for word, said in (('one', b'got one\n'), ('two', b'and two\n')):
        status, body = rpc(server, box, 'SendInput',
                           {'process': {'pid': pid}, 'input': {'stdin': base64.b64encode(word.encode() + b'\n').decode()}})
        assert status == 200, body
        assert base64.b64decode(s.until('data')['stdout']) == said
        assert base64.b64decode(t.until('data')['stdout']) == said
    assert s.until('end')['exited'] and t.until('end')['exited']
    s.c.close()
    t.c.close()
    caylib.wait_until(lambda: len(server.children('serve-front')) == 1, what='the end of the old front')


def test_a_program_that_cannot_start_leaves_the_old_one(fresh_cay, tmp_path):
    config = tmp_path / 'conf'
    config.write_text('# nothing\n')
    with Server(fresh_cay, '--config', config) as s:
        front = s.children('serve-front')
        config.write_text('nonsense = 1\n')
        s.process.send_signal(signal.SIGUSR2)
        assert 'conf:1' in s.process.stderr.readline().decode()
        line = s.process.stderr.readline().decode()
        while 'not restarted' not in line:
            line = s.process.stderr.readline().decode()
        assert s.ask('GET', '/sandboxes')[0] == 200 and s.children('serve-front') == front
        # And a file that was corrected is used: the log begins with the restart.
        config.write_text(f'access-log = {tmp_path}/log\n')
        s.process.send_signal(signal.SIGHUP)
        caylib.wait_until(lambda: ready(s) == 1, what='the restart')
        s.ask('GET', '/sandboxes')
        caylib.wait_until(lambda: log_lines(tmp_path / 'log'), what='a line of the log')


def test_restart_without_a_server_says_so(fresh_cay):
    r = fresh_cay('serve', '--restart')
    assert r.code == 3 and 'no server runs' in r.err


@pytest.mark.parametrize('rounds', [int(os.environ.get('CAY_KILL_ROUNDS', '3'))])
def test_kills_under_load_lose_no_sandbox(server, rounds):
    """An acknowledged create stays, answers come again, and nobody is left behind."""
    made, lost = [], []
    with Load(server, 2):
        for i in range(rounds):
            for victim in ('serve-front', 'serve-worker'):
                status, box, _ = retry(lambda: server.ask('POST', '/v2/sandboxes', {'templateID': 'base', 'allow_internet_access': False}))
                if status == 201:
                    made.append(box['sandboxID'])
                for pid in server.children(victim)[:1]:
                    os.kill(pid, signal.SIGKILL)
            caylib.wait_until(lambda: retry(lambda: server.ask('GET', '/ready', unix=True))[0] == 200, what='the server')
            if i % 2:
                assert server.cay('serve', '--restart').code == 0
    have = {b['sandboxID'] for b in server.ask('GET', '/sandboxes', unix=True)[1]}
    lost = [b for b in made if b not in have]
    assert made and lost == []
    caylib.wait_until(lambda: zombies(server.process.pid) == [], what='no zombie')


def retry(ask):
    """The front may die under it."""
    for _ in range(100):
        try:
            return ask()
        except (OSError, http.client.HTTPException):
            time.sleep(0.05)
    raise AssertionError('no answer')


def test_a_supervisor_that_is_killed_leaves_sandboxes_and_no_process(fresh_cay):
    with Server(fresh_cay) as s:
        box = s.create()
        children = s.children('serve-front') + s.children('serve-worker')
        assert len(children) >= 2
        s.process.kill()
        s.process.wait()
        caylib.wait_until(lambda: not any('cay' in command_of(p) for p in children), what='the end of its processes')
    with Server(fresh_cay) as s:
        assert s.ask('GET', f'/sandboxes/{box["sandboxID"]}', unix=True)[0] == 200
        s.ask('DELETE', f'/sandboxes/{box["sandboxID"]}', unix=True)


def unified():
    """Where control groups of version 2 are, or None."""
    with open('/proc/self/mounts', encoding='utf-8') as f:
        return next((line.split()[1] for line in f if line.split()[2] == 'cgroup2'), None)


def test_sandboxes_of_a_server_live_in_the_group_that_holds_them(fresh_cay, mode):
    """As with cay-sandboxes.service: the server's own group has none of them."""
    root = unified()
    if mode != 'rootful' or not root or not os.access(root, os.W_OK):
        pytest.skip('needs root and control groups of version 2')
    group = f'{root}/cay-hold-{os.path.basename(fresh_cay.state)}'
    try:
        os.mkdir(group)
    except OSError as e:
        pytest.skip(f'no control group can be made: {e}')

    def enter():
        with open(f'{group}/cgroup.procs', 'w', encoding='ascii') as f:
            f.write('0')

    try:
        with fresh_cay.popen('serve-group', preexec_fn=enter) as holder:
            caylib.wait_until(lambda: os.path.exists(f'{fresh_cay.state}/group'), what='the file of the group')
            with open(f'{fresh_cay.state}/group', encoding='utf-8') as f:
                assert f.read() == f'{group}\n'
            with Server(fresh_cay) as s:
                box = s.create()['sandboxID']
                assert os.path.isdir(f'{group}/cay-{box}')
                s.ask('DELETE', f'/sandboxes/{box}', unix=True)
            holder.send_signal(signal.SIGTERM)
            assert holder.finish().code == 0
    finally:
        caylib.wait_until(lambda: not open(f'{group}/cay-self/cgroup.procs', encoding='ascii').read(), what='an empty group')
        os.rmdir(f'{group}/cay-self')
        os.rmdir(group)

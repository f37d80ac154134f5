# SPDX-License-Identifier: Apache-2.0
"""cay serve as its operator sees it: config file, access log, restart."""

import json
import os
import signal
import subprocess

import pytest

import caylib
from test_serve import Server


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

# SPDX-License-Identifier: Apache-2.0
"""Calls that outlive their client: cay exec --detach, logs, attach, calls."""

import json
import os
import signal
import subprocess

import pytest

import caylib


def detach(cay, box, *args, options=()):
    return cay('exec', '-d', *options, box, '--', *args, check=True).out.strip()


def row(cay, box, call):
    return next(r for r in cay.json('calls', box) if str(r['call']) == call)


def test_a_detached_call_prints_its_number_and_keeps_its_output(cay, box):
    call = detach(cay, box, 'sh', '-c', 'echo out; echo err >&2; exit 3')
    assert call == '1'
    r = cay('attach', box, call)
    assert (r.code, r.out, r.err) == (3, 'out\n', 'err\n')
    r = cay('logs', box, call)
    assert (r.code, r.out, r.err) == (0, 'out\n', 'err\n')
    assert cay('logs', '-f', box, call).out == 'out\n'


def test_a_call_is_joined_after_its_client_was_killed(cay, box):
    """Killing a client ends neither the call nor what it has printed."""
    fifo = '/tmp/go'
    cay('exec', box, '--', 'mkfifo', fifo, check=True)
    call = detach(cay, box, 'sh', '-c', f'echo one; read line < {fifo}; echo $line; exit 7')
    with cay.popen('attach', box, call) as first:
        assert first.read_until(b'one\n') == b'one\n'
        first.send_signal(signal.SIGKILL)
        assert first.wait(10) == -signal.SIGKILL
    assert row(cay, box, call)['state'] == 'running'
    with cay.popen('attach', box, call) as second:
        second.read_until(b'one\n')
        cay('exec', box, '--', 'sh', '-c', f'echo two > {fifo}', check=True)
        assert second.read_until(b'two\n') == b'two\n'
        assert second.wait(10) == 7
    assert row(cay, box, call)['exit_code'] == 7


def test_the_starting_client_can_be_killed_at_any_time(cay, box):
    """Whatever moment it is: either there is no call, or there is one that goes on and can be joined."""
    for i in range(10):
        p = cay.popen('exec', '-d', '--call-id', f'n{i}', box, '--', 'sleep', '600')
        with p:
            try:
                p.wait(0.002 * i)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait(10)
    for r in cay.json('calls', box):
        assert r['state'] == 'running' and r['detached']
        with cay.popen('attach', '--no-stdin', box, r['call_id']) as view:
            view.send_signal(signal.SIGKILL)
            view.wait(10)
    rows = cay.json('calls', box)
    assert rows and all(r['state'] == 'running' for r in rows)


def test_signals_reach_the_call_by_attach_and_not_by_logs(cay, box):
    call = detach(cay, box, 'sh', '-c', 'trap "echo got it; exit 5" INT; echo up; while :; do sleep 0.1; done', options=('--call-id', 'web'))
    with cay.popen('logs', '-f', box, 'web') as logs:
        logs.read_until(b'up\n')
        logs.send_signal(signal.SIGINT)
        logs.wait(10)
    assert row(cay, box, call)['state'] == 'running'
    with cay.popen('attach', box, 'web') as p:
        p.read_until(b'up\n')
        p.send_signal(signal.SIGINT)
        p.read_until(b'got it\n')
        assert p.wait(10) == 5


def test_only_the_end_of_much_output_is_kept(cay, box):
    call = detach(cay, box, 'sh', '-c', 'head -c 5000000 /dev/zero; echo; echo last')
    caylib.wait_until(lambda: row(cay, box, call)['state'] == 'exit', what='the end of the call')
    with cay.popen('logs', box, call) as p:
        out, err = p.communicate(timeout=20)
    assert out.endswith(b'last\n') and 900_000 < len(out) <= (1 << 20) + 65536
    dropped = 5_000_006 - len(out)
    assert err.decode() == f'cay: the first {dropped} bytes are not kept any more\n'


def test_logs_do_not_wait_for_a_running_call(cay, box):
    call = detach(cay, box, 'sh', '-c', 'echo so far; sleep 600')
    caylib.wait_until(lambda: row(cay, box, call)['kept_to'] == 7, what='the output')
    assert cay('logs', box, call, timeout=10).out == 'so far\n'
    silent = detach(cay, box, 'sleep', '600')
    assert cay('logs', box, silent, timeout=10).out == ''


def test_a_terminal_is_left_and_joined_again(cay, box):
    detach(cay, box, 'sh', options=('-t', '--call-id', 'sh'))
    for word in ('first', 'second'):
        with cay.spawn_pty('attach', box, 'sh') as t:
            t.send(f'echo $((1+1)){word}\n')
            t.expect(f'2{word}')
            t.send('\x10\x11')
            t.expect('goes on')
            assert t.wait() == 0
    with cay.spawn_pty('attach', box, 'sh') as t:
        t.send('exit 4\n')
        assert t.wait() == 4


@pytest.mark.parametrize('args, code, text', [
    (['logs', None, '99'], 5, "there is no call '99' in sandbox"),
    (['logs', None, 'nobody'], 5, "there is no call 'nobody' in sandbox"),
    (['attach', None, '99999999999999'], 125, "there is no call '99999999999999'"),
    (['logs', None], 2, 'a SANDBOX and a CALL'),
    (['calls', 'nope'], 5, "'nope'"),
    (['exec', '-d', '--tx', None, '--', 'true'], 125, '--detach and --tx'),
])
def test_mistakes_are_named(cay, box, args, code, text):
    r = cay(*[box if a is None else a for a in args])
    assert r.code == code and text in r.err


def test_a_call_that_is_not_detached_is_listed_and_not_joined(cay, box):
    cay('exec', box, '--', 'echo', 'hello', check=True)
    found = row(cay, box, '1')
    assert (found['state'], found['exit_code'], found['detached'], found['args']) == ('exit', 0, False, 'echo hello')
    r = cay('logs', box, '1')
    assert r.code == 1 and 'call 1 is not detached' in r.err
    assert cay('calls', '-q', box).out == '1\n'
    assert 'echo hello' in cay('calls', box).out


def test_calls_are_listed_by_number(cay, box):
    for detached in (True, False, False, True, False):
        cay('exec', *(['-d'] if detached else []), box, '--', 'true', check=True)
    rows = cay.json('calls', box)
    assert [(r['call'], r['detached']) for r in rows] == [(1, True), (2, False), (3, False), (4, True), (5, False)]


def test_json_names_the_sandbox(cay, box):
    assert json.loads(cay('exec', '--json', box, '--', 'true', check=True).err)['sandbox'] == box
    assert json.loads(cay('exec', '-d', '--json', box, '--', 'true', check=True).out)['sandbox'] == box
    caylib.wait_until(lambda: row(cay, box, '2')['state'] == 'exit', what='the end of the call')
    assert json.loads(cay('exec', '--tx', '--json', box, '--', 'true', check=True).err.splitlines()[0])['sandbox'] == box


def test_a_detached_command_that_does_not_exist_is_told_by_its_log(cay, box):
    call = detach(cay, box, 'nosuch')
    caylib.wait_until(lambda: row(cay, box, call)['state'] == 'failed', what='the end of the call')
    r = cay('logs', box, call)
    assert r.code != 0 and 'nosuch' in r.err and 'not found' in r.err


def test_the_end_of_the_sandbox_ends_a_view(cay, box):
    call = detach(cay, box, 'sh', '-c', 'echo up; sleep 600')
    with cay.popen('logs', '-f', box, call) as p:
        p.read_until(b'up\n')
        cay('kill', box, check=True)
        assert p.wait(10) in (0, 3)
    assert not os.path.exists(f'{cay.state}/sandboxes/{box}')

# SPDX-License-Identifier: Apache-2.0
"""cay shell and -t: a real terminal inside, and ours as it was afterwards."""

import os
import signal
import termios

import pytest

import caylib

BASH = ['bash', '--norc', '--noprofile', '-i']


@pytest.fixture
def bash(cay, box):
    """An interactive shell on a terminal of 24 by 80."""
    with cay.spawn_pty('exec', '-t', '--env', 'PS1=ready> ', box, '--', *BASH) as t:
        t.expect('ready> ')
        yield t


def test_the_command_has_a_terminal_on_all_three(cay):
    script = 'import os; print([os.isatty(i) for i in (0, 1, 2)], os.ttyname(0).rsplit("/", 1)[0], os.open("/dev/tty", os.O_RDWR) > 0)'
    with cay.spawn_pty('run', '-t', '--', 'python3', '-c', script) as t:
        t.expect(r'\[True, True, True\] /dev/pts True')
        assert t.wait() == 0


def test_without_t_there_is_no_terminal(cay):
    with cay.spawn_pty('run', '--', 'sh', '-c', 'test -t 0; echo $?; test -t 1; echo $?; tty; (: < /dev/tty) || echo none') as t:
        t.expect('1\r\n1\r\nnot a tty')
        t.expect('none')
        t.wait()


def test_t_without_a_terminal_of_ours_still_gives_one(cay):
    r = cay('run', '-t', '--', 'sh', '-c', 'tty; exit 3')
    assert r.code in (3, 125), r
    assert '/dev/pts/' in r.out if r.code == 3 else 'terminal' in r.err, r


def test_the_size_is_ours(cay):
    with cay.spawn_pty('run', '-t', '--', 'stty', 'size', rows=33, cols=99) as t:
        t.expect('33 99')
        assert t.wait() == 0


def test_a_resize_is_seen_inside(cay):
    script = 'import os, signal\ndef show(*_): os.write(1, b"%d %d." % os.get_terminal_size()[::-1])\n' \
             'signal.signal(signal.SIGWINCH, show); print("go", flush=True)\nwhile True: signal.pause()'
    with cay.spawn_pty('run', '-t', '--', 'python3', '-c', script) as t:
        t.expect('go')
        t.resize(41, 123)
        t.expect(r'41 123\.')
        t.resize(20, 60)
        t.expect(r'20 60\.')


def test_ctrl_c_interrupts_the_command_but_not_the_shell(bash):
    bash.send('sh -c "echo \'go\'ne; exec sleep 600"\n')
    bash.expect('gone\r\n')
    bash.send('\x03')
    bash.expect('ready> ')
    bash.send('echo code $?\n')
    bash.expect(f'code {128 + signal.SIGINT}')


def test_ctrl_z_and_fg_work(bash):
    bash.send('sh -c "echo \'go\'ne; exec cat"\n')
    bash.expect('gone\r\n')
    bash.send('\x1a')
    bash.expect('Stopped')
    bash.expect('ready> ')
    bash.send('jobs\n')
    bash.expect(r'\[1\]\+  Stopped')
    bash.expect('ready> ')
    bash.send('fg\n')
    bash.expect('fg\r\n')
    bash.expect('exec cat"\r\n')
    bash.send('through\n')
    bash.expect('through\r\nthrough\r\n')
    bash.send('\x04')
    bash.expect('ready> ')


def test_background_jobs_and_kill_work(bash):
    bash.send('sleep 600 & kill %1; wait; echo waited\n')
    bash.expect('waited\r\n')


def test_ctrl_d_ends_the_shell_with_its_code(bash):
    bash.send('false\n')
    bash.expect('ready> ')
    bash.send('\x04')
    assert bash.wait() == 1


def test_ctrl_backslash_and_bytes_pass(cay):
    with cay.spawn_pty('run', '-t', '--', 'sh', '-c', 'stty raw -echo; echo go; head -c 6 | od -An -tx1') as t:
        t.expect('go')
        t.send(b'\x00\x03\x1c\xff\x1a\x11')
        t.expect('00 03 1c ff 1a 11')
        assert t.wait() == 0


def test_shell_opens_a_login_shell_of_the_user(cay, box):
    with cay.spawn_pty('shell', '--env', 'PS1=ready> ', box) as t:
        t.send('echo $0-$(id -un)-$((6*7)); tty; stty size\n')
        t.expect(r'bash-user-42')
        t.expect('/dev/pts/0')
        t.expect('24 80')
        t.send('exit 7\n')
        assert t.wait() == 7


def test_our_terminal_is_raw_meanwhile_and_restored_afterwards(cay, box):
    with caylib.Terminal(cay, ('exec', '-t', box, '--', 'sh', '-c', 'echo go; read x; exit 4'), 24, 80, cay.env) as t:
        before = termios.tcgetattr(t.fd)
        t.expect('go')
        caylib.wait_until(t.is_raw, what='the raw mode')
        t.send('x\n')
        caylib.wait_until(lambda: not t.is_raw() or t.code is not None, what='the old mode')
        assert t.wait() == 4
        after = termios.tcgetattr(t.fd)
        assert after[3] & termios.ICANON and after[3] & termios.ECHO and (after[:4] == before[:4] or before[3] & termios.ICANON == 0)


@pytest.mark.parametrize('how', ['kill', 'warden', 'timeout'])
def test_our_terminal_is_restored_whatever_ends_the_call(cay, box, how):
    args = ['exec', '-t'] + (['--timeout', '2s'] if how == 'timeout' else []) + [box, '--', 'sh', '-c', 'echo go; sleep 600']
    with cay.spawn_pty(*args) as t:
        t.expect('go')
        caylib.wait_until(t.is_raw, what='the raw mode')
        if how == 'kill':
            cay('kill', box, check=True)
        elif how == 'warden':
            os.kill(cay.warden(box), signal.SIGKILL)
        assert t.wait() in (124, 125, 137)
        assert not t.is_raw()


def test_a_terminal_that_goes_away_ends_the_call(cay, box):
    with cay.spawn_pty('exec', '-t', box, '--', 'sh', '-c', 'echo go; sleep 600') as t:
        t.expect('go')
    caylib.wait_until(lambda: len(cay.json('ps', box)) == 1, what='the end of the call')


def test_much_output_on_a_terminal_is_complete(cay):
    with cay.spawn_pty('run', '-t', '--', 'seq', '1', '200000') as t:
        assert t.wait(60) == 0
        assert t.output.split() == [str(i).encode() for i in range(1, 200001)]

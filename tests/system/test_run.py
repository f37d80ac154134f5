# SPDX-License-Identifier: Apache-2.0
"""cay run: exit codes, streams, arguments, environment, users, signals, and what stays after it."""

import hashlib
import os
import signal
import sqlite3
import subprocess
import time

import pytest

import caylib

rootful = pytest.mark.skipif(not caylib.ROOTFUL, reason='needs root: a rootless sandbox has one uid')
rootless = pytest.mark.skipif(caylib.ROOTFUL, reason='about rootless sandboxes')


def one_line_error(r, code, *parts):
    """One line that names the thing, perhaps a hint, nothing on stdout, this exit code."""
    assert r.code == code, r
    assert r.stdout == b'', r
    lines = r.err.splitlines()
    assert lines and lines[0].startswith('cay'), r
    assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith('hint: ')), r
    for part in parts:
        assert part in r.err, r


# --- exit codes ---

@pytest.mark.parametrize('code', [0, 1, 2, 42, 124, 125, 126, 127, 128, 255])
def test_the_exit_code_is_the_commands_own(cay, code):
    r = cay('run', '--', 'sh', '-c', f'exit {code}')
    assert (r.code, r.stdout, r.stderr) == (code, b'', b'')


@pytest.mark.parametrize('sig', ['HUP', 'INT', 'QUIT', 'KILL', 'USR1', 'PIPE', 'TERM', 'SEGV'])
def test_death_by_a_signal_is_128_plus_its_number(cay, sig):
    r = cay('run', '--', 'sh', '-c', f'ulimit -c 0; kill -{sig} $$; sleep 5')
    assert r.code == 128 + getattr(signal, f'SIG{sig}'), r


def test_a_command_that_does_not_exist_is_127(cay):
    one_line_error(cay('run', '--', 'no-such-command'), 127, "'no-such-command'", 'not found')
    one_line_error(cay('run', '--', '/no/such/command'), 127, "'/no/such/command'", 'not found')


def test_a_file_that_cannot_be_executed_is_126(cay):
    one_line_error(cay('run', '--', '/etc/passwd'), 126, "'/etc/passwd'")
    one_line_error(cay('run', '--', '/etc'), 126, "'/etc'")


def test_a_script_whose_interpreter_is_missing_is_not_silent(cay):
    r = cay('run', '--', 'sh', '-c', 'printf "#!/no/interpreter\\n" > s; chmod +x s; exec ./s')
    assert r.code in (126, 127), r
    assert r.err, r


def test_a_timeout_is_124(cay):
    start = time.monotonic()
    r = cay('run', '--timeout', '300ms', '--', 'sleep', '60')
    assert r.code == 124, r
    assert 0.3 <= time.monotonic() - start < 5 * caylib.SLOWER
    assert 'time' in r.err.lower() or r.err == '', r


def test_a_command_that_ends_in_time_keeps_its_code(cay):
    assert cay('run', '--timeout', '20s', '--', 'sh', '-c', 'exit 3').code == 3


@pytest.mark.parametrize('args, part', [
    (['run'], 'no command'),
    (['run', '--'], 'no command'),
    (['run', '--bogus', '--', 'true'], "'--bogus'"),
    (['run', '--timeout', 'abc', '--', 'true'], "'abc'"),
    (['run', '--timeout', '-1s', '--', 'true'], "'-1s'"),
    (['run', '--env', '=x', '--', 'true'], '--env'),
    (['run', '--env', '1a=x', '--', 'true'], '--env'),
    (['run', '--label', 'x', '--', 'true'], "'x'"),
    (['run', '--name', 'a b', '--', 'true'], "'a b'"),
    (['run', '--name', 'x' * 64, '--', 'true'], '--name'),
    (['run', '--call-id', 'x' * 64, '--', 'true'], '--call-id'),
    (['run', '--cwd', 'relative', '--', 'true'], "'relative'"),
    (['run', '--trace', 'nothing', '--', 'true'], "'nothing'"),
    (['run', '--user', 'no-such-user', '--', 'true'], "'no-such-user'"),
    (['run', '--cwd', '/no/such/dir', '--', 'true'], "'/no/such/dir'"),
    (['run', '--name', 'a', '--name', 'b', '--', 'true'], '--name'),
    (['run', '--timeout'], '--timeout'),
])
def test_a_mistake_in_the_command_line_is_125_with_one_line(cay, args, part):
    one_line_error(cay(*args), 125, part)


# --- streams ---

def test_all_byte_values_pass_both_ways(cay):
    data = bytes(range(256)) * 17
    r = cay('run', '--', 'sh', '-c', 'tee /dev/stderr', input=data)
    assert (r.code, r.stdout, r.stderr) == (0, data, data)


def test_fifty_megabytes_pass_through_cat_unchanged(cay):
    data = os.urandom(1 << 20) * 50
    r = cay('run', '--', 'cat', input=data)
    assert r.code == 0 and r.stderr == b''
    assert hashlib.sha256(r.stdout).digest() == hashlib.sha256(data).digest()


def test_stdout_and_stderr_stay_separate_and_in_order(cay):
    script = 'i=0; while [ $i -lt 2000 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done'
    r = cay('run', '--', 'sh', '-c', script)
    assert r.out.split() == [f'o{i}' for i in range(2000)]
    assert r.err.split() == [f'e{i}' for i in range(2000)]


def test_output_without_a_newline_and_no_output_are_exact(cay):
    r = cay('run', '--', 'printf', 'a\\0b')
    assert (r.code, r.stdout, r.stderr) == (0, b'a\0b', b'')
    r = cay('run', '--', 'true')
    assert (r.code, r.stdout, r.stderr) == (0, b'', b'')


def test_closed_stdin_is_empty(cay):
    assert cay('run', '--', 'wc', '-c').out == '0\n'
    with cay.popen('run', '--', 'wc', '-c', preexec_fn=lambda: os.close(0)) as p:
        assert p.finish().out == '0\n'


def test_output_comes_while_the_command_runs(cay):
    with cay.popen('run', '--', 'sh', '-c', 'echo first; read x; echo $x', stdin=subprocess.PIPE) as p:
        p.read_until(b'first\n')
        p.stdin.write(b'second\n')
        p.stdin.flush()
        p.read_until(b'second\n')
        assert p.wait(10) == 0


def test_stdin_that_the_command_does_not_read_is_no_error(cay):
    r = cay('run', '--', 'true', input=b'x' * (8 << 20))
    assert (r.code, r.stdout, r.stderr) == (0, b'', b'')
    r = cay('run', '--', 'head', '-c', '10', input=b'x' * (8 << 20))
    assert (r.code, r.stdout, r.stderr) == (0, b'x' * 10, b'')


def test_a_command_that_closes_its_output_early_still_ends_with_its_code(cay):
    assert cay('run', '--', 'sh', '-c', 'exec >&- 2>&-; sleep 0.2; exit 9').code == 9


def test_a_reader_that_goes_away_ends_the_command_by_sigpipe(cay):
    with cay.popen('run', '--', 'yes') as p:
        p.read_until(b'y\n')
        p.stdout.close()
        p.stdout = None
        assert p.wait(10) == 128 + signal.SIGPIPE


def test_a_broken_pipe_inside_is_as_silent_as_outside(cay):
    r = cay('run', '--', 'bash', '-c', 'yes | head -n 1; echo ${PIPESTATUS[0]}')
    assert (r.out, r.err) == (f'y\n{128 + signal.SIGPIPE}\n', '')


# --- arguments and environment ---

def echo_args(cay, *args, **options):
    r = cay('run', '--', 'python3', '-c', 'import os, sys; sys.stdout.buffer.write(b"\\0".join('
            'os.fsencode(a) for a in sys.argv[1:]) + b"\\0")', *args, check=True, **options)
    return r.stdout.split(b'\0')[:-1]


def test_arguments_arrive_as_they_were_given(cay):
    args = ['', 'a b', '', '*', '$HOME', '"', "'", '\\', '\n', '-x', '--', '--help', 'ünïcödé 😀', '']
    assert echo_args(cay, *args) == [a.encode() for a in args]
    assert echo_args(cay, b'\xff\xfe', b'\x80') == [b'\xff\xfe', b'\x80']


def test_options_after_the_command_belong_to_it(cay):
    assert cay('run', 'echo', '--help', '-t', '--name').out == '--help -t --name\n'


def test_a_hundred_kilobytes_of_arguments_arrive(cay):
    args = [f'{i:0100d}' for i in range(1000)]
    assert echo_args(cay, *args) == [a.encode() for a in args]
    assert [len(a) for a in echo_args(cay, 'x' * 100_000)] == [100_000]


def test_arguments_beyond_the_limit_are_refused_clearly(cay):
    r = cay('run', '--', 'true', *['x' * 100_000] * 15)
    one_line_error(r, 125)
    assert 'large' in r.err or 'long' in r.err or 'argument' in r.err, r
    r = cay('run', '--', 'true', *['x'] * 5000)
    one_line_error(r, 125)
    assert 'arguments' in r.err, r


def environment(cay, *args, **options):
    r = cay('run', *args, '--', 'env', '-0', check=True, **options)
    return dict(item.split(b'=', 1) for item in r.stdout.split(b'\0')[:-1])


def test_nothing_of_our_environment_leaks_in(cay):
    canary = {'CANARY': 'tweet', 'LD_LIBRARY_PATH': '/tmp/canary', 'AWS_SECRET_ACCESS_KEY': 'canary',
              'SSH_AUTH_SOCK': '/tmp/canary', 'PATH': os.environ['PATH'] + ':/tmp/canary',
              'HOME': '/tmp/canary', 'LC_ALL': 'canary'}
    found = environment(cay, env=canary)
    assert set(found) == {b'CAY_SANDBOX', b'CAY_CALL', b'HOME', b'LANG', b'LOGNAME', b'PATH', b'SHELL', b'USER'}
    assert not any(b'canary' in v or b'tweet' in v for v in found.values())
    assert caylib.ROOTFUL or found[b'HOME'] == b'/home/user'


def test_no_environment_of_ours_shows_in_proc(cay):
    r = cay('run', '--', 'sh', '-c', 'cat /proc/*/environ 2>/dev/null; cat /proc/1/environ', env={'CANARY': 'tweet'})
    assert b'tweet' not in r.stdout + r.stderr
    assert cay.state.encode() not in r.stdout, r


def test_env_sets_passes_and_overrides(cay):
    found = environment(cay, '--env', 'A=1', '--env', 'EMPTY=', '--env', 'FROM_US', '--env', 'PATH=/usr/bin:/bin',
                        '-e', 'EQ=a=b', env={'FROM_US': 'ours'})
    assert (found[b'A'], found[b'EMPTY'], found[b'FROM_US'], found[b'PATH'], found[b'EQ']) == \
        (b'1', b'', b'ours', b'/usr/bin:/bin', b'a=b')


def test_env_that_we_do_not_have_is_not_set(cay):
    r = cay('run', '--env', 'CAY_TEST_NOT_SET', '--', 'env')
    assert r.code in (0, 125), r
    assert 'CAY_TEST_NOT_SET=' not in r.out
    assert r.code == 0 or 'CAY_TEST_NOT_SET' in r.err, r


def test_env_keeps_bytes_that_are_not_utf8(cay):
    assert environment(cay, '--env', b'X=\xff\xfe', '--env', 'Y=ü😀\n')[b'X'] == b'\xff\xfe'
    assert environment(cay, '--env', 'B', env={'B': b'\xff'})[b'B'] == b'\xff'


# --- cwd, user, host name ---

def test_cwd_is_where_the_command_runs(cay):
    assert cay('run', '--cwd', '/usr/bin', '--', 'pwd').out == '/usr/bin\n'
    assert cay('run', '--', 'pwd').out == '/home/user\n'


def test_the_host_name_is_ours_to_choose(cay):
    assert cay('run', '--hostname', 'island-7', '--', 'uname', '-n').out == 'island-7\n'
    assert cay('run', '--name', 'isle', '--', 'uname', '-n').out == 'isle\n'
    assert os.uname().nodename not in cay('run', '--', 'uname', '-n').out.split()


def test_the_default_user_is_user_1000(cay):
    assert cay('run', '--', 'sh', '-c', 'id -u; id -g; id -un').out == '1000\n1000\nuser\n'


@rootful
@pytest.mark.parametrize('user, ids', [('root', '0 0'), ('0', '0 0'), ('1000', '1000 1000'), ('user', '1000 1000'),
                                       ('1234:1234', '1234 1234'), ('1234:5', '1234 5')])
def test_user_chooses_uid_and_gid(cay, user, ids):
    r = cay('run', '--user', user, '--', 'sh', '-c', 'echo $(id -u) $(id -g); touch /tmp/x && stat -c "%u %g" /tmp/x')
    assert r.out == f'{ids}\n{ids}\n', r


@rootful
@pytest.mark.parametrize('user', ['no-such-user', '65536', '4294967295', '-1', '1:2:3', '1000:', ''])
def test_a_user_that_cannot_be_is_refused(cay, user):
    one_line_error(cay('run', '--user', user, '--', 'true'), 125, user)


@rootful
def test_other_users_are_not_in_our_groups(cay):
    assert cay('run', '--user', '1234', '--', 'id', '-G').out.split() == ['1234']


@rootless
@pytest.mark.parametrize('user', ['root', '0', '1234', '1234:1234'])
def test_another_user_is_refused_with_the_reason(cay, user):
    r = cay('run', '--user', user, '--', 'true')
    one_line_error(r, 125, user.split(':')[0], 'rootless')
    assert 'Invalid argument' not in r.err, r


@rootless
def test_our_one_user_can_be_named(cay):
    assert cay('run', '--user', '1000', '--', 'id', '-u').out == '1000\n'
    assert cay('run', '--user', 'user', '--', 'id', '-u').out == '1000\n'


# --- timeouts, signals, sudden death ---

def test_a_timeout_ends_the_whole_tree(cay, box):
    script = 'setsid sleep 771 & setsid sh -c "setsid sleep 772 & exec sleep 773" & ' \
             '(setsid nohup sh -c "sleep 774; :" &) ; sleep 775'
    r = cay('exec', '--timeout', '700ms', box, '--', 'sh', '-c', script)
    assert r.code == 124, r
    # All of them have been killed by now; the kernel takes its time to take them down.
    caylib.wait_until(lambda: [p['args'] for p in cay.json('ps', box)] == ['cay-init'], what='the end of the tree')


def test_a_timeout_cannot_be_ignored(cay):
    r = cay('run', '--timeout', '300ms', '--', 'sh', '-c', 'trap "" TERM INT HUP; while :; do sleep 1; done')
    assert r.code == 124, r


@pytest.mark.parametrize('sig', ['INT', 'TERM', 'HUP', 'QUIT', 'USR1', 'USR2'])
def test_signals_reach_the_command(cay, sig):
    script = f'trap "echo got; exit 42" {sig}; echo ready; while :; do sleep 0.02; done'
    with cay.popen('run', '--', 'sh', '-c', script) as p:
        p.read_until(b'ready\n')
        p.send_signal(getattr(signal, f'SIG{sig}'))
        r = p.finish()
        assert (r.code, r.stdout) == (42, b'got\n'), r


@pytest.mark.parametrize('sig', ['INT', 'TERM', 'HUP', 'QUIT'])
def test_a_signal_that_the_command_does_not_catch_ends_it(cay, sig):
    with cay.popen('run', '--', 'sh', '-c', 'ulimit -c 0; echo ready; exec sleep 60') as p:
        p.read_until(b'ready\n')
        p.send_signal(getattr(signal, f'SIG{sig}'))
        assert p.finish().code == 128 + getattr(signal, f'SIG{sig}')


def test_a_command_starts_with_default_signals(cay):
    for ignored in ('', 'trap "" HUP INT QUIT PIPE USR1; '):
        with caylib.shell(cay, f'{ignored}exec "$CAY" run -- grep -E "Sig(Ign|Blk)" /proc/self/status') as p:
            r = p.finish()
            assert r.out.split() == ['SigBlk:', '0' * 16, 'SigIgn:', '0' * 16], r


def test_killing_cay_run_leaves_nothing_behind(fresh_cay):
    script = 'setsid sleep 776 & touch /tmp/x ~/y; echo ready; sleep 777'
    with fresh_cay.popen('run', '--', 'sh', '-c', script) as p:
        p.read_until(b'ready\n')
        p.kill()
        p.wait(30)
    assert caylib.leftovers([fresh_cay], set()) == []


def test_killing_cay_run_at_any_moment_leaves_nothing_behind(fresh_cay):
    fresh_cay('run', '--', 'true', check=True)
    for i in range(24):
        with fresh_cay.popen('run', '--', 'sleep', '5') as p:
            time.sleep(i * 0.002)
            p.kill()
            p.wait(30)
    end = time.monotonic() + caylib.LEFTOVER_WAIT_S
    while [t for t in caylib.descendants(fresh_cay.pids)] and time.monotonic() < end:
        time.sleep(0.02)
    fresh_cay('gc', check=True)
    assert caylib.leftovers([fresh_cay], set()) == []


def test_killing_the_warden_fails_the_run_and_gc_cleans(fresh_cay):
    with fresh_cay.popen('run', '--', 'sh', '-c', 'touch /tmp/x; echo ready; sleep 778') as p:
        p.read_until(b'ready\n')
        os.kill(fresh_cay.warden(fresh_cay.listed()[-1]), signal.SIGKILL)
        r = p.finish()
        assert r.code == 125, r
        assert 'the sandbox ended while the command ran' in r.err, r
    fresh_cay('gc', check=True)
    assert caylib.leftovers([fresh_cay], set()) == []


def test_the_death_of_init_from_inside_is_said(cay):
    r = cay('run', '--', 'sh', '-c', 'kill -9 1; kill -TERM 1; kill -INT 1; echo alive')
    assert r.out == 'alive\n', r  # pid 1 takes no signal from its own


def test_background_processes_die_with_the_run(cay):
    r = cay('run', '--', 'sh', '-c', 'setsid sleep 779 >/dev/null 2>&1 & (sleep 780 &) ; exit 7')
    assert r.code == 7
    assert [t for t in caylib.descendants(cay.pids) if 'sleep' in t] == []


def test_background_processes_that_hold_stdout_do_not_delay_the_end(cay):
    start = time.monotonic()
    assert cay('run', '--', 'sh', '-c', 'sleep 30 & echo done').out == 'done\n'
    assert time.monotonic() - start < 5 * caylib.SLOWER


@pytest.mark.parametrize('command, code', [(['true'], 0), (['sh', '-c', 'sleep 0.05; exit 3'], 3), (['nosuch'], 127)])
def test_the_trace_is_whole_when_run_returns(fresh_cay, command, code):
    assert fresh_cay('run', '--', *command).code == code
    ended, = caylib.list_dir(f'{fresh_cay.state}/ended')
    ref = ended.split('.')[0]
    fresh_cay('trace', 'verify', ref, check=True)
    kinds = [e['kind'] for e in fresh_cay.json('trace', ref)]
    assert kinds[0] == 'sandbox.create' and kinds[-1] == 'sandbox.end' and 'call.start' in kinds, kinds
    assert fresh_cay('ls', '-q', '--all').out == ''
    assert caylib.leftovers([fresh_cay], set()) == []


def test_a_command_that_runs_for_a_while_is_listed_and_can_be_entered(cay):
    cay('run', '--', 'true', check=True)  # makes the template's layer
    with cay.popen('run', '--', 'sh', '-c', 'read x; exit 9', stdin=subprocess.PIPE) as p:
        ref = cay.listed()[-1]
        assert cay('exec', ref, '--', 'echo', 'in').out == 'in\n'
        p.stdin.write(b'\n')
        p.stdin.flush()
        assert p.wait(10) == 9
    assert ref not in cay('ls', '-q', '--all').out.split()


def test_a_busy_catalog_stops_neither_output_nor_signals(fresh_cay):
    """A cay run that nobody can ask for by name has nothing to do with the catalog."""
    fresh_cay('run', '--', 'true', check=True)  # makes the template's layer
    fresh_cay('ls', check=True)  # and the catalog
    db = sqlite3.connect(f'{fresh_cay.state}/catalog.db', timeout=5, isolation_level=None)
    db.execute('BEGIN EXCLUSIVE')
    with fresh_cay.popen('run', '--', 'sh', '-c', 'trap "echo got it; exit 7" INT; while :; do echo tick; sleep 0.02; done',
                         stdout=subprocess.PIPE) as p:
        times = []
        for _ in range(30):
            assert p.stdout.readline() == b'tick\n'
            times.append(time.monotonic())
        assert max(b - a for a, b in zip(times, times[1:])) < 2 * caylib.SLOWER, 'output stood still'
        p.send_signal(signal.SIGINT)
        start = time.monotonic()
        assert b'got it' in p.stdout.read() and p.wait(10) == 7
        assert time.monotonic() - start < 2 * caylib.SLOWER, 'the signal came late'
    db.rollback()
    db.close()


def test_what_a_killed_run_left_is_removed_by_later_ones(fresh_cay):
    """cay and its warden are killed: nobody but the next cay run can clean up after them."""
    fresh_cay('run', '--', 'true', check=True)
    with fresh_cay.popen('run', '--', 'sleep', '60') as p:
        ref, = fresh_cay.listed()
        warden = fresh_cay.warden(ref)
        os.kill(warden, signal.SIGSTOP)
        p.kill()
        p.wait(10)
        os.kill(warden, signal.SIGKILL)
    for _ in range(3):
        fresh_cay('run', '--', 'true', check=True)
    caylib.wait_until(lambda: not os.path.exists(f'{fresh_cay.state}/sandboxes/{ref}') and
                      not os.path.exists(f'{fresh_cay.state}/locks/{ref}'), what='the end of what it left')


def test_run_keep_keeps_the_sandbox(cay):
    r = cay('run', '--keep', '--', 'sh', '-c', 'echo hi > /tmp/f', check=True)
    assert 'cay kill' in r.err, r
    ref = cay.listed()[-1]
    assert ref in r.err
    assert cay('exec', ref, '--', 'cat', '/tmp/f').out == 'hi\n'
    cay('kill', ref, check=True)


def test_a_full_stdout_is_an_error(cay):
    with open('/dev/full', 'wb') as full, cay.popen('run', '--', 'echo', 'x', stdout=full) as p:
        r = p.finish()
        assert r.code == 125 and 'stdout' in r.err and 'No space left' in r.err, r


def test_a_background_process_that_never_stops_writing_does_not_delay_the_end(cay):
    with cay.popen('run', '--', 'sh', '-c', 'yes & sleep 0.2; exit 5', stdout=subprocess.DEVNULL) as p:
        assert p.wait(10) == 5


def test_a_command_can_open_its_own_stdio_by_name(cay):
    r = cay('run', '--', 'sh', '-c', 'echo out > /dev/stdout; echo err > /dev/stderr; cat /dev/stdin', input='in\n')
    assert (r.out, r.err) == ('out\nin\n', 'err\n')

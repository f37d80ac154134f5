# SPDX-License-Identifier: Apache-2.0
"""Limits: kept, told, and for one sandbox only."""

import json
import os
import re
import resource

import pytest

import caylib
from caylib import GROUPS, ROOTFUL, read_text, wait_until

MIB = 1 << 20
needs_groups = pytest.mark.skipif(not GROUPS, reason='an ordinary user has no control groups here')

HOG = 'import time\nkeep = []\nwhile True: keep.append(bytearray(4 << 20))'
FORKS = '''
import os, time
n = 0
try:
    while n < 300:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        n += 1
except BlockingIOError:
    pass
print(n, flush=True)
os.kill(0, 9)
'''
DUPS = '''
import errno, os
n = 0
try:
    while True:
        os.dup(0)
        n += 1
except OSError as e:
    print(n, errno.errorcode[e.errno])
'''
BUSY = '''
import time
start, used = time.monotonic(), time.process_time()
while time.monotonic() - start < 2:
    pass
print((time.process_time() - used) / (time.monotonic() - start))
'''
WRITER = '''
import time
for i in range(2000):
    with open(f'/tmp/part{i}', 'wb') as f:
        f.write(b'x' * (1 << 20))
    time.sleep(0.005)
'''


def python(text):
    return ('--', 'python3', '-c', text)


def available():
    return int(re.search(r'MemAvailable:\s+(\d+)', read_text('/proc/meminfo')).group(1)) << 10


def events(cay, ref, kind):
    out = cay('trace', ref, '--json', check=True).out
    return [e for e in map(json.loads, out.splitlines()) if e['kind'] == kind]


@pytest.fixture
def sandbox(cay):
    """sandbox(*options): the id of a new one, killed at the end."""
    made = []

    def make(*options):
        made.append(cay('create', *options, check=True).out.strip())
        return made[-1]

    yield make
    for box in made:
        cay('kill', box)


@needs_groups
def test_a_memory_hog_is_killed_at_its_limit_and_only_there(cay, sandbox):
    box, neighbour = sandbox('--memory', '64M'), sandbox()
    before = available()
    with cay.popen('exec', box, *python(HOG)) as hog:
        assert cay('exec', neighbour, '--', 'echo', 'well').out == 'well\n'
        err = hog.communicate(timeout=20)[1].decode()
    assert hog.returncode == 137
    assert err == 'cay: the command was killed: out of memory (--memory 64 MiB)\n'
    assert before - available() < 1024 * MIB
    assert cay('exec', box, '--', 'echo', 'on').out == 'on\n'
    hit, = events(cay, box, 'limit.hit')
    assert (hit['limit'], hit['bytes'], hit['call']) == ('memory', 64 * MIB, 1)
    assert events(cay, box, 'call.exit')[0]['reason'] == 'oom'
    assert cay('exec', neighbour, '--', 'true').code == 0


@needs_groups
def test_tmpfs_counts_as_memory(cay):
    run = cay('run', '--memory', '64M', '--', 'sh', '-c', 'exec head -c 300M /dev/zero >/dev/shm/x')
    assert run.code == 137
    assert 'out of memory (--memory 64 MiB)' in run.err


@needs_groups
def test_a_kill_below_the_command_is_told_too(cay):
    run = cay('run', '--memory', '64M', '--', 'bash', '-c', 'python3 -c "x = bytearray(300 << 20)"; exit 3')
    assert run.code == 3
    assert run.err.endswith('cay: a process was killed: out of memory (--memory 64 MiB)\n')


@needs_groups
def test_a_calls_own_memory_is_the_smaller_one(cay, sandbox):
    box = sandbox('--memory', '256M')
    other = cay.popen('exec', box, '--', 'sh', '-c', 'echo up; sleep 600')
    assert other.stdout.readline() == b'up\n'
    run = cay('exec', '--call-memory', '64M', box, *python(HOG))
    assert (run.code, run.err) == (137, 'cay: the command was killed: out of memory (--call-memory 64 MiB)\n')
    run = cay('exec', box, *python(HOG))
    assert (run.code, run.err) == (137, 'cay: the command was killed: out of memory (--memory 256 MiB)\n')
    assert [(e['limit'], e['call']) for e in events(cay, box, 'limit.hit')] == [('call-memory', 2), ('memory', 3)]
    assert other.poll() is None
    other.kill()
    other.communicate()


@needs_groups
@pytest.mark.parametrize('limit', ['memory', 'call-memory'])
def test_programs_are_told_which_limit_it_was_and_how_much(cay, limit):
    run = cay('run', '--json', f'--{limit}', '64M', *python(HOG))
    told = json.loads(run.err)
    assert (told['exit_code'], told['reason'], told['oom_kills']) == (137, 'oom', 1)
    assert (told['oom_limit'], told['oom_bytes']) == (limit, 64 * MIB)


@needs_groups
def test_a_call_can_have_a_limit_where_the_sandbox_has_none(cay, sandbox):
    box = sandbox()
    run = cay('exec', '--call-memory', '32M', box, *python(HOG))
    assert (run.code, run.err) == (137, 'cay: the command was killed: out of memory (--call-memory 32 MiB)\n')
    assert cay('exec', box, *python('x = bytearray(64 << 20)')).code == 0


def test_a_signal_9_from_inside_is_no_lack_of_memory(cay):
    limit = ['--memory', '64M'] if GROUPS else []
    run = cay('run', *limit, '--', 'sh', '-c', 'kill -9 $$')
    assert (run.code, run.err) == (137, '')


def test_forks_fail_at_the_limit_of_processes(cay, sandbox):
    box = sandbox('--pids', '40')
    run = cay('exec', box, *python(FORKS))
    assert run.out == '38\n'  # and init, and the one that forks
    assert cay('exec', box, '--', 'echo', 'on').out == 'on\n'
    if GROUPS:
        hit, = events(cay, box, 'limit.hit')
        assert (hit['limit'], hit['pids']) == ('pids', 40)


def test_open_files_end_at_their_limit(cay):
    run = cay('run', '--files', '64', *python(DUPS), check=True)
    assert run.out == '61 EMFILE\n'


def test_a_limit_on_files_cannot_be_raised_inside(cay):
    raise_it = 'import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (128, 128))'
    user = ['--user', 'root'] if ROOTFUL else []
    run = cay('run', '--files', '64', *user, *python(raise_it))
    assert run.code == 1 and 'not allowed to raise' in run.err


@needs_groups
@pytest.mark.alone
def test_cpu_time_is_rationed(cay):
    shares = []
    for _ in range(3):  # others may leave us less, never more
        shares.append(float(cay('run', '--cpus', '0.2', *python(BUSY), check=True).out))
        assert shares[-1] <= 0.28
        if shares[-1] >= 0.12:
            return
    pytest.fail(f'shares of the CPU: {shares}')


def test_writers_are_killed_at_the_limit_of_the_disk(cay, sandbox):
    box = sandbox('--disk', '20M')
    run = cay('exec', box, *python(WRITER))
    assert run.code == 137
    assert run.err == 'cay: the command was killed: the sandbox wrote more than its --disk allows\n'

    def ended_in_time(script):
        """A call that begins above the limit has little time: on a busy machine it may be killed before its end."""
        done = cay('exec', box, '--', 'sh', '-c', script)
        return done if done.code == 0 else None
    used = sum(map(int, wait_until(lambda: ended_in_time('stat -c %s /tmp/part*'), what='a short call').out.split()))
    assert 20 * MIB <= used + MIB and used < 400 * MIB
    assert events(cay, box, 'limit.hit')[0]['limit'] == 'disk'
    stay = cay('exec', box, '--', 'sleep', '20')
    assert stay.code == 137  # still above
    wait_until(lambda: ended_in_time('rm -f /tmp/part*'), what='the files are removed')
    wait_until(lambda: cay('exec', box, '--', 'sleep', '2.5').code == 0, 15, 'the sandbox is below its limit')


def test_what_a_call_left_behind_is_stopped_at_the_limit_too(cay, sandbox):
    box = sandbox('--disk', '20M')
    cay('exec', box, '--', 'sh', '-c',
        'setsid sh -c "while :; do head -c 1M /dev/zero >/tmp/\\$RANDOM\\$(date +%N); done" >/dev/null 2>&1 &')

    def processes():
        return cay('ps', box, '--json', check=True).out.count('"pid"')
    wait_until(lambda: events(cay, box, 'limit.hit'), 20, 'the limit is hit')
    wait_until(lambda: processes() <= 1, 5, 'nobody writes any more')


def test_no_single_file_passes_the_limit_of_the_disk(cay, sandbox):
    box = sandbox('--disk', '8M')
    cay('exec', box, '--', 'sh', '-c', 'head -c 64M /dev/zero >/tmp/x')  # it may be killed for it
    # From outside: a call that begins above the limit has little time.
    assert 0 < os.stat(f'{cay.state}/sandboxes/{box}/upper/0/tmp/x').st_size <= 8 * MIB


def test_many_small_files_pass_the_limit_of_the_disk(cay):
    run = cay('run', '--disk', '4M', '--', 'sh', '-c',
              'cd /tmp; i=0; while :; do i=$((i + 1)); : >f$i; done')
    assert run.code == 137 and '--disk' in run.err


def test_the_options_are_kept_and_shown(cay, sandbox):
    box = sandbox('--disk', '1.5G', '--files', '100', '--call-timeout', '90s')
    shown = json.loads(cay('show', box, '--json', check=True).out)
    assert shown['options']['limits'] == {'files': 100, 'disk': 3 << 29, 'call_timeout_ms': 90000}
    text = cay('show', box, check=True).out
    assert 'at most 1.5 GiB of disk' in text and 'at most 100 files' in text
    made, = events(cay, box, 'sandbox.create')
    assert (made['disk'], made['files'], made['call_timeout_ms']) == (3 << 29, 100, 90000)


def test_a_default_timeout_holds_for_every_call_but_those_with_their_own(cay, sandbox):
    box = sandbox('--call-timeout', '300ms')
    assert cay('exec', box, '--', 'sleep', '20').code == 124
    assert cay('exec', '--timeout', '10s', box, '--', 'sleep', '0.6').code == 0


def test_commands_have_sane_rlimits(cay):
    run = cay('run', *python('''
import resource as r
core = r.getrlimit(r.RLIMIT_CORE)
print([core in ((1, 1), (0, 0)), *(r.getrlimit(x) == (0, 0) for x in (r.RLIMIT_RTPRIO, r.RLIMIT_NICE))],
      r.getrlimit(r.RLIMIT_MEMLOCK)[1] <= 8 << 20, r.getrlimit(r.RLIMIT_NOFILE)[1] <= 65536,
      r.getrlimit(r.RLIMIT_MSGQUEUE)[1] <= 800 << 10, r.getrlimit(r.RLIMIT_SIGPENDING)[1] <= 16 << 10,
      open('/proc/self/oom_score_adj').read(), open('/proc/1/oom_score_adj').read())'''), check=True)
    assert run.out == '[True, True, True] True True True True 700\n 500\n\n'


@pytest.mark.skipif(not caylib.MAY_RAISE_LIMITS, reason='takes CAP_SYS_RESOURCE outside')
def test_no_higher_limit_of_the_caller_comes_inside(cay):
    high = {'RTPRIO': 99, 'NICE': 40, 'MEMLOCK': 1 << 30, 'MSGQUEUE': 1 << 30, 'SIGPENDING': 1 << 20}
    most = {'RTPRIO': 0, 'NICE': 0, 'MEMLOCK': 8 << 20, 'MSGQUEUE': 800 << 10,
            'SIGPENDING': min(16 << 10, int(read_text('/proc/sys/kernel/threads-max')) // 2)}

    def raise_all():
        for name, value in high.items():
            resource.setrlimit(getattr(resource, f'RLIMIT_{name}'), (value, value))

    ask = f'import resource as r; print([r.getrlimit(getattr(r, "RLIMIT_" + n)) for n in {list(most)}])'
    run = cay('run', *python(ask), check=True, preexec_fn=raise_all)
    assert run.out == f'{[(n, n) for n in most.values()]}\n'


def test_nobody_inside_becomes_unkillable(cay):
    user = ['--user', 'root'] if ROOTFUL else []
    run = cay('run', *user, '--', 'sh', '-c', 'echo -1000 >/proc/self/oom_score_adj')
    assert run.code != 0


@pytest.mark.skipif(not (ROOTFUL and caylib.MAY_RAISE_LIMITS), reason='takes CAP_SYS_RESOURCE outside')
def test_nobody_inside_is_killed_later_than_the_host(cay):
    for user in ('root', '1000'):
        run = cay('run', '--user', user, '--', 'sh', '-c', 'cd /proc/self; echo 500 >oom_score_adj && echo on && echo 499 >oom_score_adj')
        assert run.code != 0 and run.out == 'on\n'


@pytest.mark.skipif(GROUPS, reason='there are control groups here')
@pytest.mark.parametrize('limit', [('--memory', '64M'), ('--cpus', '0.5')])
def test_what_cannot_be_enforced_is_refused(cay, limit):
    run = cay('create', *limit)
    assert run.code == 3
    assert run.err.startswith(f'cay: {limit[0]} cannot be enforced here: ')
    assert '--best-effort' in run.err


@pytest.mark.skipif(GROUPS, reason='there are control groups here')
def test_best_effort_warns_and_goes_on(cay, sandbox):
    run = cay('run', '--best-effort', '--memory', '64M', '--call-memory', '32M', '--', 'echo', 'on')
    assert run.code == 0 and run.out == 'on\n'
    assert 'cay: warning: --memory is not enforced: ' in run.err
    assert 'cay: warning: --call-memory is not enforced: ' in run.err
    box = sandbox('--best-effort', '--cpus', '1')
    note, = events(cay, box, 'limit.unenforced')
    assert note['limit'] == 'cpus' and note['detail']


@needs_groups
def test_all_limits_together(cay):
    run = cay('run', '--memory', '256M', '--cpus', '1', '--pids', '100', '--files', '200', '--disk', '50M',
              '--timeout', '20s', '--', 'sh', '-c', 'ulimit -n; cat /proc/self/cgroup', check=True)
    assert run.out.startswith('200\n')
    assert not re.search(r'cay-', run.out)  # its groups are the roots inside

# SPDX-License-Identifier: Apache-2.0
"""The child that waits for the next call: it is used, it cannot be told from another, and it is never in the way."""

import os
import signal
import time

import caylib
import pytest

STATE = r'''
id; pwd; umask; ulimit -a
grep -E "^(Cap|Groups|NoNew|Seccomp|Umask|Sig[BIC])" /proc/self/status
ls -l /proc/self/fd | sed "s/.* \\([0-9]\\) -> /\\1 /; s/:\\[.*//" | grep -E "^[0-9] (pipe|sock|anon|/)" | grep -v "/fd$"
cat /proc/self/oom_score_adj /proc/self/mountinfo | wc -l; cat /proc/self/oom_score_adj
set -- $(sed "s/.*) //" /proc/$$/stat); test $3 = $$ && test $4 = $$ && echo leads; echo parent $2
env | grep -v -E "^(CAY_CALL|CAY_SANDBOX)=" | sort
'''


def children(pid):
    with open(f'/proc/{pid}/task/{pid}/children', encoding='utf-8') as f:
        return [int(word) for word in f.read().split()]


def init_of(cay, ref):
    folder = os.path.join(cay.state, 'sandboxes', ref)
    found = caylib.processes()
    for pid, (parent, _, name) in found.items():
        if name == 'cay-init':
            try:
                if os.readlink(f'/proc/{parent}/cwd') == folder:
                    return pid
            except OSError:
                continue
    raise AssertionError('no init')


def open_below_nice(pid, warden):
    """What a process of low priority, as who removes files is, has open but its stdio; None of others and of those gone."""
    try:
        if os.getpriority(os.PRIO_PROCESS, pid) <= os.getpriority(os.PRIO_PROCESS, warden):
            return None
        return [os.readlink(f'/proc/{pid}/fd/{fd}') for fd in os.listdir(f'/proc/{pid}/fd') if int(fd) > 2]
    except OSError:
        return None


def inside(pid):
    with open(f'/proc/{pid}/status', encoding='utf-8') as f:
        return int(next(line for line in f if line.startswith('NSpid:')).split()[-1])


class Box:
    def __init__(self, cay, *options):
        self.cay, self.ref = cay, cay('create', *options, check=True).out.strip()
        self.init = init_of(cay, self.ref)

    def sh(self, script, *options, **more):
        return self.cay('exec', *options, self.ref, '--', 'sh', '-c', script, check=True, **more).out

    def spare(self):
        """The child that waits: it alone is left, and has said that it is ready."""
        caylib.wait_until(lambda: [caylib.read_text(f'/proc/{p}/comm') for p in children(self.init)] == ['cay-init\n'],
                          what='a child that waits, alone')
        self.cay('ps', self.ref, check=True)
        return children(self.init)[0]


@pytest.fixture
def make(cay):
    made = []

    def fn(*options):
        made.append(Box(cay, *options))
        return made[-1]
    yield fn
    for box in made:
        cay('kill', box.ref, check=True)


@pytest.mark.parametrize('options', [[], ['--trace', 'calls'], ['--profile', 'locked']])
def test_the_next_call_runs_in_the_child_that_waited(make, options):
    box = make(*options)
    assert children(box.init) == []
    box.sh(':')
    for _ in range(3):
        waiting = inside(box.spare())
        assert int(box.sh('echo $$')) == waiting


@pytest.mark.parametrize('options', [[], ['--trace', 'calls'], ['--profile', 'locked'], ['--files', '100', '--disk', '50M']])
def test_a_command_cannot_tell_how_it_was_made(make, options):
    first, box = make(*options), make(*options)
    box.sh(':')
    box.spare()
    fresh, ahead = first.sh(STATE), box.sh(STATE)
    assert ahead == fresh
    assert 'leads' in fresh and 'Seccomp_filters' in fresh


def test_user_directory_and_environment_are_those_of_the_call(make, mode):
    box = make()
    box.sh('mkdir /tmp/d')
    box.spare()
    assert box.sh('pwd; echo $A', '--cwd', '/tmp/d', '--env', 'A=b').split() == ['/tmp/d', 'b']
    box.spare()
    if mode == 'rootful':
        assert box.sh('echo late:x:777:777::/tmp:/bin/sh >> /etc/passwd; id -u', '--user', 'root') == '0\n'
        box.spare()
        assert box.sh('id -u', '--user', 'late') == '777\n'
        box.spare()
    assert 'nobody-here' in box.cay('exec', '--user', 'nobody-here', box.ref, '--', 'true').err


def test_a_call_that_cannot_use_it_leaves_it(make):
    box = make()
    box.sh(':')
    waiting = box.spare()
    number, long = inside(waiting), 'x' * 40000
    assert int(box.sh(f': {long}; echo $$')) != number
    with box.cay.spawn_pty('exec', '-t', box.ref, '--', 'tty') as t:
        t.expect('/dev/pts')
    assert box.spare() == waiting
    assert int(box.sh('echo $$')) == number


@pytest.mark.parametrize('sig', [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
def test_whoever_signals_it_does_not_hinder_the_next_call(make, sig):
    box = make()
    box.sh(':')
    waiting = box.spare()
    os.kill(waiting, sig)
    if sig != signal.SIGSTOP:
        caylib.wait_until(lambda: not children(box.init), what='its end')
    for _ in range(2):
        assert box.sh('echo y', timeout=20) == 'y\n'


def test_a_command_that_signals_all_does_not_hinder_the_next_call(make, mode):
    box = make()
    user = ['--user', 'root'] if mode == 'rootful' else []
    box.sh('(sleep 0.5; kill -STOP -1) > /dev/null 2>&1 &', *user)
    box.spare()  # the one who did that has ended
    for _ in range(3):
        assert box.sh('echo y', timeout=20) == 'y\n'


def test_it_is_no_process_to_those_who_ask(make):
    box = make()
    box.sh(':')
    box.spare()
    assert [p['args'] for p in box.cay.json('ps', box.ref)] == ['cay-init']


def test_a_snapshot_is_taken_as_of_an_idle_sandbox(make):
    box = make()
    box.sh('echo 1 > /tmp/f')
    waiting = box.spare()
    snap = box.cay('snapshot', box.ref, check=True).out.strip()
    said = [e for e in box.cay.json('trace', box.ref) if e['kind'] == 'sandbox.snapshot']
    assert len(said) == 1 and 'freeze_us' not in said[0]
    assert not os.path.exists(f'/proc/{waiting}')
    box.sh('echo 2 > /tmp/f')
    box.spare()
    box.cay('rollback', box.ref, snap, check=True)
    assert box.sh('cat /tmp/f') == '1\n'
    box.cay('snapshot', 'rm', snap, check=True)


def test_after_a_switch_the_next_one_waits_in_the_new_files(make):
    box = make()
    box.sh('echo 1 > /tmp/f')
    snap = box.cay('snapshot', box.ref, check=True).out.strip()
    for _ in range(5):
        box.sh('rm /tmp/f; echo 2 > /tmp/g')
        box.cay('rollback', box.ref, snap, check=True)
        waiting = inside(box.spare())
        assert box.sh('cat; echo $$; ls /tmp', input='x').split() == [f'x{waiting}', 'f']
    box.cay('snapshot', 'rm', snap, check=True)


def test_who_clears_away_keeps_nothing_of_it(make, mode):
    """It is forked beside the next call, whose input would have no end as long as it removes files."""
    if mode == 'rootless':
        pytest.skip('what a warden has open only root may see')
    box = make()
    snap = box.cay('snapshot', box.ref, check=True).out.strip()
    warden = caylib.processes()[box.init][0]
    seen = []
    for _ in range(20):
        box.sh('cd /tmp; seq 3000 | xargs touch')
        box.cay('rollback', box.ref, snap, check=True)
        end = time.monotonic() + 0.5
        while not seen and time.monotonic() < end:
            seen = [what for pid in children(warden) for what in [open_below_nice(pid, warden)] if what]
        if seen:
            break
    assert seen and not any(what.startswith(('pipe:', 'socket:')) for what in seen[0]), seen
    box.cay('snapshot', 'rm', snap, check=True)


def test_a_pause_does_not_cost_it(make):
    box = make()
    box.sh(':')
    number = inside(box.spare())
    box.cay('pause', box.ref, check=True)
    box.cay('resume', box.ref, check=True)
    assert int(box.sh('echo $$')) == number

# SPDX-License-Identifier: Apache-2.0
"""Ready sandboxes: claimed by whoever comes, fresh for each, and never two owners, whatever dies."""

import concurrent.futures
import contextlib
import ctypes
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import time

import caylib
import pytest
from caylib import wait_until
from test_attack_warden import EXEC, HELLO_FRAME, INFO, PS, args, field, frame, kinds_of

CLAIM, SWITCH, DIAL, POLICY, PAUSE, EXTEND, READY, ERROR = 90, 75, 82, 80, 84, 86, 96, 127
TAG_WARM = 210
KILLS = int(os.environ.get('CAY_POOL_KILLS', '6'))


class Pools:
    """cay with pools; all of it in one control group, since others cannot claim."""

    def __init__(self, cay):
        self.cay, self.state = cay, cay.state

    def __call__(self, *words, **options):
        options.setdefault('preexec_fn', None)
        return self.cay(*words, **options)

    def set(self, template, n, *options):
        return self('pool', 'set', template, n, *options, '--wait', check=True, timeout=60)

    def ls(self):
        return [json.loads(line) for line in self('pool', 'ls', '--json', check=True).out.splitlines()]

    def one(self, field_):
        row, = self.ls()
        return row[field_]

    def ready(self):
        return sorted(name for kind in caylib.list_dir(f'{self.state}/ready') if kind != 'lock'
                      for name in caylib.list_dir(f'{self.state}/ready/{kind}') if not name.startswith('.'))

    def keeper(self):
        """Its pid; it is started again by looking."""
        return caylib.wait_until(lambda: self.ls()[0]['keeper_pid'], what='a keeper')

    def json(self, *words):
        return [json.loads(line) for line in self(*words, '--json', check=True).out.splitlines()]

    def events(self, ref):
        return [json.loads(line) for line in self('trace', '--json', ref, check=True).out.splitlines()]

    def end(self):
        for row in {row['template'] for row in self.ls()}:
            self('pool', 'set', row, 0, timeout=60)
        caylib.wait_until(lambda: not os.path.exists(f'{self.state}/ready'), what='the end of the keeper')


@pytest.fixture
def pools(cay, no_leftovers):
    own = Pools(cay)
    yield own
    own.end()
    own('kill', '--all', '--yes', check=True)
    for snapshot in own('snapshots', '-q', check=True).out.split():
        own('snapshot', 'rm', snapshot, check=True)
    assert own('gc', check=True).code == 0 and caylib.list_dir(f'{own.state}/layers') in ([], ['.lock'])
    assert own.ready() == [] and own('ls', '-q').out == ''


@contextlib.contextmanager
def stopped(pid):
    """Meanwhile it does nothing."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


LOOK = r'''
umask; id; pwd; env | grep -v '^_=' | sort; ulimit -a; cat /proc/self/oom_score_adj
grep -E '^(Cap|NoNew|Seccomp:|Uid|Gid|Groups|Cpus_allowed)' /proc/self/status
sed -E 's/^[0-9]+ [0-9]+ [0-9]+:[0-9]+ //; s/ - overlay .*/ overlay/; s/[ug]id=[0-9]+//g' /proc/self/mountinfo
cat /proc/1/oom_score_adj; ls -ln /dev; ls -lnd / /etc /tmp /home/* | awk '{print $1, $3, $4, $9}'
hostname; cat /etc/hostname /etc/hosts; ls /proc | grep -c '^[0-9]'; nice; wc -c < /etc/machine-id
'''


def shape(events):
    """What happened and what is told of it, without what depends on the machine's speed."""
    return [(e['kind'], sorted(e)) for e in events if not e['kind'].startswith('process')]


def seen(pools, *options):
    """All that can be told from inside and from outside of one sandbox, without what is its own."""
    ref = pools('create', '--env', 'COLOR=blue', '--label', 'task=7', *options, check=True).out.strip()
    inside = pools('exec', ref, '--', 'sh', '-c', LOOK, check=True).out
    # Without control groups the warden cannot tell the spare child from a command until the child says hello.
    caylib.wait_until(lambda: pools('ps', ref, '--json', check=True).out.count('"pid"') == 1, what='a list of init alone')
    ps = pools('ps', ref, '--json', check=True).out
    shown, = pools.json('show', ref)
    events = pools.events(ref)
    listed, = [row for row in pools.json('ls') if row['id'] == ref]
    verified = pools('trace', ref, '--verify').code
    machine_id = pools('exec', ref, '--', 'cat', '/etc/machine-id', check=True).out
    pools('kill', ref, check=True)
    for row in (shown, listed):
        for key in ('created', 'init_pid', 'rss_bytes'):
            row.pop(key, None)
    shown['options'].pop('seen_ns', None)
    for call in shown['calls']:
        for key in ('start', 'duration_ms'):
            call.pop(key)
    # Init may be at work on what comes next, in either.
    ps = re.sub(r'"(rss|cpu)\w*":[0-9.]+|"state":"[RS]"', '', ps)
    text = json.dumps([inside, ps, shown, listed, verified,
                       shape(events)], indent=1)
    return re.sub(r'(T|:| )[0-9:]{5,8}\b', '', text.replace(ref, 'ID')), machine_id, ref


def test_a_claimed_sandbox_looks_like_a_new_one(pools):
    cold, cold_id, cold_ref = seen(pools)
    pools.set('host', 2)
    ready = pools.ready()
    assert len(ready) == 2 and cold_ref not in ready
    warm, warm_id, warm_ref = seen(pools)
    assert warm_ref in ready and pools.one('claimed') == 1
    assert warm == cold and warm_id != cold_id
    # And with a name, which the host gets too.
    cold, _, cold_ref = seen(pools, '--name', 'box', '--trace', 'calls')
    pools.set('host', 1, '--trace', 'calls')
    warm, _, warm_ref = seen(pools, '--name', 'box', '--trace', 'calls')
    assert warm == cold and warm_ref != cold_ref and sum(r['claimed'] for r in pools.ls()) == 2


def test_it_is_as_old_as_its_claim(pools):
    pools.set('host', 1)
    time.sleep(1.1)  # so that the age of what was made ahead can be told
    ready, = pools.ready()
    before = time.time()
    ref = pools('create', '--ttl', '60s', check=True).out.strip()
    assert ref == ready
    shown, = pools.json('show', ref)
    assert 55000 < shown['ttl_left_ms'] <= 60000
    files = ['/', '/etc', '/etc/hosts', '/etc/hostname', '/etc/machine-id']
    times = pools('exec', ref, '--', 'stat', '-c', '%Y %Z', *files, check=True).out.split()
    times += pools('exec', ref, '--', 'stat', '-c', '%Z', '/usr', check=True).out.split()
    assert all(int(t) >= int(before) for t in times), times
    events = pools.events(ref)
    assert [e['kind'] for e in events[:2]] == ['sandbox.create', 'sandbox.ready'] and events[0]['seq'] == 1
    assert events[0]['time'] >= time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(before))
    assert shown['created'] >= time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(before))
    # Nothing that was done for the claim is taken for a change by a call.
    assert not [e for e in events if e['kind'].startswith('file')]
    assert pools('diff', ref, check=True).out == ''


TIMES = '''
import os, sys, time
now = time.time()
for path in sys.argv[1:]:
    st = os.stat(path)
    print(path, st.st_mode, *('new' if now - t < 1 else 'old' for t in (st.st_mtime, st.st_ctime)))
'''


@pytest.mark.parametrize('of', ['host', 'snapshot'])
def test_places_of_directories_are_as_old_as_in_a_new_one(pools, tmp_path, of):
    """What is mounted somewhere needs directories there, which are made; those above have the times of the template."""
    project = tmp_path / 'p'
    project.mkdir()
    (project / 'f').write_text('f')
    os.utime(project, (1, 1))
    options = ['--dir', f'{project}:/srv/a/b', '--ro', f'{project / "f"}:/mnt/c/f']
    template = 'host'
    if of == 'snapshot':
        origin = pools('create', *options, check=True).out.strip()
        pools('exec', origin, '--', 'sh', '-c', 'mkdir /srv/a/b/new; touch -d @5 /srv/a/b', check=True)
        template = 'snap:' + pools('snapshot', origin, check=True).out.strip()
        pools('kill', origin, check=True)
        options = []
    paths = ['/', '/srv', '/srv/a', '/srv/a/b', '/mnt', '/mnt/c', '/etc', '/etc/hosts', '/usr', '/opt', '/tmp', '/home']

    def look():
        ref = pools(*(['fork', template[5:]] if of == 'snapshot' else ['create', *options]), check=True).out.strip()
        out = pools('exec', ref, '--', 'python3', '-c', TIMES, *paths, check=True).out
        pools('kill', ref, check=True)
        return ref, out

    time.sleep(1.1)  # what the snapshot has is older than what is made now
    _, cold = look()
    pools.set(template, 1, *options)
    ready, = pools.ready()
    time.sleep(1.1)
    assert look() == (ready, cold)


def test_what_is_given_at_the_claim(pools):
    pools.set('host', 3)
    out = pools('run', '--name', 'web', '--env', 'A=1', '--cwd', '/tmp', '--user', '1000', '--label', 'k=v',
                '--call-id', 'c1', '--', 'sh', '-c', 'hostname; pwd; echo $A; cat /etc/hosts | tail -1', check=True).out
    assert out == 'web\n/tmp\n1\n127.0.1.1\tweb\n'
    assert pools('run', '--timeout', '100ms', '--', 'sleep', '5').code == 124
    ref = pools('create', '--hostname', 'db.example', '--call-timeout', '100ms', check=True).out.strip()
    assert pools('exec', ref, '--', 'hostname', check=True).out == 'db.example\n'
    assert pools('exec', ref, '--', 'sleep', '5').code == 124
    assert pools('exec', ref, '--', 'cat', '/etc/hostname', check=True).out == 'db.example\n'
    assert pools.one('claimed') == 3


def test_ready_ones_are_nobodys(pools):
    pools.set('host', 2)
    ready = pools.ready()
    assert pools('ls', '--all', '-q', check=True).out == ''
    assert pools('kill', '--all', '--yes', check=True).out == ''
    for command in (['exec', ready[0], '--', 'true'], ['kill', ready[0]], ['snapshot', ready[0]], ['show', ready[0]]):
        assert pools(*command).code in (5, 125), command
    assert pools('gc', '--lost', check=True).code == 0
    assert pools.ready() == ready and pools.one('ready') == 2


def test_nothing_runs_in_one_that_has_no_owner(pools):
    pools.set('host', 1)
    ref, = pools.ready()
    kind = next(k for k in os.listdir(f'{pools.state}/ready') if k != 'lock')

    def ask(*frames):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.settimeout(5)
            s.connect(f'{pools.state}/sandboxes/{ref}/sock')
            s.sendall(HELLO_FRAME + b''.join(frames))
            data, greeting = b'', 1  # the warden's own hello comes first
            while len(list(kinds_of(data))) < greeting + len(frames):
                data += s.recv(65536)
            return list(kinds_of(data))[greeting:]

    refused = [frame(EXEC, args('true')), frame(PS), frame(SWITCH), frame(DIAL), frame(POLICY), frame(PAUSE),
               frame(EXTEND), frame(CLAIM), frame(CLAIM, field(TAG_WARM, b'f' * 40))]
    for each in refused:
        assert ask(each) == [ERROR], each
    assert ask(frame(INFO)) == [104] and pools.ready() == [ref]
    # One that asks for what cannot be changed any more gets nothing, and nobody gets it after him.
    mount = field(47, field(2, b'/mnt') + field(3, b'/'))
    assert ask(frame(CLAIM, field(TAG_WARM, kind.encode()) + mount)) == [ERROR]
    caylib.wait_until(lambda: pools.ready() and pools.ready() != [ref], what='another in its place')
    # Of two claims of one the second is too late.
    ref, = pools.ready()
    assert ask(frame(CLAIM, field(TAG_WARM, kind.encode())), frame(CLAIM, field(TAG_WARM, kind.encode()))) == [READY, ERROR]
    caylib.wait_until(lambda: not os.path.exists(f'{pools.state}/sandboxes/{ref}'), what='the end with its owner')


def test_twenty_at_once_get_one_each(pools):
    pools.set('host', 5)
    with concurrent.futures.ThreadPoolExecutor(20) as many:
        names = list(many.map(lambda _: pools('run', '--', 'hostname', check=True, timeout=60).out, range(20)))
    assert len(set(names)) == 20
    assert 1 <= pools.one('claimed') <= 20
    caylib.wait_until(lambda: pools.one('ready') == 5, what='five again', timeout=120)


def test_another_recipe_gets_a_sandbox_of_its_own(pools):
    pools.set('host', 1)
    ready = pools.ready()
    for options in (['--profile', 'locked'], ['--files', '100'], ['--trace', 'calls'], ['--ro', '/usr/share:/s']):
        assert pools('run', *options, '--', 'hostname', check=True).out.strip() not in ready
    assert pools.one('claimed') == 0 and pools.ready() == ready
    pools('pool', 'set', 'host', 1, '--files', '100', '--profile', 'locked', '--wait', check=True)
    pools('run', '--files', '100', '--profile', 'locked', '--', 'true', check=True)
    assert {row['options']: row['claimed'] for row in pools.ls()} == {None: 0, '--profile locked --files 100': 1}


ASKER = r'''
ulimit -n; ulimit -s; ulimit -c; ulimit -f; umask; nice; cat /proc/self/personality /proc/self/timerslack_ns; pwd; tty; hostname
'''
SLACK, NO_RANDOM = 29, 0x0040000


def strange():
    """What a service, a container or a script may have set for all that it starts; as far as anybody can undo it."""
    libc = ctypes.CDLL(None)
    os.setsid()
    os.umask(0o077)
    libc.prctl(SLACK, 1000000, 0, 0, 0)
    libc.personality(NO_RANDOM)
    for which, soft in ((resource.RLIMIT_NOFILE, 333), (resource.RLIMIT_STACK, 1 << 20), (resource.RLIMIT_FSIZE, 1 << 30)):
        resource.setrlimit(which, (soft, resource.getrlimit(which)[1]))
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    if os.geteuid() == 0:
        os.nice(3)
        os.setgroups([4, 27])


@contextlib.contextmanager
def own_group():
    """A function that moves a process into a control group of its own, where this user may make one."""
    base = '/sys/fs/cgroup/unified' if os.path.isdir('/sys/fs/cgroup/unified') else '/sys/fs/cgroup'
    path = f'{base}/cay-test-{os.getpid()}'
    if not caylib.ROOTFUL or not os.path.exists(f'{base}/cgroup.procs'):
        yield lambda: None
        return
    os.mkdir(path)

    def enter():
        with open(f'{path}/cgroup.procs', 'w', encoding='ascii') as f:
            f.write('0')
    try:
        yield enter
    finally:
        wait_until(lambda: caylib.read_text(f'{path}/cgroup.procs') == '', what='nobody in the group')
        for name in os.listdir(path):
            if os.path.isdir(f'{path}/{name}'):
                os.rmdir(f'{path}/{name}')
        os.rmdir(path)


def test_a_sandbox_is_the_same_whoever_asks_and_whoever_made_it(pools):
    """A keeper, a shell and a service have other limits, priorities, groups, sessions and masks."""
    with own_group() as enter:
        def elsewhere():
            enter()
            strange()

        def see(**options):
            *rest, name = pools('run', '--', 'sh', '-c', ASKER, **options).out.split('\n')[:-1]
            return rest, name

        cold, _ = see()
        assert see(preexec_fn=elsewhere)[0] == cold
        pools('pool', 'set', 'host', 2, '--wait', check=True, timeout=60, preexec_fn=elsewhere)
        ready = pools.ready()
        try:
            # One made by the strange keeper for a plain asker, and then for another strange one.
            first, name = see()
            assert first == cold and name in ready
            assert see(preexec_fn=strange)[0] == cold and pools.one('claimed') == 2
        finally:
            pools.end()


def test_what_a_user_cannot_undo_gets_a_sandbox_of_its_own(pools):
    pools.set('host', 1)
    ready = pools.ready()

    def fewer():
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))

    out = pools('run', '--', 'sh', '-c', 'ulimit -n; hostname', check=True, preexec_fn=fewer).out.split()
    if caylib.MAY_RAISE_LIMITS:
        assert out[1] in ready
    else:
        assert out[0] in ('512', '384') and out[1] not in ready and pools.ready() == ready


def test_what_is_shown_read_only_is_the_host_s_as_it_is_at_the_claim(pools, tmp_path, mode):
    """Also what is mounted below it: one that was made before would not see it."""
    shown = tmp_path / 'p'
    (shown / 'sub').mkdir(parents=True)
    (shown / 'f').write_text('old')
    os.chmod(tmp_path, 0o755)
    command = ['run', '--ro', f'{shown}:/s', '--', 'sh', '-c', 'cat /s/f; ls /s/sub; touch /s/x 2>&1; hostname']
    pools.set('host', 1, '--ro', f'{shown}:/s')
    ready = pools.ready()
    (shown / 'f').write_text('newer')
    out = pools(*command, cwd='/').out
    assert out.startswith('newer') and 'Read-only' in out and out.split()[-1] in ready
    assert pools.one('claimed') == 1
    if mode == 'rootless':
        return
    wait_until(lambda: pools.one('ready') == 1, what='another')
    ready = pools.ready()
    subprocess.run(['mount', '-t', 'tmpfs', 'x', shown / 'sub'], check=True)
    try:
        (shown / 'sub/inside').write_text('')
        out = pools(*command, cwd='/').out
        assert 'inside' in out and out.split()[-1] not in ready
    finally:
        subprocess.run(['umount', shown / 'sub'], check=True)


def test_a_directory_is_the_one_that_is_there_at_the_claim(pools, tmp_path):
    shown = tmp_path / 'p'
    shown.mkdir()
    (shown / 'f').write_text('old')
    os.chmod(tmp_path, 0o755)
    pools.set('host', 1, '--dir', shown)
    (shown / 'f').write_text('newer')
    assert pools('run', '--dir', shown, '--', 'cat', 'f', check=True, cwd='/').out == 'newer'
    assert pools.one('claimed') == 1
    caylib.wait_until(pools.ready, what='the next')
    with stopped(pools.keeper()):  # or it may have made one of the other directory by then
        shutil.move(shown, tmp_path / 'q')
        shown.mkdir()
        (shown / 'f').write_text('another')
        assert pools('run', '--dir', shown, '--', 'cat', 'f', check=True).out == 'another'
        assert pools.one('claimed') == 1
        old = pools.ready()
    pools('pool', 'set', 'host', 1, '--dir', shown, check=True)  # wakes it
    caylib.wait_until(lambda: pools.ready() and pools.ready() != old, what='one of the other directory')
    assert pools('run', '--dir', shown, '--', 'cat', 'f', check=True).out == 'another'
    assert pools.one('claimed') == 2


def test_with_a_network_for_any_policy(pools):
    """What it reaches: test_pool_net.py."""
    pools.set('host', 2, '--net', 'open')
    ready = pools.ready()
    look = ['--', 'sh', '-c', 'hostname; grep -c nameserver /etc/resolv.conf; getent hosts other.test || echo none']
    first = pools('run', '--allow', 'web.test', *look)
    name, servers, answer = first.out.split()
    assert name in ready and servers == '1' and answer == 'none' and 'refused: other.test' in first.err
    box = pools('create', '--net', 'coding', check=True).out.strip()
    assert [e['name'] for e in pools.events(box) if e['kind'] == 'policy.set'] == ['coding'] and pools.one('claimed') == 2
    assert pools('run', '--', 'hostname', check=True).out.strip() not in pools.ready()
    assert pools.one('options') == '--net open' and pools.one('claimed') == 2


def test_forks_of_a_snapshot(pools):
    ref = pools('create', '--env', 'B=2', '--name', 'origin', check=True).out.strip()
    pools('exec', ref, '--', 'sh', '-c', 'echo deep > /tmp/f', check=True)
    pools('snapshot', ref, '--name', 'base', check=True)
    pools.set('snap:base', 3)
    ready = pools.ready()
    forks = pools('fork', 'base', '--count', 2, '--name', 'f', check=True).out.split()
    assert set(forks) < set(ready)
    for i, fork in enumerate(forks):
        assert pools('exec', fork, '--', 'sh', '-c', 'hostname; cat /tmp/f; echo $B', check=True).out == f'f-{i + 1}\ndeep\n2\n'
        pools('exec', fork, '--', 'sh', '-c', f'echo {i} > /tmp/g', check=True)
        assert pools('diff', fork, '--stat', check=True).out
        pools('snapshot', fork, check=True)
        pools('rollback', fork, check=True)
    assert pools('run', '--template', 'snap:base', '--', 'sh', '-c', 'cat /tmp/f; echo $B', check=True).out == 'deep\n\n'
    assert pools.one('claimed') == 3
    caylib.wait_until(lambda: pools.one('ready') == 3, what='three again')
    # Its sandbox and the snapshot go: those that are ready go too, and what was claimed keeps its files.
    pools('kill', ref, check=True)
    pools('snapshot', 'rm', 'base', check=True)
    pools('pool', 'set', 'snap:base', 3)
    assert pools('fork', 'base').code == 5
    os.kill(pools.keeper(), signal.SIGKILL)
    caylib.wait_until(lambda: pools.one('problem') and not pools.ready(), what='the end of the ready ones')
    assert 'base' in pools.one('problem') or 'snapshot' in pools.one('problem')
    pools('gc', check=True)
    assert pools('exec', forks[1], '--', 'cat', '/tmp/f', '/tmp/g', check=True).out == 'deep\n1\n'


def test_explore_takes_ready_ones(pools):
    ref = pools('create', check=True).out.strip()
    pools('exec', ref, '--', 'sh', '-c', 'echo 1 > /tmp/f', check=True)
    snap = pools('snapshot', ref, check=True).out.strip()
    pools.set(f'snap:{snap}', 2)
    ready = pools.ready()
    out = pools('explore', snap, '--count', 2, '--json', '--pick', 1, '--', 'sh', '-c', 'echo $CAY_FORK > /tmp/g', check=True)
    rows = [json.loads(line) for line in out.out.splitlines()]
    assert {row['id'] for row in rows} == set(ready) and all(row['files'] == 1 for row in rows)


def test_whoever_starts_the_keeper_it_hears_all_signals(pools):
    """cay explore has some blocked at that time."""
    pools.set('host', 1)
    ref = pools('create', check=True).out.strip()
    old = pools.keeper()
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: caylib.processes().get(old, (0, 'Z'))[1] == 'Z', what='its end')
    pools('explore', ref, '--count', '1', '--pick', '1', '-q', '--', 'true', check=True)
    new = pools.keeper()
    # All are blocked for as long as it takes to start a warden.
    wait_until(lambda: 'SigBlk:\t0000000000000000\n' in caylib.read_text(f'/proc/{new}/status'), what='no blocked signal')


def test_the_keeper_may_die_at_any_time(pools):
    pools.set('host', 4)
    seen_ids, dice = set(), random.Random(7)
    for _ in range(KILLS):
        os.kill(pools.keeper(), signal.SIGKILL)
        for _ in range(2):
            name = pools('run', '--', 'hostname', check=True).out.strip()
            assert name not in seen_ids
            seen_ids.add(name)
        time.sleep(dice.random() * 0.05)
    caylib.wait_until(lambda: pools.one('ready') == 4, what='four again', timeout=120)
    assert pools.one('claimed') >= 4


def test_a_second_keeper_goes_at_once(pools):
    pools.set('host', 1)
    first = pools.keeper()
    assert pools('pool', 'keep', timeout=10).code == 0
    assert pools.keeper() == first


def test_after_a_reboot_there_are_others(pools):
    pools.set('host', 3)
    old = pools.ready()
    os.kill(pools.keeper(), signal.SIGKILL)
    for pid, (_, _, name) in caylib.processes().items():
        try:
            ours = name == 'cay-warden' and os.readlink(f'/proc/{pid}/cwd').startswith(pools.state)
        except OSError:
            continue
        if ours:
            os.kill(pid, signal.SIGKILL)
    assert pools('run', '--', 'hostname', check=True).out.strip() not in old
    caylib.wait_until(lambda: len(pools.ready()) == 3 and not set(pools.ready()) & set(old), what='others', timeout=120)
    assert pools('gc', check=True).code == 0
    assert not set(caylib.list_dir(f'{pools.state}/sandboxes')) & set(old)


def test_a_ready_one_that_dies_is_replaced_and_never_claimed(pools):
    pools.set('host', 2)
    victim = pools.ready()[0]
    for pid, (_, _, name) in caylib.processes().items():
        try:
            if name == 'cay-warden' and os.readlink(f'/proc/{pid}/cwd').endswith(victim):
                os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    names = {pools('run', '--', 'hostname', check=True).out.strip() for _ in range(3)}
    assert victim not in names
    caylib.wait_until(lambda: pools.one('ready') == 2 and victim not in pools.ready(), what='two again', timeout=120)


def test_what_has_an_owner_is_never_the_keeper_s_to_remove(pools):
    """Even where it is still listed as ready, and dead."""
    pools.set('host', 1)
    (kind,) = [x for x in caylib.list_dir(f'{pools.state}/ready') if x != 'lock']
    ref = pools('create', '--env', 'OWN=1', check=True).out.strip()
    pools('exec', ref, '--', 'sh', '-c', 'echo mine > /tmp/f', check=True)
    os.kill(pools.cay.warden(ref), signal.SIGKILL)
    wait_until(lambda: pools('exec', ref, '--', 'true').code != 0, what='dead')
    listed = f'{pools.state}/ready/{kind}/{ref}'
    open(listed, 'w', encoding='ascii').close()
    pools('pool', 'set', 'host', 2, check=True)
    wait_until(lambda: not os.path.exists(listed), what='unlisted')
    wait_until(lambda: pools('gc', check=True) and [x['state'] for x in pools.json('ls', '--all')] == ['lost'], what='lost')
    (lost,) = pools.json('snapshots', ref)
    fork = pools('fork', lost['id'], check=True).out.strip()
    assert pools('exec', fork, '--', 'cat', '/tmp/f', check=True).out == 'mine\n'
    pools('kill', ref, fork, check=True)


def test_fewer_and_none(pools):
    pools.set('host', 3)
    pools('pool', 'set', 'host', 1, check=True)
    caylib.wait_until(lambda: len(pools.ready()) == 1, what='one')
    pools('pool', 'set', 'host', 0, check=True)
    assert pools.ready() == [] and pools.ls() == []
    result = pools('pool', 'set', 'host', 0)
    assert result.code == 5 and "no pool of 'host'" in result.err
    pools.set('host', 1)  # again, right behind the last keeper's back
    assert len(pools.ready()) == 1


def test_who_waits_is_told_why_there_are_none(pools):
    if caylib.GROUPS:
        pytest.skip('limits of memory can be enforced here')
    result = pools('pool', 'set', 'host', 1, '--memory', '64M', '--wait')
    assert result.code == 1 and 'none can be made ready: --memory cannot be enforced' in result.err
    assert pools.one('ready') == 0 and '--memory' in pools.one('problem') and pools.keeper()


@pytest.mark.parametrize('words, code, says', [
    (['host'], 2, 'how many'),
    (['host', 'many'], 2, "'many': how many, from 0 to 1024"),
    (['host', '-3'], 2, ''),
    (['host', '1025'], 2, 'from 0 to 1024'),
    (['host', '99999999999999999999'], 2, 'from 0 to 1024'),
    (['', '1'], 2, '1 to 255'),
    (['nothing', '1'], 5, "template 'nothing' not found"),
    (['snap:nothing', '1'], 5, 'nothing'),
    (['host', '1', '--net', 'openly'], 5, 'openly'),
    (['host', '1', '--ro', '/nowhere/at/all'], 2, '/nowhere/at/all'),
    (['host', '1', '--memory', '1'], 2, 'memory'),
    (['host', '1', '--profile', 'x'], 2, 'dev or locked'),
    (['host', '1', '--name', 'x'], 2, '--name'),
])
def test_what_is_wrong_is_said(cay, words, code, says):
    result = cay('pool', 'set', *words)
    assert result.code == code and says in result.err, result
    assert not os.path.exists(f'{cay.state}/ready')

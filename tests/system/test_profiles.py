# SPDX-License-Identifier: Apache-2.0
"""The two profiles: what commands may do, what they may not, and that work goes on as usual."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

import caylib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT_CAPS = 0xa00405fb
PROFILES = ('dev', 'locked')
ABSENT = {'clone3', 'unknown', 'x32'}
ONLY_LOCKED = {'chroot', 'process_vm_readv', 'pidfd_getfd', 'traceme'}

needs_root = pytest.mark.skipif(not caylib.ROOTFUL, reason='a rootless sandbox has one user')


@pytest.fixture(scope='module')
def probe():
    folder = tempfile.mkdtemp(prefix='cay-probe-', dir='/tmp')
    os.chmod(folder, 0o755)
    program = os.path.join(folder, 'probe')
    subprocess.run(['gcc', '-O1', '-w', '-o', program, os.path.join(HERE, 'profile_probe.c')], check=True)
    yield program
    shutil.rmtree(folder)


@pytest.fixture(scope='module', params=PROFILES)
def profile(request):
    return request.param


def table(text):
    return {name: int(number) for name, number in (line.split() for line in text.splitlines())}


def run_probe(cay, probe, *options):
    return table(cay('run', *options, '--ro', f'{probe}:/probe', '--', '/probe', check=True).out)


def status(cay, *options):
    out = cay('run', *options, '--', 'cat', '/proc/self/status', check=True).out
    return dict(re.findall(r'^(\w+):\s*(.*)$', out, re.M))


# --- posture ---

def test_dev_leaves_room_for_setuid_programs_only(cay):
    s = status(cay, '--profile', 'dev')
    assert s['Uid'].split() == ['1000'] * 4
    assert [int(s[k], 16) for k in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb')] == [0, 0, 0, 0]
    assert int(s['CapBnd'], 16) == ROOT_CAPS
    assert (s['NoNewPrivs'], s['Seccomp']) == ('0', '2')
    assert int(s['Seccomp_filters']) == 2  # init's, and what commands lose besides


def test_locked_leaves_none(cay):
    s = status(cay, '--profile', 'locked')
    assert s['Uid'].split() == ['1000'] * 4
    assert [int(s[k], 16) for k in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')] == [0] * 5
    assert (s['NoNewPrivs'], s['Seccomp'], s['Seccomp_filters']) == ('1', '2', '2')


def test_dev_is_the_default_and_calls_alone_are_filtered_too(cay):
    s = status(cay, '--trace', 'calls')
    assert (s['NoNewPrivs'], s['Seccomp'], s['Seccomp_filters']) == ('0', '2', '2')
    assert int(s['CapBnd'], 16) == ROOT_CAPS


@needs_root
def test_root_inside_has_the_listed_capabilities(cay):
    s = status(cay, '--user', 'root')
    assert int(s['CapEff'], 16) == int(s['CapBnd'], 16) == ROOT_CAPS
    assert (s['NoNewPrivs'], s['Seccomp']) == ('0', '2')


def test_init_itself_is_behind_the_list(cay):
    out = cay('run', '--', 'cat', '/proc/1/status', check=True).out
    assert re.search(r'^Seccomp:\s*2$', out, re.M) and re.search(r'^Seccomp_filters:\s*1$', out, re.M)


@pytest.mark.parametrize('again', [False, True], ids=['first', 'next'])
def test_locked_has_no_mount_with_setuid_programs(cay, profile, again, tmp_path):
    """Of the first generation and of the one after a snapshot."""
    box = cay('create', '--profile', profile, '--dir', f'{tmp_path}:/work', check=True).out.strip()
    try:
        if again:
            cay('exec', box, '--', 'touch', '/tmp/changed', check=True)
            cay('snapshot', box, check=True)
        mounts = [line.split() for line in cay('exec', box, '--', 'cat', '/proc/mounts', check=True).out.splitlines()]
    finally:
        cay('kill', box, check=True)
    with_setuid = {m[1] for m in mounts if 'nosuid' not in m[3].split(',')}
    assert {'/', '/usr', '/work'} <= {m[1] for m in mounts}
    assert with_setuid == ({m[1] for m in mounts if m[2] == 'overlay'} if profile == 'dev' else set())


# --- refusals ---

def check_refused(found, profile):
    for name, number in found.items():
        if name.startswith('ok-'):
            assert number == 0, name
        elif name == 'int80':
            assert number == signal.SIGSYS
        elif name in ABSENT:
            assert number == errno.ENOSYS, name
        elif name in ('audit', 'sock-diag'):
            assert number == errno.EPROTONOSUPPORT
        elif name in ONLY_LOCKED and profile == 'dev':
            assert number != errno.EPERM, name
        else:
            assert number == errno.EPERM, (name, errno.errorcode.get(number))


def test_what_breaks_kernels_is_refused(cay, probe, profile):
    found = run_probe(cay, probe, '--profile', profile)
    assert len(found) > 90
    check_refused(found, profile)


@needs_root
def test_root_inside_is_refused_the_same(cay, probe):
    check_refused(run_probe(cay, probe, '--user', 'root'), 'dev')


def test_outside_the_probe_gets_through(probe):
    """What is refused here as well proves nothing above: most must not be."""
    found = table(subprocess.run([probe], stdout=subprocess.PIPE, check=True, text=True).stdout)
    through = {n for n, e in found.items() if e not in (errno.EPERM, errno.ENOSYS, errno.EACCES)}
    assert {'io_uring_setup', 'keyctl', 'mptcp', 'unshare-user', 'set-mm', 'sock-diag', 'read-implies-exec',
            'clone-net', 'traceme', 'family-40'} <= through
    assert len(through) > (75 if caylib.ROOTFUL else 45)
    assert found['int80'] != signal.SIGSYS


# --- users ---

@pytest.mark.parametrize('user', ['root', '0', '0:1000', '1001'])
def test_locked_has_no_other_user(cay, user):
    r = cay('run', '--profile', 'locked', '--user', user, '--', 'id')
    assert r.code != 0 and r.stdout == b''
    assert f"--user '{user}': with the profile locked only the user 1000" in r.err


def test_nor_for_a_later_call_or_a_name(cay):
    box = cay('create', '--profile', 'locked', check=True).out.strip()
    try:
        for user in ('root', 'daemon', '0:0'):
            r = cay('exec', '--user', user, box, '--', 'id')
            assert r.code != 0 and r.stdout == b''
            assert 'with --profile locked all runs as uid 1000' in r.err
        assert cay('exec', '--user', 'user', box, '--', 'id', '-u', check=True).out == '1000\n'
        shown = cay('show', box, '--json', check=True)
        assert json.loads(shown.out)['options']['profile'] == 'locked'
        assert 'profile    locked\n' in cay('show', box, check=True).out
        created = json.loads(cay('trace', box, '--json', check=True).out.splitlines()[0])
        assert (created['kind'], created['profile']) == ('sandbox.create', 'locked')
    finally:
        cay('kill', box, check=True)


def test_an_unknown_profile_is_named(cay):
    r = cay('run', '--profile', 'open', '--', 'true')
    assert r.code == 125 and "--profile 'open': dev or locked" in r.err


@pytest.mark.skipif(caylib.ROOTFUL, reason='about rootless sandboxes')
def test_a_rootless_sandbox_says_what_it_lacks(cay):
    made = cay('create', check=True)
    box = made.out.strip()
    try:
        assert made.err == ''
        assert 'lacks      root, other users, sudo' in cay('show', box, check=True).out
        r = cay('exec', '--user', 'root', box, '--', 'id')
        assert r.code != 0 and 'need a cay that runs as root' in r.err
    finally:
        cay('kill', box, check=True)


@needs_root
def test_setuid_programs_work_in_dev_and_not_in_locked(cay, tmp_path):
    script = 'cp /usr/bin/id /usr/local/bin/sid; chmod 4755 /usr/local/bin/sid; setpriv --reuid=1000 --clear-groups {} sid'
    assert 'euid=0' in cay('run', '--user', 'root', '--', 'sh', '-c', script.format(''), check=True).out
    assert 'euid=0' not in cay('run', '--user', 'root', '--', 'sh', '-c', script.format('--no-new-privs'), check=True).out
    os.makedirs(tmp_path / 'd')
    shutil.copy('/usr/bin/id', tmp_path / 'd/sid')
    os.chmod(tmp_path / 'd/sid', 0o4755)
    for profile in PROFILES:
        out = cay('run', '--profile', profile, '--dir', f'{tmp_path}/d:/d', '--', '/d/sid', check=True).out
        assert 'euid=0' not in out


# --- work goes on ---

THREADS = r'''
#include <pthread.h>
#include <stdio.h>
static void *f(void *p) { return p; }
int main(void) { pthread_t t; if (pthread_create(&t, 0, f, 0)) return 1; pthread_join(t, 0); return puts("ran") < 0; }
'''
WORK = {
    'gcc': ('gcc', 'cat >a.c; gcc -g -o a a.c -lpthread && ./a'),
    'make': ('make', r'cat >a.c; printf "a: a.c\n\tgcc -o a a.c -lpthread\n" >Makefile; make -j2 && ./a'),
    'git': ('git', 'git init -q r && cd r && touch f && git add f && git -c user.name=n -c user.email=e commit -qm x'
                   ' && git mv f g && git gc -q && git clone -q . ../s && echo ran'),
    'python': ('/usr/bin/python3', '''/usr/bin/python3 -c '
import asyncio, multiprocessing, socket, subprocess, threading
subprocess.run(["true"], check=True)
with multiprocessing.Pool(2) as p: assert p.map(abs, [-1, -2]) == [1, 2]
s = socket.create_server(("127.0.0.1", 0)); socket.create_connection(s.getsockname())
asyncio.run(asyncio.create_subprocess_exec("true"))
print("ran")' '''),
    'node': ('node', '''node -e '
const http = require("http"), { Worker } = require("worker_threads");
require("child_process").execSync("true");
new Worker("1", { eval: true }).on("exit", () => http.createServer((q, s) => s.end("ran")).listen(0, function () {
    http.get({ port: this.address().port }, r => r.on("data", d => { console.log(String(d)); process.exit(0); })) }))' '''),
    'npm': ('npm', 'npm -v && echo ran'),
    'perl': ('perl', '''perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0) or die; fork or exit; wait; print "ran\n"' '''),
    'files': ('mv', 'mkdir a b && echo x >a/f && mv a/f b/f && ln b/f a/g && mv a b/c && cat b/c/g && mkfifo p'
                    ' && (echo ran >p & cat p) && echo y | cat /dev/stdin && echo z >/dev/stdout && ls -l /proc/self/exe'),
    'apt fails cleanly': ('apt-get', 'timeout 60 apt-get update -o Acquire::Retries=0 >log 2>&1; test $? -ne 124 && echo ran'),
}
DEBUG = {
    'gdb': ('gdb', 'cat >a.c; gcc -g -o a a.c -lpthread && gdb -batch -ex "break f" -ex run -ex bt -ex continue ./a'),
    'strace': ('strace', 'cat >a.c; gcc -o a a.c -lpthread && strace -f -o log ./a && grep -q clone log'),
}
ADMIN = {
    'dpkg': ('dpkg-deb', r'''mkdir -p d/DEBIAN d/opt/zz && echo ran >d/opt/zz/f
printf "Package: zz\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b.c>\nDescription: x\n" >d/DEBIAN/control
dpkg-deb -b d zz.deb && dpkg -i zz.deb && cat /opt/zz/f && dpkg -r zz'''),
    'useradd': ('useradd', 'useradd -m bob && passwd -d bob && su bob -c "id -un" && groupadd g && usermod -aG g bob'
                           ' && runuser -u bob -- id -un && chroot / true && echo ran'),
    'sudo': ('sudo', 'sudo -u user id -un && echo ran'),
}


def work(cay, row, *options, timeout=90):
    program, script = row
    if not shutil.which(program):
        pytest.skip(f'{program} is not installed')
    script = f'mkdir -p /tmp/w && cd /tmp/w && {script}'
    return cay('run', *options, '--', 'sh', '-c', script, input=THREADS, timeout=timeout, check=True).out


@pytest.mark.parametrize('name', WORK)
def test_work_goes_on(cay, profile, name):
    out = work(cay, WORK[name], '--profile', profile)
    assert 'ran' in out or name == 'files'


@pytest.mark.parametrize('name', DEBUG)
def test_debuggers_work_in_dev(cay, name):
    assert 'ran' in work(cay, DEBUG[name])


@needs_root
@pytest.mark.parametrize('name', ADMIN)
def test_administration_works_in_dev(cay, name):
    assert 'ran' in work(cay, ADMIN[name], '--user', 'root')


def has_terminal(name):
    """Whether one of our processes of this name is in the foreground of its terminal."""
    found = caylib.processes()
    for pid in caylib.family(found):
        if found[pid][2] == name:
            fields = caylib.read_text(f'/proc/{pid}/stat').rpartition(')')[2].split()
            if len(fields) > 5 and fields[2] == fields[5]:
                return True
    return False


def test_terminals_have_job_control_and_a_name(spawn_pty, profile):
    with spawn_pty('run', '--profile', profile, '-t', '--', 'bash', '--norc', '-i') as t:
        t.send('readlink /proc/self/fd/0; echo by-name >/dev/stdout; echo by-tty >/dev/tty\n')
        t.expect(r'[\r\n]/dev/pts/\d+\r')
        t.expect(r'\nby-name')
        t.expect(r'\nby-tty')
        t.send('sleep 100 &\n')
        t.expect(r'\[1\] \d+')
        t.send('fg\n')
        t.expect(r'sleep 100')
        # The shell names the job before it hands the terminal over.
        caylib.wait_until(lambda: has_terminal('sleep'), what='the job in the foreground')
        t.send('\x1a')
        t.expect(r'Stopped')
        # Until the shell has seen the end of a stopped job, it does not leave.
        t.send('kill -9 %1; while [ -n "$(jobs -s)" ]; do sleep 0.05; done; echo go\\ne\n')
        t.expect(r'[\r\n]gone')
        t.send('exit 7\n')
        assert t.wait() == 7


def test_calls_of_one_sandbox_reach_each_other(cay, profile):
    """One Landlock domain for all of them: kill, and looking up whose process it is."""
    box = cay('create', '--profile', profile, check=True).out.strip()
    try:
        cay('exec', box, '--', 'sh', '-c', 'sleep 300 >/dev/null 2>&1 & echo $! >/tmp/pid', check=True)
        caylib.wait_until(lambda: cay('exec', box, '--', 'sh', '-c', 'readlink /proc/$(cat /tmp/pid)/exe', check=True).out.strip()
                          .endswith(('sleep', 'coreutils', 'busybox')), 10, 'its program can be seen')
        cay('exec', box, '--', 'sh', '-c', 'kill $(cat /tmp/pid)', check=True)
        again = 'while kill -0 $(cat /tmp/pid) 2>/dev/null; do sleep 0.02; done'
        cay('exec', '--timeout', '10s', box, '--', 'sh', '-c', again, check=True)
    finally:
        cay('kill', box, check=True)


def test_files_go_in_and_out_behind_the_filter(cay, profile, tmp_path):
    (tmp_path / 't/d').mkdir(parents=True)
    (tmp_path / 't/d/f').write_text('content')
    os.symlink('d/f', tmp_path / 't/l')
    box = cay('create', '--profile', profile, check=True).out.strip()
    try:
        cay('cp', tmp_path / 't', f'{box}:/tmp/t', check=True)
        assert cay('exec', box, '--', 'cat', '/tmp/t/l', check=True).out == 'content'
        cay('cp', f'{box}:/tmp/t', tmp_path / 'back', check=True)
        assert (tmp_path / 'back/l').read_text() == 'content'
        cay('cp', f'{box}:/tmp/t/d/f', tmp_path / 'one', check=True)
        assert (tmp_path / 'one').read_text() == 'content'
    finally:
        cay('kill', box, check=True)

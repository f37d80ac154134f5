# SPDX-License-Identifier: Apache-2.0
"""Snapshots, rollback, forks and transactions."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import time

import caylib
import pytest
from caylib import wait_until
from fingerprint import fingerprint


@pytest.fixture
def box(cay):
    ref = cay.create()
    yield ref
    cay('kill', ref)


def sh(cay, ref, script, *options, code=0):
    result = cay('exec', *options, ref, '--', 'sh', '-c', script)
    assert result.code == code, result
    return result.out


def snap(cay, ref, *options):
    return cay('snapshot', ref, *options, check=True).out.strip()


def forget(cay, *snapshots):
    cay('snapshot', 'rm', *snapshots, check=True)


def layers(cay):
    return {x for x in os.listdir(os.path.join(cay.state, 'layers')) if not x.startswith('.')}


def test_rollback_goes_back_and_forward_again(cay, box):
    sh(cay, box, 'echo one > /tmp/f')
    one = snap(cay, box)
    sh(cay, box, 'echo two > /tmp/f; mkdir /tmp/d; rm /etc/hostname 2>/dev/null; true')
    two = snap(cay, box)
    sh(cay, box, 'echo three > /tmp/f')
    cay('rollback', box, check=True)
    assert sh(cay, box, 'cat /tmp/f; ls /tmp') == 'two\nd\nf\n'
    cay('rollback', box, one, check=True)
    assert sh(cay, box, 'cat /tmp/f; ls /tmp') == 'one\nf\n'
    cay('rollback', box, two, check=True)
    assert sh(cay, box, 'cat /tmp/f; ls /tmp') == 'two\nd\nf\n'
    forget(cay, one, two)


def test_processes_network_and_terminals_are_the_same_after_a_switch(cay, box):
    """The generation changes, the sandbox does not."""
    look = 'readlink /proc/1/ns/pid /proc/self/ns/net /proc/self/ns/uts; hostname; id -u; find /sys'
    before = sh(cay, box, look)
    sh(cay, box, 'touch /tmp/x')
    one = snap(cay, box)
    assert sh(cay, box, look) == before
    with cay.spawn_pty('exec', '-t', box, '--', 'sh', '-c', 'tty; test -w $(tty) && echo writable') as t:
        t.expect(rb'/dev/pts/\d+\r\nwritable')
        assert t.wait() == 0
    assert sh(cay, box, 'echo x > /dev/null; test -r /proc/self/status') == ''
    forget(cay, one)


def test_an_attempt_to_leave_the_root_finds_nothing(cay, box, mode):
    """The classical way out of chroot(2), for whoever may call it, before and after a switch."""
    if mode == 'rootless':
        pytest.skip('nobody inside has the right to call chroot(2)')
    script = r'''
import os
os.makedirs('/tmp/jail', exist_ok=True)
own = os.listdir('/')
fd = os.open('/', os.O_RDONLY)
os.chroot('/tmp/jail')
os.fchdir(fd)
try:
    os.chdir('..')
    print('out')
except PermissionError:
    print('refused')
for path in ('../a', '../b', '../..', '../a/..', '../proc', '../state'):
    try:
        os.close(os.open(path, os.O_PATH)); print('reached', path)
    except PermissionError:
        pass
print(os.listdir('.') == own)
'''
    for _ in range(2):
        out = cay('exec', '--user', 'root', box, '--', 'python3', '-c', script, check=True).out.splitlines()
        assert out == ['refused', 'True']
        forget(cay, snap(cay, box))


def test_commands_inside_still_stand_behind_landlock(cay, box):
    """A file of the new generation can be opened again through /proc, and renamed across directories."""
    sh(cay, box, 'echo a > /tmp/a')
    one = snap(cay, box)
    assert sh(cay, box, 'exec 3< /tmp/a; cat /proc/self/fd/3; mkdir /tmp/x /tmp/y; echo b > /tmp/x/f; mv /tmp/x/f /tmp/y/;'
                        ' cat /tmp/y/f; ln /tmp/y/f /tmp/x/g; cat /tmp/x/g') == 'a\nb\nb\n'
    forget(cay, one)


def test_a_second_name_of_a_file_from_below_is_the_same_file(cay, box, mode):
    """What stat(2) shows in between is the kernel's: without root it cannot tell from where the file was copied up."""
    sh(cay, box, 'echo one > /tmp/a')
    one = snap(cay, box)
    same = sh(cay, box, 'ln /tmp/a /tmp/b; echo two >> /tmp/b; cat /tmp/a; stat -c %h /tmp/a /tmp/b;'
                        ' [ /tmp/a -ef /tmp/b ] && echo same || echo other').split()
    assert same == ['one', 'two', '2', '2', 'other' if mode == 'rootless' else 'same']
    two = snap(cay, box)
    (fork,) = cay('fork', two, check=True).out.split()
    for ref in (box, fork):
        assert sh(cay, ref, '[ /tmp/a -ef /tmp/b ] && stat -c %h /tmp/a && cat /tmp/b') == '2\none\ntwo\n'
    cay('kill', fork, check=True)
    forget(cay, two, one)


def test_a_fork_has_the_same_files_and_options_and_its_own_identity(cay, tmp_path):
    (tmp_path / 'in').write_text('from the host\n')
    ref = cay.create('--dir', f'{tmp_path}:/work', '--env', 'COLOUR=blue', '--profile', 'locked', '--files', '123')
    sh(cay, ref, 'echo changed > /work/in; echo x > /tmp/x')
    (fork,) = cay('fork', ref, check=True).out.split()
    ask = 'cat /work/in /tmp/x; echo $COLOUR; pwd; ulimit -n; grep NoNewPrivs /proc/self/status'
    assert sh(cay, fork, ask) == sh(cay, ref, ask)
    own = 'cat /etc/machine-id; hostname; cat /etc/hostname; grep -c $(hostname) /etc/hosts'
    a, b = sh(cay, ref, own).split(), sh(cay, fork, own).split()
    assert a[0] != b[0] and b[1] == b[2] == fork and a[1] == ref and a[3] == b[3] == '1'
    sh(cay, fork, 'echo fork > /work/in')
    assert sh(cay, ref, 'cat /work/in') == 'changed\n'
    assert (tmp_path / 'in').read_text() == 'from the host\n'
    cay('kill', ref, fork, check=True)


def test_a_fork_has_the_policy_that_holds_now(cay):
    """Not the one of the beginning, which may have let through what is closed meanwhile."""
    ref = cay.create('--allow', 'one.test')
    early = snap(cay, ref)
    cay('policy', 'set', ref, 'none', '--allow', 'two.test', check=True)
    forks = [cay('fork', of, check=True).out.strip() for of in (ref, early, snap(cay, ref, '--name', 'late'))]
    for box in (ref, *forks):
        assert 'refused: one.test' in cay('exec', box, '--', 'getent', 'hosts', 'one.test').err
        assert 'refused' not in cay('exec', box, '--', 'getent', 'hosts', 'two.test').err
    cay('kill', ref, *forks, check=True)
    forget(cay, early, 'late')


@pytest.mark.parametrize('sig', [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_fork_holds_nothing(fresh_cay, sig):
    cay = fresh_cay
    ref = cay.create()
    sh(cay, ref, 'echo x > /tmp/f')
    with cay.popen('fork', ref, '--count', '1000') as forking:
        assert forking.stdout.readline()
        forking.send_signal(sig)
        forking.communicate()
    cay('kill', '--all', '--yes', check=True)
    wait_until(lambda: cay('gc', check=True) and not layers(cay), what='no layers')
    with contextlib.closing(sqlite3.connect(f'{cay.state}/catalog.db')) as db:
        assert db.execute('SELECT * FROM snapshots').fetchall() == []
        assert db.execute('SELECT * FROM recipes').fetchall() == []
    assert os.listdir(f'{cay.state}/locks') == []


def test_what_is_being_read_is_not_removed(fresh_cay):
    """A comparison that has begun shows what was there, whatever is merged or removed meanwhile."""
    cay = fresh_cay
    ref = cay.create()
    sh(cay, ref, 'mkdir /tmp/d; cd /tmp/d; seq 2000 | xargs touch')
    name = snap(cay, ref)
    want = cay('diff', name, check=True).out
    with cay.popen('diff', name) as reader:
        while reader.poll() is None and not reads_layers(reader.pid):
            pass
        reader.send_signal(signal.SIGSTOP)
        assert reader.poll() is None
        cay('kill', ref, check=True)
        forget(cay, name)
        cay('gc', check=True)
        reader.send_signal(signal.SIGCONT)
        out, _ = reader.communicate(timeout=120)
    assert reader.returncode == 0 and len(want.splitlines()) > 2000
    assert out.decode() == want
    wait_until(lambda: cay('gc', check=True) and not layers(cay), what='no layers')
    assert os.listdir(f'{cay.state}/locks') == []


def reads_layers(pid):
    try:
        return any('/layers/' in os.readlink(f'/proc/{pid}/fd/{fd}') for fd in os.listdir(f'/proc/{pid}/fd'))
    except OSError:
        return False


def test_a_template_of_a_snapshot_has_its_files_and_other_options(cay, box, tmp_path):
    sh(cay, box, 'echo kept > /tmp/f')
    name = snap(cay, box, '--name', 'a-base', '--note', 'for others')
    (tmp_path / 'more').write_text('more\n')
    run = cay('run', '--template', 'snap:a-base', '--dir', f'{tmp_path}:/more', '--env', 'K=v', '--', 'sh', '-c',
              'cat /tmp/f /more/more; echo $K', check=True)
    assert run.out == 'kept\nmore\nv\n'
    assert cay('run', '--template', 'snap:a-base', '--dir', f'{tmp_path}:/', '--', 'true').code == 125
    assert cay('run', '--template', 'snap:nothing', '--', 'true').code == 125
    (row,) = [s for s in cay.json('snapshots', box) if s['id'] == name]
    assert (row['name'], row['note'], row['kind'], row['sandbox']) == ('a-base', 'for others', 'snapshot', box)
    assert cay('snapshot', box, '--name', 'a-base').code != 0
    forget(cay, 'a-base')


def test_a_template_of_a_snapshot_starts_where_its_sandbox_did(cay, tmp_path):
    (tmp_path / 'a').mkdir()
    ref = cay.create('--dir', f'{tmp_path}:/work')
    name = snap(cay, ref)

    def where(*options):
        return cay('run', '--template', f'snap:{name}', *options, '--', 'pwd', check=True).out

    assert where() == '/work\n'
    assert where('--cwd', '/tmp') == '/tmp\n'
    assert where('--dir', f'{tmp_path / "a"}:/more') == '/more\n'
    made = cay.create('--template', f'snap:{name}')
    again = snap(cay, made)
    assert cay('run', '--template', f'snap:{again}', '--', 'pwd', check=True).out == '/work\n'
    cay('kill', ref, made, check=True)
    forget(cay, name, again)


def test_snapshots_outlive_their_sandbox_and_layers_what_needs_them(fresh_cay):
    cay = fresh_cay
    ref = cay.create()
    sh(cay, ref, 'echo one > /tmp/f')
    one = snap(cay, ref)
    sh(cay, ref, 'echo two > /tmp/f')
    two = snap(cay, ref)
    cay('kill', ref, check=True)
    (fork,) = cay('fork', two, check=True).out.split()
    assert sh(cay, fork, 'cat /tmp/f') == 'two\n'
    forget(cay, two)
    assert sh(cay, fork, 'cat /tmp/f') == 'two\n' and len(layers(cay)) == 2
    cay('kill', fork, check=True)
    wait_until(lambda: cay('gc', check=True) and len(layers(cay)) == 1, what='one layer')
    forget(cay, one)
    assert not layers(cay)


def test_nothing_changed_needs_no_layer(fresh_cay):
    cay = fresh_cay
    ref = cay.create()
    sh(cay, ref, 'true')
    a = snap(cay, ref)
    sh(cay, ref, 'ls / > /dev/null')
    b = cay.json('snapshot', ref)[0]
    assert b['changed'] is False
    cay('rollback', ref, a, check=True)
    cay('kill', ref, check=True)
    forget(cay, a, b['id'])


MAKE = '''
set -e; cd /tmp; umask 022
mkdir -p t/a/b t/gone t/closed; echo one > t/a/one; echo two > t/a/b/two; ln t/a/one t/a/twin; ln -s ../nowhere t/a/link
python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('t/socket')"
echo g > t/gone/g; mkfifo t/pipe; python3 -c "import os; os.setxattr('t/a/one', 'user.k', b'v\\\\0w')"
dd if=/dev/zero of=t/sparse bs=1 count=1 seek=9999999 2>/dev/null; chmod 4755 t/a/b/two; chmod 700 t/closed
touch -d 2001-02-03T04:05:06.789 t/a/one t/a t/gone
'''
RUIN = '''
cd /tmp; rm -rf t/gone; echo x >> t/a/one; mv t/a t/z; mkdir t/a; echo new > t/a/new; chmod 777 t; rm t/pipe t/socket; chmod 0 t/closed
python3 -c "import os; os.setxattr('t/z/twin', 'user.k', b'other')"; touch t; ln -sf other t/z/link; echo > /var/tmp/n
'''


@pytest.mark.parametrize('user', [None, 'root'])
def test_after_abort_every_detail_is_as_before(cay, box, mode, user):
    if mode == 'rootless' and user:
        pytest.skip('there is no root inside')
    options = ['--user', user] if user else []
    sh(cay, box, MAKE + ('chown 5:6 t/a/b/two; chmod 4711 t/a/b/two' if user else ''), *options)
    before, root = fingerprint(cay, box, '/tmp', user), sh(cay, box, 'stat -c "%a %u %g %y" / /tmp /var/tmp')
    cay('tx', 'begin', box, check=True)
    assert fingerprint(cay, box, '/tmp', user) == before
    sh(cay, box, RUIN, *options)
    assert fingerprint(cay, box, '/tmp', user) != before
    cay('tx', 'abort', box, check=True)
    assert fingerprint(cay, box, '/tmp', user) == before
    assert sh(cay, box, 'stat -c "%a %u %g %y" / /tmp /var/tmp') == root
    sh(cay, box, 'chmod -R u+rwx /tmp/t; rm -rf /tmp/t', *options)


@pytest.mark.parametrize('user', [None, 'root'])
def test_every_detail_outlasts_the_merging_of_layers(fresh_cay, mode, user):
    if mode == 'rootless' and user:
        pytest.skip('there is no root inside')
    cay, options = fresh_cay, ['--user', user] if user else []
    box = cay.create()
    sh(cay, box, MAKE + ('chown 5:6 t/a/b/two; chmod 4711 t/a/b/two' if user else ''), *options)
    made = fingerprint(cay, box, '/tmp/t', user)
    snaps = [cay('snapshot', box, check=True).out.strip()]
    sh(cay, box, RUIN + 'mkdir t/gone; echo again > t/gone/h', *options)  # opaque: g must not shine through
    ruined = fingerprint(cay, box, '/tmp/t', user)
    for i in range(18):
        sh(cay, box, f'echo {i} > /tmp/n', *options)
        snaps.append(cay('snapshot', box, check=True).out.strip())
    wait_until(lambda: cay('tidy', check=True) and levels(cay) > 0, what='a merged layer')
    for name, want in ((snaps[0], made), (snaps[1], ruined), (snaps[-1], ruined)):
        fork = cay('fork', name, check=True).out.strip()
        assert fingerprint(cay, fork, '/tmp/t', user) == want
        cay('kill', fork, check=True)
    cay('rollback', box, snaps[0], check=True)
    assert fingerprint(cay, box, '/tmp/t', user) == made
    cay('kill', box, check=True)
    forget(cay, *snaps)


XATTRS = 'import os; print(sorted((k, os.getxattr(".", k)) for k in os.listxattr(".")))'


def test_the_directory_that_is_shown_is_as_it_was_too(cay, tmp_path):
    """Its times and attributes lie in the upper, also where nothing has been changed there."""
    project = str(tmp_path)
    os.utime(project, ns=(1, 1_234_567_890_123_456_789))
    ref = cay.create('--dir', project)
    look = 'stat -c "%y %a %u:%g" . /usr; ls'
    before = sh(cay, ref, look)
    assert before.startswith('2009-02-13')
    cay('tx', 'begin', ref, check=True)
    sh(cay, ref, 'sleep 0.01; touch x; chmod 700 .')
    assert sh(cay, ref, look) != before
    cay('tx', 'abort', ref, check=True)
    assert sh(cay, ref, look) == before
    xattr = ['exec', ref, '--', 'python3', '-c']
    cay(*xattr, 'import os; os.setxattr(".", "user.k", b"v")', check=True)
    first = snap(cay, ref)
    with_k = cay(*xattr, XATTRS, check=True).out
    assert "('user.k', b'v')" in with_k
    same = cay.json('snapshot', ref)[0]
    assert same['changed'] is False
    cay(*xattr, 'import os; os.removexattr(".", "user.k")', check=True)
    second = snap(cay, ref)
    for name, want in ((first, with_k), (second, '[]\n')):
        fork = cay('fork', name, check=True).out.strip()
        assert cay('exec', fork, '--', 'python3', '-c', XATTRS, check=True).out == want
        assert sh(cay, fork, look) == before
        cay('kill', fork, check=True)
    cay('kill', ref, check=True)
    forget(cay, first, same['id'], second)


MARK = '''
import os
os.setxattr('/tmp/d', 'user.overlay.opaque', b'y'); os.setxattr('/tmp/d/high', 'user.overlay.whiteout', b'')
os.setxattr('/tmp/d/low', 'user.overlay.metacopy', b'')
'''


def test_marks_that_a_sandbox_makes_itself_are_attributes_like_others(fresh_cay):
    """Neither the merging of layers nor the copy of a busy sandbox takes them for those of overlayfs."""
    cay = fresh_cay
    box = cay.create()
    sh(cay, box, 'mkdir /tmp/d; echo low > /tmp/d/low')
    snaps = [snap(cay, box)]
    sh(cay, box, ': > /tmp/d/high')
    cay('exec', box, '--', 'python3', '-c', MARK, check=True)
    want = fingerprint(cay, box, '/tmp/d')
    for name in (b'user.overlay.opaque', b'user.overlay.whiteout', b'user.overlay.metacopy'):
        assert name.decode() in want
    events = cay.json('trace', box)
    assert [e['path'] for e in events if e['kind'] == 'file.delete'] == []
    snaps.append(snap(cay, box))
    for i in range(18):
        sh(cay, box, f'echo {i} > /tmp/n')
        snaps.append(snap(cay, box))
    wait_until(lambda: cay('tidy', check=True) and levels(cay) > 0, what='a merged layer')
    cay('rollback', box, check=True)
    assert fingerprint(cay, box, '/tmp/d') == want
    for name in (snaps[1], snaps[-1]):
        fork = cay('fork', name, check=True).out.strip()
        assert fingerprint(cay, fork, '/tmp/d') == want
        cay('kill', fork, check=True)
    cay('kill', box, check=True)
    forget(cay, *snaps)


def levels(cay):
    """How many layers are merged ones."""
    db = sqlite3.connect(os.path.join(cay.state, 'catalog.db'), timeout=120)
    (n,), = db.execute('SELECT count(*) FROM layers WHERE level > 0')
    db.close()
    return n


def test_transactions_nest(cay, box):
    sh(cay, box, 'echo 0 > /tmp/f')
    cay('tx', 'begin', box, check=True)
    sh(cay, box, 'echo 1 > /tmp/f')
    cay('tx', 'begin', box, check=True)
    sh(cay, box, 'echo 2 > /tmp/f')
    cay('tx', 'abort', box, check=True)
    assert sh(cay, box, 'cat /tmp/f') == '1\n'
    cay('tx', 'begin', box, check=True)
    sh(cay, box, 'echo 3 > /tmp/f')
    cay('tx', 'commit', box, check=True)
    assert sh(cay, box, 'cat /tmp/f') == '3\n'
    cay('tx', 'abort', box, check=True)
    assert sh(cay, box, 'cat /tmp/f') == '0\n'
    assert cay('tx', 'commit', box).code != 0 and cay('tx', 'abort', box).code != 0


def test_exec_tx_keeps_success_and_undoes_the_rest(cay, box):
    sh(cay, box, 'echo 0 > /tmp/f')
    sh(cay, box, 'echo 1 > /tmp/f', '--tx')
    assert sh(cay, box, 'cat /tmp/f') == '1\n'
    sh(cay, box, 'echo 2 > /tmp/f; exit 7', '--tx', code=7)
    sh(cay, box, 'echo 3 > /tmp/f; kill -9 $$', '--tx', code=137)
    sh(cay, box, 'echo 4 > /tmp/f; sleep 60', '--tx', '--timeout', '200ms', code=124)
    assert cay('exec', '--tx', box, '--', '/no/such/program').code == 127
    assert sh(cay, box, 'cat /tmp/f') == '1\n'
    sh(cay, box, 'sleep 100 > /dev/null 2>&1 & echo 5 > /tmp/f; exit 1', '--tx', code=1)
    assert sh(cay, box, 'cat /tmp/f') == '1\n' and 'sleep' not in cay('ps', box).out
    assert cay.json('snapshots', box) == []


def test_a_limit_that_is_hit_aborts(fresh_cay):
    cay = fresh_cay
    ref = cay.create('--disk', '8M', '--best-effort')
    sh(cay, ref, 'echo 0 > /tmp/f')
    result = cay('exec', '--tx', ref, '--', 'sh', '-c',
                 'echo 1 > /tmp/f; i=0; while :; do head -c 1M /dev/zero > /tmp/x$i; i=$((i+1)); done')
    assert result.code != 0
    assert sh(cay, ref, 'cat /tmp/f; ls /tmp') == '0\nf\n'
    cay('kill', ref, check=True)


def test_rollback_refuses_while_commands_run_and_lists_them(cay, box):
    one = snap(cay, box)
    with cay.popen('exec', box, '--', 'sh', '-c', 'echo up; echo x > /tmp/x; sleep 100') as running:
        running.read_until(b'up')
        refused = cay('rollback', box, one)
        assert refused.code != 0 and 'running: ' in refused.err and '--force' in refused.err
        cay('rollback', box, one, '--force', check=True)
        assert running.finish().code == 137
    assert sh(cay, box, 'ls /tmp') == ''
    forget(cay, one)


def test_a_busy_sandbox_is_copied_at_one_moment(cay, box, mode):
    """Two files that a command writes one after the other: the second is never ahead of the first."""
    script = 'echo up; i=0; while :; do i=$((i+1)); echo $i > /tmp/a; echo $i > /tmp/b; done'
    with cay.popen('exec', box, '--', 'sh', '-c', script) as running:
        running.read_until(b'up')
        first = cay('snapshot', box, '--json')
        if first.code and mode == 'rootless' and 'no control group' in first.err:
            pytest.skip('no control group that could be frozen')
        assert first.code == 0, first
        (fork,) = cay('fork', box, check=True).out.split()
        a, b = (int(x or 0) for x in sh(cay, fork, 'cat /tmp/a; echo; cat /tmp/b').split('\n')[0:3:2])
        assert b in (a, a - 1) or 0 in (a, b)  # 0: cut, and not written yet
        # Empty for the moment between its truncation and the write.
        later = int(sh(cay, box, 'until read n < /tmp/b && [ "$n" ]; do :; done; echo $n'))
        assert later >= b
        running.send_signal(signal.SIGKILL)
    events = [e for e in cay.events(box) if e['kind'] == 'sandbox.snapshot' and 'freeze_us' in e]
    assert len(events) == 2 and all(e['freeze_us'] > 0 for e in events)
    cay('kill', fork, check=True)
    cay('rollback', box, '--force', check=True)
    forget(cay, *[s['id'] for s in cay.json('snapshots', box)])


def test_file_events_know_what_lies_below(cay, box):
    """After a snapshot a changed file is one that changed, not one that was created."""
    sh(cay, box, 'echo one > /tmp/f; echo two > /tmp/g; mkdir /tmp/d; echo x > /tmp/d/x')
    one = snap(cay, box)
    sh(cay, box, 'echo more >> /tmp/f; rm /tmp/g; rm -r /tmp/d; echo n > /tmp/n')
    found = {(e['kind'], e['path']) for e in cay.events(box) if e['kind'].startswith('file.') and e.get('call') == 2}
    assert found >= {('file.change', '/tmp/f'), ('file.delete', '/tmp/g'), ('file.delete', '/tmp/d'),
                     ('file.create', '/tmp/n')}, found
    assert ('file.create', '/tmp/f') not in found
    forget(cay, one)


@pytest.mark.parametrize('victim', ['warden', 'init'])
def test_what_dies_is_lost_and_its_files_are_a_snapshot(fresh_cay, victim):
    cay = fresh_cay
    ref = cay.create('--name', 'gone')
    sh(cay, ref, 'echo one > /tmp/f')
    first = snap(cay, ref)
    sh(cay, ref, 'echo two > /tmp/f')
    init = cay.json('show', ref)[0]['init_pid']
    os.kill(cay.warden(ref) if victim == 'warden' else init, signal.SIGKILL)
    wait_until(lambda: cay('gc', check=True) and cay.json('ls', '--all')[0]['state'] == 'lost', what='lost')
    (lost,) = [s for s in cay.json('snapshots', 'gone') if s['kind'] == 'lost']
    (fork,) = cay('fork', lost['id'], check=True).out.split()
    assert sh(cay, fork, 'cat /tmp/f') == 'two\n'
    cay('kill', 'gone', fork, check=True)
    (other,) = cay('fork', first, check=True).out.split()
    assert sh(cay, other, 'cat /tmp/f') == 'one\n'
    cay('kill', other, check=True)
    forget(cay, first)
    assert not layers(cay)


def test_deep_stacks_stay_shallow_and_right(fresh_cay):
    cay = fresh_cay
    ref = cay.create()
    snaps = []
    for i in range(40):
        sh(cay, ref, f'echo {i} > /tmp/f{i % 5}; rm -rf /tmp/d{(i + 1) % 3}; mkdir -p /tmp/d{i % 3}; echo {i} > /tmp/d{i % 3}/x')
        snaps.append((snap(cay, ref), fingerprint(cay, ref, '/tmp')))
    cay('tidy', check=True)
    wait_until(lambda: cay('tidy', check=True) and depth(cay, ref) < 24, what='a shallow stack')
    for which in (0, 7, 8, 20, 33, 39):
        cay('rollback', ref, snaps[which][0], check=True)
        assert fingerprint(cay, ref, '/tmp') == snaps[which][1], which
    cay('kill', ref, check=True)
    forget(cay, *[s for s, _ in snaps])
    wait_until(lambda: cay('gc', check=True) and not layers(cay), what='no layers')


def depth(cay, ref):
    db = sqlite3.connect(os.path.join(cay.state, 'catalog.db'))
    try:
        return db.execute('WITH RECURSIVE s(id) AS (SELECT top FROM sandboxes WHERE id = ? UNION ALL SELECT parent FROM s'
                          ' JOIN layers USING (id) WHERE parent IS NOT NULL) SELECT count(*) FROM s', (ref,)).fetchone()[0]
    finally:
        db.close()


def test_ids_on_disk_are_those_inside_and_closed_to_others(cay, box, mode):
    if mode == 'rootless':
        pytest.skip('one uid, nothing to map')
    sh(cay, box, 'cp /bin/true /tmp/s; chmod 4755 /tmp/s; touch /tmp/u; chown 7:8 /tmp/u', '--user', 'root')
    one = snap(cay, box)
    found = subprocess.run(['find', os.path.join(cay.state, 'layers'), '-name', 'u', '-printf', '%U:%G'],
                           capture_output=True, text=True, check=True).stdout
    assert found == '7:8'
    for name in ('.', 'layers', 'sandboxes', f'sandboxes/{box}'):
        assert os.stat(os.path.join(cay.state, name)).st_mode & 0o077 == 0, name
    forget(cay, one)


def test_a_helper_that_was_started_ahead_may_die(cay, no_leftovers):
    """It has changed nothing: the next switch starts another."""
    ref = cay.create()
    warden = cay.warden(ref)

    def put_and_snapshot(text):
        cay('exec', ref, '--', 'sh', '-c', f'echo {text} > /tmp/f', check=True)
        return cay('snapshot', ref, check=True).out.strip()

    def ahead():
        return [pid for pid, (parent, state, name) in caylib.processes().items()
                if parent == warden and name == 'cay-warden' and state != 'Z']
    def waiting():
        """The one that is still there a moment later: others clear away what the last switch has left."""
        before = ahead()
        time.sleep(0.1)
        return before if len(before) == 1 and before == ahead() else None
    snaps = [put_and_snapshot('one')]
    os.kill(caylib.wait_until(waiting, what='a helper that waits')[0], signal.SIGKILL)
    snaps.append(put_and_snapshot('two'))
    cay('rollback', ref, snaps[0], check=True)
    assert cay('exec', ref, '--', 'cat', '/tmp/f', check=True).out == 'one\n'
    cay('kill', ref, check=True)
    cay('snapshot', 'rm', *snaps, check=True)
    assert not [pid for pid, (parent, _, _) in caylib.processes().items() if parent == warden]


def test_wrong_use_of_snapshots_is_told(cay, box):
    r = cay('snapshot', 'rm')
    assert r.code == 2 and 'missing a snapshot' in r.err
    r = cay('snapshots', 'nosuch')
    assert r.code == 5 and "no sandbox 'nosuch'" in r.err
    assert cay('snapshots', box, check=True).out == ''
    sh(cay, box, 'echo 1 > /tmp/f')
    one, two = snap(cay, box), snap(cay, box)
    r = cay('snapshot', 'rm', one, 'nosuch', two)
    assert r.code == 5 and "no snapshot 'nosuch'" in r.err and r.out == one + '\n'
    assert [s['id'] for s in cay.json('snapshots', box)] == [two]
    forget(cay, two)


def test_a_directory_that_is_gone_is_named_and_it_is_told_what_to_do(cay, tmp_path):
    project = tmp_path / 'p'
    project.mkdir()
    ref = cay.create('--dir', str(project))
    sh(cay, ref, 'echo x > f')
    project.rename(tmp_path / 'q')
    assert sh(cay, ref, 'cat f') == 'x\n'
    for words in (['snapshot', ref], ['fork', ref], ['diff', ref], ['apply', ref]):
        r = cay(*words)
        assert r.code != 0 and f"'{project}'" in r.err and 'put it back' in r.err, r
    (tmp_path / 'q').rename(project)
    name = snap(cay, ref)
    assert cay('diff', ref, check=True).out.startswith('A  ')
    cay('kill', ref, check=True)
    forget(cay, name)

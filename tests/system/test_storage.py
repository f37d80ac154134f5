# SPDX-License-Identifier: Apache-2.0
"""cay setup storage: a btrfs in a file, a subvolume per sandbox, and limits on disk that the kernel holds."""

import fcntl
import glob
import json
import os
import shutil
import sqlite3
import subprocess
import time

import caylib
import pytest
from caylib import wait_until

rootful = pytest.mark.skipif(not caylib.ROOTFUL, reason='a pool needs root')
needs_btrfs = pytest.mark.skipif(bool(caylib.why_no_storage()), reason=caylib.why_no_storage() or '')


def is_mounted(path):
    return any(line.split()[4] == path for line in caylib.read_text('/proc/self/mountinfo').splitlines())


def in_use(image):
    """A loop device has it: for as long as any mount namespace still shows what was mounted of it, if only a copy."""
    return any(caylib.read_text(path).strip() == image for path in glob.glob('/sys/block/loop*/loop/backing_file'))


def subvolumes(cay):
    return sorted(n for n in os.listdir(f'{cay.state}/storage') if not n.startswith('.') and n != 'layers')


@pytest.fixture
def pool(fresh_cay):
    """A cay with a small pool."""
    fresh_cay('setup', 'storage', '--size', '256M', check=True)
    yield fresh_cay
    caylib.remove_all(fresh_cay)
    # A run answers before its warden has removed the files.
    if is_mounted(f'{fresh_cay.state}/storage'):
        caylib.wait_until(lambda: subvolumes(fresh_cay) == [], what='the end of what a run cleans up')
    fresh_cay('setup', 'storage', '--remove', check=True)
    assert not is_mounted(f'{fresh_cay.state}/storage')
    assert not os.path.exists(f'{fresh_cay.state}/storage.img')


@pytest.mark.skipif(caylib.ROOTFUL, reason='as an ordinary user')
def test_without_root_it_is_refused(cay):
    done = cay('setup', 'storage')
    assert done.code == 4 and 'needs root' in done.err


def test_bad_use_is_explained(cay):
    assert 'there is: storage' in cay('setup', 'lake').err
    assert cay('setup').code == 2


@needs_btrfs
def test_setting_up_is_idempotent_and_told(pool):
    again = pool('setup', 'storage', check=True)
    assert again.out.startswith('There is storage already')
    told = json.loads(pool('setup', 'storage', '--json', check=True).out)
    assert told['storage'] and told['image'] and told['quota'] and told['path'] == f'{pool.state}/storage.img'
    assert os.stat(told['path']).st_blocks * 512 < 64 << 20  # sparse
    doctor = json.loads(pool('doctor', '--json').out)
    assert [c for c in doctor['checks'] if c['name'] == 'disk limit'][0]['state'] == 'ok'


@needs_btrfs
def test_the_limit_is_an_error_inside_and_told_outside(pool):
    script = 'dd if=/dev/zero of=/tmp/big bs=64k count=1000'
    done = pool('run', '--disk', '16M', '--', 'sh', '-c', script)
    assert 'Disk quota exceeded' in done.err and done.code == 1
    assert 'the sandbox wrote as much as its --disk allows' in done.err


@needs_btrfs
def test_it_can_be_freed_again(pool):
    box = pool.create('--disk', '16M')
    assert pool('exec', box, '--', 'dd', 'if=/dev/zero', 'of=/tmp/big', 'bs=64k', 'count=1000').code == 1
    hits = [e for e in pool.events(box) if e['kind'] == 'limit.hit']
    assert len(hits) == 1 and hits[0]['limit'] == 'disk' and hits[0]['bytes'] == 16 << 20
    ends = [e for e in pool.events(box) if e['kind'] == 'call.exit']
    assert ends[-1]['reason'] == 'disk'
    pool('exec', box, '--', 'rm', '/tmp/big', check=True)
    pool('exec', box, '--', 'dd', 'if=/dev/zero', 'of=/tmp/small', 'bs=64k', 'count=100', check=True)


@needs_btrfs
def test_files_are_bounded_too(pool):
    script = 'mkdir /tmp/d; cd /tmp/d; seq 40000 | xargs touch'
    done = pool('run', '--disk', '8M', '--', 'sh', '-c', script)
    assert 'Disk quota exceeded' in done.err


@needs_btrfs
def test_each_has_its_own_and_it_goes_with_it(pool):
    one, two, plain = pool.create('--disk', '16M'), pool.create('--disk', '64M'), pool.create()
    assert subvolumes(pool) == sorted([one, two, plain])
    assert pool('exec', one, '--', 'dd', 'if=/dev/zero', 'of=/tmp/big', 'bs=64k', 'count=1000').code == 1
    pool('exec', two, '--', 'dd', 'if=/dev/zero', 'of=/tmp/big', 'bs=64k', 'count=500', check=True)
    pool('kill', one, two, plain, check=True)
    assert subvolumes(pool) == []


@needs_btrfs
def test_it_is_mounted_again_when_needed(pool):
    subprocess.run(['umount', f'{pool.state}/storage'], check=True)
    pool('run', '--disk', '16M', '--', 'true', check=True)
    assert is_mounted(f'{pool.state}/storage')
    wait_until(lambda: subvolumes(pool) == [], what='what a run cleans up behind')


@needs_btrfs
def test_gc_removes_what_the_dead_have_left(pool):
    os.mkdir(f'{pool.state}/storage/keep')  # is no id
    box = pool.create('--disk', '16M')
    os.kill(pool.warden(box), 9)
    wait_until(lambda: pool.json('ls', '--all')[0]['state'] == 'lost', what='lost')
    assert subvolumes(pool) == sorted([box, 'keep'])
    pool('gc', '--lost', check=True)
    assert subvolumes(pool) == ['keep']
    # One of which there is nothing else at all.
    subprocess.run(['btrfs', '-q', 'subvolume', 'create', f'{pool.state}/storage/abandoned1'], check=True)
    pool('gc', check=True)
    assert subvolumes(pool) == ['keep']
    os.rmdir(f'{pool.state}/storage/keep')


@needs_btrfs
def test_a_pool_in_use_stays(pool):
    pool.create('--disk', '16M')
    done = pool('setup', 'storage', '--remove')
    assert done.code == 1 and 'sandboxes in the storage' in done.err
    assert is_mounted(f'{pool.state}/storage')


@needs_btrfs
def test_a_directory_on_btrfs_will_do(pool, fresh_cay):
    """The pool of one state directory serves as the host's btrfs of another."""
    host, other = f'{pool.state}/storage/host', caylib.Cay()
    os.mkdir(host)
    try:
        done = other('setup', 'storage', host, check=True)
        assert host in done.out
        run = other('run', '--disk', '8M', '--', 'dd', 'if=/dev/zero', 'of=/tmp/big', 'bs=64k', 'count=1000')
        assert 'Disk quota exceeded' in run.err
        other('setup', 'storage', '--remove', check=True)
        assert os.listdir(host) == []
    finally:
        other.remove()
        shutil.rmtree(host)


@needs_btrfs
def test_removing_a_pool_waits_for_sandboxes_that_are_ending(pool):
    """Such a sandbox has files in the storage and a lock that its warden holds, but is not listed any more."""
    ending = f'{pool.state}/storage/zzzzzzzzzz'
    os.mkdir(ending)
    with open(f'{pool.state}/locks/zzzzzzzzzz', 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pool.popen('setup', 'storage', '--remove') as p:
            with pytest.raises(subprocess.TimeoutExpired):
                p.wait(timeout=0.5)
            os.rmdir(ending)
            os.unlink(lock.name)
            out, err = p.communicate()
    assert p.returncode == 0, (out, err)


@needs_btrfs
def test_a_pool_with_a_sandbox_is_not_removed_nor_waited_for(pool):
    pool.create('--disk', '8M')
    began = time.monotonic()
    r = pool('setup', 'storage', '--remove')
    assert r.code != 0 and 'there are sandboxes in the storage' in r.err
    assert time.monotonic() - began < 4 * caylib.SLOWER


@rootful
def test_what_is_no_empty_btrfs_is_refused(cay, tmp_path):
    assert 'is not on btrfs' in cay('setup', 'storage', tmp_path).err
    assert 'No such file' in cay('setup', 'storage', tmp_path / 'none').err
    assert 'at least 128 MiB' in cay('setup', 'storage', '--size', '1M').err
    assert not os.path.lexists(f'{cay.state}/storage')


@rootful
def test_a_missing_program_is_named(fresh_cay, tmp_path):
    """mkfs.btrfs is looked for in the system's directories only; hide them in a mount namespace."""
    script = 'mount -t tmpfs none /usr/sbin && exec "$CAY" setup storage --size 200M'
    with subprocess.Popen(['unshare', '-m', 'sh', '-c', script], env={**fresh_cay.env, 'CAY': caylib.CAY},
                          stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as done:
        err = done.communicate()[1].decode()
    assert 'btrfs-progs' in err
    assert not os.path.lexists(f'{fresh_cay.state}/storage.img') and not os.path.lexists(f'{fresh_cay.state}/storage')


def layers(cay):
    return sorted(os.listdir(f'{cay.state}/storage/layers'))


def read(cay, box, path):
    return cay('exec', box, '--', 'cat', path, check=True).out


def write(cay, box, path, text):
    cay('exec', box, '--', 'sh', '-c', f'echo {text} >{path}', check=True)


@needs_btrfs
def test_a_snapshot_becomes_a_layer_in_the_pool(pool):
    box = pool.create()
    write(pool, box, '/tmp/a', 'one')
    pool('snapshot', box, '--name', 's1', check=True)
    assert len(layers(pool)) == 1 and os.listdir(f'{pool.state}/layers') in ([], ['.lock'])
    assert os.stat(f'{pool.state}/storage/layers/{layers(pool)[0]}').st_ino == 256  # a subvolume
    assert os.listdir(f'{pool.state}/storage/{box}') == ['upper']
    write(pool, box, '/tmp/a', 'two')
    write(pool, box, '/tmp/b', 'two')
    pool('rollback', box, 's1', check=True)
    assert read(pool, box, '/tmp/a') == 'one\n'
    assert pool('exec', box, '--', 'test', '-e', '/tmp/b').code == 1
    wait_until(lambda: os.listdir(f'{pool.state}/storage/{box}/old') == [], what='the last generation is removed')


@needs_btrfs
def test_nothing_but_what_was_changed_is_in_a_layer(pool, tmp_path):
    box = pool.create('--copy', '--dir', tmp_path)
    write(pool, box, '/tmp/a', 'one')
    pool('snapshot', box, check=True)
    layer = f'{pool.state}/storage/layers/{layers(pool)[0]}'
    wait_until(lambda: os.listdir(layer) == ['0'], what='the rest is removed')
    write(pool, box, f'{tmp_path}/new', 'here')
    assert read(pool, box, f'{tmp_path}/new') == 'here\n' and not os.listdir(tmp_path)


@needs_btrfs
def test_a_fork_has_a_place_in_the_pool(pool):
    box = pool.create()
    write(pool, box, '/tmp/a', 'one')
    fork = pool('fork', box, check=True).out.strip()
    assert subvolumes(pool) == sorted([box, fork])
    write(pool, fork, '/tmp/a', 'two')
    assert read(pool, box, '/tmp/a') == 'one\n' and read(pool, fork, '/tmp/a') == 'two\n'


@needs_btrfs
def test_layers_from_before_the_pool_lie_below_those_in_it(fresh_cay):
    old = fresh_cay.create()
    write(fresh_cay, old, '/tmp/a', 'one')
    fresh_cay('snapshot', old, '--name', 's1', check=True)
    fresh_cay('setup', 'storage', '--size', '256M', check=True)
    fork = fresh_cay('fork', 's1', check=True).out.strip()
    assert subvolumes(fresh_cay) == [fork]
    write(fresh_cay, fork, '/tmp/b', 'two')
    fresh_cay('snapshot', fork, '--name', 's2', check=True)
    write(fresh_cay, fork, '/tmp/a', 'three')
    fresh_cay('rollback', fork, 's2', check=True)
    assert read(fresh_cay, fork, '/tmp/a') == 'one\n' and read(fresh_cay, fork, '/tmp/b') == 'two\n'
    write(fresh_cay, old, '/tmp/a', 'four')  # goes on where it was
    fresh_cay('rollback', old, 's1', check=True)
    assert read(fresh_cay, old, '/tmp/a') == 'one\n'
    assert 'in the storage' in fresh_cay('setup', 'storage', '--remove').err
    fresh_cay('kill', '--all', '--yes', check=True)
    assert 'snapshots in the storage' in fresh_cay('setup', 'storage', '--remove').err
    fresh_cay('snapshot', 'rm', 's1', 's2', check=True)
    fresh_cay('setup', 'storage', '--remove', check=True)


@needs_btrfs
def test_a_snapshot_while_calls_run_is_of_one_moment(pool):
    box = pool.create()
    write(pool, box, '/tmp/a', 'one')
    with pool.popen('exec', box, '--', 'sh', '-c', 'echo ready >/tmp/ready; exec sleep 60') as call:
        wait_until(lambda: pool('exec', box, '--', 'test', '-e', '/tmp/ready').code == 0, what='it runs')
        pool('snapshot', box, '--name', 's1', check=True)
        taken = [e for e in pool.events(box) if e['kind'] == 'sandbox.snapshot'][-1]
        assert 'freeze_us' in taken and call.poll() is None
        write(pool, box, '/tmp/a', 'two')
        pool('rollback', '--force', box, 's1', check=True)
        call.wait()
    assert read(pool, box, '/tmp/a') == 'one\n'


@needs_btrfs
def test_the_limit_holds_in_every_generation(pool):
    box = pool.create('--disk', '16M')
    big = ('exec', box, '--', 'dd', 'if=/dev/zero', 'of=/tmp/big', 'bs=64k', 'count=1000')
    write(pool, box, '/tmp/a', 'one')
    pool('snapshot', box, '--name', 's1', check=True)
    assert 'Disk quota exceeded' in pool(*big).err
    pool('rollback', box, 's1', check=True)
    assert 'Disk quota exceeded' in pool(*big).err


@needs_btrfs
def test_a_transaction_that_fails_leaves_nothing(pool):
    box = pool.create()
    write(pool, box, '/tmp/a', 'one')
    assert pool('exec', '--tx', box, '--', 'sh', '-c', 'echo two >/tmp/a; exit 3').code == 3
    assert read(pool, box, '/tmp/a') == 'one\n'


@needs_btrfs
def test_what_a_lost_one_had_is_kept_in_the_pool(pool):
    box = pool.create()
    write(pool, box, '/tmp/a', 'one')
    os.kill(pool.warden(box), 9)
    wait_until(lambda: pool.json('ls', '--all')[0]['state'] == 'lost', what='lost')
    snap = pool.json('snapshots')[0]
    fork = pool('fork', snap['id'], check=True).out.strip()
    assert read(pool, fork, '/tmp/a') == 'one\n'
    assert os.listdir(f'{pool.state}/storage/{box}') == []


@needs_btrfs
def test_a_snapshot_of_a_paused_one(pool):
    box = pool.create()
    write(pool, box, '/tmp/a', 'one')
    with pool.popen('exec', box, '--', 'sh', '-c', 'while :; do date +%N >/tmp/now; sleep 0.01; done'):
        wait_until(lambda: pool('exec', box, '--', 'test', '-e', '/tmp/now').code == 0, what='it runs')
        pool('pause', box, check=True)
        pool('snapshot', box, '--name', 's1', check=True)
        assert pool.json('ls')[0]['state'] == 'paused'
        fork = pool('fork', 's1', check=True).out.strip()
        assert read(pool, fork, '/tmp/a') == 'one\n'
        before = os.stat(f'{pool.state}/storage/{box}/upper/0/tmp/now').st_mtime_ns
        time.sleep(0.2)
        assert os.stat(f'{pool.state}/storage/{box}/upper/0/tmp/now').st_mtime_ns == before
        pool('kill', box, check=True)


@needs_btrfs
def test_differences_are_found_and_applied(pool, tmp_path):
    (tmp_path / 'a').write_text('one\n')
    (tmp_path / 'gone').write_text('one\n')
    box = pool.create('--dir', tmp_path)
    write(pool, box, f'{tmp_path}/a', 'two')
    pool('snapshot', box, '--name', 's1', check=True)
    pool('exec', box, '--', 'sh', '-c', f'echo three >{tmp_path}/b; rm {tmp_path}/gone', check=True)
    first, now = pool('diff', '-p', 's1', check=True).out, pool('diff', '-p', box, check=True).out
    assert '+two' in first and '+three' not in first
    assert '+two' in now and '+three' in now and 'gone' in now
    between = pool('diff', '-p', '--from', 's1', box, check=True).out
    assert '+two' not in between and '+three' in between
    pool('apply', box, check=True)
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {'a': 'two\n', 'b': 'three\n'}
    assert pool('apply', box, check=True).out == ''


def depth(cay, ref):
    with sqlite3.connect(f'file:{cay.state}/catalog.db?mode=ro', uri=True) as db:
        return db.execute('WITH RECURSIVE s(id) AS (SELECT top FROM sandboxes WHERE id = ? UNION ALL SELECT parent FROM s'
                          ' JOIN layers USING (id) WHERE parent IS NOT NULL) SELECT count(*) FROM s', (ref,)).fetchone()[0]


@needs_btrfs
def test_deep_stacks_are_merged_also_across_the_edge_of_the_pool(fresh_cay):
    """Some layers lie in the state directory, later ones in the storage."""
    cay, box = fresh_cay, fresh_cay.create()
    for i in range(5):
        cay('exec', box, '--', 'sh', '-c', f'echo {i} >/tmp/f{i}; echo {i} >/tmp/all', check=True)
        cay('snapshot', box, '--name', f's{i}', check=True)
    cay('setup', 'storage', '--size', '512M', check=True)
    fork = cay('fork', 's4', check=True).out.strip()
    for i in range(5, 30):
        cay('exec', fork, '--', 'sh', '-c', f'echo {i} >/tmp/f{i}; echo {i} >/tmp/all; rm /tmp/f{i - 1}', check=True)
        cay('snapshot', fork, '--name', f's{i}', check=True)
    wait_until(lambda: cay('tidy', check=True) and depth(cay, fork) < 24, what='a shallow stack')
    for i in (29, 20, 12):
        cay('rollback', fork, f's{i}', check=True)
        names = cay('exec', fork, '--', 'sh', '-c', 'cd /tmp; echo f*; cat all', check=True).out
        assert names.split() == [*sorted(['f0', 'f1', 'f2', 'f3', f'f{i}']), str(i)]
    for name in layers(cay):
        assert os.stat(f'{cay.state}/storage/layers/{name}').st_ino == 256, 'not a subvolume'
    cay('kill', '--all', '--yes', check=True)
    cay('snapshot', 'rm', *(f's{i}' for i in range(30)), check=True)
    wait_until(lambda: cay('gc', check=True) and not layers(cay), what='no layers')
    cay('setup', 'storage', '--remove', check=True)


@needs_btrfs
def test_forks_are_compared_with_what_they_began_with(pool):
    box = pool.create()
    write(pool, box, '/tmp/a', 'one')
    done = pool('explore', '--json', '--count', '2', box, '--', 'sh', '-c', 'seq $CAY_FORK >/tmp/own', check=True)
    forks = [json.loads(line) for line in done.out.splitlines()]
    assert [(f['files'], f['added_lines']) for f in forks] == [(1, 1), (1, 2)]
    assert subvolumes(pool) == sorted([box, *(f['id'] for f in forks)])


@needs_btrfs
def test_a_pool_that_cannot_be_mounted_is_said_and_the_rest_is_cleaned_up(fresh_cay):
    image = f'{fresh_cay.state}/storage.img'
    fresh_cay('setup', 'storage', '--size', '256M', check=True)
    assert in_use(image)
    subprocess.run(['umount', f'{fresh_cay.state}/storage'], check=True)
    wait_until(lambda: not in_use(image), what='nobody has it any more')
    for size in (0, 256 << 20):
        os.truncate(image, size)
    os.makedirs(f'{fresh_cay.state}/layers/new-aaaaaaaaaaaa', exist_ok=True)
    done = fresh_cay('gc')
    assert done.code != 0 and done.out.startswith('Removed')
    assert 'mount the storage' in done.err and 'cay setup storage --remove' in done.err
    assert not os.path.exists(f'{fresh_cay.state}/layers/new-aaaaaaaaaaaa')
    fresh_cay('setup', 'storage', '--remove', check=True)


def says_so(done, what):
    """A plain error with what to do about it, and no answer that could be taken for one."""
    return done.code != 0 and not done.out and what in done.err and 'hint: ' in done.err


@needs_btrfs
def test_without_its_file_nothing_is_shown_wrongly_and_nothing_is_lost(pool):
    """The file is away, for a while, from under a sandbox that runs."""
    box = pool.create()
    image = f'{pool.state}/storage.img'
    pool('exec', box, '--', 'sh', '-c', 'echo sealed > /tmp/sealed')
    snap = pool('snapshot', box, check=True).out.strip()
    pool('exec', box, '--', 'sh', '-c', 'echo fresh > /tmp/fresh')
    subprocess.run(['umount', '-l', f'{pool.state}/storage'], check=True)
    os.rename(image, image + '.away')
    try:
        for command in (('diff', box), ('diff', snap), ('fork', box), ('create',), ('run', '--', 'true')):
            assert says_so(pool(*command, timeout=120), 'storage.img'), command
        # It may have removed a layer of the host's files that are newer now, and says so first.
        done = pool('gc', timeout=120)
        assert done.code != 0 and 'storage.img' in done.err and 'hint: ' in done.err, done
        for command in (('snapshot', box), ('rollback', box), ('rollback', box, snap)):
            assert says_so(pool(*command, timeout=120), 'storage'), command
        assert pool('exec', box, '--', 'cat', '/tmp/sealed', '/tmp/fresh').out == 'sealed\nfresh\n'
    finally:
        os.rename(image + '.away', image)
    # The loop device is still there, with the file that it holds open.
    assert pool('diff', box, check=True, timeout=120).out == 'A  /tmp/fresh\nA  /tmp/sealed\n'
    assert pool('exec', box, '--', 'cat', '/tmp/sealed', '/tmp/fresh').out == 'sealed\nfresh\n'
    pool('rollback', box, check=True, timeout=120)
    assert pool('diff', box, check=True).out == 'A  /tmp/sealed\n'


@needs_btrfs
def test_its_directory_is_made_again(pool):
    box = pool.create()
    pool('exec', box, '--', 'touch', '/tmp/f')
    subprocess.run(['umount', '-l', f'{pool.state}/storage'], check=True)
    os.rmdir(f'{pool.state}/storage')
    assert pool('diff', box, check=True, timeout=120).out == 'A  /tmp/f\n'
    assert is_mounted(f'{pool.state}/storage')


@needs_btrfs
def test_a_pool_that_is_elsewhere_and_gone_is_named(pool):
    host, other = f'{pool.state}/storage/host', caylib.Cay()
    os.mkdir(host)
    try:
        other('setup', 'storage', host, check=True)
        box = other.create()
        other('exec', box, '--', 'touch', '/tmp/f')
        other('snapshot', box, check=True)
        os.rename(host, host + '.away')
        try:
            assert says_so(other('diff', box), host)
            # Even the link is gone: what lay in the storage cannot be told from what never was.
            os.unlink(f'{other.state}/storage')
            assert says_so(other('diff', box), 'is not there')
        finally:
            os.rename(host + '.away', host)
            os.path.lexists(f'{other.state}/storage') or os.symlink(host, f'{other.state}/storage')
        assert other('diff', box, check=True).out == 'A  /tmp/f\n'
        caylib.remove_all(other)
        other('setup', 'storage', '--remove', check=True)
    finally:
        other.remove()
        shutil.rmtree(host)


@needs_btrfs
def test_what_the_kernel_lacks_does_not_cost_the_pool(pool):
    """Without loop devices a whole file cannot be told from a broken one, and stays."""
    subprocess.run(['umount', f'{pool.state}/storage'], check=True)
    script = 'mount -t tmpfs none /dev && exec "$CAY" setup storage --remove'
    with subprocess.Popen(['unshare', '-m', 'sh', '-c', script], env={**pool.env, 'CAY': caylib.CAY},
                          stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as done:
        err = done.communicate()[1].decode()
    assert done.returncode != 0 and 'modprobe loop' in err
    assert os.path.exists(f'{pool.state}/storage.img')

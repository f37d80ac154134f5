# SPDX-License-Identifier: Apache-2.0
"""cay setup pool: a btrfs in a file, a subvolume per sandbox, and limits on disk that the kernel holds."""

import json
import os
import shutil
import subprocess

import caylib
import pytest
from caylib import wait_until

BTRFS = 'btrfs' in caylib.read_text('/proc/filesystems').split()
LOOP = os.path.exists('/dev/loop-control')
rootful = pytest.mark.skipif(not caylib.ROOTFUL, reason='a pool needs root')
needs = [
    rootful,
    pytest.mark.skipif(not BTRFS, reason='this kernel has no btrfs'),
    pytest.mark.skipif(not LOOP, reason='there are no loop devices here'),
    pytest.mark.skipif(not shutil.which('mkfs.btrfs', path='/usr/sbin:/sbin:/usr/bin'), reason='there is no mkfs.btrfs'),
]


def needs_btrfs(f):
    for mark in needs:
        f = mark(f)
    return f


def is_mounted(path):
    return any(line.split()[4] == path for line in caylib.read_text('/proc/self/mountinfo').splitlines())


def subvolumes(cay):
    return sorted(n for n in os.listdir(f'{cay.state}/pool') if not n.startswith('.'))


@pytest.fixture
def pool(fresh_cay):
    """A cay with a small pool."""
    fresh_cay('setup', 'pool', '--size', '256M', check=True)
    yield fresh_cay
    fresh_cay('kill', '--all', '--yes')
    fresh_cay('gc', '--lost')
    fresh_cay('setup', 'pool', '--remove', check=True)
    assert not is_mounted(f'{fresh_cay.state}/pool')
    assert not os.path.exists(f'{fresh_cay.state}/pool.img')


@pytest.mark.skipif(caylib.ROOTFUL, reason='as an ordinary user')
def test_without_root_it_is_refused(cay):
    done = cay('setup', 'pool')
    assert done.code == 4 and 'needs root' in done.err


def test_bad_use_is_explained(cay):
    assert 'there is: pool' in cay('setup', 'lake').err
    assert cay('setup').code == 2


@needs_btrfs
def test_setting_up_is_idempotent_and_told(pool):
    again = pool('setup', 'pool', check=True)
    assert again.out.startswith('There is a pool already')
    told = json.loads(pool('setup', 'pool', '--json', check=True).out)
    assert told['pool'] and told['image'] and told['quota'] and told['path'] == f'{pool.state}/pool.img'
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
    assert subvolumes(pool) == sorted([one, two])
    assert pool('exec', one, '--', 'dd', 'if=/dev/zero', 'of=/tmp/big', 'bs=64k', 'count=1000').code == 1
    pool('exec', two, '--', 'dd', 'if=/dev/zero', 'of=/tmp/big', 'bs=64k', 'count=500', check=True)
    pool('kill', one, two, plain, check=True)
    assert subvolumes(pool) == []


@needs_btrfs
def test_it_is_mounted_again_when_needed(pool):
    subprocess.run(['umount', f'{pool.state}/pool'], check=True)
    pool('run', '--disk', '16M', '--', 'true', check=True)
    assert is_mounted(f'{pool.state}/pool')


@needs_btrfs
def test_gc_removes_what_the_dead_have_left(pool):
    os.mkdir(f'{pool.state}/pool/keep')  # is no id
    box = pool.create('--disk', '16M')
    os.kill(pool.warden(box), 9)
    wait_until(lambda: pool.json('ls', '--all')[0]['state'] == 'lost', what='lost')
    assert subvolumes(pool) == sorted([box, 'keep'])
    pool('gc', '--lost', check=True)
    assert subvolumes(pool) == ['keep']
    # One of which there is nothing else at all.
    subprocess.run(['btrfs', '-q', 'subvolume', 'create', f'{pool.state}/pool/abandoned1'], check=True)
    pool('gc', check=True)
    assert subvolumes(pool) == ['keep']
    os.rmdir(f'{pool.state}/pool/keep')


@needs_btrfs
def test_what_is_in_it_has_no_snapshots_and_says_so(pool):
    box = pool.create('--disk', '16M')
    done = pool('snapshot', box)
    assert done.code != 0 and 'neither snapshots nor rollbacks' in done.err
    pool('exec', box, '--', 'true', check=True)


@needs_btrfs
def test_a_pool_in_use_stays(pool):
    pool.create('--disk', '16M')
    done = pool('setup', 'pool', '--remove')
    assert done.code == 1 and 'sandboxes in the pool' in done.err
    assert is_mounted(f'{pool.state}/pool')


@needs_btrfs
def test_a_directory_on_btrfs_will_do(pool, fresh_cay):
    """The pool of one state directory serves as the host's btrfs of another."""
    host, other = f'{pool.state}/pool/host', caylib.Cay()
    os.mkdir(host)
    try:
        done = other('setup', 'pool', host, check=True)
        assert host in done.out
        run = other('run', '--disk', '8M', '--', 'dd', 'if=/dev/zero', 'of=/tmp/big', 'bs=64k', 'count=1000')
        assert 'Disk quota exceeded' in run.err
        other('setup', 'pool', '--remove', check=True)
        assert os.listdir(host) == []
    finally:
        other.remove()
        shutil.rmtree(host)


@rootful
def test_what_is_no_empty_btrfs_is_refused(cay, tmp_path):
    assert 'is not on btrfs' in cay('setup', 'pool', tmp_path).err
    assert 'No such file' in cay('setup', 'pool', tmp_path / 'none').err
    assert 'at least 128 MiB' in cay('setup', 'pool', '--size', '1M').err
    assert not os.path.lexists(f'{cay.state}/pool')


@rootful
def test_a_missing_program_is_named(fresh_cay, tmp_path):
    """mkfs.btrfs is looked for in the system's directories only; hide them in a mount namespace."""
    script = 'mount -t tmpfs none /usr/sbin && exec "$CAY" setup pool --size 200M'
    with subprocess.Popen(['unshare', '-m', 'sh', '-c', script], env={**fresh_cay.env, 'CAY': caylib.CAY},
                          stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as done:
        err = done.communicate()[1].decode()
    assert 'btrfs-progs' in err
    assert not os.path.lexists(f'{fresh_cay.state}/pool.img') and not os.path.lexists(f'{fresh_cay.state}/pool')

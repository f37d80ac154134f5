# SPDX-License-Identifier: Apache-2.0
"""
A --dir is the host's directory until it is frozen: by the first snapshot, or by --copy. From then on nothing that
the host does shows in the sandbox, its snapshots and its forks.
"""

import os
import random
import re
import shutil
import signal
import subprocess

import caylib
import pytest
import treelib
from caylib import wait_until
from fingerprint import fingerprint
from statelib import check_invariants, end, rows, sh


@pytest.fixture
def project(tmp_path):
    """A directory of the host that every user may change."""
    path = tmp_path / 'project'
    path.mkdir()
    path.chmod(0o777)
    return path


def seen(cay, ref):
    """In every detail. A file that other frozen copies have too counts more names; that alone is no change."""
    return re.sub(r' twin of (?:.|\n)*?(?= \[)', '', fingerprint(cay, ref, '/w'))


def layers(cay, starts=False):
    return sorted(x for x in os.listdir(f'{cay.state}/layers') if x[0] != '.' and (not starts or x.startswith('0')))


def run_with_limit(cay, *args):
    """No file may grow beyond 2 MiB: the disk is full, without a disk."""
    script = "trap '' XFSZ; ulimit -f 4096; exec \"$@\""
    return subprocess.run(['sh', '-c', script, 'sh', caylib.CAY, *args], env=cay.env, capture_output=True, text=True,
                          check=False, timeout=60)


def test_whatever_the_host_does_a_snapshot_stays_as_it_was(place, project):
    cay = place
    seed = int(os.environ.get('CAY_SEED', random.randrange(1 << 30)))
    print('CAY_SEED', seed)
    dice = random.Random(seed)
    root = os.fsencode(project)
    known = []
    treelib.fill(root, dice)
    for _ in range(3):
        ref = cay.create('--dir', f'{project}:/w')
        sh(cay, ref, f'echo {dice.random()} > /w/inside; rm -rf /w/a')
        for _ in range(2):
            sh(cay, ref, f'echo {dice.random()} > /w/more')
            snap = cay('snapshot', ref, check=True).out.strip()
            known.append((ref, snap, seen(cay, ref)))
            for _ in range(dice.randrange(1, 20)):
                treelib.change(root, dice)
    for ref, snap, was in known:
        fork = cay('fork', snap, check=True).out.strip()
        assert seen(cay, fork) == was
        cay('kill', fork, check=True)
        cay('rollback', ref, snap, check=True)
        assert seen(cay, ref) == was
    check_invariants(cay)
    end(cay)
    assert layers(cay) == []


def test_the_frozen_copy_shows_what_the_directory_showed(fresh_cay, project, mode):
    cay = fresh_cay
    (project / 'text').write_text('one')
    os.link(project / 'text', project / 'twin')
    os.symlink('text', project / 'link')
    os.mkfifo(project / 'fifo')
    (project / 'closed').write_text('two')
    (project / 'closed').chmod(0)
    (project / 'sub').mkdir(mode=0o750)
    os.utime(project / 'sub', (1, 2))
    with open(project / 'sparse', 'wb') as f:
        f.truncate(1 << 20)
    if mode == 'rootful':
        os.chown(project / 'text', 1000, 1000)
        os.chown(project / 'sub', 4321, 70000)
        os.mknod(project / 'device', 0o600 | 0o020000, os.makedev(1, 3))
    ref = cay.create('--dir', f'{project}:/w')
    before = fingerprint(cay, ref, '/w')
    cay('snapshot', ref, check=True)
    assert fingerprint(cay, ref, '/w') == before
    end(cay)


def test_until_then_the_host_shows_through_and_copy_stops_it(fresh_cay, project):
    cay = fresh_cay
    (project / 'f').write_text('one')
    live, copied = cay.create('--dir', f'{project}:/w'), cay.create('--copy', '--dir', f'{project}:/w')
    (project / 'f').write_text('two')
    (project / 'new').write_text('')
    assert sh(cay, live, 'cat /w/f') == 'two'
    assert sh(cay, copied, 'cat /w/f; ls /w') == 'onef\n'
    assert cay('run', '--copy', '--dir', f'{project}:/w', '--', 'cat', '/w/f', check=True).out == 'two'
    assert 'no directory' in cay('create', '--copy').err
    end(cay)


def test_a_snapshot_outlives_the_directory(fresh_cay, project):
    cay = fresh_cay
    (project / 'f').write_text('one')
    ref = cay.create('--dir', f'{project}:/w')
    snap = cay('snapshot', ref, check=True).out.strip()
    cay('kill', ref, check=True)
    shutil.rmtree(project)
    fork = cay('fork', snap, check=True).out.strip()
    assert sh(cay, fork, 'cat /w/f') == 'one'
    again = cay('snapshot', fork, check=True).out.strip()
    assert sh(cay, cay('fork', again, check=True).out.strip(), 'cat /w/f') == 'one'
    end(cay)


def test_with_commands_running_the_snapshot_is_frozen_too(fresh_cay, project, mode):
    if mode == 'rootless':
        pytest.skip('needs a control group that can be frozen')
    cay = fresh_cay
    (project / 'f').write_text('one')
    ref = cay.create('--dir', f'{project}:/w')
    with cay.popen('exec', ref, '--', 'sh', '-c', 'echo > /w/mine; echo up; sleep 100') as running:
        running.read_until(b'up')
        snap = cay('snapshot', ref, check=True).out.strip()
        (project / 'f').write_text('two')
        fork = cay('fork', snap, check=True).out.strip()
        assert sh(cay, fork, 'cat /w/f; ls /w') == 'onef\nmine\n'
        cay('rollback', '--force', ref, snap, check=True)
        running.finish()
    assert sh(cay, ref, 'cat /w/f; ls /w') == 'onef\nmine\n'
    end(cay)


def test_an_unchanged_directory_is_not_copied_again(fresh_cay, project):
    cay = fresh_cay
    for i in range(20):
        (project / f'f{i}').write_text(str(i))
    boxes = [cay.create('--dir', f'{project}:/w') for _ in range(3)]
    cay('snapshot', boxes[0], check=True)
    cay('snapshot', boxes[1], check=True)
    (first,) = layers(cay, starts=True)
    (project / 'f7').write_text('changed')
    cay('snapshot', boxes[2], check=True)
    (second,) = set(layers(cay, starts=True)) - {first}
    numbers = {name: {f.name: f.inode() for d in os.scandir(f'{cay.state}/layers/{name}') if d.is_dir() for f in os.scandir(d)}
               for name in (first, second)}
    assert [f for f in numbers[first] if numbers[first][f] != numbers[second][f]] == ['f7']
    assert sh(cay, boxes[1], 'cat /w/f7') == '7' and sh(cay, boxes[2], 'cat /w/f7') == 'changed'
    # What somebody needs stays; the rest goes.
    cay('kill', boxes[0], check=True)
    cay('kill', boxes[1], check=True)
    for (snap,) in rows(cay, f"SELECT id FROM snapshots WHERE sandbox <> '{boxes[2]}'"):
        cay('snapshot', 'rm', snap, check=True)
    cay('gc', check=True)
    assert layers(cay, starts=True) == [second]
    assert sh(cay, boxes[2], 'cat /w/f7 /w/f8') == 'changed8'
    end(cay)
    assert layers(cay) == [] and os.listdir(f'{cay.state}/starts') == []


def test_a_later_dir_of_a_snapshot_is_frozen_too(fresh_cay, project, tmp_path):
    cay = fresh_cay
    other = tmp_path / 'other'
    other.mkdir()
    other.chmod(0o777)
    (project / 'f').write_text('one')
    (other / 'g').write_text('one')
    first = cay.create('--dir', f'{project}:/w')
    snap = cay('snapshot', first, check=True).out.strip()
    (project / 'f').write_text('two')
    ref = cay.create('--template', f'snap:{snap}', '--dir', f'{other}:/x')
    snap = cay('snapshot', ref, check=True).out.strip()
    (other / 'g').write_text('two')
    fork = cay('fork', snap, check=True).out.strip()
    assert sh(cay, fork, 'cat /w/f /x/g') == 'oneone'
    end(cay)


def test_a_full_disk_leaves_nothing_and_loses_nothing(fresh_cay, project):
    cay = fresh_cay
    (project / 'big').write_bytes(bytes(range(256)) * (4 << 12))
    ref = cay.create('--dir', f'{project}:/w')
    sh(cay, ref, 'echo mine > /w/f')
    failed = run_with_limit(cay, 'snapshot', ref)
    assert failed.returncode != 0 and f"freeze '{project}/big': File too large" in failed.stderr, failed
    assert run_with_limit(cay, 'create', '--copy', '--dir', f'{project}:/w').returncode != 0
    assert layers(cay) == [] and cay.json('snapshots') == [] and len(cay.json('ls')) == 1
    assert sh(cay, ref, 'cat /w/f') == 'mine\n'
    snap = cay('snapshot', ref, check=True).out.strip()
    os.truncate(project / 'big', 0)
    fork = cay('fork', snap, check=True).out.strip()
    assert sh(cay, fork, 'wc -c < /w/big; cat /w/f') == f'{4 << 20}\nmine\n'
    end(cay)


def test_who_is_killed_in_the_middle_leaves_nothing(fresh_cay, project):
    cay = fresh_cay
    for i in range(3000):
        (project / str(i)).write_text(str(i))
    ref = cay.create('--dir', f'{project}:/w')
    with cay.popen('snapshot', ref) as running:
        wait_until(lambda: any(x.startswith('new-0') for x in layers(cay)), what='a copy')
        # Meanwhile the sandbox works: whoever copies is not its warden.
        running.send_signal(signal.SIGSTOP)
        assert sh(cay, ref, 'cat /w/7') == '7'
        running.kill()
        running.communicate()
    wait_until(lambda: cay('gc', check=True) and layers(cay) == [], what='nothing')
    assert rows(cay, 'SELECT * FROM snapshots') == []
    snap = cay('snapshot', ref, check=True).out.strip()
    shutil.rmtree(project)
    assert sh(cay, cay('fork', snap, check=True).out.strip(), 'cat /w/2999') == '2999'
    end(cay)


def test_gc_takes_nothing_from_who_is_copying(fresh_cay, project):
    cay = fresh_cay
    for i in range(3000):
        (project / str(i)).write_text(str(i))
    ref = cay.create('--dir', f'{project}:/w')
    with cay.popen('snapshot', ref) as running:
        while running.poll() is None:
            cay('gc', check=True)
        assert running.returncode == 0, running.communicate()
        running.communicate()
    check_invariants(cay)
    assert sh(cay, ref, 'ls /w | wc -l') == '3000\n'
    end(cay)


def test_apply_and_patches_never_undo_what_the_host_did(fresh_cay, project):
    """Not even where the host's edit is in the frozen copy, but not in what the sandbox had changed before."""
    cay = fresh_cay
    lines = [f'line {i}\n' for i in range(20)]
    for name in ('early', 'late'):
        (project / name).write_text(''.join(lines))
        (project / name).chmod(0o666)
    ref = cay.create('--dir', f'{project}:/w')
    sh(cay, ref, "sed -i 's/line 1$/line one/' /w/early")
    (project / 'early').write_text(''.join(lines).replace('line 18', 'the host was here'))
    cay('snapshot', ref, check=True)
    sh(cay, ref, "sed -i 's/line 1$/line one/' /w/late")
    (project / 'late').write_text(''.join(lines).replace('line 18', 'the host was here'))
    patch = cay('diff', '--patch', ref).out
    assert '+line one' in patch and '-the host was here' not in patch
    assert cay('apply', ref).code != 0
    # Whether a copy for the merge was kept of a file that both changed at once is up to chance.
    cay('apply', '--merge', ref)
    for name in ('early', 'late'):
        assert 'the host was here' in (project / name).read_text(), name
    end(cay)


def test_after_a_snapshot_changes_are_applied_as_before(fresh_cay, project):
    cay = fresh_cay
    (project / 'changed').write_text('one')
    (project / 'removed').write_text('one')
    (project / 'moved').mkdir()
    (project / 'moved' / 'f').write_text('one')
    for path in (project, project / 'moved'):
        path.chmod(0o777)
    ref = cay.create('--dir', f'{project}:/w')
    sh(cay, ref, 'echo before > /w/before')
    cay('snapshot', ref, check=True)
    sh(cay, ref, 'cd /w; echo two > changed; rm removed; echo two > moved/f; echo after > after')
    cay('apply', ref, check=True)
    assert (project / 'changed').read_text() == 'two\n' and (project / 'moved' / 'f').read_text() == 'two\n'
    assert sorted(os.listdir(project)) == ['after', 'before', 'changed', 'moved']
    cay('apply', ref, check=True)
    assert (project / 'after').read_text() == 'after\n'
    end(cay)


def test_who_forks_what_was_never_frozen_is_told(fresh_cay, project):
    """A sandbox that died before its first snapshot left its changes, above a directory that is not its own."""
    cay = fresh_cay
    ref = cay.create('--dir', f'{project}:/w')
    sh(cay, ref, 'echo mine > /w/f')
    os.kill(cay.warden(ref), signal.SIGKILL)
    wait_until(lambda: cay('gc', check=True) and cay.json('ls', '--all')[0]['state'] == 'lost', what='lost')
    (lost,) = [s['id'] for s in cay.json('snapshots', ref) if s['kind'] == 'lost']
    forked = cay('fork', lost, check=True)
    assert f"'{project}' was never frozen" in forked.err
    fork = forked.out.strip()
    # Its own first snapshot is frozen, below what the lost one had changed.
    (project / 'g').write_text('one')
    snap = cay('snapshot', fork, check=True).out.strip()
    (project / 'g').write_text('two')
    again = cay('fork', snap, check=True)
    assert again.err == '' and sh(cay, again.out.strip(), 'cat /w/f /w/g') == 'mine\none'
    assert 'never frozen' in cay('run', '--template', f'snap:{lost}', '--', 'true', check=True).err
    cay('gc', '--lost', check=True)
    end(cay)

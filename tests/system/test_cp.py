# SPDX-License-Identifier: Apache-2.0
"""cay cp: both ways, files, trees and streams; what a hostile tree cannot do."""

import os
import signal
import stat

import pytest

import caylib


def tree(root):
    """path -> (type and mode, contents or target)"""
    found = {}
    for folder, names, files in os.walk(root):
        for name in names + files:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            data = os.readlink(path) if stat.S_ISLNK(st.st_mode) else ''
            if stat.S_ISREG(st.st_mode):
                with open(path, 'rb') as f:
                    data = f.read()
            mode = 0 if stat.S_ISLNK(st.st_mode) else stat.S_IMODE(st.st_mode)
            found[os.path.relpath(path, root)] = (stat.S_IFMT(st.st_mode), mode, data)
    return found


@pytest.fixture
def source(tmp_path):
    root = tmp_path / 'source'
    (root / 'sub/deep').mkdir(parents=True)
    (root / 'empty').mkdir()
    (root / 'a').write_bytes(bytes(range(256)))
    (root / 'sub/run').write_text('#!/bin/sh\necho ran\n')
    (root / 'sub/deep/none').write_text('')
    (root / 'link').symlink_to('sub/run')
    (root / 'dangling').symlink_to('/no/such')
    (root / 'ü\nnew line').write_text('odd')
    os.chmod(root / 'sub/run', 0o755)
    os.chmod(root / 'a', 0o640)
    os.chmod(root / 'empty', 0o700)
    os.link(root / 'a', root / 'hard')
    return root


def test_a_file_goes_in_and_comes_back_unchanged(cay, box, source, tmp_path):
    cay('cp', source / 'a', f'{box}:/tmp/a', check=True)
    assert cay('exec', box, '--', 'stat', '-c', '%a %s %U', '/tmp/a').out == '640 256 user\n'
    cay('cp', f'{box}:/tmp/a', tmp_path / 'back', check=True)
    assert (tmp_path / 'back').read_bytes() == bytes(range(256))
    assert stat.S_IMODE(os.stat(tmp_path / 'back').st_mode) == 0o640


def test_a_tree_goes_in_and_comes_back_unchanged(cay, box, source, tmp_path):
    cay('cp', source, f'{box}:/tmp/t', check=True)
    assert cay('exec', box, '--', '/tmp/t/link').out == 'ran\n'
    cay('cp', f'{box}:/tmp/t', tmp_path / 'back', check=True)
    assert tree(tmp_path / 'back') == tree(source)


def test_the_rules_for_the_destination(cay, box, source, tmp_path):
    run = lambda *a: cay('exec', box, '--', *a).out.split()
    cay('exec', box, '--', 'mkdir', '/tmp/d', check=True)
    cay('cp', source, f'{box}:/tmp/d', check=True)  # an existing directory receives it
    assert 'source' in run('ls', '/tmp/d')
    cay('cp', f'{source}/.', f'{box}:/tmp/e', check=True)  # what is in it
    assert 'sub' in run('ls', '/tmp/e')
    cay('cp', source / 'a', f'{box}:/tmp/d/', check=True)
    assert 'a' in run('ls', '/tmp/d')
    assert cay('cp', source / 'a', f'{box}:/tmp/none/').code != 0  # must be a directory
    cay('cp', source / 'a', f'{box}:rel', check=True)  # from the working directory
    assert run('ls', '/home/user') == ['rel']
    os.mkdir(tmp_path / 'out')
    cay('cp', f'{box}:/tmp/d/source', tmp_path / 'out', check=True)
    assert tree(tmp_path / 'out/source') == tree(source)
    cay('cp', f'{box}:/tmp/d/a', tmp_path / 'out', check=True)
    assert (tmp_path / 'out/a').read_bytes() == bytes(range(256))
    cay('cp', f'{box}:/tmp/d/a', '.', cwd=tmp_path, check=True)
    assert (tmp_path / 'a').exists()


def test_a_file_is_replaced_but_never_a_directory_by_a_file(cay, box, source, tmp_path):
    cay('exec', box, '--', 'sh', '-c', 'echo old > /tmp/f; mkdir -p /tmp/g/x', check=True)
    cay('cp', source / 'a', f'{box}:/tmp/f', check=True)
    assert cay('exec', box, '--', 'stat', '-c', '%s', '/tmp/f').out == '256\n'
    (tmp_path / 'x').write_text('file')
    r = cay('cp', tmp_path / 'x', f'{box}:/tmp/g')
    assert r.code != 0 and cay('exec', box, '--', 'test', '-d', '/tmp/g/x').code == 0, r
    r = cay('cp', source, f'{box}:/tmp/f')
    assert r.code != 0 and "'f'" in r.err, r


def test_stdin_and_stdout_carry_one_file(cay, box):
    data = os.urandom(3 << 20)
    cay('cp', '-', f'{box}:/tmp/s', input=data, check=True)
    assert cay('cp', f'{box}:/tmp/s', '-', check=True).stdout == data
    cay('cp', '-', f'{box}:/tmp/zero', input=b'', check=True)
    assert cay('cp', f'{box}:/tmp/zero', '-', check=True).stdout == b''


def test_between_sandboxes(cay, box, source, tmp_path):
    other = cay.create()
    try:
        cay('cp', source, f'{box}:/tmp/t', check=True)
        cay('cp', f'{box}:/tmp/t', f'{other}:/tmp/u', check=True)
        cay('cp', f'{box}:/tmp/t/a', f'{other}:/tmp/f', check=True)
        assert cay('cp', f'{other}:/tmp/f', '-').stdout == bytes(range(256))
        cay('cp', f'{other}:/tmp/u', tmp_path / 'back', check=True)
        assert tree(tmp_path / 'back') == tree(source)
    finally:
        cay('kill', other, check=True)


@pytest.mark.parametrize('args, part', [
    (['{box}:/no/such', '{tmp}/x'], '/no/such'),
    (['{tmp}/none', '{box}:/tmp/x'], 'none'),
    (['{box}:/tmp', '-'], '/tmp'),
    (['{src}', '{box}:/no/such/dir/x'], '/no/such/dir'),
    (['{src}/a', '{box}:/no/such/dir/x'], '/no/such/dir'),
    (['{box}:/etc/passwd', '{tmp}/no/such/x'], 'no/such'),
    (['{src}/a', '{box}:/root/x'], '/root'),
    (['{src}/a', '{box}:/proc/sys/x'], "'x'"),
    (['-', '{box}:/tmp'], '/tmp'),
    (['nope:/x', '{tmp}/x'], 'nope'),
    (['{src}', 'nope:/x'], 'nope'),
    (['{src}/a', '{tmp}/b'], 'sandbox'),
    (['{src}/a'], ''),
    (['-', '-'], ''),
])
def test_mistakes_are_said_with_one_line(cay, box, source, tmp_path, args, part):
    args = [a.format(box=box, src=source, tmp=tmp_path) for a in args]
    if part == '/root' and not caylib.ROOTFUL:
        pytest.skip('in a rootless sandbox /root belongs to the one user')
    before = set(os.listdir(tmp_path))
    r = cay('cp', *args, input=b'x')
    assert r.code in (1, 2, 4, 5) and r.stdout == b'', r
    assert r.err.startswith('cay') and part in r.err, r
    assert set(os.listdir(tmp_path)) == before


def test_a_file_that_cannot_be_read_inside_is_said(cay, box, tmp_path):
    cay('exec', box, '--', 'sh', '-c', 'mkdir /tmp/t; echo x > /tmp/t/ok; echo x > /tmp/t/no; chmod 0 /tmp/t/no', check=True)
    r = cay('cp', f'{box}:/tmp/t/no', tmp_path / 'no')
    assert r.code != 0 and 'ermission' in r.err and not (tmp_path / 'no').exists(), r
    r = cay('cp', f'{box}:/tmp/t', tmp_path / 't')
    assert r.code != 0 and '/no' in r.err, r


def test_five_thousand_small_files(cay, box, tmp_path):
    root = tmp_path / 'many'
    for i in range(50):
        (root / str(i)).mkdir(parents=True)
        for j in range(100):
            (root / str(i) / str(j)).write_text(f'{i} {j}')
    cay('cp', root, f'{box}:/tmp/many', check=True)
    assert cay('exec', box, '--', 'sh', '-c', 'find /tmp/many -type f | wc -l').out == '5000\n'
    cay('cp', f'{box}:/tmp/many', tmp_path / 'back', check=True)
    assert tree(tmp_path / 'back') == tree(root)


def test_a_hostile_tree_never_writes_outside(cay, box, tmp_path):
    outside = tmp_path / 'outside'
    outside.mkdir()
    (outside / 'victim').write_text('safe')
    os.chmod(tmp_path, 0o755)
    script = f'''
import os
os.makedirs('/tmp/t/d'); os.chdir('/tmp/t')
os.symlink('../../../../../../../../etc', 'up'); os.symlink('{outside}', 'abs'); os.symlink('../outside', 'rel')
os.symlink('{outside}/victim', 'victim'); os.symlink('..', 'd/parent')
open('new\\nline', 'w').write('x'); open('-rf', 'w').write('x'); open(b'\\xff\\xfe', 'w').write('x')
os.mkfifo('fifo')
'''
    cay('exec', box, '--', 'python3', '-c', script, check=True)
    r = cay('cp', f'{box}:/tmp/t', tmp_path / 'in')
    assert os.listdir(outside) == ['victim'] and (outside / 'victim').read_text() == 'safe'
    found = os.listdir(os.fsencode(tmp_path / 'in'))
    assert {b'new\nline', b'-rf', b'\xff\xfe', b'd'} <= set(found), r
    for name in ('up', 'abs', 'rel', 'victim'):
        path = tmp_path / 'in' / name
        assert not path.exists() or os.path.islink(path)
    # again over what the first copy made: its links must not be followed
    cay('exec', box, '--', 'sh', '-c', 'cd /tmp/t; for n in up abs rel; do rm $n; mkdir $n; echo evil > $n/victim; echo evil > $n/evil; done; rm victim; echo evil > victim', check=True)
    cay('cp', f'{box}:/tmp/t/.', tmp_path / 'in')
    assert os.listdir(outside) == ['victim'] and (outside / 'victim').read_text() == 'safe'
    assert not os.path.exists('/etc/evil')


def test_a_link_inside_does_not_lead_the_copy_to_the_host(cay, box, source, tmp_path):
    cay('exec', box, '--', 'sh', '-c', f'ln -s {tmp_path} /tmp/l; ln -s /etc/passwd /tmp/p', check=True)
    before = tree(tmp_path)
    cay('cp', source / 'a', f'{box}:/tmp/l')
    assert tree(tmp_path) == before
    r = cay('cp', f'{box}:/tmp/p', '-')
    assert r.stdout == cay('exec', box, '--', 'cat', '/etc/passwd').stdout or r.code != 0, r


def test_a_reader_that_goes_away_ends_the_copy(cay, box):
    cay('exec', box, '--', 'sh', '-c', 'head -c 50M /dev/zero > /tmp/big', check=True)
    with caylib.shell(cay, f'"$CAY" cp {box}:/tmp/big - | head -c 10 | wc -c') as p:
        r = p.finish()
        assert r.out == '10\n', r


def test_json_counts_what_was_copied(cay, box, source):
    found = cay.json('cp', source, f'{box}:/tmp/t')
    assert len(found) == 1 and found[0].get('files', 0) >= 4, found


def test_the_user_decides_what_may_be_written(cay, box, source):
    r = cay('cp', source / 'a', f'{box}:/etc/x')
    assert (r.code != 0) == caylib.ROOTFUL, r
    if caylib.ROOTFUL:
        cay('cp', '--user', 'root', source / 'a', f'{box}:/etc/x', check=True)
        assert cay('exec', box, '--', 'stat', '-c', '%U', '/etc/x').out == 'root\n'


def test_holes_stay_holes_both_ways(cay, box, tmp_path):
    with open(tmp_path / 'sparse', 'wb') as f:
        f.write(b'begin')
        f.seek(100 << 20)
        f.write(b'middle')
        f.truncate(200 << 20)
    with open(tmp_path / 'sparse', 'rb') as f:
        before = f.read()
    cay('cp', tmp_path / 'sparse', f'{box}:/tmp/sparse', check=True)
    size, blocks = map(int, cay('exec', box, '--', 'stat', '-c', '%s %b', '/tmp/sparse').out.split())
    assert size == 200 << 20 and blocks * 512 < 2 << 20
    cay('cp', '-', f'{box}:/tmp/stream', input=before, check=True)
    assert int(cay('exec', box, '--', 'stat', '-c', '%b', '/tmp/stream').out) * 512 < 2 << 20
    for name in ('sparse', 'stream'):
        cay('cp', f'{box}:/tmp/{name}', tmp_path / 'back', check=True)
        assert (tmp_path / 'back').stat().st_blocks * 512 < 2 << 20
        assert (tmp_path / 'back').read_bytes() == before


def test_max_size_stops_a_copy_and_nothing_of_the_file_is_left(cay, box, tmp_path):
    inside = lambda: cay('exec', box, '--', 'ls', '-A', '/tmp').out.split()
    (tmp_path / 'big').write_bytes(b'x' * (3 << 20))
    cay('exec', box, '--', 'sh', '-c', 'mkdir /tmp/t; head -c 3M /dev/zero > /tmp/t/big; echo s > /tmp/t/small', check=True)
    before, host = inside(), set(os.listdir(tmp_path))
    for args, data in ((['cp', tmp_path / 'big', f'{box}:/tmp/in'], None), (['cp', '-', f'{box}:/tmp/in'], b'x' * (3 << 20)),
                       (['cp', f'{box}:/tmp/t/big', tmp_path / 'out'], None), (['cp', f'{box}:/tmp/t/big', '-'], None),
                       (['cp', f'{box}:/tmp/t/big', f'{box}:/tmp/in'], None)):
        r = cay(*args, '--max-size', '1M', input=data)
        assert r.code != 0 and '--max-size' in r.err and len(r.stdout) <= 1 << 20, r
        caylib.wait_until(lambda: inside() == before)
        assert set(os.listdir(tmp_path)) == host
    cay('cp', f'{box}:/tmp/t', tmp_path / 'all', '--max-size', '4M', check=True)
    assert cay('cp', f'{box}:/tmp/t', tmp_path / 'most', '--max-size', '3M').code != 0
    assert (tmp_path / 'all/small').exists() and not cay('cp', f'{box}:/tmp/t', tmp_path / 'x', '--max-size', 'much').code == 0


@pytest.mark.parametrize('sig', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize('way', ['in', 'stream', 'out'])
def test_a_signal_leaves_no_part_of_a_file(cay, box, tmp_path, way, sig):
    """The copy stands in the middle of a file: its source is a pipe, or grows slower than it is read."""
    inside = lambda: cay('exec', box, '--', 'ls', '-A', '/tmp').out.split()
    running = lambda: cay.json('show', box)[0]['calls_running']
    (tmp_path / 'out').mkdir()
    if way == 'out':
        args, watched = [f'{box}:/tmp/endless', tmp_path / 'out/copy'], lambda: os.listdir(tmp_path / 'out')
        cay('exec', box, '--', 'truncate', '-s', '100G', '/tmp/endless', check=True)
    elif way == 'in':
        args, watched = [tmp_path / 'endless', f'{box}:/tmp/copy'], inside
        with open(tmp_path / 'endless', 'wb') as f:
            f.truncate(100 << 30)
    else:
        args, watched = ['-', f'{box}:/tmp/copy'], inside
    before = watched()
    read, write = os.pipe()
    with open(read, 'rb') as stdin, cay.popen('cp', *args, stdin=stdin, start_new_session=True) as p:
        os.write(write, b'x' * 60000)
        caylib.wait_until(lambda: running() == 1, what='the call')
        (os.kill if sig == signal.SIGKILL else os.killpg)(p.pid, sig)
        p.wait(timeout=20)
    os.close(write)
    caylib.wait_until(lambda: running() == 0, what='the end of the call')
    caylib.wait_until(lambda: watched() == before, what='no part of the file')

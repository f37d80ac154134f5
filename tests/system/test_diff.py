# SPDX-License-Identifier: Apache-2.0
"""cay diff: what it finds, and that git takes its patches."""

import os
import random
import shutil
import stat
import subprocess
import time

import pytest

import caylib
import treelib

rootful = pytest.mark.skipif(not caylib.ROOTFUL, reason='needs root: a rootless sandbox has one uid')
TREELIB = treelib.__file__


@pytest.fixture
def project(tmp_path):
    os.chmod(tmp_path, 0o755)
    root = tmp_path / 'project'
    root.mkdir()
    return root


def letters(result):
    return {line.split('  ', 1)[1]: line[0] for line in result.out.splitlines()}


def git_apply(root, patch, *args):
    env = {'PATH': os.environ['PATH'], 'GIT_CEILING_DIRECTORIES': '/', 'HOME': '/nonexistent', 'GIT_CONFIG_NOSYSTEM': '1'}
    return subprocess.run(['git', 'apply', *args], cwd=root, input=patch, env=env, capture_output=True, check=False)


def test_a_new_sandbox_has_no_changes(cay, sandbox, project):
    (project / 'a').write_text('a\n')
    ref = sandbox(project)
    assert cay('diff', ref, check=True).out == ''
    assert cay('diff', ref, '-q').code == 0


def test_every_kind_of_change_is_told(cay, sandbox, project):
    for name in ('edit', 'gone', 'mode', 'type', 'move'):
        (project / name).write_text(name + '\n' * 30)
    (project / 'link').symlink_to('edit')
    (project / 'full').mkdir()
    (project / 'full/x').write_text('x\n')
    ref = sandbox(project)
    cay('exec', ref, '--', 'sh', '-c', 'echo >> edit; rm gone; chmod 755 mode; rm type; mkdir type; mv move moved; ln -sfn other link; '
        'touch new; rm -r full; mkdir full; echo y > full/y; mkfifo pipe', check=True)
    root = str(project)
    assert letters(cay('diff', ref, root, check=True)) == {
        f'{root}/edit': 'M', f'{root}/gone': 'D', f'{root}/mode  mode 0644 -> 0755': 'm', f'{root}/type/': 'T', f'{root}/move -> {root}/moved': 'R',
        f'{root}/link': 'M', f'{root}/new': 'A', f'{root}/full/x': 'D', f'{root}/full/y': 'A', f'{root}/pipe': 'A'}
    assert cay('diff', ref, '-q').code == 1
    found = {c['path'][len(root) + 1:]: c for c in cay.json('diff', ref, '--stat')}
    assert found['edit']['added_lines'] == 1 and found['edit']['kind'] == 'changed' and found['edit']['content']
    assert found['moved']['from'] == f'{root}/move' and found['link']['new']['type'] == 'symlink'
    assert found['mode']['mode'] and not found['mode']['content'] and found['mode']['new']['mode'] == '0755'
    assert found['gone']['new'] is None and found['pipe']['new']['type'] == 'fifo'


def test_paths_choose(cay, sandbox, project):
    (project / 'src').mkdir()
    (project / 'src/a').write_text('a\n')
    ref = sandbox(project)
    cay('exec', ref, '--', 'sh', '-c', 'echo >> src/a; echo > other; echo > /tmp/outside; echo > srcx', check=True)
    assert list(letters(cay('diff', ref, 'src', check=True))) == [f'{project}/src/a']
    assert list(letters(cay('diff', ref, '/tmp/outside', check=True))) == ['/tmp/outside']
    assert b'outside' not in cay('diff', ref, '--patch', check=True).stdout
    assert b'b/tmp/outside' in cay('diff', ref, '--patch', '/', check=True).stdout
    assert cay('diff', ref, '--', '../x').code == 2


def test_a_call_chooses(cay, sandbox, project):
    ref = sandbox(project)
    cay('exec', ref, '--', 'touch', 'one', check=True)
    cay('exec', ref, '--call-id', 'second', '--', 'touch', 'two', check=True)
    assert list(letters(cay('diff', ref, '--call', '1', check=True))) == [f'{project}/one']
    assert list(letters(cay('diff', ref, '--call', 'second', check=True))) == [f'{project}/two']
    assert cay('diff', ref, '--call', '77').code == 5


def test_two_sandboxes(cay, sandbox, project):
    (project / 'same').write_text('same\n')
    one, two = sandbox(project), sandbox(project)
    cay('exec', one, '--', 'sh', '-c', 'echo 1 > file; echo a > same; echo only > first', check=True)
    cay('exec', two, '--', 'sh', '-c', 'echo 2 > file; echo a > same', check=True)
    assert letters(cay('diff', one, two, check=True)) == {f'{project}/file': 'M', f'{project}/first': 'D'}


def test_what_is_neither_a_sandbox_nor_a_path_is_an_error(cay, sandbox, project):
    """Else who has mistyped a name would be told that there is no difference."""
    (project / 'name').write_text('x')
    ref = sandbox(project)
    r = cay('diff', ref, 'no-such-one')
    assert r.code == 5 and r.out == '' and 'neither a sandbox, nor a snapshot, nor a path' in r.err
    assert cay('diff', ref, '--', 'no-such-one', check=True).out == ''
    assert cay('diff', ref, 'name', check=True).out == ''
    cay('exec', ref, '--', 'rm', 'name', check=True)
    assert cay('diff', ref, 'name', check=True).out.startswith('D')
    r = cay('diff', ref, '--from', 'no-such-one')
    assert r.code == 5 and "no sandbox or snapshot 'no-such-one'" in r.err


def test_a_directory_that_only_one_has_is_named(cay, sandbox, project):
    ref, bare = sandbox(project), cay.create()
    for a, b in ((ref, bare), (bare, ref)):
        r = cay('diff', a, b, check=True)
        assert f"'{project}' is in one of the two only" in r.err
    cay('kill', bare, check=True)


def test_a_lost_sandbox_still_tells(cay, sandbox, project):
    ref = sandbox(project)
    cay('exec', ref, '--', 'touch', 'left', check=True)
    pid = cay.warden(ref)
    os.kill(pid, 9)
    caylib.wait_until(lambda: pid not in caylib.processes() or caylib.processes()[pid][1] == 'Z')
    assert list(letters(cay('diff', ref, check=True))) == [f'{project}/left']


@rootful
def test_owners_and_attributes_are_metadata(cay, sandbox, project):
    (project / 'a').write_text('a\n')
    (project / 'b').write_text('b\n')
    ref = sandbox(project)
    cay('exec', '-u', 'root', ref, '--', 'sh', '-c', 'chown 0:0 a; python3 -c "import os; os.setxattr(\'b\', \'user.note\', b\'x\')"', check=True)
    found = {c['path']: c for c in cay.json('diff', ref)}
    assert all(c['metadata'] and not c['content'] for c in found.values()) and len(found) == 2
    # what looks like a mark of the overlay is none where a sandbox can write it
    cay('exec', ref, '--', 'python3', '-c', 'import os; os.mkdir("d"); os.setxattr("d", "user.overlay.opaque", b"y")', check=True)
    assert 'deleted' not in {c['kind'] for c in cay.json('diff', ref)}


def round_trip(cay, ref, project, copy, out):
    patch = cay('diff', ref, '--patch', check=True).stdout
    cay('cp', '-q', f'{ref}:{project}', out, check=True)
    want = treelib.content_of(out)
    done = git_apply(copy, patch) if patch else None
    assert not done or done.returncode == 0, (done.stderr, patch[:3000])
    assert treelib.content_of(copy) == want
    return patch


@pytest.mark.parametrize('seed', range(12))
def test_git_applies_patches_of_random_changes(cay, sandbox, tmp_path, project, seed):
    treelib.fill(os.fsencode(project), random.Random(seed))
    copy = tmp_path / 'copy'
    shutil.copytree(project, copy, symlinks=True)
    before = treelib.content_of(project)
    ref = sandbox(project, '--ro', f'{TREELIB}:/treelib.py')
    cay('exec', ref, '--', 'python3', '/treelib.py', project, seed, 15, check=True)
    patch = round_trip(cay, ref, project, copy, tmp_path / 'out')
    if patch:
        assert git_apply(copy, patch, '-R').returncode == 0
    assert treelib.content_of(copy) == before
    assert treelib.content_of(project) == before


def test_git_applies_the_awkward_ones(cay, sandbox, tmp_path, project):
    (project / 'noeol').write_bytes(b'one\ntwo')
    (project / 'crlf').write_bytes(b'a\r\nb\r\n')
    (project / 'empty').write_bytes(b'')
    (project / 'filled').write_bytes(b'x\n')
    (project / 'bin').write_bytes(bytes(range(256)) * 5000)
    (project / 'file').write_bytes(b'becomes a directory\n')
    (project / 'dir').mkdir()
    (project / 'dir/in').write_bytes(b'directory becomes a file\n')
    copy = tmp_path / 'copy'
    shutil.copytree(project, copy, symlinks=True)
    ref = sandbox(project)
    cay('exec', ref, '--', 'sh', '-c', r'''
        printf 'one\ntwo\n' > noeol; printf 'a\r\nc\r\n' > crlf; printf x > empty; : > filled; head -c 100000 /dev/urandom > bin
        rm file; mkdir file; echo in > file/in; rm -r dir; echo file > dir; printf '\000' > nul; seq 100000 > long; : > "$(printf 'e\tmpty ')" ''', check=True)
    round_trip(cay, ref, project, copy, tmp_path / 'out')


def test_hostile_files_neither_hold_us_up_nor_lead_out(cay, sandbox, project):
    (project / 'x').write_text('x\n')
    ref = sandbox(project)
    cay('exec', ref, '--', 'sh', '-c', 'mkfifo fifo; rm x; mkfifo x; ln -s /etc/shadow link; ln -s / root; truncate -s 1T sparse; '
        r'touch "$(printf "\033]0;owned\007\033[31m")"; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")"', check=True)
    result = cay('diff', ref, '--stat', check=True, timeout=20)
    assert b'\033' not in result.stdout
    assert f'{project}/sparse' in result.out and f'{project}/root/' not in result.out


def test_a_deep_tree(cay, sandbox, project):
    ref = sandbox(project)
    cay('exec', ref, '--', 'python3', '-c', '''
import os
for _ in range(60):
    os.mkdir('d' * 200)
    os.chdir('d' * 200)
open('deep', 'w').close()''', check=True)
    found = cay('diff', ref, check=True).out.splitlines()
    assert len(found) == 61 and found[-1].endswith('/deep')


@pytest.mark.slow
def test_a_hundred_thousand_files(cay, sandbox, project):
    ref = sandbox(project)
    cay('exec', ref, '--', 'python3', '-c', '''
import os
for d in range(100):
    os.mkdir(f'd{d}')
    for i in range(1000):
        with open(f'd{d}/{i}', 'w') as f: f.write(f'{d} {i}\\n')''', check=True, timeout=120)
    start = time.monotonic()
    out = cay('diff', ref, check=True, timeout=120).out
    assert len(out.splitlines()) == 100100
    assert time.monotonic() - start < 30 * caylib.SLOWER


def test_snapshots(cay, sandbox, project):
    (project / 'a').write_text('a\n')
    ref = sandbox(project)
    cay('exec', ref, '--', 'sh', '-c', 'echo 1 >> a; echo n > new; mkdir d; echo x > d/x', check=True)
    cay('snapshot', ref, '--name', 'diff-one', check=True)
    try:
        cay('exec', ref, '--', 'sh', '-c', 'echo 2 >> a; rm new; rm -r d; mkdir d; echo y > d/y; echo m > more', check=True)
        root = str(project)
        found = {c['path'][len(root) + 1:]: c['kind'] for c in cay.json('diff', ref, '--from', 'diff-one', '--no-renames')}
        assert found == {'a': 'changed', 'new': 'deleted', 'd/x': 'deleted', 'd/y': 'added', 'more': 'added'}
        assert {c['path'][len(root) + 1:] for c in cay.json('diff', 'diff-one')} == {'a', 'new', 'd', 'd/x'}
        assert {c['path'][len(root) + 1:] for c in cay.json('diff', ref)} == {'a', 'd', 'd/y', 'more'}
        assert {c['kind'] for c in cay.json('diff', 'snap:diff-one', ref, '--no-renames')} == {'changed', 'deleted', 'added'}
        cay('apply', ref, check=True)
        assert (project / 'a').read_text() == 'a\n1\n2\n' and (project / 'd/y').exists() and not (project / 'new').exists()
    finally:
        cay('snapshot', 'rm', 'diff-one')


CLOCK_REALTIME_COARSE = 5


def wait_a_tick():
    """Until the clock that stamps inodes has moved."""
    start = time.clock_gettime_ns(CLOCK_REALTIME_COARSE)
    caylib.wait_until(lambda: time.clock_gettime_ns(CLOCK_REALTIME_COARSE) > start)


def test_a_patch_does_not_undo_what_the_host_did_meanwhile(cay, sandbox, project):
    lines = [f'line {n}\n' for n in range(40)]
    for name in ('edited', 'same', 'deleted', 'removed', 'apart'):
        (project / name).write_text(''.join(lines))
    ref = sandbox(project)
    cay('exec', ref, '--', 'sh', '-c', 'for f in edited same deleted apart; do sed -i "s/line 5$/sandbox/" $f; done; rm removed', check=True)
    cay('trace', ref, check=True)  # the walk is done
    wait_a_tick()
    (project / 'edited').write_text(''.join(lines).replace('line 5\n', 'host\n'))
    (project / 'apart').write_text(''.join(lines).replace('line 30\n', 'host\n'))
    (project / 'removed').write_text('host\n')
    (project / 'deleted').unlink()
    shown = cay('diff', ref, check=True).out
    assert shown.count('(changed on the host since)') == 4 and 'same  (changed' not in shown
    assert {c['path'].split('/')[-1]: c['host_changed'] for c in cay.json('diff', ref)} == {
        'edited': True, 'apart': True, 'same': False, 'deleted': True, 'removed': True}
    for name, fits in (('edited', False), ('removed', False), ('deleted', False), ('same', True), ('apart', True)):
        patch = cay('diff', ref, '--patch', name, check=True).stdout
        assert b'line 5' in patch and b'host' not in patch
        assert (git_apply(project, patch).returncode == 0) == fits, name
    assert 'host\n' in (project / 'edited').read_text() and 'sandbox' not in (project / 'edited').read_text()
    assert not (project / 'deleted').exists() and (project / 'removed').read_text() == 'host\n'
    merged = (project / 'apart').read_text()
    assert 'host\n' in merged and 'sandbox\n' in merged and 'sandbox' in (project / 'same').read_text()


def test_what_the_sandbox_started_from_may_be_unknown_and_is_not_guessed(cay, sandbox, project):
    for name in ('edited', 'same'):
        (project / name).write_text(name + '\n')
    ref = sandbox(project, '--trace', 'calls')  # no walk, so no copies
    cay('exec', ref, '--', 'sh', '-c', 'echo more >> edited; echo more >> same; echo x > new', check=True)
    wait_a_tick()
    (project / 'edited').write_text('host\n')
    (project / 'new').write_text('host\n')
    result = cay('diff', ref, '--patch')
    assert result.code == 1 and '2 changed files are not in the patch' in result.err
    assert 'a/same' in result.out and 'edited' not in result.out and 'new' not in result.out
    assert git_apply(project, result.stdout).returncode == 0
    assert (project / 'edited').read_text() == (project / 'new').read_text() == 'host\n'
    assert (project / 'same').read_text() == 'same\nmore\n'


def test_what_was_applied_is_no_change_of_the_host(cay, sandbox, project):
    (project / 'a').write_text('a\n')
    ref = sandbox(project)
    cay('exec', ref, '--', 'sh', '-c', 'echo 1 >> a; echo n > n', check=True)
    cay('apply', ref, check=True)
    cay('exec', ref, '--', 'sh', '-c', 'echo 2 >> a; echo m >> n', check=True)
    result = cay('diff', ref, '--patch', check=True)
    assert git_apply(project, result.stdout).returncode == 0
    assert (project / 'a').read_text() == 'a\n1\n2\n' and (project / 'n').read_text() == 'n\nm\n'


def test_a_terminal_gets_no_control_bytes(cay, sandbox, project, spawn_pty):
    """Neither from contents nor from names; a pipe gets every byte."""
    ref = sandbox(project)
    cay('exec', ref, '--', 'sh', '-c', r'printf "\033]0;owned\007\233\r\n\tx\n" > f; printf y > "$(printf "n\033[2Jm")"', check=True)
    assert b'+\x1b]0;owned\x07\x9b\r\n+\tx\n' in cay('diff', ref, '--patch', check=True).stdout
    for args in (['diff', ref, '-p'], ['diff', ref], ['diff', ref, '--stat'], ['apply', ref, '--dry-run'], ['trace', ref], ['show', ref], ['ls']):
        with spawn_pty(*args) as t:
            assert t.wait() == 0
            seen = t.output.replace(b'\x1b[0m', b'')
        assert b'\x1b]' not in seen and b'\x1b[2J' not in seen and b'\x07' not in seen and b'\x9b' not in seen, args
        if args[-1] == '-p':
            assert rb'+\x1b]0;owned\a\x9b\r' in seen and b'+\tx' in seen or b'+       x' in seen
    cay('exec', ref, '--', 'sh', '-c', r'mkdir "$(printf "d\033[2J")"; chmod 0 "$(printf "d\033[2J")"; true', check=True)
    with spawn_pty('cp', f'{ref}:{project}/d\x1b[2Jgone', '/tmp/nowhere') as t:
        assert t.wait() != 0 and b'\x1b[2J' not in t.output


def test_a_patch_of_a_repository_holds_the_work_and_not_the_repository(cay, sandbox, project):
    """git apply refuses a patch with .git in it, and would make a bare repository that runs commands."""
    (project / 'a').write_text('a\n')
    subprocess.run(['git', 'init', '-q', project], check=True)
    ref = sandbox(project)
    cay('exec', ref, '--', 'sh', '-c', 'echo more >> a; git init -q --bare bare; echo readme > bare/README; git -c user.name=x -c user.email=x@y '
        'commit -qam x --allow-empty; mkdir .hg; echo x > .hg/hgrc; mkdir hooks; echo h > hooks/h', check=True)
    result = cay('diff', ref, '--patch', check=True)
    assert 'are not in the patch' in result.err and git_apply(project, result.stdout).returncode == 0
    assert (project / 'a').read_text() == 'a\nmore\n' and sorted(os.listdir(project)) == ['.git', 'a', 'bare', 'hooks']
    assert sorted(os.listdir(project / 'bare')) == ['README', 'description']

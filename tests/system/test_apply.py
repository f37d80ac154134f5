# SPDX-License-Identifier: Apache-2.0
"""cay apply: all or nothing, and never more than was asked for."""

import os
import random
import shutil
import signal
import stat
import subprocess
import time

import pytest

import caylib
import treelib

rootful = pytest.mark.skipif(not caylib.ROOTFUL, reason='needs root: a rootless sandbox has one uid')
TREELIB = treelib.__file__
CLOCK_REALTIME_COARSE = 5


@pytest.fixture
def project(tmp_path):
    os.chmod(tmp_path, 0o755)
    root = tmp_path / 'project'
    root.mkdir()
    (root / 'a').write_text('one\ntwo\nthree\nfour\nfive\n')
    (root / 'b').write_text('b\n')
    (root / 'sub').mkdir()
    (root / 'sub/c').write_text('c\n')
    return root


def inside(cay, ref, script):
    cay('exec', ref, '--', 'sh', '-c', script, check=True)


def wait_a_tick():
    """Until the clock that stamps inodes has moved."""
    start = time.clock_gettime_ns(CLOCK_REALTIME_COARSE)
    caylib.wait_until(lambda: time.clock_gettime_ns(CLOCK_REALTIME_COARSE) > start)


def test_changes_arrive_and_nothing_is_left_to_do(cay, sandbox, project):
    ref = sandbox(project)
    inside(cay, ref, 'echo six >> a; rm b; echo new > new; mkdir -p x/y; echo z > x/y/z; ln -s a link; chmod 755 sub/c; mv sub moved')
    planned = cay('apply', ref, '--dry-run', check=True).out
    assert (project / 'b').exists() and not (project / '.cay-apply').exists()
    assert cay('apply', ref, check=True).out == planned
    assert (project / 'a').read_text().endswith('six\n') and not (project / 'b').exists()
    assert (project / 'x/y/z').read_text() == 'z\n' and os.readlink(project / 'link') == 'a'
    assert (project / 'moved/c').stat().st_mode & 0o777 == 0o755 and not (project / 'sub').exists()
    assert sorted(os.listdir(project)) == ['a', 'link', 'moved', 'new', 'x']
    assert cay('diff', ref, project, check=True).out == ''
    assert cay('apply', ref, check=True).out == ''


@pytest.mark.parametrize('seed', range(6))
def test_random_changes_in_several_rounds(cay, sandbox, tmp_path, seed):
    os.chmod(tmp_path, 0o755)
    root = tmp_path / 'random'
    treelib.fill(os.fsencode(root), random.Random(seed))
    ref = sandbox(root, '--ro', f'{TREELIB}:/treelib.py')
    for step in range(3):
        cay('exec', ref, '--', 'python3', '/treelib.py', root, 1000 * seed + step, 10, check=True)
        cay('apply', ref, check=True)
        out = tmp_path / f'out{step}'
        cay('cp', '-q', f'{ref}:{root}', out, check=True)
        assert treelib.content_of(root, 0o777) == treelib.content_of(out, 0o777)


def test_what_changed_on_the_host_stops_everything(cay, sandbox, project):
    ref = sandbox(project)
    inside(cay, ref, 'echo sandbox >> a; echo sandbox >> b; rm sub/c; echo s > new')
    wait_a_tick()
    (project / 'a').write_text('host\n')
    (project / 'sub/c').write_text('host\n')
    (project / 'new').write_text('host\n')
    result = cay('apply', ref)
    assert result.code == 1
    for name in ('a', 'sub/c', 'new'):
        assert f'refused  {project}/{name}: ' in result.err
    assert (project / 'b').read_text() == 'b\n' and (project / 'a').read_text() == 'host\n'
    cay('apply', ref, 'b', check=True)
    assert (project / 'b').read_text() == 'b\nsandbox\n'


def test_a_file_deleted_on_the_host_is_not_brought_back(cay, sandbox, project):
    ref = sandbox(project)
    inside(cay, ref, 'echo more >> a')
    (project / 'a').unlink()
    result = cay('apply', ref)
    assert result.code == 1 and 'deleted on the host' in result.err


@rootful  # without root overlayfs keeps no handles
def test_a_directory_swapped_on_the_host_is_noticed(cay, sandbox, project):
    ref = sandbox(project)
    other = project.parent / 'other'
    other.mkdir()
    (other / 'c').write_text('of another\n')
    wait_a_tick()
    ref = sandbox(project)
    inside(cay, ref, 'echo more >> sub/c')
    os.rename(project / 'sub', project / 'old')
    os.rename(other, project / 'sub')
    assert cay('apply', ref).code == 1
    assert (project / 'sub/c').read_text() == 'of another\n'


def test_the_sandbox_goes_on_after_an_apply(cay, sandbox, project):
    ref = sandbox(project)
    inside(cay, ref, 'echo 1 >> a; mv b bb')
    cay('apply', ref, check=True)
    inside(cay, ref, 'echo 2 >> a; mv bb bbb; rm sub/c; echo again > b')
    cay('apply', ref, check=True)
    assert (project / 'a').read_text().endswith('1\n2\n') and sorted(os.listdir(project)) == ['a', 'b', 'bbb', 'sub']
    wait_a_tick()
    with open(project / 'a', 'a', encoding='ascii') as f:
        f.write('host\n')
    inside(cay, ref, 'echo 3 >> a')
    assert cay('apply', ref).code == 1


def test_links_lead_nowhere(cay, sandbox, project):
    outside = project.parent / 'outside'
    outside.mkdir()
    ref = sandbox(project)
    inside(cay, ref, f'rm -r sub; ln -s {outside} sub; echo x > a')
    cay('apply', ref, check=True)
    assert os.readlink(project / 'sub') == str(outside)
    inside(cay, ref, 'rm sub; mkdir sub; echo evil > sub/evil')
    cay('apply', ref, check=True)
    assert os.listdir(outside) == [] and (project / 'sub/evil').read_text() == 'evil\n'


def test_a_link_on_the_host_is_not_followed(cay, sandbox, project):
    outside = project.parent / 'outside'
    outside.mkdir()
    ref = sandbox(project)
    inside(cay, ref, 'echo more >> sub/c; echo n > sub/n')
    shutil.rmtree(project / 'sub')
    (project / 'sub').symlink_to(outside)
    assert cay('apply', ref).code == 1
    assert os.listdir(outside) == []


def test_modes_are_sane_and_special_files_refused(cay, sandbox, project):
    ref = sandbox(project)
    inside(cay, ref, 'echo s > suid; chmod 6755 suid; echo p > private; chmod 600 private; mkdir d; chmod 2750 d')
    cay('apply', ref, check=True)
    assert (project / 'suid').stat().st_mode & 0o7777 == 0o755
    assert (project / 'private').stat().st_mode & 0o7777 == 0o600
    assert not (project / 'd').stat().st_mode & stat.S_ISUID
    inside(cay, ref, 'mkfifo pipe; echo x > plain')
    result = cay('apply', ref)
    assert result.code == 1 and 'pipe: a device, socket or pipe' in result.err and not (project / 'plain').exists()


@rootful
def test_files_belong_to_the_owner_of_the_directory(cay, sandbox, project):
    for path in (project, project / 'a', project / 'b', project / 'sub', project / 'sub/c'):
        os.chown(path, 1234, 1234)
    os.chown(project / 'b', 4321, 4321)
    ref = sandbox(project)
    cay('exec', '-u', 'root', ref, '--', 'sh', '-c', 'echo n > new; mkdir dir; echo m > dir/m; echo more >> b; ln -s x link', check=True)
    cay('apply', ref, check=True)
    owners = {n: os.lstat(project / n).st_uid for n in ('new', 'dir', 'dir/m', 'b', 'link', 'a')}
    assert owners == {'new': 1234, 'dir': 1234, 'dir/m': 1234, 'b': 4321, 'link': 1234, 'a': 1234}


def test_git_history_comes_but_no_hooks(cay, sandbox, project):
    env = {**os.environ, 'GIT_CONFIG_NOSYSTEM': '1', 'HOME': str(project.parent)}
    git = ['git', '-c', 'user.name=x', '-c', 'user.email=x@y', '-C', str(project)]
    subprocess.run([*git, 'init', '-q'], check=True, env=env)
    subprocess.run([*git, 'add', '.'], check=True, env=env)
    subprocess.run([*git, 'commit', '-qm', 'first'], check=True, env=env)
    ref = sandbox(project)
    inside(cay, ref, 'git config user.name x; git config user.email x@y; git config core.fsmonitor /tmp/evil; echo evil > .git/hooks/post-checkout; '
           'echo work >> a; git -c core.fsmonitor=false commit -qam second')
    result = cay('apply', ref, check=True)
    assert 'left out' in result.err and '.git/config' in result.err
    log = subprocess.run([*git, 'log', '--format=%s'], check=True, env=env, capture_output=True, text=True).stdout
    assert log == 'second\nfirst\n'
    assert subprocess.run([*git, 'status', '--short'], check=True, env=env, capture_output=True, text=True).stdout == ''
    assert 'fsmonitor' not in (project / '.git/config').read_text() and not (project / '.git/hooks/post-checkout').exists()


def git_in(root):
    """Run git on the host as its owner would, with no configuration of this machine."""
    env = {**os.environ, 'GIT_CONFIG_NOSYSTEM': '1', 'HOME': str(root.parent)}

    def git(*args, cwd=root, check=True):
        return subprocess.run(['git', '-c', 'user.name=x', '-c', 'user.email=x@y', '-C', str(cwd), *args], check=check, env=env,
                              capture_output=True, text=True).stdout
    return git


def test_a_commit_on_the_host_writes_through_no_link_of_the_sandbox(cay, sandbox, project):
    victim = project.parent / 'victim'
    victim.write_text('precious\n')
    git = git_in(project)
    git('init', '-q')
    git('add', '.')
    git('commit', '-qm', 'first')
    ref = sandbox(project)
    inside(cay, ref, f'rm -f .git/COMMIT_EDITMSG .git/logs/HEAD; ln -s {victim} .git/COMMIT_EDITMSG; ln -s {victim} .git/logs/HEAD; '
           f'ln -s {victim} .git/ORIG_HEAD; mkdir link; ln -s {victim.parent} link/.git; echo work >> a')
    for args in ([], ['--git-config']):
        result = cay('apply', ref, *args, check=True)
        for name in ('.git/COMMIT_EDITMSG', '.git/logs/HEAD', '.git/ORIG_HEAD', 'link/.git'):
            assert f'left out {project}/{name}: would lead git to files elsewhere' in result.err
            assert not (project / name).is_symlink()
    git('commit', '-qam', 'second')
    git('reset', '-q', '--hard', 'HEAD~')
    assert victim.read_text() == 'precious\n'


def test_no_repository_of_the_sandbox_runs_a_command_on_the_host(cay, sandbox, project):
    """Nested and bare ones, and an index that names a hook."""
    mark = project.parent / 'mark'
    evil = f'touch {mark}; false'
    git = git_in(project)
    git('init', '-q')
    git('add', '.')
    git('commit', '-qm', 'first')
    ref = sandbox(project)
    forge = ("import hashlib,struct,subprocess as p\n"
             "h=p.run(['git','hash-object','-w','--stdin'],input=b'#!/bin/sh\\n" + evil + "\\n',stdout=p.PIPE).stdout.decode().strip()\n"
             "n=b'.git/hooks/post-checkout'\n"
             "e=struct.pack('>10I',0,0,0,0,0,0,0o100755,0,0,0)+bytes.fromhex(h)+struct.pack('>H',len(n))+n\n"
             "e+=bytes(8-len(e)%8)\n"
             "b=b'DIRC'+struct.pack('>II',2,1)+e\n"
             "open('.git/index','wb').write(b+hashlib.sha1(b).digest())\n")
    cay('exec', ref, '--', 'python3', '-c', forge, check=True)
    inside(cay, ref, f'git init -q --bare bare; git -C bare config core.fsmonitor "{evil}"; git -C bare config core.bare false; '
           f'git -C bare config core.worktree /; git init -q nested; git -C nested config core.fsmonitor "{evil}"; '
           f'mkdir .hg; echo "[hooks]" > .hg/hgrc')
    result = cay('apply', ref, check=True)
    for name in ('bare/config', 'bare/HEAD', 'nested/.git/config', '.hg/hgrc', '.git/index'):
        assert f'left out {project}/{name}: ' in result.err and (name == '.git/index' or not (project / name).exists())
    assert 'cay apply --git-config' in result.err
    git('checkout', '--', '.')
    for cwd in (project, project / 'bare', project / 'nested'):
        git('status', cwd=cwd, check=False)
    git('checkout', '-q', '-b', 'other')
    assert not mark.exists()
    # The deliberate way is still there.
    cay('apply', ref, '--git-config', 'bare', check=True)
    git('status', cwd=project / 'bare', check=False)
    assert mark.exists()


def test_a_forged_journal_moves_nothing(cay, sandbox, project):
    """As it could come with a clone: undoing it would move a file into .git/hooks."""
    (project / '.git/hooks').mkdir(parents=True)
    stage = project / '.cay-apply'
    stage.mkdir(mode=0o700)
    (stage / 'o0').write_text('#!/bin/sh\nevil\n')
    ino = (stage / 'o0').stat().st_ino
    for head in (b'cay-apply 1\0', b'cay-apply 2\0' + b'f' * 32 + b'\0'):
        (stage / 'journal').write_bytes(head + f'box\0x {ino} 0 0 33261 0 0 0 0\0.git/hooks/pre-commit\0end\0'.encode())
        os.chmod(stage / 'journal', 0o600)
        ref = sandbox(project)
        inside(cay, ref, 'echo more >> a')
        for args in (['--undo', '--to', project], ['--resume', '--to', project], [ref, '--undo'], [ref]):
            result = cay('apply', *args)
            assert result.code != 0 and 'not known to cay' in result.err and 'remove .cay-apply' in result.err
        assert os.listdir(project / '.git/hooks') == [] and (stage / 'o0').exists()
        assert not (project / 'a').read_text().endswith('more\n')
    shutil.rmtree(stage)
    cay('apply', ref, check=True)
    assert (project / 'a').read_text().endswith('more\n')


def test_to_another_directory(cay, sandbox, project):
    other = project.parent / 'other'
    shutil.copytree(project, other)
    ref = sandbox(project)
    inside(cay, ref, 'echo x >> a; echo new > n; rm b')
    cay('apply', ref, '--to', other, check=True)
    assert (other / 'a').read_text().endswith('x\n') and (other / 'n').exists() and not (other / 'b').exists()
    assert (project / 'b').exists() and not (project / 'n').exists()
    assert cay('apply', ref, '--to', other, check=True).out == ''
    (other / 'a').write_text('different\n')
    assert cay('apply', ref, '--to', other).code == 1


def test_merge(cay, sandbox, project):
    ref = sandbox(project)
    inside(cay, ref, 'sed -i s/five/FIVE/ a; sed -i s/b/sandbox/ b')
    cay('trace', ref, check=True)  # the walk is done
    wait_a_tick()
    (project / 'a').write_text('ONE\ntwo\nthree\nfour\nfive\n')
    (project / 'b').write_text('host\n')
    assert cay('apply', ref).code == 1
    result = cay('apply', ref, '--merge')
    assert result.code == 1 and f'CONFLICT {project}/b' in result.out and f'merge    {project}/a' in result.out
    assert (project / 'a').read_text() == 'ONE\ntwo\nthree\nfour\nFIVE\n'
    assert (project / 'b').read_text() == '<<<<<<< host\nhost\n||||||| base\nb\n=======\nsandbox\n>>>>>>> sandbox\n'


def test_what_was_merged_is_not_overwritten_by_the_next(cay, sandbox, project):
    """The host's part of a merge is not in the sandbox: neither another run nor a later change drops it."""
    ref = sandbox(project)
    inside(cay, ref, 'sed -i s/five/FIVE/ a; sed -i s/b/sandbox/ b')
    cay('trace', ref, check=True)
    wait_a_tick()
    (project / 'a').write_text('ONE\ntwo\nthree\nfour\nfive\n')
    (project / 'b').write_text('host\n')
    assert cay('apply', ref, '--merge').code == 1
    merged, marked = (project / 'a').read_text(), (project / 'b').read_text()
    assert merged == 'ONE\ntwo\nthree\nfour\nFIVE\n' and marked.startswith('<<<<<<<')
    # All that the sandbox has is there already, also when a person has settled the conflict.
    for args in ([], ['--merge']):
        assert cay('apply', ref, *args, check=True).out == ''
        assert (project / 'a').read_text() == merged and (project / 'b').read_text() == marked
    (project / 'b').write_text('settled\n')
    assert cay('apply', ref, check=True).out == '' and (project / 'b').read_text() == 'settled\n'
    # What it changes then is merged from there on.
    inside(cay, ref, 'sed -i s/four/FOUR/ a; echo more >> b')
    wait_a_tick()
    refused = cay('apply', ref)
    assert refused.code == 1 and refused.out == '' and (project / 'a').read_text() == merged
    assert sorted(line.split()[1] for line in refused.err.splitlines() if line.startswith('refused')) == [
        f'{project}/a:', f'{project}/b:']
    result = cay('apply', ref, '--merge')
    assert result.out == f'merge    {project}/a\nCONFLICT {project}/b\n'
    assert (project / 'a').read_text() == 'ONE\ntwo\nthree\nFOUR\nFIVE\n'
    assert (project / 'b').read_text() == (
        '<<<<<<< host\nsettled\n||||||| base\nsandbox\n=======\nsandbox\nmore\n>>>>>>> sandbox\n')


def test_what_is_no_text_is_not_merged_line_by_line(cay, sandbox, project):
    """As git: else a picture that both have changed would become neither's."""
    (project / 'p').write_bytes(b'1\n\0\n3\n4\n5\n6\n')
    (project / 'q').write_bytes(b'1\n\0\n3\n')
    ref = sandbox(project)
    inside(cay, ref, 'sed -i s/6/six/ p; echo 4 >> q')
    cay('trace', ref, check=True)
    wait_a_tick()
    (project / 'p').write_bytes(b'one\n\0\n3\n4\n5\n6\n')
    (project / 'q').write_bytes((project / 'q').read_bytes())  # touched, the same
    r = cay('apply', ref, '--merge')
    assert r.code == 1 and f'refused  {project}/p: changed on the host meanwhile, and is no text' in r.err
    assert (project / 'p').read_bytes() == b'one\n\0\n3\n4\n5\n6\n'
    assert cay('apply', ref, '--merge', 'q', check=True).out == f'merge    {project}/q\n'
    assert (project / 'q').read_bytes() == b'1\n\0\n3\n4\n'


def test_run_applies_when_asked_to(cay, project, spawn_pty):
    result = cay('run', '--dir', project, '--apply', 'always', '--', 'sh', '-c', 'echo x >> a; exit 7')
    assert result.code == 7 and (project / 'a').read_text().endswith('x\n')
    assert cay('run', '--dir', project, '--', 'rm', 'a').code == 0 and (project / 'a').exists()
    for answer, there in (('n', True), ('y', False)):
        with spawn_pty('run', '--dir', project, '--apply', 'ask', '--', 'rm', 'b') as t:
            t.expect('delete .*/b')
            t.expect(r'Apply 1 change\?')
            t.send(answer + '\n')
            assert t.wait() == 0
        assert (project / 'b').exists() == there
    assert cay('run', '--apply', 'ask', '--dir', project, '--', 'true').code == 125
    assert cay('run', '--apply', 'some', '--dir', project, '--', 'true').code == 125


@pytest.mark.parametrize('args, applied', [
    (['--apply', 'success'], False), (['--apply', 'always'], True),
    (['--tx', '--apply', 'always'], False), (['--tx', '--apply', 'success'], False), (['--tx', '--keep', '--apply', 'always'], False)])
def test_a_failed_run_is_applied_only_when_that_was_asked_for(cay, project, args, applied):
    result = cay('run', '--dir', project, *args, '--', 'sh', '-c', 'echo x >> a; exit 7')
    assert result.code == 7 and (project / 'a').read_text().endswith('x\n') == applied
    assert ('nothing was applied' in result.err) != applied
    if '--keep' in args:
        cay('kill', result.err.split('sandbox ')[1].split()[0], check=True)
    (project / 'a').write_text('a\n')
    assert cay('run', '--dir', project, *(a for a in args if a != '--keep'), '--', 'sh', '-c', 'echo y >> a', check=True).code == 0
    assert (project / 'a').read_text() == 'a\ny\n'


def test_run_keeps_what_it_could_not_apply(cay, project):
    result = cay('run', '--dir', project, '--apply', 'always', '--', 'sh', '-c', 'mkfifo pipe; echo work > work')
    assert result.code == 125 and 'is kept' in result.err
    ref = result.err.split('sandbox ')[1].split()[0]
    cay('apply', ref, 'work', check=True)
    assert (project / 'work').read_text() == 'work\n'
    cay('kill', ref, check=True)


def test_after_an_undone_run_the_same_can_be_applied(cay, sandbox, project):
    """What was moved away and back has another ctime, and is no change of the host's."""
    for n in range(1500):
        (project / f'f{n}').write_text(f'{n}\n')
    ref = sandbox(project)
    inside(cay, ref, 'for n in $(seq 0 1499); do echo more >> f$n; done; rm a')
    for delay in (0.02 * n for n in range(1, 40)):
        with cay.popen('apply', ref) as p:
            caylib.wait_until(lambda: (project / '.cay-apply/journal').exists() or p.poll() is not None)
            time.sleep(delay / 10)
            p.send_signal(signal.SIGKILL)
            p.wait()
        assert (project / '.cay-apply/journal').exists(), 'the run was over before it could be cut off'
        moved = sum((project / f'f{n}').read_text() != f'{n}\n' for n in range(1500))
        cay('apply', ref, '--undo', check=True)
        assert (project / 'a').exists() and (project / 'f0').read_text() == '0\n'
        if moved > 10:
            break
    assert moved > 10
    wait_a_tick()
    (project / 'f3').write_text('by the host\n')
    result = cay('apply', ref)
    assert result.code == 1 and 'f3' in result.err and 'f4' not in result.err  # what the host did still counts
    (project / 'f3').unlink()
    cay('apply', ref, *(f'f{n}' for n in range(1500) if n != 3), 'a', check=True)
    assert (project / 'f7').read_text() == '7\nmore\n' and not (project / 'a').exists()


def test_what_was_applied_and_then_deleted_inside_is_shown(cay, sandbox, project):
    ref = sandbox(project)
    inside(cay, ref, 'mkdir new; echo x > new/gone; echo y > new/stays; echo z > top')
    cay('apply', ref, check=True)
    assert cay('diff', ref, check=True).out == ''
    inside(cay, ref, 'rm new/gone top')
    shown = cay('diff', ref, check=True).out.split('\n')
    assert sorted(line.split('/', 1)[-1] for line in shown if line.startswith('D')) == \
        sorted(f'{project}/{name}'[1:] for name in ('new/gone', 'top'))
    assert 'new/gone' in cay('diff', ref, 'new/gone', check=True).out
    assert cay('diff', ref, 'new/stays', check=True).out == ''
    cay('apply', ref, 'new', check=True)
    assert not (project / 'new/gone').exists() and (project / 'top').exists()
    cay('apply', ref, check=True)
    assert not (project / 'top').exists() and (project / 'new/stays').exists()
    assert cay('diff', ref, check=True).out == ''


@pytest.mark.parametrize('undo', [False, True])
def test_killed_in_the_middle(cay, sandbox, project, undo):
    """At random moments: afterwards all or nothing can be had."""
    for n in range(300):
        (project / f'f{n}').write_text(f'{n}\n')
    before = treelib.content_of(project, 0o777)
    ref = sandbox(project)
    inside(cay, ref, 'for n in $(seq 0 299); do echo more >> f$n; echo x > new$n; done; rm a')
    dice, cut = random.Random(5), 0
    for _ in range(12):
        with cay.popen('apply', ref) as p:
            time.sleep(dice.random() * 0.15)
            p.send_signal(signal.SIGKILL)
            p.wait()
        if (project / '.cay-apply/journal').exists():
            cut += 1
            cay('apply', ref, '--undo' if undo else '--resume', check=True)
            if not undo:
                break
        if not (project / 'a').exists():
            break
        assert {k: v for k, v in treelib.content_of(project, 0o777).items() if not k.startswith(b'.cay')} == before
    cay('apply', ref, check=True)
    assert not (project / 'a').exists() and (project / 'new299').exists() and (project / 'f7').read_text() == '7\nmore\n'
    assert not (project / '.cay-apply').exists() and len(os.listdir(project)) == 602

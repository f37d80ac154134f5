# SPDX-License-Identifier: Apache-2.0
"""What commands do to files stays inside, and what --dir and --ro show."""

import hashlib
import os
import stat
import tempfile

import pytest

import caylib

rootful = pytest.mark.skipif(not caylib.ROOTFUL, reason='needs root: a rootless sandbox has one uid')
rootless = pytest.mark.skipif(caylib.ROOTFUL, reason='about rootless sandboxes')

HOST_FILES = ['/dev/null', '/dev/zero', '/dev/tty', '/etc/passwd', '/etc/hostname', '/etc/hosts', '/bin/sh', '/usr/bin/env', '/etc/debian_version',
              '/usr/bin/python3', '/etc/ld.so.cache', '/usr/lib/os-release']


def fingerprint(*roots):
    """Everything that can be seen of files and trees: names, types, owners, modes, times, contents."""
    found = {}
    for root in roots:
        paths = [root]
        for folder, names, files in os.walk(root):
            paths += [os.path.join(folder, n) for n in names + files]
        for path in paths:
            st = os.lstat(path)
            data = ''
            if stat.S_ISLNK(st.st_mode):
                data = os.readlink(path)
            elif stat.S_ISREG(st.st_mode) and os.access(path, os.R_OK):
                with open(path, 'rb') as f:
                    data = hashlib.sha256(f.read()).hexdigest()
            # anybody on the host who uses a device changes its times
            times = () if stat.S_ISCHR(st.st_mode) else (st.st_mtime_ns, st.st_ctime_ns)
            found[path] = (st.st_mode, st.st_rdev, st.st_uid, st.st_gid, st.st_ino, st.st_nlink, times, data)
    return found


@pytest.fixture
def project(tmp_path):
    """A directory with files, a link and a directory."""
    os.chmod(tmp_path, 0o755)
    root = tmp_path / 'project'
    (root / 'src').mkdir(parents=True)
    (root / 'a.txt').write_text('alpha\n')
    (root / 'src/b.txt').write_text('beta\n')
    (root / 'link').symlink_to('a.txt')
    return root


@pytest.fixture
def canaries(project):
    files = [f for f in HOST_FILES if os.path.exists(f)]
    before = fingerprint(*files, project)
    yield files
    assert fingerprint(*files, project) == before


@rootful
@pytest.mark.slow
def test_root_can_remove_everything_inside_and_the_host_is_untouched(cay, canaries, project):
    r = cay('run', '--user', 'root', '--dir', project, '--', 'bash', '-c',
            'rm -rf --no-preserve-root / 2>/dev/null; echo /etc/* /usr/bin/* /home/*', timeout=120)
    assert r.out == '/etc/* /usr/bin/* /home/*\n', r
    assert cay('run', '--', 'ls', '/usr/bin/env').out == '/usr/bin/env\n'


@rootful
def test_root_can_overwrite_everything_inside_and_the_host_is_untouched(cay, canaries, project):
    script = 'set -e; for f in "$@"; do echo x > $f; chmod 777 $f; chown 7:7 $f; mv $f $f.moved; ln -s / $f; done; echo ok'
    r = cay('run', '--user', 'root', '--dir', project, '--', 'bash', '-c', script, 'x', *[f for f in canaries if not f.startswith('/dev')],
            project / 'a.txt')
    # what is run while it is overwritten cannot be opened for writing, as outside
    assert r.out == 'ok\n' or 'Text file busy' in r.err, r


def test_a_user_can_remove_what_is_its_own_and_the_host_is_untouched(cay, canaries, project):
    with tempfile.NamedTemporaryFile(prefix='cay-test-canary-', dir='/tmp') as f, \
            tempfile.NamedTemporaryFile(prefix='cay-test-canary-', dir=os.path.expanduser('~')) as g:
        before = fingerprint(f.name, g.name)
        r = cay('run', '--dir', project, '--', 'sh', '-c', f'rm -rf ~ {os.path.expanduser("~")} /tmp/* ./* .??* 2>/dev/null; ls -A')
        assert r.stdout == b'', r
        assert fingerprint(f.name, g.name) == before


@rootless
def test_a_rootless_sandbox_can_remove_all_it_sees_and_the_host_is_untouched(cay, canaries, project):
    r = cay('run', '--dir', project, '--', 'bash', '-c', 'rm -rf --no-preserve-root / 2>/dev/null; echo /home/* /etc/*',
            timeout=120)
    assert r.out == '/home/* /etc/*\n', r


# --- --dir ---

def test_dir_is_shown_at_the_same_path_and_is_the_cwd(cay, project, canaries):
    r = cay('run', '--dir', project, '--', 'sh', '-c', 'pwd; cat a.txt src/b.txt link; ls -A', check=True)
    assert r.out == f'{project}\nalpha\nbeta\nalpha\na.txt\nlink\nsrc\n'


def test_edits_in_dir_stay_inside(cay, project, canaries):
    ref = cay.create('--dir', project)
    script = 'set -e; echo new > a.txt; echo x >> src/b.txt; rm link; mkdir d; mv src/b.txt d/c; ln -s d e; chmod 700 src; touch -d @1 a.txt'
    cay('exec', ref, '--', 'sh', '-c', script, check=True)
    assert cay('exec', ref, '--', 'sh', '-c', 'cat a.txt d/c; ls').out == 'new\nbeta\nx\na.txt\nd\ne\nsrc\n'
    cay('kill', ref, check=True)


def test_dir_with_dest_is_shown_there(cay, project, canaries):
    r = cay('run', '--dir', f'{project}:/project/here', '--', 'sh', '-c', 'pwd; cat a.txt; echo y > a.txt', check=True)
    assert r.out == '/project/here\nalpha\n'


def test_the_first_dir_is_the_cwd_and_cwd_overrides_it(cay, project, tmp_path):
    other = tmp_path / 'other'
    other.mkdir()
    args = ['--dir', project, '--dir', f'{other}:/other']
    assert cay('run', *args, '--', 'sh', '-c', 'pwd; ls -d /other').out == f'{project}\n/other\n'
    assert cay('run', *args, '--cwd', '/other', '--', 'pwd').out == '/other\n'


def test_a_relative_dir_is_resolved(cay, project):
    assert cay('run', '--dir', 'project', '--', 'pwd', cwd=project.parent).out == f'{project}\n'
    assert cay('run', '--dir', '.', '--', 'cat', 'a.txt', cwd=project).out == 'alpha\n'


def test_a_symbolic_link_as_dir_is_followed_once(cay, project, tmp_path):
    (tmp_path / 'l').symlink_to(project)
    assert cay('run', '--dir', tmp_path / 'l', '--', 'cat', 'a.txt').out == 'alpha\n'


def test_names_with_blanks_colons_and_newlines_work(cay, tmp_path):
    os.chmod(tmp_path, 0o755)
    for name in ['with blank', 'with,comma', 'back\\slash', 'new\nline', 'ümläut']:
        folder = tmp_path / name
        folder.mkdir()
        (folder / 'f').write_text(name)
        assert cay('run', '--dir', f'{folder}:/w', '--', 'cat', 'f').out == name


def test_dir_is_writable_by_the_user_inside(cay, project, canaries):
    cay('run', '--dir', project, '--', 'sh', '-c', 'touch n src/n && test -w a.txt && test $(stat -c %u a.txt) = 1000', check=True)


@rootful
@pytest.mark.parametrize('uid', [0, 1234, 65534, 200000])
def test_the_owner_of_dir_is_the_user_inside_whoever_it_is(cay, project, uid):
    for folder, names, files in os.walk(project):
        for name in ['.'] + names + files:
            os.chown(os.path.join(folder, name), uid, uid, follow_symlinks=False)
    os.chmod(project / 'src', 0o700)
    before = fingerprint(project)
    r = cay('run', '--dir', project, '--', 'sh', '-c', 'stat -c %u . a.txt src src/b.txt; touch n src/n; echo x >> src/b.txt; stat -c %u n',
            check=True)
    assert r.out.split() == ['1000'] * 5, r
    assert r.err == ''
    assert fingerprint(project) == before


@rootful
def test_files_of_other_owners_in_dir_are_not_the_users(cay, project):
    os.chown(project, 1234, 1234)
    os.chmod(project / 'a.txt', 0o600)  # root's
    r = cay('run', '--dir', project, '--', 'sh', '-c', 'cat a.txt; touch n && echo made')
    assert r.out == 'made\n' and 'Permission denied' in r.err, r


def test_nested_dirs_show_each_its_own(cay, project, tmp_path):
    inner = tmp_path / 'inner'
    inner.mkdir()
    (inner / 'i').write_text('inner\n')
    before = fingerprint(project, inner)
    for args in (['--dir', project, '--dir', f'{inner}:{project}/src'], ['--dir', f'{inner}:{project}/src', '--dir', project]):
        r = cay('run', *args, '--', 'sh', '-c', f'cd {project}; ls src; cat src/i a.txt; echo x > src/j; echo y > k')
        assert r.out == 'i\ninner\nalpha\n' and r.code == 0, r
    r = cay('run', '--dir', project, '--dir', project / 'src', '--', 'sh', '-c', 'cat src/b.txt; echo z > src/b.txt; cat src/b.txt')
    assert r.out == 'beta\nz\n', r
    assert fingerprint(project, inner) == before


def test_ro_is_read_only(cay, project, canaries):
    script = 'import os, sys, errno\n' \
             'def failed(f, *a):\n' \
             '    try: f(*a)\n' \
             '    except OSError as e: return errno.errorcode[e.errno]\n' \
             'os.chdir(sys.argv[1])\n' \
             'print(open("a.txt").read().strip(), failed(open, "a.txt", "w"), failed(os.mkdir, "d"), failed(os.unlink, "a.txt"),' \
             ' failed(os.chmod, "a.txt", 0o777), failed(os.utime, "a.txt"))'
    r = cay('run', '--ro', project, '--', 'python3', '-c', script, project)
    assert r.out == 'alpha EROFS EROFS EROFS EROFS EROFS\n', r
    r = cay('run', '--ro', f'{project}:/ro', '--', 'python3', '-c', script, '/ro')
    assert r.out == 'alpha EROFS EROFS EROFS EROFS EROFS\n', r


@rootful
def test_ro_is_read_only_for_root_too(cay, project, canaries):
    r = cay('run', '--user', 'root', '--ro', f'{project}:/ro', '--', 'sh', '-c',
            'echo x > /ro/a.txt; mount -o remount,rw /ro; mount -o remount,bind,rw /ro; umount /ro; rm -f /ro/a.txt; cat /ro/a.txt')
    assert r.out == 'alpha\n', r


def test_ro_of_a_single_file_works(cay, project, canaries):
    r = cay('run', '--ro', f'{project}/a.txt:/etc/given', '--', 'sh', '-c', 'cat /etc/given; echo x > /etc/given')
    assert r.out == 'alpha\n' and 'Read-only' in r.err, r


def test_ro_inside_dir_and_dir_inside_ro(cay, project, canaries):
    r = cay('run', '--dir', project, '--ro', f'{project}/src', '--', 'sh', '-c', 'echo x > a.txt; echo x > src/b.txt; cat a.txt src/b.txt')
    assert r.out == 'x\nbeta\n' and 'Read-only' in r.err, r


# --- refusals ---

def refused(cay, *args):
    r = cay('run', *args, '--', 'true')
    assert r.code == 125 and r.stdout == b'', r
    assert r.err.startswith('cay: '), r
    return r.err


def test_a_file_as_dir_is_refused(cay, project):
    assert str(project / 'a.txt') in refused(cay, '--dir', project / 'a.txt')


def test_what_does_not_exist_is_refused(cay, project):
    assert '/no/such' in refused(cay, '--dir', '/no/such')
    assert '/no/such' in refused(cay, '--ro', '/no/such')
    (project / 'dangling').symlink_to('/no/such')
    assert 'dangling' in refused(cay, '--dir', project / 'dangling')


@rootless
def test_an_unreadable_dir_is_refused(cay, project):
    for mode in (0o000, 0o100, 0o200):
        os.chmod(project / 'src', mode)
        try:
            assert str(project / 'src') in refused(cay, '--dir', project / 'src')
        finally:
            os.chmod(project / 'src', 0o755)


@pytest.mark.parametrize('dest', ['/', '/proc', '/dev', '/sys', '/proc/self', '/dev/shm', 'relative', '/a/../b', ''])
def test_a_dest_that_would_hide_the_sandbox_is_refused(cay, project, dest):
    refused(cay, '--dir', f'{project}:{dest}')


def test_the_state_directory_is_never_shown(cay):
    for path in (cay.state, os.path.join(cay.state, 'sandboxes'), os.path.dirname(cay.state), '/'):
        for option in ('--dir', '--ro'):
            assert 'state' in refused(cay, option, f'{path}:/mnt/x')


def test_the_same_dest_twice_is_refused(cay, project, tmp_path):
    refused(cay, '--dir', f'{project}:/x', '--dir', f'{project}/src:/x')


def test_more_dirs_than_the_limit_are_refused(cay, project):
    refused(cay, *[a for i in range(33) for a in ('--ro', f'{project}:/mnt/{i}')])


def test_two_sandboxes_do_not_see_each_others_files(cay, project):
    one, two = cay.create('--dir', project), cay.create('--dir', project)
    try:
        cay('exec', one, '--', 'sh', '-c', 'echo one | tee /tmp/f ~/f f a.txt /dev/shm/f /var/tmp/f', check=True)
        r = cay('exec', two, '--', 'sh', '-c', 'ls /tmp/f ~/f f /dev/shm/f /var/tmp/f; cat a.txt')
        assert r.out == 'alpha\n', r
    finally:
        cay('kill', one, two, check=True)


def test_template_dir_is_a_root_of_its_own(cay, tmp_path):
    os.chmod(tmp_path, 0o755)
    root = tmp_path / 'root'
    for name in ('bin', 'etc', 'tmp', 'proc', 'dev', 'sys'):
        (root / name).mkdir(parents=True)
    (root / 'bin/cay-init').write_bytes(open(os.path.join(os.path.dirname(caylib.CAY), 'cay-init'), 'rb').read())
    os.chmod(root / 'bin/cay-init', 0o755)
    before = fingerprint(root)
    r = cay('run', '--template', f'dir:{root}', '--', '/bin/cay-init')
    assert r.code == 1, r  # it runs, and has no stream
    assert cay('run', '--template', f'dir:{root}', '--', '/bin/sh').code == 127
    assert fingerprint(root) == before


def test_a_sandboxes_files_are_not_readable_by_other_users_of_the_host(cay):
    ref = cay.create()
    try:
        cay('exec', ref, '--', 'sh', '-c', 'echo secret > ~/s', check=True)
        assert stat.S_IMODE(os.stat(cay.state).st_mode) & 0o077 == 0
        sandbox = os.stat(os.path.join(cay.state, 'sandboxes', ref))
        assert stat.S_IMODE(sandbox.st_mode) & 0o077 == 0
    finally:
        cay('kill', ref, check=True)

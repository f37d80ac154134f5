# SPDX-License-Identifier: Apache-2.0
"""Renaming directories that lie in a lower layer: of --dir, of the template, and of earlier generations."""

import os
import shutil
import signal
import subprocess

import pytest
from caylib import wait_until
from fingerprint import SCRIPT as FINGERPRINT
from statelib import end, sh

TREE = r'''
import os, socket, sys
top = sys.argv[1]
os.makedirs(top + '/sub/deep')
for d in ('', '/sub', '/sub/deep'):
    for i in range(3):
        with open(f'{top}{d}/f{i}', 'w') as f: f.write(f'{d} {i}\n' * (i + 1))
os.chmod(top + '/f1', 0)
os.symlink('f0', top + '/link')
os.mkfifo(top + '/pipe')
socket.socket(socket.AF_UNIX).bind(top + '/sub/socket')
os.setxattr(top + '/f2', 'user.mark', b'file')
os.setxattr(top + '/sub', 'user.mark', b'dir')
os.setxattr(top + '/sub', 'user.overlay.opaque', b'y')
os.chmod(top + '/sub/deep', 0o555)
for d, _, names in os.walk(top, topdown=False):
    for n in names: os.utime(os.path.join(d, n), (10**9, 10**9 + 5), follow_symlinks=False)
    os.utime(d, (10**9, 10**9 + 7))
'''

RENAME = r'''
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def rename(a, b, flags=0):
    return 0 if libc.renameat2(-100, a.encode(), -100, b.encode(), flags) == 0 else ctypes.get_errno()
'''


@pytest.fixture
def clean_cay(fresh_cay, no_leftovers):
    """Everything is ended before the test is checked for what it left."""
    yield fresh_cay
    end(fresh_cay)


@pytest.fixture
def project(tmp_path):
    """A directory of the host with a tree in it."""
    top = tmp_path / 'project'
    top.mkdir()
    subprocess.run(['/usr/bin/python3', '-c', TREE, str(top / 'src')], check=True)
    yield top
    subprocess.run(['chmod', '-R', 'u+rwx', str(top)], check=False)
    shutil.rmtree(top)


def box(cay, project, *options):
    return cay('create', '--dir', f'{project}:/p', *options, check=True).out.strip()


def python(cay, ref, script, *args, **options):
    return cay('exec', *options.pop('before', ()), ref, '--', 'python3', '-c', script, *args, check=True, **options).out


def shown(cay, ref, top):
    return python(cay, ref, FINGERPRINT, top)


def no_stage(cay, ref):
    assert sh(cay, ref, "find /p /tmp -name '.cay-mv*' 2>/dev/null || true") == ''


def test_programs_that_do_not_copy_rename_directories_of_the_host(clean_cay, project):
    """As the kernel does: at once, and in every detail the same tree."""
    ref = box(clean_cay, project)
    before = shown(clean_cay, ref, '/p/src')
    python(clean_cay, ref, "import os; os.rename('/p/src', '/p/one')")
    assert shown(clean_cay, ref, '/p/one') == before
    assert sh(clean_cay, ref, 'ls -A /p') == 'one\n'
    python(clean_cay, ref, "import os; os.rename('/p/one/sub/', '/p/two')")
    assert sh(clean_cay, ref, 'ls /p /p/two') == '/p:\none\ntwo\n\n/p/two:\ndeep\nf0\nf1\nf2\nsocket\n'
    assert sorted(os.listdir(project)) == ['src']
    no_stage(clean_cay, ref)


def test_without_processes_in_the_trace(clean_cay, project):
    """The first command, later ones, after a snapshot; and in cay run, whose only command is its first."""
    move = "import os, sys; os.rename(*sys.argv[1:])"
    ref = box(clean_cay, project, '--trace', 'calls')
    before = shown(clean_cay, ref, '/p/src')
    for old, new in (('src', 'one'), ('one', 'src')):
        python(clean_cay, ref, move, f'/p/{old}', f'/p/{new}')
    assert shown(clean_cay, ref, '/p/src') == before
    clean_cay('snapshot', ref, check=True)
    python(clean_cay, ref, move, '/p/src', '/p/new')
    assert shown(clean_cay, ref, '/p/new') == before
    assert {e['kind'].split('.')[0] for e in clean_cay.events(ref)} <= {'sandbox', 'call'}
    r = clean_cay('run', '--trace', 'calls', '--dir', f'{project}:/p', '--', 'python3', '-c', move, '/p/src', '/p/x')
    assert r.code == 0, r


def test_a_directory_of_a_template_that_is_the_users_own(clean_cay, tmp_path):
    """Of a template from a directory, with root and without."""
    template = tmp_path / 'template'
    for name in ('usr/bin', 'etc', 'src/sub/deep'):
        (template / name).mkdir(parents=True)
    for path in (template / 'src', template / 'src/sub', template / 'src/sub/deep'):
        (path / 'file').write_text(path.name)
        path.chmod(0o555 if path.name == 'deep' else 0o755)
    (template / 'rename.c').write_text('#include <stdio.h>\nint main(int c, char **v) { return c != 3 || rename(v[1], v[2]) ? 1 : 0; }\n')
    if subprocess.run(['cc', '-static', '-o', template / 'rename', template / 'rename.c'], check=False).returncode:
        pytest.skip('needs a compiler and a static libc')
    ref = clean_cay('create', '--template', f'dir:{template}', '--user', '0' if os.geteuid() == 0 else '1000', check=True).out.strip()
    for old, new in (('/src/sub', '/sub'), ('/src', '/new'), ('/sub', '/new/sub')):
        clean_cay('exec', ref, '--', '/rename', old, new, check=True)
    listed = clean_cay('diff', ref, check=True).out
    assert 'R  /src/ -> /new/\n' in listed and '.cay-mv' not in listed, listed


def test_git_mv(clean_cay, project):
    git = ['git', '-c', 'user.name=a', '-c', 'user.email=a@b']
    (project / 'src/pipe').unlink()
    (project / 'src/sub/socket').unlink()
    (project / 'src/f1').chmod(0o644)
    for command in (['init', '-q'], ['add', '-A'], ['commit', '-qm', '1']):
        subprocess.run([*git, *command], cwd=project, check=True)
    ref = box(clean_cay, project)
    out = sh(clean_cay, ref, 'cd /p && git mv src src2 && git status --short')
    assert 'R  src/f0 -> src2/f0\n' in out and all(line.startswith('R  ') for line in out.splitlines())


def test_after_a_snapshot_and_in_forks(clean_cay):
    """What was made inside lies in a layer then, too."""
    ref = clean_cay.create()
    python(clean_cay, ref, TREE, '/tmp/t')
    before = shown(clean_cay, ref, '/tmp/t')
    clean_cay('snapshot', ref, check=True)
    python(clean_cay, ref, "import os; os.rename('/tmp/t', '/tmp/u')")
    fork = clean_cay('fork', ref, check=True).out.strip()
    clean_cay('snapshot', ref, check=True)
    for at in (ref, fork):
        assert shown(clean_cay, at, '/tmp/u') == before
        python(clean_cay, at, "import os; os.rename('/tmp/u', '/tmp/v'); os.rename('/tmp/v', '/tmp/w')")
        assert shown(clean_cay, at, '/tmp/w') == before
        assert sh(clean_cay, at, 'ls -d /tmp/?') == '/tmp/w\n'


def test_in_a_transaction(clean_cay, project):
    ref = box(clean_cay, project)
    move = "import os; os.rename('/p/src', '/p/new'); raise SystemExit({})"
    clean_cay('exec', '--tx', ref, '--', 'python3', '-c', move.format(3))
    assert sh(clean_cay, ref, 'ls /p') == 'src\n'
    clean_cay('exec', '--tx', ref, '--', 'python3', '-c', move.format(0), check=True)
    assert sh(clean_cay, ref, 'ls /p') == 'new\n'


def test_a_directory_of_the_template(clean_cay, mode):
    if mode != 'rootful':
        pytest.skip("without root the template's files belong to nobody inside")
    out = sh(clean_cay, clean_cay.create('--user', '0'), 'mv -T /usr/share/doc /usr/share/d2 && ls /usr/share | grep -x "d.*c\\|d2"')
    assert 'd2' in out.split() and 'doc' not in out.split()


def test_errors_are_the_kernels_own(clean_cay, project):
    ref = box(clean_cay, project)
    out = python(clean_cay, ref, RENAME + r'''
os.makedirs('/p/full/x'); open('/p/file', 'w').close(); os.mkdir('/p/shut'); os.mkdir('/p/empty'); os.chmod('/p/shut', 0o555)
tries = [('src', 'full', 0), ('src', 'src/sub/x', 0), ('src', 'file', 0), ('src', 'no/x', 0), ('src', '/tmp/x', 0),
         ('src', 'shut/x', 0), ('src', 'full', 1), ('src/.', 'x', 0), ('src', 'empty', 0)]
os.chdir('/p')
print([rename(*t) for t in tries])
''', before=('--user', '1000'))
    # ENOTEMPTY, EINVAL, ENOTDIR, ENOENT, EXDEV, EACCES, EEXIST, EBUSY
    assert out == '[39, 22, 20, 2, 18, 13, 17, 16, 0]\n'
    no_stage(clean_cay, ref)


def test_exchange(clean_cay, project):
    shutil.copytree(project / 'src/sub/deep', project / 'other')
    ref = box(clean_cay, project)
    python(clean_cay, ref, RENAME + r'''
os.chdir('/p'); open('file', 'w').write('x')
assert rename('src', 'other', 2) == 0 and sorted(os.listdir('src')) == ['f0', 'f1', 'f2'] and 'pipe' in os.listdir('other')
assert rename('other/sub', 'file', 2) == 0 and os.path.isfile('other/sub') and os.path.isdir('file/deep')
''')
    no_stage(clean_cay, ref)


def test_relative_to_descriptors_and_in_a_chroot(clean_cay, project, mode):
    ref = box(clean_cay, project)
    python(clean_cay, ref, r'''
import os
a, b = os.open('/p/src', os.O_RDONLY), os.open('/tmp', os.O_RDONLY)
os.chdir('/p')
os.rename('sub', 'sub2', src_dir_fd=a, dst_dir_fd=a)
assert os.path.isdir('src/sub2/deep')
try: os.rename('sub2', 'x', src_dir_fd=a, dst_dir_fd=b)
except OSError as e: assert e.errno == 18
else: assert False
''')
    if mode == 'rootful':
        python(clean_cay, ref, r'''
import os
os.chroot('/p/src'); os.chdir('/')
os.rename('/sub2', '/in'); os.rename('in', './out')
assert os.path.isdir('/out/deep')
''', before=('--user', '0'))


def test_a_rename_that_is_not_allowed_copies_nothing(clean_cay, mode):
    """Else any user inside could fill the disk with the template."""
    if mode != 'rootful':
        pytest.skip('without root there is only one user')
    ref = clean_cay.create()
    out = python(clean_cay, ref, RENAME + "print(rename('/usr', '/x'), rename('/usr/share', '/usr/x'))", before=('--user', '1000'))
    assert out == '13 13\n'
    assert '/usr' not in clean_cay('diff', ref).out
    assert not [e for e in clean_cay.events(ref) if e['kind'].startswith('file.')]


def test_what_runs_and_is_open_goes_on(clean_cay, project):
    """Files keep their inodes."""
    shutil.copy2('/usr/bin/sleep', project / 'src/sleep')
    ref = box(clean_cay, project)
    out = python(clean_cay, ref, r'''
import os, subprocess
os.chdir('/p')
runs = subprocess.Popen(['src/sleep', '100'])
f = open('src/f0', 'a')
os.rename('src', 'new')
f.write('more\n'); f.close()
assert open('new/f0').read().endswith('more\n') and runs.poll() is None
runs.kill(); runs.wait()
print(subprocess.run(['new/sleep', '0']).returncode)
''')
    assert out == '0\n'


def test_a_directory_with_a_mount_below_it_stays(clean_cay, project, tmp_path):
    other = tmp_path / 'other'
    (other / 'in').mkdir(parents=True)
    ref = clean_cay('create', '--dir', f'{project}:/p', '--dir', f'{other}:/p/src/sub/m', check=True).out.strip()
    before = shown(clean_cay, ref, '/p/src')
    assert python(clean_cay, ref, RENAME + "print(rename('/p/src', '/p/x'))") == '18\n'
    assert shown(clean_cay, ref, '/p/src') == before
    no_stage(clean_cay, ref)


def test_diff_trace_and_apply_tell_it_as_a_rename(clean_cay, project):
    (project / 'src/pipe').unlink()
    (project / 'src/sub/socket').unlink()
    (project / 'src/f1').chmod(0o644)
    (project / 'src/sub/deep').chmod(0o755)
    ref = box(clean_cay, project)
    python(clean_cay, ref, "import os; os.rename('/p/src', '/p/new')")
    assert clean_cay('diff', ref, check=True).out == 'R  /p/src/ -> /p/new/\n'
    changes = [e for e in clean_cay.events(ref) if e['kind'].startswith('file.')]
    assert [(e['kind'], e['from'], e['path'], e['type']) for e in changes] == [('file.rename', '/p/src', '/p/new', 'dir')]
    clean_cay('snapshot', ref, check=True)
    python(clean_cay, ref, "import os; os.rename('/p/new/sub', '/p/other'); open('/p/other/f0', 'a').write('more')")
    assert clean_cay('diff', ref, check=True).out == 'R  /p/src/ -> /p/new/\nR  /p/src/sub/ -> /p/other/\nR  /p/src/sub/f0 -> /p/other/f0\n'
    changes = [e for e in clean_cay.events(ref) if e['kind'].startswith('file.')][1:]
    assert [(e['kind'], e['path']) for e in changes] == [('file.rename', '/p/other'), ('file.change', '/p/other/f0')]
    clean_cay('apply', ref, check=True)
    assert sorted(os.listdir(project)) == ['new', 'other'] and sorted(os.listdir(project / 'other')) == ['deep', 'f0', 'f1', 'f2']
    assert (project / 'other/f0').read_text().endswith('more') and (project / 'new/link').is_symlink()


APPENDERS = r'''
import os, sys, threading, time
os.chdir('/p')
stop, lost, wrote = False, [], [0] * 4
def append(i):
    while not stop:
        for top in ('src', 'new'):
            try:
                with open(f'{top}/log{i}', 'r+') as f:
                    f.seek(0, 2); f.write(f'{wrote[i]}\n')
                    wrote[i] += 1
            except (FileNotFoundError, PermissionError): pass
            except OSError as e: lost.append(repr(e))
replaced = []
def replace():
    while not stop:
        for top in ('src', 'new'):
            try:
                with open(f'{top}/tmp', 'w') as f: f.write(f'{len(replaced)} ' * 100)
                os.replace(f'{top}/tmp', f'{top}/atom')
                replaced.append(top)
            except (FileNotFoundError, PermissionError): pass
            except OSError as e: lost.append(repr(e))
threads = [threading.Thread(target=append, args=(i,)) for i in range(4)] + [threading.Thread(target=replace)]
for t in threads: t.start()
time.sleep(0.05)
os.rename('src', 'new')
time.sleep(0.02)
stop = True
for t in threads: t.join()
assert not lost, lost
for i in range(4):
    assert open(f'new/log{i}').read().split() == [str(n) for n in range(wrote[i])], i
assert sum(wrote) > 0
assert open('new/atom').read() == f'{len(replaced) - 1} ' * 100, replaced[-3:]
'''


def test_nothing_that_is_written_meanwhile_is_lost(clean_cay, project):
    """While entries of a directory move, it is closed: nobody writes to a file of the same name."""
    for i in range(4):
        (project / f'src/log{i}').touch()
    for i in range(60):
        (project / f'src/pad{i}').write_text('x' * 10000)
    for _ in range(5):
        ref = box(clean_cay, project)
        python(clean_cay, ref, APPENDERS, before=('--user', '1000'))
        clean_cay('kill', ref, check=True)


def test_forged_marks_change_nothing(clean_cay, project):
    """What a sandbox writes into attributes of overlayfs is an attribute like any other, also in later generations."""
    ref = box(clean_cay, project)
    python(clean_cay, ref, r'''
import os
for name in ('user.overlay.redirect', 'user.overlay.opaque', 'user.overlay.metacopy', 'trusted.overlay.redirect'):
    try: os.setxattr('/p/src/sub', name, b'/etc')
    except PermissionError: assert name.startswith('trusted')
os.mkdir('/p/fake'); os.setxattr('/p/fake', 'user.overlay.redirect', b'/src')
os.rename('/p/src', '/p/new')
''')
    before = shown(clean_cay, ref, '/p/new')
    for _ in range(2):
        clean_cay('snapshot', ref, check=True)
        assert shown(clean_cay, ref, '/p/new') == before
        python(clean_cay, ref, "import os; os.rename('/p/new', '/p/x'); os.rename('/p/x', '/p/new')")
        assert sh(clean_cay, ref, 'ls -A /p/fake') == ''
    assert sh(clean_cay, ref, 'ls /p/new/sub') == 'deep\nf0\nf1\nf2\nsocket\n'


FLIP = r'''
import ctypes, os, threading
libc = ctypes.CDLL(None, use_errno=True)
os.chdir('/p')
name = ctypes.create_string_buffer(b'src', 8)
stop, seen = False, set()
def flip():
    while not stop:
        name.value = b'two'; name.value = b'src'
t = threading.Thread(target=flip); t.start()
for i in range(int(os.environ['ROUNDS'])):
    r = libc.renameat2(-100, name, -100, b'moved', 0)
    seen.add(0 if r == 0 else ctypes.get_errno())
    for back in ('src', 'two'):
        if r == 0 and not os.path.exists(back): os.rename('moved', back); break
stop = True; t.join()
print(sorted(seen))
'''


def test_a_path_that_changes_while_it_is_looked_at(clean_cay, project):
    """At worst the answer is EXDEV, as it would be anywhere else."""
    shutil.copytree(project / 'src/sub/deep', project / 'two')
    ref = box(clean_cay, project)
    before = len(sh(clean_cay, ref, 'find /p').splitlines())
    out = clean_cay('exec', '-e', 'ROUNDS=200', ref, '--', 'python3', '-c', FLIP, check=True).out
    assert set(eval(out)) <= {0, 2, 18}  # success, ENOENT, EXDEV
    assert len(sh(clean_cay, ref, 'find /p').splitlines()) == before
    no_stage(clean_cay, ref)


def big(project, n=2000):
    for i in range(n):
        with open(project / f'src/big{i}', 'w', encoding='ascii') as f:
            f.write('x' * 3000)


def test_a_caller_that_is_killed_in_the_midst(clean_cay, project):
    """The tree is whole, under the old name or the new one."""
    big(project)
    ref = box(clean_cay, project)
    for i in range(5):
        clean_cay('exec', '--timeout', f'{20 + 40 * i}ms', ref, '--', 'python3', '-c', "import os; os.rename('/p/src', '/p/new')")
        # The mover goes on without its caller.
        wait_until(lambda: sh(clean_cay, ref, 'ls -A /p; stat -c %a /p/*') in ('new\n755\n', 'src\n755\n'))
        sh(clean_cay, ref, 'if [ -e /p/new ]; then mv -T /p/new /p/src; fi')
    assert sh(clean_cay, ref, 'ls /p/src | grep -c big') == '2000\n'
    assert sh(clean_cay, ref, 'stat -c %a /p/src') == '755\n'
    no_stage(clean_cay, ref)


def mover(init):
    """Pids outside of the processes that make a directory ready, children of this init."""
    found = [int(p) for p in open(f'/proc/{init}/task/{init}/children', encoding='ascii').read().split()]
    workers = []
    for pid in found:
        try:
            workers += [int(p) for p in open(f'/proc/{pid}/task/{pid}/children', encoding='ascii').read().split()
                        if open(f'/proc/{p}/comm', encoding='ascii').read() == 'cay-init\n']
        except OSError:
            pass
    return workers


def test_a_mover_that_is_killed_is_undone(clean_cay, project):
    big(project)
    ref = box(clean_cay, project)
    init = clean_cay.json('show', ref)[0]['init_pid']
    killed = 0
    for _ in range(4):
        with clean_cay.popen('exec', ref, '--', 'python3', '-c', RENAME + "print(rename('/p/src', '/p/new'))",
                             stdout=subprocess.PIPE) as p:
            found = []
            while not found and p.poll() is None:  # without a pause: a mover lives for some 50 ms
                found = mover(init)
            for pid in found:
                try:
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
                except OSError:
                    pass
            out = p.communicate()[0]
        assert out.strip() in (b'18', b'0')
        sh(clean_cay, ref, 'if [ -e /p/new ]; then mv -T /p/new /p/src; fi')
        assert sh(clean_cay, ref, 'ls /p/src | grep -c big; stat -c %a /p/src') == '2000\n755\n'
    assert killed
    no_stage(clean_cay, ref)

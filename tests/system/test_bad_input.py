# SPDX-License-Identifier: Apache-2.0
"""What goes wrong is said in one line that names it, with the right code, and leaves nothing behind."""

import os
import shutil
import subprocess

import pytest

import caylib

rootful = pytest.mark.skipif(not caylib.ROOTFUL, reason='needs root to mount a small file system')
rootless = pytest.mark.skipif(caylib.ROOTFUL, reason='root needs no user namespaces of an unprivileged user')


def said(r, code, *parts, hint=False):
    assert r.code == code, r
    assert r.stdout == b'', r
    lines = r.err.splitlines()
    assert lines[0].startswith('cay') and len(lines) <= 2, r
    assert not hint or (len(lines) == 2 and lines[1].startswith('hint: ')), r
    for part in parts:
        assert part in r.err, r


@pytest.mark.parametrize('command, code', [('run', 125), ('create', 2), ('exec', 125), ('shell', 125), ('ls', 2), ('show', 2), ('ps', 2),
                                           ('kill', 2), ('cp', 2), ('trace', 2), ('gc', 2), ('version', 2), ('completion', 2)])
def test_an_unknown_option_is_a_usage_error(cay, command, code):
    said(cay(command, '--frobnicate', 'x', 'y'), code, "'--frobnicate'", hint=True)
    said(cay(command, '-Z', 'x'), code, 'Z', hint=True)


@pytest.mark.parametrize('args, code', [(['exec', 'nope', '--', 'true'], 125), (['show', 'nope'], 5), (['ps', 'nope'], 5), (['kill', 'nope'], 5),
                                        (['trace', 'nope'], 5), (['trace', 'verify', 'nope'], 5), (['cp', 'nope:/x', '-'], 5),
                                        (['shell', 'nope'], 125)])
def test_a_bad_id_is_not_found(cay, args, code):
    said(cay(*args), code, "'nope'", hint=True)


@pytest.mark.parametrize('template', ['nope', 'dir:/no/such', 'dir:', 'dir:relative', 'dir:/etc/passwd', '', '../host', 'host/x'])
def test_a_missing_template_is_said(cay, template):
    for command, code in ((['run', '--template', template, '--', 'true'], {125}), (['create', '--template', template], {1, 2, 4, 5})):
        r = cay(*command)
        assert r.code in code and r.stdout == b'' and r.err.startswith('cay'), r
        assert (template.replace('dir:', '') or 'template') in r.err, r


def test_an_unreadable_dir_is_said(cay, tmp_path):
    if caylib.ROOTFUL:
        said(cay('run', '--dir', '/proc/1/no', '--', 'true'), 125, '/proc/1/no')
        return
    os.chmod(tmp_path, 0)
    try:
        said(cay('run', '--dir', tmp_path, '--', 'true'), 125, str(tmp_path))
        said(cay('create', '--ro', tmp_path / 'x'), cay('create', '--ro', tmp_path / 'x').code, str(tmp_path))
    finally:
        os.chmod(tmp_path, 0o700)


def test_a_command_that_does_not_exist_leaves_nothing(cay):
    said(cay('run', '--', 'no-such-command'), 127, "'no-such-command'")


# --- the state directory ---

def with_state(cay, state):
    return {**cay.env, 'CAY_STATE': str(state)}


@pytest.mark.parametrize('command', [['run', '--', 'true'], ['create'], ['ls']])
def test_a_state_directory_that_cannot_be_made_is_said(cay, command, tmp_path):
    (tmp_path / 'file').write_text('')
    for state in (tmp_path / 'file', tmp_path / 'file/below', '/proc/no/such', 'relative/path', '/dev/null'):
        r = cay(*command, env={'CAY_STATE': str(state)}, cwd=tmp_path)
        assert r.code in ((125,) if command[0] == 'run' else (1, 2, 4)), r
        assert r.stdout == b'' and r.err.startswith('cay'), r
        assert os.path.basename(str(state)) in r.err or str(state) in r.err, r
    assert os.listdir(tmp_path) == ['file']


@rootless
def test_a_state_directory_without_permission_is_said(cay, tmp_path):
    (tmp_path / 's').mkdir()
    os.chmod(tmp_path / 's', 0o500)
    said(cay('run', '--', 'true', env={'CAY_STATE': str(tmp_path / 's')}), 125, str(tmp_path / 's'))
    said(cay('run', '--', 'true', env={'CAY_STATE': '/root/cay'}), 125, '/root/cay')
    os.chmod(tmp_path / 's', 0o700)


@pytest.mark.parametrize('mode', [0o777, 0o755, 0o750, 0o711, 0o702])
def test_a_state_directory_that_is_open_to_others_is_refused(cay, tmp_path, mode):
    state = tmp_path / 's'
    state.mkdir()
    os.chmod(state, mode)
    r = cay('run', '--', 'true', env={'CAY_STATE': str(state)})
    said(r, 125, str(state))
    assert f'(mode {mode:04o})' in r.err and f'chmod 700 {state}' in r.err, r
    assert os.listdir(state) == []


def test_a_damaged_catalog_is_said(cay, tmp_path):
    state = tmp_path / 's'
    state.mkdir(mode=0o700)
    (state / 'catalog.db').write_bytes(b'this is no database' * 1000)
    for command, code in ((['ls'], (1,)), (['create'], (1,)), (['run', '--name', 'x', '--', 'true'], (125,))):
        r = cay(*command, env={'CAY_STATE': str(state)}, timeout=60)
        assert r.code in code and 'catalog' in r.err, r
    assert caylib.list_dir(state / 'sandboxes') == []


# --- a full disk ---

@pytest.fixture
def small_disk(tmp_path):
    """Mounts a tmpfs of a size at a path; unmounted afterwards."""
    made = []

    def make(size):
        path = tmp_path / f'disk{len(made)}'
        path.mkdir()
        subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={size},mode=0700', 'cay-test', path], check=True)
        made.append(path)
        return path

    yield make
    for path in made:
        subprocess.run(['umount', '-l', path], check=True)


def nothing_left(state):
    """In a moment: `cay run` says how its command has ended before everything is removed."""
    caylib.wait_until(lambda: caylib.entries(str(state)) == set(), what='the end of what is left')
    assert caylib.rows(str(state)) == set()


@rootful
def test_a_full_disk_is_said_at_every_size(cay, small_disk):
    """Full before the template, in it, and before the sandbox: never a crash, never a leftover."""
    hinted = False
    for size in ('4k', '64k', '256k', '1m', '4m', '16m'):
        state = small_disk(size)
        r = cay('run', '--', 'true', env={'CAY_STATE': str(state)}, timeout=60)
        if r.code != 0:
            said(r, 125)
            assert 'No space left' in r.err or 'full' in r.err, r
            if 'base layer' in r.err:
                assert f"hint: make room in '{state}', or set CAY_STATE\n" in r.err, r
                hinted = True
        nothing_left(state)
    assert hinted


@rootful
def test_a_disk_that_fills_up_later_is_said(cay, small_disk):
    state = small_disk('600m')
    env = {'CAY_STATE': str(state)}
    cay('run', '--', 'true', env=env, check=True, timeout=60)
    with open(state / 'filler', 'wb') as f:
        try:
            while True:
                f.write(bytes(1 << 20))
        except OSError:
            pass
    r = cay('run', '--', 'true', env=env)
    said(r, 125)
    assert 'No space left' in r.err or 'full' in r.err, r
    r = cay('create', env=env)
    assert r.code == 1 and ('No space left' in r.err or 'full' in r.err), r
    os.unlink(state / 'filler')
    cay('run', '--', 'true', env=env, check=True)
    nothing_left(state)


@rootful
def test_a_sandbox_that_fills_the_disk_gets_the_error_and_ends_cleanly(cay, small_disk):
    state = small_disk('600m')
    env = {'CAY_STATE': str(state)}
    r = cay('run', '--', 'sh', '-c', 'head -c 2G /dev/zero > ~/big; echo code $?', env=env, timeout=60)
    assert r.code == 0 and r.out == 'code 1\n' and 'No space left' in r.err, r
    nothing_left(state)
    cay('run', '--', 'true', env=env, check=True)


# --- a host that allows no user namespaces ---

NO_USERNS = '''
import ctypes, errno, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
NEWUSER, ALLOW, DENY = 0x10000000, 0x7fff0000, 0x00050000 | errno.EPERM
def op(code, jt, jf, k): return struct.pack('HBBI', code, jt, jf, k)
# clone3 has its flags in memory, where a filter cannot look: it is unknown, as in many containers
prog = b''.join([op(0x20, 0, 0, 0),                 # number
    op(0x15, 0, 1, 435), op(0x06, 0, 0, 0x00050000 | errno.ENOSYS),   # clone3
    op(0x15, 1, 0, 56), op(0x15, 0, 3, 272),        # clone, unshare
    op(0x20, 0, 0, 16), op(0x45, 0, 1, NEWUSER), op(0x06, 0, 0, DENY),
    op(0x06, 0, 0, ALLOW)])
buf = ctypes.create_string_buffer(prog, len(prog))
class Prog(ctypes.Structure): _fields_ = [('n', ctypes.c_ushort), ('p', ctypes.c_void_p)]
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Prog(len(prog) // 8, ctypes.addressof(buf))), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
'''


def without_userns(cay, *args):
    command = ['/usr/bin/python3', '-c', NO_USERNS, caylib.CAY, *args]
    done = subprocess.run(command, env=cay.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
    return caylib.Result(args, done.returncode, done.stdout, done.stderr)


@rootless
def test_forbidden_user_namespaces_are_said_with_what_to_do(cay):
    r = without_userns(cay, 'run', '--', 'true')
    said(r, 125, 'namespace', hint=True)
    r = without_userns(cay, 'create')
    assert r.code in (1, 4) and 'namespace' in r.err and 'hint: ' in r.err, r


@rootless
def test_a_limit_of_no_user_namespaces_is_said_with_what_to_do(cay):
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$CAY" run -- true'
    with caylib.Process(['unshare', '--user', '--map-current-user', '--keep-caps', 'sh', '-c', script], stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**cay.env, 'CAY': caylib.CAY}) as p:
        p.cay = cay
        r = p.finish()
    if 'max_user_namespaces' in r.err and 'Permission' in r.err:
        pytest.skip('LOUD: the limit cannot be set in a namespace of our own here')
    said(r, 125, 'namespace', hint=True)


# --- an incomplete installation ---

def test_a_cay_without_its_warden_says_so(cay, tmp_path):
    os.chmod(tmp_path, 0o755)
    alone = tmp_path / 'cay'
    shutil.copy2(caylib.CAY, alone)
    done = subprocess.run([alone, 'run', '--', 'true'], env=cay.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, check=False)
    said(caylib.Result(['run'], done.returncode, done.stdout, done.stderr), 125, 'cay-warden', str(alone), hint=True)
    assert subprocess.run([alone, 'ls'], env=cay.env, check=False).returncode == 0


def test_a_cay_without_its_init_says_so(cay, tmp_path):
    os.chmod(tmp_path, 0o755)
    for name in ('cay', 'cay-warden'):
        shutil.copy2(os.path.join(os.path.dirname(caylib.CAY), name), tmp_path / name)
    done = subprocess.run([tmp_path / 'cay', 'run', '--', 'true'], env=cay.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, check=False)
    said(caylib.Result(['run'], done.returncode, done.stdout, done.stderr), 125, 'cay-init')


def test_a_broken_warden_says_so(cay, tmp_path):
    os.chmod(tmp_path, 0o755)
    shutil.copy2(caylib.CAY, tmp_path / 'cay')
    shutil.copy2('/bin/true', tmp_path / 'cay-warden')
    done = subprocess.run([tmp_path / 'cay', 'run', '--', 'true'], env=cay.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, check=False)
    said(caylib.Result(['run'], done.returncode, done.stdout, done.stderr), 125, 'warden')


def test_too_few_descriptors_are_said(cay):
    with caylib.shell(cay, 'ulimit -n 8; exec "$CAY" run -- true') as p:
        r = p.finish()
        assert r.code == 125 and r.err.startswith('cay'), r
    assert cay('run', '--', 'true').code == 0

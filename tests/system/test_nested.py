# SPDX-License-Identifier: Apache-2.0
"""--nested: sandboxes inside a sandbox, and what stays closed all the same."""

import json
import os
import shutil
import subprocess

import pytest

import caylib

BWRAP = ['bwrap', '--unshare-all', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev']
PROGRAMS = os.path.dirname(os.path.abspath(caylib.CAY))
needs_bwrap = pytest.mark.skipif(not shutil.which('bwrap'), reason='needs bubblewrap')
rootful = pytest.mark.skipif(not caylib.ROOTFUL, reason='needs root: a rootless sandbox has no root inside')

# Runs a script as root of a user namespace of its own, with a mount namespace.
ROOT_IN_ITS_OWN = '''
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
uid, gid = os.getuid(), os.getgid()
if libc.unshare(0x10000000 | 0x00020000):
    print("unshare", errno.errorcode[ctypes.get_errno()])
    sys.exit()
open("/proc/self/setgroups", "w").write("deny")
open("/proc/self/uid_map", "w").write(f"0 {uid} 1")
open("/proc/self/gid_map", "w").write(f"0 {gid} 1")
def told(r):
    return "ok" if r == 0 else errno.errorcode[ctypes.get_errno()]
'''


@pytest.fixture
def nested(cay, no_leftovers):
    ref = cay.create('--nested')
    yield ref
    cay('kill', ref)


def python(cay, script, *args, **options):
    return cay('run', *args, '--', 'python3', '-c', script, **options)


@needs_bwrap
@pytest.mark.parametrize('profile', ['dev', 'locked'])
def test_bubblewrap_works_with_it_and_not_without(cay, profile):
    r = cay('run', '--profile', profile, '--nested', '--', *BWRAP, 'sh', '-c', 'echo $$; ls /proc/1/exe >/dev/null && echo inner', check=True)
    assert r.out.split() == ['2', 'inner'], r
    r = cay('run', '--profile', profile, '--', *BWRAP, 'true')
    assert r.code == 1 and 'namespace' in r.err, r


HINT = 'cay: refused: user namespace (commands may not make namespaces); to allow it make the sandbox with --nested'


@pytest.mark.parametrize('trace', ['full', 'calls'])
@pytest.mark.parametrize('command', [['unshare', '-U', 'true'], [*BWRAP, 'true']], ids=['unshare', 'bwrap'])
def test_without_it_the_first_refusal_is_explained(cay, command, trace):
    """When it happens, once for each call; other namespaces are refused as well, but --nested is no help for them."""
    if not shutil.which(command[0]):
        pytest.skip(f'needs {command[0]}')
    script = '"$@"; "$@"; read x'
    with cay.popen('run', '--trace', trace, '--', 'sh', '-c', script, 'sh', *command, stdin=subprocess.PIPE,
                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as p:
        p.read_until(HINT.encode())
        p.stdin.write(b'go\n')
        r = p.finish()
    assert HINT not in r.out, r
    r = cay('run', '--trace', trace, '--', 'python3', '-c', 'import ctypes; print(ctypes.CDLL(None).unshare(0x00020000))', check=True)
    assert r.out == '-1\n' and r.err == '', r
    denied = json.loads(cay('run', '--json', '--trace', trace, '--', *command).err.splitlines()[-1])['denied']
    assert [(d['name'], d['allow'], d['count']) for d in denied] == [('user namespace', '--nested', 1)], denied


@needs_bwrap
@rootful
def test_bubblewrap_works_for_root_inside(cay):
    assert cay('run', '--nested', '--user', 'root', '--', *BWRAP, 'echo', 'inner', check=True).out == 'inner\n'


@needs_bwrap
def test_it_works_after_a_rollback_and_in_a_fork(cay, nested):
    cay('exec', nested, '--', 'touch', '/tmp/before', check=True)
    snapshot = cay('snapshot', nested, check=True).out.split()[0]
    cay('exec', nested, '--', 'touch', '/tmp/after', check=True)
    cay('rollback', nested, snapshot, check=True)
    assert cay('exec', nested, '--', *BWRAP, 'ls', '/tmp', check=True).out == 'before\n'
    fork = cay('fork', nested, check=True).out.split()[0]
    try:
        assert cay('exec', fork, '--', *BWRAP, 'ls', '/tmp', check=True).out == 'before\n'
    finally:
        cay('kill', fork)


def test_cay_works_in_cay(cay):
    inner = 'cd /tmp && /cay/cay run --trace calls -- sh -c "echo \\$$ inner"'
    r = cay('run', '--nested', '--ro', f'{PROGRAMS}:/cay', '--', 'sh', '-c', inner, timeout=120)
    assert r.code == 0 and r.out.split()[1:] == ['inner'], r
    r = cay('run', '--nested', '--ro', f'{PROGRAMS}:/cay', '--', '/cay/cay', 'run', '--', 'true', timeout=120)
    assert r.code != 0 and '--trace calls' in r.err, r


def test_show_and_the_trace_say_so(cay, nested):
    assert 'nested' in cay('show', nested, check=True).out
    assert json.loads(cay('show', nested, '--json', check=True).out)['options']['nested'] is True
    first = json.loads(cay('trace', '--json', nested, check=True).out.splitlines()[0])
    assert first['kind'] == 'sandbox.create' and first['nested'] is True


def test_mounts_of_the_sandbox_stay_locked(cay):
    script = ROOT_IN_ITS_OWN + '''
MNT_DETACH, MS_REMOUNT, MS_BIND = 2, 32, 4096
for path in (b"/proc/sys", b"/proc/kallsyms", b"/sys", b"/usr", b"/dev/null"):
    if os.path.ismount(path):
        print(path.decode(), told(libc.umount2(path, MNT_DETACH)))
print("remount", told(libc.mount(None, b"/sys", None, MS_REMOUNT | MS_BIND, None)))
'''
    r = python(cay, script, '--nested', check=True)
    lines = r.out.splitlines()
    assert len(lines) >= 4 and all(line.split()[1] in ('EINVAL', 'EPERM') for line in lines), r


def test_the_way_out_of_a_chroot_ends_at_the_own_root(cay):
    script = ROOT_IN_ITS_OWN + '''
os.makedirs("/tmp/deep/down")
os.chroot("/tmp/deep/down")
for _ in range(50):
    os.chdir("..")
os.chroot(".")
print(sorted(os.listdir("/")) == sorted(set(os.listdir("/")) | {"usr", "etc", "proc"}), os.path.exists("/a"), os.path.exists("/p"))
'''
    assert python(cay, script, '--nested', check=True).out == 'True False False\n'


def test_sockets_that_break_kernels_stay_closed_for_a_nested_root(cay):
    script = ROOT_IN_ITS_OWN + '''
import socket
libc.unshare(0x40000000)
for name, args in (("raw", (socket.AF_INET, socket.SOCK_RAW, 1)), ("packet", (socket.AF_PACKET, socket.SOCK_RAW, 0)),
                   ("netfilter", (socket.AF_NETLINK, socket.SOCK_RAW, 12)), ("xfrm", (socket.AF_NETLINK, socket.SOCK_RAW, 6))):
    try:
        socket.socket(*args)
        print(name, "open")
    except OSError as e:
        print(name, errno.errorcode[e.errno])
'''
    r = python(cay, script, '--nested', check=True)
    assert [line.split()[1] for line in r.out.splitlines()] == ['EPERM'] * 4, r


def test_namespaces_are_bounded(cay):
    script = '''
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
r, w = os.pipe()
for n in range(1000):
    told_r, told_w = os.pipe()
    if os.fork() == 0:
        bad = libc.unshare(0x10000000)
        os.write(told_w, b"x" if bad else b".")
        os.close(w)
        os.read(r, 1)
        os._exit(0)
    os.close(told_w)
    failed = os.read(told_r, 1) == b"x"
    os.close(told_r)
    if failed:
        break
print(n)
'''
    r = python(cay, script, '--nested', check=True)
    assert 100 < int(r.out) <= 256, r


def test_a_sandbox_in_a_sandbox_dies_with_it(cay, no_leftovers):
    ref = cay.create('--nested')
    cay('exec', ref, '--', 'sh', '-c', 'unshare -Urfp --mount-proc unshare -rfp --mount-proc sleep 1000 >/dev/null 2>&1 &', check=True)
    caylib.wait_until(lambda: 'sleep 1000' in cay('ps', ref, check=True).out, what='a process two levels below')
    cay('kill', ref, check=True)


@rootful
def test_what_renames_a_directory_for_a_nested_root_stays_out_of_its_proc(cay, tmp_path):
    """It has the rights of root, and must not follow names that the caller has made."""
    (tmp_path / 'src').mkdir()
    (tmp_path / 'src/file').write_text('x')
    os.chmod(tmp_path, 0o755)
    ref = cay.create('--nested', '--dir', f'{tmp_path}:/p')
    try:
        cay('exec', '--user', '0', ref, '--', 'sh', '-c', 'touch /tmp/roots; chmod 600 /tmp/roots', check=True)
        script = ROOT_IN_ITS_OWN + '''
MS_BIND, MS_REC = 4096, 16384
os.makedirs("/tmp/r")
print(told(libc.mount(b"x", b"/tmp/r", b"tmpfs", 0, None)))
for name in ("p", "proc/self/fd"):
    os.makedirs("/tmp/r/" + name)
open("/tmp/r/roots", "w").close()
print(told(libc.mount(b"/p", b"/tmp/r/p", None, MS_BIND | MS_REC, None)), told(libc.mount(b"/tmp/roots", b"/tmp/r/roots", None, MS_BIND, None)))
for fd in range(3, 64):
    os.symlink("/roots", f"/tmp/r/proc/self/fd/{fd}")
os.chroot("/tmp/r")
os.chdir("/p")
os.chmod("src", 0o4755)
os.rename("src", "new")
print(oct(os.stat("new").st_mode), os.listdir("new"))
'''
        r = cay('exec', '--user', '1000', ref, '--', 'python3', '-c', script)
        seen = cay('exec', '--user', '0', ref, '--', 'stat', '-c', '%a %u', '/tmp/roots', check=True).out
        assert seen == '600 0\n', r
        assert r.out.splitlines() == ['ok', 'ok ok', "0o44755 ['file']"], r
    finally:
        cay('kill', ref)


@rootful
def test_capabilities_of_a_nested_root_open_no_directory_for_a_rename(cay, nested):
    cay('exec', '--user', '0', nested, '--', 'sh', '-c', 'mkdir -p /tmp/shut/from /tmp/shut/full/x; chmod 700 /tmp/shut', check=True)
    cay('snapshot', nested, check=True)
    script = ROOT_IN_ITS_OWN + 'print(told(libc.rename(b"/tmp/shut/from", b"/tmp/shut/full")))'
    assert cay('exec', '--user', '1000', nested, '--', 'python3', '-c', script, check=True).out == 'EACCES\n'

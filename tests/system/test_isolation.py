# SPDX-License-Identifier: Apache-2.0
"""What a command sees of the host: nothing that it was not given."""

import ctypes
import os
import socket
import subprocess
import tempfile

import pytest

import caylib

rootful = pytest.mark.skipif(not caylib.ROOTFUL, reason='needs root: a rootless sandbox has no root inside')


def sh(cay, script, *args, **options):
    return cay('run', *args, '--', 'sh', '-c', script, **options)


def python(cay, script, *args, **options):
    return cay('run', *args, '--', 'python3', '-c', script, **options)


# --- network ---

def test_there_is_only_lo(cay):
    r = sh(cay, 'sed 1,2d /proc/net/dev | cut -d: -f1; sed 1d /proc/net/route')
    assert r.out.split() == ['lo'], r


def test_lo_works(cay):
    script = 'import socket\n' \
             'for family, host in ((socket.AF_INET, "127.0.0.1"),):\n' \
             '    s = socket.socket(family); s.bind((host, 0)); s.listen(1)\n' \
             '    c = socket.create_connection(s.getsockname(), 5); p, _ = s.accept()\n' \
             '    c.sendall(b"ping"); print(p.recv(4).decode(), socket.gethostbyname("localhost"))'
    assert python(cay, script).out == 'ping 127.0.0.1\n'


def test_services_of_the_host_are_out_of_reach(cay):
    with socket.create_server(('127.0.0.1', 0)) as server:
        r = python(cay, f'import socket; socket.create_connection(("127.0.0.1", {server.getsockname()[1]}), 3)')
        assert r.code == 1 and 'ConnectionRefused' in r.err, r
    r = python(cay, 'import socket; socket.create_connection(("192.0.2.1", 80), 3)')
    assert r.code == 1 and 'Network is unreachable' in r.err, r


def test_abstract_sockets_of_the_host_are_out_of_reach(cay):
    name = f'\0cay-canary-{os.getpid()}'
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen(1)
        r = python(cay, f'import socket; s = socket.socket(socket.AF_UNIX); s.connect({name!r})')
        assert r.code == 1 and 'ConnectionRefused' in r.err, r


# --- processes ---

def test_no_process_of_the_host_is_seen(cay):
    r = sh(cay, 'for p in /proc/[0-9]*; do tr "\\0" " " < $p/cmdline; echo; done')
    seen = [line.split(' ')[0] for line in r.out.splitlines() if line]
    assert seen[0] == 'cay-init' and set(seen) <= {'cay-init', 'sh', 'tr'}, r


def test_pid_1_is_init(cay):
    assert sh(cay, 'cat /proc/1/comm; tr "\\0" "\\n" < /proc/1/cmdline').out == 'cay-init\ncay-init\n'
    assert sh(cay, 'echo $$').out.strip() != '1'


def test_pid_1_cannot_be_looked_into(cay):
    args = [[]] + ([['--user', 'root']] if caylib.ROOTFUL else [])
    for user in args:
        r = sh(cay, 'readlink /proc/1/exe; readlink /proc/1/cwd; readlink /proc/1/fd/*; ls /proc/1/fd/*/; head -c 1 /proc/1/mem; cat /proc/1/environ', *user)
        assert r.stdout == b'', r


def test_ipc_is_our_own(cay):
    r = sh(cay, 'sed -s 1d /proc/sysvipc/shm /proc/sysvipc/sem /proc/sysvipc/msg; ls -A /dev/shm')
    assert r.stdout == b'' and r.code == 0, r


def test_every_namespace_differs_from_the_hosts(cay):
    names = ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'user', 'uts']
    r = sh(cay, 'for n in ' + ' '.join(names) + '; do readlink /proc/self/ns/$n; done')
    inside = dict(zip(names, r.out.split()))
    same = [n for n in names if inside[n] == os.readlink(f'/proc/self/ns/{n}')]
    assert not same, same


# --- /proc, /dev, /sys ---

def test_proc_masks_are_empty(cay):
    names = ['kcore', 'keys', 'key-users', 'kallsyms', 'kmsg', 'slabinfo', 'timer_list', 'vmallocinfo', 'interrupts',
             'iomem', 'ioports', 'config.gz', 'sysrq-trigger', 'sched_debug']
    for user in [[]] + ([['--user', 'root']] if caylib.ROOTFUL else []):
        r = sh(cay, 'cd /proc; for n in ' + ' '.join(names) + '; do test -e $n && head -c 1 $n; done; ls -A acpi driver scsi asound 2>/dev/null | grep -v :', *user)
        assert r.out.strip() == '', r


def test_what_others_mask_or_show_read_only_is_so_here(cay):
    """Moby's list, from the table of mounts: what is behind a mask nobody could tell by reading."""
    masked = ['acpi', 'asound', 'interrupts', 'kcore', 'keys', 'latency_stats', 'sched_debug', 'scsi', 'sysrq-trigger',
              'timer_list', 'timer_stats']
    mounts = {f[1]: f[3].split(',') for f in map(str.split, sh(cay, 'cat /proc/mounts', check=True).out.splitlines())}
    for path in (f'/proc/{name}' for name in masked + ['bus', 'fs', 'irq', 'sys']):
        assert not os.path.exists(path) or 'ro' in mounts.get(path, ()), f'{path}: {mounts.get(path)}'
    assert {'ro', 'nosuid', 'nodev', 'noexec'} <= set(mounts['/sys'])


def test_proc_sys_cannot_be_written(cay):
    for user in [[]] + ([['--user', 'root']] if caylib.ROOTFUL else []):
        r = sh(cay, 'echo x > /proc/sys/kernel/core_pattern; echo 1 > /proc/sys/vm/drop_caches; echo b > /proc/sysrq-trigger; echo x > /proc/sys/kernel/hostname', *user)
        assert r.err.count('Read-only file system') + r.err.count('Permission denied') + r.err.count('Directory nonexistent') >= 3, r
        assert r.code != 0


def test_dev_is_exactly_what_is_needed(cay):
    r = sh(cay, 'cd /dev; ls -A; ls -A shm mqueue | grep -v :; find . -type b')
    assert r.out.split() == ['fd', 'full', 'mqueue', 'null', 'ptmx', 'pts', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'tty',
                             'urandom', 'zero'], r


def test_devices_work(cay):
    script = 'echo x > /dev/null && head -c 4 /dev/zero | od -An -tx1 && head -c 9 /dev/urandom | wc -c && ' \
             '! echo x 2>/dev/null > /dev/full && echo ok'
    assert sh(cay, script).out.split() == ['00', '00', '00', '00', '9', 'ok']


def test_no_device_node_can_be_made(cay):
    for user in [[]] + ([['--user', 'root']] if caylib.ROOTFUL else []):
        r = sh(cay, 'cd /tmp; mknod a c 1 3; mknod b b 7 0; mknod /dev/c c 1 3; mknod /dev/shm/d c 1 3; ls /tmp /dev/c /dev/shm 2>/dev/null | grep -v :', *user)
        assert r.out.strip() == '', r


@rootful
def test_modes_and_owners_of_the_hosts_devices_cannot_be_changed(cay):
    before = [os.stat(f'/dev/{n}')[:6] for n in ('null', 'zero', 'full', 'tty')]
    r = sh(cay, 'for n in null zero full tty; do chmod 600 /dev/$n; chown 5:5 /dev/$n; rm -f /dev/$n; mv /dev/$n /dev/x; ln -f /dev/$n /tmp/$n; done; echo x', '--user', 'root')
    assert r.code == 0, r
    assert [os.stat(f'/dev/{n}')[:6] for n in ('null', 'zero', 'full', 'tty')] == before


def test_sys_has_only_the_number_of_processors(cay):
    r = sh(cay, 'find /sys -type f | sed "s/cpu[0-9][0-9]*/cpuN/" | sort -u; find /sys ! -type f ! -type d')
    top = '/sys/devices/system/cpu'
    assert set(r.out.split()) <= {f'{top}/online', f'{top}/possible', f'{top}/present',
                                  *(f'{top}/cpuN/topology/{name}' for name in ('core_id', 'core_siblings', 'physical_package_id', 'thread_siblings'))}, r


# --- secrets of the host ---

def test_homes_of_the_host_are_hidden(cay):
    assert sh(cay, 'ls -A /home').out == 'user\n'
    ours = set(os.listdir('/etc/skel')) | {'.local', '.npmrc'}
    assert set(sh(cay, 'ls -A ~').out.split()) <= ours and sh(cay, 'find ~/.local -type f').out == ''
    if caylib.ROOTFUL:
        assert sh(cay, 'ls -A /root', '--user', 'root').out == ''


def test_passwords_of_the_host_are_hidden(cay):
    user = ['--user', 'root'] if caylib.ROOTFUL else []
    r = sh(cay, 'cut -d: -f2 /etc/shadow | sort -u; cat /etc/gshadow | cut -d: -f2 | sort -u; ls /etc/shadow- /etc/ssh/*key 2>/dev/null', *user)
    assert set(r.out.split()) <= {'*', '!'}, r


def test_tmp_run_and_var_tmp_of_the_host_are_hidden(cay):
    with tempfile.NamedTemporaryFile(prefix='cay-test-canary-', dir='/tmp'), \
            tempfile.NamedTemporaryFile(prefix='cay-test-canary-', dir='/var/tmp'):
        r = sh(cay, 'ls -A /tmp /var/tmp; find / -xdev -name "cay-test-canary-*" 2>/dev/null')
        assert 'canary' not in r.out, r
    assert sh(cay, 'find /run -type s').out == ''


def test_the_state_directory_is_hidden(cay):
    user = ['--user', 'root'] if caylib.ROOTFUL else []
    r = sh(cay, f'ls -A {cay.state}; ls {cay.state}/catalog.db; find / -xdev -name catalog.db 2>/dev/null; '
           f'grep -c {cay.state} /proc/mounts /proc/self/mountinfo', *user)
    assert r.out == '/proc/mounts:0\n/proc/self/mountinfo:0\n', r


def test_no_path_of_the_host_shows_in_the_mount_table(cay, tmp_path):
    r = cay('run', '--dir', f'{tmp_path}:/w', '--', 'cat', '/proc/self/mountinfo', check=True)
    assert 'cay-test' not in r.out and str(tmp_path.parent) not in r.out, r


# --- descriptors, working directory, keyring ---

FDS = 'import os; print(sorted(int(n) for n in os.listdir("/proc/self/fd"))[:-1])'


def test_a_command_has_three_descriptors(cay):
    assert python(cay, FDS).out == '[0, 1, 2]\n'


def test_descriptors_that_leak_into_cay_do_not_reach_the_command(cay):
    with open('/etc/passwd', encoding='utf-8') as f, tempfile.TemporaryFile() as g:
        fds = [os.dup(f.fileno()) for _ in range(3)] + [g.fileno(), os.open('/', os.O_PATH)]
        for fd in fds:
            os.set_inheritable(fd, True)
        try:
            assert python(cay, FDS, pass_fds=fds).out == '[0, 1, 2]\n'
            ref = cay('create', pass_fds=fds, check=True).out.strip()
            assert cay('exec', ref, '--', 'python3', '-c', FDS, pass_fds=fds).out == '[0, 1, 2]\n'
            warden, init = cay.warden(ref), cay.json('show', ref)[0]['init_pid']
            for pid in (warden, init):
                links = [os.readlink(f'/proc/{pid}/fd/{n}') for n in os.listdir(f'/proc/{pid}/fd')] \
                    if caylib.ROOTFUL or pid == warden else []
                assert '/etc/passwd' not in links, links
        finally:
            cay('kill', '--all', '--yes', check=True)
            for fd in fds[:3] + fds[4:]:
                os.close(fd)


def test_descriptors_of_other_calls_are_not_inherited(cay, box):
    with cay.popen('exec', box, '--', 'sh', '-c', 'exec 7</etc/passwd; echo ready; cat', stdin=subprocess.PIPE) as p:
        p.read_until(b'ready\n')
        assert cay('exec', box, '--', 'python3', '-c', FDS).out == '[0, 1, 2]\n'
        p.stdin.close()
        p.stdin = None
        assert p.wait(10) == 0


@pytest.mark.parametrize('path', ['/proc/self/fd/3', '/proc/self/fd/7', '/proc/self/fd/20', '/proc/1/root', '/proc/1/cwd', '/proc/self/fd/0/..'])
def test_a_working_directory_through_a_descriptor_is_refused(cay, path):
    r = cay('run', '--cwd', path, '--', 'pwd')
    assert r.code == 125 and r.stdout == b'', r


def test_the_root_cannot_be_left_upwards(cay):
    r = sh(cay, 'cd /../../..; pwd; ls -d home/user; cd -P /proc/self/root/..; ls -d home/user; ls /proc/self/cwd/../../../../home')
    assert r.out.split() == ['/', 'home/user', 'home/user', 'user'], r


@rootful
def test_root_inside_cannot_mount_unmount_or_remount(cay):
    script = 'mount -o remount,rw /proc/sys; mount -o remount,bind,rw /proc/sys; umount /proc/kcore; umount /proc/keys; umount /sys; umount -l /dev; ' \
             'umount -l /proc; mount -o remount,rw /sys; mount -t tmpfs t /mnt; mount --bind / /mnt; mount -t proc p /mnt; ' \
             'umount /; mount --make-shared /; echo x > /proc/sys/kernel/domainname; ls -A /mnt /sys; grep -c . /proc/mounts'
    plain = sh(cay, 'grep -c . /proc/mounts').out
    r = sh(cay, script, '--user', 'root')
    assert r.out == f'/mnt:\n\n/sys:\ndevices\n{plain}', r


@rootful
def test_below_the_root_is_a_keel_that_is_closed_and_read_only(cay, box):
    """Where one would be who left the root: seen from outside, with all rights."""
    pid = os.fork()
    if pid == 0:
        ns = os.open(f"/proc/{cay.json('show', box)[0]['init_pid']}/ns/mnt", os.O_RDONLY)
        there = ctypes.CDLL(None).setns(ns, 0) == 0  # at the root of its mounts
        mode, flags = os.stat('/').st_mode & 0o7777, os.statvfs('/').f_flag
        os._exit(not (there and sorted(os.listdir('/')) == ['a', 'b'] and mode == 0 and flags & os.ST_RDONLY))
    assert os.waitpid(pid, 0)[1] == 0


@rootful
def test_root_inside_is_not_root_outside(cay, box):
    with cay.popen('exec', '--user', 'root', box, '--', 'sh', '-c', 'echo $$; exec sleep 60') as p:
        p.read_until(b'\n')
        sleeper = next(pid for pid in caylib.family(caylib.processes()) if caylib.processes().get(pid, (0, 0, ''))[2] == 'sleep')
        status = caylib.read_text(f'/proc/{sleeper}/status')
        uid = int(status.split('Uid:')[1].split()[0])
        assert uid >= 0x70000000
        p.terminate()
        p.wait(10)


def test_capabilities_do_not_reach_the_user(cay):
    r = sh(cay, 'grep -E "Cap(Inh|Prm|Eff|Amb)" /proc/self/status')
    assert set(r.out.split()[1::2]) == {'0' * 16}, r


KEYCTL = '''
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
SESSION, USER = -3, -4
def keyctl(*a): return libc.syscall(250, *a), ctypes.get_errno()
print(keyctl(10, SESSION, b"user", b"%s", 0)[0] > 0, keyctl(10, USER, b"user", b"%s", 0)[0] > 0)
'''


def test_keys_of_the_host_are_not_visible(cay):
    libc = ctypes.CDLL(None, use_errno=True)
    name = b'cay-canary'
    # a session keyring of the test's own, with a key in it that a child process finds
    if libc.syscall(250, 1, None) < 0 or libc.syscall(248, b'user', name, b'secret', 6, -3) < 0:
        pytest.skip(f'no keyrings here: {os.strerror(ctypes.get_errno())}')
    user_key = libc.syscall(248, b'user', name, b'secret', 6, -4)
    try:
        script = KEYCTL % ('cay-canary', 'cay-canary')
        outside = subprocess.run(['/usr/bin/python3', '-c', script], stdout=subprocess.PIPE, check=True).stdout
        assert outside.split()[0] == b'True'
        assert python(cay, script).out == 'False False\n'
    finally:
        if user_key > 0:
            libc.syscall(250, 3, user_key)


def test_the_kernel_log_and_modules_are_out_of_reach(cay):
    user = ['--user', 'root'] if caylib.ROOTFUL else []
    r = python(cay, 'import ctypes, os\nl = ctypes.CDLL(None, use_errno=True)\nb = ctypes.create_string_buffer(64)\n'
               'print(l.klogctl(3, b, 64), l.syscall(175, b"", 0, b""), l.reboot(0), l.syscall(161, b"/proc/1/root"), l.swapoff(b"/x"))', *user)
    assert r.out == '-1 -1 -1 -1 -1\n', r

# SPDX-License-Identifier: Apache-2.0
"""A crash inside never starts the host's program for core dumps, whatever limits the sandbox sets itself."""

import os
import resource
import signal
import socket
import subprocess
import sys

import pytest

# Lowers the limit by each way there is, and says what it is then. The address has a low half of 0.
LOWER = r'''
import ctypes, mmap, resource as r
libc = ctypes.CDLL(None, use_errno=True)
r.setrlimit(r.RLIMIT_CORE, (0, 0))
print(r.getrlimit(r.RLIMIT_CORE))
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(ctypes.c_void_p(1 << 32), 4096, 3, 0x32, -1, 0)
print(libc.syscall(302, 0, r.RLIMIT_CORE, ctypes.c_void_p(at), None), at == 1 << 32)
print(libc.syscall(160, r.RLIMIT_CORE, ctypes.c_void_p(at)))
print(r.getrlimit(r.RLIMIT_CORE))
'''
CRASH = LOWER + 'import os; os.abort()'


def inside(cay, script, *options):
    return cay('run', *options, '--', 'python3', '-c', script)


def may_have_one():
    return resource.getrlimit(resource.RLIMIT_CORE)[1] != 0


def test_control():
    """Outside the limit goes down by each of these ways."""
    if not may_have_one():
        pytest.skip('the hard limit on core files is 0 already')
    out = subprocess.run([sys.executable, '-c', LOWER], capture_output=True, text=True, check=True).stdout
    assert out.splitlines() == ['(0, 0)', '0 True', '0', '(0, 0)']


@pytest.mark.parametrize('profile', ['dev', 'locked'])
def test_the_limit_stays_at_one(cay, profile):
    if not may_have_one():
        pytest.skip('the hard limit on core files is 0 already')
    done = inside(cay, LOWER, '--profile', profile)
    assert done.out.splitlines() == ['(1, 1)', '0 True', '0', '(1, 1)'], done


def test_other_limits_go_down(cay):
    done = inside(cay, 'import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (99, 99)); print(r.getrlimit(r.RLIMIT_NOFILE))')
    assert done.out == '(99, 99)\n'


@pytest.mark.skipif(socket.gethostname() != 'cay-vm' or os.geteuid() != 0,
                    reason='core_pattern is the whole machine\'s: changed only in the virtual machine, as root')
def test_the_helper_is_not_started(cay, tmp_path):
    tmp_path.chmod(0o755)
    helper, seen = tmp_path / 'helper', tmp_path / 'seen'
    helper.write_text(f'#!/bin/sh\necho "$1" >>{seen}\ncat >/dev/null\n', encoding='ascii')
    helper.chmod(0o755)
    with open('/proc/sys/kernel/core_pattern', 'r+', encoding='ascii') as f:
        before = f.read()
        f.seek(0)
        f.write(f'|{helper} %E')
    try:
        control = subprocess.run([sys.executable, '-c', CRASH], capture_output=True, check=False)
        assert control.returncode == -signal.SIGABRT
        assert len(seen.read_text(encoding='ascii').splitlines()) == 1  # limit 0, and it was started
        for profile in ('dev', 'locked'):
            assert inside(cay, CRASH, '--profile', profile).code == 128 + signal.SIGABRT
        assert len(seen.read_text(encoding='ascii').splitlines()) == 1
    finally:
        with open('/proc/sys/kernel/core_pattern', 'w', encoding='ascii') as f:
            f.write(before)

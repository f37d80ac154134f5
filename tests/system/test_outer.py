# SPDX-License-Identifier: Apache-2.0
"""Inside of something that is in the way: the filter and NO_NEW_PRIVS of an outer container."""

import ctypes
import errno
import struct

import pytest

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, FILTER = 22, 38, 2
SYS_clone3, SYS_io_uring_setup = 435, 425


def hide(number):
    """A function that makes a system call ENOSYS for the calling process and all that come of it."""
    def op(code, jt, jf, k):
        return struct.pack('HBBI', code, jt, jf, k)
    code = ctypes.create_string_buffer(
        op(0x20, 0, 0, 0) + op(0x15, 0, 1, number) + op(0x06, 0, 0, 0x00050000 | errno.ENOSYS) + op(0x06, 0, 0, 0x7fff0000))
    program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 4, ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)

    def install(_=code):  # which must live as long as the function
        if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, FILTER, program, 0, 0):
            raise OSError(ctypes.get_errno(), 'prctl')
    return install


def test_a_hidden_clone3_is_named(cay):
    done = cay('run', '--', 'true', preexec_fn=hide(SYS_clone3))
    assert done.code == 125
    assert 'clone3' in done.err and 'outer container' in done.err, done


@pytest.mark.parametrize('profile', ['dev', 'locked'])
def test_a_filter_around_us_is_expected_inside(cay, profile):
    """It is inherited, and the look at a new sandbox counts with it."""
    script = 'grep -E "NoNewPrivs|Seccomp_filters" /proc/self/status'
    done = cay('run', '--profile', profile, '--', 'sh', '-c', script, preexec_fn=hide(SYS_io_uring_setup), check=True)
    assert done.out.split() == ['NoNewPrivs:', '1', 'Seccomp_filters:', '3']

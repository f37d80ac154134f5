# SPDX-License-Identifier: Apache-2.0
"""Descriptors on their way in sockets, of which a user may have so many, all sandboxes together."""

import resource
import subprocess

import caylib
import pytest

FILL = r'''
import array, errno, resource, socket, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
pairs, many = [], array.array('i', [0] * 253)
try:
    while True:
        pairs.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
        for _ in range(64):
            try:
                pairs[-1][0].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, many)], socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
except OSError as e:
    print(errno.errorcode[e.errno], flush=True)
sys.stdin.read()
'''


@pytest.mark.skipif(caylib.MAY_RAISE_LIMITS, reason='wardens would raise the limit again')
def test_one_sandbox_that_fills_them_all_does_not_stop_others(cay):
    """Without root all are one user's, whose wardens and inits can always send what they have to."""
    few = {'preexec_fn': lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (500, 4000))}
    most = 4000 if caylib.ROOTFUL else 3000
    one, other = (cay('create', check=True, **few).out.strip() for _ in range(2))
    for ref in (one, other):
        assert cay('exec', ref, '--', 'sh', '-c', 'ulimit -Sn; ulimit -Hn', check=True).out == f'1024\n{most}\n'
    with cay.popen('exec', one, '--', 'python3', '-c', FILL, stdin=subprocess.PIPE) as running:
        running.read_until(b'ETOOMANYREFS')
        for ref in (other, one):
            for _ in range(2):  # made as it is asked for, and made ahead
                assert cay('exec', ref, '--', 'echo', 'alive').out == 'alive\n'
        cay('exec', other, '--', 'touch', '/tmp/f', check=True)
        cay('snapshot', 'rm', cay('snapshot', other, check=True).out.strip(), check=True)
        assert cay('run', '--', 'echo', 'new', **few).out == 'new\n'
        running.stdin.close()
        running.stdin = None
        assert running.finish().code == 0
    cay('kill', one, other, check=True)


@pytest.mark.skipif(caylib.MAY_RAISE_LIMITS, reason='wardens would raise the limit again')
def test_a_quarter_is_not_for_commands_without_root(cay):
    few = {'preexec_fn': lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (500, 4000))}
    most = 4000 if caylib.ROOTFUL else 3000
    assert cay('run', '--files', most, '--', 'sh', '-c', 'ulimit -Sn', **few).out == f'{most}\n'
    refused = cay('run', '--files', most + 1, '--', 'true', **few)
    assert refused.code == 125 and f'more than {most} open files' in refused.err

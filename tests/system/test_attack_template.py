# SPDX-License-Identifier: Apache-2.0
"""Templates that lie about what they hold."""

import os

import pytest


def lay(path, kind, outside):
    if kind == 'link':
        path.symlink_to(outside)
    elif kind == 'upward link':
        path.symlink_to('../' * 8 + str(outside)[1:])
    elif kind == 'loop':
        path.symlink_to(path.name)
    elif kind == 'magic link':
        path.symlink_to('/proc/self/root' + str(outside))
    elif kind == 'file':
        path.write_text('x')
    elif kind == 'fifo':
        os.mkfifo(path)
    else:
        path.mkdir()


@pytest.mark.parametrize('kind', ['link', 'upward link', 'loop', 'magic link', 'file', 'fifo', 'directory'])
@pytest.mark.parametrize('name', ['dev', 'proc', 'sys', 'etc', 'tmp', 'home', 'mnt', 'run'])
def test_an_odd_entry_leads_nowhere_and_hangs_nothing(cay, places, name, kind):
    top, outside = places
    lay(top / name, kind, outside)
    result = cay('run', '--template', f'dir:{top}', '--ro', '/usr/bin/env:/mnt/file', '--user', '1000:1000', '--',
                 '/bin/sh', '-c', 'echo > /dev/null && echo alive', timeout=10)
    assert not list(outside.iterdir())
    if name in ('dev', 'proc', 'sys'):
        assert result.out == 'alive\n', 'hidden by a directory of our own'


def test_a_passwd_that_is_a_fifo_does_not_stop_a_sandbox(cay, places):
    top, _ = places
    (top / 'etc').mkdir()
    for name in ('passwd', 'group', 'hosts', 'hostname', 'machine-id'):
        os.mkfifo(top / 'etc' / name)
    result = cay('run', '--template', f'dir:{top}', '--user', '1000:1000', '--', '/bin/sh', '-c', 'echo alive', timeout=10)
    assert result.out == 'alive\n'

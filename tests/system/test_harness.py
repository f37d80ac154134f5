# SPDX-License-Identifier: Apache-2.0
"""The harness itself: what would be left behind is found."""

import os
import signal
import subprocess

import pytest

import caylib


def new(cay, before):
    return caylib.everything([cay]) - before


def test_a_left_process_is_found_even_if_it_hides(cay):
    before = caylib.everything([cay])
    subprocess.run(['sh', '-c', 'setsid sh -c "sleep 613 & exec true" &'], check=True)
    pid = caylib.wait_until(lambda: [t for t in new(cay, before) if '(sleep)' in t], what='the sleeper')[0].split()[1]
    os.kill(int(pid), signal.SIGKILL)
    caylib.wait_until(lambda: not new(cay, before), what='its end')


def test_a_left_file_lock_and_row_are_found(cay):
    before = caylib.everything([cay])
    ref = cay.create()
    found = new(cay, before)
    for part in (f'sandboxes/{ref}', f'locks/{ref}', 'row of sandboxes', '(cay-warden)', '(cay-init)'):
        assert any(part in t for t in found), (part, found)
    assert any('control group' in t for t in found) == caylib.ROOTFUL, found
    cay('kill', ref, check=True)
    caylib.wait_until(lambda: not new(cay, before), what='its end')


@pytest.mark.skipif(not caylib.ROOTFUL, reason='needs root to mount')
def test_a_left_mount_is_found(cay):
    before = caylib.everything([cay])
    path = os.path.join(cay.state, 'sandboxes')
    subprocess.run(['mount', '-t', 'tmpfs', 'cay-test', path], check=True)
    try:
        assert new(cay, before) == {f'mount {path}'}
    finally:
        subprocess.run(['umount', path], check=True)
    assert new(cay, before) == set()

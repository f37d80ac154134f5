# SPDX-License-Identifier: Apache-2.0
"""Private files of the host below the directories that the template `host` shows as they are."""

import os
import pathlib
import shutil

import caylib
import pytest

TOP = pathlib.Path(f'/opt/cay-test-{os.getpid()}')


@pytest.fixture
def private():
    TOP.mkdir()
    TOP.chmod(0o755)
    (TOP / 'public').write_text('public\n')
    (TOP / 'public').chmod(0o644)
    (TOP / 'secret').write_text('canary\n')
    (TOP / 'secret').chmod(0o600)
    (TOP / 'closed').mkdir(0o700)
    (TOP / 'closed' / 'inside').write_text('canary\n')
    yield TOP
    shutil.rmtree(TOP)


@pytest.mark.skipif(not caylib.ROOTFUL, reason='only root inside would pass the permission bits')
def test_root_inside_does_not_see_what_is_closed_to_others(cay, private):
    cay('run', '--', 'true', check=True)
    shown = cay('run', '--user', 'root', '--', 'sh', '-c',
                      f'cat {private}/public; cat {private}/secret {private}/closed/*; ls {private}; '
                      f'echo own > {private}/secret; mkdir {private}/closed; cat {private}/secret; stat -c %a {private}')
    assert shown.out == 'public\npublic\nown\n755\n'
    assert (private / 'secret').read_text() == 'canary\n'


@pytest.mark.skipif(not caylib.ROOTFUL, reason='only root inside would pass the permission bits')
def test_a_directory_that_becomes_private_is_hidden_from_the_next_sandbox(cay, private):
    cay('run', '--', 'true', check=True)
    private.chmod(0o700)
    assert cay('run', '--user', 'root', '--', 'cat', private / 'public').out == ''


def test_the_hosts_boot_line_is_not_shown(cay):
    """It may carry keys and addresses of the host."""
    assert cay('run', '--', 'cat', '/proc/cmdline', check=True).stdout == b''

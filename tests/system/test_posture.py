# SPDX-License-Identifier: Apache-2.0
"""A sandbox that is not what it must be is destroyed before anything runs in it, and says why."""

import os
import shutil
import subprocess

import caylib
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.dirname(caylib.CAY)


@pytest.fixture
def programs(tmp_path):
    """A cay of its own, in whose place of cay-init something else can be put."""
    tmp_path.chmod(0o755)
    for name in ('cay', 'cay-warden', 'cay-init'):
        shutil.copy(os.path.join(PROGRAMS, name), tmp_path)
    return tmp_path


def run(cay, programs, fault=None):
    if fault is not None:
        subprocess.run(['cc', '-static', '-O1', f'-DFAULT="{fault}"', '-o', programs / 'cay-init',
                        os.path.join(HERE, 'posture_init.c')], check=True)
    return subprocess.run([programs / 'cay', 'run', '--', 'true'], env=cay.env, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=30 * caylib.SLOWER)


def test_control(cay, programs):
    assert run(cay, programs).returncode == 0


def test_control_of_the_stand_in(cay, programs):
    """It passes the look; that it does not speak the protocol is found later."""
    result = run(cay, programs, 'none')
    assert result.returncode != 0
    assert 'not what it must be' not in result.stderr, result.stderr


@pytest.mark.parametrize('fault,what,found', [
    ('bounding', 'CapBnd: expected 00000000a00405fb', 'found 0'),
    ('descriptor', 'descriptor 4: expected none', '/etc/passwd'),
    ('no_new_privs', 'NoNewPrivs: expected 0', 'found 1'),
    ('no_list', 'Seccomp: expected 2', 'found 0'),
    ('two_lists', 'Seccomp_filters: expected', 'found'),
    ('umask', 'Umask: expected 0022', 'found 0000'),
    ('directory', "cwd: expected the sandbox's root", '/tmp'),
    ('core', 'Max core file size: expected 1', 'found 0'),
])
def test_a_difference_is_refused_and_named(cay, programs, fault, what, found):
    result = run(cay, programs, fault)
    assert result.returncode == 125
    assert 'the sandbox is not what it must be' in result.stderr
    assert what in result.stderr and found in result.stderr, result.stderr


def test_an_init_that_ends_is_said_so(cay, programs):
    result = run(cay, programs, 'end')
    assert result.returncode == 125
    assert 'init ended while the sandbox was being built' in result.stderr, result.stderr


def test_the_refusal_is_in_the_trace(fresh_cay, programs):
    fresh_cay.env['CAY_KEEP_ENDED'] = '10'
    result = run(fresh_cay, programs, 'umask')
    assert result.returncode == 125
    traces = [os.path.join(d, n) for d, _, names in os.walk(fresh_cay.state) for n in names if n.endswith('.jsonl')]
    assert len(traces) == 1
    text = caylib.read_text(traces[0])
    assert '"sandbox.refused"' in text and 'Umask: expected 0022' in text

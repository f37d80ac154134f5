# SPDX-License-Identifier: Apache-2.0
"""Operations without a command line: a program that links ops and link alone."""

import os
import subprocess

import caylib


def test_fifty_sandboxes_at_once_by_the_job_queue(fresh_cay):
    """Each is made, used, snapshotted, forked, rolled back and ended by jobs of five workers."""
    fresh_cay('run', '--', 'true', check=True)  # makes the template's layer
    build = os.path.dirname(os.path.abspath(caylib.CAY))
    program = os.path.join(build, 'tests', 'ops', 'ops_many')
    done = subprocess.run([program, os.path.join(build, 'cay'), os.path.join(build, 'cay-warden'), '50', '5'],
                          env=fresh_cay.env, capture_output=True, timeout=240 * caylib.SLOWER, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b'', b'')
    assert fresh_cay('ls', '-q', '--all').out == ''
    assert caylib.leftovers([fresh_cay], set()) == []

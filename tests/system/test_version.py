# SPDX-License-Identifier: Apache-2.0
import re


def test_version_is_a_number_on_stdout_and_nothing_else(cay):
    r = cay('version', check=True)
    assert re.fullmatch(r'cay \d+\.\d+\.\d+\n', r.out), r
    assert r.err == ''

# SPDX-License-Identifier: Apache-2.0
"""Control groups: CAY_TEST_GROUPS says whether this user may make some (1) or not (0); else we look."""

import os
import re

import caylib
import pytest


def own_group():
    """The directory of our own group in the v2 hierarchy, or None."""
    mounts = [line.split()[4] for line in caylib.read_text('/proc/self/mountinfo').splitlines() if ' - cgroup2 ' in line]
    own = re.search(r'^0::(/.*)$', caylib.read_text('/proc/self/cgroup'), re.M)
    return mounts[0] + own[1].rstrip('/') if mounts and own else None


def may_make_groups():
    told = os.environ.get('CAY_TEST_GROUPS')
    return told == '1' if told else bool(own_group() and os.access(own_group(), os.W_OK))


given = pytest.mark.skipif(not may_make_groups(), reason='needs a control group that is ours')
kept = pytest.mark.skipif(may_make_groups(), reason='about users without a control group of their own')


def group_of(sandbox):
    """The sandbox's group, wherever its cay was started."""
    found = [d for d, _, _ in os.walk(caylib.GROUP_DIR or own_group()) if d.endswith(f'/cay-{sandbox}')]
    return found[0] if found else None


@pytest.fixture
def sandbox(cay):
    name = cay('create', check=True).out.strip()
    yield name
    cay('kill', name, check=True)


@given
def test_the_processes_of_a_call_are_in_a_group_of_its_own(cay, sandbox):
    group = group_of(sandbox)
    with cay.popen('exec', sandbox, '--', 'sh', '-c', 'sleep 1000 & exec sleep 1000') as process:
        try:
            leaf = caylib.wait_until(lambda: [n for n in caylib.list_dir(group) if n.startswith('call-')], what='a group for the call')
            assert len(leaf) == 1
            caylib.wait_until(lambda: len(caylib.read_text(f'{group}/{leaf[0]}/cgroup.procs').split()) == 2, what='two processes in it')
        finally:
            process.terminate()


@given
def test_killing_a_sandbox_removes_its_groups(cay):
    name = cay('create', check=True).out.strip()
    cay('exec', name, '--', 'sh', '-c', 'setsid sleep 1000 >/dev/null 2>&1 & ', check=True)
    assert group_of(name)
    cay('kill', name, check=True)
    assert not group_of(name)


@given
def test_groups_of_the_host_are_not_named_inside(cay, sandbox):
    own = cay('exec', sandbox, '--', 'cat', '/proc/self/cgroup', check=True).out
    assert re.search(r'^0::/call-\d+$', own, re.M), own


@kept
def test_without_a_group_of_its_own_a_sandbox_works_and_makes_none(cay, sandbox):
    assert cay('exec', sandbox, '--', 'echo', 'well', check=True).out == 'well\n'
    assert not [d for d, _, _ in os.walk('/sys/fs/cgroup') if d.endswith(f'/cay-{sandbox}')]

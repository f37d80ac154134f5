# SPDX-License-Identifier: Apache-2.0
"""Hundreds of ways out (tests/contain), each tried in every kind of sandbox and, as a control, outside.

A way that is closed outside as well proves nothing: it fails the test of controls unless the table
says that this host may lack the thing, and then it does not count.
"""

import fcntl
import hashlib
import os

import pytest

import caylib
import containlib

ENOUGH = 150
SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
KINDS = {'dev': ('dev', '1000'), 'locked': ('locked', '1000')}
if caylib.ROOTFUL:
    KINDS['root'] = ('dev', 'root')
SYS_landlock_create_ruleset, LANDLOCK_VERSION = 444, 1
LANDLOCK = containlib.libc.syscall(SYS_landlock_create_ruleset, None, 0, LANDLOCK_VERSION)
# What an older Landlock does not know it cannot refuse: the ABI that each needs.
SINCE = {'leak-truncate': 3, 'leak-device': 5}
SETTINGS = ('plain', 'ns', 'root') if caylib.ROOTFUL else ('plain', 'ns')
TABLE = [c for c in containlib.table() if SINCE.get(c.name, 0) <= LANDLOCK] if os.path.exists(containlib.PROBE) else []
TOPICS = list(dict.fromkeys(check.topic for check in TABLE))


def test_the_probe_is_there_and_says_enough():
    assert len(TABLE) >= 2 * ENOUGH, f'{containlib.PROBE} is missing or lists too little'
    assert len({check.name for check in TABLE}) == len(TABLE)


def sum_of(path):
    with open(path, 'rb') as f:
        return hashlib.sha256(f.read(8 << 20)).hexdigest()


def shared_files(state):
    """Our own programs and some of every layer that sandboxes share, with their sums."""
    own = os.path.dirname(caylib.CAY)
    sums = {path: sum_of(path) for path in (os.path.join(own, name) for name in ('cay', 'cay-warden', 'cay-init'))}
    for top in ('/usr/bin', '/usr/lib/x86_64-linux-gnu', f'{state}/templates'):
        paths = sorted(os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names)
        paths = [p for p in paths if os.path.isfile(p) and not os.path.islink(p) and os.access(p, os.R_OK)]
        sums.update((path, sum_of(path)) for path in paths[::max(1, len(paths) // 150)])
    return sums


# User namespaces, and what Landlock alone refuses to a planted descriptor.
NESTED_OPENS = {'clone-user', 'clone-user-and-all', 'clone-user-high-bits', 'clone3', 'unshare-user', 'unshare-user-and-net',
                *('leak-' + way for way in ('bind chdir create etc execute fifo link list mkdir proc read rename rmdir symlink '
                                            'temporary truncate unlink up write').split())}


class Results:
    """Each setting and kind is run when it is first asked for, within that test."""

    def __init__(self, cay):
        self.cay, self.known = cay, {}
        cay('run', '--', 'true', check=True)  # builds the layer
        self.before = shared_files(cay.state)

    def get(self, how):
        if how not in self.known:
            ground = containlib.Ground()
            ground.params.update(STATE=self.cay.state, CATALOG=f'{self.cay.state}/catalog.db',
                                 SANDBOXES=f'{self.cay.state}/sandboxes')
            self.cay.pids |= ground.pids
            try:
                self.known[how] = self.run(ground, how)
            finally:
                ground.close()
                self.cay.pids -= ground.pids
        return self.known[how]

    def run(self, ground, how):
        if how == 'bare':
            return ground.bare(self.cay)
        if how.startswith('nested-'):
            return ground.inside(self.cay, how[len('nested-'):], '1000', '--nested')
        if how in KINDS:
            return ground.inside(self.cay, *KINDS[how])
        ref = self.cay('create', check=True).out.strip()
        try:
            ground.params['CONTROL'] = f'{self.cay.state}/sandboxes/{ref}/sock'
            return ground.outside(how[len('control-'):])
        finally:
            self.cay('kill', ref, check=True)

    def controlled(self, check):
        """Whether the way is open outside; None where this host cannot tell."""
        if check.control not in SETTINGS:
            return None
        found = self.get('control-' + check.control)[check.name]
        if found in check.allowed.split('|'):
            return True
        return None if found in check.lacks.split('|') else False


@pytest.fixture(scope='module')
def results(cay):
    return Results(cay)


def wrong(rows, found, wanted):
    return [f'{c.name}: {c.tries}: {found[c.name]}, must be {wanted(c)}' for c in rows if found[c.name] not in wanted(c).split('|')]


@pytest.mark.parametrize('topic', TOPICS)
def test_outside_the_ways_are_open(results, topic):
    bad = [c for c in TABLE if c.topic == topic and results.controlled(c) is False]
    assert not bad, '\n'.join(f"{c.name}: {results.get('control-' + c.control)[c.name]} outside, must be {c.allowed}" for c in bad)


@pytest.mark.parametrize('setting', SETTINGS)
def test_a_control_tries_only_the_ways_of_its_setting(results, setting):
    """Without new namespaces, a way to process 1 would lead to the host's, and change it."""
    assert set(results.get('control-' + setting)) == {c.name for c in containlib.table() if c.control == setting}


@pytest.mark.parametrize('topic', TOPICS)
@pytest.mark.parametrize('kind', KINDS)
def test_inside_they_are_closed(results, kind, topic):
    bad = wrong([c for c in TABLE if c.topic == topic], results.get(kind), lambda c: getattr(c, kind))
    assert not bad, '\n'.join(bad)


@pytest.mark.parametrize('topic', sorted({c.topic for c in TABLE if c.bare != '-'}))
def test_namespaces_alone_close_them_to_all_inner_rights(results, topic):
    """Root inside with every capability, and no other wall: what is masked stays so."""
    bad = wrong([c for c in TABLE if c.topic == topic and c.bare != '-'], results.get('bare'), lambda c: c.bare)
    assert not bad, '\n'.join(bad)


@pytest.mark.parametrize('kind', KINDS)
def test_enough_of_them_prove_something(results, kind, capsys, mode):
    refusals = [c for c in TABLE if 'ok' not in getattr(c, kind).split('|') and getattr(c, kind) != c.allowed]
    proven = [c for c in refusals if results.controlled(c)]
    rest = sorted(c.name for c in refusals if not results.controlled(c))
    with capsys.disabled():
        print(f"\ncontain ({mode}, {kind}): {len(proven)} refusals with a control; without one here: {len(rest)}"
              f"{' (' + ' '.join(rest) + ')' if kind == 'dev' else ''}")
    assert len(proven) >= ENOUGH


def test_init_runs_from_memory_that_nobody_can_write(cay):
    """Not from a file: whoever gets hold of /proc/PID/exe gets hold of nothing."""
    ref = cay('create', check=True).out.strip()
    try:
        exe = f"/proc/{cay.json('show', ref)[0]['init_pid']}/exe"
        assert 'memfd:' in os.readlink(exe)
        fd = os.open(exe, os.O_RDONLY)
        assert fcntl.fcntl(fd, fcntl.F_GET_SEALS) & SEALS == SEALS
        os.close(fd)
        with pytest.raises(OSError):
            os.open(exe, os.O_WRONLY)
    finally:
        cay('kill', ref, check=True)


def test_shared_layers_are_as_they_were(results):
    """Last: after all of it no page of a shared file has changed."""
    for kind in KINDS:
        results.get(kind)
    assert len(results.before) > 200
    # A host whose packages change meanwhile has another layer then, and may drop the old one.
    changed = [path for path, was in results.before.items() if os.path.exists(path) and sum_of(path) != was]
    assert not changed


@pytest.mark.parametrize('profile', ['dev', 'locked'])
def test_nested_opens_what_is_listed_and_nothing_else(results, profile):
    found = results.get(f'nested-{profile}')
    opened = {c.name for c in TABLE if found[c.name] == 'ok' and 'ok' not in getattr(c, profile).split('|')}
    assert opened <= NESTED_OPENS, ' '.join(sorted(opened - NESTED_OPENS))
    assert opened >= {'unshare-user'}, 'it proves nothing'

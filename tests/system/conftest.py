# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the system tests. The suite runs once as root and once as an unprivileged user."""

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
pytest.register_assert_rewrite('faultlib', 'statelib')
import caylib  # noqa: E402
import faultlib  # noqa: E402

CAYS = []
MODE = 'rootful' if caylib.ROOTFUL else 'rootless'
# Seconds since the epoch; what would begin later is left out, and said so.
DEADLINE = float(os.environ.get('CAY_TEST_DEADLINE', 'inf'))
# A directory in which tests of a file are claimed by who runs them, where others beside us run the same.
CLAIMS = os.environ.get('CAY_TEST_CLAIMS')
WHOLE = {'test_serve_v1'}  # whose last test is about all others of the file
CLAIM = 16  # tests at a time: what a file sets up is set up once by each lane, and no lane ends long after the others
# Each of setup, test and teardown ends after so many seconds and fails, whatever it waits for.
LIMIT_S = float(os.environ.get('CAY_TEST_LIMIT', '150')) * caylib.SLOWER
LIMIT_AGAIN_S = 10  # what waits while the first failure is on its way out is ended too
# How long each file of tests took: the longest begin first, so that no lane ends long after the others.
DURATIONS = os.environ.get('CAY_TEST_DURATIONS')
# About disks, pools, what a sync or a limit does there; and a share of the rest, so that it too is seen on one.
ON_DISK = {'test_apply', 'test_cp', 'test_crash', 'test_exhaustion', 'test_faults', 'test_faults_apply', 'test_faults_commands', 'test_life', 'test_limits',
           'test_storage', 'test_state'}


def pytest_configure(config):
    config.addinivalue_line('markers', 'slow: moves or makes so much that an emulated machine leaves it out')
    config.addinivalue_line('markers', 'alone: is about time, or loads the machine: not beside others')
    config.addinivalue_line('markers', 'by_turns: each of its points is tried in one of two places only, unless all is')
    config.addinivalue_line('markers', 'disk: its state never lies in memory')
    caylib.become_subreaper()
    # A shell or nohup may have started us with these ignored, and everything that we start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, out_of_time)


def out_of_time(*_):
    # Raised from a signal handler, it ends whatever call the main thread is waiting in.
    raise pytest.fail.Exception(f'no end within {LIMIT_S:.0f} s')


@contextlib.contextmanager
def limited():
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S, LIMIT_AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call():
    with limited():
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown():
    with limited():
        yield


def by_turns(items):
    """Of a test that is marked so, each point in one place: the first half of a pair in one, the other in the other."""
    points = {}  # of a test: what it is tried at, besides the place
    for item in items:
        if item.get_closest_marker('by_turns'):
            rest = tuple(value for name, value in sorted(item.callspec.params.items()) if name != 'place')
            known = points.setdefault(item.function, [])
            if rest not in known:
                known.append(rest)
            n = known.index(rest)
            if (n + n // 2 + (item.callspec.params['place'] == 'pool')) % 2:
                continue
        yield item


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.stem in ON_DISK:
            item.add_marker('disk')
    if not caylib.DEEP and not caylib.why_no_storage():
        items[:] = by_turns(items)
    if DURATIONS:
        with open(DURATIONS, encoding='utf-8') as f:
            seconds = json.load(f).get(MODE, {})
        items.sort(key=lambda item: -seconds.get(item.path.stem, 0))  # stable: a file stays together


def pytest_report_header():
    return f'cay: {caylib.CAY} ({MODE})'


def claimed(items):
    """Those that nobody else has begun."""
    for path, tests in itertools.groupby(items, key=lambda item: item.path):
        tests = list(tests)
        at_once = len(tests) if path.stem in WHOLE else CLAIM
        for first in range(0, len(tests), at_once):
            try:
                os.close(os.open(os.path.join(CLAIMS, f'{path.name}-{first}'), os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            yield from tests[first:first + at_once]


def pytest_runtestloop(session):
    """pytest's own, but for the claims."""
    if not CLAIMS or session.config.option.collectonly or session.testsfailed:
        return None
    mine = claimed(session.items)
    item = next(mine, None)
    while item:
        following = next(mine, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    return True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup():
    if time.time() > DEADLINE:
        pytest.skip('no time left')
    with limited():
        yield


def make_cay():
    cay = caylib.Cay()
    CAYS.append(cay)
    return cay


def drop_cay(cay):
    CAYS.remove(cay)
    cay.remove()


@pytest.fixture(scope='session')
def mode():
    return MODE


@pytest.fixture(scope='session')
def built_cay():
    """Only to take its template from."""
    own = caylib.Cay()
    own('run', '--', 'true')
    yield own
    own.remove()


@pytest.fixture(scope='session')
def cay(built_cay):
    """cay(*args, input=None, timeout=120, check=False) on a state directory that tests share."""
    shared = make_cay()
    shared.take_template(built_cay)
    yield shared
    drop_cay(shared)


@pytest.fixture
def fresh_cay(built_cay):
    """The same with a state directory for one test, in which there is nothing but a template."""
    own = make_cay()
    own.take_template(built_cay)
    yield own
    drop_cay(own)


@pytest.fixture
def empty_cay():
    """The same without a template."""
    own = make_cay()
    yield own
    drop_cay(own)


@pytest.fixture(scope='session')
def fault(tmp_path_factory):
    """The program that lets changes of the disk fail."""
    program = str(tmp_path_factory.mktemp('fault') / 'fault')
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'fault.c')
    subprocess.run(['gcc', '-D_GNU_SOURCE', '-O1', '-o', program, source], check=True)
    return program


@pytest.fixture(params=['plain', 'storage'])
def place(request, fresh_cay):
    """A cay of which the sandboxes lie in the state directory, or in a pool."""
    if request.param == 'storage':
        if caylib.why_no_storage():
            pytest.skip(caylib.why_no_storage())
        fresh_cay('setup', 'storage', '--size', '512M', check=True)
    yield fresh_cay
    if request.param == 'storage':
        fresh_cay('kill', '--all', '--yes')
        subprocess.run(['umount', '-l', f'{fresh_cay.state}/storage'], check=True)


@pytest.fixture
def lab(fresh_cay, fault, tmp_path):
    """A sandbox on a disk that fails on demand."""
    return faultlib.Lab(fresh_cay, fault, tmp_path)


@pytest.fixture
def place_lab(place, fault, tmp_path):
    """The same, in both places."""
    return faultlib.Lab(place, fault, tmp_path)


@pytest.fixture
def spawn_pty(cay):
    """with spawn_pty('exec', '-it', ...) as t: t.expect(...), t.send(...), t.wait()"""
    return cay.spawn_pty


@pytest.fixture
def box(cay, no_leftovers):
    """A sandbox that is ended after the test."""
    ref = cay.create()
    yield ref
    cay('kill', ref)


@pytest.fixture
def sandbox(cay, no_leftovers):
    """sandbox(PATH, *args): one with this --dir, ended after the test."""
    made = []

    def make(root, *args):
        made.append(cay.create('--dir', root, *args))
        return made[-1]

    yield make
    for ref in made:
        cay('kill', ref, timeout=120)


@pytest.fixture
def places():
    """A template with a shell, and a directory outside that must stay as it is."""
    base = pathlib.Path(tempfile.mkdtemp(dir='/tmp'))
    base.chmod(0o755)
    top, outside = base / 'template', base / 'outside'
    for path in (top, top / 'bin', outside):
        path.mkdir()
    outside.chmod(0o777)
    for path in ['/bin/sh', *subprocess.run(['ldd', '/bin/sh'], capture_output=True, text=True, check=True).stdout.split()]:
        if path.startswith('/'):
            target = top / path[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(os.path.realpath(path), target)
    yield top, outside
    shutil.rmtree(base)


@pytest.fixture(autouse=True)
def no_leftovers(request):
    """A test that leaves a process, mount, group, file or row behind fails."""
    for name in ('cay', 'fresh_cay', 'empty_cay'):  # made first, so that they are still there at the end
        if name in request.fixturenames:
            request.getfixturevalue(name)
    before = caylib.everything(CAYS)
    yield
    left = caylib.leftovers(CAYS, before)
    if left:
        caylib.kill_left(left)
        pytest.fail('left behind:\n  ' + '\n  '.join(left), pytrace=False)

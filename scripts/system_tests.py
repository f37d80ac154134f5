# SPDX-License-Identifier: Apache-2.0
"""Run the system tests, as root and as an unprivileged user, side by side.

Lanes: one more than there are processors, because some test always waits for a disk, a network or a timer.
A lane runs one pytest after the other. Lanes with the same work share it: a lane claims some tests of a
file before it runs them (CAY_TEST_CLAIMS in conftest.py), the longest files first (tests/durations.json).
Tests marked `alone` run after the lanes, one by one.

State: most tests keep it in memory. On a disk, removing it can take ten times longer than the test.
Tests marked `disk` and `alone` keep it on the disk.

Retries: a few failed tests run once more, alone. A test that passes then is UNSTEADY. It still counts as
failed, unless tests/unsteady.txt names it with a reason.
"""

import glob
import itertools
import json
import os
import pwd
import shutil
import subprocess
import tempfile
import sys
import threading
import xml.etree.ElementTree as xml

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
sys.path.insert(0, os.path.join(ROOT, 'tests'))
from unsteady import may_be_unsteady  # noqa: E402

NOBODY = 65534
NOTHING_TO_DO = 5  # pytest's word for it
SECOND_TRIES = 12  # more failures than that have one cause, and a retry would only hide it
PASS_LIMIT_S = 3600  # a test that hangs ends by itself (conftest.py); this is for pytest
DURATIONS = os.path.join(ROOT, 'tests/durations.json')
DISK = '/tmp'
MEMORY = '/dev/shm'
MEMORY_BYTES = 6 << 30  # the largest tests of two lanes, twice
LANES_MAX = 8
BESIDE_OTHERS = '3'  # times a time limit: lanes share the processors
PROGRAMS = ('cay', 'cay-*', 'tests/contain/*', 'tests/faults/*', 'tests/crash/*')


def readable_by_nobody(path):
    command = ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups', 'test', '-r', path]
    return subprocess.run(command, check=False).returncode == 0


def copy_for_nobody(build, into):
    """If the checkout is in a private directory, give other users a copy of what they need."""
    target = os.path.join(into, 'build')
    for path in itertools.chain(*(glob.glob(os.path.join(build, names)) for names in PROGRAMS)):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            copy = os.path.join(target, os.path.relpath(path, build))
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copy2(path, copy)
    shutil.copytree(os.path.join(ROOT, 'tests/system'), os.path.join(into, 'tests/system'),
                    ignore=shutil.ignore_patterns('__pycache__'))
    for folder in ('tests/machine', 'policies'):
        shutil.copytree(os.path.join(ROOT, folder), os.path.join(into, folder), ignore=shutil.ignore_patterns('__pycache__'))
    shutil.copytree(os.path.join(ROOT, 'docs'), os.path.join(into, 'docs'))
    shutil.copy2(os.path.join(ROOT, 'README.md'), into)
    shutil.copy2(DURATIONS, os.path.join(into, 'tests'))
    subprocess.run(['chmod', '-R', 'a+rX', into], check=True)
    return target, os.path.join(into, 'tests/system')


def outcomes(report, seconds):
    """Number of tests, number of skipped tests and failed tests with their reasons from junit. Adds durations to seconds."""
    suite = next(xml.parse(report).iter('testsuite'))
    cases = [((c.get('classname'), c.get('name')), c) for c in suite.iter('testcase')]
    # One test can both fail and err (in its teardown): count tests, not outcomes.
    bad = {}
    for name, c in cases:
        for why in (*c.iter('failure'), *c.iter('error')):
            bad[name] = '\n'.join(filter(None, (bad.get(name), why.text or why.get('message'))))
    for (module, _), c in cases:
        stem = (module or '').split('.')[-1]
        seconds[stem] = round(seconds.get(stem, 0) + float(c.get('time') or 0), 1)
    return min(int(suite.get('tests')), len({name for name, _ in cases})), int(suite.get('skipped')), bad


class Mode:
    """The user that runs the tests, and the results."""

    def __init__(self, title, build, tests, prefix, env, durations=DURATIONS):
        self.title, self.build, self.tests, self.prefix, self.env = title, build, tests, prefix, env
        self.durations = durations  # in a place that this user can read
        self.passes, self.seconds = [], {}

    def try_again(self):
        """Retry a few failed tests alone; name the ones that pass."""
        if sum(len(p.bad) for p in self.passes) <= SECOND_TRIES:
            for p in self.passes:
                p.try_again()

    def tell(self, count):
        for p in self.passes:
            p.tell(count)
        bad = sum(len(p.bad) for p in self.passes)
        skipped = sum(p.skipped for p in self.passes)
        count.add(self.title, sum(p.total for p in self.passes) - bad - skipped, bad, skipped)
        broken = sum(p.broken for p in self.passes)
        if broken:
            count.add(self.title + ' (pytest)', 0, broken)


class Work:
    """Tests that lanes share: one mode, one place for their state."""

    def __init__(self, mode, marks, state, claims):
        self.mode, self.marks, self.state = mode, marks, state
        self.claims = tempfile.mkdtemp(dir=claims)
        os.chmod(self.claims, 0o777)


class Pass:
    """One pytest, in a home directory that its user can write. Its output goes to a file."""

    def __init__(self, mode, marks, state, claims='', slower='1'):
        self.mode, self.folder = mode, tempfile.TemporaryDirectory(prefix='cay-test-')
        self.home, self.log = self.folder.name, tempfile.TemporaryFile('w+', encoding='utf-8', errors='replace')
        if mode.prefix:
            os.chown(self.home, NOBODY, NOBODY)
        self.report = os.path.join(self.home, 'report.xml')
        self.command = [*mode.prefix, '/usr/bin/python3', '-m', 'pytest', '-q', '-o', f'cache_dir={self.home}/cache',
                        f'--junitxml={self.report}', '-o', 'junit_family=xunit1', '--tb=short', '--durations=15', '-rs', mode.tests]
        self.env = {**os.environ, **mode.env, 'CAY_TEST_DURATIONS': mode.durations, 'HOME': self.home, 'CAY_BIN': os.path.join(mode.build, 'cay'),
                    'CAY_TEST_STATE_DIR': state, 'PYTHONDONTWRITEBYTECODE': '1'}
        self.env.setdefault('CAY_TEST_SLOW', slower)
        self.total = self.skipped = 0
        self.bad, self.broken = {}, False  # why by name
        self.unsteady = set()
        mode.passes.append(self)
        found = self.run({**self.env, 'CAY_TEST_CLAIMS': claims}, '-m', marks)
        if found is None:
            self.broken = True
        else:
            self.total, self.skipped, self.bad = found

    def run(self, env, *more):
        """Tests, those that were skipped, the names of those that failed; None where pytest itself broke."""
        try:
            status = subprocess.run([*self.command, *more], cwd=self.home, stdin=subprocess.DEVNULL, env=env, stdout=self.log,
                                    stderr=subprocess.STDOUT, check=False, timeout=PASS_LIMIT_S).returncode
        except subprocess.TimeoutExpired:
            self.log.write(f'\npytest had no end within {PASS_LIMIT_S} s\n')
            self.log.flush()
            return None
        try:
            found = outcomes(self.report, self.mode.seconds)
            os.unlink(self.report)
        except (OSError, StopIteration, xml.ParseError):
            return None
        return found if status in (0, 1, NOTHING_TO_DO) else None

    def try_again(self):
        if self.broken or not self.bad:
            return
        found = self.run(self.env, '--last-failed', '--last-failed-no-failures=none')
        if found is None or found[0] < len(self.bad):
            return
        for name in sorted(set(self.bad) - set(found[2])):
            allowed = may_be_unsteady(name)
            verdict = 'is listed in tests/unsteady.txt' if allowed else 'counts as failed'
            print(f'UNSTEADY {self.mode.title}: {".".join(name)} failed, then passed; it {verdict}', flush=True)
            if allowed:
                del self.bad[name]
            else:
                self.unsteady.add(name)

    def tell(self, count):
        self.log.seek(0)
        text = self.log.read()
        print(text, flush=True)
        for name, why in sorted(self.bad.items()):
            count.fail(self.mode.title, '.'.join(name) + (' (passed on its retry)' if name in self.unsteady else ''), why)
        if self.broken:
            count.fail(self.mode.title, 'pytest itself', text)
        self.log.close()
        self.folder.cleanup()


def run_lane(works, number):
    begin = number % len(works)
    for work in works[begin:] + works[:begin]:
        Pass(work.mode, work.marks, work.state, work.claims, BESIDE_OTHERS)


def run_beside(works):
    lanes = min((os.cpu_count() or 1) + 1, LANES_MAX)
    threads = [threading.Thread(target=run_lane, args=(works, n)) for n in range(lanes)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def place_in_memory():
    """Where to put the state of most tests: in memory if possible, else on the disk."""
    try:
        with open('/proc/meminfo', encoding='ascii') as f:
            available = next(int(line.split()[1]) << 10 for line in f if line.startswith('MemAvailable:'))
        if min(available, shutil.disk_usage(MEMORY).free) < MEMORY_BYTES:
            raise OSError(f'less than {MEMORY_BYTES >> 30} GiB are free')
        with tempfile.NamedTemporaryFile(dir=MEMORY) as f:
            os.setxattr(f.name, 'user.cay', b'')  # an unprivileged user's overlay needs user xattrs
    except (OSError, StopIteration) as why:
        print(f'system tests: all state is on the disk, not in {MEMORY}: {why}', flush=True)
        return DISK
    return MEMORY


def write_durations(build, modes):
    """Write the next tests/durations.json; copy it there if a file's time has changed much."""
    found = {mode.title.partition('(')[2].rstrip(')'): dict(sorted(mode.seconds.items())) for mode in modes}
    with open(os.path.join(build, 'durations.json'), 'w', encoding='utf-8') as f:
        json.dump(found, f, indent=1)
        f.write('\n')


def run_modes(build, modes, before_alone, count):
    memory = place_in_memory()
    with tempfile.TemporaryDirectory(prefix='cay-test-') as claims:
        os.chmod(claims, 0o755)
        run_beside([Work(mode, f'not alone and {marks}', state, claims)
                    for marks, state in (('not disk', memory), ('disk', DISK)) for mode in modes])
    before_alone()
    for mode in modes:
        Pass(mode, 'alone', DISK)
        mode.try_again()
        mode.tell(count)
    write_durations(build, modes)


def name_of(uid):
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def run_system(build, count, before_alone):
    """Calls before_alone() before the tests that must run alone on the machine."""
    tests = os.path.join(ROOT, 'tests/system')
    if os.getuid() != 0:
        print('system tests as root: skipped, because this user is not root', flush=True)
        run_modes(build, [Mode('system (rootless)', build, tests, [], {})], before_alone, count)
        return
    with tempfile.TemporaryDirectory(prefix='cay-test-') as copy:
        os.chmod(copy, 0o755)
        modes, user_build, durations = [Mode('system (rootful)', build, tests, [], {})], build, DURATIONS
        if not (readable_by_nobody(os.path.join(build, 'cay-init')) and readable_by_nobody(tests)):
            user_build, tests = copy_for_nobody(build, copy)
            durations = os.path.join(copy, 'tests', os.path.basename(DURATIONS))
        prefix = ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups']
        env = {'USER': name_of(NOBODY), 'LOGNAME': name_of(NOBODY)}
        run_modes(build, [*modes, Mode('system (rootless)', user_build, tests, prefix, env, durations)], before_alone, count)

# SPDX-License-Identifier: Apache-2.0
"""The system tests, as root and as an unprivileged user, side by side where they may be.

There is one lane more than there are processors, since some test always waits for a disk, a network or
a time. A lane runs one pytest after the other; those that run the same work share it file by file, each
file going to who comes to it first (CAY_TEST_CLAIMS in conftest.py), so that no lane waits for another.
Tests marked `alone` come after that, one by one.

Most state lies in memory, where there is room: on a disk a test can wait ten times longer for the
removal of what it made than it ran. Those marked `disk`, and those that run alone, have it there.
"""

import glob
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
import threading
import xml.etree.ElementTree as xml

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
NOBODY = 65534
NOTHING_TO_DO = 5  # pytest's word for it
SECOND_TRIES = 12  # machines are shared, and some tests are about time; more than that is no accident
DISK = '/tmp'
MEMORY = '/dev/shm'
MEMORY_BYTES = 6 << 30  # the largest tests of two lanes, twice
LANES_MAX = 8
PROGRAMS = ('cay', 'cay-*', 'tests/contain/*', 'tests/faults/*', 'tests/crash/*')


def readable_by_nobody(path):
    command = ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups', 'test', '-r', path]
    return subprocess.run(command, check=False).returncode == 0


def copy_for_nobody(build, into):
    """Where the checkout lies in a private directory, others get a copy of what they need."""
    target = os.path.join(into, 'build')
    for path in itertools.chain(*(glob.glob(os.path.join(build, names)) for names in PROGRAMS)):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            copy = os.path.join(target, os.path.relpath(path, build))
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copy2(path, copy)
    shutil.copytree(os.path.join(ROOT, 'tests/system'), os.path.join(into, 'tests/system'),
                    ignore=shutil.ignore_patterns('__pycache__'))
    shutil.copytree(os.path.join(ROOT, 'docs'), os.path.join(into, 'docs'))
    shutil.copy2(os.path.join(ROOT, 'README.md'), into)
    subprocess.run(['chmod', '-R', 'a+rX', into], check=True)
    return target, os.path.join(into, 'tests/system')


def outcomes(report):
    """junit's numbers: all tests, those that were skipped, the names of those that failed."""
    suite = next(xml.parse(report).iter('testsuite'))
    cases = [((c.get('classname'), c.get('name')), c) for c in suite.iter('testcase')]
    # One test can both fail and err (in its teardown): count tests, not outcomes.
    bad = {name for name, c in cases if c.find('failure') is not None or c.find('error') is not None}
    return min(int(suite.get('tests')), len({name for name, _ in cases})), int(suite.get('skipped')), bad


class Mode:
    """Who runs the tests, and what came of it."""

    def __init__(self, title, build, tests, prefix, env):
        self.title, self.build, self.tests, self.prefix, self.env = title, build, tests, prefix, env
        self.passes = []

    def try_again(self):
        """A few that failed get a second try, alone, and are named."""
        if sum(len(p.bad) for p in self.passes) <= SECOND_TRIES:
            for p in self.passes:
                p.try_again()

    def tell(self, count):
        for p in self.passes:
            p.tell()
        bad = sum(len(p.bad) for p in self.passes)
        skipped = sum(p.skipped for p in self.passes)
        count.add(self.title, sum(p.total for p in self.passes) - bad - skipped, bad, skipped)
        broken = sum(p.broken for p in self.passes)
        if broken:
            count.add(self.title + ' (pytest)', 0, broken)


class Work:
    """Tests that lanes share: of one mode, with one place for their state."""

    def __init__(self, mode, marks, state, claims):
        self.mode, self.marks, self.state = mode, marks, state
        self.claims = tempfile.mkdtemp(dir=claims)
        os.chmod(self.claims, 0o777)


class Pass:
    """One pytest, in a home that its user can write. What it says waits in a file."""

    def __init__(self, mode, marks, state, claims=''):
        self.mode, self.folder = mode, tempfile.TemporaryDirectory(prefix='cay-test-')
        self.home, self.log = self.folder.name, tempfile.TemporaryFile('w+', encoding='utf-8', errors='replace')
        if mode.prefix:
            os.chown(self.home, NOBODY, NOBODY)
        self.report = os.path.join(self.home, 'report.xml')
        self.command = [*mode.prefix, '/usr/bin/python3', '-m', 'pytest', '-q', '-o', f'cache_dir={self.home}/cache',
                        f'--junitxml={self.report}', '-o', 'junit_family=xunit1', '--tb=short', '--durations=15', '-rs', mode.tests]
        self.env = {**os.environ, **mode.env, 'HOME': self.home, 'CAY_BIN': os.path.join(mode.build, 'cay'),
                    'CAY_TEST_STATE_DIR': state, 'PYTHONDONTWRITEBYTECODE': '1'}
        self.total = self.skipped = 0
        self.bad, self.broken = set(), False
        mode.passes.append(self)
        found = self.run({**self.env, 'CAY_TEST_CLAIMS': claims}, '-m', marks)
        if found is None:
            self.broken = True
        else:
            self.total, self.skipped, self.bad = found

    def run(self, env, *more):
        """Tests, those that were skipped, the names of those that failed; None where pytest itself broke."""
        status = subprocess.run([*self.command, *more], cwd=self.home, stdin=subprocess.DEVNULL, env=env, stdout=self.log,
                                stderr=subprocess.STDOUT, check=False).returncode
        try:
            found = outcomes(self.report)
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
        for name in sorted(self.bad - found[2]):
            print(f'UNSTEADY {self.mode.title}: {".".join(name)} failed, and passed when it was run again', flush=True)
        self.bad &= found[2]

    def tell(self):
        self.log.seek(0)
        print(self.log.read(), flush=True)
        self.log.close()
        self.folder.cleanup()


def run_lane(works, number):
    begin = number % len(works)
    for work in works[begin:] + works[:begin]:
        Pass(work.mode, work.marks, work.state, work.claims)


def run_beside(works):
    lanes = min((os.cpu_count() or 1) + 1, LANES_MAX)
    threads = [threading.Thread(target=run_lane, args=(works, n)) for n in range(lanes)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def place_in_memory():
    """Where the state of most tests lies: the disk, where there is no better place."""
    try:
        with open('/proc/meminfo', encoding='ascii') as f:
            available = next(int(line.split()[1]) << 10 for line in f if line.startswith('MemAvailable:'))
        if min(available, shutil.disk_usage(MEMORY).free) < MEMORY_BYTES:
            raise OSError(f'less than {MEMORY_BYTES >> 30} GiB are free')
        with tempfile.NamedTemporaryFile(dir=MEMORY) as f:
            os.setxattr(f.name, 'user.cay', b'')  # an overlay of an unprivileged user needs them
    except (OSError, StopIteration) as why:
        print(f'system tests: all state is on the disk, not in {MEMORY}: {why}', flush=True)
        return DISK
    return MEMORY


def run_modes(modes, count):
    memory = place_in_memory()
    with tempfile.TemporaryDirectory(prefix='cay-test-') as claims:
        os.chmod(claims, 0o755)
        run_beside([Work(mode, f'not alone and {marks}', state, claims)
                    for marks, state in (('not disk', memory), ('disk', DISK)) for mode in modes])
    for mode in modes:
        Pass(mode, 'alone', DISK)
        mode.try_again()
        mode.tell(count)


def name_of(uid):
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def run_system(build, count):
    tests = os.path.join(ROOT, 'tests/system')
    if os.getuid() != 0:
        print('system tests as root: left out, this is not root', flush=True)
        run_modes([Mode('system (rootless)', build, tests, [], {})], count)
        return
    with tempfile.TemporaryDirectory(prefix='cay-test-') as copy:
        os.chmod(copy, 0o755)
        modes = [Mode('system (rootful)', build, tests, [], {})]
        if not (readable_by_nobody(os.path.join(build, 'cay-init')) and readable_by_nobody(tests)):
            build, tests = copy_for_nobody(build, copy)
        prefix = ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups']
        env = {'USER': name_of(NOBODY), 'LOGNAME': name_of(NOBODY)}
        run_modes([*modes, Mode('system (rootless)', build, tests, prefix, env)], count)

# SPDX-License-Identifier: Apache-2.0
"""Process 1 of the virtual machine: sets it up, runs the suites, leaves results, switches off.

The results are a tar archive on the third disk: results.json with [title, passed, failed, skipped,
log] for each suite, and the logs. A suite that has ended is on the disk even where a later one hangs.
"""

import collections
import ctypes
import fcntl
import glob
import io
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tarfile
import threading
import time
import xml.etree.ElementTree as xml

JOB = '/vm/job'
sys.path.insert(0, f'{JOB}/tests')
from unsteady import may_be_unsteady  # noqa: E402

with open(f'{JOB}/seconds', encoding='utf-8') as given:
    DEADLINE = time.time() + float(given.read())
RESULTS = '/dev/nvme0n3'
GROUPS = '/sys/fs/cgroup'
NOBODY, KEPT = 65534, 65533  # the second of them has a user of its own, to run beside the first
PROCESSORS = 2
SLOWER = '16'  # than a real machine that does nothing else; tests stretch their time limits by it
UNIT_LIMIT_S = 240
TEST_LIMIT = '20'  # of a test, times SLOWER
SUITE_LIMIT_S = 60  # beyond the end of the time, for the test that runs then
UNSTEADY_MOST = 6
SYS_finit_module = 313
RB_POWER_OFF = 0x4321fedc

libc = ctypes.CDLL(None, use_errno=True)


# --- the machine ---

def must(value, what):
    if value < 0:
        raise OSError(ctypes.get_errno(), what)


def mount(kind, where, options=''):
    os.makedirs(where, exist_ok=True)
    must(libc.mount(kind.encode(), where.encode(), kind.encode(), 0, options.encode()), f'mount {where}')


def load_modules():
    for path in sorted(glob.glob('/vm/*.ko')):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        must(libc.syscall(SYS_finit_module, fd, b'', 0), path)
        os.close(fd)


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack('16sh14x', b'lo', 0x1 | 0x40))  # SIOCSIFFLAGS: up, running


def write(path, text):
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)


def set_up():
    mount('sysfs', '/sys')
    mount('devpts', '/dev/pts', 'mode=0620,gid=5,ptmxmode=0666')
    mount('tmpfs', '/dev/shm', 'mode=1777')
    mount('tmpfs', '/run', 'mode=0755')
    for name, target in (('fd', 'fd'), ('stdin', 'fd/0'), ('stdout', 'fd/1'), ('stderr', 'fd/2')):
        os.symlink(f'/proc/self/{target}', f'/dev/{name}')
    # As systemd does: delegation ends at control group namespaces.
    mount('cgroup2', GROUPS, 'nsdelegate,memory_recursiveprot')
    with open(f'{GROUPS}/cgroup.controllers', encoding='utf-8') as f:
        write(f'{GROUPS}/cgroup.subtree_control', ' '.join('+' + c for c in f.read().split()))
    socket.sethostname('cay-vm')
    loopback_up()
    load_modules()


# --- suites ---

def enter(group, owner):
    """A function that moves the calling process into a group of its own, given to owner or not.

    Where it is given, tests start each cay in a group beside theirs: limits need one without others in it."""
    path = os.path.join(GROUPS, group)
    os.makedirs(os.path.join(path, 'tests'))
    if owner is not None:
        with open(f'{path}/cgroup.controllers', encoding='utf-8') as f:
            write(f'{path}/cgroup.subtree_control', ' '.join('+' + c for c in f.read().split()))
        for name in ('.', 'cgroup.procs', 'cgroup.threads', 'cgroup.subtree_control', 'tests', 'tests/cgroup.procs'):
            os.chown(os.path.join(path, name), owner, owner)
    return lambda: write(os.path.join(path, 'tests/cgroup.procs'), '0')


def run(command, log, limit, **options):
    """True where it ended by itself."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                          start_new_session=True, **options) as process:
        try:
            return process.wait(limit) == 0
        except subprocess.TimeoutExpired:
            log.write(f'\n{command[0]}: no end within {limit} s\n'.encode())
            process.kill()
            return False


def unit_failures(name, text, bad):
    """A line for each failed case, with what it said; one for a program that failed outside of its cases."""
    said = ''
    for line in text.splitlines():
        if line.startswith('not ok'):
            yield f"FAILURE {name}: {line.partition(' - ')[2]}: {said}\n"
        said = '' if re.match(r'(not )?ok\b', line) else line
    if bad and not re.search(r'^not ok\b', text, re.M):
        yield f'FAILURE {name}: {said}\n'


def unit(log_path):
    """Counted by TAP case; a program that broke outside of its cases is one failure more."""
    passed = failed = skipped = 0
    reasons, seconds = collections.Counter(), {}
    for program in sorted(glob.glob(f'{JOB}/build/*_test')):
        name, began = os.path.basename(program), time.monotonic()
        with open('/tmp/tap', 'w+b') as tap:
            well = run([program], tap, UNIT_LIMIT_S, cwd='/tmp', env={**os.environ, 'CAY_TEST_SLOW': SLOWER})
            tap.seek(0)
            text = tap.read().decode('utf-8', 'replace')
        bad = len(re.findall(r'^not ok\b', text, re.M)) or (0 if well else 1)
        skips = len(re.findall(r'^ok\b.*# *SKIP', text, re.M | re.I))
        passed += len(re.findall(r'^ok\b', text, re.M)) - skips
        failed, skipped = failed + bad, skipped + skips
        reasons.update(re.findall(r'^# skipped: (.*)', text, re.M))
        seconds[name] = time.monotonic() - began
        if bad:
            with open(log_path, 'a', encoding='utf-8') as log:
                log.write(f'--- {name}\n{text}\n')
                log.writelines(unit_failures(name, text, bad))
    with open(log_path, 'a', encoding='utf-8') as log:
        log.writelines(f'SKIPPED {count}: {why}\n' for why, count in reasons.most_common())
        slowest = sorted(seconds, key=seconds.get, reverse=True)[:10]
        log.write('SLOWEST ' + ', '.join(f'{name} {seconds[name]:.0f} s' for name in slowest) + '\n')
    return passed, failed, skipped


class Outcomes:
    """Of one run: names of all tests, of those that failed and of those left out."""

    def __init__(self, report):
        self.names, self.bad, self.skipped, self.late = set(), set(), set(), 0
        self.why, self.seconds = {}, {}
        # One test can both fail and err (in its teardown): count tests, not outcomes.
        for case in next(xml.parse(report).iter('testsuite')).iter('testcase'):
            name, skip = (case.get('classname'), case.get('name')), case.find('skipped')
            self.names.add(name)
            self.seconds[name[1]] = float(case.get('time') or 0)
            failure = next((case.find(kind) for kind in ('failure', 'error') if case.find(kind) is not None), None)
            if failure is not None:
                self.bad.add(name)
                self.why[name] = ' '.join((failure.get('message') or '').split())[:500]
            elif skip is not None:
                self.skipped.add(name)
                self.late += 'no time left' in (skip.get('message') or '')


def system(log_path, names, user, group, delegated):
    home = f'/tmp/home-{group}'
    os.mkdir(home)
    os.chown(home, user, user)
    report = os.path.join(home, 'report.xml')
    prefix = ['setpriv', f'--reuid={user}', f'--regid={user}', '--clear-groups'] if user else []
    command = [*prefix, '/usr/bin/python3', '-m', 'pytest', '-v', '-o', f'cache_dir={home}/cache', '-m', 'not slow',
               f'--junitxml={report}', '--tb=short', '--durations=40', *(f'{JOB}/tests/system/test_{n}.py' for n in names)]
    env = {'PATH': os.environ['PATH'], 'HOME': home, 'USER': group, 'LANG': 'C.UTF-8',
           'PYTHONDONTWRITEBYTECODE': '1', 'CAY_BIN': f'{JOB}/build/cay', 'CAY_TEST_SLOW': SLOWER,
           'CAY_TEST_GROUPS': '1' if delegated else '0', 'CAY_TEST_DEADLINE': str(DEADLINE), 'CAY_TEST_LIMIT': TEST_LIMIT}
    if delegated:
        env['CAY_TEST_GROUP_DIR'] = os.path.join(GROUPS, group)
    into = enter(group, user if delegated else None)

    def go(*more):
        limit = max(0, DEADLINE - time.time()) + SUITE_LIMIT_S
        with open(log_path, 'ab') as log:
            run([*command, *more], log, limit, cwd=home, env=env, preexec_fn=into)
        return Outcomes(report)

    try:
        first = go()
    except (OSError, StopIteration, xml.ParseError):
        return 0, 1, 0
    bad = first.bad
    # A few failed tests run once more. Those that pass are named; only listed ones then count as passed.
    if 0 < len(bad) <= UNSTEADY_MOST and time.time() < DEADLINE:
        os.unlink(report)
        try:
            again = go('--last-failed', '--last-failed-no-failures=none')
            bad = {name for name in bad if name in again.bad | again.skipped or name not in again.names}
        except (OSError, StopIteration, xml.ParseError):
            pass
    unsteady = first.bad - bad
    bad |= {name for name in unsteady if not may_be_unsteady(name)}
    with open(log_path, 'a', encoding='utf-8') as log:
        log.writelines(f'UNSTEADY {".".join(name)}\n' for name in sorted(unsteady))
        log.writelines(f'FAILURE {".".join(name)}{" (passed on its retry)" if name in unsteady else ""}: {first.why[name]}\n'
                       for name in sorted(bad))
        slowest = sorted(first.seconds, key=first.seconds.get, reverse=True)[:10]
        log.write('SLOWEST ' + ', '.join(f'{name} {first.seconds[name]:.0f} s' for name in slowest) + '\n')
        if first.late:
            log.write(f'LEFT OUT {first.late} tests: the time was over\n')
    return len(first.names - first.bad - first.skipped) + len(first.bad - bad), len(bad), len(first.skipped)


# Containment, limits and life cycle; what comes late may be left out. Walls and limits are the kernel's, and others
# for root than for a user: both see them. What else there is is seen once. Without groups only what can be different.
FEW = ('version', 'groups', 'death')
MANY = ('version', 'groups', 'posture', 'contain', 'limits', 'death')
WALLS = ('contain', 'posture', 'groups', 'limits', 'isolation')
with open(f'{JOB}/only', encoding='utf-8') as given:
    only = tuple(given.read().split())
    FEW, MANY, WALLS = (only, only, only) if only else (FEW, MANY, WALLS)
# Two at a time, for two processors; whoever is done takes the next. Last comes what is most like another.
SUITES = (
    ('vm (rootful)', system, (MANY, 0, 'root', True)),
    *((('vm (unit)', unit, ()),) if not only else ()),
    ('vm (rootless, no control groups)', system, (FEW, KEPT, 'kept', False)),
    ('vm (rootless)', system, (WALLS, NOBODY, 'given', True)),
)


def command(_):
    with open('/dev/console', 'wb', 0) as log:
        well = run(['bash', f'{JOB}/command'], log, max(0, DEADLINE - time.time()), cwd=JOB)
    return int(well), int(not well), 0


# --- results ---

def save(results):
    with open(RESULTS, 'r+b') as disk:
        with tarfile.open(fileobj=disk, mode='w') as tar:
            text = json.dumps(results).encode()
            info = tarfile.TarInfo('results.json')
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
            for *_, log in results:
                tar.add(os.path.join('/tmp/logs', log), log)
        disk.flush()
        os.fsync(disk.fileno())


def drive(suites, results, lock):
    while True:
        with lock:
            i, (title, suite, args) = next(suites, (None, (None, None, None)))
        if title is None:
            return
        began, log = time.monotonic(), f'{i}.log'
        write(os.path.join('/tmp/logs', log), f'=== {title}\n')
        numbers = suite(os.path.join('/tmp/logs', log), *args)
        print(f'{title}: {numbers} in {time.monotonic() - began:.1f} s', flush=True)
        with lock:
            results.append((title, *numbers, log))
            save(results)


def work():
    os.mkdir('/tmp/logs')
    suites = enumerate([('vm (command)', command, ())] if os.path.exists(f'{JOB}/command') else SUITES)
    results, lock = [], threading.Lock()
    threads = [threading.Thread(target=drive, args=(suites, results, lock)) for _ in range(PROCESSORS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def main():
    set_up()
    print(f'{os.uname().release}: up after {time.clock_gettime(time.CLOCK_BOOTTIME):.1f} s', flush=True)
    worker = os.fork()
    if worker == 0:
        try:
            work()
        finally:
            os._exit(0)
    while os.waitpid(-1, 0)[0] != worker:
        pass


try:
    main()
finally:
    os.sync()
    libc.reboot(RB_POWER_OFF)

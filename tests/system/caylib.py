# SPDX-License-Identifier: Apache-2.0
"""Driving the real programs: running cay, terminals, and a look at what is left behind."""

import ctypes
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import sqlite3
import stat
import struct
import subprocess
import tempfile
import termios
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
CAY = os.path.abspath(os.environ.get('CAY_BIN') or os.path.join(ROOT, 'build/cay'))
ROOTFUL = os.geteuid() == 0
# A group of v2 that is ours, with all controllers for its children; each cay starts in one of these.
GROUP_DIR = os.environ.get('CAY_TEST_GROUP_DIR')
GROUPS = ROOTFUL or bool(GROUP_DIR)  # limits that need control groups can be had
# Of root with CAP_SYS_RESOURCE on the host itself: its wardens have limits of their own, not the starter's.
MAY_RAISE_LIMITS = (os.stat('/proc/self/ns/user').st_ino == 0xeffffffd and
                    any(line.startswith('CapEff:') and int(line.split()[1], 16) >> 24 & 1 for line in open('/proc/self/status', encoding='ascii')))
SLOWER = float(os.environ.get('CAY_TEST_SLOW', '1'))  # all time limits are stretched by it
DEEP = os.environ.get('CAY_TEST_DEEP') == '1'  # scripts/test-deep: what CI runs small runs at full size
SANITIZED = os.environ.get('CAY_TEST_SANITIZED') == '1'  # programs are larger and slower than promised
FREED_KB = 512 << 10 if SANITIZED else 0  # at most what a sanitizer keeps of freed memory, to find its uses
STATE_DIR = os.environ.get('CAY_TEST_STATE_DIR', '/tmp')  # where a cay has its state directory
LEFTOVER_WAIT_S = 10.0 * SLOWER  # what ends by itself does so within milliseconds, but lanes run beside each other
PR_SET_CHILD_SUBREAPER = 36


def wait_until(condition, timeout=30.0, what='the condition'):
    """Poll; the value that became true, or a failure that names what was awaited."""
    timeout *= SLOWER
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f'{what} did not come true within {timeout} s')
        time.sleep(0.01)


def enter_fresh_group():
    """In a child that becomes a cay: limits need a group in which nobody else is. Empty ones are removed on the way."""
    for name in list_dir(GROUP_DIR):
        if name.startswith('test-'):
            for path in (os.path.join(GROUP_DIR, name, 'cay-self'), os.path.join(GROUP_DIR, name)):
                try:
                    os.rmdir(path)
                except OSError:
                    pass
    path = os.path.join(GROUP_DIR, f'test-{os.getpid()}')
    os.mkdir(path)
    with open(os.path.join(path, 'cgroup.procs'), 'w', encoding='utf-8') as f:
        f.write('0')


class Result:
    """What a finished cay left: code (negative: a signal), stdout and stderr as bytes."""

    def __init__(self, args, code, stdout, stderr):
        self.args, self.code, self.stdout, self.stderr = args, code, stdout, stderr

    @property
    def out(self):
        return self.stdout.decode('utf-8', 'replace')

    @property
    def err(self):
        return self.stderr.decode('utf-8', 'replace')

    def __repr__(self):
        return f'cay {self.args} -> {self.code}\nstdout: {self.stdout[-2000:]!r}\nstderr: {self.stderr[-2000:]!r}'


class Process(subprocess.Popen):
    """A cay that runs. As a context manager it never outlives its block."""

    def __exit__(self, *exc):
        if self.poll() is None:
            self.kill()
        super().__exit__(*exc)
        self.cay.pids.discard(self.pid)

    def read_until(self, what, timeout=60):
        """stdout up to and with these bytes."""
        found, end = b'', time.monotonic() + timeout * SLOWER
        while what not in found:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.stdout], [], [], left)[0]:
                raise AssertionError(f'{what!r} did not come; got {found[-2000:]!r}')
            data = os.read(self.stdout.fileno(), 65536)
            if not data:
                raise AssertionError(f'{what!r} did not come before the end; got {found[-2000:]!r}')
            found += data
        return found

    def finish(self, timeout=60):
        """What is left to read, and the end."""
        try:
            out, err = self.communicate(timeout=timeout * SLOWER)
        except subprocess.TimeoutExpired:
            self.kill()
            out, err = self.communicate()
            raise AssertionError(f'no end within {timeout} s; {out[-2000:]!r} {err[-2000:]!r}') from None
        return Result(self.args[1:], self.returncode, out or b'', err or b'')


class Cay:
    """cay with a state directory of its own."""

    def __init__(self):
        # Short: socket paths below it must fit into 108 bytes.
        self.state = tempfile.mkdtemp(prefix='cay-test-', dir=STATE_DIR)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith('CAY_')}
        self.env.update(CAY_STATE=self.state, NO_COLOR='1', LC_ALL='C.UTF-8')
        self.pids = set()  # processes that somebody here waits for

    def take_template(self, other):
        """The host's base layer, built in another state directory, as links: building one takes seconds of work."""
        built = [name for name in list_dir(f'{other.state}/templates/host') if name.startswith('v')]
        if built:
            os.makedirs(f'{self.state}/templates/host', mode=0o700)
            subprocess.run(['cp', '-al', *(f'{other.state}/templates/host/{name}' for name in built),
                            f'{self.state}/templates/host/'], check=True)
        return bool(built)

    def popen(self, *args, env=None, **options):
        command = [CAY, *(a if isinstance(a, bytes) else str(a) for a in args)]
        options.setdefault('stdin', subprocess.DEVNULL)
        options.setdefault('stdout', subprocess.PIPE)
        options.setdefault('stderr', subprocess.PIPE)
        if GROUP_DIR:
            options.setdefault('preexec_fn', enter_fresh_group)
        process = Process(command, env={**self.env, **(env or {})}, **options)
        process.cay = self
        self.pids.add(process.pid)
        return process

    def __call__(self, *args, input=None, timeout=120, check=False, env=None, **options):
        """Run to the end. check: fail the test unless it exits with 0."""
        stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
        if isinstance(input, str):
            input = input.encode()
        with self.popen(*args, env=env, stdin=stdin, **options) as process:
            try:
                out, err = process.communicate(input, timeout=timeout * SLOWER)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                result = Result(args, process.returncode, out or b'', err or b'')
                raise AssertionError(f'no end within {timeout} s: {result!r}') from None
        result = Result(args, process.returncode, out or b'', err or b'')
        if check and result.code != 0:
            raise AssertionError(f'exit code is not 0: {result!r}')
        return result

    def create(self, *args):
        """A sandbox; its id."""
        return self('create', *args, check=True).out.strip()

    def events(self, ref, *args):
        """The trace, parsed."""
        return [json.loads(line) for line in self('trace', '--json', ref, *args, check=True).out.splitlines()]

    def json(self, *args):
        """Every line of stdout as JSON."""
        return [json.loads(line) for line in self(*args, '--json', check=True).out.splitlines()]

    def listed(self):
        """The ids that `cay ls` shows, once it does: one of `cay run` has to live for a moment."""
        return wait_until(lambda: self('ls', '-q').out.split(), what='a sandbox in the list')

    def warden(self, ref):
        """The pid of the warden of a sandbox."""
        init = self.json('show', ref)[0]['init_pid']
        return processes()[init][0]

    def spawn_pty(self, *args, rows=24, cols=80, env=None):
        return Terminal(self, args, rows, cols, {**self.env, 'TERM': 'xterm', **(env or {})})

    def remove(self):
        """The state directory, with what a sandbox made unreadable in it."""
        if subprocess.run(['rm', '-rf', self.state], stderr=subprocess.DEVNULL, check=False).returncode:
            for folder, names, _ in os.walk(self.state):  # before it looks into them
                for path in (os.path.join(folder, name) for name in names):
                    if not os.path.islink(path):
                        os.chmod(path, stat.S_IRWXU)
            shutil.rmtree(self.state, ignore_errors=True)


def remove_all(cay):
    """Sandboxes, what is left of lost ones, and snapshots."""
    cay('kill', '--all', '--yes')
    cay('gc', '--lost')
    for snap in cay.json('snapshots'):
        cay('snapshot', 'rm', snap['id'], check=True)


def why_no_storage():
    """What `cay setup storage` lacks here, or None."""
    if not ROOTFUL:
        return 'a pool needs root'
    if 'btrfs' not in read_text('/proc/filesystems').split():
        return 'this kernel has no btrfs'
    if not os.path.exists('/dev/loop-control'):
        return 'there are no loop devices here'
    return None if shutil.which('mkfs.btrfs', path='/usr/sbin:/sbin:/usr/bin') else 'there is no mkfs.btrfs'


class Terminal:
    """cay on a terminal of its own. Use as a context manager."""

    def __init__(self, cay, args, rows, cols, env):
        self.cay, self.output, self.code = cay, b'', None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', rows, cols, 0, 0))
                if GROUP_DIR:
                    enter_fresh_group()
                os.execve(CAY, [CAY, *map(str, args)], env)
            finally:
                os._exit(127)
        cay.pids.add(self.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            self._reap(0)
        os.close(self.fd)

    def send(self, text):
        os.write(self.fd, text if isinstance(text, bytes) else text.encode())

    def resize(self, rows, cols):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, cols, 0, 0))

    def is_raw(self):
        """Whether the terminal's line discipline is out of the way."""
        return not termios.tcgetattr(self.fd)[3] & termios.ICANON

    def _read(self, timeout):
        """False at the end."""
        if not select.select([self.fd], [], [], timeout)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # EIO: the other side is closed
            return False
        self.output += data
        return bool(data)

    def expect(self, pattern, timeout=30):
        """Wait for a regular expression; returns the match and drops the output up to its end."""
        pattern = pattern if isinstance(pattern, bytes) else pattern.encode()
        end, more = time.monotonic() + timeout * SLOWER, True
        while True:
            match = re.search(pattern, self.output)
            if match:
                self.output = self.output[match.end():]
                return match
            if not more or time.monotonic() > end:
                raise AssertionError(f'{pattern!r} did not come; the terminal shows {self.output[-2000:]!r}')
            more = self._read(0.05)

    def _reap(self, flags):
        pid, status = os.waitpid(self.pid, flags)
        if pid:
            self.code = os.waitstatus_to_exitcode(status)
            self.cay.pids.discard(self.pid)
        return pid

    def wait(self, timeout=30):
        """Read to the end; the exit code."""
        end = time.monotonic() + timeout * SLOWER
        while self.code is None:
            if time.monotonic() > end:
                raise AssertionError(f'no end within {timeout} s; the terminal shows {self.output[-2000:]!r}')
            if not self._read(0.01):
                time.sleep(0.01)
            self._reap(os.WNOHANG)
        while self._read(0) and select.select([self.fd], [], [], 0)[0]:
            pass
        return self.code


def shell(cay, script, **options):
    """A host's shell in which $CAY is our cay."""
    process = Process(['sh', '-c', script], env={**cay.env, 'CAY': CAY}, stdin=subprocess.DEVNULL,
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    process.cay = cay
    cay.pids.add(process.pid)
    return process


# --- what is left behind ---

def become_subreaper():
    """Whatever our cays leave running becomes our child, however often it forked."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), 'prctl')


def read_text(path):
    try:
        with open(path, encoding='utf-8', errors='replace') as f:
            return f.read()
    except OSError:
        return ''


def list_dir(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


def processes():
    """pid -> (parent, state letter, name)"""
    found = {}
    for pid in filter(str.isdigit, os.listdir('/proc')):
        text = read_text(f'/proc/{pid}/stat')
        if text:
            name, rest = text[text.index('(') + 1:text.rindex(')')], text[text.rindex(')') + 2:].split()
            found[int(pid)] = (int(rest[1]), rest[0], name)
    return found


def family(found):
    """Of processes(), all that come from us."""
    ours, grew = {os.getpid()}, True
    while grew:
        more = {p for p, (parent, _, _) in found.items() if parent in ours} - ours
        grew = bool(more)
        ours |= more
    return ours - {os.getpid()}


def descendants(awaited):
    """Our processes, without those that somebody waits for; orphans that ended are reaped."""
    found, out = processes(), set()
    for pid in family(found) - awaited:
        parent, state, name = found[pid]
        if state == 'Z' and parent == os.getpid():
            os.waitpid(pid, os.WNOHANG)
        elif name != 'cay-init' or found.get(parent, (0, '', ''))[2] != 'cay-init':  # waits for a call, and ends with its init
            out.add(f'process {pid} ({name})')
    return out


def mounts(state):
    return {f'mount {line.split()[4]}' for line in read_text('/proc/self/mountinfo').splitlines() if state in line}


def host_mounts(cay):
    """All lines but those of tests that run beside this one."""
    return [line for line in read_text('/proc/self/mountinfo').splitlines()
            if cay.state in line or not re.search('/cay-test-|/pytest-of-| cay-test ', line)]


def known_ids(cays):
    """Of every sandbox that the state directories tell of, also of ended ones."""
    return {name.split('.')[0] for c in cays for d in ('sandboxes', 'locks', 'ended') for name in list_dir(f'{c.state}/{d}')}


def control_groups(cays):
    """Groups named cay-ID that are ours; others may work on this machine too."""
    if not GROUPS:
        return set()
    out, ours, known = set(), None, known_ids(cays)
    for folder, names, _ in os.walk('/sys/fs/cgroup'):
        for name in [n for n in names if n.startswith('cay-')]:
            path = os.path.join(folder, name)
            pids = {int(p) for d, _, _ in os.walk(path) for p in read_text(f'{d}/cgroup.procs').split()}
            if GROUP_DIR and not pids:
                continue  # of one who died: a cay in another group does not find it, whoever gave the group removes it
            if pids and ours is None:
                ours = {int(re.search(r'\d+', t).group()) for t in descendants(set())}
            if name[4:] in known or (pids and pids & ours):
                out.add(f'control group {path}')
    return out


def rows(state):
    path = os.path.join(state, 'catalog.db')
    if not os.path.exists(path):
        return set()
    with sqlite3.connect(f'file:{path}?mode=ro', uri=True, timeout=5) as db:
        tables = {name for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        found = set()
        for table in tables & {'sandboxes', 'calls'}:
            found |= {f'row of {table} {row[:2]!r}' for row in db.execute(f'SELECT * FROM {table}')}
    db.close()
    return found


def entries(state):
    return {f'{folder}/{name}' for folder in ('sandboxes', 'locks') for name in list_dir(os.path.join(state, folder))}


def everything(cays):
    awaited = set().union(*(c.pids for c in cays)) if cays else set()
    found = descendants(awaited) | control_groups(cays)
    for cay in cays:
        found |= mounts(cay.state) | rows(cay.state) | entries(cay.state)
    return found


def leftovers(cays, before):
    """What is there now and was not before; what ends by itself gets a bounded time to do so."""
    end = time.monotonic() + LEFTOVER_WAIT_S
    while True:
        left = everything(cays) - before
        if not left or time.monotonic() > end:
            return sorted(left)
        time.sleep(0.02)


def kill_left(left):
    """End the processes of a list of leftovers, so that the next test starts clean."""
    for pid in (int(text.split()[1]) for text in left if text.startswith('process ')):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

# SPDX-License-Identifier: Apache-2.0
"""Everything that can be used up: a sandbox stops at its own limit, and neighbours and host go on."""

import os
import re
import statistics
import subprocess
import time

import pytest

import caylib
from caylib import GROUPS, ROOTFUL, SLOWER, read_text

pytestmark = pytest.mark.alone
MIB = 1 << 20
OUTPUT = (10 if caylib.DEEP else 2) << 30
SAMPLES = 15
TRIES = 4
needs_groups = pytest.mark.skipif(not GROUPS, reason='an ordinary user has no control groups here')
needs_root = pytest.mark.skipif(not ROOTFUL, reason='about several sandboxes of root')

# Each goes on for ever, as far as it is let; the words that it may say are not looked at.
ATTACKS = {
    'fork bomb': '''python3 -c '
import os
while True:
    try: os.fork()
    except OSError: pass' ''',
    'descriptors': '''while :; do python3 -c '
import os
try:
    while True: os.pipe()
except OSError: pass
import time; time.sleep(0.2)' & sleep 0.02; done 2>/dev/null''',
    'disk': 'while :; do head -c 8M /dev/zero >/tmp/f$(date +%N) || sleep 0.1; done 2>/dev/null',
    'inodes': 'i=0; while :; do i=$((i + 1)); : >/tmp/i$i || sleep 0.1; done 2>/dev/null',
    'inotify': '''while :; do python3 -c '
import ctypes, os
libc = ctypes.CDLL(None)
fds = [libc.inotify_init() for _ in range(300)]
for fd in fds:
    for top, _, names in os.walk("/usr/lib"):
        libc.inotify_add_watch(fd, top.encode(), 0xfff)' 2>/dev/null; done''',
    'terminals': '''python3 -c '
import os, time
try:
    while True: os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
except OSError: time.sleep(60)' ''',
}
MEMORY = {
    'memory': 'python3 -c "k = []\nwhile True: k.append(bytearray(4 << 20))"',
    'tmpfs': 'head -c 4G /dev/zero >/dev/shm/x',
    'page tables': '''python3 -c '
import mmap
k = []
while True:
    m = mmap.mmap(-1, 64 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.PROT_READ)
    k.append(m)
    for i in range(0, len(m), 2 << 20): m[i]' ''',
    'pipes': '''python3 -c '
import fcntl, os
while os.fork(): pass
try:
    while True:
        r, w = os.pipe()
        os.set_blocking(w, False)
        os.write(w, bytes(65536))
except OSError: pass
import time; time.sleep(1)' ''',
    'unix sockets': '''python3 -c '
import os, socket
os.fork(), os.fork(), os.fork(), os.fork()
k = []
try:
    while True:
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        k += [a, b]
        a.setblocking(False)
        try:
            while True: a.send(bytes(30000))
        except BlockingIOError: pass
except OSError: pass
import time; time.sleep(1)' ''',
    'udp sockets': '''python3 -c '
import os, socket
os.fork(), os.fork(), os.fork(), os.fork()
k = []
try:
    while True:
        r = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        r.bind(("127.0.0.1", 0))
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.connect(r.getsockname())
        s.setblocking(False)
        k.append(r)
        for i in range(300): s.send(bytes(1000))
        s.close()
except OSError: pass
import time; time.sleep(1)' ''',
    'tcp sockets': '''python3 -c '
import os, socket
os.fork(), os.fork(), os.fork(), os.fork()
k, server = [], socket.create_server(("127.0.0.1", 0), backlog=100)
try:
    while True:
        c = socket.create_connection(server.getsockname())
        k += [c, server.accept()[0]]
        c.setblocking(False)
        try:
            while True: c.send(bytes(65536))
        except BlockingIOError: pass
except OSError: pass
import time; time.sleep(1)' ''',
}
ENDS = ('disk', 'inodes')  # above the limit the call is killed
LIMITS = ('--pids', '60', '--files', '256', '--disk', '64M')
GROUP_LIMITS = ('--memory', '128M', '--cpus', '0.5')


def available():
    return int(re.search(r'MemAvailable:\s+(\d+)', read_text('/proc/meminfo')).group(1)) << 10


def free_disk(path):
    s = os.statvfs(path)
    return s.f_bavail * s.f_frsize, s.f_favail


def latency(cay, ref):
    """Median of calls in a sandbox, in seconds."""
    times = []
    for _ in range(SAMPLES):
        start = time.monotonic()
        assert cay('exec', ref, '--', 'true').code == 0
        times.append(time.monotonic() - start)
    return statistics.median(times)


@pytest.fixture
def sandboxes(cay):
    made = []

    def make(*options):
        made.append(cay('create', *options, check=True).out.strip())
        return made[-1]

    yield make
    for ref in made:
        cay('kill', ref)


def check_neighbour(cay, neighbour, name):
    """A neighbour's calls while one attacks, against before and after: others use this machine too, so a noisy try is repeated."""
    ratios = []
    for _ in range(TRIES):
        before = latency(cay, neighbour)
        script = f'while :; do {({**ATTACKS, **MEMORY})[name]} ; done 2>/dev/null'
        with cay.popen('run', *LIMITS, *GROUP_LIMITS, '--', 'sh', '-c', script) as attack:
            time.sleep(0.5 * SLOWER)
            during = latency(cay, neighbour)
            assert attack.poll() is None or name in ENDS, attack.finish()
        ratios.append(during / max(before, latency(cay, neighbour)))
        if ratios[-1] <= 2:
            return
    pytest.fail(f"the neighbour's calls took {', '.join(f'{r:.1f}' for r in ratios)} times as long")


@needs_groups
@pytest.mark.slow
@pytest.mark.parametrize('name', [*ATTACKS, *MEMORY])
def test_neighbours_and_host_do_not_notice(cay, sandboxes, name):
    neighbour = sandboxes()
    memory, (disk, inodes) = available(), free_disk(cay.state)
    check_neighbour(cay, neighbour, name)
    assert memory - available() < 600 * MIB
    left = free_disk(cay.state)
    assert disk - left[0] < 600 * MIB and inodes - left[1] < 60000
    assert cay('exec', neighbour, '--', 'echo', 'well').out == 'well\n'


@needs_groups
@pytest.mark.parametrize('name', MEMORY)
def test_memory_of_every_kind_stays_at_its_limit(cay, name):
    """The host's memory while it is tried, looked at from outside; others may take some meanwhile, not every time."""
    taken = []
    while len(taken) < TRIES and (not taken or taken[-1] >= (128 + 128 + 250) * MIB):
        before, least = available(), 1 << 60
        with cay.popen('run', *LIMITS, *GROUP_LIMITS, '--timeout', '4s', '--', 'sh', '-c', MEMORY[name]) as run:
            while run.poll() is None:
                least = min(least, available())
                time.sleep(0.05)
            run.finish()
        taken.append(before - least)
    # Without a limit each of these takes gigabytes.
    assert taken[-1] < (128 + 128 + 250) * MIB, taken


def test_a_fork_bomb_ends_at_its_limit_and_the_sandbox_can_be_used_afterwards(cay, sandboxes):
    box = sandboxes('--pids', '60')
    cay('exec', '--timeout', '3s', box, '--', 'sh', '-c', ATTACKS['fork bomb'])
    caylib.wait_until(lambda: cay('exec', box, '--', 'true').code == 0, 10, 'a call')


INOTIFY = '''
import ctypes, errno
libc, n = ctypes.CDLL(None, use_errno=True), 0
while libc.inotify_init() >= 0: n += 1
print(n, errno.errorcode[ctypes.get_errno()], flush=True)
input()
'''
TERMINALS = '''
import errno, os
n = 0
try:
    while n < 4000:
        os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY)
        n += 1
except OSError as e:
    print(n, errno.errorcode[e.errno], flush=True)
    input()
'''
AIO = '''
import ctypes, errno
libc, c = ctypes.CDLL(None, use_errno=True), ctypes.c_ulong(0)
print(libc.syscall(206, 1024, ctypes.byref(c)), errno.errorcode[ctypes.get_errno()])
'''


@pytest.mark.parametrize('what, end', [(INOTIFY, b'64 EMFILE\n'), (TERMINALS, b'128 ENOSPC\n')], ids=['inotify', 'terminals'])
def test_what_the_kernel_has_little_of_is_shared(cay, sandboxes, what, end):
    """Inotify is counted per owner of a namespace, terminals per machine: one sandbox does not use all up."""
    boxes = [sandboxes('--files', '4000') for _ in range(3 if ROOTFUL else 1)]
    users = [cay.popen('exec', b, '--', 'python3', '-c', what, stdin=subprocess.PIPE) for b in boxes]
    try:
        for user in users:
            user.read_until(end)
        for command in (['python3', '-c', 'import ctypes; assert ctypes.CDLL(None).inotify_init() >= 0'],
                        ['python3', '-c', 'import os; os.openpty()']):
            assert subprocess.run(command, check=False).returncode == 0, 'nothing is left for the host'
    finally:
        for user in users:
            user.finish()  # closes its stdin


def test_what_is_counted_for_the_whole_machine_only_is_not_there(cay):
    """fs.aio-max-nr: one sandbox could take all of it."""
    assert cay('run', '--', 'python3', '-c', AIO, check=True).out == '-1 ENOSYS\n'


@needs_root
@pytest.mark.slow
def test_gigabytes_of_output_leave_memory_flat(cay, sandboxes):
    """And all of them are counted, with the exit code behind them."""
    box = sandboxes()
    warden = cay.warden(box)
    top, seen = 0, set()
    with cay.popen('exec', box, '--', 'sh', '-c', f'head -c {OUTPUT} /dev/zero; exit 7', stdout=subprocess.DEVNULL) as run:
        while run.poll() is None:
            for pid in (run.pid, warden):
                found = re.search(r'RssAnon:\s+(\d+)', read_text(f'/proc/{pid}/status'))
                if found:
                    seen.add(pid)
                    top = max(top, int(found.group(1)))
            time.sleep(0.05)
    assert run.returncode == 7
    exited, = [e for e in cay.events(box) if e['kind'] == 'call.exit']
    assert OUTPUT in exited.values(), exited
    assert len(seen) == 2 and top < 4 * 1024 + caylib.FREED_KB, f'{top} KiB'

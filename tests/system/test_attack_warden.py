# SPDX-License-Identifier: Apache-2.0
"""Clients that break the protocol, and sandboxes that try to use their warden up."""

import os
import random
import resource
import socket
import struct
import subprocess
import time

import caylib
import pytest
from proto import (C_BUILD as BUILD, C_EXEC as EXEC, C_EXIT as EXIT, C_HELLO as HELLO, C_INFO as INFO, C_PS as PS,
                   C_RESIZE as RESIZE, C_SETTLE as SETTLE, C_SIGNAL as SIGNAL, C_STDIN as STDIN, C_STDIN_EOF as STDIN_EOF,
                   PROTO_CLIENT_VERSION, TAG_ARG, TAG_COLS, TAG_OP, TAG_PATH, TAG_ROWS, TAG_SIGNAL, TAG_TTY,
                   TAG_VERSION)



def frame(kind, body=b'', chan=1, fds=0, zero=0, length=None):
    return struct.pack('<IBBHI', len(body) if length is None else length, kind, fds, zero, chan) + body


def field(tag, value):
    value = struct.pack('<Q', value) if isinstance(value, int) else value
    return struct.pack('<HI', tag, len(value)) + value


def args(*argv):
    return b''.join(field(TAG_ARG, a.encode()) for a in argv)


def kinds_of(data):
    """The types of the whole frames in it."""
    while len(data) >= 12 and len(data) >= 12 + struct.unpack('<I', data[:4])[0]:
        yield data[4]
        data = data[12 + struct.unpack('<I', data[:4])[0]:]


HELLO_FRAME = frame(HELLO, field(TAG_VERSION, PROTO_CLIENT_VERSION), chan=0)


def warden_of(sandbox):
    """By its working directory; those of other users do not tell it."""
    for pid, (_, _, name) in caylib.processes().items():
        try:
            if name == 'cay-warden' and os.readlink(f'/proc/{pid}/cwd').endswith(sandbox):
                return pid
        except OSError:
            pass
    raise AssertionError(f'{sandbox} has no warden')


class Sandbox:
    hello = HELLO_FRAME

    def __init__(self, cay):
        self.cay = cay
        self.id = cay('create', check=True).out.strip()
        self.warden = warden_of(self.id)

    def connect(self, hello=True):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.settimeout(5 * caylib.SLOWER)
        s.connect(f'{self.cay.state}/sandboxes/{self.id}/sock')
        if hello:
            s.sendall(self.hello)
        return s

    def ask(self, data, hello=True):
        """Send it, and read whatever comes until the warden closes or answers nothing more."""
        with self.connect(hello) as s:
            s.settimeout(0.3)
            out = b''
            try:
                s.sendall(data)
                while part := s.recv(65536):
                    out += part
            except OSError:
                pass
            return out

    def is_well(self):
        return self.cay('exec', self.id, '--', 'echo', 'well', timeout=10).stdout == b'well\n'

    def cpu_ticks(self):
        text = caylib.read_text(f'/proc/{self.warden}/stat')
        return sum(map(int, text[text.rindex(')') + 2:].split()[11:13]))

    def processes(self):
        return self.cay('ps', self.id, '--json', check=True).out


@pytest.fixture
def sandbox(cay):
    box = Sandbox(cay)
    yield box
    cay('kill', box.id, check=True, timeout=20)


BROKEN = {
    'no hello': (False, frame(INFO)),
    'another version': (False, frame(HELLO, field(TAG_VERSION, 99)) + frame(INFO)),
    'a version of three bytes': (False, frame(HELLO, field(TAG_VERSION, b'abc'))),
    'too long': (True, frame(EXEC, length=1 << 31)),
    'one byte too long': (True, frame(EXEC, length=(1 << 20) + 1)),
    'not zero': (True, frame(INFO, zero=7)),
    'descriptors that do not come': (True, frame(INFO, fds=3)),
    'too many descriptors': (True, frame(INFO, fds=255)),
    'unknown request': (True, frame(200)),
    'a second build': (True, frame(BUILD, field(TAG_VERSION, 1))),
    'a field beyond its body': (True, frame(EXEC, struct.pack('<HI', TAG_ARG, 0xffffffff) + b'x')),
    'half a field': (True, frame(EXEC, b'\x03')),
    'half a header': (True, b'\x00\x00'),
    'half a body': (True, frame(EXEC, b'x' * 10, length=1000)),
    'a NUL in an argument': (True, frame(EXEC, field(TAG_ARG, b'a\0b'))),
    'too many arguments': (True, frame(EXEC, field(TAG_ARG, b'') * 4097)),
    'an unknown operation': (True, frame(EXEC, field(TAG_OP, 77))),
    'a file operation without a path': (True, frame(EXEC, field(TAG_OP, 1))),
    'no argument at all': (True, frame(EXEC) + frame(STDIN_EOF)),
    'a channel twice': (True, frame(EXEC, args('cat')) * 2),
    'stdin of no call': (True, frame(STDIN, b'x' * 65536, chan=9) * 20),
    'a signal of no call': (True, frame(SIGNAL, field(TAG_SIGNAL, 9), chan=9)),
    'impossible signals': (True, frame(EXEC, args('sleep', '1')) +
                           b''.join(frame(SIGNAL, field(TAG_SIGNAL, n)) for n in (0, 64, 65, 127, 128, 1 << 63))),
    'a size of no terminal': (True, frame(EXEC, args('true')) + frame(RESIZE, field(TAG_ROWS, 9) + field(TAG_COLS, 9))),
    'more stdin than credit': (True, frame(EXEC, args('sleep', '5')) + frame(STDIN, b'x' * 65536) * 8),
}


@pytest.mark.parametrize('what', BROKEN)
def test_a_broken_client_harms_only_itself(shared_sandbox, what):
    hello, data = BROKEN[what]
    shared_sandbox.ask(data, hello)
    assert shared_sandbox.is_well()


@pytest.fixture(scope='module')
def shared_sandbox(cay):
    box = Sandbox(cay)
    yield box
    cay('kill', box.id, check=True)


def test_random_frames_harm_nobody(sandbox):
    random.seed(7)
    kinds = [HELLO, BUILD, EXEC, STDIN, STDIN_EOF, SIGNAL, RESIZE, PS, INFO, SETTLE, 0, 1, 2, 17, 18, 99, 255]
    bodies = [b'', args('true'), args('cat'), args('nonesuch'), field(TAG_TTY, 1) + args('cat'), b'\xff' * 100,
              field(TAG_OP, 1) + field(TAG_PATH, b'/etc/hostname'), field(TAG_OP, 3) + field(TAG_PATH, b'/etc'),
              field(TAG_OP, 4) + field(TAG_PATH, b'/tmp'), field(TAG_SIGNAL, 9), os.urandom(3000)]
    for _ in range(80):
        with sandbox.connect() as s:
            data = b''.join(frame(random.choice(kinds), random.choice(bodies), random.randrange(4))
                            for _ in range(random.randrange(12)))
            s.settimeout(0.05)
            try:
                s.sendall(data[:random.randrange(len(data) + 1)] if random.random() < 0.5 else data)
                if random.random() < 0.5:
                    s.recv(65536)
            except OSError:
                pass
    assert sandbox.is_well()


def test_a_client_that_never_reads_does_not_make_the_warden_grow(sandbox):
    def rss_kb():
        return int(caylib.read_text(f'/proc/{sandbox.warden}/statm').split()[1]) * 4

    with sandbox.connect() as s:
        s.settimeout(2)
        try:
            for _ in range(20000):
                s.sendall(frame(PS) * 10)
        except OSError:
            pass
        assert sandbox.is_well()
        assert rss_kb() < 20 * 1024 + caylib.FREED_KB


def test_connections_above_the_limit_are_closed_and_the_others_work(sandbox):
    many = [sandbox.connect() for _ in range(63)]
    assert sandbox.is_well()
    more = [sandbox.connect(hello=False) for _ in range(40)]
    for s in many + more:
        s.close()
    assert caylib.wait_until(sandbox.is_well, what='a free connection')


def test_a_sandbox_whose_connections_are_all_taken_can_be_killed(cay):
    box = Sandbox(cay)
    taken = [box.connect() for _ in range(64)]
    try:
        assert not box.is_well()
        assert cay('kill', box.id, check=True, timeout=20).out == f'{box.id}\n'
    finally:
        for s in taken:
            s.close()
    assert cay('show', box.id).code != 0


def test_a_call_whose_client_leaves_at_once_is_ended(sandbox):
    for _ in range(15):
        with sandbox.connect() as s:
            s.sendall(frame(EXEC, args('sleep', '4711')))
    caylib.wait_until(lambda: '4711' not in sandbox.processes(), what='the end of calls without a client')


def test_a_blocked_client_costs_no_cpu(sandbox):
    """The command has ended, its last output waits in the pipe, and nobody reads."""
    for size in range(480_000, 720_000, 30_000):  # where it gets stuck depends on socket buffers
        with sandbox.cay.popen('exec', sandbox.id, '--', 'head', '-c', size, '/dev/zero') as p:
            time.sleep(0.3)  # nothing tells when the last byte has got stuck
            before = sandbox.cpu_ticks()
            time.sleep(0.4)
            spent = sandbox.cpu_ticks() - before
            assert len(p.stdout.read()) == size
        sandbox.cay.pids.discard(p.pid)
        assert spent <= 4, f'{spent} of 40 ticks with {size} bytes'


def test_a_signal_right_after_the_start_arrives(sandbox):
    """init gets both at once, when the child does not lead a process group yet."""
    for _ in range(5):
        with sandbox.connect() as s:
            s.sendall(frame(EXEC, args('sleep', '30')) + frame(SIGNAL, field(TAG_SIGNAL, 9)))
            data = b''
            while not any(kind == EXIT for kind in kinds_of(data)):
                data += s.recv(65536)


def test_many_processes_leave_the_sandbox_usable(cay):
    """Each process that the warden knows takes one of its descriptors."""
    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

    name = cay('create', check=True, preexec_fn=few_files).out.strip()
    cay('exec', name, '--', 'sh', '-c', 'i=0; while [ $i -lt 400 ]; do sleep 60 & i=$((i+1)); done', check=True)
    for _ in range(3):
        said = cay('exec', name, '--', 'echo', 'well', timeout=20)
        assert said.stdout == b'well\n', said
    cay('kill', name, check=True, timeout=20)


def test_the_limit_of_open_files_inside_is_the_usual_one(cay):
    """Not the creator's, unless the creator may not raise its hard limit again."""
    def files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (777, 900))

    expected = '1024\n65536\n' if caylib.MAY_RAISE_LIMITS else '900\n900\n' if caylib.ROOTFUL else '675\n675\n'
    assert cay('run', '--', 'sh', '-c', 'ulimit -Sn; ulimit -Hn', preexec_fn=files).out == expected


def test_clients_that_do_not_read_do_not_delay_the_end(cay):
    box = Sandbox(cay)
    stuck = []
    for _ in range(6):
        s = box.connect()
        s.sendall(frame(EXEC, args('cat', '/dev/zero')))
        stuck.append(s)
    time.sleep(0.5)  # until their sockets are full
    begin = time.monotonic()
    cay('kill', box.id, check=True, timeout=20)
    assert time.monotonic() - begin < 4.5 * caylib.SLOWER
    for s in stuck:
        s.close()


@pytest.mark.skipif(not caylib.ROOTFUL, reason='needs a mount')
def test_a_full_disk_ends_the_sandbox_and_it_can_be_removed(fresh_cay):
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=160m,mode=0700', 'none', fresh_cay.state], check=True)
    try:
        name = fresh_cay('create', check=True).out.strip()
        fresh_cay('exec', name, '--', 'sh', '-c', 'cat /dev/zero > /tmp/fill', timeout=20)
        result = fresh_cay('exec', name, '--', 'sh', '-c', 'for i in $(seq 3000); do /bin/true; done', timeout=60)
        assert result.code != 0
        fresh_cay('kill', name, timeout=10)
        fresh_cay('gc', timeout=10)
        assert not caylib.list_dir(f'{fresh_cay.state}/sandboxes')
    finally:
        caylib.wait_until(lambda: subprocess.run(['umount', fresh_cay.state], check=False).returncode == 0,
                          what='the end of the last who uses it')

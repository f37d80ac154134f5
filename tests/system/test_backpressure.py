# SPDX-License-Identifier: Apache-2.0
"""Streams of any size leave our processes flat in memory, and a stalled reader stalls nothing else."""

import fcntl
import os
import re
import signal
import struct
import subprocess
import termios
import threading
import time

import caylib

OUTPUT, INPUT = (2 << 30, 1 << 30) if caylib.DEEP else (512 << 20, 256 << 20)  # far more than GROWTH_KB
GROWTH_KB = 4096 + caylib.FREED_KB


class Memory(threading.Thread):
    """Samples the resident memory of our programs below this process."""

    def __init__(self):
        super().__init__(daemon=True)
        self.first, self.most, self.stop = {}, {}, threading.Event()

    def begin(self):
        """From now on: what a program needs to start is not growth."""
        self.first, self.most = {}, {}

    def run(self):
        while not self.stop.wait(0.05):
            found = caylib.processes()
            ours = {p for p, (_, _, name) in found.items() if name in ('cay', 'cay-warden', 'cay-init')}
            for pid in ours & caylib.family(found):
                match = re.search(r'VmRSS:\s+(\d+)', caylib.read_text(f'/proc/{pid}/status'))
                if match:
                    key, kb = (found[pid][2], pid), int(match.group(1))
                    self.first.setdefault(key, kb)
                    self.most[key] = max(kb, self.most.get(key, 0))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.join()

    def check(self):
        assert {name for name, _ in self.most} == {'cay', 'cay-warden', 'cay-init'}
        grown = {k: (self.first[k], kb) for k, kb in self.most.items() if kb - self.first[k] >= GROWTH_KB}
        assert not grown, f'grew (first, most, in KiB): {grown}'


def test_output_to_a_slow_reader_leaves_memory_flat(cay):
    size, got, chunks = OUTPUT, 0, 0
    with Memory() as memory, cay.popen('run', '--', 'sh', '-c', f'yes | head -c {size}') as p:
        while True:
            data = os.read(p.stdout.fileno(), 1 << 20)
            if not data:
                break
            if not got:
                memory.begin()
            got += len(data)
            chunks += 1
            if chunks % 1000 == 1 and chunks < 10000:
                time.sleep(0.1)  # slower than the command, so that everything before us fills up
        assert p.wait(60) == 0
    assert got == size
    memory.check()


def test_input_leaves_memory_flat(cay):
    with Memory() as memory, cay.popen('run', '--', 'sh', '-c', 'echo go; sleep 0.5; wc -c', stdin=subprocess.PIPE) as p:
        p.read_until(b'go\n')
        memory.begin()
        block = bytes(1 << 20)
        for _ in range(INPUT >> 20):
            p.stdin.write(block)
        p.stdin.close()
        p.stdin = None
        assert p.finish(60).out == f'{INPUT}\n'
    memory.check()


def test_input_that_nobody_reads_is_not_gathered(cay):
    """The writer is blocked after what pipes and windows hold, far below a MiB or two."""
    with cay.popen('run', '--', 'sleep', '60', stdin=subprocess.PIPE) as p:
        os.set_blocking(p.stdin.fileno(), False)
        sent, end = 0, time.monotonic() + 1.5
        while time.monotonic() < end:
            try:
                sent += os.write(p.stdin.fileno(), bytes(65536))
            except BlockingIOError:
                time.sleep(0.01)
        assert 65536 <= sent < 2 << 20
        p.send_signal(signal.SIGTERM)
        assert p.wait(10) == 128 + signal.SIGTERM


def test_a_stalled_reader_does_not_block_a_signal(cay):
    with cay.popen('run', '--', 'yes') as p:
        caylib.wait_until(lambda: full(p.stdout.fileno()), what='a full pipe')
        time.sleep(0.3)  # until every buffer on the way is full too
        p.send_signal(signal.SIGINT)
        # The end needs the rest of the output to be read; the command is dead before.
        caylib.wait_until(lambda: not [1 for _, _, n in relatives() if n == 'yes'], 5, 'the end of yes')
        os.set_blocking(p.stdout.fileno(), True)
        while os.read(p.stdout.fileno(), 1 << 20):
            pass
        assert p.wait(10) == 128 + signal.SIGINT


def full(fd):
    return struct.unpack('i', fcntl.ioctl(fd, termios.FIONREAD, b'\0' * 4))[0] >= 65536 - 4096


def relatives():
    found = caylib.processes()
    return [found[p] for p in caylib.family(found)]


def test_a_stalled_stderr_does_not_lose_stdout(cay):
    script = 'head -c 3000000 /dev/zero >&2 & head -c 3000000 /dev/zero; wait'
    with cay.popen('run', '--', 'sh', '-c', script) as p:
        counts = {}

        def drain(name, fd):
            counts[name] = 0
            while True:
                data = os.read(fd, 65536)
                if not data:
                    return
                counts[name] += len(data)

        first = threading.Thread(target=drain, args=('out', p.stdout.fileno()))
        time.sleep(0.3)
        first.start()
        time.sleep(0.3)
        drain('err', p.stderr.fileno())
        first.join(20)
        assert p.wait(10) == 0
    assert counts == {'out': 3000000, 'err': 3000000}

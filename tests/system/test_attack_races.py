# SPDX-License-Identifier: Apache-2.0
"""Directories that turn into links to the host and back, thousands of times, while we work in them."""

import mmap
import os
import struct
import subprocess
import sys
import tempfile
import time

import pytest

import caylib

SWAPS = 10000 if caylib.DEEP else 1000
ROUNDS = 40 if caylib.DEEP else 16
LIMIT_S = 120
# Exchanges NAME and .NAME in one step, so that there always is one of both.
SWAP = r'''
import ctypes, mmap, os, struct, sys
libc, names = ctypes.CDLL(None), [n.encode() for n in sys.argv[3:]]
os.chdir(sys.argv[1])
with open(sys.argv[2], 'r+b') as f:
    seen = mmap.mmap(f.fileno(), 4096)
count = 0
while os.getppid() != 1:
    for name in names:
        count += libc.renameat2(-100, name, -100, b'.' + name, 2) == 0
    seen[:8] = struct.pack('Q', count)
'''


class Swapper:
    def __init__(self, cay, where, names):
        self.cay, self.file = cay, tempfile.TemporaryFile()
        self.file.truncate(4096)
        self.seen = mmap.mmap(self.file.fileno(), 4096)
        self.process = subprocess.Popen([sys.executable, '-c', SWAP, where, f'/proc/self/fd/{self.file.fileno()}', *names],
                                        pass_fds=[self.file.fileno()])
        cay.pids.add(self.process.pid)

    def count(self):
        return struct.unpack('Q', self.seen[:8])[0]

    def __enter__(self):
        caylib.wait_until(self.count, what='the first swap')
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.cay.pids.discard(self.process.pid)
        self.file.close()


@pytest.fixture
def places(places):
    """The same with a secret outside, which must stay alone."""
    _, outside = places
    (outside / 'secret').write_text('of the host')
    (outside / 'secret').chmod(0o666)
    return places


def untouched(outside):
    return os.listdir(outside) == ['secret'] and (outside / 'secret').read_text() == 'of the host'


def rounds(swapper, one):
    """One after the other until there were enough swaps; how many came to a good end."""
    end, well, n = time.monotonic() + LIMIT_S * caylib.SLOWER, 0, 0
    while (swapper.count() < SWAPS or n < ROUNDS) and time.monotonic() < end:
        well += bool(one())
        n += 1
    assert swapper.count() >= SWAPS, f'only {swapper.count()} swaps'
    return well


def test_a_template_that_swaps_its_directories_for_links_gets_nothing(cay, places):
    """What a sandbox is built from: mount points, /etc, the working directory."""
    top, outside = places
    names = ('dev', 'proc', 'sys', 'etc', 'mnt', 'work')
    for name in names:
        (top / name).mkdir()
        (top / f'.{name}').symlink_to(outside)

    def create():
        run = cay('run', '--template', f'dir:{top}', '--ro', '/usr/bin/env:/mnt/a/file', '--cwd', '/work', '--user', '1000:1000',
                  '--', '/bin/sh', '-c', 'echo > /dev/null; read -r line < secret; echo "alive $line"', timeout=20)
        assert 'of the host' not in run.out and 'of the host' not in run.err
        assert untouched(outside)
        return 'alive' in run.out

    with Swapper(cay, top, names) as swapper:
        assert rounds(swapper, create), 'no round worked: the test proves nothing'


def test_a_sandbox_that_swaps_its_directories_while_we_copy_gets_nothing(cay, places, tmp_path):
    """Copies in and out, and working directories, through names that the sandbox moves under us."""
    _, outside = places
    targets = [str(outside), f'/proc/1/root{outside}', '/proc/self/fd', f'/proc/self/root{outside}', '/proc/1/cwd']
    names = [f'd{i}' for i in range(len(targets))]
    # The swapper is inside here: the sandbox moves its own names.
    ref = cay('create', check=True).out.strip()
    lay = ' && '.join(f'mkdir /tmp/d{i} && echo own >/tmp/d{i}/secret && ln -s {t} /tmp/.d{i}' for i, t in enumerate(targets))
    try:
        cay('exec', ref, '--', 'sh', '-c', lay, check=True)
        count = 'truncate -s 4096 /tmp/count; exec python3 -c "$0" /tmp /tmp/count ' + ' '.join(names)
        source, got, turn = tmp_path / 'source', tmp_path / 'got', [0]
        source.write_text('planted')
        with cay.popen('exec', ref, '--', 'sh', '-c', count, SWAP.replace('os.getppid() != 1', 'count < 200000')):
            def swaps():
                data = cay('exec', ref, '--', 'cat', '/tmp/count').stdout
                return struct.unpack('Q', data[:8])[0] if len(data) >= 8 else 0
            caylib.wait_until(swaps, what='the first swap')
            good = 0
            while swaps() < SWAPS or turn[0] < ROUNDS // 2:
                name = names[turn[0] % len(names)]
                turn[0] += 1
                out = cay('cp', f'{ref}:/tmp/{name}/secret', got)
                if out.code == 0:
                    assert got.read_text() == 'own\n'
                    got.unlink()
                    good += 1
                cay('cp', source, f'{ref}:/tmp/{name}/new')
                here = cay('exec', '--cwd', f'/tmp/{name}', ref, '--', 'sh', '-c', 'pwd; cat secret')
                assert 'of the host' not in here.out
                assert untouched(outside) and os.listdir(tmp_path) == ['source']
            assert good, 'no copy worked: the test proves nothing'
    finally:
        cay('kill', ref, check=True)

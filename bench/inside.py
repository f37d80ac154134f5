# SPDX-License-Identifier: Apache-2.0
"""Everyday file work inside against outside, on the disk and on an ext4 with a journal.

An ext4 without a journal steps over every inode that was deleted lately, so ratios on it say more about what
ran before than about Cay. Where the bench runs as root, it makes an ext4 with a journal in a file.
"""

import os
import shutil
import statistics
import subprocess

import lab as lab_module
import tracing

# name, limit: the ratios of CPU time that overlayfs and Landlock leave.
GOALS = (('git', 1.5), ('tar x', 1.65), ('find', 1.45), ('grep', 1.45), ('create', 1.8), ('compile', 1.07), ('processes', 1.15))

# Prepares a directory, or does one piece of work in it; prints CPU time of its children and time in µs.
WORK = r'''
import os, resource, shutil, subprocess, sys, time
kind, top, n, many = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
os.chdir(top)
GIT = ['git', '-c', 'user.name=x', '-c', 'user.email=x@y', '-c', 'gc.auto=0', '-c', 'safe.directory=*']
def sh(*words): subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
def create(top, n):
    os.mkdir(top)
    for i in range(n): os.close(os.open(f'{top}/{i}', os.O_CREAT | os.O_WRONLY))
def prepare():
    os.mkdir('repo')
    for d in range(n // 50):
        os.makedirs(f'repo/d{d % 20}/e{d}')
        for i in range(50):
            with open(f'repo/d{d % 20}/e{d}/f{i}', 'w') as f: f.write(f'{d} {i} line\n' * (1 + i % 40))
    sh('tar', 'cf', 'tree.tar', 'repo')
    sh(*GIT, 'init', '-q', 'repo'); sh(*GIT, '-C', 'repo', 'add', '.'); sh(*GIT, '-C', 'repo', 'commit', '-qm', 'x')
    os.mkdir('tree'); sh('tar', 'xf', 'tree.tar', '-C', 'tree')
def work(kind):
    if kind == 'git': sh(*GIT, 'clone', '-q', '--no-hardlinks', 'repo', 'made')
    elif kind == 'tar x': os.mkdir('made'); sh('tar', 'xf', 'tree.tar', '-C', 'made')
    elif kind == 'find': sh('find', 'tree', '-size', '+1000k')
    elif kind == 'grep': sh('grep', '-rc', 'line', 'tree')
    elif kind == 'create':
        pid = os.fork()
        if pid == 0: create('made', n); os._exit(0)
        os.waitpid(pid, 0)
    elif kind == 'compile': sh('make', '-s', '-B', '-j2', '-C', 'src')
    elif kind == 'processes': sh(many, '400', '/bin/true')
    else: prepare()
start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
work(kind)
after, took = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
shutil.rmtree('made', ignore_errors=True)
print(int(cpu * 1e6), int(took * 1e6))
'''

# Median of a plain rename in µs; then the rename of a directory of the lower layer in ms, and how long it was closed.
RENAME = r'''
import os, statistics, sys, threading, time
top, n = sys.argv[1], int(sys.argv[2])
os.chdir(top)
took = []
open('plain0', 'w').close()
for i in range(5000):
    start = time.perf_counter()
    os.rename(f'plain{i % 2}', f'plain{(i + 1) % 2}')
    took.append(time.perf_counter() - start)
os.unlink('plain0')
closed, stop = [], False
def look():
    since = None
    while not stop:
        now = time.perf_counter()
        try: os.stat('flat/0')
        except PermissionError: since = since or now; continue
        except FileNotFoundError: pass
        if since: closed.append(now - since); since = None
def move(old, new):
    start = time.perf_counter()
    os.rename(old, new)
    return time.perf_counter() - start
watcher = threading.Thread(target=look)
watcher.start()
flat = move('flat', 'flat2')
stop = True
watcher.join()
deep = move('lower', 'lower2')
print(statistics.median(took) * 1e6, flat * 1e3, max(closed, default=0) * 1e3, deep * 1e3)
'''


class Journal:
    """An ext4 with a journal in a file, mounted while the bench runs; path is None where it cannot be had."""

    def __init__(self, lab):
        self.path, self.image = None, os.path.join(lab.folder, 'journal.img')
        if not lab.is_root or not shutil.which('mkfs.ext4'):
            lab.skip('inside, with a journal', 'needs root and mkfs.ext4')
            return
        with open(self.image, 'wb') as f:
            f.truncate(4 << 30)
        subprocess.run(['mkfs.ext4', '-q', '-F', '-O', 'has_journal', '-E', 'lazy_itable_init=0', self.image], check=True)
        path = os.path.join(lab.folder, 'journal')
        os.mkdir(path)
        done = subprocess.run(['mount', '-o', 'loop', self.image, path], capture_output=True, text=True, check=False)
        if done.returncode:
            lab.skip('inside, with a journal', done.stderr.strip())
        else:
            self.path = path

    def done(self):
        if self.path:
            subprocess.run(['umount', self.path], check=True)


class Side:
    """One of the two that are compared: runs the work and keeps what each round took."""

    def __init__(self, words, top, many, count):
        self.words, self.tail = words, [str(count), many]
        self.top, self.took = top, {name: [] for name, _ in GOALS}

    def run(self, kind):
        done = subprocess.run([*self.words, '/usr/bin/python3', '-c', WORK, kind, self.top, *self.tail], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f'{kind}: {done.stderr[-400:]}')
        return tuple(map(int, done.stdout.split()))

    def median(self, kind, which):
        return statistics.median(round_[which] for round_ in self.took[kind])


def in_turns(sides, rounds):
    for side in sides:
        side.run('prepare')
    for turn in range(rounds):
        for kind, _ in GOALS:
            for side in sides if turn % 2 else sides[::-1]:
                side.took[kind].append(side.run(kind))


def compare(lab, title, place, count, rounds):
    state = os.path.join(place, 'state')
    os.mkdir(state, 0o700)
    lab.states.append(state)
    sources, bare = os.path.join(place, 'sources'), os.path.join(place, 'bare')
    tracing.project(os.path.join(sources, 'src'), 12)
    shutil.copytree(sources, bare)
    box = lab.create(state, '--dir', f'{sources}:/work', '--ro', f'{lab.many}:/opt/many')
    sides = (Side([], bare, lab.many, count), Side(['env', f'CAY_STATE={state}', lab.cay, 'exec', box, '--'], '/work', '/opt/many', count))
    try:
        in_turns(sides, rounds)
    finally:
        lab.cay_says(state, 'kill', '--all')
    outside, inside = sides
    for kind, limit in GOALS:
        wall = inside.median(kind, 1) / outside.median(kind, 1)
        lab.promise(f'{title}: {kind}, CPU inside / outside', inside.median(kind, 0) / outside.median(kind, 0), limit,
                    detail=f'{inside.median(kind, 0) / 1e3:.0f} / {outside.median(kind, 0) / 1e3:.0f} ms; wall {wall:.2f} x, {rounds} rounds')
    lab.raw[f'inside, {title}'] = {'inside': inside.took, 'outside': outside.took}


def fill(top, files):
    """50 files of up to 4 kB in each directory; and one flat directory."""
    for i in range(files):
        folder = os.path.join(top, 'lower', f'd{i // 50}')
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, str(i)), 'w', encoding='ascii') as f:
            f.write('x' * (i % 8 * 512))
    os.mkdir(os.path.join(top, 'flat'))
    for i in range(1000):
        with open(os.path.join(top, 'flat', str(i)), 'w', encoding='ascii') as f:
            f.write('x' * 1000)


def renames(lab, title, place, rounds):
    """A directory of --dir is renamed: all of it moves to the upper first."""
    state = os.path.join(place, 'state-rename')
    os.mkdir(state, 0o700)
    lab.states.append(state)
    for files in (1000, 10000):
        source = os.path.join(place, f'files{files}')
        fill(source, files)
        seen, bare = [], []
        for turn in range(rounds):
            box = lab.create(state, '--dir', f'{source}:/work')
            seen.append([float(x) for x in lab.cay_says(state, 'exec', box, '--', '/usr/bin/python3', '-c', RENAME, '/work', str(files)).split()])
            lab.cay_says(state, 'kill', box)
            twin = os.path.join(place, f'twin{files}-{turn}')
            fill(twin, 50)
            bare.append([float(x) for x in subprocess.run(['/usr/bin/python3', '-c', RENAME, twin, str(files)], capture_output=True, text=True,
                                                          check=True).stdout.split()])
        plain, flat, closed, deep = (statistics.median(x) for x in zip(*seen))
        lab.fact(f'{title}: rename of a directory of {files} files', deep, 'ms', f'{rounds} rounds, medians')
        lab.fact(f'{title}: rename of 1,000 files in one directory', flat, 'ms', f'closed for {closed:.1f} ms of it')
        lab.fact(f'{title}: rename of a file', plain, 'µs', f'outside {statistics.median(x[0] for x in bare):.1f} µs')


def bench(lab):
    count, rounds = lab.pick(10000, 2000), lab.pick(9, 3)
    disk = os.path.join(lab.folder, 'disk')
    os.mkdir(disk)
    compare(lab, 'disk without a journal' if lab_module.has_no_journal(disk) else 'disk', disk, count, rounds)
    renames(lab, 'disk', disk, lab.pick(5, 1))
    journal = Journal(lab)
    try:
        if journal.path:
            compare(lab, 'ext4 with a journal', journal.path, count, rounds)
            renames(lab, 'ext4 with a journal', journal.path, lab.pick(5, 1))
    finally:
        journal.done()

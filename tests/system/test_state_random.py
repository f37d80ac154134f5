# SPDX-License-Identifier: Apache-2.0
"""
Random histories against a model: plain copies of trees. Writes, deletes, renames, links and attributes in a
sandbox and in a directory of the host side by side; snapshots, rollbacks, forks and transactions, after each of
which both must show the same in every detail.

A file with several names is written to only before the first snapshot that holds it: overlayfs then parts its
names, as it does in every container. Without root a name that is given to a file from below shows another inode
until the next generation (docs/internals/generations.md), so that there twins are told apart only behind one.
"""

import os
import random
import shutil
import tempfile
import time

import pytest
from fingerprint import SCRIPT

SECONDS = float(os.environ.get('CAY_RANDOM_SECONDS', '8'))
STEPS = r'''
import os, sys, random, shutil
top, seed, n, links = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == '1'
r = random.Random(seed)
os.umask(0o022)
def path(): return top + '/' + '/'.join(r.choice('abcdef') for _ in range(r.randint(1, 3)))
def shared(p):
    return os.path.isfile(p) and not os.path.islink(p) and os.lstat(p).st_nlink > 1
for i in range(n):
    a, b, k, v = path(), path(), r.randrange(12), r.randrange(10**9)
    try:
        if shared(a) and not links and k in (0, 1, 9, 10): continue
        if k < 2 and os.path.exists(a) and not os.path.isfile(a): continue
        if k == 0: open(a, 'w').write(str(v))
        elif k == 1: open(a, 'a').write('x' * (v % 5000))
        elif k == 2: os.mkdir(a, 0o700 | v % 64)
        elif k == 3: os.makedirs(a, exist_ok=True)
        elif k == 4: os.unlink(a)
        elif k == 5: shutil.rmtree(a) if os.path.isdir(a) else None  # of a pipe it would wait for a writer
        elif k == 6: os.rename(a, b)
        elif k == 7:
            if links: os.link(a, b)
        elif k == 8: os.symlink(str(v), a)
        elif k == 9: os.setxattr(a, 'user.k%d' % (v % 3), str(v).encode(), follow_symlinks=True) if os.path.isfile(a) else None
        elif k == 10: os.chmod(a, 0o700 | v % 512) if os.path.exists(a) and not os.path.islink(a) else None
        else: os.mkfifo(a)
    except (OSError, shutil.Error): pass
t = 10**9 + seed % 10**6
for d, ds, fs in os.walk(top, topdown=False):
    for f in fs: os.utime(os.path.join(d, f), (t, t), follow_symlinks=False)
    os.utime(d, (t, t))
'''


class World:
    """A sandbox and its model."""

    def __init__(self, cay, ref, model):
        self.cay, self.ref, self.model, self.stack = cay, ref, model, []

    def inside(self, script, *args):
        return self.cay('exec', self.ref, '--', 'python3', '-c', script, *args, check=True, timeout=60).out

    def outside(self, script, *args):
        import subprocess
        return subprocess.run(['/usr/bin/python3', '-c', script, *args], check=True, capture_output=True, text=True).stdout

    def step(self, seed, n, links):
        for run, top in ((self.inside, '/tmp/t'), (self.outside, self.model)):
            run(STEPS, top, str(seed), str(n), '1' if links else '0')

    def same(self, twins=True):
        """Owners differ by nature: the model is ours, the sandbox's files are its user's."""
        import re
        own = re.compile(r'^(\S+ \d+) \d+:\d+ ', re.M)
        a, b = (own.sub(r'\1 ', x) for x in (self.inside(SCRIPT, '/tmp/t'), self.outside(SCRIPT, self.model)))
        if not twins:
            a, b = (re.sub(r' twin of \S+ ', ' twin ', x) for x in (a, b))
        assert a == b


def copy(tree, into):
    path = tempfile.mkdtemp(dir=into)
    os.rmdir(path)
    assert os.system(f'cp -a --sparse=always {tree} {path}') == 0
    return path


def test_random_histories_are_what_plain_copies_are(fresh_cay, tmp_path):
    cay = fresh_cay
    seed = int(os.environ.get('CAY_SEED') or time.time_ns() % 10**9)
    print(f'seed {seed}')
    r = random.Random(seed)
    ref = cay.create('--trace', r.choice(['full', 'calls']))
    first = tmp_path / 'first'
    first.mkdir()
    w = World(cay, ref, str(first))
    w.inside("import os; os.mkdir('/tmp/t', 0o755); os.chmod('/tmp/t', 0o755)")
    os.chmod(first, 0o755)
    snaps, steps, end = [], 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        steps += 30
        w.step(r.randrange(10**9), 30, links=True)
        kind = r.choice(['snapshot', 'snapshot', 'rollback', 'fork', 'tx', 'tx', 'exec'])
        what = f'seed {seed}, {steps} steps, {kind}'
        try:
            if kind == 'snapshot':
                snaps.append((cay('snapshot', w.ref, check=True).out.strip(), w.ref, copy(w.model, tmp_path)))
            elif kind == 'rollback' and any(s[1] == w.ref for s in snaps):
                name, _, model = r.choice([s for s in snaps if s[1] == w.ref])
                cay('rollback', w.ref, name, check=True)
                w.model = copy(model, tmp_path)
            elif kind == 'fork':
                other = cay('fork', r.choice([w.ref] + [s[0] for s in snaps if s[1] == w.ref][-1:]), check=True).out.strip()
                if r.random() < 0.5:
                    cay('kill', other, check=True)
                else:
                    w = forked(w, other, snaps, cay, tmp_path)
            elif kind == 'tx':
                part_links(w)
                before = copy(w.model, tmp_path)
                cay('tx', 'begin', w.ref, check=True)
                w.step(r.randrange(10**9), 20, links=False)
                if r.random() < 0.6:
                    cay('tx', 'abort', w.ref, check=True)
                    w.model = before
                else:
                    cay('tx', 'commit', w.ref, check=True)
            else:
                seed_of_tx = str(r.randrange(10**9))
                cay('exec', '--tx', w.ref, '--', 'python3', '-c', STEPS + '\nsys.exit(3)', '/tmp/t', seed_of_tx, '30', '0')
            sealed = kind not in ('fork', 'rollback')  # a fork of a snapshot and a rollback without one seal nothing
            w.same(twins=sealed or os.geteuid() == 0)
        except AssertionError as problem:
            raise AssertionError(what) from problem
        # What was copied up is apart from its other names from now on: links of the model go too.
        part_links(w)
    for name, _, model in snaps:
        check(cay, name, model)
    cay('kill', '--all', '--yes', check=True)
    cay('snapshot', 'rm', *[s[0] for s in snaps], check=True) if snaps else None
    shutil.rmtree(tmp_path, ignore_errors=True)
    assert steps >= 60


def part_links(w):
    """On both sides, so that they stay alike."""
    script = r'''
import os, sys, shutil
for d, ds, fs in os.walk(sys.argv[1]):
    keep = os.stat(d)
    for f in fs:
        p = os.path.join(d, f)
        st = os.lstat(p)
        if st.st_nlink > 1:
            if os.path.islink(p): target = os.readlink(p); os.unlink(p); os.symlink(target, p)
            elif os.path.isfile(p): shutil.copy2(p, p + '~'); os.rename(p + '~', p)
            else: os.unlink(p); os.mkfifo(p); os.chmod(p, st.st_mode & 0o7777)
            os.utime(p, ns=(st.st_mtime_ns, st.st_mtime_ns), follow_symlinks=False)
    os.utime(d, ns=(keep.st_mtime_ns, keep.st_mtime_ns))
'''
    for run, top in ((w.inside, '/tmp/t'), (w.outside, w.model)):
        run(script, top)


def forked(w, other, snaps, cay, tmp_path):
    """Go on with the fork; whether it was of the sandbox or of a snapshot, its tree tells."""
    new = World(cay, other, w.model)
    try:
        new.same()
    except AssertionError:
        new.model = [copy(m, tmp_path) for n, ref, m in snaps if ref == w.ref][-1]
    new.same()
    return new


def check(cay, name, model):
    other = cay('fork', name, check=True).out.strip()
    World(cay, other, model).same()
    cay('kill', other, check=True)


AGENT_STEPS = int(os.environ.get('CAY_AGENT_STEPS', '8'))
GIT = 'git -c user.name=a -c user.email=a@b -c safe.directory=*'
# Everything but the order in which directories list their names.
HASH = 'cd /tmp/w && tar c --sort=name --format=pax --xattrs --pax-option=delete=atime,delete=ctime . | sha256sum'


def make_project(source, with_npm):
    """A repository with a program, its test, and where npm is there a package beside it."""
    source.mkdir()
    (source / 'main.c').write_text('int main(void) { return 0; }\n')
    (source / 'Makefile').write_text('main: main.c\n\tcc -O1 -o main main.c\ntest: main\n\t./main\n')
    (source / '.gitignore').write_text('main\nnode_modules\n')
    if with_npm:
        (source / 'lib').mkdir()
        (source / 'lib' / 'package.json').write_text('{"name":"lib","version":"1.0.0","main":"i.js"}')
        (source / 'lib' / 'i.js').write_text('module.exports = 42\n')
        (source / 'package.json').write_text('{"name":"app","version":"1.0.0"}')
        assert os.system(f'cd {source}/lib && npm pack --silent > /dev/null') == 0
    assert os.system(f'cd {source} && git init -q && {GIT} add . && {GIT} commit -qm 0') == 0


def agent_step(i, with_npm):
    """Edit, build, test, commit; now and then a package comes or goes, or a branch is left."""
    lines = ['cd /tmp/w', f'echo "int f{i}(void) {{ return {i}; }}" >> main.c', f'echo {i} > note{i % 4}', 'make -s test']
    if with_npm and i % 4 == 1:
        lines += ['export HOME=/tmp npm_config_cache=/tmp/npm npm_config_update_notifier=false',
                  'npm install --silent --offline --no-audit --no-fund ./lib/lib-1.0.0.tgz', 'node -e "process.exit(require(\'lib\') - 42)"']
    if with_npm and i % 8 == 7:
        lines.append('rm -rf node_modules')
    if i % 10 == 9:
        lines.append(f'{GIT} checkout -q -b b{i}')
    if i % 12 == 11:
        lines.append(f'{GIT} gc -q --prune=now')
    return ' && '.join(lines + [f'{GIT} add -A', f'{GIT} commit -qm {i}'])


@pytest.mark.slow
def test_work_of_an_agent_survives_jumping_about(fresh_cay, tmp_path):
    """A snapshot after each step of the work; random ones are gone back to, and the work goes on from there."""
    cay = fresh_cay
    if shutil.which('git') is None or shutil.which('cc') is None:
        pytest.skip('needs git and cc')
    with_npm = shutil.which('npm', path='/usr/bin') is not None
    make_project(tmp_path / 'src', with_npm)
    seed = int(os.environ.get('CAY_SEED') or time.time_ns() % 10**9)
    print(f'seed {seed}, npm {with_npm}')
    r = random.Random(seed)
    ref = cay.create('--ro', f'{tmp_path}/src:/src')

    def inside(script):
        return cay('exec', ref, '--', 'sh', '-ec', script, check=True, timeout=120).out
    inside(f'{GIT} clone -q /src /tmp/w')
    steps = []

    def jump():
        name, want, head = r.choice(steps)
        inside('rm -rf /tmp/w/.git/objects /tmp/w/node_modules; echo junk > /tmp/w/main.c; chmod 0 /tmp/w/Makefile; touch /tmp/w/*')
        cay('rollback', ref, name, check=True)
        assert inside(HASH) == want, (seed, name)
        assert inside(f'cd /tmp/w && {GIT} status --porcelain && {GIT} fsck --no-progress 2> /dev/null') == ''
        assert inside(f'cd /tmp/w && {GIT} rev-parse HEAD') == head
        assert inside('cd /tmp/w && make -s test') == ''

    for i in range(AGENT_STEPS):
        inside(agent_step(i, with_npm))
        head = inside(f'cd /tmp/w && {GIT} rev-parse HEAD')
        name = cay('snapshot', ref, check=True).out.strip()
        steps.append((name, inside(HASH), head))
        if i % 4 == 3:
            jump()
    for _ in range(min(6, AGENT_STEPS)):
        jump()
    cay('kill', ref, check=True)
    cay('snapshot', 'rm', *[s[0] for s in steps], check=True)

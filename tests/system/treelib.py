# SPDX-License-Identifier: Apache-2.0
"""Trees of files for tests of diff and apply: random ones, random changes, and their content."""

import os
import random
import stat

NAMES = [b'a', b'b.txt', b'with space', b'-dash', b'q"uote', b'back\\slash', b'new\nline', b'\xff\xfe', b'\xc3\xa4', b'tab\t', b'x' * 200, b'..dots', b'~']
LINES = [b'alpha\n', b'beta\n', b'gamma\r\n', b'\n', b'delta', b'--- a/x\n', b'+++ b/x\n', b'@@ -1 +1 @@\n', b'\\ No newline at end of file\n']


def content(r):
    kind = r.randrange(6)
    if kind == 0:
        return b''
    if kind == 1:
        return r.randbytes(r.randrange(1, 3000))
    data = b''.join(r.choice(LINES) if r.random() < .5 else b'%d\n' % r.randrange(100) for _ in range(r.randrange(1, 200)))
    return data if r.random() < .7 else data + b'no newline'


def fill(root, r, depth=0):
    """A random tree; every directory has something in it, as git has no empty ones."""
    os.makedirs(root, exist_ok=True)
    for name in r.sample(NAMES, r.randrange(1, 7)):
        path = os.path.join(root, name)
        kind = r.randrange(10)
        if kind < 2 and depth < 3:
            fill(path, r, depth + 1)
        elif kind == 2:
            os.symlink(r.choice([b'a', b'/etc/passwd', b'../..', b'no\nwhere']), path)
        else:
            with open(path, 'wb') as f:
                f.write(content(r))
            os.chmod(path, r.choice([0o644, 0o755]))


def files(root):
    found = []
    for folder, names, leaves in os.walk(root):
        found += [os.path.join(folder, n) for n in leaves]
        found += [os.path.join(folder, n) for n in names if os.path.islink(os.path.join(folder, n))]
    return sorted(found)


def remove(path):
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
        return
    for name in os.listdir(path):
        remove(os.path.join(path, name))
    os.rmdir(path)


def edit(path, r):
    with open(path, 'rb') as f:
        lines = f.read().splitlines(keepends=True)
    for _ in range(r.randrange(1, 4)):
        at = r.randrange(len(lines) + 1)
        lines[at:at + r.randrange(3)] = [b'edited %d\n' % r.randrange(1000)] * r.randrange(3)
    with open(path, 'wb') as f:
        f.write(b''.join(lines))


def change(root, r):
    """One random change."""
    known = files(root)
    if not known:
        fill(root, r)
        return
    path = r.choice(known)
    kind = r.randrange(8)
    if kind == 0:
        os.unlink(path)
        folder = os.path.dirname(path)
        while folder != root and not os.listdir(folder):
            os.rmdir(folder)
            folder = os.path.dirname(folder)
    elif kind == 1:
        os.unlink(path)
        with open(path, 'wb') as f:
            f.write(content(r))
    elif kind == 2:
        os.unlink(path)
        os.symlink(b'target %d' % r.randrange(9), path)
    elif kind == 3:
        os.unlink(path)
        fill(path, r, 2)
    elif kind == 4 and not os.path.islink(path):
        os.chmod(path, r.choice([0o644, 0o755]))
    elif kind == 5:
        os.rename(path, os.path.join(os.path.dirname(path), b'renamed %d' % r.randrange(99)))
    elif kind == 6:
        new = os.path.join(root, b'new %d' % r.randrange(9))
        if os.path.lexists(new):
            remove(new)
        fill(new, r, 2)
    elif not os.path.islink(path):
        edit(path, r)


def content_of(root, modes=0o100):
    """What git and cay apply carry over: files, links, and bits of the mode."""
    root, found = os.fsencode(root), {}
    for path in files(root):
        name = os.path.relpath(path, root)
        if name.split(b'/')[0] == b'.git':
            continue
        st = os.lstat(path)
        if stat.S_ISLNK(st.st_mode):
            found[name] = ('link', os.readlink(path))
        elif stat.S_ISREG(st.st_mode):
            with open(path, 'rb') as f:
                found[name] = ('file', st.st_mode & modes, f.read())
        else:
            found[name] = ('other', stat.S_IFMT(st.st_mode))
    return found


if __name__ == '__main__':  # inside: python3 treelib.py ROOT SEED TIMES
    import sys
    dice = random.Random(int(sys.argv[2]))
    for _ in range(int(sys.argv[3])):
        change(os.fsencode(sys.argv[1]), dice)

# SPDX-License-Identifier: Apache-2.0
"""A tree inside a sandbox in every detail, as text that can be compared."""

SCRIPT = r'''
import os, stat, sys, hashlib
top = os.fsencode(sys.argv[1])
inodes = {}
def show(path, name):
    st = os.lstat(path)
    kind = stat.S_IFMT(st.st_mode)
    extra = b''
    if kind == stat.S_IFREG:
        try:
            with open(path, 'rb') as f:
                extra = hashlib.sha256(f.read()).hexdigest().encode()
        except PermissionError:
            extra = b'closed'
        if st.st_nlink > 1:
            extra += b' twin of ' + inodes.setdefault((st.st_dev, st.st_ino), name)
    elif kind == stat.S_IFLNK:
        extra = os.readlink(path)
    try:
        xattrs = sorted((n, os.getxattr(path, n, follow_symlinks=False)) for n in os.listxattr(path, follow_symlinks=False))
    except OSError:
        xattrs = []
    when = b'' if kind == stat.S_IFLNK else b'%d' % st.st_mtime_ns
    out.append(b'%s %o %d:%d %s %s %s' % (name, st.st_mode, st.st_uid, st.st_gid, when, extra, repr(xattrs).encode()))
    if kind == stat.S_IFDIR:
        try: names = sorted(os.listdir(path))
        except PermissionError: names = []
        for x in names:
            show(path + b'/' + x, name + b'/' + x)
out = []
show(top, b'.')
sys.stdout.buffer.write(b'\n'.join(out) + b'\n')
'''


def fingerprint(cay, ref, top, user=None):
    """Names, types, modes, owners, times, content, links, hard links, extended attributes."""
    options = ['--user', user] if user else []
    return cay('exec', *options, ref, '--', 'python3', '-c', SCRIPT, top, check=True).out

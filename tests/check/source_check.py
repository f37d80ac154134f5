#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules about the source that no compiler checks. TAP on stdout, one line per rule.

usage: source_check.py ROOT

Each rule is a function that yields findings as (path, line, text). A rule without findings
passes. Files are those of src/ and tests/ below ROOT.
"""

import os
import re
import sys

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
SPDX = 'SPDX-License-Identifier: Apache-2.0'


class Source:
    def __init__(self, root, path):
        self.path = path
        with open(os.path.join(root, path), encoding='utf-8', errors='replace') as f:
            self.text = f.read()
        self.lines = self.text.split('\n')
        self.is_c = path.endswith(('.c', '.h'))
        # Tests handle no hostile bytes and end soon: rules of safety are for programs.
        self.is_test = (path.startswith('tests/') or path.endswith('_test.c')
                        or re.search(r'^#include "t\.h"', self.text, re.M) is not None)
        self._code = None

    @property
    def code(self):
        """The text with comments and the insides of literals blanked; lines keep their numbers."""
        if self._code is None:
            self._code = blank(self.text)
        return self._code

    def line_of(self, offset):
        return self.text.count('\n', 0, offset) + 1


def blank(text):
    token = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def replace(m):
        s = m.group()
        if s[0] in '"\'':
            return s[0] + ' ' * (len(s) - 2) + s[0]
        return re.sub(r'[^\n]', ' ', s)

    return token.sub(replace, text)


def load(root):
    out = []
    for top in ('src', 'tests'):
        for folder, names, files in os.walk(os.path.join(root, top)):
            names[:] = sorted(n for n in names if n not in ('corpus', 'fixtures', '__pycache__', '.pytest_cache', 'node_modules', 'venv'))
            for name in sorted(files):
                if name.endswith(('.c', '.h', '.py', '.build', '.txt')):
                    out.append(Source(root, os.path.relpath(os.path.join(folder, name), root)))
    return out


class Edges:
    """includes.txt: levels, and the edges that are allowed or denied beside them."""

    def __init__(self, path):
        self.level, self.allow, self.deny, self.only = {}, set(), set(), {}
        depth = 0
        with open(path, encoding='utf-8') as f:
            for number, line in enumerate(f, 1):
                words = line.split('#')[0].replace('->', ' ').split()
                if not words:
                    continue
                kind, names = words[0], words[1:]
                if kind == 'level' and names:
                    depth += 1
                    self.level.update({n: depth for n in names})
                elif kind in ('allow', 'deny') and len(names) > 1:
                    getattr(self, kind).update((names[0], n) for n in names[1:])
                elif kind == 'only' and len(names) > 1:
                    self.only[names[0]] = set(names[1:])
                else:
                    sys.exit(f'{path}:{number}: cannot read: {line.strip()}')

    def known(self, module):
        return module in self.level or module in self.only

    def denied_part(self, src, name):
        """The directory within a module (deny A -> module/part) that this include is of, or None."""
        parts = (d for s, d in self.deny if s == src and '/' in d)
        return next((d for d in sorted(parts) if name.startswith(d + '/')), None)

    def may(self, src, dst):
        if src == dst:
            return True
        if src in self.only:
            return dst in self.only[src]
        if dst not in self.level or (src, dst) in self.deny:
            return False
        return self.level[src] < self.level[dst] or (src, dst) in self.allow


def includes_of(source):
    for m in re.finditer(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', source.text, re.M):
        yield source.line_of(m.start()), m.group(1)


def check_includes(sources, edges):
    used = set()
    for s in sources:
        if not (s.is_c and s.path.startswith('src/')):
            continue
        src = s.path.split('/')[1]
        if not edges.known(src):
            yield s.path, 1, f"module '{src}' is not in includes.txt"
            continue
        for line, name in includes_of(s):
            dst = name.split('/')[0]
            if name in ('t.h', 't_ns.h', 't_tree.h'):
                continue
            if '/' not in name:
                yield s.path, line, f'write "module/{name}"'
            elif not edges.known(dst):
                yield s.path, line, f"no module '{dst}' in includes.txt"
            elif not s.is_test and not edges.may(src, dst):
                yield s.path, line, f'{src} must not include {dst}'
            elif not s.is_test and edges.denied_part(src, name):
                yield s.path, line, f'{src} must not include {edges.denied_part(src, name)}'
            used.add((src, dst))
    for src, dst in sorted(edges.allow - used):
        yield 'tests/check/includes.txt', 1, f"'allow {src} -> {dst}' is not needed any more"


def check_spdx(sources, _edges):
    for s in sources:
        if s.is_c and SPDX not in s.lines[0]:
            yield s.path, 1, f'the first line must hold {SPDX}'


def check_file_length(sources, _edges):
    for s in sources:
        n = s.text.count('\n')
        if s.is_c and n > MAX_FILE_LINES:
            yield s.path, n, f'{n} lines, at most {MAX_FILE_LINES}: divide it'


def functions_of(source):
    """(name, first line, lines of the body) by the form that clang-format gives."""
    lines = source.code.split('\n')
    start = None
    for i, line in enumerate(lines):
        if line == '{':
            start = i
        elif line == '}' and start is not None:
            head = start - 1
            while head > 0 and lines[head][:1] in ('\t', ' '):
                head -= 1
            m = re.search(r'(\w+)\(', lines[head])
            yield m.group(1) if m else '?', start + 1, i - start - 1
            start = None


def check_function_length(sources, _edges):
    for s in sources:
        if not s.path.endswith('.c'):
            continue
        for name, line, n in functions_of(s):
            if n > MAX_FUNCTION_LINES:
                yield s.path, line, f'{name}() has {n} lines, at most {MAX_FUNCTION_LINES}'


BANNED = {
    'strcpy': 'no bound', 'strcat': 'no bound', 'sprintf': 'no bound', 'vsprintf': 'no bound',
    'stpcpy': 'no bound', 'gets': 'no bound', 'strtok': 'hidden state', 'alloca': 'no bound',
    'system': 'a shell', 'popen': 'a shell', 'mktemp': 'a race', 'tmpnam': 'a race',
    'pipe': 'use pipe2 with O_CLOEXEC', 'accept': 'use accept4 with SOCK_CLOEXEC',
    'dup': 'use fcntl with F_DUPFD_CLOEXEC', 'epoll_create': 'use epoll_create1',
    'inotify_init': 'use inotify_init1', 'creat': 'use open with O_CLOEXEC',
}

# A call that makes a descriptor, and what its arguments must hold.
CLOEXEC = {
    'open': 'O_CLOEXEC', 'openat': 'O_CLOEXEC', 'socket': 'SOCK_CLOEXEC', 'socketpair': 'SOCK_CLOEXEC',
    'accept4': 'SOCK_CLOEXEC', 'pipe2': 'O_CLOEXEC', 'dup3': 'O_CLOEXEC', 'memfd_create': 'MFD_CLOEXEC',
    'eventfd': 'EFD_CLOEXEC', 'signalfd': 'SFD_CLOEXEC', 'timerfd_create': 'TFD_CLOEXEC',
    'epoll_create1': 'EPOLL_CLOEXEC', 'inotify_init1': 'IN_CLOEXEC', 'mkostemp': 'O_CLOEXEC',
}


def calls_of(source, names):
    """(name, line, text of the arguments) of each call; not of members or definitions."""
    pattern = re.compile(r'(?<![\w.>])(' + '|'.join(names) + r')[ \t]*\(')
    for m in pattern.finditer(source.code):
        depth, end = 1, m.end()
        while end < len(source.code) and depth:
            depth += {'(': 1, ')': -1}.get(source.code[end], 0)
            end += 1
        yield m.group(1), source.line_of(m.start()), source.text[m.end():end - 1]


def check_banned_calls(sources, _edges):
    for s in sources:
        if not s.is_c or s.is_test:
            continue
        for name, line, _ in calls_of(s, BANNED):
            yield s.path, line, f'{name}(): {BANNED[name]}'


def holds_flag(sources, source, args, line, flag):
    """The flag stands in the call, in a name that is given it, or in a comment that says why not."""
    words = set(re.findall(r'[A-Za-z_]\w*', args))
    given = '|'.join(words) or 'x'
    pattern = re.compile(rf'(#[ \t]*define[ \t]+({given})\b[^\n]*|\b({given})\s*=[^;,=]*)\b{flag}\b')
    said = '\n'.join(source.lines[max(line - 2, 0):line])
    return flag in words or flag in said or any(pattern.search(s.code) for s in sources if s.is_c)


def check_cloexec(sources, _edges):
    for s in sources:
        if not s.is_c or s.is_test:
            continue
        for name, line, args in calls_of(s, CLOEXEC):
            if not holds_flag(sources, s, args, line, CLOEXEC[name]):
                yield s.path, line, f'{name}() without {CLOEXEC[name]}'
        for _, line, args in calls_of(s, ('fopen',)):
            mode = re.search(r'"([^"]*)"\s*$', args)
            if not (mode and 'e' in mode.group(1)):
                yield s.path, line, 'fopen() without "e" in its mode'


DURABLE = ('fsync', 'fdatasync', 'syncfs', 'rename', 'renameat', 'renameat2', 'io_replace_file', 'link', 'linkat', 'symlinkat', 'unlink', 'unlinkat',
           'rmtree_at', 'voltree_remove', 'btrfs_subvolume', 'btrfs_snapshot')
DURABLE_IN = ('src/store/', 'src/warden/', 'src/cli/', 'src/ops/', 'src/link/', 'src/diff/', 'src/image/', 'src/trace/')


def durable_functions(source):
    """Names of the functions that make a durable step, and whether they have a failpoint."""
    functions = list(functions_of(source))
    for _, line, _ in calls_of(source, DURABLE):
        for name, first, n in functions:
            if first <= line <= first + n + 1:
                yield name, line, 'failpoint(' in '\n'.join(source.code.split('\n')[first - 1:first + n + 1])


def check_failpoints(sources, _edges):
    """Every durable step has a named failpoint or a reason (durable.txt), and every name is in a test."""
    listed, used = {}, set()
    here = 'tests/check/durable.txt'
    for s in sources:
        if s.path == here:
            for i, line in enumerate(s.lines, 1):
                if line and not line.startswith('#'):
                    where, _, reason = line.partition(':')
                    listed[where] = (i, reason.strip())
    for s in sources:
        if not (s.path.endswith('.c') and s.path.startswith(DURABLE_IN)) or s.is_test:
            continue
        for name, line, has in durable_functions(s):
            where = f'{s.path} {name}'
            used.add(where)
            if has and where in listed:
                yield here, listed[where][0], f'{where} has a failpoint and needs no reason'
            elif not has and not listed.get(where, (0, ''))[1]:
                yield s.path, line, f'{name}() makes a durable step: give it a failpoint, or a reason in {here}'
    for where in sorted(set(listed) - used):
        yield here, listed[where][0], f'{where} makes no durable step'
    tests = '\n'.join(s.text for s in sources if s.path == 'tests/system/test_crash.py')
    made = '\n'.join(s.text for s in sources if s.path == 'tests/crash/meson.build')
    for s in sources:
        for m in re.finditer(r'\bfailpoint\("([^"]+)"\)', s.text):
            if s.path.startswith('src/') and f"'{m.group(1)}'" not in tests:
                yield s.path, s.line_of(m.start()), f'no test dies at {m.group(1)}'
            elif s.path.startswith('src/') and f'{s.path}\'' not in made:
                yield s.path, s.line_of(m.start()), 'a file with failpoints that tests/crash does not compile'


# Operations and links belong to no front: another process may have several at once.
FRONTLESS = ('src/ops/', 'src/link/')
OF_FRONTS = {
    'printf': 'prints', 'fprintf': 'prints', 'vfprintf': 'prints', 'puts': 'prints', 'fputs': 'prints',
    'putc': 'prints', 'putchar': 'prints', 'perror': 'prints', 'exit': 'ends the process', 'abort': 'ends the process',
    'signal': 'changes a signal', 'sigaction': 'changes a signal', 'raise': 'changes a signal',
    'getenv': 'reads the environment', 'secure_getenv': 'reads the environment', 'setenv': 'changes the environment',
    'chdir': 'changes the directory', 'fchdir': 'changes the directory', 'umask': 'changes the process',
    'setrlimit': 'changes a limit', 'isatty': 'knows a terminal', 'execv': 'replaces the process',
}
# In a child that it forks for this one task.
IN_CHILD = {('src/ops/flatten_layers.c', 'setrlimit')}
# One thread may use it at a time, and it holds nothing from one use to the next.
SCRATCH = {('src/ops/create/warden_start.c', 'stack')}


def static_variables(source):
    """(line, name) of static variables that can change."""
    pattern = re.compile(r'^[ \t]*static[ \t]+(?!inline\b|_Noreturn\b)([\w \t*]+?)[ \t*]*\b(\w+)(?:\[[^\]]*\])*[ \t]*'
                         r'(?:__attribute__\(\(.*\)\))?[ \t]*[=;]', re.M)
    for m in pattern.finditer(source.code):
        text = m.group(0)
        pointer = re.search(r'\*[ \t]*(const[ \t]+)?\w+(?:\[[^\]]*\])*[ \t]*(?:__attribute__.*)?[=;]$', text)
        fixed = pointer.group(1) if pointer else re.search(r'\bconst\b', m.group(1))
        if not fixed:
            yield source.line_of(m.start()), m.group(2)


def check_frontless(sources, _edges):
    for s in sources:
        if not (s.path.endswith('.c') and s.path.startswith(FRONTLESS)) or s.is_test:
            continue
        for name, line, _ in calls_of(s, OF_FRONTS):
            if (s.path, name) in IN_CHILD:
                continue
            yield s.path, line, f'{name}() {OF_FRONTS[name]}: that is for a front'
        for line, name in static_variables(s):
            if (s.path, name) not in SCRATCH:
                yield s.path, line, f"'{name}' is state of the process: put it into struct cay or a local"


# The command line parses and prints. What changes a sandbox, the store or the host is an operation.
OF_OPERATIONS = {
    'flock': 'takes a lock', 'mount': 'mounts', 'umount2': 'mounts', 'kill': 'signals a process', 'pidfd_send_signal': 'signals a process',
    'fork': 'starts a process', 'vfork': 'starts a process', 'clone': 'starts a process', 'posix_spawn': 'starts a process',
    'posix_spawnp': 'starts a process', 'waitpid': 'waits for a process', 'unlink': 'removes a file', 'unlinkat': 'removes a file',
    'rename': 'moves a file', 'renameat': 'moves a file', 'renameat2': 'moves a file', 'mkdir': 'makes a directory',
    'mkdirat': 'makes a directory', 'fsync': 'writes to the disk',
}
OF_STORE = re.compile(r'\b(?:sqlite3|db|catalog|state)_\w+(?=\()')
# The socket that a server listens on is its own.
OF_FRONT = {('src/cli/host/serve.c', 'unlink'), ('src/cli/host/serve_listen.c', 'unlink')}
# Neither reads nor changes the store.
OF_STORE_FREE = {'catalog_close', 'state_id_ok'}


def check_front(sources, _edges):
    for s in sources:
        if not (s.path.endswith('.c') and s.path.startswith('src/cli/')) or s.is_test:
            continue
        for name, line, _ in calls_of(s, OF_OPERATIONS):
            if (s.path, name) in OF_FRONT:
                continue
            yield s.path, line, f'{name}() {OF_OPERATIONS[name]}: that is for src/ops'
        own = {name for name, _, _ in functions_of(s)}
        for m in OF_STORE.finditer(s.code):
            if m.group() not in OF_STORE_FREE | own:
                yield s.path, s.line_of(m.start()), f'{m.group()}() is of the store: that is for src/ops'


def check_unfinished(sources, _edges):
    words = re.compile(r'\b(' + '|'.join(('TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX', 'HA' + 'CK')) + r')\b')
    for s in sources:
        for i, line in enumerate(s.lines, 1):
            if words.search(line):
                yield s.path, i, 'finish it, or open an issue'


def check_whitespace(sources, _edges):
    for s in sources:
        for i, line in enumerate(s.lines, 1):
            if line != line.rstrip():
                yield s.path, i, 'space at the end of the line'
        if s.text and not s.text.endswith('\n'):
            yield s.path, len(s.lines), 'no newline at the end of the file'


def check_machine_paths(sources, _edges):
    """Where this checkout lies, or somebody's home."""
    homes = re.compile(r'(?<![\w.])/(home|Users)/(?!user\b)[a-z_]\w*')
    # The checkout itself; not its parent, which may be a place that everybody has, such as /tmp.
    here = re.compile(re.escape(os.path.abspath(ROOT)) + r'\b')
    for s in sources:
        for i, line in enumerate(s.lines, 1):
            m = here.search(line) or (None if s.is_test else homes.search(line))
            if m:
                yield s.path, i, f'path of one machine: {m.group()}'


RULES = [
    ('includes go only downwards', check_includes),
    ('every C file names its licence', check_spdx),
    (f'files have at most {MAX_FILE_LINES} lines', check_file_length),
    (f'functions have at most {MAX_FUNCTION_LINES} lines', check_function_length),
    ('no unsafe call', check_banned_calls),
    ('every descriptor is made close-on-exec', check_cloexec),
    ('every durable step has a failpoint or a reason', check_failpoints),
    ('operations and links do nothing that a front does', check_frontless),
    ('the command line holds no operation', check_front),
    ('nothing is left unfinished', check_unfinished),
    ('no stray white space', check_whitespace),
    ('no path of one machine', check_machine_paths),
]


def main(root):
    here = os.path.join(root, 'tests/check/includes.txt')
    sources, edges = load(root), Edges(here)
    failed = 0
    print(f'1..{len(RULES)}')
    for number, (claim, rule) in enumerate(RULES, 1):
        findings = list(rule(sources, edges))
        for path, line, text in findings:
            print(f'# {path}:{line}: {text}')
        failed += bool(findings)
        print(f"{'not ' if findings else ''}ok {number} - {claim}")
    return 1 if failed or not sources else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else '.'))

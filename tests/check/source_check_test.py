#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every rule of source_check.py finds what it is for, and nothing in good code. TAP."""

import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import source_check as check  # noqa: E402

HEAD = '/* ' + check.SPDX + ' */\n'
EDGES = 'level cli\nlevel ops\nlevel link\nlevel trace policy\nlevel wire loop\nlevel base\nallow loop -> wire\ndeny policy -> loop\ndeny cli -> trace/own\nonly init -> base\n'
USES_ALLOWED = {'src/loop/l.h': HEAD + '#include "wire/w.h"\n'}


def code(body):
    return HEAD + body


def function(lines):
    return code('static void f(void)\n{\n' + '\tx();\n' * lines + '}\n')


# claim, path, content, words of the expected finding (None: none at all)
CASES = [
    ('downwards', 'src/cli/a.c', code('#include "base/b.h"\n#include "trace/t.h"\n'), None),
    ('own module', 'src/cli/a.c', code('#include "cli/b.h"\n'), None),
    ('upwards', 'src/base/a.c', code('#include "cli/b.h"\n'), 'base must not include cli'),
    ('upwards, spaced', 'src/base/a.c', code(' #  include  "cli/b.h"\n'), 'base must not include cli'),
    ('sideways', 'src/wire/a.c', code('#include "loop/b.h"\n'), 'wire must not include loop'),
    ('denied', 'src/policy/a.c', code('#include "loop/b.h"\n'), 'policy must not include loop'),
    ('a denied part', 'src/cli/a.c', code('#include "trace/own/b.h"\n'), 'cli must not include trace/own'),
    ('beside a denied part', 'src/cli/a.c', code('#include "trace/owner.h"\n'), None),
    ('beside the levels', 'src/init/a.c', code('#include "wire/b.h"\n'), 'init must not include wire'),
    ('a program as a library', 'src/cli/a.c', code('#include "init/b.h"\n'), 'cli must not include init'),
    ('bare name', 'src/cli/a.c', code('#include "b.h"\n'), 'write "module/b.h"'),
    ('harness in a test', 'src/cli/a_test.c', code('#include "t.h"\n'), None),
    ('upwards in a test', 'src/base/a_test.c', code('#include "cli/b.h"\n'), None),
    ('fixture of a test', 'src/base/a.h', code('#include "t.h"\n#include "cli/b.h"\n'), None),
    ('unknown module', 'src/odd/a.c', code(''), "module 'odd' is not in"),
    ('unknown include', 'src/cli/a.c', code('#include "odd/b.h"\n'), "no module 'odd'"),
    ('a durable step', 'src/ops/a.c', code('static int f(void)\n{\n\treturn renameat(a, b, c, d);\n}\n'), 'f() makes a durable step'),
    ('a durable step in a test', 'src/cli/a_test.c', code('static int f(void)\n{\n\treturn renameat(a, b, c, d);\n}\n'), None),
    ('a failpoint that nobody tests', 'src/ops/a.c',
     code('static int f(void)\n{\n\tfailpoint("x.y");\n\treturn renameat(a, b, c, d);\n}\n'), 'no test dies at x.y'),
    ('a step that went away', 'tests/check/durable.txt', 'src/store/a.c f: no reason is needed\n', 'makes no durable step'),
    ('no licence', 'src/cli/a.c', 'int x;\n', 'SPDX'),
    ('file at the limit', 'src/cli/a.c', code('\n' * 599), None),
    ('file past the limit', 'src/cli/a.c', code('\n' * 600), '601 lines'),
    ('function at the limit', 'src/cli/a.c', function(60), None),
    ('function past the limit', 'src/cli/a.c', function(61), 'f() has 61 lines'),
    ('strcpy', 'src/cli/a.c', code('void f(void)\n{\n\tstrcpy(a, b);\n}\n'), 'strcpy()'),
    ('snprintf and a member', 'src/cli/a.c', code('int a = snprintf(b) + c->pipe(d) + e.system(f);\n'), None),
    ('in a comment or a text', 'src/cli/a.c', code('/* strcpy(a) */ char *x = "gets(b) \\" system(c)";\n'), None),
    ('popen in a program', 'src/cli/a.c', code('FILE *f = popen(a, b);\n'), 'popen()'),
    ('popen in a test', 'src/cli/a_test.c', code('FILE *f = popen(a, b);\n'), None),
    ('pipe', 'src/cli/a.c', code('int r = pipe(p);\n'), 'use pipe2'),
    ('accept', 'src/cli/a.c', code('int r = accept(p, 0, 0);\n'), 'use accept4'),
    ('open without', 'src/cli/a.c', code('int r = open(p,\n\tO_RDONLY);\n'), 'open() without O_CLOEXEC'),
    ('open with', 'src/cli/a.c', code('int r = open(f(p),\n\tO_RDONLY | O_CLOEXEC);\n'), None),
    ('open beside a good one', 'src/cli/a.c', code('int r = open(p, O_PATH | O_CLOEXEC);\n\n\nint q = open(p, O_PATH);\n'), 'without O_CLOEXEC'),
    ('open in a test', 'src/cli/a_test.c', code('int r = open(p, O_RDONLY);\n'), None),
    ('open, explained', 'src/cli/a.c', code('/* stays: no O_CLOEXEC */\nint r = open(p, 0);\n'), None),
    ('open by constant', 'src/cli/a.c', code('#define FLAGS (O_PATH | O_CLOEXEC)\nint r = open(p, FLAGS);\n'), None),
    ('open by wrong constant', 'src/cli/a.c', code('#define FLAGS O_PATH\nint r = open(p, FLAGS);\n'), 'without O_CLOEXEC'),
    ('open by variable', 'src/cli/a.c', code('int flags = O_RDONLY | O_CLOEXEC, r = open(p, flags);\n'), None),
    ('our own open', 'src/ops/a.c', code('int r = state_open(p) + fsopen(q, 1);\n'), None),
    ('socket', 'src/cli/a.c', code('int r = socket(AF_UNIX, SOCK_STREAM, 0);\n'), 'without SOCK_CLOEXEC'),
    ('fopen without', 'src/cli/a.c', code('FILE *f = fopen(p, "r");\n'), 'fopen() without "e"'),
    ('fopen with', 'src/cli/a.c', code('FILE *f = fopen(p, "re");\n'), None),
    ('printing in an operation', 'src/ops/a.c', code('void f(void)\n{\n\tprintf(a);\n}\n'), 'printf() prints'),
    ('printing in the command line', 'src/cli/a.c', code('void f(void)\n{\n\tprintf(a);\n}\n'), None),
    ('a lock in the command line', 'src/cli/a.c', code('int r = flock(a, b);\n'), 'flock() takes a lock'),
    ('a process of the command line', 'src/cli/a.c', code('int r = posix_spawn(a);\n'), 'posix_spawn() starts a process'),
    ('a process of an operation', 'src/ops/a.c', code('int r = fork();\n'), None),
    ('SQL in the command line', 'src/cli/a.c', code('int r = sqlite3_exec(a);\n'), 'sqlite3_exec() is of the store'),
    ('the catalog in the command line', 'src/cli/a.c', code('int r = catalog_find(a);\n'), 'catalog_find() is of the store'),
    ('a function of its own', 'src/cli/a.c', code('static int state_color(int a)\n{\n\treturn a;\n}\nint r = state_color(1);\n'), None),
    ('the catalog in a test', 'src/cli/a_test.c', code('int r = catalog_find(a);\n'), None),
    ('the environment in a link', 'src/link/a.c', code('char *x = getenv(a);\n'), 'getenv() reads the environment'),
    ('a static variable', 'src/ops/a.c', code('static int n;\n'), "'n' is state of the process"),
    ('a static pointer to what is constant', 'src/ops/a.c', code('static const char *p = 0;\n'), "'p' is state of the process"),
    ('a static array', 'src/ops/a.c', code('void f(void)\n{\n\tstatic char b[16];\n}\n'), "'b' is state of the process"),
    ('static constants', 'src/ops/a.c', code('static const int n = 3;\nstatic const char *const v[] = { a };\n'
                                             'static const struct {\n\tint a;\n} t[] = { { 1 } };\n'), None),
    ('static functions', 'src/ops/a.c', code('static int f(void);\nstatic struct x *g(int a)\n{\n\treturn a;\n}\n'), None),
    ('unfinished', 'src/cli/a.c', code('/* TO' 'DO: later */\n'), 'finish it'),
    ('unfinished in python', 'tests/system/a.py', '# FIX' 'ME\n', 'finish it'),
    ('space at the end', 'src/cli/a.c', code('int x; \n'), 'space at the end'),
    ('no newline at the end', 'src/cli/a.c', code('int x;'), 'no newline'),
    ('machine path', 'src/cli/a.c', code('char *p = "/home' '/jane/x";\n'), 'path of one machine'),
    ('this checkout', 'src/cli/a_test.c', code(f'char *p = "{os.path.abspath(check.ROOT)}/x";\n'), 'path of one machine'),
    ('user inside', 'src/cli/a.c', code('char *p = "/home/user/x";\n'), None),
]


def findings(path, content):
    with tempfile.TemporaryDirectory() as root:
        files = {**USES_ALLOWED, 'tests/check/includes.txt': EDGES, path: content}
        for name, text in files.items():
            full = os.path.join(root, name)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, 'w', encoding='utf-8') as f:
                f.write(text)
        sources = check.load(root)
        edges = check.Edges(os.path.join(root, 'tests/check/includes.txt'))
        return [f'{p}: {t}' for _, rule in check.RULES for p, _, t in rule(sources, edges)]


def main():
    failed = 0
    print(f'1..{len(CASES) + 1}')
    for number, (claim, path, content, want) in enumerate(CASES, 1):
        got = findings(path, content)
        good = not got if want is None else len(got) == 1 and want in got[0]
        if not good:
            print(f'# want {want!r}, got {got!r}')
        failed += not good
        print(f"{'' if good else 'not '}ok {number} - {claim}")
    USES_ALLOWED.clear()
    got = findings('src/cli/a.c', code(''))
    good = len(got) == 1 and 'not needed any more' in got[0]
    print(f"{'' if good else 'not '}ok {len(CASES) + 1} - an allowed edge that nobody uses")
    return failed or not good


if __name__ == '__main__':
    sys.exit(main())

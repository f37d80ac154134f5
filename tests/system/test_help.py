# SPDX-License-Identifier: Apache-2.0
"""What a newcomer reads: every command explains itself, and what README and docs show can be typed."""

import os
import re

import pytest

import caylib

OPTION = re.compile(r'(?<![\w-])(--[a-z][a-z-]*)')
# What `run` and those like it show of a command that runs inside is not ours.
INSIDE = re.compile(r' -- .*')


def commands(cay):
    """From the overview: names of one word or two."""
    found = re.findall(r'^(?:[A-Z][a-z]+)? +([a-z]+(?: [a-z]+)?)  +[A-Z]', cay('help', check=True).out.split('\n\n')[2], re.M)
    assert len(found) > 30 and 'run' in found and 'policy check' in found, found
    return found


def help_of(cay, command):
    r = cay(*command.split(), '--help', check=True)
    assert r.err == '', r
    return r.out


def test_every_command_explains_itself(cay):
    for command in commands(cay):
        text = help_of(cay, command)
        usage, summary = text.split('\n\n')[:2]
        assert usage.startswith(f'Usage: cay {command}'), text
        assert re.match('[A-Z]', summary), (command, summary)
        assert all(len(line) <= 80 for line in text.splitlines()), text
        assert cay('help', *command.split()).out == text
        for option in re.findall(r'^ +(?:-\w, )?--[a-z-]+(?: [^ ]+)?(?:  +|\n +)(.*)', text, re.M):
            assert re.match('[A-Z]', option), (command, option)


def typed(text):
    """Every `cay …` in the lines: its command, and the options before that of somebody else."""
    for line in text.splitlines():
        for part in re.split(r'[;|(]|&&', re.sub(r'#.*', '', line)):
            found = re.match(r'\s*\$?\s*(?:sudo )?(?:build/)?cay ([a-z]+)(?: ([a-z]+))?(.*)', INSIDE.sub('', part))
            if found:
                yield found[1], found[2] or '', found[3]


def check_typed(cay, known, text, where):
    n = 0
    for first, second, rest in typed(text):
        command = f'{first} {second}' if f'{first} {second}' in known else first
        assert command in known, (where, command)
        given = help_of(cay, command)
        for option in OPTION.findall(rest):
            assert re.search(rf'{option}\b', given), (where, command, option)
        n += 1
    return n


def test_examples_use_commands_and_options_that_exist(cay):
    known = commands(cay)
    for command in known:
        examples = help_of(cay, command).partition('\nExamples\n')[2]
        if command not in ('version', 'help'):
            assert check_typed(cay, known, examples, command), (command, 'has no example')


@pytest.mark.parametrize('name', ['README.md', 'docs/policy.md'])
def test_documents_show_commands_that_exist(cay, name):
    text = caylib.read_text(os.path.join(caylib.ROOT, name))
    blocks = re.findall(r'^```\w*\n(.*?)^```', text, re.M | re.S)
    assert check_typed(cay, commands(cay), '\n'.join(blocks), name) >= 5


def test_the_list_of_snapshots_is_a_table_whatever_their_names(cay, box):
    for name in ('short', 'a-name-that-is-longer-than-its-title'):
        cay('snapshot', box, '--name', name, '--note', 'one\x1b[31m', check=True)
    header, *rows = cay('snapshots', box, check=True).out.splitlines()
    assert len(rows) == 2 and all(row.index(box) == header.index('SANDBOX') for row in rows), rows
    assert not any('\x1b' in row or row.endswith(' ') for row in rows), rows
    for name in ('short', 'a-name-that-is-longer-than-its-title'):
        cay('snapshot', 'rm', name, check=True)
    r = cay('snapshots', box, check=True)
    assert (r.out, r.err) == ('', ''), r

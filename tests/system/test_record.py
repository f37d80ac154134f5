# SPDX-License-Identifier: Apache-2.0
"""What can be asked about sandboxes afterwards: policies, traces, and why they ended."""
import json
import os

import pytest

import caylib


@pytest.fixture
def make(cay):
    """A function that makes sandboxes which end with the test."""
    made = []

    def create(*options):
        made.append(cay('create', *options, check=True).out.strip())
        return made[-1]
    yield create
    for box in made:
        cay('kill', box)


def events(cay, box, kind):
    return [json.loads(line) for line in cay('trace', box, '--json', '--kind', kind, check=True).out.splitlines()]


def test_a_policy_that_replaces_another_says_what_went(cay, make):
    box = make('--net', 'coding', '--allow', 'internal.example.com')
    r = cay('policy', 'set', box, 'none', '--allow', 'other.example.com', check=True)
    lines = r.out.splitlines()
    assert any(line.startswith('added') and 'other.example.com' in line for line in lines)
    assert any(line.startswith('removed') and 'internal.example.com' in line for line in lines)
    assert '--allow internal.example.com' in r.err and 'other.example.com' not in r.err


def test_show_prints_the_policy_that_holds_now(cay, make):
    box = make('--allow', 'first.example.com')
    cay('policy', 'set', box, 'none', '--allow', 'second.example.com', '-q', check=True)
    shown = json.loads(cay('show', box, '--json', check=True).out)['policy']
    assert len(shown['rules']) == 1 and 'second.example.com' in shown['rules'][0]
    assert len(shown['history']) == 2
    text = cay('show', box, check=True).out
    assert 'policy     none (1 rules, default deny)' in text and f'uid {os.getuid()}' in text


def test_policy_show_prints_a_document_with_its_history(cay, make, tmp_path):
    box = make('--allow', 'first.example.com')
    cay('policy', 'set', box, 'none', '--allow', '*.second.example.com:8443', '-q', check=True)
    text = cay('policy', 'show', box, check=True).out
    now, history = text.split('# history')
    assert 'second.example.com' in now and 'first.example.com' not in now
    assert '- {id' in history and 'first.example.com' in history and 'by cay (pid ' in history
    path = tmp_path / 'again.yaml'
    path.write_text(text)
    told = json.loads(cay('policy', 'check', str(path), '--json', check=True).out)
    assert told['default'] == 'deny' and told['rules'][0]['targets'] == ['*.second.example.com'] and told['rules'][0]['ports'] == '8443'
    cay('kill', box, check=True)
    ended = json.loads(cay('policy', 'show', box, '--json', check=True).out)
    assert ended['policy'] is None and len(ended['history']) == 2


def test_the_event_of_a_policy_has_content(cay, make):
    box = make('--allow', 'first.example.com')
    cay('policy', 'set', box, 'coding', '-q', check=True)
    first, second = events(cay, box, 'policy.set')
    assert 'first.example.com' in first['added'][0] and 'removed' not in first
    assert second['name'] == 'coding' and 'first.example.com' in second['removed'][0] and second['rules'] > 1
    assert second['by'] == 'cay' and second['by_uid'] == os.getuid() and second['by_pid'] > 1
    assert first['hash'] != second['hash']


def test_a_sandbox_without_a_network_has_no_policy(cay, make):
    box = make()
    r = cay('policy', 'show', box)
    assert r.code == 5 and 'no network' in r.err
    assert 'policy' not in json.loads(cay('show', box, '--json', check=True).out)
    r = cay('policy', 'show', 'codding')
    assert r.code == 5 and "no preset or sandbox 'codding'" in r.err

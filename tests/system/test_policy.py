# SPDX-License-Identifier: Apache-2.0
"""Policies on the command line: files, standard input, JSON, exit codes."""

import json
import subprocess

import pytest

import caylib

GOOD = '''\
extends: none
rules:
  - id: api
    hosts: [api.example.com, "*.eu.example.com"]
  - id: db
    hosts: [db.corp.example]
    addresses: [10.20.0.0/16]
    ports: [5432]
'''


@pytest.fixture
def policy(tmp_path):
    def write(text, name='net.yaml'):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)
    return write


def test_a_file_is_checked_and_listed(cay, policy):
    r = cay('policy', 'check', policy(GOOD), check=True)
    lines = r.out.splitlines()
    assert [line.split()[0] for line in lines] == ['RULE', 'api', 'db', 'default']
    assert cay('policy', 'check', '-q', policy(GOOD), check=True).out == ''


def test_json_lists_the_rules(cay, policy):
    r = json.loads(cay('policy', 'check', '--json', policy(GOOD), check=True).out)
    assert r['default'] == 'deny'
    assert [rule['id'] for rule in r['rules']] == ['api', 'db']
    assert r['rules'][1]['targets'] == ['db.corp.example', '10.20.0.0/16']
    assert r['rules'][1]['origin'].endswith('net.yaml:5')


def test_a_mistake_has_line_and_column(cay, policy):
    path = policy(GOOD.replace('ports:', 'port:'))
    r = cay('policy', 'check', path)
    assert r.code == 2
    assert r.err == f"cay: {path}:8:5: rules[1]: unknown key 'port'; did you mean 'ports'?\n"
    error = json.loads(cay('policy', 'check', '--json', path).out)['error']
    assert error['code'] == 'invalid' and ':8:5:' in error['message']


def test_the_same_as_json_decides_the_same(cay, policy):
    document = {'rules': [{'id': 'api', 'hosts': ['api.example.com'], 'ports': [443]}]}
    path = policy(json.dumps(document), 'net.json')
    r = json.loads(cay('policy', 'explain', path, '--host', 'api.example.com', '--json', check=True).out)
    assert (r['verdict'], r['rule']) == ('allow', 'api')
    document['rules'][0]['hots'] = 1
    r = cay('policy', 'check', policy(json.dumps(document), 'net.json'))
    assert r.code == 2 and "rules[0]: unknown key 'hots'; did you mean 'hosts'?" in r.err


def test_standard_input_is_a_file_too():
    done = subprocess.run([caylib.CAY, 'policy', 'check', '-', '--json'], input=GOOD.encode(), stdout=subprocess.PIPE,
                          check=True)
    assert len(json.loads(done.stdout)['rules']) == 2


def test_a_file_that_is_not_there_is_5(cay):
    r = cay('policy', 'check', './nosuch.yaml')
    assert r.code == 5 and "policy file './nosuch.yaml' not found" in r.err


@pytest.mark.parametrize('text', [b'', b'\xff\xfe\x00', b'{' * 5000, b'a: ' * 5000, b'- ' * 100000,
                                  b'x: "' + b'a' * 300000 + b'"', b'a: &a [*a]', bytes(range(256))])
def test_rubbish_is_an_error_and_nothing_else(cay, policy, text):
    r = cay('policy', 'check', policy(text))
    assert r.code == 2, r
    assert r.err.startswith('cay: ') and len(r.err) < 1000


@pytest.mark.parametrize('args, code, words', [
    (['--host', 'api.example.com'], 0, 'api'),
    (['--host', 'API.Example.com.'], 0, 'api'),
    (['--host', 'x.eu.example.com', '--port', '80'], 0, 'api'),
    (['--host', 'x.y.eu.example.com'], 6, 'no rule matches'),
    (['--host', 'api.example.com', '--port', '8443'], 6, 'no rule matches'),
    (['--host', 'api.example.com', '--proto', 'ssh'], 6, 'no rule matches'),
    (['--host', 'api.example.com', '--sni', 'evil.test'], 6, 'tls: {mismatch: true}'),
    (['--host', 'api.example.com', '--no-sni'], 6, 'tls: {missing: true}'),
    (['--host', 'api.example.com', '--ech'], 6, 'tls: {ech: true}'),
    (['--host', 'api.example.com', '--address', '169.254.169.254'], 6, 'cloud metadata'),
    (['--host', 'api.example.com', '--address', '::ffff:127.0.0.1'], 6, 'loopback'),
    (['--host', 'db.corp.example', '--port', '5432'], 1, 'the address'),
    (['--host', 'db.corp.example', '--port', '5432', '--address', '10.20.3.4'], 0, 'db'),
    (['--host', 'db.corp.example', '--port', '5432', '--address', '10.21.3.4'], 6, 'private'),
    (['--host', '10.20.3.4', '--port', '5432'], 6, 'private'),
    (['--host', '127.0.0.1', '--port', '80'], 6, 'never dialled'),
    (['--host', 'localhost', '--port', '80'], 6, 'localhost'),
    (['--host', '127.1'], 6, 'spelling'),
    (['--host', 'evil.test', '--allow', 'evil.test'], 0, 'cli/allow-1'),
    (['--host', 'api.example.com', '--deny', 'api.example.com'], 6, 'cli/deny-1'),
    (['--host', 'api.example.com', '--deny', '*.example.com', '--allow', 'api.example.com'], 6, 'cli/deny-1'),
])
def test_a_connection_is_explained(cay, policy, args, code, words):
    r = cay('policy', 'explain', policy(GOOD), *args)
    assert r.code == code, r
    assert words in r.out + r.err


def test_what_would_allow_it_allows_it(cay, policy):
    denied = json.loads(cay('policy', 'explain', policy(GOOD), '--host', 'new.test', '--json').out)
    path = policy(GOOD + '  ' + denied['add'] + '\n')
    cay('policy', 'explain', path, '--host', 'new.test', check=True)


def test_a_hostile_file_cannot_steer_the_terminal(cay, policy):
    r = cay('policy', 'check', policy('"\\e]0;x\\a": 1'))
    assert r.code == 2
    assert b'\x1b' not in r.stdout + r.stderr

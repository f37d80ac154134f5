# SPDX-License-Identifier: Apache-2.0
"""Real programs do inside what they do outside: the list is in tests/machine/programs.py.

CAY_MACHINE=all also runs the part of the list that takes minutes or a network (make test-deep).
"""

import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import urllib.request

import pytest

import caylib
import test_net_registries as registries

HERE = os.path.dirname(os.path.abspath(__file__))
CERTIFICATES = ('NODE_EXTRA_CA_CERTS', 'PIP_CERT', 'SSL_CERT_FILE', 'CURL_CA_BUNDLE', 'REQUESTS_CA_BUNDLE', 'CARGO_HTTP_CAINFO')
ALL = os.environ.get('CAY_MACHINE') == 'all'


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROGRAMS = load('programs', os.path.join(HERE, '../machine/programs.py')).PROGRAMS


def policy_of(rule, folder):
    """The hosts of one rule of the preset for building software, and nothing else."""
    text = caylib.read_text(os.path.join(HERE, '../../policies/coding.yaml'))
    found = re.search(rf'^  - id: {rule}\n    hosts: \[(.*?)\]', text, re.M)
    hosts = [host for host in found.group(1).split(', ') if registries.addresses(host)] if found else []
    if not hosts:
        pytest.skip(f'no host of the rule {rule} has an address here')
    return registries.policy_for(folder, hosts)


def run_here(script, work, home):
    # rustup finds the programs of the user's own home by this variable.
    own = {'HOME': home, 'LANG': 'C.UTF-8', 'RUSTUP_HOME': os.environ.get('RUSTUP_HOME') or os.path.expanduser('~/.rustup')}
    return subprocess.run(['sh', '-ec', script], cwd=work, env={**os.environ, **own}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=900, check=False)


def make_work(program, work, home):
    os.mkdir(work)
    os.chmod(work, 0o755)
    done = run_here(program.prepare, work, home)
    if done.returncode:
        pytest.skip(f'cannot be prepared outside: {done.stderr[-300:]}')


def outside(program, work, home):
    """What the program prints outside; a skip if it does not work there."""
    make_work(program, work, home)
    done = run_here(program.script, work, home)
    subprocess.run(['chmod', '-R', 'u+rwX', str(work)], check=True)  # Go's modules are read-only
    shutil.rmtree(work)
    if done.returncode:
        pytest.skip(f'does not work outside: {done.stderr[-300:]}')
    return done.stdout


def why_not(program):
    if program.deep and not ALL:
        return 'only with CAY_MACHINE=all'
    missing = [name for name in program.needs if not shutil.which(name)]
    return f'needs {", ".join(missing)}' if missing else None


@pytest.mark.parametrize('program', PROGRAMS, ids=lambda p: p.name)
def test_a_program_does_inside_what_it_does_outside(cay, tmp_path, program):
    if why_not(program):
        pytest.skip(why_not(program))
    os.chmod(tmp_path, 0o755)
    work, home = tmp_path / 'work', tmp_path / 'home'
    home.mkdir()
    expected = outside(program, work, str(home)) if program.expect is None else program.expect
    make_work(program, work, str(home))
    options = ['--net', policy_of(program.rule, str(tmp_path))] if program.rule else []
    # A host whose certificates come from its own authority tells clients of it by variables.
    options += [x for name in CERTIFICATES if program.rule and name in os.environ for x in ('--env', name)]
    r = cay('run', '--dir', str(work), *options, *program.options, '--', 'sh', '-ec', program.script, timeout=900)
    assert r.code == 0, r
    assert r.out == expected, r


class Messages:
    """A client of a WebSocket: what a server sends as text."""

    def __init__(self, address, path, protocol):
        self.socket = socket.create_connection(address, 60)
        self.socket.sendall(f'GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n'
                            f'Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n'.encode())
        self.stream = self.socket.makefile('rb')
        assert b' 101 ' in self.stream.readline()
        while self.stream.readline() != b'\r\n':
            pass

    def __iter__(self):
        while head := self.stream.read(2):
            size = head[1] & 127
            if size == 126:
                size = int.from_bytes(self.stream.read(2), 'big')
            yield json.loads(self.stream.read(size))


def text_of(address, path):
    with urllib.request.urlopen(f'http://localhost:{address[1]}{path}', timeout=60) as answer:
        return answer.read().decode()


@pytest.mark.skipif(not ALL, reason='only with CAY_MACHINE=all')
@pytest.mark.skipif(not shutil.which('npm'), reason='needs npm')
def test_vite_reloads_through_cay_port(cay, tmp_path, no_leftovers):
    os.chmod(tmp_path, 0o755)
    work = tmp_path / 'work'
    work.mkdir(mode=0o755)
    certificates = [x for name in CERTIFICATES if name in os.environ for x in ('--env', name)]
    box = cay('create', '--dir', str(work), '--net', policy_of('npm', str(tmp_path)), *certificates, check=True).out.strip()
    cay('exec', box, '--', 'sh', '-ec', 'export npm_config_cache=/tmp/c; npm create --yes --silent vite@5 app -- --template vanilla >/dev/null && '
        'cd app && npm install --silent --no-audit --no-fund', check=True, timeout=900)
    with cay.popen('exec', box, '--', 'sh', '-ec', 'cd app && exec npx vite --port 5173') as server, \
            cay.popen('port', box, 5173, '--listen', '0') as port:
        server.read_until(b'ready in', timeout=300)
        address = ('127.0.0.1', int(port.read_until(b'\n').decode().rsplit(':', 1)[1]))
        assert '/main.js' in text_of(address, '/') and '/style.css' in text_of(address, '/main.js') and text_of(address, '/style.css')
        token = re.search(r'wsToken = "([^"]*)"', text_of(address, '/@vite/client'))
        messages = iter(Messages(address, f'/?token={token.group(1) if token else ""}', 'vite-hmr'))
        assert next(messages)['type'] == 'connected'
        cay('exec', box, '--', 'sh', '-c', 'echo "p { color: red }" >> app/style.css', check=True)
        changed = next(m for m in messages if m['type'] in ('update', 'full-reload'))
        assert 'style.css' in json.dumps(changed), changed
        assert 'red' in text_of(address, '/style.css')
        port.terminate()
        server.kill()
    cay('kill', box, check=True)

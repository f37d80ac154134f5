# SPDX-License-Identifier: Apache-2.0
"""cay serve with TLS: certificates of a CA that the test makes."""

import http.client
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time

import pytest

import caylib
import test_serve

pytestmark = pytest.mark.skipif(not shutil.which('openssl'), reason='openssl is not installed')

DOMAIN = 'boxes.test'


class Ca:
    """A certificate authority in a directory."""

    def __init__(self, path):
        self.path = path
        self.run('req', '-x509', *self.new_key('ca'), '-out', 'ca.pem', '-days', '2', '-subj', '/CN=test CA')

    def run(self, *args):
        subprocess.run(['openssl', *args], cwd=self.path, check=True, capture_output=True)

    @staticmethod
    def new_key(name):
        return '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', f'{name}.key'

    def issue(self, name, *names):
        """Chain and key, as paths."""
        self.run('req', *self.new_key(name), '-out', f'{name}.csr', '-subj', f'/CN={name}')
        with open(self.path / f'{name}.ext', 'w', encoding='ascii') as f:
            f.write(f'subjectAltName={",".join(names)}\n')
        self.run('x509', '-req', '-in', f'{name}.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial',
                 '-out', f'{name}.pem', '-days', '2', '-extfile', f'{name}.ext')
        return self.path / f'{name}.pem', self.path / f'{name}.key'


class TlsServer(test_serve.Server):
    """Its clients trust the test's CA, and nobody else."""

    def __init__(self, cay, ca, cert, key, *args):
        self.cay, self.ca = cay, ca
        self.process = cay.popen('serve', '--listen', '127.0.0.1:0', '--tls-cert', cert, '--tls-key', key, *args)
        self.said = self.process.read_until(b'/sandboxes\n').decode()
        self.key = re.search(r'E2B_API_KEY=(\S+)', self.said)[1]
        self.address = re.search(r'Serving at https://(\S+)', self.said)[1]
        self.context = ssl.create_default_context(cafile=ca.path / 'ca.pem')

    def connect(self, name='127.0.0.1'):
        host, port = self.address.split(':')
        plain = socket.create_connection((host, int(port)), 30 * caylib.SLOWER)
        c = http.client.HTTPSConnection(name, int(port), context=self.context)
        c.sock = self.context.wrap_socket(plain, server_hostname=name)
        return c

    def get(self, c, path='/sandboxes', **headers):
        c.request('GET', path, headers={'X-API-Key': self.key, **headers})
        r = c.getresponse()
        return r.status, r.read()

    def serial(self):
        c = self.connect()
        try:
            return c.sock.getpeercert()['serialNumber']
        finally:
            c.close()


@pytest.fixture
def ca(tmp_path):
    return Ca(tmp_path)


@pytest.fixture
def tls(fresh_cay, ca):
    pair = ca.issue('one', 'IP:127.0.0.1', f'DNS:*.{DOMAIN}')
    with TlsServer(fresh_cay, ca, *pair, '--domain', DOMAIN) as s:
        yield s
        for box in s.ask('GET', '/sandboxes', unix=True)[1]:
            s.ask('DELETE', f'/sandboxes/{box["sandboxID"]}', unix=True)


def test_clients_speak_tls_and_see_the_domain(tls):
    c = tls.connect()
    assert c.sock.version() == 'TLSv1.3'
    assert tls.get(c) == (200, b'[]')
    # The same connection serves the next request.
    assert tls.get(c, '/health')[0] == 200
    c.close()
    port = tls.address.rpartition(':')[2]
    assert f'export E2B_DOMAIN={DOMAIN}:{port}\n' in tls.said
    assert f'export E2B_API_URL=https://api.{DOMAIN}:{port}\n' in tls.said
    box = tls.ask('POST', '/v2/sandboxes', {'templateID': 'base', 'allow_internet_access': False}, unix=True)[1]
    assert box['domain'] == f'{DOMAIN}:{port}'
    # A name below the domain leads into the sandbox, and one below another domain does not.
    c = tls.connect(f'8000-{box["sandboxID"]}.{DOMAIN}')
    status, body = tls.get(c, '/')
    assert (status, b'port is not open' in body) == (502, True)
    status, body = tls.get(c, '/sandboxes', Host=f'8000-{box["sandboxID"]}.other.test')
    assert status == 200 and body.startswith(b'[')
    c.close()
    # The unix socket is plain.
    assert tls.ask('GET', '/health', unix=True)[0] == 200


def test_plain_text_on_a_tls_port_gets_no_answer(tls):
    host, port = tls.address.split(':')
    with socket.create_connection((host, int(port)), 30 * caylib.SLOWER) as s:
        s.sendall(b'GET /health HTTP/1.1\r\nHost: x\r\n\r\n')
        try:
            assert not s.recv(4096).startswith(b'HTTP/')
        except ConnectionResetError:
            pass
    assert tls.get(tls.connect(), '/health')[0] == 200


@pytest.mark.parametrize('how', ['poll', 'signal'])
def test_a_new_certificate_is_used_and_connections_stay(tls, ca, how):
    before = tls.serial()
    kept = tls.connect()
    assert tls.get(kept)[0] == 200
    new = ca.issue('two', 'IP:127.0.0.1')
    os.rename(new[1], ca.path / 'one.key')
    os.rename(new[0], ca.path / 'one.pem')
    if how == 'signal':
        tls.process.send_signal(signal.SIGHUP)
    caylib.wait_until(lambda: tls.serial() != before, what='the new certificate')
    assert tls.get(kept)[0] == 200
    kept.close()


def test_files_that_do_not_fit_leave_the_old_certificate(tls, ca):
    before = tls.serial()
    ca.issue('two', 'IP:127.0.0.1')
    os.rename(ca.path / 'two.pem', ca.path / 'one.pem')
    tls.process.send_signal(signal.SIGHUP)
    line = tls.process.stderr.readline().decode()
    assert 'The old certificate stays in use' in line and 'one.pem' in line
    assert tls.serial() == before
    # A front that starts anew has it too.
    old = tls.children('serve-front')[0]
    os.kill(old, signal.SIGKILL)
    caylib.wait_until(lambda: tls.children('serve-front') not in ([], [old]), what='another front')
    assert tls.serial() == before


def test_sessions_are_resumed_after_the_certificate_changed(tls, ca):
    tls.context.maximum_version = ssl.TLSVersion.TLSv1_2
    first = tls.connect()
    assert tls.get(first)[0] == 200
    session = first.sock.session
    ca.issue('two', 'IP:127.0.0.1')
    os.rename(ca.path / 'two.key', ca.path / 'one.key')
    os.rename(ca.path / 'two.pem', ca.path / 'one.pem')
    tls.process.send_signal(signal.SIGHUP)
    while 'read again' not in tls.process.stderr.readline().decode():
        pass
    host, port = tls.address.split(':')
    plain = socket.create_connection((host, int(port)), 30 * caylib.SLOWER)
    with tls.context.wrap_socket(plain, server_hostname='127.0.0.1', session=session) as s:
        assert s.session_reused
    first.close()


def test_wrong_files_are_refused_by_name(fresh_cay, ca):
    cert, key = ca.issue('one', 'IP:127.0.0.1')
    _, other = ca.issue('two', 'IP:127.0.0.1')
    junk = ca.path / 'junk.pem'
    junk.write_text('nothing\n')
    junk.chmod(0o600)
    public = ca.path / 'open.key'
    shutil.copy(key, public)
    public.chmod(0o644)
    for c, k, words in ((cert, other, ['one.pem', 'two.key', 'belong']), (junk, key, ['junk.pem', 'not a PEM chain']),
                        (cert, junk, ['junk.pem', 'not a PEM private key']), (cert, ca.path / 'none', ['none', 'No such file']),
                        (cert, public, ['open.key', '0644', 'chmod 600']), (ca.path, key, [str(ca.path), 'not a regular file'])):
        r = fresh_cay('serve', '--listen', '127.0.0.1:0', '--tls-cert', c, '--tls-key', k)
        assert r.code != 0
        for word in words:
            assert word in r.err, (word, r.err)
    for args in (['--tls-cert', cert], ['--tls-cert', cert, '--tls-key', key], ['--domain', 'a b']):
        assert fresh_cay('serve', *(['--listen', '127.0.0.1:0'] if len(args) == 2 else []), *args).code == 2
    assert not os.path.exists(f'{fresh_cay.state}/cay.sock')


def test_a_certificate_without_the_domain_is_told(fresh_cay, ca):
    pair = ca.issue('one', 'IP:127.0.0.1')
    with TlsServer(fresh_cay, ca, *pair, '--domain', DOMAIN) as s:
        assert f'not valid for *.{DOMAIN}' in s.process.stderr.readline().decode()


def test_the_npm_client_works_with_it(tls, mode):
    if not shutil.which('node') or not os.path.isdir(f'{test_serve.E2B}/node_modules/e2b'):
        pytest.skip('the npm package e2b is not installed (scripts/setup e2b)')
    url = f'https://{tls.address}'
    env = {**os.environ, 'E2B_API_URL': url, 'E2B_SANDBOX_URL': url, 'E2B_API_KEY': tls.key,
           'NODE_EXTRA_CA_CERTS': str(tls.ca.path / 'ca.pem'), 'CAY_TEST_USER': 'root' if mode == 'rootful' else 'user'}
    done = subprocess.run(['node', f'{test_serve.E2B}/client.mjs', 'commands_give_their_output_and_exit_code', 'stdin_can_be_closed'],
                          env=env, capture_output=True, timeout=180 * caylib.SLOWER, check=False)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    assert done.stdout.count(b'ok - ') == 2


def test_slow_handshakes_hinder_nobody(tls):
    """Clients that connect and say nothing are dropped after their time; others are served meanwhile."""
    host, port = tls.address.split(':')
    silent = [socket.create_connection((host, int(port)), 30 * caylib.SLOWER) for _ in range(50)]
    begin = time.monotonic()
    assert tls.get(tls.connect(), '/health')[0] == 200
    assert time.monotonic() - begin < 10 * caylib.SLOWER
    for s in silent:
        s.close()

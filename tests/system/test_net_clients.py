# SPDX-License-Identifier: Apache-2.0
"""Clients that keep a conversation: ssh, git, WebSockets, sessions; unmodified, through the gateway."""

import hashlib
import os
import shutil
import subprocess

import pytest

import caylib
import world as w
from netlib import Net, gateway_pid, net, netbox, world  # noqa: F401

DROPBEAR = shutil.which('dropbear', path='/usr/sbin:/usr/bin')
SSH = 'ssh -F none -i /tmp/key -o UserKnownHostsFile=/tmp/known -o StrictHostKeyChecking=accept-new -o BatchMode=yes -o ConnectTimeout=8'


@pytest.fixture
def sshd(net):
    """A real ssh server in the world; its home is a tmpfs of its own."""
    folder = net.world.dir
    for name, maker in (('host_key', ['dropbearkey', '-t', 'ed25519', '-f']),
                        ('key', ['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f'])):
        if not os.path.exists(f'{folder}/{name}'):
            subprocess.run([*maker, f'{folder}/{name}'], check=True, capture_output=True)
    os.chmod(f'{folder}/key', 0o644)  # the sandbox's user makes a private copy
    script = f'''mount -t tmpfs -o mode=700 none /root && mkdir -m 700 /root/.ssh && cp {folder}/key.pub /root/.ssh/authorized_keys &&
        exec {DROPBEAR} -F -E -s -m -P /root/pid -r {folder}/host_key -p {w.WEB4}:2222 -p {w.OTHER4}:2222'''
    log = open(f'{folder}/dropbear.log', 'w+', encoding='utf-8')
    server = subprocess.Popen(['unshare', '-m', 'sh', '-c', script], stderr=log, stdin=subprocess.DEVNULL,
                              preexec_fn=lambda: net.world.enter(net.world.world))

    def is_ready():
        log.seek(0)
        return 'Not backgrounding' in log.read()
    caylib.wait_until(is_ready, what='the ssh server')
    yield server
    server.terminate()
    server.wait()
    log.close()


@pytest.mark.skipif(not caylib.ROOTFUL, reason='the ssh server must be able to change its user')
def test_ssh_runs_commands_and_moves_data(net, netbox, sshd):
    box = netbox('--allow', 'web.test:2222', '--ro', f'{net.world.dir}/key:/host-key')
    script = f'''cp /host-key /tmp/key; chmod 600 /tmp/key
{SSH} -p 2222 root@web.test 'echo hello from $SSH_CONNECTION' | cut -d' ' -f1,2
head -c 3000000 /dev/urandom > /tmp/data; sha256sum < /tmp/data
{SSH} -p 2222 root@web.test 'cat > /root/data; sha256sum < /root/data; cat /root/data' < /tmp/data > /tmp/back
head -1 /tmp/back; tail -c 3000000 /tmp/back | sha256sum
{SSH} -p 2222 root@other.test true; echo $?'''
    r = net('exec', box, '--', 'sh', '-c', script, timeout=60)
    lines = r.out.splitlines()
    assert lines[0] == 'hello from', r
    assert len(lines[1]) > 60 and lines[1] == lines[2] == lines[3] and lines[4] == '255', r
    up = [(e['up'], e['down']) for e in net.events(box, 'net.close') if e['name'] == 'web.test']
    assert len(up) == 2 and up[1][0] > 3000000 and up[1][1] > 3000000


@pytest.fixture
def repo(net):
    path = f'{net.world.dir}/repo.git'
    if not os.path.exists(path):
        env = {**os.environ, 'GIT_CONFIG_GLOBAL': '/dev/null', 'GIT_AUTHOR_NAME': 'a', 'GIT_AUTHOR_EMAIL': 'a@b', 'GIT_COMMITTER_NAME': 'a',
               'GIT_COMMITTER_EMAIL': 'a@b'}
        work = f'{net.world.dir}/work'
        subprocess.run(['sh', '-ec', f'''git init -q -b main {work}; cd {work}; head -c 2000000 /dev/urandom > big; echo one > file
git add .; git commit -qm one; git clone -q --bare {work} {path}; git -C {path} config http.receivepack true'''], env=env, check=True)
    return path


@pytest.mark.parametrize('scheme', ['http', 'https'])
def test_git_clones_and_pushes(net, repo, scheme):
    branch = f'from-{scheme}'
    r = net.run(f'''export GIT_SSL_CAINFO=/cert.pem GIT_TERMINAL_PROMPT=0 HOME=/tmp
git clone -q {scheme}://git.test/repo.git /tmp/r && cd /tmp/r && cat file && sha256sum < big
head -c 1500000 /dev/urandom > more && sha256sum < more && git add more
git -c user.name=x -c user.email=x@y commit -qm two && git push -q origin HEAD:{branch} && git ls-remote origin {branch} | cut -f2
git clone -q {scheme}://other.test/repo.git /tmp/no 2>/dev/null; test $? -ne 0 && echo refused''', '--allow', 'git.test', timeout=60)
    lines = r.out.splitlines()
    assert len(lines) == 5 and lines[0] == 'one' and lines[3:] == [f'refs/heads/{branch}', 'refused'], r
    big = subprocess.run(['git', '-c', 'safe.directory=*', '-C', repo, 'show', 'main:big'], check=True, capture_output=True).stdout
    more = subprocess.run(['git', '-c', 'safe.directory=*', '-C', repo, 'show', f'{branch}:more'], check=True, capture_output=True).stdout
    assert [lines[1].split()[0], lines[2].split()[0]] == [hashlib.sha256(x).hexdigest() for x in (big, more)]


def test_a_websocket_client_talks_over_both_schemes(net):
    if not shutil.which('node'):
        pytest.skip('node is not installed')
    script = '''const urls = ['ws://web.test:8080/ws', 'wss://web.test/ws'];
(async () => { for (const u of urls) await new Promise((done, fail) => {
  const s = new WebSocket(u); const got = [];
  s.onopen = () => s.send('one'); s.onerror = e => fail(e.error || new Error('error'));
  s.onmessage = e => { got.push(e.data); if (got.length < 3) s.send('again ' + got.length); else { console.log(got.join()); s.close(); done(); } };
}); process.exit(0); })();'''
    r = net.run(f'NODE_EXTRA_CA_CERTS=/cert.pem node --no-warnings --experimental-websocket -e "{script}"', '--allow', 'web.test:8080',
                '--allow', 'web.test')
    if 'bad option' in r.err:
        pytest.skip('this node has no WebSocket')
    assert r.out == 'one,again 1,again 2\n' * 2, r


def test_a_session_of_many_requests_uses_one_connection(net, netbox):
    box = netbox('--allow', 'web.test')
    net('exec', box, '--', '/usr/bin/python3', '-c', '''
import http.client, ssl
for c in (http.client.HTTPConnection('web.test', timeout=8),
          http.client.HTTPSConnection('web.test', timeout=8, context=ssl.create_default_context(cafile='/cert.pem'))):
    for i in range(20):
        c.request('POST' if i % 2 else 'GET', f'/{i}', body=b'x' * 5000 * i if i % 2 else None)
        r = c.getresponse(); r.read(); assert r.status == 200, r.status
    c.close()
''', check=True)
    assert len(net.events(box, 'net.connect')) == 2
    assert [e['path'] for e in net.events(box, 'net.http')] == [f'/{i}' for i in range(20)]

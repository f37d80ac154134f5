# SPDX-License-Identifier: Apache-2.0
"""A world for sandboxes with network: two network namespaces of the test's own, joined by a cable.

In one stand servers (world_server.py), in the other runs cay, which takes it for the host. Nothing
that happens there leaves this machine, so the addresses can be of any kind. Without root both lie
in a user namespace, and cay in a second one below it, where it is an ordinary user again.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import shutil

import caylib

HERE = os.path.dirname(os.path.abspath(__file__))
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)

HOST4, HOST6 = '45.90.0.1', '2a0c:99::1'  # the "host's" own
WEB4, WEB6 = '45.90.0.10', '2a0c:99::10'
OTHER4 = '45.90.0.11'
DNS4 = '45.90.0.53'
PROXY4 = '45.90.0.20'
PASSWORD = 'a secret: 100%'  # of its SOCKS at port 1081, for me@corp
PRIVATE4 = '10.99.0.10'  # not global: only a rule that names it opens it
METADATA4 = '169.254.169.254'

SETUP = f'''
ip link set lo up
ip link add c0 type veth peer name c1 netns "$WORLD"
ip addr add {HOST4}/24 dev c0
ip addr add {HOST6}/64 dev c0 nodad
ip addr add 10.99.0.1/24 dev c0
ip link set c0 up
ip route add {METADATA4}/32 dev c0
'''
SETUP_WORLD = '\n'.join(['ip link set lo up', 'ip link set c1 up', f'ip addr add {WEB6}/64 dev c1 nodad'] +
                        [f'ip addr add {a}/24 dev c1' for a in (WEB4, OTHER4, DNS4, PROXY4, PRIVATE4)] +
                        [f'ip addr add {METADATA4}/32 dev c1'])


def check(result):
    if result != 0:
        err = ctypes.get_errno()
        raise OSError(err, os.strerror(err))


def write(path, text):
    with open(path, 'w', encoding='ascii') as f:
        f.write(text)


def map_self(inside, outside):
    write('/proc/self/setgroups', 'deny')
    write('/proc/self/uid_map', f'{inside} {outside[0]} 1')
    write('/proc/self/gid_map', f'{inside} {outside[1]} 1')


class Holder:
    """Child processes that only keep namespaces alive."""

    def __init__(self):
        self.pids = []

    def make(self, enter, flags, mapped):
        ready, told = os.pipe()
        go, do_go = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(do_go)
                ids = os.getuid(), os.getgid()
                enter()
                check(LIBC.unshare(flags))
                if mapped:
                    map_self(0, ids)
                os.write(told, b'r')
                os.read(go, 1)  # until our maker is gone, or closes it
            finally:
                os._exit(0)
        os.close(told)
        os.close(go)
        if os.read(ready, 1) != b'r':
            raise OSError('no namespaces of our own here')
        os.close(ready)
        self.pids.append((pid, do_go))
        return pid

    def done(self):
        for pid, go in self.pids:
            os.close(go)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


class World:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix='cay-world-', dir='/tmp')
        os.chmod(self.dir, 0o755)
        self.holder = Holder()
        rootless = not caylib.ROOTFUL
        self.user = None
        first = self.holder.make(lambda: None, CLONE_NEWNET | (CLONE_NEWUSER if rootless else 0), rootless)
        if rootless:
            self.user = os.open(f'/proc/{first}/ns/user', os.O_RDONLY | os.O_CLOEXEC)
        self.host = os.open(f'/proc/{first}/ns/net', os.O_RDONLY | os.O_CLOEXEC)
        second = self.holder.make(self.enter_user, CLONE_NEWNET, False)
        self.world = os.open(f'/proc/{second}/ns/net', os.O_RDONLY | os.O_CLOEXEC)
        self.run_in(self.host, SETUP, WORLD=str(second))
        self.run_in(self.world, SETUP_WORLD)
        self.certificates()
        self.server = subprocess.Popen(['/usr/bin/python3', os.path.join(HERE, 'world_server.py'), self.dir],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                       preexec_fn=lambda: self.enter(self.world))
        line = self.server.stdout.readline()
        if line != 'ready\n':
            raise AssertionError(f'the servers did not start: {line!r}')

    def enter_user(self):
        if self.user is not None:
            check(LIBC.setns(self.user, CLONE_NEWUSER))
            os.setresgid(0, 0, 0)
            os.setresuid(0, 0, 0)

    def enter(self, net):
        self.enter_user()
        check(LIBC.setns(net, CLONE_NEWNET))

    def enter_as_user(self):
        """Into what cay takes for the host; without root as an ordinary user."""
        self.enter(self.host)
        if self.user is not None:
            check(LIBC.unshare(CLONE_NEWUSER))
            map_self(65534, (0, 0))

    def run_in(self, net, script, **env):
        subprocess.run(['sh', '-ec', script], env={**os.environ, **env}, check=True, preexec_fn=lambda: self.enter(net))

    def output_in(self, net, script):
        return subprocess.run(['sh', '-ec', script], check=True, capture_output=True, text=True, preexec_fn=lambda: self.enter(net)).stdout

    def certificates(self):
        names = ','.join(f'DNS:{n}' for n in ('web.test', '*.web.test', 'other.test', 'private.test', 'git.test'))
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
                        '-days', '2', '-subj', '/CN=cay test', '-addext', f'subjectAltName={names},IP:{WEB4}',
                        '-keyout', f'{self.dir}/key.pem', '-out', f'{self.dir}/cert.pem'],
                       check=True, stderr=subprocess.DEVNULL)
        os.chmod(f'{self.dir}/cert.pem', 0o644)

    def ask(self, what, *args):
        """A question to the servers: counters, settings."""
        self.server.stdin.write(json.dumps([what, *args]) + '\n')
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())

    def cay_options(self, **env):
        return {'env': {'CAY_NAMESERVERS': DNS4, 'HTTPS_PROXY': '', 'ALL_PROXY': '', 'https_proxy': '',
                        'all_proxy': '', **env}, 'preexec_fn': self.enter_as_user}

    def cay(self, cay, *args, env=None, **options):
        """Run cay on the "host"."""
        return cay(*args, **self.cay_options(**(env or {})), **options)

    def done(self):
        self.server.stdin.close()
        try:
            self.server.wait(5)
        except subprocess.TimeoutExpired:
            self.server.send_signal(signal.SIGKILL)
            self.server.wait()
        self.server.stdout.close()
        for fd in (self.host, self.world, self.user):
            if fd is not None:
                os.close(fd)
        self.holder.done()
        shutil.rmtree(self.dir, ignore_errors=True)


if __name__ == '__main__':  # a look by hand: world.py COMMAND... runs it on the "host"
    w = World()
    try:
        sys.exit(subprocess.run(sys.argv[1:], check=False, preexec_fn=w.enter_as_user,
                                env={**os.environ, 'CAY_NAMESERVERS': DNS4, 'WORLD_DIR': w.dir}).returncode)
    finally:
        w.done()

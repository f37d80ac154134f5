# SPDX-License-Identifier: Apache-2.0
"""What test_contain.py lays out on the host for the probe to reach, and how the probe is run."""

import array
import collections
import contextlib
import ctypes
import errno
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

import caylib

PROBE = os.environ.get('CAY_PROBE') or os.path.join(os.path.dirname(caylib.CAY), 'tests/contain/contain-probe')
SYS_add_key = 248
SYS_keyctl = 250
KEYCTL_UNLINK, SESSION_KEYRING = 9, -3
IPC_CREAT, IPC_RMID = 0o1000, 0
UNSET = 250
NAMESPACES = ('--mount', '--pid', '--fork', '--net', '--ipc', '--uts', '--cgroup', '--mount-proc')
SETTINGS = {'plain': (), 'ns': ('unshare', '--user', '--map-root-user', *NAMESPACES), 'root': ('unshare', *NAMESPACES)}

Check = collections.namedtuple('Check', 'name topic tries control allowed lacks dev root locked bare')
libc = ctypes.CDLL(None, use_errno=True)


def table():
    out = subprocess.run([PROBE, 'list'], stdout=subprocess.PIPE, check=True, text=True).stdout
    return [Check(*line.split('\t')) for line in out.splitlines()]


def outcome(number):
    if number == 0:
        return 'ok'
    if number < 0:
        return signal.Signals(-number).name
    if number == errno.EOPNOTSUPP:
        return 'EOPNOTSUPP'  # the same as ENOTSUP
    return 'unset' if number == UNSET else errno.errorcode.get(number, str(number))


def outcomes(text):
    return {name: outcome(int(number)) for name, number in (line.split() for line in text.splitlines())}


def must(value, what):
    if value < 0:
        raise OSError(ctypes.get_errno(), what)
    return value


class Ground:
    """Files, sockets, memory, messages, a key and a process of the host, all open to everybody."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix='cay-ground-', dir='/tmp')
        os.chmod(self.dir, 0o755)
        self.params, self.ends = {}, []
        self.lay_files()
        self.lay_sockets()
        self.lay_messages()
        self.lay_descriptors()
        victim = subprocess.Popen(['sleep', '600'])
        self.ends += [victim.wait, victim.kill]
        self.params.update(HOST_PID=victim.pid, PEER=victim.pid, CWD=self.dir)
        self.pids = {victim.pid}

    def close(self):
        for end in reversed(self.ends):
            end()
        shutil.rmtree(self.dir)

    def lay_files(self):
        for key, folder in (('HOST_FILE', '/tmp'), ('HOST_VAR_FILE', '/var/tmp'), ('HOST_SHM_FILE', '/dev/shm')):
            fd, path = tempfile.mkstemp(prefix='cay-ground-', dir=folder)
            os.fchmod(fd, 0o666)
            os.close(fd)
            self.params[key] = path
            self.ends.append(lambda path=path: os.unlink(path))
        os.makedirs(f'{self.dir}/given')
        os.chmod(f'{self.dir}/given', 0o777)
        with open(f'{self.dir}/given/secret', 'w', encoding='utf-8') as f:
            f.write('secret')
        os.chmod(f'{self.dir}/given/secret', 0o666)
        shutil.copy(PROBE, f'{self.dir}/given/true')
        os.makedirs(f'{self.dir}/ask')
        os.chmod(f'{self.dir}/ask', 0o777)
        with open('/proc/self/cgroup', encoding='utf-8') as f:
            groups = [line.rstrip('\n').split(':', 2) for line in f]
        hierarchy, path = next((c, p) for n, c, p in groups if c == 'memory' or n == '0')
        v2 = '/sys/fs/cgroup/unified' if os.path.isdir('/sys/fs/cgroup/unified') else '/sys/fs/cgroup'
        self.params['CGROUP_PROCS'] = f"{v2 if not hierarchy else '/sys/fs/cgroup/memory'}{path.rstrip('/')}/cgroup.procs"

    def lay_spares(self):
        """What can be removed once: anew for each who tries."""
        with open(f'{self.dir}/given/spare', 'w', encoding='utf-8'):
            pass
        os.makedirs(f'{self.dir}/given/empty', exist_ok=True)

    def listen(self, address, kind=socket.SOCK_STREAM, family=socket.AF_UNIX):
        s = socket.socket(family, kind)
        s.bind(address)
        if kind == socket.SOCK_STREAM:
            s.listen(64)
        self.ends.append(s.close)
        return s

    def lay_sockets(self):
        name = f'cay-ground-{os.getpid()}'
        self.listen('\0' + name)
        self.listen(f'\0{name}-d', socket.SOCK_DGRAM)
        self.listen(f'{self.dir}/sock')
        tcp = self.listen(('127.0.0.1', 0), family=socket.AF_INET)
        os.chmod(f'{self.dir}/sock', 0o777)
        self.params.update(ABSTRACT=name, ABSTRACT_DGRAM=f'{name}-d', SOCKET=f'{self.dir}/sock', TCP_PORT=tcp.getsockname()[1],
                           GIVER=f'{self.dir}/ask/sock')

    def give(self, path, over):
        """A directory of the host to everybody who listens there."""
        given = os.open(f'{self.dir}/given', os.O_RDONLY | os.O_DIRECTORY)
        while not over.wait(0.002):
            with socket.socket(socket.AF_UNIX) as s:
                try:
                    s.connect(path)
                    s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [given]))])
                except OSError:
                    pass
        os.close(given)

    @contextlib.contextmanager
    def giving(self, path):
        over = threading.Event()
        giver = threading.Thread(target=self.give, args=(path, over))
        giver.start()
        try:
            yield
        finally:
            over.set()
            giver.join()

    def lay_messages(self):
        key, name = os.getpid() | 0x43410000, f'/cay-ground-{os.getpid()}'
        shm = must(libc.shmget(key, 4096, IPC_CREAT | 0o666), 'shmget')
        sem = must(libc.semget(key, 1, IPC_CREAT | 0o666), 'semget')
        msg = must(libc.msgget(key, IPC_CREAT | 0o666), 'msgget')
        self.ends += [lambda: libc.shmctl(shm, IPC_RMID, None), lambda: libc.semctl(sem, 0, IPC_RMID),
                      lambda: libc.msgctl(msg, IPC_RMID, None)]
        queue = must(libc.mq_open(name.encode(), os.O_RDWR | os.O_CREAT, 0o666, None), 'mq_open')
        self.ends += [lambda: libc.mq_unlink(name.encode()), lambda: os.close(queue)]
        found = must(libc.syscall(SYS_add_key, b'user', name.encode(), b'secret', 6, SESSION_KEYRING), 'add_key')
        self.ends.append(lambda: libc.syscall(SYS_keyctl, KEYCTL_UNLINK, found, SESSION_KEYRING))
        self.params.update(IPC_KEY=key, QUEUE=name, KEY=name)

    def lay_descriptors(self):
        """Far above those that programs open by themselves."""
        pair = socket.socketpair()
        kinds = {'FD_DIRECTORY': os.open('/', os.O_RDONLY | os.O_DIRECTORY), 'FD_FILE': os.open('/etc/passwd', os.O_RDONLY),
                 'FD_SOCKET': os.dup(pair[0].fileno()), 'FD_MEMORY': os.memfd_create('ground')}
        self.fds = []
        for i, (key, fd) in enumerate(kinds.items()):
            self.fds.append(os.dup2(fd, 200 + i))
            os.close(fd)
            self.params[key] = self.fds[-1]
        self.ends += [pair[0].close, pair[1].close, *(lambda fd=fd: os.close(fd) for fd in self.fds)]

    def arguments(self, **changed):
        return [f'{k}={v}' for k, v in {**self.params, **changed}.items()]

    def outside(self, setting):
        """
        The probe in a setting where nothing holds it.

        It gets its own process group: one of its checks sets the priority of the whole group. The kernel refuses
        that with EPERM as soon as one member belongs to another user, such as a suite started beside this one.
        """
        self.lay_spares()
        command = [*SETTINGS[setting], PROBE, setting, *self.arguments()]
        with self.giving(self.params['GIVER']):
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, pass_fds=self.fds, start_new_session=True,
                                  timeout=120 * caylib.SLOWER, check=False)
        assert done.returncode == 0, done.stderr
        return outcomes(done.stdout)

    def inside(self, cay, profile, user, *options):
        """The probe in a sandbox: beside a call of the same user, with descriptors leaked into every cay."""
        self.lay_spares()
        ref = cay('create', '--profile', profile, *options, '--ro', f'{PROBE}:/probe', check=True,
                  pass_fds=self.fds).out.strip()
        init = cay.json('show', ref)[0]['init_pid']
        try:
            with cay.popen('exec', '--user', user, ref, '--', 'sh', '-c', 'echo $$; exec sleep 600', pass_fds=self.fds) as peer:
                arguments = self.arguments(PEER=int(peer.stdout.readline()), GIVER='/tmp/giver',
                                           CONTROL=f'{cay.state}/sandboxes/{ref}/sock')
                with self.giving(f'/proc/{init}/root/tmp/giver'):
                    done = cay('exec', '--user', user, ref, '--', '/probe', 'run', *arguments, timeout=120, check=True,
                               pass_fds=self.fds)
            return outcomes(done.out)
        finally:
            cay('kill', ref, check=True)

    def bare(self, cay):
        """In a sandbox's namespaces with all inner capabilities, without the two other walls."""
        ref = cay('create', check=True).out.strip()
        try:
            arguments = self.arguments(INIT_PID=cay.json('show', ref)[0]['init_pid'],
                                       CONTROL=f'{cay.state}/sandboxes/{ref}/sock')
            done = subprocess.run([PROBE, 'bare', *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, timeout=120 * caylib.SLOWER, check=False)
            assert done.returncode == 0, done.stderr
            return outcomes(done.stdout)
        finally:
            cay('kill', ref, check=True)

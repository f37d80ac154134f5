# SPDX-License-Identifier: Apache-2.0
"""The gateway against plain loopback: a download, connections, memory.

A server listens on an additional loopback address in its own network namespace. The same client
talks to it directly and from a sandbox, in turns. All processes run with real-time priority. With a
gateway three processes alternate instead of two, so other load on the machine would count three
times instead of twice.
"""

import contextlib
import json
import os
import statistics
import subprocess
import time

from memory import parent_of, private_kib

ADDR, PORT = '10.77.0.1', '7777'


class Place:
    """A network namespace with the server in it, and how to run something there."""

    def __init__(self, lab):
        self.lab = lab
        self.holder = subprocess.Popen(['unshare', '-n', 'sleep', '10000'])
        time.sleep(0.2)
        for command in ('ip link set lo up', f'ip addr add {ADDR}/32 dev lo'):
            self.run(command.split())
        self.server = subprocess.Popen(self.inside([self.tool, 'serve', ADDR, PORT]), stdout=subprocess.PIPE, text=True)
        assert self.server.stdout.readline() == 'ready\n'

    @property
    def tool(self):
        return os.path.join(self.lab.folder, 'bench-net')

    def inside(self, command):
        return ['nsenter', '-t', str(self.holder.pid), '-n', *command]

    def run(self, command, **options):
        return subprocess.run(self.inside(command), check=True, capture_output=True, text=True, **options).stdout

    def done(self):
        for process in (self.server, self.holder):
            process.kill()
            process.wait()


def gateway_of(lab, state, box, part):
    init = json.loads(subprocess.run([lab.cay, 'show', '--json', box], env=lab.env(state), check=True,
                                     capture_output=True, text=True).stdout)['init_pid']
    warden = parent_of(init)
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline', encoding='utf-8') as f:
                if parent_of(pid) == warden and f.read() == f'cay-gateway\0{part}\0':
                    return int(pid)
        except OSError:
            continue
    raise AssertionError('no gateway')


def cpu_us(pid):
    with open(f'/proc/{pid}/stat', encoding='utf-8') as f:
        fields = f.read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1e6 / os.sysconf('SC_CLK_TCK')


def compare(lab, place, run_in):
    """In turns: MB/s of a download, and microseconds of a connection; without and with the gateway."""
    size = lab.pick(2 << 30, 1 << 30)
    rates, delays = {False: [], True: []}, {False: [], True: []}
    for _ in range(lab.pick(9, 5)):
        for through in (False, True):
            tool = run_in if through else lambda *a: place.run([place.tool, *a])
            delays[through].append(float(tool('connect', ADDR, PORT, '300', '1').split()[0]))
            rates[through].append(float(tool('get', ADDR, PORT, str(size))))
    return rates, delays


@contextlib.contextmanager
def real_time():
    """For us and what we start."""
    was = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(20))
    try:
        yield
    finally:
        os.sched_setscheduler(0, *was)


def bench(lab):
    if not lab.is_root:
        lab.skip('gateway', 'needs root to make a network namespace')
        return
    with real_time():
        measure(lab)


def measure(lab):
    state = lab.state('gateway', in_memory=True)
    env = {**lab.env(state), 'CAY_NAMESERVERS': '127.0.0.1'}
    place = Place(lab)
    try:
        box = subprocess.run(place.inside([lab.cay, 'create', '--allow', f'{ADDR}:{PORT}', '--ro', f'{place.tool}:/bench-net']),
                             env=env, check=True, capture_output=True, text=True).stdout.strip()

        def run_in(*args):
            return subprocess.run([lab.cay, 'exec', box, '--', '/bench-net', *args], env=env, check=True,
                                  capture_output=True, text=True).stdout

        run_in('connect', ADDR, PORT, '10', '1')
        gateway, dialer = (gateway_of(lab, state, box, part) for part in ('front', 'dialer'))
        time.sleep(1)
        idle = private_kib(gateway)
        lab.promise('private memory of an idle gateway', idle + private_kib(dialer), 1024, 'KiB')
        rates, delays = compare(lab, place, run_in)
        loop, through = (statistics.median(rates[k]) for k in (False, True))
        lab.promise('download over plain loopback / through the gateway', loop / through, 1.25, 'x',
                    f'{loop:.0f} MB/s, {through:.0f} MB/s')
        direct, led = (statistics.median(delays[k]) for k in (False, True))
        lab.promise('added to one connection with one exchange', led - direct, 150, 'us', f'{direct:.0f} us, {led:.0f} us')
        whose = float(place.run([os.path.join(lab.folder, 'bench-whose'), '500']))
        lab.promise('looking whose a connection is', whose, 10, 'us')
        parts = {'front': gateway, 'dialer': dialer, 'warden': parent_of(gateway)}
        before = {name: cpu_us(pid) for name, pid in parts.items()}
        n = lab.pick(8000, 5000)  # connections to one place soon use up the ports of a host, with a gateway or without
        rate = float(run_in('connect', ADDR, PORT, str(n), '32').split()[2])
        lab.promise('2,000 connections a second / reached', 2000 / rate, 1, 'x',
                    f'{rate:.0f} a second, CPU each: ' +
                    ', '.join(f'{name} {(cpu_us(pid) - before[name]) / n:.0f} us' for name, pid in parts.items()))
        held = 1000
        with subprocess.Popen([lab.cay, 'exec', box, '--', '/bench-net', 'hold', ADDR, PORT, str(held)], env=env,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            assert p.stdout.readline() == 'open\n'
            each = (private_kib(gateway) - idle) / held
            p.stdin.close()
        lab.promise('private memory of an open connection, mean of 1,000', each, 8, 'KiB')
        subprocess.run([lab.cay, 'kill', '--all'], env=env, check=True, capture_output=True)
    finally:
        place.done()

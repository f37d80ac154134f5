# SPDX-License-Identifier: Apache-2.0
"""Fixtures for tests of the network: a world, and cay in front of it."""

import json
import os

import pytest

import caylib
import world as w


class Net:
    """cay on the "host" of a world; also what a test often does there."""

    def __init__(self, world, cay):
        self.world, self.cay = world, cay

    def __call__(self, *args, env=None, **options):
        return self.world.cay(self.cay, *args, env=env, **options)

    def run(self, script, *options, check=False, env=None, timeout=60):
        """A shell script in a sandbox of its own, which sees the test's certificate."""
        return self('run', '--ro', f'{self.world.dir}/cert.pem:/cert.pem', *options, '--', 'sh', '-c', script,
                    check=check, env=env, timeout=timeout)

    def create(self, *options):
        return self('create', '--ro', f'{self.world.dir}/cert.pem:/cert.pem', *options, check=True).out.strip()

    def popen(self, *args, **options):
        extra = self.world.cay_options()
        return self.cay.popen(*args, env=extra['env'], preexec_fn=extra['preexec_fn'], **options)

    def events(self, ref, kind=None):
        found = [json.loads(line) for line in self('trace', '--json', ref, check=True).out.splitlines()]
        return [e for e in found if e['kind'] == kind] if kind else [e for e in found if e['kind'].startswith('net.')]

    def policy(self, name, text):
        path = os.path.join(self.world.dir, name)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        os.chmod(path, 0o644)
        return path


@pytest.fixture(scope='module')
def world():
    made = w.World()
    yield made
    made.done()


@pytest.fixture
def net(world, cay, no_leftovers):
    world.ask('reset')
    return Net(world, cay)


@pytest.fixture
def netbox(net):
    """A function that makes sandboxes which end with the test."""
    made = []

    def make(*options):
        made.append(net.create(*options))
        return made[-1]
    yield make
    for ref in made:
        net('kill', ref)


def gateway_pid(net, ref, part='front'):
    """Of one of its two processes, once it is there: a sandbox can be ready before its gateway has got to its exec."""
    warden, want = net.cay.warden(ref), f'cay-gateway\0{part}\0'
    return caylib.wait_until(lambda: next((pid for pid, (parent, _, _) in caylib.processes().items()
                                           if parent == warden and caylib.read_text(f'/proc/{pid}/cmdline') == want), None),
                             what=f'the {part} of a gateway')


def dialer_pid(net, ref):
    return gateway_pid(net, ref, 'dialer')


def is_small(pid, most_kib=4096):
    """Whether a gateway has at most that much private memory, where that can be told."""
    if not caylib.ROOTFUL or caylib.SANITIZED:
        return True  # without root it cannot be looked at, and a sanitizer needs much itself
    with open(f'/proc/{pid}/smaps_rollup', encoding='ascii') as f:
        return sum(int(line.split()[1]) for line in f if line.startswith('Private_')) < most_kib

# SPDX-License-Identifier: Apache-2.0
"""Ready sandboxes with a network: they reach nothing, until whoever takes one brings a policy."""

import os
import signal

import caylib
import pytest
import world as w
from netlib import Net, world  # noqa: F401
from test_ready import Pools, shape

CURL = 'curl -sS --max-time 8'
pytestmark = pytest.mark.skipif(not caylib.ROOTFUL, reason='without root each cay of a world has its own user namespace')


class HostPools(Pools):
    """Pools of the "host" of a world: the keeper is in its network too."""

    def __init__(self, net):
        super().__init__(net.cay)
        self.net = net

    def __call__(self, *words, **options):
        return self.net(*words, **options)


@pytest.fixture
def host(world, cay, no_leftovers):  # noqa: F811
    world.ask('reset')
    own = HostPools(Net(world, cay))
    yield own
    own.end()
    own('kill', '--all', '--yes', check=True)


@pytest.fixture
def ready(host):
    host('pool', 'set', 'host', 2, '--net', 'open', '--wait', check=True)
    return host.ready()


def test_each_owner_brings_a_policy(host, ready):
    cold = host('create', '--allow', 'web.test', '--trace', 'calls', check=True).out.strip()
    assert cold not in ready
    boxes = [host('create', '--allow', name, check=True).out.strip() for name in ('web.test', 'v6.test')]
    assert boxes[0] in ready
    for box, name, other in zip(boxes, ('web.test', 'v6.test'), ('v6.test', 'web.test')):
        assert host('exec', box, '--', *CURL.split(), f'http://{name}/x', check=True).out.startswith('GET /x at')
        refused = host('exec', box, '--', *CURL.split(), f'http://{other}/x')
        assert refused.code != 0 and f'refused: {other}' in refused.err
    assert f'GET /y at {w.WEB4}' in host('exec', cold, '--', *CURL.split(), 'http://web.test/y', check=True).out
    policies = [[e['name'] for e in host.net.events(box, 'policy.set')] for box in (boxes[0], cold)]
    assert policies[0] == policies[1] and len(policies[0]) == 1
    assert host.one('claimed') == 2
    # A pool without a network is another one.
    assert host('run', '--', 'hostname', check=True).out.strip() not in host.ready()


def test_a_claimed_one_is_traced_and_shown_like_a_new_one(host):
    def see():
        box = host('create', '--net', 'open', check=True).out.strip()
        host('exec', box, '--', *CURL.split(), 'http://web.test/x', check=True)
        inside = host('exec', box, '--', 'sh', '-c', 'cat /etc/resolv.conf /proc/net/route; ls -l /etc/resolv.conf | cut -c1-20', check=True).out
        shown = host('show', box, '--json', check=True).out
        # Of each lookup and connection only that there was one: their order is the client's.
        events = host.events(box)
        out = shape(events)[:3], {e['kind'] for e in events} & {'net.dns', 'net.connect', 'net.dial'}, inside, '"policy"' in shown
        host('kill', box, check=True)
        return out, box

    cold, _ = see()
    host('pool', 'set', 'host', 1, '--net', 'open', '--wait', check=True)
    made, = host.ready()
    warm, box = see()
    assert box == made and warm == cold


def test_before_its_claim_it_has_no_policy_and_no_trace(host, ready):
    for box in ready:
        assert not {'policy', 'trace.jsonl'} & set(os.listdir(f'{host.state}/sandboxes/{box}'))
    assert host.net.world.ask('state')['queries'] == []
    # It ends with its gateway, and another takes its place.
    gateways = [pid for pid, (parent, _, name) in caylib.processes().items()
                if name in ('cay-gateway', 'cay-dialer') and os.readlink(f'/proc/{parent}/cwd').endswith(ready[0])]
    assert len(gateways) == 2
    os.kill(gateways[0], signal.SIGKILL)
    caylib.wait_until(lambda: ready[0] not in host.ready() and len(host.ready()) == 2, what='another')
    assert host('run', '--allow', 'web.test', '--', *CURL.split(), 'http://web.test/x', check=True).out.startswith('GET /x')

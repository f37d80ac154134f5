# SPDX-License-Identifier: Apache-2.0
"""cay serve --pool: what clients use often is ready before they ask."""

import os
import signal

import caylib
import pytest
from caylib import wait_until
from test_ready import Pools
from test_serve import Server


@pytest.fixture
def pooled(fresh_cay):
    pools = Pools(fresh_cay)
    with Server(fresh_cay, '--pool', '3') as s:
        s.pools = pools
        yield s
        for box in s.ask('GET', '/sandboxes', unix=True)[1]:
            s.ask('DELETE', f'/sandboxes/{box["sandboxID"]}', unix=True)
    wait_until(lambda: not os.path.exists(f'{fresh_cay.state}/ready'), what='the end of the keeper')


def create(server, **body):
    status, box, _ = server.ask('POST', '/sandboxes', {'templateID': 'base', **body})
    assert status == 201, box
    return box['sandboxID']


def test_what_clients_use_is_made_ready(pooled):
    pools = pooled.pools
    assert pools.ready() == []
    first = create(pooled)
    wait_until(lambda: len(pools.ready()) == 2, what='as many as were wanted, and one more')
    ready = pools.ready()
    second = create(pooled, metadata={'a': 'b'})
    assert second in ready and second != first
    # More are wanted now, up to the limit.
    third = create(pooled)
    wait_until(lambda: len(pools.ready()) == 3, what='three')
    assert third not in pools.ready()
    assert [row['options'] for row in pools.ls()] == ['by demand']
    # A sandbox without a network is of another kind.
    create(pooled, allow_internet_access=False)
    wait_until(lambda: len(pools.ls()) == 2, what='another kind')
    wait_until(lambda: len(pools.ready()) <= 3, what='no more than three in all')


def test_a_command_claims_what_is_ready_for_clients(pooled):
    """A shell and a server have one pool; cay create makes what E2B's does, with the same options."""
    create(pooled)
    wait_until(pooled.pools.ready, what='a ready one')
    ready = pooled.pools.ready()
    limits = ('--memory', '2G', '--cpus', '2', '--pids', '2048', '--disk', '10G', '--best-effort')
    assert pooled.pools('run', '--net', 'open', *limits, '--', 'hostname', check=True).out.strip() in ready


def test_a_server_that_is_killed_leaves_nothing_ready(fresh_cay):
    pools = Pools(fresh_cay)
    with Server(fresh_cay, '--pool', 'auto') as s:
        box = create(s)
        wait_until(pools.ready, what='a ready one')
        s.process.send_signal(signal.SIGKILL)
        s.process.wait()
        pools('kill', box, check=True)
        wait_until(lambda: not os.path.exists(f'{fresh_cay.state}/ready'), what='the end of the keeper', timeout=90)


def test_a_wrong_number_is_said(cay):
    for word in ('many', '-1', '1025', ''):
        r = cay('serve', '--pool', word)
        assert r.code == 2 and 'from 0 to 1024, or auto' in r.err
    assert not caylib.list_dir(f'{cay.state}/ready')

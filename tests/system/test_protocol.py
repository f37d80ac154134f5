# SPDX-License-Identifier: Apache-2.0
"""Version 3 of the client protocol, spoken by a client of its own."""

import os
import select
import time

import pytest

import proto
from wardenlib import args, connect, field

WINDOW = field(proto.TAG_WINDOW, 65536)
DETACHED = field(proto.TAG_DETACHED, 1) + WINDOW


@pytest.fixture(scope='module')
def box(cay):
    sandbox = cay('create', check=True).out.strip()
    yield sandbox
    cay('kill', sandbox, check=True)


@pytest.fixture
def client(cay, box):
    with connect(cay, box) as c:
        yield c


def sh(script):
    return args('sh', '-c', script)


def is_quiet(client, seconds=0.3):
    return not client.data and not select.select([client.sock], [], [], seconds)[0]


# versions

def test_the_newest_version_that_both_speak_is_used(cay, box):
    for oldest, newest, used in ((2, 3, 3), (3, 3, 3), (3, 9, 3), (3, None, 3)):
        with connect(cay, box, oldest=oldest, newest=newest) as c:
            c.ask(proto.C_INFO, proto.C_STATE)
            assert c.version == used


def test_a_client_of_version_2_gets_what_it_knows(cay, box):
    with connect(cay, box, oldest=2, newest=None) as c:
        c.send(proto.C_EXEC, args('echo', 'old'))
        kinds = []
        while not kinds or kinds[-1] != proto.C_EXIT:
            kinds.append(c.next().kind)
        assert sorted(kinds) == [proto.C_STARTED, proto.C_STDOUT, proto.C_EXIT]
        assert 'unknown request' in c.refused(proto.C_LEASE)


def test_a_client_of_version_2_is_not_limited_by_a_window(cay, box):
    with connect(cay, box, oldest=2, newest=None) as c:
        c.send(proto.C_EXEC, sh('head -c 1000000 /dev/zero') + WINDOW)
        assert len(c.output()[0]) == 1000000


def test_versions_that_do_not_meet_are_refused(cay, box):
    for oldest, newest in ((4, 9), (1, 1), (4, None), (9, 3)):
        with connect(cay, box, oldest=oldest, newest=newest) as c:
            assert 'speaks versions 2 to 3' in c.until(proto.C_ERROR).text(proto.TAG_TEXT)


def test_ping_is_answered(client):
    client.ask(proto.C_PING, proto.C_PONG, chan=7)


# output credit

def test_a_slow_reader_stops_only_its_own_call(client):
    client.send(proto.C_EXEC, sh('head -c 1000000 /dev/zero') + WINDOW, chan=1)
    client.send(proto.C_EXEC, sh('head -c 1000000 /dev/zero') + WINDOW, chan=2)
    slow = []
    fast = 0
    while True:
        f = client.next()
        if f.chan == 1:
            slow.append(f)
        elif f.kind == proto.C_STDOUT:
            fast += len(f.body)
            client.send(proto.C_CREDIT, field(proto.TAG_BYTES, len(f.body)), 2)
        elif f.kind == proto.C_EXIT:
            break
    assert fast == 1000000

    def taken():
        return sum(len(f.body) for f in slow if f.kind == proto.C_STDOUT)
    while taken() < 65536:  # it may have begun late
        slow.append(client.next())
    assert is_quiet(client) and taken() == 65536
    client.send(proto.C_CREDIT, field(proto.TAG_BYTES, 1 << 63), 1)
    out, _, last = client.output(1)
    assert last.kind == proto.C_EXIT and 65536 + len(out) == 1000000


def test_stdout_and_stderr_share_the_window(client):
    client.send(proto.C_EXEC, sh('head -c 50000 /dev/zero >&2; head -c 50000 /dev/zero') + WINDOW)
    got = 0
    while got < 65536:
        f = client.until(proto.C_STDOUT, proto.C_STDERR)
        got += len(f.body)
    assert got == 65536 and is_quiet(client)
    client.send(proto.C_CREDIT, field(proto.TAG_BYTES, 65536))
    out, err, last = client.output()
    assert got + len(out) + len(err) == 100000 and last.number(proto.TAG_STATUS) == 0


def test_a_call_without_a_window_is_not_limited(client):
    client.send(proto.C_EXEC, sh('head -c 3000000 /dev/zero'))
    out, _, last = client.output()
    assert len(out) == 3000000 and last.kind == proto.C_EXIT


def test_a_dropped_call_ends_and_frees_its_channel(client):
    client.send(proto.C_EXEC, sh('echo began; sleep 1000') + WINDOW)
    client.until(proto.C_STDOUT)
    client.send(proto.C_DROP)
    client.send(proto.C_EXEC, args('echo', 'next') + WINDOW)
    out, _, last = client.output()
    assert out == b'next\n' and last.number(proto.TAG_STATUS) == 0
    before = last.number(proto.TAG_CALL) - 1
    for _ in range(200):
        row = client.list(proto.C_CALLS, proto.C_CALL, field(proto.TAG_CALL, before), chan=9)[0]
        if row.text(proto.TAG_STATE) == 'ended':
            break
        time.sleep(0.02)
    assert row.text(proto.TAG_REASON) == 'client_gone'


# the lease

def test_the_lease_is_given_in_order_and_freed_by_its_end_or_the_connection(cay, box):
    with connect(cay, box) as a, connect(cay, box) as b, connect(cay, box) as c:
        a.ask(proto.C_LEASE, proto.C_LEASED)
        b.send(proto.C_LEASE)
        b.ask(proto.C_PING, proto.C_PONG)  # its request has been read
        c.send(proto.C_LEASE)
        assert is_quiet(b)
        assert c.ask(proto.C_INFO, proto.C_STATE, chan=2).number(proto.TAG_LEASE) == os.getpid()
        a.send(proto.C_LEASE_END)
        b.until(proto.C_LEASED)
        assert is_quiet(c)
        b.close()
        c.until(proto.C_LEASED)
        assert 'asked for the lease before' in c.refused(proto.C_LEASE)


def test_a_wait_for_the_lease_ends_at_its_time_and_names_the_holder(cay, box):
    with connect(cay, box) as a, connect(cay, box) as b:
        a.ask(proto.C_LEASE, proto.C_LEASED)
        b.send(proto.C_LEASE, field(proto.TAG_TIMEOUT_MS, 50))
        refusal = b.until(proto.C_ERROR)
        assert f'process {os.getpid()} is changing it' in refusal.text(proto.TAG_TEXT)
        assert refusal.text(proto.TAG_CODE) == 'sandbox.busy'
        assert refusal.text(proto.TAG_ABOUT) == str(os.getpid())
        a.send(proto.C_LEASE_END)
        b.ask(proto.C_LEASE, proto.C_LEASED)


def test_one_who_stops_waiting_is_passed_over(cay, box):
    with connect(cay, box) as a, connect(cay, box) as b, connect(cay, box) as c:
        a.ask(proto.C_LEASE, proto.C_LEASED)
        b.send(proto.C_LEASE)
        b.send(proto.C_LEASE_END)
        b.ask(proto.C_PING, proto.C_PONG)
        c.send(proto.C_LEASE)
        c.ask(proto.C_PING, proto.C_PONG, chan=2)
        a.close()
        c.until(proto.C_LEASED)
        assert is_quiet(b)


@pytest.mark.parametrize('kind', ['C_SWITCH', 'C_POLICY', 'C_PAUSE'])
def test_what_changes_the_sandbox_as_a_whole_needs_the_lease(cay, box, kind):
    kind = getattr(proto, kind)
    with connect(cay, box) as a, connect(cay, box) as b, connect(cay, box, newest=None) as old:
        assert 'ask for the lease first' in b.refused(kind)
        a.ask(proto.C_LEASE, proto.C_LEASED)
        for other in (b, old):
            assert f'process {os.getpid()} is changing it' in other.refused(kind)


def test_a_switch_does_not_hold_the_connection(client):
    client.ask(proto.C_LEASE, proto.C_LEASED)
    client.send(proto.C_EXEC, sh('echo began; cat') + WINDOW, chan=1)
    client.until(proto.C_STDOUT)
    seal = field(proto.TAG_SEAL, '0123456789abcdef')
    client.send(proto.C_SWITCH, seal, chan=2)
    client.send(proto.C_STDIN, b'through\n', chan=1)
    client.send(proto.C_STDIN_EOF, chan=1)
    seen = []
    client.until(proto.C_SWITCHED, proto.C_ERROR, chan=2, seen=seen)
    if not any(f.kind == proto.C_EXIT for f in seen):
        client.until(proto.C_EXIT, chan=1, seen=seen)
    assert b''.join(f.body for f in seen if f.kind == proto.C_STDOUT) == b'through\n'


# detached calls

def test_a_call_started_by_one_connection_is_joined_by_another(cay, box, client):
    first = connect(cay, box)
    first.send(proto.C_EXEC, sh('echo one; read x; echo two $x >&2') + DETACHED)
    call = first.until(proto.C_STARTED).number(proto.TAG_CALL)
    assert first.until(proto.C_STDOUT).body == b'one\n'
    first.close()
    client.send(proto.C_ATTACH, field(proto.TAG_CALL, call) + WINDOW + field(proto.TAG_STDIN, 1), chan=5)
    started = client.until(proto.C_STARTED, chan=5)
    assert started.number(proto.TAG_EXISTING) == 1 and started.number(proto.TAG_DROPPED) == 0
    assert started.number(proto.TAG_STDIN) == 256 * 1024
    client.send(proto.C_STDIN, b'word\n', chan=5)
    out, err, last = client.output(5)
    assert (out, err) == (b'one\n', b'two word\n')
    assert last.number(proto.TAG_STATUS) == 0 and last.number(proto.TAG_CALL) == call
    # again, after its end, from the middle
    client.send(proto.C_ATTACH, field(proto.TAG_CALL, call) + field(proto.TAG_OFFSET, 2), chan=5)
    out, err, again = client.output(5)
    assert (out, err) == (b'e\n', b'two word\n') and again.body == last.body


def test_what_is_not_kept_is_counted(client):
    client.send(proto.C_EXEC, sh('head -c 3000000 /dev/zero; echo end') + field(proto.TAG_DETACHED, 1) +
                field(proto.TAG_WINDOW, 0) + field(proto.TAG_RETAIN, 100000))
    last = client.until(proto.C_EXIT)
    assert last.number(proto.TAG_OUT_BYTES) == 3000004
    client.send(proto.C_ATTACH, field(proto.TAG_CALL, last.number(proto.TAG_CALL)))
    dropped = client.until(proto.C_STARTED).number(proto.TAG_DROPPED)
    out, _, _ = client.output()
    assert out.endswith(b'end\n') and dropped + len(out) == 3000004
    assert 80000 < len(out) <= 100000


def test_a_viewer_that_follows_gets_everything(client):
    client.send(proto.C_EXEC, sh('head -c 3000000 /dev/zero; echo end') + DETACHED + field(proto.TAG_RETAIN, 65536))
    out, _, last = client.output(credit=True)
    assert len(out) == 3000004 and last.kind == proto.C_EXIT


def test_a_viewer_without_credit_makes_the_command_wait_until_it_leaves(cay, box, client):
    with connect(cay, box) as other:
        other.send(proto.C_EXEC, sh('head -c 3000000 /dev/zero') + DETACHED)
        call = other.until(proto.C_STARTED).number(proto.TAG_CALL)
        other.until(proto.C_STDOUT)
        time.sleep(0.3)
        row = client.list(proto.C_CALLS, proto.C_CALL, field(proto.TAG_CALL, call))[0]
        assert row.text(proto.TAG_STATE) == 'running' and row.number(proto.TAG_OUT_BYTES) < 2000000
    client.send(proto.C_ATTACH, field(proto.TAG_CALL, call) + field(proto.TAG_WINDOW, 0))
    assert client.until(proto.C_EXIT).number(proto.TAG_OUT_BYTES) == 3000000


def test_only_one_client_writes(cay, box, client):
    with connect(cay, box) as first:
        first.send(proto.C_EXEC, args('cat') + DETACHED)
        call = first.until(proto.C_STARTED).number(proto.TAG_CALL)
        join = field(proto.TAG_CALL, call) + WINDOW
        assert 'another client writes' in client.refused(proto.C_ATTACH, join + field(proto.TAG_STDIN, 1))
        client.ask(proto.C_ATTACH, proto.C_STARTED, join)
        client.send(proto.C_STDIN, b'ignored')
        client.ask(proto.C_PING, proto.C_PONG, chan=2)
        first.send(proto.C_STDIN, b'taken')
        first.send(proto.C_STDIN_EOF)
        assert client.output()[0] == b'taken' == first.output()[0]


def test_a_detached_call_is_ended_by_a_signal_of_any_client(cay, box, client):
    with connect(cay, box) as first:
        first.send(proto.C_EXEC, args('sleep', '1000') + DETACHED)
        call = first.until(proto.C_STARTED).number(proto.TAG_CALL)
    client.ask(proto.C_ATTACH, proto.C_STARTED, field(proto.TAG_CALL, call))
    client.send(proto.C_SIGNAL, field(proto.TAG_SIGNAL, 15))
    assert client.until(proto.C_EXIT).number(proto.TAG_STATUS) == 15


def test_a_plain_call_cannot_be_joined(cay, box, client):
    with connect(cay, box) as first:
        first.send(proto.C_EXEC, args('sleep', '1000') + WINDOW)
        call = first.until(proto.C_STARTED).number(proto.TAG_CALL)
        assert 'is not detached' in client.refused(proto.C_ATTACH, field(proto.TAG_CALL, call))
    assert 'there is no call 99999' in client.refused(proto.C_ATTACH, field(proto.TAG_CALL, 99999))


def test_a_command_that_does_not_exist_is_known_by_its_error(client):
    client.send(proto.C_EXEC, args('no-such-command') + DETACHED + field(proto.TAG_CALL_ID, 'bad'))
    assert 'command not found' in client.until(proto.C_ERROR).text(proto.TAG_TEXT)
    client.send(proto.C_ATTACH, field(proto.TAG_CALL_ID, 'bad'))
    assert 'command not found' in client.until(proto.C_ERROR).text(proto.TAG_TEXT)


# the same request again

def idempotent(name, script):
    return sh(script) + field(proto.TAG_CALL_ID, name) + field(proto.TAG_IDEMPOTENT, 1)


def test_a_request_with_a_known_id_runs_once(cay, box, client):
    request = idempotent('once', 'echo ran >> /tmp/once; cat /tmp/once; read x; exit 7')
    calls = set()
    for _ in range(10):
        with connect(cay, box) as c:
            c.send(proto.C_EXEC, request + WINDOW)
            calls.add(c.until(proto.C_STARTED).number(proto.TAG_CALL))
            assert c.until(proto.C_STDOUT).body == b'ran\n'
    assert len(calls) == 1
    client.send(proto.C_EXEC, request + WINDOW)
    client.send(proto.C_STDIN_EOF)
    out, _, last = client.output()
    assert out == b'ran\n' and last.number(proto.TAG_STATUS) == 7 << 8
    client.send(proto.C_EXEC, request + WINDOW)
    assert client.until(proto.C_STARTED).number(proto.TAG_EXISTING) == 1
    out, _, again = client.output()
    assert out == b'ran\n' and again.body == last.body


def test_another_request_with_a_known_id_is_refused(client):
    client.send(proto.C_EXEC, idempotent('taken', 'true'))
    client.until(proto.C_EXIT)
    assert "has the id 'taken'" in client.refused(proto.C_EXEC, idempotent('taken', 'false'))
    assert 'without an id' in client.refused(proto.C_EXEC, args('true') + field(proto.TAG_IDEMPOTENT, 1))


# lists, files, times

def test_calls_are_listed_with_their_results(client):
    client.send(proto.C_EXEC, sh('exit 3') + field(proto.TAG_CALL_ID, 'three'))
    call = client.until(proto.C_EXIT).number(proto.TAG_CALL)
    rows = client.list(proto.C_CALLS, proto.C_CALL)
    row = next(r for r in rows if r.number(proto.TAG_CALL) == call)
    assert row.text(proto.TAG_STATE) == 'ended' and row.number(proto.TAG_STATUS) == 3 << 8
    assert row.text(proto.TAG_CALL_ID) == 'three' and row.text(proto.TAG_ARG) == 'sh'
    assert abs(row.number(proto.TAG_START_MS) / 1000 - time.time()) < 60
    assert 'no such call' in client.refused(proto.C_CALLS, field(proto.TAG_CALL_ID, 'four'))


def test_no_more_calls_are_remembered_than_the_limit(fresh_cay):
    sandbox = fresh_cay('create', check=True).out.strip()
    with connect(fresh_cay, sandbox) as c:
        for _ in range(300):
            c.send(proto.C_EXEC, args('true'))
            c.until(proto.C_EXIT)
        assert len(c.list(proto.C_CALLS, proto.C_CALL)) == 128
        assert len(c.list(proto.C_CALLS, proto.C_CALL, field(proto.TAG_CALL, 100))) == 1
        assert 'no such call' in c.refused(proto.C_CALLS, field(proto.TAG_CALL, 1))
    fresh_cay('kill', sandbox, check=True)


@pytest.mark.parametrize('offset,length,text', [(0, None, b'0123456789'), (4, None, b'456789'), (4, 3, b'456'),
                                                (9, 5, b'9'), (10, 5, b''), (99, None, b''), (0, 0, b'')])
def test_a_part_of_a_file_is_read(cay, box, client, offset, length, text):
    cay('exec', box, '--', 'sh', '-c', 'printf 0123456789 > /tmp/part', check=True)
    body = field(proto.TAG_OP, proto.CALL_READ_FILE) + field(proto.TAG_PATH, '/tmp/part') + \
        field(proto.TAG_OFFSET, offset)
    if length is not None:
        body += field(proto.TAG_LENGTH, length)
    client.send(proto.C_EXEC, body)
    out, err, last = client.output()
    assert (out, err, last.number(proto.TAG_STATUS)) == (text, b'', 0)


def test_the_time_of_the_end_is_absolute(client):
    at = int(time.time() * 1000) + 3600_000
    state = client.ask(proto.C_EXTEND, proto.C_STATE, field(proto.TAG_EXPIRES_AT_MS, at))
    assert state.number(proto.TAG_EXPIRES_AT_MS) == at
    assert 3590_000 < state.number(proto.TAG_TTL_LEFT_MS) <= 3600_000
    time.sleep(0.05)
    assert client.ask(proto.C_INFO, proto.C_STATE).number(proto.TAG_EXPIRES_AT_MS) == at
    client.ask(proto.C_LEASE, proto.C_LEASED)
    assert client.ask(proto.C_PAUSE, proto.C_STATE).number(proto.TAG_EXPIRES_AT_MS) is None
    later = client.ask(proto.C_RESUME, proto.C_STATE).number(proto.TAG_EXPIRES_AT_MS)
    assert at - 10 <= later < at + 10_000
    state = client.ask(proto.C_EXTEND, proto.C_STATE, field(proto.TAG_EXPIRES_AT_MS, 0))
    assert state.number(proto.TAG_EXPIRES_AT_MS) is None is state.number(proto.TAG_TTL_LEFT_MS)


def test_the_end_is_told_on_the_channel_of_its_request(fresh_cay):
    sandbox = fresh_cay('create', check=True).out.strip()
    with connect(fresh_cay, sandbox) as c:
        c.ask(proto.C_DESTROY, proto.C_DESTROYED, chan=42)
    fresh_cay('kill', sandbox)


def test_requests_to_the_gateway_wait_for_each_other(fresh_cay):
    sandbox = fresh_cay('create', '--net', 'coding', check=True).out.strip()
    with connect(fresh_cay, sandbox) as a, connect(fresh_cay, sandbox) as b:
        for chan in range(1, 9):
            a.send(proto.C_NET, chan=chan)
            b.send(proto.C_NET, chan=chan)
        for c in (a, b):
            assert [c.until(proto.C_END, proto.C_ERROR).kind for _ in range(8)] == [proto.C_END] * 8
        policy = a.ask(proto.C_INFO, proto.C_STATE).text(proto.TAG_POLICY_HASH)
        a.ask(proto.C_LEASE, proto.C_LEASED)
        assert 'refused the policy' in a.refused(proto.C_POLICY, field(proto.TAG_NET_POLICY, b'nonsense'))
        # what the gateway did not take is not kept
        assert a.ask(proto.C_INFO, proto.C_STATE).text(proto.TAG_POLICY_HASH) == policy
    fresh_cay('kill', sandbox, check=True)

# SPDX-License-Identifier: Apache-2.0
"""cay-init --stream, without a warden: stdio and ports as frames on one socket."""

import os
import socket
import subprocess

import caylib
import proto
import pytest
import wardenlib
from wardenlib import args, field

INIT = os.path.join(os.path.dirname(os.path.abspath(caylib.CAY)), 'cay-init')
WINDOW = 256 * 1024
DIAL = 1 << 30 | 1


class Init(wardenlib.Client):
    """Pid 1 of namespaces of its own, and the other end of its stream."""

    def __init__(self):
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(30)
        self.data = b''
        root = os.open('/', os.O_PATH)
        spare = os.dup(theirs.fileno())

        def place():
            keep = [os.dup2(os.dup2(spare, 20), 3, True), os.dup2(os.dup2(root, 21), 5, True)]
            assert keep == [3, 5]

        self.process = subprocess.Popen(
            ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--kill-child', '--mount-proc', INIT, '--stream'],
            stdin=subprocess.DEVNULL, preexec_fn=place, close_fds=False)
        theirs.close()
        os.close(root)
        os.close(spare)
        assert self.next().kind == proto.HELLO

    def run(self, chan, *argv, **more):
        body = args(*argv) + field(proto.TAG_ENV, 'PATH=/usr/bin:/bin') + field(proto.TAG_CWD, '/')
        for tag, value in more.items():
            body += field(getattr(proto, 'TAG_' + tag.upper()), value)
        self.send(proto.RUN, body, chan)

    def finish(self, chan):
        """(stdout, stderr, status) of a call; gives credit for what comes."""
        out = {proto.STDOUT: b'', proto.STDERR: b''}
        while True:
            f = self.next()
            assert f, 'init has ended'
            if f.chan == chan and f.kind in out:
                out[f.kind] += f.body
                self.send(proto.CREDIT, field(proto.TAG_BYTES, len(f.body)), chan)
            elif f.chan == chan and f.kind == proto.FAILED:
                raise AssertionError(f.text(proto.TAG_TEXT))
            elif f.chan == chan and f.kind == proto.EXITED:
                return out[proto.STDOUT], out[proto.STDERR], f.number(proto.TAG_STATUS)

    def pid(self):
        children = open(f'/proc/{self.process.pid}/task/{self.process.pid}/children', encoding='utf-8').read()
        return int(children.split()[0])

    def close(self):
        super().close()
        self.process.wait(timeout=20)


@pytest.fixture
def init():
    with Init() as i:
        yield i


def test_output_and_status_come_back(init):
    init.run(1, 'sh', '-c', 'echo out; echo err >&2; exit 3')
    assert init.finish(1) == (b'out\n', b'err\n', 3 << 8)


def test_input_goes_in_until_its_end(init):
    init.run(1, 'cat')
    init.send(proto.STDIN, b'abc', 1)
    init.send(proto.STDIN_EOF, b'', 1)
    assert init.finish(1) == (b'abc', b'', 0)


def test_a_file_is_written_and_read(init, tmp_path):
    path = str(tmp_path / 'f')
    init.run(1, op=proto.CALL_WRITE_FILE, path=path)
    init.send(proto.STDIN, b'abc', 1)
    init.send(proto.STDIN_EOF, b'', 1)
    assert init.finish(1)[2] == 0
    init.run(2, op=proto.CALL_READ_FILE, path=path)
    assert init.finish(2) == (b'abc', b'', 0)


def test_much_passes_both_ways_and_little_is_kept(init):
    total, sent, taken, got, credit = 64 << 20, 0, 0, 0, WINDOW
    block = bytes(range(256)) * 128
    init.run(1, 'cat')
    most = 0
    while got < total:
        while sent < total and credit >= len(block):
            init.send(proto.STDIN, block, 1)
            sent += len(block)
            credit -= len(block)
        f = init.next()
        if f.kind == proto.STDOUT:
            assert f.body == (block + block)[got % len(block):][:len(f.body)]
            got += len(f.body)
            init.send(proto.CREDIT, field(proto.TAG_BYTES, len(f.body)), 1)
        elif f.kind == proto.CREDIT:
            credit += f.number(proto.TAG_BYTES)
            taken += f.number(proto.TAG_BYTES)
        if got % (8 << 20) < len(block):
            status = open(f'/proc/{init.pid()}/status', encoding='utf-8').read()
            most = max(most, int(status.split('VmRSS:')[1].split()[0]))
    init.send(proto.STDIN_EOF, b'', 1)
    assert init.finish(1) == (b'', b'', 0) and taken == total
    assert most < 4 * WINDOW // 1024 + 2048, most


def test_a_command_that_reads_nothing_blocks_no_other(init):
    init.run(1, 'sleep', '1000')
    for _ in range(WINDOW // 65536):
        init.send(proto.STDIN, bytes(65536), 1)
    init.run(2, 'echo', 'y')
    assert init.finish(2) == (b'y\n', b'', 0)
    init.send(proto.SIGNAL, field(proto.TAG_SIGNAL, 9), 1)
    assert init.finish(1)[2] == 9


def test_a_reader_that_waits_stops_the_command_and_no_other(init):
    init.run(1, 'sh', '-c', 'head -c 10000000 /dev/zero; echo end')
    got = 0
    init.run(2, 'echo', 'y')
    seen = []
    while not seen or seen[-1].kind != proto.EXITED:
        f = init.next()
        if f.chan == 2:
            seen.append(f)
        elif f.kind == proto.STDOUT:
            got += len(f.body)
    assert got <= WINDOW
    init.send(proto.CREDIT, field(proto.TAG_BYTES, got), 1)
    out, _, status = init.finish(1)
    assert got + len(out) == 10000004 and out.endswith(b'end\n') and status == 0


def test_more_input_than_the_window_ends_init(init):
    init.run(1, 'sleep', '1000')
    try:
        for _ in range(WINDOW // 65536 + 4):
            init.send(proto.STDIN, bytes(65536), 1)
        while init.next():
            pass
    except (BrokenPipeError, ConnectionResetError):
        pass
    assert init.process.wait(timeout=20) != 0


def test_who_is_left_behind_does_not_hold_up_the_end(init):
    init.run(1, 'sh', '-c', 'sleep 1000 & echo hi')
    assert init.finish(1) == (b'hi\n', b'', 0)
    init.run(2, 'true')
    assert init.finish(2)[2] == 0


def test_a_terminal_has_its_size(init):
    init.run(1, 'sh', '-c', 'read x; stty size; tty', tty=1)
    init.send(proto.RESIZE, field(proto.TAG_ROWS, 31) + field(proto.TAG_COLS, 97), 1)
    init.send(proto.STDIN, b'\n', 1)
    out, _, status = init.finish(1)
    assert b'31 97' in out and b'/dev/pts/' in out and status == 0


def test_a_port_is_a_channel(init):
    with socket.create_server(('127.0.0.1', 0)) as server:
        init.send(proto.DIAL, field(proto.TAG_PORT, server.getsockname()[1]), DIAL)
        f = init.until(proto.DIALED)
        assert f.chan == DIAL and f.number(proto.TAG_ERRNO) == 0
        peer, _ = server.accept()
        with peer:
            init.send(proto.STDIN, b'ask', DIAL)
            assert peer.recv(10) == b'ask'
            peer.sendall(b'answer')
            assert init.until(proto.STDOUT).body == b'answer'
            init.send(proto.STDIN_EOF, b'', DIAL)
            assert peer.recv(10) == b''
    assert init.until(proto.END).chan == DIAL


def test_a_port_where_nobody_listens(init):
    with socket.create_server(('127.0.0.1', 0)) as server:
        port = server.getsockname()[1]
    init.send(proto.DIAL, field(proto.TAG_PORT, port), DIAL)
    f = init.until(proto.DIALED)
    # The kernel may refuse a moment later: then the connection ends at once.
    assert f.number(proto.TAG_ERRNO) != 0 or init.until(proto.STDOUT, proto.END).kind == proto.END

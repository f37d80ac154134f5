# SPDX-License-Identifier: Apache-2.0
"""A client of a warden in Python: frames as docs/protocol.md has them, and nothing of ours below."""

import socket
import struct
from typing import NamedTuple

import caylib
import proto


def field(tag, value):
    if isinstance(value, str):
        value = value.encode()
    value = struct.pack('<Q', value) if isinstance(value, int) else value
    return struct.pack('<HI', tag, len(value)) + value


def frame(kind, body=b'', chan=1, fds=0):
    return struct.pack('<IBBHI', len(body), kind, fds, 0, chan) + body


def args(*argv):
    return b''.join(field(proto.TAG_ARG, a) for a in argv)


class Frame(NamedTuple):
    kind: int
    chan: int
    body: bytes

    def fields(self):
        at = 0
        while at < len(self.body):
            tag, n = struct.unpack_from('<HI', self.body, at)
            yield tag, self.body[at + 6:at + 6 + n]
            at += 6 + n

    def number(self, tag, otherwise=None):
        for t, value in self.fields():
            if t == tag:
                return struct.unpack('<Q', value)[0]
        return otherwise

    def text(self, tag):
        return next((value.decode() for t, value in self.fields() if t == tag), None)


class Client:
    """One connection. `oldest` and `newest`: what it says hello with."""

    def __init__(self, path, oldest=proto.PROTO_CLIENT_OLDEST, newest=proto.PROTO_CLIENT_VERSION):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(20 * caylib.SLOWER)
        self.sock.connect(path)
        self.data = b''
        body = field(proto.TAG_VERSION, oldest)
        if newest is not None:
            body += field(proto.TAG_NEWEST, newest)
        self.send(proto.C_HELLO, body, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, kind, body=b'', chan=1):
        self.sock.sendall(frame(kind, body, chan))

    def next(self):
        """The next frame, or None at the end."""
        while len(self.data) < 12 or len(self.data) < 12 + struct.unpack('<I', self.data[:4])[0]:
            part = self.sock.recv(1 << 20)
            if not part:
                return None
            self.data += part
        n, kind, _, _, chan = struct.unpack('<IBBHI', self.data[:12])
        body, self.data = self.data[12:12 + n], self.data[12 + n:]
        return Frame(kind, chan, body)

    def until(self, *kinds, chan=None, seen=None):
        """Frames until one of these; the others of that channel go to `seen`."""
        while True:
            f = self.next()
            assert f, 'the warden closed the connection'
            if f.kind == proto.C_HELLO:
                self.version = f.number(proto.TAG_VERSION)
            elif f.kind in kinds and chan in (None, f.chan):
                return f
            elif seen is not None:
                seen.append(f)

    def ask(self, kind, answer, body=b'', chan=1):
        self.send(kind, body, chan)
        f = self.until(answer, proto.C_ERROR, chan=chan)
        assert f.kind == answer, f.text(proto.TAG_TEXT)
        return f

    def refused(self, kind, body=b'', chan=1):
        """The message of the refusal."""
        self.send(kind, body, chan)
        return self.until(proto.C_ERROR, chan=chan).text(proto.TAG_TEXT)

    def list(self, kind, row, body=b'', chan=1):
        rows = []
        self.send(kind, body, chan)
        f = self.until(proto.C_END, proto.C_ERROR, chan=chan, seen=rows)
        assert f.kind == proto.C_END, f.text(proto.TAG_TEXT)
        return [r for r in rows if r.kind == row and r.chan == chan]

    def output(self, chan=1, credit=False):
        """All output of a call until its last frame: bytes of stdout, of stderr, that frame."""
        out, err = b'', b''
        while True:
            f = self.until(proto.C_STDOUT, proto.C_STDERR, proto.C_EXIT, proto.C_ERROR, chan=chan)
            if f.kind in (proto.C_EXIT, proto.C_ERROR):
                return out, err, f
            out, err = (out + f.body, err) if f.kind == proto.C_STDOUT else (out, err + f.body)
            if credit:
                self.send(proto.C_CREDIT, field(proto.TAG_BYTES, len(f.body)), chan)


def connect(cay, sandbox, **kw):
    return Client(f'{cay.state}/sandboxes/{sandbox}/sock', **kw)

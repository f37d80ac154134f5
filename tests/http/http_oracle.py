#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: http_oracle.py JUDGE

Our HTTP/1.1 parser against h11: nothing that h11 refuses may be taken, and what both take
must be the same message. TAP, one line per group of messages. We refuse more than h11 does;
STRICTER names why, and each of these must really occur.
"""

import itertools
import random
import struct
import subprocess
import sys

import h11

def headers_of(message):
    head = message.split(b'\r\n\r\n')[0]
    return [line.split(b':', 1) for line in head.split(b'\r\n')[1:] if b':' in line]


def host_is_odd(message):
    for name, value in headers_of(message):
        if name.lower() == b'host':
            value = value.strip()
            host = value.rsplit(b':', 1)[0] if value.rsplit(b':', 1)[-1].isdigit() else value
            if host not in (b'a.test', b'A.TEST', b'[::1]', b'10.0.0.1') or value.endswith((b':0', b':65536', b':080')):
                return True
    words = message.split(b'\r\n')[0].split(b' ')
    return len(words) > 1 and b'://' in words[1] and words[1] != b'http://a.test/'


def target_is_odd(message):
    words = message.split(b'\r\n')[0].split(b' ')
    good = (b'http://a.test/', b'a.test:443', b'*')
    return len(words) > 1 and words[1] not in good and not (words[1].startswith(b'/') and b'#' not in words[1])


# What h11 takes and we refuse on purpose.
STRICTER = {
    'control characters in values': lambda m: any(c in m for c in b'\x01\x0b\x7f\x1b\x08'),
    'bare LF': lambda m: b'\n' in m.replace(b'\r\n', b''),
    'heads above 16 KiB': lambda m: len(m.split(b'\r\n\r\n')[0]) > 16380,
    'obs-fold': lambda m: b'\r\n ' in m or b'\r\n\t' in m,
    'Content-Length with Transfer-Encoding': lambda m: b'content-length' in m.lower()
    and b'transfer-encoding' in m.lower(),
    'Content-Length twice or as a list': lambda m: m.lower().count(b'content-length') > 1
    or b'5, 5' in m,
    'framing with an underscore': lambda m: b'content_length' in m.lower() or b'transfer_encoding' in m.lower(),
    'Transfer-Encoding in HTTP/1.0': lambda m: b'HTTP/1.0' in m and b'transfer-encoding' in m.lower(),
    'hosts that are no hosts': host_is_odd,
    'targets that are none': target_is_odd,
    'Expect other than 100-continue': lambda m: b'expect:' in m.lower() and b'100-continue' not in m.lower(),
    'CONNECT with a body': lambda m: m.startswith(b'CONNECT') and b'content-length' in m.lower(),
    'blanks after a chunk size': lambda m: b'5 \r\n' in m or b'5\t\r\n' in m or b'0 \r\n' in m,
    'trailers that are no headers': lambda m: b'0\r\n' in m and b'chunked' in m.lower(),
    'versions other than 1.0 and 1.1': lambda m: not (b' HTTP/1.1\r' in m or b' HTTP/1.0\r' in m
                                                     or m.startswith((b'HTTP/1.1 ', b'HTTP/1.0 '))),
    'chunk sizes beyond 15 digits': lambda m: b'0000000000000005' in m,
    'status above 599': lambda m: m.startswith((b'HTTP/1.1 6', b'HTTP/1.1 7', b'HTTP/1.1 9')),
}


def h11_says(request, message):
    """('refuse',), ('more',) or ('take', what, headers, body, left)"""
    conn = h11.Connection(h11.SERVER if request else h11.CLIENT, max_incomplete_event_size=16384)
    if not request:
        conn.send(h11.Request(method='GET', target='/', headers=[('Host', 'a.test')]))
        conn.send(h11.EndOfMessage())
    body, head = b'', None
    try:
        conn.receive_data(message)
        if not request:
            conn.receive_data(b'')
        while True:
            event = conn.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return ('more',)
            if isinstance(event, (h11.Request, h11.Response)):
                head = event
            elif isinstance(event, h11.InformationalResponse):
                return ('take', str(event.status_code), len(event.headers), b'', None)
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                break
            elif isinstance(event, h11.ConnectionClosed):
                return ('more',)
        left = len(conn.trailing_data[0])
    except h11.RemoteProtocolError:
        return ('refuse',)
    what = head.target.decode('latin1') if request else str(head.status_code)
    return ('take', what, len(head.headers), body, left)


def ours_say(judge, cases):
    stream = b''.join((b'Q' if request else b'S') + struct.pack('<I', len(m)) + m for request, m in cases)
    out = subprocess.run([judge], input=stream, stdout=subprocess.PIPE, check=True).stdout.decode('latin1')
    for line in out.splitlines():
        words = line.split(' ')
        if words[0] == 'take':
            body = b'' if words[3] == '-' else bytes.fromhex(words[3])
            yield ('take', words[1], int(words[2]), body, int(words[4]))
        else:
            yield (words[0],)


# -- the messages

LINES = [b'GET / HTTP/1.1', b'GET / HTTP/1.0', b'POST /x?y=z HTTP/1.1', b'OPTIONS * HTTP/1.1',
         b'GET http://a.test/ HTTP/1.1', b'GET http://other.test/ HTTP/1.1', b'CONNECT a.test:443 HTTP/1.1',
         b'GET / HTTP/1.2', b'GET / HTTP/2.0', b'GET / HTTP/1.1 ', b' GET / HTTP/1.1', b'GET  / HTTP/1.1',
         b'GET /  HTTP/1.1', b'GET\t/\tHTTP/1.1', b'GET /', b'GET', b'', b'GET / http/1.1', b'GET /a b HTTP/1.1',
         b'G@T / HTTP/1.1', b'GET / HTTP/1.', b'GET / HTTP/11', b'GET /\x00 HTTP/1.1', b'GET /\x7f HTTP/1.1',
         b'GET /\xe9 HTTP/1.1', b'GET /#x HTTP/1.1', b'get / HTTP/1.1', b'PRI * HTTP/2.0', b'GET / HTTP/1.1\r',
         b'GET / HTTP/1.1\n', b'\r\nGET / HTTP/1.1', b'GET / XTTP/1.1', b'(GET) / HTTP/1.1', b'GET / HTTP/-1.1']

HOSTS = [b'Host: a.test', b'host:a.test', b'Host: a.test:80', b'Host:\ta.test\t', b'', b'Host: a.test\r\nHost: a.test',
         b'Host: a.test\r\nHost: b.test', b'Host : a.test', b'Host\t: a.test', b' Host: a.test', b'Host', b'Host:',
         b'Host: a.test, b.test', b'Host: u@a.test', b'Host: a b', b'Ho st: a.test', b'Host: a.test\x00',
         b'Host: a.test:0', b'Host: a.test:65536', b'Host: [::1]', b'Host: 10.0.0.1', b'Host: 0x7f.1', b'Host: A.TEST']

EXTRA = [b'', b'X: y', b'X:', b'X: \t y \t ', b'X: a\r\n b', b'X: a\r\n\tb', b'X: a\rb', b'X: a\nb', b'X: a\nY: b',
         b'X: a\x00b', b'X: a\x01b', b'X: a\x0bb', b'X: \xe9', b'X\x00: a', b'X\xe9: a', b': a', b'X(: a', b'X a',
         b'"X": a', b'X: a\x7f', b'Expect: 100-continue', b'Expect: x', b'X[]: y', b'X: \x1b[0m', b'X{}: y', b'\x0bX: y']

FRAMES = [(b'', b''), (b'Content-Length: 5', b'hello'), (b'Content-Length: 5', b'hell'), (b'Content-Length: 0', b''),
          (b'Content-Length: 5', b'helloGET / HTTP/1.1\r\n\r\n'), (b'Content-Length: +5', b'hello'),
          (b'Content-Length: -5', b'hello'), (b'Content-Length: 5, 5', b'hello'), (b'Content-Length: 5,6', b'hello!'),
          (b'Content-Length: 5\r\nContent-Length: 5', b'hello'), (b'Content-Length: 5\r\nContent-Length: 6', b'hello!'),
          (b'Content-Length: 0x5', b'hello'), (b'Content-Length: 5 5', b'hello'), (b'Content-Length:', b''),
          (b'Content-Length: five', b'hello'), (b'Content-Length : 5', b'hello'), (b'Content-Length\x00: 5', b'hello'),
          (b'Content_Length: 5', b'hello'), (b'Content-Length: 5\r\n 5', b'hello'), (b'Content-Length: 5.0', b'hello'),
          (b'Content-Length: 5e0', b'hello'), (b'Content-Length: \xd9\xa5', b'hello'), (b'Content-Length: 5;', b'hello'),
          (b'Content-Length: 99999999999999999999', b'hello'), (b'Content-Length: 05', b'hello'),
          (b'Content-Length: 5\r\nTransfer-Encoding: chunked', b'5\r\nhello\r\n0\r\n\r\n'),
          (b'Transfer-Encoding: chunked\r\nContent-Length: 5', b'0\r\n\r\n'),
          (b'Transfer-Encoding: identity', b''), (b'Transfer-Encoding: gzip, chunked', b'0\r\n\r\n'),
          (b'Transfer-Encoding: chunked, identity', b'0\r\n\r\n'), (b'Transfer-Encoding: xchunked', b'0\r\n\r\n'),
          (b'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked', b'0\r\n\r\n'),
          (b'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity', b'0\r\n\r\n'),
          (b'Transfer-Encoding : chunked', b'0\r\n\r\n'), (b'Transfer-Encoding: \x0bchunked', b'0\r\n\r\n'),
          (b'Transfer-Encoding:\r\n chunked', b'0\r\n\r\n'), (b'Transfer-Encoding: "chunked"', b'0\r\n\r\n'),
          (b'Transfer-Encoding: chunked;q=1', b'0\r\n\r\n'), (b'Transfer-Encoding:', b'0\r\n\r\n')]

CHUNKS = [b'5\r\nhello\r\n0\r\n\r\n', b'5\r\nhello\r\n0\r\nX: y\r\n\r\n', b'5;a=b\r\nhello\r\n0\r\n\r\n',
          b'5\r\nhello\r\n', b'5\r\nhello', b'0\r\n\r\nGET /', b'5\nhello\n0\n\n', b'5\r\nhello\n0\r\n\r\n',
          b'5 \r\nhello\r\n0\r\n\r\n', b'5\t\r\nhello\r\n0\r\n\r\n', b' 5\r\nhello\r\n0\r\n\r\n',
          b'+5\r\nhello\r\n0\r\n\r\n', b'-5\r\nhello\r\n0\r\n\r\n', b'0x5\r\nhello\r\n0\r\n\r\n',
          b'g\r\nhello\r\n0\r\n\r\n', b'\r\nhello\r\n0\r\n\r\n', b'5\r\nhelloX\r\n0\r\n\r\n',
          b'5\r\nhell\r\n0\r\n\r\n', b'5\rhello\r\n0\r\n\r\n', b'5;\x00\r\nhello\r\n0\r\n\r\n',
          b'5;a\nb\r\nhello\r\n0\r\n\r\n', b'00005\r\nhello\r\n0\r\n\r\n', b'A\r\n0123456789\r\n0\r\n\r\n',
          b'a\r\n0123456789\r\n0\r\n\r\n', b'5_0\r\nhello\r\n0\r\n\r\n', b'0000000000000005\r\nhello\r\n0\r\n\r\n',
          b'FFFFFFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n', b'5,\r\nhello\r\n0\r\n\r\n', b'5.0\r\nhello\r\n0\r\n\r\n',
          b'0\r\nX\r\n\r\n', b'0\r\n X: y\r\n\r\n', b'0\r\nX : y\r\n\r\n', b'0\r\nX: y\n\r\n', b'0\r\nX: \x00\r\n\r\n',
          b'0\r\n\n', b'0\r\nX: y\r\n z\r\n\r\n', b'0 \r\n\r\n', b'0;x\r\n\r\n', b'00\r\n\r\n']

STATUS = [b'HTTP/1.1 200 OK', b'HTTP/1.1 200 ', b'HTTP/1.1 200', b'HTTP/1.0 200 OK', b'HTTP/1.1 204 No Content',
          b'HTTP/1.1 304 Not Modified', b'HTTP/1.1 100 Continue', b'HTTP/1.1 404 Not Found', b'HTTP/1.1 20 OK',
          b'HTTP/1.1 2000 OK', b'HTTP/1.1  200 OK', b'HTTP/1.1 200  OK', b'HTTP/2.0 200 OK', b'HTTP/1.1 abc OK',
          b'HTTP/1.1 099 X', b'HTTP/1.1 600 X', b'HTTP/1.1 999 X', b'HTTP 200 OK', b'ICY 200 OK', b'HTTP/1.1 200 O\x00K',
          b'HTTP/1.1 200 O\x01K', b' HTTP/1.1 200 OK', b'HTTP/1.1\t200\tOK', b'HTTP/1.1 -20 OK', b'http/1.1 200 OK']


def message(*lines, body=b''):
    return b'\r\n'.join(line for line in lines if line is not None) + b'\r\n\r\n' + body


def some(lines):
    return [line for line in lines if line]


def requests():
    yield 'request lines', [message(line, b'Host: a.test') for line in LINES]
    yield 'hosts', [message(b'GET / HTTP/1.1', *some([host])) for host in HOSTS]
    yield 'hosts in 1.0', [message(b'GET / HTTP/1.0', *some([host])) for host in HOSTS]
    yield 'headers', [message(b'GET / HTTP/1.1', b'Host: a.test', *some([x])) for x in EXTRA]
    yield 'headers before Host', [message(b'GET / HTTP/1.1', *some([x]), b'Host: a.test') for x in EXTRA]
    yield 'framing', [message(line, b'Host: a.test', *some([f]), body=body) for f, body in FRAMES
                      for line in (b'POST / HTTP/1.1', b'GET / HTTP/1.1', b'POST / HTTP/1.0', b'CONNECT a.test:443 HTTP/1.1')]
    yield 'chunks', [message(b'POST / HTTP/1.1', b'Host: a.test', b'Transfer-Encoding: chunked', body=c) for c in CHUNKS]
    yield 'bare LF', [m.replace(b'\r\n', b'\n') for m in (message(b'GET / HTTP/1.1', b'Host: a.test'),
                                                          message(b'POST / HTTP/1.1', b'Host: a.test', FRAMES[1][0], body=b'hello'))]
    yield 'pairs', [message(b'POST / HTTP/1.1', b'Host: a.test', *some([x]), *some([f]), body=body)
                    for (f, body), x in itertools.product(FRAMES[::3], EXTRA[::4])]
    yield 'one byte changed', mutations(message(b'POST /a HTTP/1.1', b'Host: a.test', b'Content-Length: 5', body=b'hello'))
    yield 'one byte of chunks changed', mutations(message(b'POST / HTTP/1.1', b'Host: a.test', b'Transfer-Encoding: chunked',
                                                          body=CHUNKS[1]))
    yield 'long ones', [message(b'GET / HTTP/1.1', b'Host: a.test', b'X: ' + b'y' * n) for n in (1000, 15000, 17000, 70000)]


def responses():
    yield 'status lines', [message(s, body=b'') for s in STATUS]
    yield 'headers of responses', [message(b'HTTP/1.1 200 OK', *some([x])) for x in EXTRA]
    yield 'framing of responses', [message(b'HTTP/1.1 200 OK', *some([f]), body=body) for f, body in FRAMES]
    yield 'chunks of responses', [message(b'HTTP/1.1 200 OK', b'Transfer-Encoding: chunked', body=c) for c in CHUNKS]


def mutations(base):
    rng = random.Random(5)
    bytes_ = [b'\x00', b'\t', b'\n', b'\r', b' ', b':', b',', b';', b'0', b'A', b'\x7f', b'\xff', b'']
    out = [base[:i] + b + base[i + 1:] for i in range(len(base)) for b in rng.sample(bytes_, 4)]
    out += [base[:i] + b + base[i:] for i in range(len(base)) for b in rng.sample(bytes_, 2)]
    return out


def excuse(m):
    return [name for name, matches in STRICTER.items() if matches(m)]


def compare(request, m, theirs, ours):
    """What is wrong, or None."""
    if theirs[0] == 'refuse' and ours[0] == 'take':
        return 'h11 refuses it, we take it'
    if theirs[0] == 'more' and ours[0] == 'take' and not (request and m.startswith(b'CONNECT')):
        return 'h11 wants more, we take it'
    if theirs[0] == 'take' and ours[0] == 'take':
        same = theirs[1:4] == ours[1:4] and (theirs[4] is None or not request or theirs[4] == ours[4])
        return None if same else f'h11 reads {theirs[1:]}, we read {ours[1:]}'
    if theirs[0] == 'take' and ours[0] != 'take' and not excuse(m):
        return 'h11 takes it, we do not, and no reason is known'
    return None


def main(judge):
    groups = [(True, *g) for g in requests()] + [(False, *g) for g in responses()]
    print(f'1..{len(groups) + 1}')
    used, total, taken, refused, failed = set(), 0, 0, 0, 0
    for number, (request, name, messages) in enumerate(groups, 1):
        wrong = []
        for m, ours in zip(messages, ours_say(judge, [(request, m) for m in messages]), strict=True):
            theirs = h11_says(request, m)
            why = compare(request, m, theirs, ours)
            if why:
                wrong.append((m, why))
            if theirs[0] == 'take' and ours[0] != 'take':
                used.update(excuse(m))
            taken += ours[0] == 'take'
            refused += theirs[0] == 'refuse'
        total += len(messages)
        for m, why in wrong[:10]:
            print(f'# {m[:200]!r}: {why}')
        failed += bool(wrong)
        print(f'{"not ok" if wrong else "ok"} {number} - {name} ({len(messages)})')
    idle = sorted(set(STRICTER) - used)
    print(f'# {total} messages: {taken} taken by us, {refused} refused by h11')
    good = not idle and taken > 50 and refused > 300
    print(f'{"ok" if good else "not ok"} {len(groups) + 1} - every difference is real' + (f' # unused: {idle}' if idle else ''))
    return 1 if failed or not good else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))

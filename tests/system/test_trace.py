# SPDX-License-Identifier: Apache-2.0
"""The trace: what is in it, whose it is, and that nobody changed it."""

import hashlib
import json
import os
import re
import subprocess
import time

import pytest

import caylib


def kinds(events):
    return [e['kind'] for e in events]


def files(events):
    return {(e['kind'], e['path']) for e in events if e['kind'].startswith('file.')}


def execs(events):
    return [e['argv'] for e in events if e['kind'] == 'process.exec']


def path_of(cay, ref):
    for name in (f'sandboxes/{ref}/trace.jsonl', f'ended/{ref}.jsonl'):
        if os.path.exists(os.path.join(cay.state, name)):
            return os.path.join(cay.state, name)
    raise AssertionError(f'no trace of {ref}')


def test_a_call_leaves_its_story(cay, box):
    r = cay('exec', '--call-id', 'step-1', '--cwd', '/usr', box, '--', 'sh', '-c', 'echo out; echo error >&2; /bin/true; ls . > /tmp/f; exit 3')
    assert r.code == 3
    events = cay.events(box, '--call', '1')
    start, end = [next(e for e in events if e['kind'] == k) for k in ('call.start', 'call.exit')]
    assert start['argv'][:2] == ['sh', '-c'] and start['cwd'] == '/usr' and start['call_id'] == 'step-1'
    assert start['user'] in ('1000', 'user')
    assert (end['code'], end['reason'], end['out_bytes'], end['err_bytes']) == (3, 'exit', 4, 6)
    assert 0 < end['duration_us'] < 10_000_000
    assert execs(events) == [start['argv'], ['/bin/true'], ['ls', '.']]
    assert [e['path'] for e in events if e['kind'] == 'process.exec'][1:] == ['/usr/bin/true', '/usr/bin/ls']
    assert ('file.create', '/tmp/f') in files(events)
    exits = {e['pid']: e['code'] for e in events if e['kind'] == 'process.exit'}
    shell = next(e['pid'] for e in events if e['kind'] == 'process.exec')
    assert exits[shell] == 3 and sorted(exits.values()) == [0, 0, 3]
    assert all(e['call'] == 1 for e in events)


def test_the_life_of_a_sandbox_is_in_it(cay):
    ref = cay.create('--name', 'life', '--label', 'a=b')
    cay('exec', ref, '--', 'true', check=True)
    cay('kill', ref, check=True)
    events = cay.events(ref)
    assert kinds(events)[:2] == ['sandbox.create', 'sandbox.ready'] and kinds(events)[-1] == 'sandbox.end'
    assert events[0]['name'] == 'life' and events[0]['mode'] == ('rootful' if caylib.ROOTFUL else 'rootless')
    assert re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z', events[0]['time'])


def test_a_signal_and_a_timeout_are_told(cay, box):
    cay('exec', box, '--', 'sh', '-c', 'kill -9 $$')
    cay('exec', '--timeout', '200ms', box, '--', 'sleep', '60')
    ends = [e for e in cay.events(box) if e['kind'] == 'call.exit']
    assert ends[0]['reason'] == 'signal' and ends[0]['signal'] in (9, 'KILL', 'SIGKILL'), ends
    assert ends[1]['reason'] == 'timeout', ends


def test_a_command_that_does_not_exist_is_in_it(cay, box):
    cay('exec', box, '--', 'no-such-command')
    events = cay.events(box)
    assert any(e['kind'] == 'call.start' and e['argv'] == ['no-such-command'] for e in events)
    assert kinds(events)[-1] in ('call.exit', 'call.failed'), events[-1]


def test_argv_that_is_no_text_is_kept(cay, box):
    cay('exec', box, '--', 'echo', b'\xff\xfe', 'ü\n\x1b')
    start = next(e for e in cay.events(box) if e['kind'] == 'call.start')
    assert start['argv'] == ['echo', {'b64': '//4='}, 'ü\n\x1b']


def test_parents_exist_and_precede(cay, box):
    cay('exec', box, '--', 'sh', '-c', 'sh -c "sh -c /bin/true; :"; touch /tmp/x')
    events = cay.events(box)
    by_seq = {e['seq']: e for e in events}
    assert [e['seq'] for e in events] == list(range(1, len(events) + 1))
    for e in events:
        if 'parent' in e:
            assert e['parent'] in by_seq and e['parent'] < e['seq'], e
        if e['kind'].startswith(('process.', 'call.')) and e['kind'] != 'call.start':
            assert 'parent' in e, e
    pids = {e['pid'] for e in events if e['kind'] == 'process.exec'}
    assert {e['ppid'] for e in events if e['kind'] == 'process.exec'} - pids <= {1}


def test_processes_that_a_call_left_still_belong_to_it(cay, box):
    cay('exec', box, '--', 'sh', '-c', 'setsid sh -c "sleep 0.3; touch /tmp/late; /bin/true" > /dev/null 2>&1 &', check=True)
    cay('exec', box, '--', 'sleep', '0.8', check=True)
    events = cay.events(box)
    assert {e['call'] for e in events if e['kind'] == 'process.exec' and e['argv'][0] in ('touch', '/bin/true')} == {1}
    late = [e for e in events if e.get('path') == '/tmp/late']
    assert len(late) == 1
    assert late[0].get('call') == 1 or 1 in late[0].get('calls', []), late


def test_overlapping_calls_are_not_mixed_up(cay, box):
    with cay.popen('exec', box, '--', 'sh', '-c', 'echo r; read x; touch /tmp/one; /bin/echo one', stdin=subprocess.PIPE) as p:
        p.read_until(b'r\n')
        cay('exec', box, '--', 'sh', '-c', 'touch /tmp/two; /bin/echo two', check=True)
        p.communicate(b'\n', timeout=20)
    events = cay.events(box)
    assert {(e['call'], e['argv'][-1]) for e in events if e['kind'] == 'process.exec' and e['argv'][0] in ('touch', '/bin/echo')} == \
        {(1, '/tmp/one'), (1, 'one'), (2, '/tmp/two'), (2, 'two')}
    for path, call in (('/tmp/one', 1), ('/tmp/two', 2)):
        found = [e for e in events if e.get('path') == path and e['kind'] == 'file.create']
        assert len(found) == 1, found
        e = found[0]
        if e.get('certain', True):
            assert e['call'] == call, e
        else:
            assert set(e['calls']) == {1, 2}, e


def test_a_call_beside_an_idle_one_is_certain(cay, box):
    """Where calls have groups. The idle call may still be busy for a moment, so several tries."""
    with cay.popen('exec', box, '--', 'sh', '-c', 'echo r; read x', stdin=subprocess.PIPE) as p:
        p.read_until(b'r\n')
        for i in range(60):
            cay('exec', box, '--', 'sh', '-c', f'echo 1 > /tmp/f{i}', check=True)
            e = next(e for e in cay.events(box) if e.get('path') == f'/tmp/f{i}')
            assert e.get('call', 0) in (0, i + 2), e
            assert ('known_by' in e) == e.get('certain', True), e
            if e.get('known_by') == 'idle':
                break
        assert e.get('known_by') == 'idle' or not caylib.GROUPS, e
        if caylib.GROUPS:
            cay('exec', box, '--', 'rm', f'/tmp/f{i}', check=True)
            gone = next(e for e in cay.events(box) if e['kind'] == 'file.delete' and e['path'] == f'/tmp/f{i}')
            assert gone.get('call', 0) in (0, i + 3), gone
        p.communicate(b'\n', timeout=20)


def test_of_two_busy_calls_neither_is_certain(cay, box):
    """On a loaded machine the first call may get no processor time for a while, so several tries."""
    busy = 'echo r; until [ -e /tmp/stop ]; do :; done'
    with cay.popen('exec', box, '--', 'sh', '-c', busy) as p:
        p.read_until(b'r\n')
        for i in range(10):
            cay('exec', box, '--', 'sh', '-c', f'echo 1 > /tmp/f{i}', check=True)
            e = next(e for e in cay.events(box) if e.get('path') == f'/tmp/f{i}')
            if not e.get('certain', True):
                break
            assert (e['call'], e['known_by']) == (i + 2, 'idle'), e
        assert e['certain'] is False and 'known_by' not in e and e['calls'] == [1, i + 2], e
        cay('exec', box, '--', 'touch', '/tmp/stop', check=True)
        p.communicate(timeout=60)


def check_many(events, switch):
    """3,000 files of call 1, each once and in order, whatever happened meanwhile."""
    found = [e for e in events if e.get('path', '').startswith('/tmp/t/')]
    names = [e['path'] for e in found]
    assert names == sorted(names) and len(set(names)) == len(names) == 3000
    assert {e['call'] for e in found} == {1} and {e['known_by'] for e in found} == {'time'}
    at = next(e['seq'] for e in events if e['kind'] == switch)
    assert {e.get('before') for e in found if e['seq'] > at} <= {at}
    assert {e.get('before') for e in found if e['seq'] < at} <= {None}
    after = next(e for e in events if e.get('path') == '/tmp/after')
    assert after['seq'] > found[-1]['seq'] and 'before' not in after and after['call'] == 2


MANY = 'mkdir /tmp/t; cd /tmp/t; seq 3000 | xargs touch'


def test_a_snapshot_does_not_wait_for_many_events(cay, box):
    cay('exec', box, '--', 'sh', '-c', MANY, check=True)
    snap = cay('snapshot', box, check=True).out.strip()
    cay('exec', box, '--', 'touch', '/tmp/after', check=True)
    check_many(cay.events(box), 'sandbox.snapshot')
    assert cay('trace', 'verify', box).code == 0
    cay('kill', box, check=True)
    cay('snapshot', 'rm', snap, check=True)


def test_a_rollback_does_not_lose_the_events_of_what_it_drops(cay, box):
    snap = cay('snapshot', box, check=True).out.strip()
    cay('exec', box, '--', 'sh', '-c', MANY, check=True)
    cay('rollback', box, check=True)
    cay('exec', box, '--', 'sh', '-c', 'test ! -e /tmp/t && touch /tmp/after', check=True)
    check_many(cay.events(box), 'sandbox.rollback')
    cay('kill', box, check=True)
    cay('snapshot', 'rm', snap, check=True)


def test_the_end_comes_after_all_file_events(cay, box):
    cay('exec', box, '--', 'sh', '-c', MANY, check=True)
    cay('kill', box, check=True)
    events = cay.events(box)
    assert len([e for e in events if e.get('path', '').startswith('/tmp/t/')]) == 3000
    assert events[-1]['kind'] == 'sandbox.end'


LOWER = '/etc/cay-test-lower'


def test_files_of_the_upper(cay, box):
    cay('exec', box, '--', 'sh', '-c', 'cd /tmp; mkdir d; echo 1 > d/f; echo 1 > g; ln -s d l; echo 1 > gone; rm gone', check=True)
    cay('exec', box, '--', 'sh', '-c', 'cd /tmp; echo 22 > d/f; mv g h; rm l; chmod 600 h', check=True)
    one, two = files(cay.events(box, '--call', '1')), files(cay.events(box, '--call', '2'))
    assert {('file.create', '/tmp/d'), ('file.create', '/tmp/d/f'), ('file.create', '/tmp/g'), ('file.create', '/tmp/l')} <= one
    assert ('file.change', '/tmp/d/f') in two and ('file.delete', '/tmp/l') in two, two
    moved = [e for e in cay.events(box, '--call', '2') if e['kind'] == 'file.rename']
    assert moved and moved[0]['path'] == '/tmp/h' and moved[0]['from'] == '/tmp/g', two


def test_files_of_the_lower(cay, tmp_path):
    os.chmod(tmp_path, 0o755)
    work = tmp_path / 'w'
    (work / 'd/e').mkdir(parents=True)
    for name in ('changed', 'removed', 'moved', 'd/in', 'd/e/deep', 'untouched'):
        (work / name).write_text('old\n')
    ref = cay.create('--dir', f'{work}:/w')
    try:
        cay('exec', ref, '--', 'sh', '-c', 'echo new > changed; rm removed; mv moved elsewhere; rm -r d; cat untouched > /dev/null', check=True)
        found = files(cay.events(ref))
        assert {('file.change', '/w/changed'), ('file.delete', '/w/removed')} <= found, found
        assert ('file.rename', '/w/elsewhere') in found or {('file.create', '/w/elsewhere'), ('file.delete', '/w/moved')} <= found, found
        assert ('file.delete', '/w/d') in found, found
        assert not [p for _, p in found if 'untouched' in p]
    finally:
        cay('kill', ref, check=True)


def test_filters_by_call_and_kind(cay, box):
    cay('exec', '--call-id', 'alpha', box, '--', 'touch', '/tmp/a', check=True)
    cay('exec', '--call-id', 'beta', box, '--', 'touch', '/tmp/b', check=True)
    assert {e['call'] for e in cay.events(box, '--call', '2')} == {2}
    assert cay.events(box, '--call', 'beta') == cay.events(box, '--call', '2')
    assert set(kinds(cay.events(box, '--kind', 'file'))) == {'file.create'}
    assert kinds(cay.events(box, '--kind', 'process.exec')) == ['process.exec'] * 2
    assert set(kinds(cay.events(box, '--kind', '*.exit'))) == {'call.exit', 'process.exit'}
    assert files(cay.events(box, '--kind', 'file', '--call', 'alpha')) == {('file.create', '/tmp/a')}
    r = cay('trace', box, '--kind', 'nonsense')
    assert r.code == 2 and 'nonsense' in r.err, r
    r = cay('trace', box, '--call', '99')
    assert r.stdout == b'' and r.code in (0, 5), r


def test_follow_shows_what_comes_and_ends_with_the_sandbox(cay):
    ref = cay.create()
    with cay.popen('trace', '--follow', '--json', ref) as p:
        p.read_until(b'sandbox.ready')
        cay('exec', ref, '--', 'echo', 'followed', check=True)
        p.read_until(b'call.exit')
        cay('kill', ref, check=True)
        r = p.finish()
        assert r.code == 0 and b'sandbox.end' in r.stdout, r


def test_the_chain_can_be_recomputed(cay, box):
    for i in range(3):
        cay('exec', box, '--', 'sh', '-c', f'touch /tmp/{i}; ls')
    lines = cay('trace', '--json', box, check=True).stdout.splitlines()
    head = '0' * 64
    for n, line in enumerate(lines, 1):
        event = json.loads(line)
        assert event['prev'] == head and event['seq'] == n and event['sandbox'] == box
        head = hashlib.sha256(line).hexdigest()
    assert len(lines) > 12
    r = cay.json('trace', 'verify', box)[0]
    assert r['ok'] is True and r['head_checked'] is True and r['events'] >= len(lines)
    assert r['events'] > len(lines) or r['head'] == head


def tampered(cay, ref, change):
    """verify after `change` of the lines, and the file as it was again."""
    path = path_of(cay, ref)
    with open(path, 'rb') as f:
        good = f.read()
    with open(path, 'wb') as f:
        f.write(change(good.splitlines(keepends=True)))
    try:
        return cay('trace', 'verify', ref)
    finally:
        with open(path, 'wb') as f:
            f.write(good)


def changed_byte(lines):
    lines[4] = lines[4].replace(b'"time":"20', b'"time":"21', 1)
    return b''.join(lines)


TAMPERING = {
    'changed byte': changed_byte,
    'removed line': lambda lines: b''.join(lines[:4] + lines[5:]),
    'removed first line': lambda lines: b''.join(lines[1:]),
    'swapped lines': lambda lines: b''.join(lines[:3] + [lines[4], lines[3]] + lines[5:]),
    'doubled line': lambda lines: b''.join(lines[:4] + [lines[3]] + lines[4:]),
    'truncated line': lambda lines: b''.join(lines[:4] + [lines[4][:20] + b'\n'] + lines[5:]),
    'inserted line': lambda lines: b''.join(lines[:4] + [b'{}\n'] + lines[4:]),
    'cut in the last line': lambda lines: b''.join(lines)[:-10],
}


@pytest.mark.parametrize('state', ['alive', 'ended'])
@pytest.mark.parametrize('how', TAMPERING)
def test_verify_finds(cay, how, state):
    ref = cay.create()
    cay('exec', ref, '--', 'sh', '-c', 'touch /tmp/x; ls; ls', check=True)
    # Tampering puts back what it read: nothing may be written meanwhile.
    caylib.wait_until(lambda: [e for e in cay.events(ref) if e['kind'] == 'file.create'], what='the call in the trace')
    if state == 'ended':
        cay('kill', ref, check=True)
    try:
        assert cay('trace', 'verify', ref).code == 0
        r = tampered(cay, ref, TAMPERING[how])
        assert r.code == 1, r
        assert re.search(r'line \d+|event \d+', r.out + r.err), r
        assert cay('trace', 'verify', ref).code == 0
    finally:
        if state == 'alive':
            cay('kill', ref, check=True)


def test_verify_finds_a_cut_end_while_the_sandbox_lives(cay, box):
    cay('exec', box, '--', 'touch', '/tmp/x', check=True)
    cay.events(box)  # everything is written
    r = tampered(cay, box, lambda lines: b''.join(lines[:-1]))
    assert r.code == 1, r


def test_verify_finds_a_rewritten_trace_while_the_sandbox_lives(cay, box):
    cay('exec', box, '--', 'touch', '/tmp/x', check=True)
    cay.events(box)

    def rewrite(lines):
        head, out = '0' * 64, b''
        for line in lines:
            line = re.sub(rb'"prev":"[0-9a-f]{64}"', f'"prev":"{head}"'.encode(), line.replace(b'/tmp/x', b'/tmp/y').rstrip(b'\n'))
            head = hashlib.sha256(line).hexdigest()
            out += line + b'\n'
        return out

    assert tampered(cay, box, rewrite).code == 1


def test_trace_calls_has_no_processes_and_files(cay):
    ref = cay.create('--trace', 'calls')
    cay('exec', ref, '--', 'sh', '-c', 'touch /tmp/x; ls', check=True)
    cay('kill', ref, check=True)
    assert set(kinds(cay.events(ref))) == {'sandbox.create', 'sandbox.ready', 'call.start', 'call.exit', 'sandbox.end'}


def test_the_trace_of_an_ended_sandbox_is_found_by_id_prefix_and_name(cay):
    ref = cay.create('--name', 'gone')
    cay('kill', ref, check=True)
    assert kinds(cay.events(ref))[-1] == 'sandbox.end'
    assert cay.events(ref[:-2]) == cay.events(ref)
    assert cay.events('gone') == cay.events(ref)
    assert cay('trace', 'never').code == 5


def test_the_trace_of_a_run_is_kept(cay):
    before = set(os.listdir(os.path.join(cay.state, 'ended')))
    cay('run', '--call-id', 'only', '--', 'sh', '-c', 'touch /tmp/run', check=True)
    new = set(os.listdir(os.path.join(cay.state, 'ended'))) - before
    assert len(new) == 1
    events = cay.events(new.pop().split('.')[0], '--call', 'only')
    assert ['touch', '/tmp/run'] in execs(events) and ('file.create', '/tmp/run') in files(events)


@pytest.mark.slow
def test_two_thousand_processes_are_all_there(cay, box):
    cay('exec', box, '--', 'sh', '-c', 'i=0; while [ $i -lt 2000 ]; do /bin/true; i=$((i+1)); done', check=True, timeout=60)
    events = cay.events(box)
    assert len([a for a in execs(events) if a == ['/bin/true']]) == 2000
    assert kinds(events).count('process.exit') == 2001


def test_the_sandbox_cannot_reach_its_trace(cay, box):
    r = cay('exec', *(['--user', 'root'] if caylib.ROOTFUL else []), box, '--', 'find', '/', '-xdev', '-name', 'trace.jsonl')
    assert 'trace.jsonl' not in r.out, r

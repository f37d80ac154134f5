# SPDX-License-Identifier: Apache-2.0
"""What can be asked about sandboxes afterwards: policies, traces, and why they ended."""
import json
import os

import pytest

import caylib


@pytest.fixture
def make(cay):
    """A function that makes sandboxes which end with the test."""
    made = []

    def create(*options):
        made.append(cay('create', *options, check=True).out.strip())
        return made[-1]
    yield create
    for box in made:
        cay('kill', box)


def events(cay, box, kind):
    return [json.loads(line) for line in cay('trace', box, '--json', '--kind', kind, check=True).out.splitlines()]


def test_a_policy_that_replaces_another_says_what_went(cay, make):
    box = make('--net', 'coding', '--allow', 'internal.example.com')
    r = cay('policy', 'set', box, 'none', '--allow', 'other.example.com', check=True)
    lines = r.out.splitlines()
    assert any(line.startswith('added') and 'other.example.com' in line for line in lines)
    assert any(line.startswith('removed') and 'internal.example.com' in line for line in lines)
    assert '--allow internal.example.com' in r.err and 'other.example.com' not in r.err


def test_show_prints_the_policy_that_holds_now(cay, make):
    box = make('--allow', 'first.example.com')
    cay('policy', 'set', box, 'none', '--allow', 'second.example.com', '-q', check=True)
    shown = json.loads(cay('show', box, '--json', check=True).out)['policy']
    assert len(shown['rules']) == 1 and 'second.example.com' in shown['rules'][0]
    assert len(shown['history']) == 2
    text = cay('show', box, check=True).out
    assert 'policy     none (1 rules, default deny)' in text and f'uid {os.getuid()}' in text


def test_policy_show_prints_a_document_with_its_history(cay, make, tmp_path):
    box = make('--allow', 'first.example.com')
    cay('policy', 'set', box, 'none', '--allow', '*.second.example.com:8443', '-q', check=True)
    text = cay('policy', 'show', box, check=True).out
    now, history = text.split('# history')
    assert 'second.example.com' in now and 'first.example.com' not in now
    assert '- {id' in history and 'first.example.com' in history and 'by cay (pid ' in history
    path = tmp_path / 'again.yaml'
    path.write_text(text)
    told = json.loads(cay('policy', 'check', str(path), '--json', check=True).out)
    assert told['default'] == 'deny' and told['rules'][0]['targets'] == ['*.second.example.com'] and told['rules'][0]['ports'] == '8443'
    cay('kill', box, check=True)
    ended = json.loads(cay('policy', 'show', box, '--json', check=True).out)
    assert ended['policy'] is None and len(ended['history']) == 2


def test_the_event_of_a_policy_has_content(cay, make):
    box = make('--allow', 'first.example.com')
    cay('policy', 'set', box, 'coding', '-q', check=True)
    first, second = events(cay, box, 'policy.set')
    assert 'first.example.com' in first['added'][0] and 'removed' not in first
    assert second['name'] == 'coding' and 'first.example.com' in second['removed'][0] and second['rules'] > 1
    assert second['by'] == 'cay' and second['by_uid'] == os.getuid() and second['by_pid'] > 1
    assert first['hash'] != second['hash']


def test_a_sandbox_without_a_network_has_no_policy(cay, make):
    box = make()
    r = cay('policy', 'show', box)
    assert r.code == 5 and 'no network' in r.err
    assert 'policy' not in json.loads(cay('show', box, '--json', check=True).out)
    r = cay('policy', 'show', 'codding')
    assert r.code == 5 and "no preset or sandbox 'codding'" in r.err


def why(cay, box):
    return json.loads(cay('why', box, '--json', check=True).out)


def ended(cay, box):
    """Its row among the ended ones, once its files are gone."""
    def find():
        rows = [json.loads(line) for line in cay('ls', '--ended', '--json', check=True).out.splitlines()]
        return next((row for row in rows if row['id'] == box), None)
    return caylib.wait_until(find, what=f'{box} among the ended sandboxes')


def test_the_trace_of_a_run_is_found_afterwards(fresh_cay):
    cay = fresh_cay
    cay('run', '--name', 'passing-by', '--', 'sh', '-c', 'exit 3')
    row, = [json.loads(line) for line in cay('ls', '--ended', '--json', check=True).out.splitlines()]
    assert (row['name'], row['cause'], row['last_call']['code'], row['argv']) == ('passing-by', 'command', 3, ['sh', '-c', 'exit 3'])
    by_id = cay('trace', row['id'], '--json', check=True).out
    assert by_id and cay('trace', 'passing-by', '--json', check=True).out == by_id
    assert cay('trace', 'verify', 'passing-by', check=True).out.startswith('ok: ')
    table = cay('ls', '--ended', check=True).out.splitlines()
    assert table[0].split()[:4] == ['ID', 'NAME', 'ENDED', 'CAUSE'] and row['id'] in table[1] and '1: exit 3' in table[1]
    assert cay('ls', '--ended', '-q', check=True).out == f'{row["id"]}\n' and cay('ls', '-q', check=True).out == ''
    # Of several with one name, the one that ended last.
    cay('run', '--name', 'passing-by', '--', 'true')
    assert cay('trace', 'passing-by', '--json', check=True).out != by_id


def test_why_a_sandbox_was_killed_and_by_whom(cay):
    box = cay('create', '--name', 'victim', check=True).out.strip()
    assert why(cay, box) == {'id': box, 'name': 'victim', 'state': 'running'}
    cay('kill', box, check=True)
    told = why(cay, 'victim')
    assert (told['id'], told['state'], told['cause'], told['by'], told['by_uid']) == (box, 'ended', 'killed', 'cay', os.getuid())
    assert told['by_pid'] > 1
    text = cay('why', box, check=True).out
    assert 'ended      killed: killed' in text and f'(pid {told["by_pid"]}, uid {os.getuid()})' in text
    assert cay('why', box, '-q', check=True).out == 'killed\n'


@pytest.mark.parametrize('option,cause', [('--ttl', 'ttl'), ('--idle', 'idle')])
def test_why_a_sandbox_ran_out_of_time(cay, option, cause):
    box = cay('create', option, '100ms', check=True).out.strip()
    row = ended(cay, box)
    assert row['cause'] == cause and why(cay, box)['cause'] == cause and 'by' not in (row['by'] or '')


def test_a_warden_that_is_told_to_end_says_who_told_it(cay, make):
    box = make()
    os.kill(cay.warden(box), 15)
    caylib.wait_until(lambda: why(cay, box)['state'] != 'running', what='its end')
    told = why(cay, box)
    assert (told['cause'], told['by_pid'], told['by_uid']) == ('told', os.getpid(), os.getuid())


def test_a_lost_sandbox_is_listed_explained_and_forked(cay, make):
    box = make('--name', 'gone')
    cay('exec', box, '--', 'sh', '-c', 'echo kept > /root/file 2>/dev/null || echo kept > /tmp/file', check=True)
    os.kill(cay.warden(box), 9)
    caylib.wait_until(lambda: why(cay, box)['state'] == 'lost', what='its loss')
    row, = [r for r in map(json.loads, cay('ls', '--json', check=True).out.splitlines()) if r['id'] == box]
    assert row['state'] == 'lost'
    told = why(cay, 'gone')
    assert (told['cause'], told['reason']) == ('lost', 'its warden died') and told['snapshot']
    fork = cay('fork', 'gone', check=True).out.strip()
    try:
        r = cay('exec', fork, '--', 'sh', '-c', 'cat /root/file /tmp/file 2>/dev/null')
        assert r.out == 'kept\n'
    finally:
        cay('kill', fork)
    cay('kill', 'gone', check=True)
    told = why(cay, box)
    assert (told['state'], told['cause'], told['reason']) == ('ended', 'lost', 'its warden died')


def test_why_of_nothing(cay):
    r = cay('why', 'never-was')
    assert r.code == 5 and "no sandbox 'never-was'" in r.err


def segments(cay, box):
    names = os.listdir(f'{cay.state}/sandboxes/{box}')
    return sorted((int(n.split('.')[1]) if n.count('.') == 2 else 0 for n in names if n.startswith('trace.')))


def fill(cay, box, times):
    """Many events: a process each."""
    cay('exec', box, '--', 'sh', '-c', f'i=0; while [ $i -lt {times} ]; do /bin/true {"x" * 2000}; i=$((i+1)); done', check=True, timeout=120)


def test_a_trace_goes_on_in_segments_and_stays_verifiable(fresh_cay):
    cay = fresh_cay
    cay.env['CAY_TRACE_MAX'] = '1M'  # segments of 128 KiB, the least
    box = cay('create', check=True).out.strip()
    fill(cay, box, 100)
    assert len(segments(cay, box)) > 1 and segments(cay, box)[0] == 0
    told = json.loads(cay('trace', 'verify', box, '--json', check=True).out)
    assert told['dropped'] == 0 and told['head_checked']
    seqs = [json.loads(line)['seq'] for line in cay('trace', box, '--json', check=True).out.splitlines()]
    assert seqs == list(range(1, len(seqs) + 1))
    assert len(json.loads(cay('show', box, '--json', check=True).out)['calls']) == 1
    # The calls of later segments are indexed too, from where the last look ended.
    fill(cay, box, 60)
    assert len(json.loads(cay('show', box, '--json', check=True).out)['calls']) == 2
    # A line that is changed in a later segment is found, and a segment that is missing in the middle.
    start = segments(cay, box)[1]
    path = f'{cay.state}/sandboxes/{box}/trace.{start}.jsonl'
    text = caylib.read_text(path)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text.replace('"process.exec"', '"process.exit"', 1))
    r = cay('trace', 'verify', box)
    assert r.code == 1 and 'was changed' in r.err
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    cay('trace', 'verify', box, check=True)
    cay('kill', box, check=True)
    told = json.loads(cay('trace', 'verify', box, '--json', check=True).out)
    assert told['dropped'] == 0 and told['events'] > len(seqs)


@pytest.mark.slow
def test_the_oldest_segment_is_dropped_and_the_trace_says_so(fresh_cay):
    cay = fresh_cay
    cay.env['CAY_TRACE_MAX'] = '1M'
    box = cay('create', check=True).out.strip()
    fill(cay, box, 1200)
    starts = segments(cay, box)
    assert starts[0] > 0 and len(starts) <= 16
    told = json.loads(cay('trace', 'verify', box, '--json', check=True).out)
    assert told['dropped'] > 0
    assert 'were dropped' in cay('trace', 'verify', box, check=True).out
    lines = cay('trace', box, '--json', check=True).out.splitlines()
    assert json.loads(lines[0])['seq'] == told['dropped'] + 1
    # A segment that somebody else removes is not one that was dropped.
    os.unlink(f'{cay.state}/sandboxes/{box}/trace.{starts[0]}.jsonl')
    r = cay('trace', 'verify', box)
    assert r.code == 1 and 'were removed' in r.err
    cay('kill', box, check=True)
    assert {name.split('.')[0] for name in os.listdir(f'{cay.state}/ended')} == {box}


def test_ended_sandboxes_are_kept_by_number_and_by_age(fresh_cay):
    cay = fresh_cay
    cay('run', '--name', 'old', '--', 'true', check=True)
    old, = {name for name in os.listdir(f'{cay.state}/ended')}
    day = 24 * 3600
    os.utime(f'{cay.state}/ended/{old}', (0, os.stat(f'{cay.state}/ended/{old}').st_mtime - 31 * day))
    cay('run', '--name', 'new', '--', 'true', check=True)
    caylib.wait_until(lambda: old not in os.listdir(f'{cay.state}/ended'), what='the end of the old one')
    names = [json.loads(line)['name'] for line in cay('ls', '--ended', '--json', check=True).out.splitlines()]
    assert names == ['new']
    cay.env['CAY_KEEP_ENDED'] = '1'
    cay('run', '--name', 'newer', '--', 'true', check=True)
    names = caylib.wait_until(lambda: [n for n in [[json.loads(line)['name'] for line in cay('ls', '--ended', '--json').out.splitlines()]] if len(n) == 1], what='one')
    assert names == [['newer']]


def with_fd(cay, *args, **options):
    """The command with its JSON on a descriptor of its own: the result and the objects."""
    r, w = os.pipe()
    try:
        result = cay(*(str(w) if a == 'FD' else a for a in args), pass_fds=(w,), **options)
        os.close(w)
        w = None
        with os.fdopen(r, 'rb') as f:
            r = None
            return result, [json.loads(line) for line in f.read().splitlines()]
    finally:
        for fd in (r, w):
            if fd is not None:
                os.close(fd)


def test_json_has_a_place_of_its_own(cay, make, tmp_path):
    script = 'printf no-newline >&2; echo out; exit 4'
    result, (told,) = with_fd(cay, 'run', '--json-fd', 'FD', '--', 'sh', '-c', script)
    assert (result.code, result.out, result.err) == (4, 'out\n', 'no-newline')
    assert told['exit_code'] == 4 and cay('why', told['sandbox'], '-q', check=True).out == 'command\n'
    path = tmp_path / 'result.json'
    r = cay('exec', '--json-file', str(path), make(), '--', 'sh', '-c', script)
    assert (r.code, r.out, r.err) == (4, 'out\n', 'no-newline') and json.loads(path.read_text())['exit_code'] == 4
    r = cay('ls', '--json-file', str(path), check=True)
    assert r.out == '' and json.loads(path.read_text().splitlines()[0])['id']


def test_the_descriptor_of_the_json_stays_outside(cay):
    _, (told,) = with_fd(cay, 'run', '--json-fd', 'FD', '--', 'sh', '-c', 'for n in 3 4 5 6 7 8 9; do echo x >&$n; done 2>/dev/null; exit 0')
    assert told['exit_code'] == 0


@pytest.mark.parametrize('args,kind,code', [
    (('run', '--json-fd', 'FD', '--template', 'nothing', '--', 'true'), None, 125),
    (('run', '--json-fd', 'FD', '--', '/no/such/command'), 'not_found', 127),
    (('run', '--json-fd', 'FD', '--', '/etc/passwd'), None, 126),
    (('run', '--no-such-option', '--json-fd', 'FD', '--', 'true'), 'invalid', 125),
    (('exec', '--json-fd', 'FD', 'never-was', '--', 'true'), 'not_found', 125),
    (('show', 'never-was', '--json-fd', 'FD'), 'not_found', 5),
    (('show', '--no-such-option', '--json-fd', 'FD'), 'invalid', 2),
])
def test_there_is_json_when_cay_itself_fails(cay, args, kind, code):
    result, (told,) = with_fd(cay, *args)
    assert result.code == code and result.out == '' and result.err
    assert told['error']['exit_code'] == code and told['error']['message'] and 'hint' in told['error']
    assert kind is None or told['error']['code'] == kind


def test_json_of_a_failure_without_a_place_of_its_own(cay):
    r = cay('run', '--json', '--', '/no/such/command')
    assert r.code == 127 and json.loads(r.err.splitlines()[-1])['error']['exit_code'] == 127 and r.out == ''
    r = cay('show', 'never-was', '--json')
    assert r.code == 5 and json.loads(r.out)['error']['exit_code'] == 5


@pytest.mark.parametrize('option', [('--json-fd', '77'), ('--json-file', '/no/such/dir/file'), ('--json-fd', '2', '--json-file', '/dev/null')])
def test_a_place_that_cannot_be_written_is_an_error_before_anything_runs(cay, tmp_path, option):
    r = cay('run', *option, '--', 'sh', '-c', 'echo ran')
    assert r.code == 125 and r.out == '' and '--json-f' in r.err

# SPDX-License-Identifier: Apache-2.0
"""Sandboxes that stay: create, exec, ls, show, ps, kill, gc; what the commands print."""

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import time

import pytest

import caylib

COMMANDS = ['run', 'create', 'exec', 'shell', 'cp', 'ls', 'show', 'ps', 'trace', 'kill', 'gc', 'completion', 'version', 'help']


@pytest.fixture
def clean(cay, no_leftovers):
    """Whatever a test makes is gone afterwards."""
    yield cay
    cay('kill', '--all', '--yes')
    cay('gc', '--lost')


def test_create_prints_an_id_and_nothing_else(clean):
    r = clean('create', check=True)
    assert re.fullmatch(r'[a-z0-9]{8,20}\n', r.out), r
    assert r.err == ''


def test_what_one_exec_does_the_next_one_sees(clean):
    ref = clean.create()
    clean('exec', ref, '--', 'sh', '-c', 'echo hi > ~/f; mkdir /tmp/d', check=True)
    assert clean('exec', ref, '--', 'sh', '-c', 'cat ~/f; ls /tmp').out == 'hi\nd\n'


def test_exec_passes_codes_streams_and_signals(clean):
    ref = clean.create()
    assert clean('exec', ref, '--', 'sh', '-c', 'cat; echo e >&2; exit 9', input='in').code == 9
    assert clean('exec', ref, '--', 'nope').code == 127
    assert clean('exec', ref, '--', '/etc/passwd').code == 126
    assert clean('exec', '--timeout', '200ms', ref, '--', 'sleep', '9').code == 124
    assert clean('exec', ref, '--', 'sh', '-c', 'kill -9 $$').code == 137
    with clean.popen('exec', ref, '--', 'sh', '-c', 'trap "exit 3" USR1; echo r; while :; do sleep 0.02; done') as p:
        p.read_until(b'r\n')
        p.send_signal(signal.SIGUSR1)
        assert p.wait(10) == 3


def test_options_of_create_are_the_defaults_of_exec(clean, tmp_path):
    os.chmod(tmp_path, 0o755)
    ref = clean.create('--env', 'A=1', '--env', 'B=2', '--cwd', '/usr', '--hostname', 'h')
    assert clean('exec', '--env', 'B=3', ref, '--', 'sh', '-c', 'echo $A $B; pwd; uname -n').out == '1 3\n/usr\nh\n'
    assert clean('exec', '--cwd', '/tmp', ref, '--', 'pwd').out == '/tmp\n'


def test_a_name_is_unique_and_the_error_names_the_holder(clean):
    one, start = clean.create('--name', 'isle'), time.monotonic()
    for command in (['create'], ['run', '--name', 'isle', '--', 'true']):
        r = clean(*command, *(['--name', 'isle'] if command == ['create'] else []))
        assert r.code == (1 if command == ['create'] else 125), r
        assert "'isle'" in r.err and one in r.err, r
    assert time.monotonic() - start < 5 * caylib.SLOWER
    clean('kill', 'isle', check=True)
    assert clean.create('--name', 'isle') != one


def test_a_sandbox_is_found_by_name_id_and_prefix(clean):
    ref = clean.create('--name', 'isle')
    for name in (ref, 'isle', ref[:3], ref[:-1]):
        assert clean('exec', name, '--', 'echo', 'x').out == 'x\n'
    assert clean('exec', 'isl', '--', 'true').code == 125  # of names there is no prefix


def test_an_ambiguous_prefix_is_refused_with_the_candidates(clean):
    made = []
    for _ in range(40):  # ids begin with one of 26 letters
        made.append(clean.create('--trace', 'calls'))
        same = [m for m in made[:-1] if m[0] == made[-1][0]]
        if same:
            break
    for what in ('show', 'fork'):
        r = clean(what, made[-1][0])
        assert r.code == 2 and 'ambiguous' in r.err, r
        assert made[-1] in r.err and same[0] in r.err, r


def test_bad_references_are_not_found(clean):
    for ref in ('nope', 'zzzzzzzzzzzz', '../x', '', 'a b', 'A' * 300, '\n'):
        for command in (['show', ref], ['ps', ref], ['kill', ref], ['trace', ref]):
            r = clean(*command)
            assert r.code in (2, 5), r
            assert r.stdout == b'' and r.err.startswith('cay'), r
        r = clean('exec', ref, '--', 'true')
        assert r.code == 125 and r.err.startswith('cay'), r


def test_a_name_with_a_typo_is_suggested(clean):
    clean.create('--name', 'island')
    r = clean('show', 'islnad')
    assert r.code == 5 and 'island' in r.err, r


def test_a_sandbox_survives_the_death_of_its_creator(clean):
    with caylib.shell(clean, 'setsid sh -c \'"$CAY" create --name orphan; kill -9 $$\'; wait') as p:
        p.finish()
    assert clean('exec', 'orphan', '--', 'echo', 'alive').out == 'alive\n'


def test_a_closed_terminal_does_not_end_a_sandbox(clean):
    with clean.spawn_pty('create', '--name', 'term') as t:
        assert t.wait() == 0
    assert clean('exec', 'term', '--', 'echo', 'alive').out == 'alive\n'


def test_twenty_execs_at_once_each_get_their_own(clean):
    ref = clean.create()
    running = [clean.popen('exec', '--call-id', f'c{i}', ref, '--', 'sh', '-c', f'cat; echo {i}; echo e{i} >&2; exit {i}',
                           stdin=subprocess.PIPE) for i in range(20)]
    for i, p in enumerate(running):
        with p:
            out, err = p.communicate(f'in{i}\n'.encode(), timeout=120)
            assert (p.returncode, out, err) == (i, f'in{i}\n{i}\n'.encode(), f'e{i}\n'.encode())
    calls = clean.json('show', ref)[0]['calls']
    assert sorted(c['call'] for c in calls) == list(range(1, 21))
    assert {c['call_id']: c['exit_code'] for c in calls} == {f'c{i}': i for i in range(20)}


def test_a_daemon_that_a_call_leaves_goes_on(clean):
    ref = clean.create()
    start = time.monotonic()
    clean('exec', ref, '--', 'sh', '-c', 'setsid sh -c "while :; do date > /tmp/tick; sleep 0.05; done" > /dev/null 2>&1 &', check=True)
    assert time.monotonic() - start < 5 * caylib.SLOWER
    for _ in range(3):
        assert clean('exec', ref, '--', 'sh', '-c', 'rm -f /tmp/tick; i=0; until test -s /tmp/tick; do sleep 0.02; done; echo y').out == 'y\n'
    assert any('/tmp/tick' in p['args'] for p in clean.json('ps', ref))


def test_ps_tells_which_call_a_process_belongs_to(clean):
    ref = clean.create()
    clean('exec', ref, '--', 'sh', '-c', 'sleep 600 > /dev/null 2>&1 &', check=True)
    with clean.popen('exec', ref, '--', 'sh', '-c', 'echo r; (sleep 601; :) & wait') as p:
        p.read_until(b'r\n')
        # Until they have executed, both are copies of their shells.
        caylib.wait_until(lambda: {q['args'] for q in clean.json('ps', ref)} >= {'sleep 600', 'sleep 601'}, what='both sleepers')
        found = {(q['args'].split(' -c')[0], q['call']) for q in clean.json('ps', ref)}
        assert found == {('cay-init', None), ('sleep 600', 1), ('sh', 2), ('sleep 601', 2)}, found
        p.terminate()


def test_kill_ends_several_and_goes_on_after_a_failure(clean):
    refs = [clean.create() for _ in range(3)]
    r = clean('kill', refs[0], 'nope', refs[1])
    assert r.code == 5 and r.out.split() == refs[:2] and "'nope'" in r.err, r
    assert clean('ls', '-q').out.split() == refs[2:]


def test_kill_all_ends_all(clean):
    refs = [clean.create() for _ in range(3)]
    assert clean('kill', '--all', '--dry-run').out.split() == refs
    assert clean('ls', '-q').out.split() == refs
    r = clean('kill', '--all', '--yes', check=True)
    assert sorted(r.out.split()) == sorted(refs)
    assert clean('ls', '-q', '--all').out == ''


def test_kill_ends_a_running_call_and_its_client(clean):
    ref = clean.create()
    with clean.popen('exec', ref, '--', 'sh', '-c', 'trap "" TERM; echo r; sleep 600; :') as p:
        p.read_until(b'r\n')
        clean('kill', ref, check=True)
        r = p.finish()
        assert r.code in (125, 137) and (r.code == 137 or r.err), r


def test_a_lost_sandbox_is_shown_and_can_be_killed(clean):
    ref = clean.create('--name', 'castaway')
    clean('exec', ref, '--', 'sh', '-c', 'echo x > ~/f; sleep 600 > /dev/null 2>&1 &', check=True)
    os.kill(clean.warden(ref), signal.SIGKILL)
    caylib.wait_until(lambda: clean('exec', ref, '--', 'true').code == 125, what='the end of the warden')
    assert clean('ls', '-q').out == f'{ref}\n'
    assert [(s['id'], s['state']) for s in clean.json('ls', '--all')] == [(ref, 'lost')]
    assert clean.json('show', ref)[0]['state'] == 'lost'
    r = clean('exec', ref, '--', 'true')
    assert r.code == 125 and ref in r.err and 'hint: ' in r.err, r
    assert clean('trace', 'verify', ref).code == 0
    assert ref in clean('kill', 'castaway', check=True).out
    assert clean('ls', '--all', '-q').out == ''


def test_gc_does_what_it_can_and_says_what_it_cannot(clean):
    """A lock that is a directory can be neither taken nor removed."""
    clean('gc', check=True)
    os.mkdir(f'{clean.state}/locks/aaaaaaaaaa')
    os.mkdir(f'{clean.state}/layers/bbbbbbbbbb')
    try:
        result = clean('gc', '--json')
        assert result.code != 0 and 'locks/aaaaaaaaaa' in result.out
        assert json.loads(result.out.splitlines()[0])['layers_removed'] == 1
        assert not os.path.exists(f'{clean.state}/layers/bbbbbbbbbb')
    finally:
        os.rmdir(f'{clean.state}/locks/aaaaaaaaaa')
    clean('gc', check=True)


def test_gc_removes_what_was_made_of_the_host_as_it_was(clean):
    """Unless a sandbox or snapshot is made of it, or something is there of which that is not known."""
    clean('run', '--', 'true', check=True)
    old = f'{clean.state}/templates/host/v2-0123456789abcdef'
    os.makedirs(f'{old}/root/etc')
    os.utime(old, (1, 1))
    recipe = f'...{old}/root...'.encode()
    with contextlib.closing(sqlite3.connect(f'{clean.state}/catalog.db', timeout=120)) as db:
        db.execute('INSERT INTO recipes(id, body, template) VALUES(?, ?, ?)', ('zzzzzzzz', recipe, 'host'))
        db.commit()
        assert clean.json('gc')[0]['bases_removed'] == 0
        db.execute('DELETE FROM recipes')
        db.commit()
    with clean.popen('run', '--', 'sh', '-c', 'echo up; sleep 100') as running:
        running.read_until(b'up')
        assert clean.json('gc')[0]['bases_removed'] == 0
        running.kill()
    assert os.path.isdir(old)
    caylib.wait_until(lambda: clean('gc', check=True) and not os.path.exists(old), what='gone')
    clean('run', '--', 'true', check=True)


def test_gc_keeps_the_lost_and_removes_them_when_told(clean):
    ref, alive = clean.create(), clean.create()
    clean('exec', ref, '--', 'dd', 'if=/dev/zero', 'of=/tmp/f', 'bs=1M', 'count=3', check=True)
    os.kill(clean.warden(ref), signal.SIGKILL)
    caylib.wait_until(lambda: clean('exec', ref, '--', 'true').code == 125, what='the end of the warden')
    clean('gc', check=True)
    assert clean('ls', '--all', '-q').out.split() == [ref, alive]
    assert f'cay snapshots {ref}' in clean('exec', ref, '--', 'true').err
    freed, = clean.json('gc', '--lost')
    assert freed['lost_removed'] == 1 and freed['layers_removed'] == 1 and freed['freed_bytes'] >= 3 << 20
    assert clean('ls', '--all', '-q').out.split() == [alive]
    assert clean('exec', alive, '--', 'echo', 'x').out == 'x\n'


def test_labels_are_kept_and_filter(clean):
    one = clean.create('--label', 'task=42', '--label', 'team=a/b')
    two = clean.create('-l', 'task=43')
    assert clean('ls', '-q', '--label', 'task').out.split() == [one, two]
    assert clean('ls', '-q', '--label', 'task=42').out.split() == [one]
    assert clean('ls', '-q', '--label', 'task', '--label', 'team').out.split() == [one]
    assert clean('ls', '-q', '--label', 'task=4').out == ''
    assert clean.json('show', one)[0]['options']['labels'] == {'task': '42', 'team': 'a/b'}


# --- output ---

LS = ['id', 'name', 'state', 'template', 'ephemeral', 'created', 'calls_running', 'calls_total', 'ttl_left_ms', 'dirs', 'labels']
SHOW = ['id', 'name', 'state', 'reason', 'log', 'template', 'ephemeral', 'created', 'rss_bytes', 'init_pid', 'calls_running',
        'calls_total', 'options', 'lacks', 'calls']
CALL = ['call', 'call_id', 'argv', 'labels', 'state', 'reason', 'exit_code', 'signal', 'start', 'duration_ms', 'stdout_bytes', 'stderr_bytes']
PS = ['pid', 'ppid', 'call', 'user', 'state', 'cpu_ms', 'rss_bytes', 'args']


def test_json_has_stable_keys(clean):
    created = clean.json('create', '--name', 'j')
    assert list(created[0])[0] == 'id' and len(created) == 1
    clean('exec', 'j', '--', 'sh', '-c', 'echo out; exit 2')
    assert [list(x) for x in clean.json('ls')] == [LS]
    shown = clean.json('show', 'j')[0]
    assert list(shown) == SHOW and [list(c) for c in shown['calls']] == [CALL]
    assert (shown['calls'][0]['exit_code'], shown['calls'][0]['stdout_bytes'], shown['calls'][0]['state']) == (2, 4, 'ended')
    assert [list(x) for x in clean.json('ps', 'j')] == [PS]
    assert list(clean.json('version')[0]) == ['version', 'client_protocol', 'init_protocol']
    assert list(clean.json('trace', 'verify', 'j')[0]) == ['ok', 'sandbox', 'events', 'head', 'head_checked', 'dropped']
    assert list(clean.json('gc')[0]) == ['leftovers_removed', 'lost_removed', 'lost_kept', 'layers_removed', 'bases_removed',
                                          'freed_bytes']
    assert [k['id'] for k in clean.json('kill', 'j')] == [shown['id']]


def test_errors_can_be_json_too(clean):
    r = clean('show', 'nope', '--json')
    assert r.code == 5, r
    assert json.loads(r.out)['error']['code'] == 'not_found'
    assert 'nope' in json.loads(r.out)['error']['message'] and r.err.startswith('cay: '), r


def test_ls_does_not_wait_for_a_warden_that_is_stopped(clean):
    refs = [clean.create() for _ in range(3)]
    warden = clean.warden(refs[1])
    os.kill(warden, signal.SIGSTOP)
    try:
        start = time.monotonic()
        rows = {r['id']: r for r in clean.json('ls')}
        assert time.monotonic() - start < 5 * caylib.SLOWER, 'it was waited for'
    finally:
        os.kill(warden, signal.SIGCONT)
    assert set(rows) == set(refs)
    assert rows[refs[1]]['calls_total'] is None and rows[refs[1]]['state'] == 'running'
    assert rows[refs[0]]['calls_total'] == 0 and rows[refs[2]]['calls_total'] == 0


def test_a_port_without_descriptors_to_spare_does_not_spin(clean):
    """It waits, and goes on when there are some again."""
    ref = clean.create()
    with clean.popen('port', ref, 1, '--listen', '0', preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))) as p:
        host, port = p.stdout.readline().decode().strip().rsplit(':', 1)
        socks = []
        try:
            for _ in range(40):
                socks.append(socket.create_connection((host, int(port))))
            def ticks():
                fields = caylib.read_text(f'/proc/{p.pid}/stat').rsplit(')', 1)[1].split()
                return int(fields[11]) + int(fields[12])
            time.sleep(0.3)
            before = ticks()
            time.sleep(1)
            assert ticks() - before < 30, 'it spins'
        finally:
            for s in socks:
                s.close()
        p.send_signal(signal.SIGINT)
        p.wait(10)


def test_quiet_prints_ids_only(clean):
    ref = clean.create('-q', '--name', 'q')
    assert clean('ls', '-q').out == f'{ref}\n'
    assert clean('kill', '-q', 'q').out in (f'{ref}\n', '')


def test_hostile_text_cannot_steer_the_terminal(clean):
    ref = clean.create()
    evil = '\x1b]0;title\x07\x1b[2J\r\n\u202e\u0085'
    clean('exec', ref, '--', 'sh', '-c', 'exec -a "$1" sleep 600 > /dev/null 2>&1 & :', 'x', evil)
    clean('exec', ref, '--', 'bash', '-c', f'cd /tmp; touch $\'a\\e[31mb\\nc\'; (exec -a "$1" sleep 600) > /dev/null 2>&1 &', evil)
    for command in (['ls'], ['show', ref], ['ps', ref], ['trace', ref]):
        r = clean(*command, check=True)
        for bad in (b'\x1b', b'\x07', b'\r', '\u202e'.encode(), '\u0085'.encode()):
            assert bad not in r.stdout, (command, bad, r)


@pytest.mark.parametrize('typo, meant', [('rum', 'run'), ('exce', 'exec'), ('lst', 'ls'), ('crate', 'create'), ('shwo', 'show')])
def test_typos_of_commands_are_answered_with_a_suggestion(cay, typo, meant):
    r = cay(typo)
    assert r.code == 2 and f"'{meant}'" in r.err, r


def test_typos_of_options_are_answered_with_a_suggestion(cay):
    r = cay('run', '--tiemout', '1s', '--', 'true')
    assert r.code == 125 and '--timeout' in r.err, r
    r = cay('ls', '--jsn')
    assert r.code == 2 and '--json' in r.err, r


def test_help_lists_every_command(cay):
    r = cay('--help', check=True)
    assert all(re.search(rf'\b{c}\b', r.out) for c in COMMANDS), r
    assert cay('help').out == r.out
    r = cay()
    assert r.code in (0, 2) and 'cay run' in r.out + r.err


def test_completion_scripts_parse(cay):
    script = cay('completion', 'bash', check=True).stdout
    assert subprocess.run(['bash', '-n'], input=script, check=False).returncode == 0
    for shell in ('zsh', 'fish'):
        script = cay('completion', shell, check=True).stdout
        assert b'cay' in script
        if shutil.which(shell):
            assert subprocess.run([shell, '-n'], input=script, check=False).returncode == 0
    assert cay('completion', 'csh').code == 2


def test_bash_completion_completes(clean):
    clean.create('--name', 'lagoon')
    script = 'eval "$("$CAY" completion bash)"; cay() { "$CAY" "$@"; }\n' \
             'try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); f=$(complete -p cay | sed "s/.*-F \\([^ ]*\\).*/\\1/"); ' \
             '$f cay "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"; echo "${COMPREPLY[*]}"; }\n' \
             'try cay cre; try cay run --timeo; try cay exec lag'
    out = subprocess.run(['bash', '-c', script], env={**clean.env, 'CAY': caylib.CAY, 'PATH': f'{os.path.dirname(caylib.CAY)}:/usr/bin:/bin'},
                         stdout=subprocess.PIPE, check=True).stdout.decode()
    assert [line.split() for line in out.splitlines()] == [['create'], ['--timeout'], ['lagoon']], out


def test_output_to_a_full_disk_is_an_error(cay):
    with open('/dev/full', 'wb') as full:
        with cay.popen('version', stdout=full) as p:
            assert p.wait(10) == 1


def test_colours_come_only_where_they_are_wanted(clean):
    clean.create()
    assert b'\x1b' not in clean('ls').stdout
    env = {k: v for k, v in clean.env.items() if k != 'NO_COLOR'}
    del clean.env['NO_COLOR']
    try:
        assert b'\x1b[' in clean('ls', '--color', 'always').stdout
        assert b'\x1b[' not in clean('ls').stdout
        with clean.spawn_pty('ls') as t:
            assert t.wait() == 0
            assert b'\x1b[' in t.output
    finally:
        clean.env.update(env, NO_COLOR='1')

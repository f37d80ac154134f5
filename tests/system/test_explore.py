# SPDX-License-Identifier: Apache-2.0
"""cay explore: a command in several forks, of which the best stays."""

import os
import signal
import subprocess
import time

import pytest

import caylib


@pytest.fixture
def origin(cay, no_leftovers):
    ref = cay.create()
    cay('exec', ref, '--', 'sh', '-c', 'echo base > /tmp/base', check=True)
    known = set(cay('ls', '-q', check=True).out.split())
    yield ref
    for other in set(cay('ls', '-a', '-q', check=True).out.split()) - known | {ref}:
        cay('kill', other)


def explore(cay, ref, *args):
    result = cay('explore', '--json', *args[:-1], ref, '--', 'sh', '-c', args[-1], timeout=60)
    return result, caylib.json.loads('[' + ','.join(result.out.splitlines()) + ']')


def test_each_fork_has_its_number_and_files(cay, origin):
    before = cay('snapshots', '-q', check=True).out.split()
    result, forks = explore(cay, origin, '--count', '3', 'cat /tmp/base; echo $CAY_FORK > /tmp/own; seq $CAY_FORK > /tmp/lines; exit $((CAY_FORK - 1))')
    assert result.code == 0 and [f['exit_code'] for f in forks] == [0, 1, 2] and all(f['kept'] for f in forks)
    assert [(f['files'], f['added_lines']) for f in forks] == [(2, 2), (2, 3), (2, 4)]
    for f in forks:
        assert cay('exec', f['id'], '--', 'cat', '/tmp/base', '/tmp/own', check=True).out == f"base\n{f['fork']}\n"
    assert cay('exec', origin, '--', 'ls', '/tmp', check=True).out == 'base\n'
    assert cay('snapshots', '-q', check=True).out.split() == before


def test_pick_drops_the_others(cay, origin):
    before = set(cay('ls', '-q', check=True).out.split())
    result, forks = explore(cay, origin, '-c', '3', '--pick', '2', 'exit $CAY_FORK')
    assert result.code == 2 and [f['kept'] for f in forks] == [False, True, False]
    assert set(cay('ls', '-q', check=True).out.split()) - before == {forks[1]['id']}


def test_one_that_was_chosen_and_whose_command_was_cut_off_is_no_success(cay, origin):
    """Although another one has ended with 0."""
    with cay.popen('explore', '-c', '2', '--pick', '1', '--name', 'cut', origin, '--', 'sh', '-c', '[ $CAY_FORK = 2 ] || sleep 300',
                   stderr=subprocess.STDOUT) as explorer:
        explorer.read_until(b'ended with 0')
        os.kill(cay.warden('cut-1'), signal.SIGKILL)
        result = explorer.finish()
    assert result.code == 1 and 'was stopped\n' in result.out, result


def test_no_process_of_ours_runs_beside_it(cay, origin):
    """The commands are calls of one process, which starts no other cay."""
    with cay.popen('explore', '-c', '2', '--pick', '1', origin, '--', 'sh', '-c', 'echo up; sleep 300') as explorer:
        seen = b''
        while seen.count(b'up') < 2:
            seen += explorer.read_until(b'up')
        assert [name for parent, state, name in caylib.processes().values()
                if parent == explorer.pid and state != 'Z' and name != 'cay-warden'] == []
        explorer.send_signal(signal.SIGTERM)
        explorer.finish()


def test_what_cannot_be_executed_is_told_by_its_code(cay, origin):
    r = cay('explore', '-c', '1', '--pick', '1', origin, '--', '/no/such/program', timeout=60)
    assert r.code == 127 and 'ended with 127' in r.err and '/no/such/program' in r.err
    r = cay('explore', '-c', '1', '--pick', '1', '--timeout', '1', origin, '--', 'sleep', '300', timeout=60)
    assert r.code == 124 and 'ended with 124: timeout' in r.err


def test_first_success_stops_the_others(cay, origin):
    before = set(cay('ls', '-q', check=True).out.split())
    start = time.monotonic()
    result, forks = explore(cay, origin, '-c', '4', '--first-success', '[ $CAY_FORK = 3 ] || sleep 300')
    assert result.code == 0 and time.monotonic() - start < 40 * caylib.SLOWER
    assert [f['kept'] for f in forks] == [False, False, True, False]
    assert [f['exit_code'] for f in forks] == [None, None, 0, None]
    assert set(cay('ls', '-q', check=True).out.split()) - before == {forks[2]['id']}


def test_progress_is_told(cay, origin):
    r = cay('explore', '-c', '3', '--first-success', origin, '--', 'sh', '-c', '[ $CAY_FORK = 2 ] || sleep 300', timeout=60)
    assert r.code == 0 and r.err.count(') was stopped\n') == 2 and r.err.count(') ended with 0\n') == 1
    assert 'cay: fork 2 is kept: ' in r.err
    cay('kill', r.err.split('is kept: ')[1].strip(), check=True)


def test_no_success_keeps_nothing(cay, origin):
    before = set(cay('ls', '-q', check=True).out.split())
    result, forks = explore(cay, origin, '--first-success', 'exit 9')
    assert result.code == 1 and not any(f['kept'] for f in forks)
    assert set(cay('ls', '-q', check=True).out.split()) == before


def test_what_is_printed_has_the_number_before_it(cay, origin):
    result = cay('explore', '--pick', '1', origin, '--', 'sh', '-c', 'echo out $CAY_FORK; printf "no end" >&2', check=True, timeout=60)
    lines = result.out.splitlines()
    assert {'[1] out 1', '[2] out 2', '[1] no end', '[2] no end'} <= set(lines)
    assert 'exit 0' in result.out and 'fork 1 is kept' in result.err


def test_wrong_use(cay, origin):
    assert cay('explore', origin).code == 125 and cay('explore', 'nosuch', '--', 'true').code == 125
    assert cay('explore', '--pick', '3', origin, '--', 'true').code == 125
    assert cay('explore', '--pick', '1', '--first-success', origin, '--', 'true').code == 125


@pytest.mark.parametrize('sig', [signal.SIGINT, signal.SIGTERM])
def test_who_stops_it_keeps_nothing(cay, origin, sig):
    before = set(cay('ls', '-q', check=True).out.split())
    layers = {*caylib.list_dir(f'{cay.state}/layers'), '.lock'}  # of other tests
    with cay.popen('explore', '--count', '2', origin, '--', 'sh', '-c', 'echo up; exec sleep 1000') as explorer:
        seen = explorer.read_until(b'up')
        while seen.count(b'up') < 2:
            seen += explorer.read_until(b'up')
        explorer.send_signal(sig)
        result = explorer.finish()
    assert result.code == -sig and 'cay: stopped; the forks are gone\n' in result.err, result
    assert set(cay('ls', '-a', '-q', check=True).out.split()) == before
    cay('kill', origin, check=True)
    cay('gc', check=True)
    assert set(caylib.list_dir(f'{cay.state}/layers')) <= layers


def test_who_stops_a_fork_of_many_knows_those_that_are_there(fresh_cay):
    cay, origin = fresh_cay, fresh_cay.create()
    before = set(cay('ls', '-q', check=True).out.split())
    with cay.popen('fork', '--count', '200', origin) as forker:
        told = forker.read_until(b'\n')
        forker.send_signal(signal.SIGINT)
        result = forker.finish()
    told = {*told.decode().split('\n')[:-1], *result.out.split('\n')}
    assert result.code == -signal.SIGINT and len(told) < 200, result
    # Those that were not handed over yet are going; one may have been just between that and its line.
    caylib.wait_until(lambda: len(set(cay('ls', '-q', check=True).out.split()) - before - told) <= 1, what='the end of the rest')
    assert told & set(cay('ls', '-q', check=True).out.split()), result
    caylib.remove_all(cay)


def test_what_forks_did_is_kept_where_it_cannot_be_compared(fresh_cay, tmp_path):
    cay, project = fresh_cay, tmp_path / 'p'
    project.mkdir()
    os.chmod(tmp_path, 0o755)
    ref = cay.create('--dir', f'{project}:/w')
    with cay.popen('explore', ref, '--count', '2', '--', 'sh', '-c', 'echo up; sleep 1; echo done > /tmp/f') as exploring:
        exploring.read_until(b'up')
        (start,) = [x for x in os.listdir(f'{cay.state}/layers') if x.startswith('0')]
        os.rename(f'{cay.state}/layers/{start}', f'{cay.state}/aside')
        _, err = exploring.communicate(timeout=120)
    os.rename(f'{cay.state}/aside', f'{cay.state}/layers/{start}')
    assert exploring.returncode != 0 and b'all forks are kept' in err
    forks = {x['id'] for x in cay.json('ls')} - {ref}
    assert len(forks) == 2
    for fork in forks:
        assert cay('exec', fork, '--', 'cat', '/tmp/f', check=True).out == 'done\n'
    cay('kill', ref, *forks, check=True)

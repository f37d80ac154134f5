# SPDX-License-Identifier: Apache-2.0
"""A sandbox that is not what it must be is destroyed before anything runs in it, and says why."""

import functools
import os
import shutil
import subprocess
import time
import tempfile

import caylib
import containlib
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.dirname(caylib.CAY)


@pytest.fixture
def programs(tmp_path):
    """A cay of its own, in whose place of cay-init something else can be put."""
    tmp_path.chmod(0o755)
    for name in ('cay', 'cay-warden', 'cay-init'):
        shutil.copy(os.path.join(PROGRAMS, name), tmp_path)
    return tmp_path


def put(programs, name, instead_of):
    """One with a fault (tests/faults) in the place of a real one."""
    shutil.copy(os.path.join(PROGRAMS, 'tests/faults', name), programs / instead_of)


def go(cay, programs, *args, code=0):
    done = subprocess.run([programs / 'cay', *args], env=cay.env, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120 * caylib.SLOWER)
    assert code is None or done.returncode == code, done
    return done


@functools.cache
def stand_in_program():
    with tempfile.TemporaryDirectory(prefix='cay-test-') as folder:
        program = os.path.join(folder, 'init')
        subprocess.run(['cc', '-static', '-O1', '-o', program, os.path.join(HERE, 'posture_init.c')], check=True)
        with open(program, 'rb') as f:
            return f.read()


def stand_in(programs, fault):
    """With the name of its fault written over the mark in it."""
    mark, name = b'<<the name of the fault>>', fault.encode()
    program = stand_in_program()
    assert program.count(mark) == 1 and len(name) <= len(mark)
    os.unlink(programs / 'cay-init')
    with open(programs / 'cay-init', 'wb', opener=lambda p, f: os.open(p, f, 0o755)) as f:
        f.write(program.replace(mark, name.ljust(len(mark), b'\0')))


def run(cay, programs):
    return go(cay, programs, 'run', '--', 'true', code=None)


def create(cay, programs, fault):
    """With the stand-in, which can run nothing."""
    stand_in(programs, fault)
    return go(cay, programs, 'create', code=None)


def test_control(cay, programs):
    assert run(cay, programs).returncode == 0


def test_control_of_the_stand_in(cay, programs):
    """It passes the looks; that it does not speak the protocol is found later."""
    result = create(cay, programs, 'none')
    assert 'not what it must be' not in result.stderr, result.stderr
    if result.returncode == 0:
        cay('kill', result.stdout.strip(), check=True)
    result = run(cay, programs)
    assert result.returncode != 0 and 'not what it must be' not in result.stderr, result


@pytest.mark.parametrize('fault,what,found', [
    ('bounding', 'CapBnd: expected 00000000a00405fb', 'found 0'),
    ('descriptor', 'descriptor 4: expected none', '/etc/passwd'),
    ('no_new_privs', 'NoNewPrivs: expected 0', 'found 1'),
    ('no_list', 'Seccomp: expected 2', 'found 0'),
    ('two_lists', 'Seccomp_filters: expected', 'found'),
    ('umask', 'Umask: expected 0022', 'found 0000'),
    ('directory', "cwd: expected the sandbox's root", '/tmp'),
    ('core', 'Max core file size: expected 1', 'found 0'),
])
def test_a_difference_is_refused_and_named(cay, programs, fault, what, found):
    result = create(cay, programs, fault)
    assert result.returncode == 1 and result.stdout == ''
    assert 'the sandbox is not what it must be' in result.stderr
    assert what in result.stderr and found in result.stderr, result.stderr


@pytest.mark.parametrize('trace', ['full', 'calls'])
@pytest.mark.parametrize('fault,what', [('init-wrong-umask', 'Umask: expected 0022, found 0000'), ('init-leaks', 'etc/passwd')])
def test_the_command_of_a_run_waits_for_all_looks(cay, programs, fault, what, trace):
    """It is made ready while init is looked at, and must not run where that is not what it must be."""
    put(programs, fault, 'cay-init')
    result = go(cay, programs, 'run', '--trace', trace, '--', 'echo', 'it ran', code=None)
    assert result.returncode == 125 and result.stdout == '', result
    assert 'the sandbox is not what it must be' in result.stderr and what in result.stderr, result.stderr


@pytest.fixture
def session_key():
    """A key in the keyring of our own session."""
    key = containlib.must(containlib.libc.syscall(containlib.SYS_add_key, b'user', b'cay-posture', b'secret', 6,
                                                  containlib.SESSION_KEYRING), 'add_key')
    yield
    containlib.libc.syscall(containlib.SYS_keyctl, containlib.KEYCTL_UNLINK, key, containlib.SESSION_KEYRING)


def test_the_session_keyring_of_the_host_stays_outside(cay, programs, session_key):
    """Not even init, before any filter, finds a key of ours: from outside nobody could tell."""
    result = create(cay, programs, 'keyring')
    assert 'init ended' not in result.stderr, result.stderr
    if result.returncode == 0:
        cay('kill', result.stdout.strip(), check=True)
    assert subprocess.run([programs / 'cay-init'], check=False).returncode == 2  # outside it does


@pytest.mark.parametrize('command,code', [(('create',), 1), (('run', '--', 'true'), 125)])
def test_an_init_that_ends_is_said_so(cay, programs, command, code):
    stand_in(programs, 'end')
    result = go(cay, programs, *command, code=code)
    assert 'init ended while the sandbox was being built' in result.stderr, result.stderr


def test_the_refusal_is_in_the_trace(fresh_cay, programs):
    fresh_cay.env['CAY_KEEP_ENDED'] = '10'
    put(programs, 'init-wrong-umask', 'cay-init')
    assert run(fresh_cay, programs).returncode == 125
    traces = [os.path.join(d, n) for d, _, names in os.walk(fresh_cay.state) for n in names if n.endswith('.jsonl')]
    assert len(traces) == 1
    text = caylib.read_text(traces[0])
    assert '"sandbox.refused"' in text and 'Umask: expected 0022' in text


# --- the first command ---

@pytest.mark.parametrize('trace', ['full', 'calls'])
@pytest.mark.parametrize('profile', ['dev', 'locked'])
def test_a_good_first_command_passes(cay, trace, profile):
    assert cay('run', '--trace', trace, '--profile', profile, '--', 'echo', 'fine', check=True).out == 'fine\n'


@pytest.mark.parametrize('trace', ['full', 'calls'])
def test_a_first_command_with_other_walls_never_runs(cay, programs, trace):
    put(programs, 'init-wrong-walls', 'cay-init')
    result = go(cay, programs, 'run', '--trace', trace, '--', 'echo', 'it ran', code=None)
    assert result.returncode == 125 and result.stdout == '', result
    assert 'the first command is not what it must be: Seccomp' in result.stderr, result.stderr


def test_the_first_command_is_one_that_came_so_far(cay):
    """A call that fails before its exec does not use up the look; with several at once each is looked at."""
    ref = cay.create('--trace', 'calls')
    assert cay('exec', '-u', 'nobody-of-this-name', ref, '--', 'true').code != 0
    calls = [cay.popen('exec', ref, '--', 'sh', '-c', f'echo {i}') for i in range(4)]
    assert [c.finish().out for c in calls] == [f'{i}\n' for i in range(4)]
    cay('kill', ref, check=True)


# --- the next generation ---

def test_a_next_generation_that_is_not_what_it_must_be_is_not_entered(cay, programs):
    put(programs, 'warden-forgets-ro', 'cay-warden')
    ref = go(cay, programs, 'create').stdout.strip()
    go(cay, programs, 'exec', ref, '--', 'sh', '-c', 'echo one > /var/tmp/file')
    result = go(cay, programs, 'snapshot', ref, code=None)
    assert result.returncode != 0
    assert "mount on '/sys': expected ro" in result.stderr, result.stderr
    assert 'goes on as it was' in result.stderr
    assert go(cay, programs, 'exec', ref, '--', 'cat', '/var/tmp/file').stdout == 'one\n'
    go(cay, programs, 'kill', ref)


# --- a sealed layer ---

def layer_files(cay):
    """Path below its layer -> content, of all sealed files."""
    found = {}
    for top in ('layers', 'storage/layers'):
        for folder, _, names in os.walk(os.path.join(cay.state, top)):
            for name in names if '/work/' not in folder else ():  # overlayfs's own, just being removed
                path = os.path.join(folder, name)
                found['/'.join(os.path.relpath(path, os.path.join(cay.state, top)).split('/')[2:])] = caylib.read_text(path)
    return found


@pytest.fixture(params=['plain', 'storage'])
def place(request, fresh_cay):
    if request.param == 'storage' and caylib.why_no_storage():
        pytest.skip(caylib.why_no_storage())
    if request.param == 'storage':
        fresh_cay('setup', 'storage', '--size', '256M', check=True)
    yield fresh_cay
    caylib.remove_all(fresh_cay)
    if request.param == 'storage':
        fresh_cay('setup', 'storage', '--remove', check=True)


def test_who_has_kept_a_tree_cannot_write_to_a_sealed_layer(place, programs):
    put(programs, 'init-keeps-tree', 'cay-init')
    ref = go(place, programs, 'create').stdout.strip()
    go(place, programs, 'exec', ref, '--', 'sh', '-c', 'echo one > /var/tmp/file')
    warden = place.warden(ref)
    go(place, programs, 'snapshot', ref)
    # Sealing is nobody's to wait for; it is done when no child is left but the one that waits for the next switch.
    for _ in range(3):
        caylib.wait_until(lambda: len({p for p, (parent, state, name) in caylib.processes().items()
                                       if parent == warden and name == 'cay-warden' and state != 'Z'}) <= 1, what='sealing')
        time.sleep(0.3)
    before = layer_files(place)
    assert before.get('var/tmp/file') == 'one\n'
    go(place, programs, 'exec', ref, '--', 'true')  # before which init tries
    assert layer_files(place) == before


def test_who_has_kept_an_open_file_ends_with_the_sandbox(place, programs):
    put(programs, 'init-keeps-file', 'cay-init')
    ref = go(place, programs, 'create').stdout.strip()
    warden = place.warden(ref)
    go(place, programs, 'exec', ref, '--', 'sh', '-c', 'echo one > /var/tmp/file')
    go(place, programs, 'snapshot', ref)
    caylib.wait_until(lambda: caylib.processes().get(warden, 'ZZZ')[1] == 'Z', what='the end of the sandbox')
    assert layer_files(place).get('var/tmp/file') == 'one\n'
    refused = [e for e in place.events(ref) if e['kind'] == 'sandbox.refused']
    assert 'still writes to files that were sealed' in refused[0]['detail']
    result = go(place, programs, 'exec', ref, '--', 'true', code=None)
    assert result.returncode != 0
    assert 'late' not in ''.join(layer_files(place).values())


def test_a_command_that_goes_on_does_not_keep_files_from_being_sealed(place, programs):
    """In a transaction it starts before they are; whoever has kept one open is found all the same."""
    put(programs, 'init-keeps-file', 'cay-init')
    ref = go(place, programs, 'create').stdout.strip()
    warden = place.warden(ref)
    go(place, programs, 'exec', ref, '--', 'sh', '-c', 'echo one > /var/tmp/file')
    result = go(place, programs, 'exec', '--tx', ref, '--', 'sleep', '60', code=None)
    assert result.returncode != 0
    caylib.wait_until(lambda: caylib.processes().get(warden, 'ZZZ')[1] == 'Z', what='the end of the sandbox')
    refused = [e for e in place.events(ref) if e['kind'] == 'sandbox.refused']
    assert 'still writes to files that were sealed' in refused[0]['detail']

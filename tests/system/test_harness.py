# SPDX-License-Identifier: Apache-2.0
"""The harness itself: what would be left behind is found, and what hangs is ended."""

import os
import signal
import sqlite3
import subprocess

import caylib
import conftest
import pytest
import statelib


def new(cay, before):
    return caylib.everything([cay]) - before


def test_a_left_process_is_found_even_if_it_hides(cay):
    before = caylib.everything([cay])
    subprocess.run(['sh', '-c', 'setsid sh -c "sleep 613 & exec true" &'], check=True)
    pid = caylib.wait_until(lambda: [t for t in new(cay, before) if '(sleep)' in t], what='the sleeper')[0].split()[1]
    os.kill(int(pid), signal.SIGKILL)
    caylib.wait_until(lambda: not new(cay, before), what='its end')


def test_a_left_file_lock_and_row_are_found(cay):
    before = caylib.everything([cay])
    ref = cay.create()
    found = new(cay, before)
    for part in (f'sandboxes/{ref}', f'locks/{ref}', 'row of sandboxes', '(cay-warden)', '(cay-init)'):
        assert any(part in t for t in found), (part, found)
    assert any('control group' in t for t in found) == caylib.ROOTFUL, found
    cay('kill', ref, check=True)
    caylib.wait_until(lambda: not new(cay, before), what='its end')


@pytest.mark.skipif(not caylib.ROOTFUL, reason='needs root to mount')
def test_a_left_mount_is_found(cay):
    before = caylib.everything([cay])
    path = os.path.join(cay.state, 'sandboxes')
    subprocess.run(['mount', '-t', 'tmpfs', 'cay-test', path], check=True)
    try:
        assert new(cay, before) == {f'mount {path}'}
    finally:
        subprocess.run(['umount', path], check=True)
    assert new(cay, before) == set()


def test_a_test_that_waits_without_end_is_ended(monkeypatch):
    """Also if it failed, and then waits for what it has started."""
    with monkeypatch.context() as short, pytest.raises(pytest.fail.Exception, match='no end within'):
        short.setattr(conftest, 'LIMIT_S', 0.1)
        short.setattr(conftest, 'LIMIT_AGAIN_S', 0.1)
        with conftest.limited(), subprocess.Popen(['sleep', '613']) as sleeper:
            raise AssertionError('and the end of the block waits for the sleeper')
    sleeper.kill()
    sleeper.wait()


# --- what tests of crashes look at (statelib.py) ---

@pytest.fixture
def pair(fresh_cay):
    """A cay, and two sandboxes, of which one has a snapshot; everything belongs to one of them."""
    refs = [fresh_cay.create(), fresh_cay.create()]
    fresh_cay('exec', refs[0], '--', 'sh', '-c', 'mkdir /tmp/t; echo one > /tmp/t/f', check=True)
    fresh_cay('snapshot', refs[0], '--name', 'one', check=True)
    statelib.settle(fresh_cay)
    yield fresh_cay, *refs
    statelib.end(fresh_cay)


def change_rows(cay, *statements):
    db = sqlite3.connect(os.path.join(cay.state, 'catalog.db'), timeout=120)
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


def refuses(cay, match, group=None):
    with pytest.raises(AssertionError, match=match):
        statelib.check_belongings(cay, group)


def test_what_belongs_to_no_sandbox_is_found(pair):
    cay, one, _ = pair
    for path in ('stray', f'sandboxes/{one}/stray', 'locks/abcdefghjkmn', 'ready/kind'):
        os.makedirs(os.path.join(cay.state, path, 'x'))
        refuses(cay, 'stray|abcdefghjkmn|nobody wants')
        subprocess.run(['rm', '-r', os.path.join(cay.state, path)], check=True)
    with subprocess.Popen(['sleep', '613']) as stray:
        refuses(cay, 'sleep')
        stray.kill()
    statelib.check_belongings(cay)


def test_rows_without_a_sandbox_are_found(pair):
    cay, _, _ = pair
    for table, column in (('operations', 'sandbox, kind, snapshot_kind'), ('uses', 'sandbox, layer'), ('recipes', 'id, body, template')):
        change_rows(cay, f"INSERT INTO {table}({column}) VALUES('stray', 1, 1)".replace(', 1, 1', ', 1' * column.count(',')))
        refuses(cay, 'stray')
        change_rows(cay, f"DELETE FROM {table} WHERE {column.split(',', 1)[0]} = 'stray'")
    statelib.check_belongings(cay)


def test_a_lost_row_or_layer_is_found(pair):
    cay, _, _ = pair
    (layer,) = [r[0] for r in statelib.rows(cay, "SELECT top FROM snapshots WHERE name = 'one'")]
    where = os.path.join(cay.state, 'layers', layer)
    os.rename(where, f'{cay.state}/away')
    with pytest.raises(AssertionError):
        statelib.check_invariants(cay)
    os.rename(f'{cay.state}/away', where)
    (row,) = statelib.rows(cay, f"SELECT id, level, created_ns FROM layers WHERE id = '{layer}'")
    os.rename(where, f'{cay.state}/away')  # or gc would take it for a leftover
    change_rows(cay, f"DELETE FROM layers WHERE id = '{layer}'")
    with pytest.raises(AssertionError):
        statelib.check_invariants(cay)
    change_rows(cay, f'INSERT INTO layers(id, level, created_ns) VALUES{row}')
    os.rename(f'{cay.state}/away', where)
    statelib.check_invariants(cay)


def test_a_changed_byte_time_or_mode_in_a_layer_is_found(pair):
    cay, _, _ = pair
    (layer,) = [r[0] for r in statelib.rows(cay, "SELECT top FROM snapshots WHERE name = 'one'")]
    path = os.path.join(cay.state, 'layers', layer, '0/tmp/t/f')
    before, st = statelib.tree(cay, 'one'), os.stat(path)

    def was(text=b'one\n', mode=st.st_mode, late=0):
        with open(path, 'r+b') as f:
            f.write(text)
        os.chmod(path, mode)
        os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns + late))
        return statelib.tree(cay, 'one') == before
    assert was()
    assert not was(text=b'onf\n')
    assert not was(mode=st.st_mode ^ 0o040)
    assert not was(late=1)
    assert was()


@pytest.mark.skipif(not caylib.ROOTFUL, reason='has groups and ranges of uids')
def test_a_group_or_a_range_of_uids_of_two_is_found(pair):
    cay, one, two = pair
    with statelib.own_group() as group:
        third = cay.create()
        cay('kill', one, two, check=True)
        statelib.until_it_holds(lambda: statelib.check_belongings(cay, group))
        os.mkdir(f'{group}/cay-abcdefghjkmn')
        refuses(cay, 'abcdefghjkmn', group)
        os.rmdir(f'{group}/cay-abcdefghjkmn')
        (slot,) = [r[0] for r in statelib.rows(cay, 'SELECT uid_slot FROM sandboxes')]
        change_rows(cay, 'UPDATE sandboxes SET uid_slot = uid_slot + 1')
        refuses(cay, f'{slot}')
        change_rows(cay, 'UPDATE sandboxes SET uid_slot = uid_slot - 1')
        with subprocess.Popen(['sleep', '613'], user=statelib.UID_BASE + slot * statelib.UID_MANY + 7) as stray:
            known = caylib.processes()
            live = statelib.inits(cay)
            with pytest.raises(AssertionError, match=str(stray.pid)):
                statelib.check_uids(cay, live, known, statelib.owners(live, known))
            stray.kill()
        statelib.check_belongings(cay, group)
        cay('kill', third, check=True)


@pytest.mark.skipif(not caylib.ROOTFUL, reason='a user may not look into what is closed even to itself')
def test_a_namespace_or_a_file_system_of_two_is_found(pair):
    """A process of the one that has the other's: as if a warden had taken the wrong one."""
    cay, one, two = pair
    live = statelib.inits(cay)
    whose = statelib.owners(live, caylib.processes())
    statelib.check_spaces(live, whose)
    for kind in ('net', 'mnt'):
        fd = os.open(f'/proc/{live[one]}/ns/{kind}', os.O_RDONLY)
        with subprocess.Popen(['sleep', '613'], pass_fds=[fd]) as stray:
            os.close(fd)
            statelib.check_spaces(live, {**whose, stray.pid: one})
            with pytest.raises(AssertionError, match=f'{kind}:'):
                statelib.check_spaces(live, {**whose, stray.pid: two})
            stray.kill()
    with cay.popen('exec', one, '--', 'sh', '-c', 'echo up; sleep 100') as running:
        running.read_until(b'up')
        (inside,) = [p for p, (parent, _, name) in caylib.processes().items() if parent == live[one] and name == 'sh']
        assert statelib.overlays(inside) and statelib.overlays(inside) == statelib.overlays(live[one])
        assert not statelib.overlays(inside) & statelib.overlays(live[two])
        cay('kill', one, check=True)
        running.finish()

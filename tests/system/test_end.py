# SPDX-License-Identifier: Apache-2.0
"""Ends that nobody asked cay for: a creator that is killed, a warden that is told to end."""

import os
import signal
import sqlite3
import time

import pytest
from caylib import SLOWER, processes, wait_until


def ids(cay):
    return [box['id'] for box in cay.json('ls', '--all')]


def block_after_row(cay, creator):
    """Take the catalog for ourselves once a sandbox is in it that is not handed over yet. None: it went too fast."""
    while creator.poll() is None:
        db = None
        try:
            db = sqlite3.connect(f'file:{cay.state}/catalog.db?mode=rw', uri=True, timeout=5, isolation_level=None)
            db.execute('BEGIN IMMEDIATE')
            if db.execute("SELECT 1 FROM sandboxes WHERE state = 'creating'").fetchone():
                return db
        except sqlite3.OperationalError:  # not made yet
            pass
        if db:
            db.close()
        time.sleep(0.0005)
    return None


def has_init(pid):
    """Whether a warden of this process has an init."""
    found = processes()
    return any(name == 'cay-init' and found.get(parent, (0,))[0] == pid for parent, _, name in found.values())


@pytest.mark.parametrize('sig', [signal.SIGKILL, signal.SIGINT])
def test_a_creator_that_dies_while_it_builds_a_template_leaves_no_directory(empty_cay, sig):
    """Of a first run, which takes a second: the warden has not been told yet what to build."""
    boxes = os.path.join(empty_cay.state, 'sandboxes')
    with empty_cay.popen('create') as creator:
        wait_until(lambda: os.path.isdir(boxes) and os.listdir(boxes), what='a directory')
        wait_until(lambda: any(name == 'cay-warden' and parent == creator.pid for parent, _, name in processes().values()),
                   what='a warden')
        creator.send_signal(sig)
        creator.wait(10 * SLOWER)
        assert creator.stdout.read() == b'', 'the template was built too fast'
    wait_until(lambda: os.listdir(boxes) == [] and os.listdir(os.path.join(empty_cay.state, 'locks')) == [],
               what='nothing left')


@pytest.mark.parametrize('sig', [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_creator_that_dies_before_it_hands_over_leaves_nothing(fresh_cay, sig):
    cay = fresh_cay
    cay('run', '--', 'true', check=True)
    for _ in range(20):
        with cay.popen('create') as creator:
            db = block_after_row(cay, creator)
            if not db:
                cay('kill', creator.stdout.read().decode().strip(), check=True)
                continue
            # Its warden is ready, or about to be; the creator waits for us.
            wait_until(lambda: has_init(creator.pid), what='init')
            creator.send_signal(sig)
            creator.wait(10 * SLOWER)
            assert creator.stdout.read() == b''
            db.execute('ROLLBACK')
            db.close()
            break
    else:
        pytest.fail('the row was never seen in time')
    wait_until(lambda: ids(cay) == [], what='an empty list')


@pytest.mark.parametrize('busy', [False, True])
def test_a_warden_that_is_told_to_end_ends_its_sandbox_and_keeps_its_files(fresh_cay, busy):
    cay = fresh_cay
    box = cay.create('--name', 'told')
    client = cay.popen('exec', box, '--', 'sh', '-c', 'echo up; sleep 1000') if busy else None
    if busy:
        client.read_until(b'up')
    os.kill(cay.warden(box), signal.SIGTERM)
    wait_until(lambda: [b['state'] for b in cay.json('ls', '--all')] == ['lost'], what='the end')
    if busy:
        with client:
            assert client.finish().code != 0
    last = cay.events(box)[-1]
    assert last['kind'] == 'sandbox.end' and last['reason'] == 'its warden was told to end'
    cay('kill', box, check=True)
    assert ids(cay) == []


def test_a_run_whose_warden_is_told_to_end_ends(cay):
    with cay.popen('run', '--', 'sh', '-c', 'echo up; sleep 1000') as run:
        run.read_until(b'up')
        warden = next(pid for pid, (parent, _, name) in processes().items()
                      if parent == run.pid and name == 'cay-warden')
        os.kill(warden, signal.SIGTERM)
        assert run.finish().code == 137  # of the command, which was killed

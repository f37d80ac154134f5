# SPDX-License-Identifier: Apache-2.0
"""Many at once, and many in a row: nothing breaks, nothing grows."""

import os
import sqlite3
import threading

import pytest

import caylib

pytestmark = pytest.mark.alone


def integrity(cay):
    db = sqlite3.connect(os.path.join(cay.state, 'catalog.db'))
    try:
        return db.execute('PRAGMA integrity_check').fetchone()[0]
    finally:
        db.close()


def test_thirty_runs_at_once_all_succeed(cay):
    running = [cay.popen('run', '--', 'sh', '-c', f'echo {i}; exit {i}') for i in range(30)]
    results = []
    for p in running:
        with p:
            results.append(p.finish(120))
    assert [(r.code, r.out, r.err) for r in results] == [(i, f'{i}\n', '') for i in range(30)]
    assert integrity(cay) == 'ok'


def test_thirty_first_runs_at_once_share_one_template(empty_cay):
    running = [empty_cay.popen('run', '--', 'true') for _ in range(30)]
    for p in running:
        with p:
            r = p.finish(120)
            assert (r.code, r.err) == (0, ''), r
    assert len(os.listdir(os.path.join(empty_cay.state, 'templates/host'))) == 1
    assert integrity(empty_cay) == 'ok'


def test_eight_loops_of_create_exec_kill_at_once(cay):
    failures = []

    def loop(n):
        for i in range(6):
            name = f'loop-{n}-{i}'
            for args in (['create', '--name', name], ['exec', name, '--', 'true'], ['ls'], ['show', name], ['kill', name]):
                r = cay(*args, timeout=120)
                if r.code != 0:
                    failures.append(r)
                    return

    threads = [threading.Thread(target=loop, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []
    assert integrity(cay) == 'ok'
    assert cay('ls', '-q', '--all').out == ''


def test_of_many_that_want_one_name_one_gets_it(cay):
    running = [cay.popen('create', '--name', 'prize') for _ in range(12)]
    results = []
    for p in running:
        with p:
            results.append(p.finish(60))
    winners = [r.out.strip() for r in results if r.code == 0]
    assert len(winners) == 1, results
    assert all(r.code == 0 or winners[0] in r.err for r in results), results
    cay('kill', 'prize', check=True)


def test_of_many_that_kill_one_nobody_breaks(cay):
    ref = cay.create()
    running = [cay.popen('kill', ref) for _ in range(8)]
    results = []
    for p in running:
        with p:
            results.append(p.finish(60))
    assert any(r.code == 0 for r in results), results
    assert all(r.code in (0, 5) for r in results), results


def count_files(cay):
    skip = os.path.join(cay.state, 'templates')
    return sum(len(d) + len(f) for folder, d, f in os.walk(cay.state) if not folder.startswith((skip, os.path.join(cay.state, 'ended'))))


def test_a_hundred_and_fifty_cycles_leave_nothing(fresh_cay):
    env = {'CAY_KEEP_ENDED': '4'}

    def cycle():
        ref = fresh_cay('create', env=env, check=True).out.strip()
        fresh_cay('exec', ref, '--', 'sh', '-c', 'echo x > /tmp/f; sleep 600 > /dev/null 2>&1 &', env=env, check=True)
        fresh_cay('kill', ref, env=env, check=True)

    def look():
        caylib.leftovers([fresh_cay], set())
        return {
            'processes': sorted(caylib.descendants(fresh_cay.pids)),
            'mounts': len(caylib.host_mounts(fresh_cay)),
            'groups': sorted(caylib.control_groups([fresh_cay])),
            'files': count_files(fresh_cay),
            'rows': sorted(caylib.rows(fresh_cay.state)),
            'descriptors': len(os.listdir('/proc/self/fd')),
        }

    for _ in range(3):
        cycle()
    before = look()
    for _ in range(150):
        cycle()
    assert look() == before
    assert len(os.listdir(os.path.join(fresh_cay.state, 'ended'))) <= 5
    assert integrity(fresh_cay) == 'ok'

# SPDX-License-Identifier: Apache-2.0
"""What must hold of a state directory after whatever happened, for tests of crashes and of failing disks."""

import os
import sqlite3

import caylib
from caylib import wait_until


def sh(cay, ref, script):
    return cay('exec', ref, '--', 'sh', '-c', script, check=True).out


def content(cay, snapshot):
    fork = cay('fork', snapshot, check=True).out.strip()
    text = sh(cay, fork, 'cat /tmp/f')
    cay('kill', fork, check=True)
    return text


def rows(cay, sql):
    db = sqlite3.connect(os.path.join(cay.state, 'catalog.db'), timeout=30)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def check_invariants(cay):
    """No operation is open, every layer has a row and every row its files, and something that needs it."""
    cay('gc', check=True)
    assert rows(cay, 'SELECT * FROM operations') == []
    known = {r[0] for r in rows(cay, 'SELECT id FROM layers')}
    pool = os.path.join(cay.state, 'pool')
    has_pool = os.path.exists(pool)
    there = [x for d in ['layers', 'pool/layers'][:1 + has_pool] if os.path.exists(os.path.join(cay.state, d))
             for x in os.listdir(os.path.join(cay.state, d)) if not x.startswith('.')]
    assert sorted(known) == sorted(there)
    needed = {r[0] for r in rows(cay, 'SELECT parent FROM layers UNION SELECT top FROM sandboxes UNION'
                                      ' SELECT top FROM snapshots UNION SELECT layer FROM uses')}
    assert known <= needed
    boxes = {r[0] for r in rows(cay, 'SELECT id FROM sandboxes')}
    assert boxes == set(os.listdir(os.path.join(cay.state, 'sandboxes')))
    if has_pool:
        assert boxes == {x for x in os.listdir(pool) if not x.startswith('.') and x != 'layers'}


def in_order(cay):
    """The same, of what may just be ending."""
    try:
        check_invariants(cay)
    except AssertionError as problem:
        print(problem)
        return False
    return True


def end(cay):
    cay('kill', '--all', '--yes', check=True)
    left = [r[0] for r in rows(cay, 'SELECT id FROM snapshots')]
    if left:
        cay('snapshot', 'rm', *left, check=True)
    wait_until(lambda: cay('gc', check=True) and not rows(cay, 'SELECT id FROM layers'), what='no layers')


def ours(cay):
    """Commands, wardens, gateways, inits and whatever else works for this state directory: pid -> name."""
    known = caylib.processes()
    roots = set()
    for pid in known:
        try:
            with open(f'/proc/{pid}/environ', 'rb') as f:
                if f'CAY_STATE={cay.state}'.encode() in f.read().split(b'\0'):
                    roots.add(pid)
        except OSError:
            continue
    grew = True
    while grew:
        more = {p for p, (parent, _, _) in known.items() if parent in roots} - roots
        grew = bool(more)
        roots |= more
    return {p: known[p][2] for p in roots}


def check_belongings(cay):
    """What the kernel has of sandboxes belongs to one that lives, and each range of uids to one at most."""
    live = {x['id'] for x in cay.json('ls', '--all') if x['state'] in ('running', 'paused')}
    for text in caylib.control_groups([cay]):
        assert text.split('/cay-')[1].split('/')[0] in live, text
    for text in caylib.mounts(cay.state):
        assert text == f'mount {cay.state}/pool', text
    slots = [r[0] for r in rows(cay, 'SELECT uid_slot FROM sandboxes WHERE uid_slot IS NOT NULL')]
    assert len(slots) == len(set(slots))
    for pid, name in ours(cay).items():
        spaces = os.path.exists(f'/proc/{pid}/ns/net')
        assert live or not spaces or name in ('cay', 'cay-settle'), (pid, name)
    assert set(os.listdir(os.path.join(cay.state, 'locks'))) <= {r[0] for r in rows(cay, 'SELECT id FROM sandboxes')}


def settled(cay):
    """A process that was killed takes its helpers along a moment later; what stays wrong is wrong."""
    for box in cay.json('ls', '--all'):
        cay('snapshot', box['id'])  # settles what a command has left, where it lives
    try:
        check_invariants(cay)
        check_belongings(cay)
    except AssertionError as problem:
        print(problem, rows(cay, 'SELECT * FROM operations'), rows(cay, 'SELECT id, state, top FROM sandboxes'),
              [cay('snapshot', box['id']).err for box in cay.json('ls', '--all')])
        return False
    return True

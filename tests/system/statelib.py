# SPDX-License-Identifier: Apache-2.0
"""What must hold of a state directory after whatever happened, for tests of crashes and of failing disks."""

import contextlib
import os
import re
import sqlite3
import time

import caylib
from caylib import wait_until
from fingerprint import fingerprint

SPACES = ('cgroup', 'ipc', 'mnt', 'net', 'pid', 'user', 'uts')
UID_BASE, UID_MANY = 0x70000000, 65536
TOP = {'applying', 'catalog.db', 'catalog.db-shm', 'catalog.db-wal', 'ended', 'layers', 'locks', 'storage', 'storage.img', 'sandboxes', 'starts',
       'templates', 'uids', 'ready', 'failpoint', 'failpoints', 'wanted'}
INSIDE = {'applied', 'base', 'files.index', 'old', 'op', 'sock', 'stage', 'top', 'trace.jsonl', 'upper', 'work',
          'end.json', 'end.json.new', 'policy', 'policy.new', 'files.index.new', 'top.new'}  # what was under way: the next one overwrites it


def sh(cay, ref, script):
    return cay('exec', ref, '--', 'sh', '-c', script, check=True).out


def content(cay, snapshot):
    fork = cay('fork', snapshot, check=True).out.strip()
    text = sh(cay, fork, 'cat /tmp/f')
    cay('kill', fork, check=True)
    return text


def tree(cay, snapshot):
    """Of a snapshot, in every detail."""
    fork = cay('fork', snapshot, check=True).out.strip()
    text = fingerprint(cay, fork, '/tmp/t')
    cay('kill', fork, check=True)
    return text


def rows(cay, sql):
    db = sqlite3.connect(os.path.join(cay.state, 'catalog.db'), timeout=120)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def check_invariants(cay):
    """No operation is open, every layer has a row and every row its files, and something that needs it."""
    cay('gc', check=True)
    assert rows(cay, 'SELECT * FROM operations') == []
    known = {r[0] for r in rows(cay, 'SELECT id FROM layers')}
    pool = os.path.join(cay.state, 'storage')
    has_pool = os.path.exists(pool)
    there = [x for d in ['layers', 'storage/layers'][:1 + has_pool] if os.path.exists(os.path.join(cay.state, d))
             for x in os.listdir(os.path.join(cay.state, d)) if not x.startswith('.')]
    assert sorted(known) == sorted(there)
    needed = {r[0] for r in rows(cay, 'SELECT parent FROM layers UNION SELECT top FROM sandboxes UNION'
                                      ' SELECT top FROM snapshots UNION SELECT layer FROM uses')}
    assert known == needed - {None}
    boxes = {r[0] for r in rows(cay, 'SELECT id FROM sandboxes')}
    assert boxes == set(os.listdir(os.path.join(cay.state, 'sandboxes')))
    if has_pool:
        assert boxes == {x for x in os.listdir(pool) if not x.startswith('.') and x != 'layers'}


def until_it_holds(check, timeout=10):
    """Of what may just be ending: no assertion fails, or the last one is raised."""
    stop = time.monotonic() + timeout * caylib.SLOWER
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > stop:
                raise
        time.sleep(0.01)


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

KEEPER_S = 2


def parts(path):
    return {x for x in caylib.list_dir(path) if not x.startswith('.')}


def below(pid, known):
    """A process and all that come from it."""
    found, grew = {pid}, True
    while grew:
        more = {p for p, (parent, _, _) in known.items() if parent in found} - found
        grew = bool(more)
        found |= more
    return found


def inits(cay):
    """Sandbox -> pid of its init, of those that live."""
    live = [x['id'] for x in cay.json('ls', '--all') if x['state'] in ('running', 'paused')]
    found = {ref: cay.json('show', ref)[0].get('init_pid') for ref in live}
    assert None not in found.values(), f'one of them has just ended: {found}'  # who waits for it looks again
    return found


def owners(live, known):
    """pid -> sandbox, of every process that works in or for one that lives."""
    return {pid: ref for ref, init in live.items() if init in known for pid in below(known[init][0], known)}


def links(pid):
    """The namespaces that a process is in or holds, but for those that are ours as well."""
    found = set()
    for folder in ('ns', 'fd'):
        for name in caylib.list_dir(f'/proc/{pid}/{folder}'):
            try:
                target = os.readlink(f'/proc/{pid}/{folder}/{name}')
            except OSError:
                continue
            if target.split(':')[0] in SPACES:
                found.add(target)
    return found - {os.readlink(f'/proc/self/ns/{kind}') for kind in SPACES}


def overlays(pid):
    return {'overlay ' + line.split()[2] for line in caylib.read_text(f'/proc/{pid}/mountinfo').splitlines() if ' - overlay ' in line}


def check_processes(cay, live):
    """Each works for one that lives."""
    end = time.monotonic() + KEEPER_S
    while True:
        caylib.descendants(cay.pids)  # orphans that have ended are reaped
        known = {pid: known for pid, known in caylib.processes().items() if known[1] != 'Z'}
        whose = owners(live, known)
        strays = {pid: known[pid] for pid in caylib.family(known) - cay.pids - set(whose)}
        if not strays or time.monotonic() > end:
            break
        time.sleep(0.05)  # a keeper that finds nothing to keep ends by itself
    assert not strays
    check_spaces(live, whose)
    return known, whose


def check_spaces(live, whose):
    """A namespace and a mounted overlay are one sandbox's and no other's."""
    seen = {}
    for pid, ref in whose.items():
        for thing in links(pid) | overlays(pid):
            assert seen.setdefault(thing, ref) == ref, (thing, ref)
    for ref in live if caylib.ROOTFUL else ():  # a user may not look into what is closed even to itself
        assert any(seen[x] == ref for x in seen if x.startswith('net:')), f'{ref} has no network namespace'
        assert any(seen[x] == ref for x in seen if x.startswith('overlay')), f'{ref} has no file system'


def check_uids(cay, live, known, whose):
    """A range of uids is that of one row, held by one that lives, and used by no process but its own."""
    slots = dict(rows(cay, 'SELECT id, uid_slot FROM sandboxes WHERE uid_slot IS NOT NULL'))
    assert len(slots) == len(set(slots.values()))
    if not caylib.ROOTFUL:
        assert not slots
        return
    inode = os.stat(os.path.join(cay.state, 'uids')).st_ino
    held = [int(line.split()[6]) for line in caylib.read_text('/proc/locks').splitlines() if f':{inode} ' in line]
    assert sorted(held) == sorted(slots[ref] for ref in live)
    for ref, init in live.items():
        assert caylib.read_text(f'/proc/{init}/uid_map').split()[1] == str(UID_BASE + slots[ref] * UID_MANY)
    bases = {UID_BASE + slot * UID_MANY: ref for ref, slot in slots.items()}
    for pid in caylib.family(known):
        uids = re.search(r'^Uid:(.*)$', caylib.read_text(f'/proc/{pid}/status'), re.M)
        for uid in map(int, uids.group(1).split() if uids else []):
            if uid >= UID_BASE:
                assert whose.get(pid) == bases.get(uid - uid % UID_MANY), (pid, uid)


def check_groups(cay, live, group):
    """Where all of ours are below one group, there is one for each that lives, and none besides."""
    for text in caylib.control_groups([cay]):
        assert text.split('/cay-')[1].split('/')[0] in live, text
    if group:
        assert {x for x in caylib.list_dir(group) if x.startswith('cay-')} == {f'cay-{ref}' for ref in live}


def check_belongings(cay, group=None):
    """
    What the kernel and the disk have of sandboxes belongs to exactly one that there is: processes, namespaces, mounts,
    control groups, ranges of uids, directories.
    """
    live = inits(cay)
    known, whose = check_processes(cay, live)
    check_uids(cay, live, known, whose)
    check_groups(cay, live, group)
    for text in caylib.mounts(cay.state):
        assert text == f'mount {cay.state}/storage', text
    boxes = {r[0] for r in rows(cay, 'SELECT id FROM sandboxes')}
    assert set(live) <= parts(f'{cay.state}/locks') <= boxes
    left = {x for x in os.listdir(cay.state) if not x.startswith('.doctor-')}  # goes with the next one, a minute later
    assert left <= TOP, left - TOP
    for ref in boxes:
        assert parts(f'{cay.state}/sandboxes/{ref}') <= INSIDE, parts(f'{cay.state}/sandboxes/{ref}') - INSIDE
    for kind in parts(f'{cay.state}/ready') - {'lock'}:
        assert not parts(f'{cay.state}/ready/{kind}'), 'a ready sandbox that nobody wants'
    for table, column in (('operations', 'sandbox'), ('uses', 'sandbox'), ('calls', 'sandbox')):
        assert {r[0] for r in rows(cay, f'SELECT {column} FROM {table}')} <= boxes, table
    assert {r[0] for r in rows(cay, 'SELECT id FROM recipes')} <= boxes | {r[0] for r in rows(cay, 'SELECT sandbox FROM snapshots')}
    assert {r[0] for r in rows(cay, 'SELECT parent FROM layers WHERE parent IS NOT NULL')} <= {r[0] for r in rows(cay, 'SELECT id FROM layers')}


@contextlib.contextmanager
def own_group():
    """A control group for us and all that we start, so that nobody else's is below it; None where that cannot be."""
    home = [x[3:] for x in caylib.read_text('/proc/self/cgroup').splitlines() if x.startswith('0::')]
    base = [x.split()[4] for x in caylib.read_text('/proc/self/mountinfo').splitlines() if ' - cgroup2 ' in x]
    if not caylib.ROOTFUL or caylib.GROUP_DIR or not home or not base:
        yield None
        return
    outer = base[0] + home[0].rstrip('/')
    inner = f'{outer}/crash-{os.getpid()}'
    os.mkdir(inner)
    enter(inner)
    try:
        yield inner
    finally:
        enter(outer)
        if os.path.exists(f'{inner}/cgroup.kill'):
            with open(f'{inner}/cgroup.kill', 'w', encoding='ascii') as f:
                f.write('1')
        wait_until(lambda: gone(inner), what='an empty group')


def gone(group):
    """What of a group can be removed is."""
    for folder, _, _ in os.walk(group, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    return not os.path.exists(group)


def enter(group):
    with open(f'{group}/cgroup.procs', 'w', encoding='ascii') as f:
        f.write(str(os.getpid()))


def settle(cay, group=None):
    """A process that was killed takes its helpers along a moment later; what stays wrong is wrong."""
    def check():
        for box in cay.json('ls', '--all'):
            cay('snapshot', box['id'])  # settles what a command has left, where it lives
        check_invariants(cay)
        check_belongings(cay, group)
    until_it_holds(check, 15)

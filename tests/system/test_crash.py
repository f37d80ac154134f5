# SPDX-License-Identifier: Apache-2.0
"""
Every durable step of a snapshot or rollback, with the process that comes to it killed there; and kill -9 of
random processes of ours under load. Afterwards all that was acknowledged is there, and nothing else is left.

Named places exist only in programs of their own (tests/crash), which lie below those that are tested.
"""

import collections
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time

import caylib
import proto
import pytest
from caylib import wait_until
from fingerprint import fingerprint
from statelib import check_invariants, content, end, ours, own_group, rows, settle, sh, tree
from test_attack_warden import field, frame, kinds_of

ROUNDS = int(os.environ.get('CAY_CRASH_ROUNDS', '12'))
SECONDS = float(os.environ.get('CAY_CRASH_SECONDS', '60'))
KNOWN_MAX = 40
IN_CLI = ['op.begun', 'op.switched', 'op.done']
IN_WARDEN = ['switch.moving', 'switch.moved', 'switch.renewed', 'switch.entered', 'switch.top', 'switch.renamed']
IN_COPY = ['copy.copied', 'copy.renamed']
IN_START = ['start.held', 'start.copied', 'start.synced', 'start.renamed', 'start.linking', 'start.set']
IN_LOST = ['lost.begun', 'lost.sealed', 'lost.moved']


@pytest.fixture
def crash_bin():
    """The path of a cay with failpoints."""
    return os.path.join(os.path.dirname(caylib.CAY), 'tests/crash/cay')


@pytest.fixture
def world(place, crash_bin, monkeypatch):
    monkeypatch.setattr(caylib, 'CAY', crash_bin)
    return place


def arm(cay, point):
    with open(os.path.join(cay.state, 'failpoint'), 'w', encoding='ascii') as f:
        f.write(point)


def armed(cay):
    return os.path.exists(os.path.join(cay.state, 'failpoint'))


@pytest.mark.by_turns
@pytest.mark.parametrize('what', ['snapshot', 'rollback'])
@pytest.mark.parametrize('point', IN_CLI + IN_WARDEN)
def test_death_at_each_step(world, point, what):
    cay = world
    ref = cay.create()
    sh(cay, ref, 'echo one > /tmp/f')
    one = cay('snapshot', ref, check=True).out.strip()
    sh(cay, ref, 'echo two > /tmp/f; touch /tmp/two')
    arm(cay, point)
    result = cay(what, ref)
    assert not armed(cay) and result.code != 0, result
    if point in IN_CLI:
        # The sandbox lives; the next operation puts the journal right.
        assert sh(cay, ref, 'cat /tmp/f') in (('two\n',) if what == 'snapshot' else ('one\n', 'two\n'))
        two = cay('snapshot', ref, check=True).out.strip()
        assert content(cay, two) == sh(cay, ref, 'cat /tmp/f')
        check_invariants(cay)
    else:
        if what == 'snapshot':  # the first who looks finds the files where they were left
            wait_until(lambda: cay('diff', ref).code == 0, what='dead')
            assert '/tmp/two' in cay('diff', ref, check=True).out
        wait_until(lambda: cay('gc', check=True) and cay.json('ls', '--all')[0]['state'] == 'lost', what='lost')
        check_invariants(cay)
        (lost,) = [s['id'] for s in cay.json('snapshots', ref) if s['kind'] == 'lost']
        assert content(cay, lost) in (('two\n',) if what == 'snapshot' else ('one\n', 'two\n'))
        for s in cay.json('snapshots', ref):
            assert content(cay, s['id']) in ('one\n', 'two\n')
    assert content(cay, one) == 'one\n'
    end(cay)


@pytest.mark.parametrize('point', ['switch.moving', 'switch.moved', 'switch.renewed'])
def test_death_in_a_rollback_leaves_all_or_nothing_of_what_was_changed(world, point, tmp_path):
    """Of every mount, also where it goes back to the layer that the sandbox lies above already."""
    cay = world
    os.chmod(tmp_path, 0o777)
    ref = cay.create('--dir', f'{tmp_path}:/w')
    sh(cay, ref, 'echo one > /tmp/f; echo one > /w/f')
    cay('snapshot', ref, check=True)
    sh(cay, ref, 'echo two > /tmp/f; echo two > /w/f')
    arm(cay, point)
    assert cay('rollback', ref).code != 0 and not armed(cay)
    wait_until(lambda: cay('gc', check=True) and cay.json('ls', '--all')[0]['state'] == 'lost', what='lost')
    (lost,) = [s['id'] for s in cay.json('snapshots', ref) if s['kind'] == 'lost']
    fork = cay('fork', lost, check=True).out.strip()
    assert sh(cay, fork, 'cat /tmp/f /w/f') in ('one\none\n', 'two\ntwo\n')
    check_invariants(cay)
    end(cay)


@pytest.mark.by_turns
@pytest.mark.parametrize('what', ['snapshot', 'create'])
@pytest.mark.parametrize('point', IN_START)
def test_death_while_a_directory_is_frozen(world, point, what, tmp_path):
    """What was half made is never used, and goes; the next one does it all."""
    if what == 'create' and point == 'start.set':
        pytest.skip('a new sandbox is made on its start')
    cay = world
    os.chmod(tmp_path, 0o777)
    (tmp_path / 'f').write_text('one')
    ref = cay.create('--dir', f'{tmp_path}:/w')
    sh(cay, ref, 'echo inside > /w/new')
    arm(cay, point)
    result = cay('snapshot', ref) if what == 'snapshot' else cay('create', '--copy', '--dir', f'{tmp_path}:/w')
    assert result.code != 0 and not armed(cay)
    snap = cay('snapshot', ref, check=True).out.strip()
    cay('gc', check=True)
    check_invariants(cay)
    (tmp_path / 'f').write_text('changed on the host')
    fork = cay('fork', snap, check=True).out.strip()
    assert sh(cay, fork, 'cat /w/f /w/new') == 'oneinside\n'
    assert sh(cay, ref, 'cat /w/f /w/new') == 'oneinside\n'
    cay('kill', '--all', '--yes', check=True)
    cay('snapshot', 'rm', snap, check=True)
    wait_until(lambda: cay('gc', check=True) and os.listdir(f'{cay.state}/layers') in ([], ['.lock']), what='no layers')
    assert rows(cay, 'SELECT * FROM snapshots') == [] and os.listdir(f'{cay.state}/starts') == []
    end(cay)


@pytest.mark.parametrize('point', IN_COPY)
def test_death_while_a_busy_sandbox_is_copied(world, point, mode):
    if mode == 'rootless':
        pytest.skip('needs a control group that can be frozen')
    cay = world
    ref = cay.create()
    sh(cay, ref, 'echo one > /tmp/f')
    with cay.popen('exec', ref, '--', 'sh', '-c', 'echo up; sleep 100') as running:
        running.read_until(b'up')
        arm(cay, point)
        assert cay('snapshot', ref).code != 0 and not armed(cay)
        running.finish()
    wait_until(lambda: cay('gc', check=True) and cay.json('ls', '--all')[0]['state'] == 'lost', what='lost')
    check_invariants(cay)
    for s in cay.json('snapshots', ref):
        assert content(cay, s['id']) == 'one\n'
    end(cay)


@pytest.mark.parametrize('point', IN_LOST)
def test_death_while_the_lost_are_kept(world, point):
    cay = world
    ref = cay.create()
    sh(cay, ref, 'echo one > /tmp/f')
    if point == 'lost.moved':
        arm(cay, 'switch.moved')
        assert cay('snapshot', ref).code != 0
    else:
        os.kill(cay.warden(ref), signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f'/proc/{ref}') and alive(cay, ref) is False, what='dead')
    arm(cay, point)
    assert cay('gc').code != 0 and not armed(cay)
    cay('gc', check=True)
    check_invariants(cay)
    (lost,) = [s['id'] for s in cay.json('snapshots', ref) if s['kind'] == 'lost']
    assert content(cay, lost) == 'one\n'
    end(cay)


def alive(cay, ref):
    return cay('exec', ref, '--', 'true').code == 0


@pytest.mark.parametrize('point', ['flatten.made', 'flatten.renamed'])
def test_death_while_layers_are_merged(world, point):
    cay = world
    ref = cay.create()
    snaps = []
    for i in range(13):
        sh(cay, ref, f'echo {i} > /tmp/f')
        snaps.append(cay('snapshot', ref, check=True).out.strip())
    wait_until(lambda: cay('tidy', check=True), what='quiet')
    for i in range(13, 22):
        sh(cay, ref, f'echo {i} > /tmp/f')
        snaps.append(cay('snapshot', ref, check=True).out.strip())
        if i == 14:
            arm(cay, point)
    wait_until(lambda: cay('tidy') and not armed(cay), what='the failpoint')
    cay('tidy', check=True)
    check_invariants(cay)
    for i in (0, 5, 8, 13, 21):
        assert content(cay, snaps[i]) == f'{i}\n'
    assert sh(cay, ref, 'cat /tmp/f') == '21\n'
    end(cay)


def test_who_dies_while_the_command_of_a_transaction_begins(world):
    """The command is sent once the transaction is in the catalog: before that nothing has run, and nothing is open."""
    cay = world
    ref = cay.create()
    sh(cay, ref, 'echo one > /tmp/f')
    arm(cay, 'op.switched')
    assert cay('exec', '--tx', ref, '--', 'sh', '-c', 'echo two > /tmp/f; sleep 60').code != 0 and not armed(cay)
    assert sh(cay, ref, 'cat /tmp/f') == 'one\n'
    assert 'no transaction' in cay('tx', 'abort', ref).err
    arm(cay, 'op.done')
    assert cay('exec', '--tx', ref, '--', 'sh', '-c', 'echo two > /tmp/f; sleep 60').code != 0 and not armed(cay)
    assert sh(cay, ref, 'cat /tmp/f') == 'one\n'
    cay('tx', 'abort', ref, check=True)
    assert 'no transaction' in cay('tx', 'abort', ref).err
    check_invariants(cay)
    end(cay)


def test_who_puts_a_rollback_right_frees_nothing_that_is_mounted(world):
    """It was never begun, but whoever goes back to the layer it lies above looks the same before and after."""
    cay = world
    ref = cay.create()
    snaps = []
    # What is merged in the background before the last one is let go of by that.
    while len(snaps) < 14 or not (cay('tidy', check=True) and rows(cay, 'SELECT * FROM uses')):
        sh(cay, ref, f'echo {len(snaps)} > /tmp/f{len(snaps)}; echo {len(snaps)} > /tmp/f')
        snaps.append(cay('snapshot', ref, check=True).out.strip())
        assert len(snaps) < 40
    cay('snapshot', 'rm', *snaps[:-1], check=True)
    mounted = [r[0] for r in rows(cay, 'SELECT layer FROM uses')]
    arm(cay, 'op.begun')
    assert cay('rollback', ref).code != 0 and not armed(cay)
    cay('diff', ref, check=True)
    assert rows(cay, 'SELECT * FROM operations') == []
    cay('gc', check=True)
    where = 'storage/layers' if os.path.exists(f'{cay.state}/storage') else 'layers'
    assert set(mounted) <= set(os.listdir(os.path.join(cay.state, where)))
    assert sh(cay, ref, 'cat /tmp/f?') == ''.join(f'{i}\n' for i in range(10))
    cay('rollback', ref, check=True)
    cay('gc', check=True)
    assert rows(cay, 'SELECT * FROM uses') == []
    check_invariants(cay)
    end(cay)


class Lease:
    """A client that has the sandbox's lease, or waits for it."""

    def __init__(self, cay, ref):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(f'{cay.state}/sandboxes/{ref}/sock')
        self.sock.settimeout(10 * caylib.SLOWER)
        self.sock.sendall(frame(proto.C_HELLO, field(proto.TAG_VERSION, proto.PROTO_CLIENT_VERSION), chan=0) +
                          frame(proto.C_LEASE, b''))
        self.data = b''

    def await_it(self):
        while proto.C_LEASED not in kinds_of(self.data):
            part = self.sock.recv(4096)
            assert part
            self.data += part

    def close(self):
        self.sock.close()


def waits_for_an_answer(pid):
    """It sleeps in epoll_wait, or epoll_pwait."""
    return caylib.read_text(f'/proc/{pid}/syscall').split()[0] in ('232', '281')


def test_what_was_broken_off_is_put_above_what_lies_there_now(fresh_cay, crash_bin, monkeypatch):
    """Also by who looked at the sandbox before others changed it: four clients wait for the lease in a row."""
    monkeypatch.setattr(caylib, 'CAY', crash_bin)
    cay = fresh_cay
    ref = cay.create()
    sh(cay, ref, 'echo one > /tmp/one')
    before = Lease(cay, ref)
    before.await_it()
    with contextlib.ExitStack() as stack:
        def queue():
            p = stack.enter_context(cay.popen('snapshot', ref))
            wait_until(lambda: waits_for_an_answer(p.pid), what='a client that waits')
            return p
        first = queue()
        between = Lease(cay, ref)
        broken, late = queue(), queue()
        before.close()
        between.await_it()
        assert first.wait(30) == 0
        sh(cay, ref, 'echo two > /tmp/f')
        arm(cay, 'op.switched')
        between.close()
        assert broken.wait(30) != 0 and not armed(cay)
        out, _ = late.communicate(timeout=120)
        assert late.returncode == 0
    fork = cay('fork', out.decode().strip(), check=True).out.strip()
    assert sh(cay, fork, 'cat /tmp/one /tmp/f') == 'one\ntwo\n'
    check_invariants(cay)
    end(cay)


# Names that the script below comes to, wherever it is; each commit of the catalog has two more.
IN_SCRIPT = IN_CLI + IN_WARDEN + [
    'create.dir', 'lock.named', 'remove.trace', 'remove.files', 'remove.lock', 'layers.freed', 'lost.removing',
    'apply.noted', 'apply.staged', 'apply.journal', 'apply.moving', 'apply.synced', 'apply.done', 'ready.unlisted']


class Script:
    """All that changes the state directory, once. What was acknowledged is in known."""

    def __init__(self, cay, host):
        self.cay, self.host, self.known, self.applied = cay, host, {}, None

    def snapshot(self, ref, script, text):
        """With what the script wrote to /tmp/f, where it did."""
        wrote = self.cay('exec', ref, '--', 'sh', '-c', script).code == 0
        made = self.cay('snapshot', ref)
        if made.code == 0 and wrote:
            self.known[made.out.strip()] = text
        return made.out.strip()

    def play(self):
        cay = self.cay
        (self.host / 'a').write_text('old\n')
        cay('pool', 'set', 'host', '1')
        wait_until(lambda: cay('pool', 'ls').code != 0 or armed_off(cay) or ready(cay), what='a ready one', timeout=20)
        cay('run', '--', 'true')
        cay('pool', 'set', 'host', '0')
        ref = cay('create', '--dir', f'{self.host}:/w').out.strip()
        first = self.snapshot(ref, 'echo one > /tmp/f; echo new > /w/a; echo b > /w/b', 'one\n')
        cay('exec', '--tx', ref, '--', 'sh', '-c', 'echo tx > /tmp/f; exit 1')
        cay('exec', '--tx', ref, '--', 'true')
        self.applied = cay('apply', ref).code == 0
        fork = cay('fork', first or ref).out.strip()
        second = self.snapshot(ref, 'echo two > /tmp/f', 'two\n')
        cay('rollback', ref, first)
        cay('snapshot', 'rm', second)
        self.known.pop(second, None)  # gone, or where the one that asked has died, perhaps
        cay('kill', fork)
        cay('gc')
        cay('exec', ref, '--', 'sh', '-c', 'echo last > /tmp/f')
        for pid, name in ours(cay).items():
            if name == 'cay-warden':
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        wait_until(lambda: cay('gc') and all(box['state'] == 'lost' for box in boxes(cay)), what='lost', timeout=20)

    def holds(self):
        cay = self.cay
        cay('pool', 'set', 'host', '0')
        assert (self.host / 'a').read_text() in ('old\n', 'new\n')
        assert not self.applied or (self.host / 'a').read_text() == 'new\n'
        cay('apply', '--undo', '--to', str(self.host))
        assert (self.host / 'b').exists() == ((self.host / 'a').read_text() == 'new\n'), 'half of it was applied'
        settle(cay)
        for name, text in self.known.items():
            assert content(cay, name) == text, name
        end(cay)
        shutil.rmtree(self.host)
        self.host.mkdir()


def boxes(cay):
    """None where the one that asks is the one to die."""
    listed = cay('ls', '--all', '--json')
    return [json.loads(line) for line in listed.out.splitlines()] if listed.code == 0 else []


def ready(cay):
    return any(row['ready'] for row in cay.json('pool', 'ls'))


def armed_off(cay):
    """The one that was to die has."""
    return os.path.exists(os.path.join(cay.state, 'wanted')) and not armed(cay)


def test_death_at_every_point_that_a_script_comes_to(fresh_cay, crash_bin, monkeypatch, tmp_path):
    """Snapshots, forks, transactions, rollbacks, apply, ready sandboxes, removals: CAY_FAILPOINTS of them, or all."""
    monkeypatch.setattr(caylib, 'CAY', crash_bin)
    cay, seen = fresh_cay, os.path.join(fresh_cay.state, 'failpoints')
    host = tmp_path / 'host'
    host.mkdir()
    os.chmod(tmp_path, 0o755)
    open(seen, 'w', encoding='ascii').close()
    script = Script(cay, host)
    script.play()
    with open(seen, encoding='ascii') as f:
        names = sorted(set(f.read().split()))
    os.unlink(seen)
    script.holds()
    assert len(script.known) >= 1 and script.applied
    assert set(IN_SCRIPT) <= set(names), set(IN_SCRIPT) - set(names)
    assert sum(name.endswith('.commits') for name in names) >= 8, names
    seed = int(os.environ.get('CAY_SEED') or time.time_ns() % 10**9)
    many = os.environ.get('CAY_FAILPOINTS', '4')
    chosen = names if many == 'all' else random.Random(seed).sample(names, int(many))
    open(os.path.join(cay.state, 'wanted'), 'w', encoding='ascii').close()
    for name in chosen:
        print(f'seed {seed}, {name}')
        arm(cay, name)
        script = Script(cay, host)
        script.play()
        script.holds()
        if armed(cay):  # some are only come to now and then
            os.unlink(os.path.join(cay.state, 'failpoint'))


@pytest.mark.parametrize('point', ['template.filled', 'template.named'])
def test_death_while_a_template_is_built(empty_cay, crash_bin, monkeypatch, point):
    cay = empty_cay
    monkeypatch.setattr(caylib, 'CAY', crash_bin)
    arm(cay, point)
    assert cay('run', '--', 'true').code != 0 and not armed(cay)
    cay('run', '--', 'true', check=True)
    wait_until(lambda: cay('gc', check=True) and os.listdir(os.path.join(cay.state, 'sandboxes')) == [], what='nothing left')


@pytest.mark.skipif(not caylib.ROOTFUL, reason='mounts something, to be in the way')
def test_death_while_a_switch_is_undone(fresh_cay, crash_bin, monkeypatch):
    """The second upper is a mount point, which cannot be moved: so the first one goes back."""
    cay = fresh_cay
    monkeypatch.setattr(caylib, 'CAY', crash_bin)
    ref = cay.create()
    cay('exec', '--user', 'root', ref, '--', 'sh', '-c', 'echo one > /tmp/f; echo two > /usr/local/g', check=True)
    arm(cay, 'switch.undoing')
    second = os.path.join(cay.state, 'sandboxes', ref, 'upper/1')
    assert os.path.exists(os.path.join(second, 'local/g'))
    subprocess.run(['mount', '-t', 'tmpfs', 'busy', second], check=True)
    try:
        assert cay('snapshot', ref).code != 0 and not armed(cay)
    finally:
        subprocess.run(['umount', second], check=True)
    wait_until(lambda: cay('gc', check=True) and cay.json('ls', '--all')[0]['state'] == 'lost', what='lost')
    check_invariants(cay)
    (lost,) = [s['id'] for s in cay.json('snapshots', ref) if s['kind'] == 'lost']
    assert content(cay, lost) == 'one\n'
    end(cay)


def test_death_while_a_sandbox_is_removed_from_the_pool(world):
    """Also where it lies in the storage."""
    cay = world
    ref = cay.create()
    arm(cay, 'storage.dropped')
    cay('kill', ref)
    if os.path.exists(os.path.join(cay.state, 'storage')):
        assert not armed(cay)
    else:
        os.unlink(os.path.join(cay.state, 'failpoint'))
    settle(cay)
    end(cay)


TREE = """mkdir -p /tmp/t/d/e /tmp/g; cd /tmp/t; echo {0} > f; ln f d/hard; ln -s ../f d/sym; mkfifo -m 640 p
head -c 70000 /dev/urandom > d/e/noise; echo {0} > gone; chmod 751 d"""
CHANGE = 'cd /tmp/t; rm gone d/e/noise; echo {0}b > f; mkdir new; echo {0} > new/x; chmod 700 d'


def load(cay, ref, first, rounds):
    """What changes a sandbox, all at once, and a command that goes on. In two of three rounds nothing goes back."""
    work = [['snapshot', ref], ['fork', first], ['exec', ref, '--', 'sh', '-c', 'for i in 1 2 3 4 5; do echo $i > /tmp/g/$i; done']]
    if rounds % 3 != 1:
        work.append(['exec', '--tx', ref, '--', 'sh', '-c', 'echo x > /tmp/x; exit 1'])
    if rounds % 3 == 0:
        work.append(['rollback', ref])
    return [cay.popen(*args) for args in work]


def kill_one(cay, r, killed):
    """By kind first: there is one init and many commands."""
    victims = {pid: kind(pid, name) for pid, name in ours(cay).items()}
    if not victims:
        return
    name = r.choice(sorted(set(victims.values())))
    with contextlib.suppress(ProcessLookupError):
        os.kill(r.choice(sorted(p for p in victims if victims[p] == name)), signal.SIGKILL)
        killed[name] += 1


def kind(pid, name):
    """A cay by what it does, so that a keeper is as likely as all commands together."""
    words = caylib.read_text(f'/proc/{pid}/cmdline').split('\0')
    return 'keeper' if words[1:3] == ['pool', 'keep'] else name


def now(cay, ref):
    """The files of a sandbox, or of what was kept when it was lost."""
    if alive(cay, ref):
        return fingerprint(cay, ref, '/tmp/t')
    (lost,) = [s['id'] for s in cay.json('snapshots', ref) if s['kind'] == 'lost']
    return tree(cay, lost)


def check_round(cay, known, first, changed, work, rounds):
    """Of all that was acknowledged."""
    ref, forked = None, None
    for w, out in work:
        if w.args[1] == 'snapshot' and w.returncode == 0:
            ref, name = w.args[2], out.decode().strip()
            known[name] = tree(cay, name)
            assert known[name] in ((changed, known[first]) if rounds % 3 == 0 else (changed,)), name
        if w.args[1] == 'fork' and w.returncode == 0:
            forked = out.decode().strip()
            assert now(cay, forked) == known[first], 'a fork is not what it was made of'
    ref = work[0][0].args[2]
    assert now(cay, ref) in ((changed, known[first]) if rounds % 3 == 0 else (changed,)), 'an acknowledged change is lost'
    if rounds % 3 == 1 and work[2][0].returncode == 0 and alive(cay, ref):
        assert sh(cay, ref, 'cat /tmp/g/5') == '5\n'


def test_random_deaths_under_load(place):
    """Acknowledged snapshots hold exactly what they held; acknowledged changes are there, in the living and the lost."""
    cay = place
    seed = int(os.environ.get('CAY_SEED') or time.time_ns() % 10**9)
    print(f'seed {seed}')
    r = random.Random(seed)
    known, stop = {}, time.monotonic() + SECONDS
    rounds, killed = 0, collections.Counter()
    with own_group() as group:
        while rounds < ROUNDS and time.monotonic() < stop:
            rounds += 1
            # Every fourth has a keeper, and one that is ready, to die as well.
            has_keeper = rounds % 4 == 0
            if has_keeper:
                cay('pool', 'set', 'host', '1', check=True)
            # Every fifth has a gateway.
            ref = cay.create(*(['--allow', 'example.com'] if rounds % 5 == 0 else []))
            sh(cay, ref, TREE.format(rounds))
            first = cay('snapshot', ref, check=True).out.strip()
            known[first] = fingerprint(cay, ref, '/tmp/t')
            sh(cay, ref, CHANGE.format(rounds))
            changed = fingerprint(cay, ref, '/tmp/t')
            work = load(cay, ref, first, rounds)
            time.sleep(r.random() ** 2 * 0.03)
            kill_one(cay, r, killed)
            answers = []
            for w in work:
                with w:
                    answers.append((w, w.communicate(timeout=120 * caylib.SLOWER)[0]))
            if has_keeper:
                cay('pool', 'set', 'host', '0', check=True)
            settle(cay, group)
            check_round(cay, known, first, changed, answers, rounds)
            cay('kill', '--all', '--yes')
            cay('gc', '--lost', check=True)
            while len(known) > KNOWN_MAX:
                look(cay, known, r.choice(list(known)), seed)
        print(f'{rounds} rounds, killed {dict(killed)}')
        for name in list(known):
            look(cay, known, name, seed)
        assert rounds >= 5
        end(cay)


def look(cay, known, name, seed):
    """At one that was acknowledged, which then may go."""
    assert tree(cay, name) == known.pop(name), (seed, name)
    cay('snapshot', 'rm', name, check=True)

# SPDX-License-Identifier: Apache-2.0
"""cay doctor on this very host, and on one where user namespaces are switched off."""

import ctypes
import json
import os
import time

import caylib

CLONE_NEWUSER = 0x10000000
GROUPS = ['Kernel', 'Namespaces', 'Control groups', 'Storage', 'Virtual machines', 'Host', 'Cay']


def report(cay, **options):
    r = cay('doctor', '--json', **options)
    assert r.err == '', r
    return r.code, json.loads(r.out)


def check(found, group, name):
    return next(c for c in found['checks'] if (c['group'], c['name']) == (group, name))


def limit_user_namespaces():
    """In the child: a user namespace with our own ids in which no other can be made."""
    uid, gid = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), 'unshare')
    for name, text in (('setgroups', 'deny'), ('uid_map', f'{uid} {uid} 1'), ('gid_map', f'{gid} {gid} 1')):
        with open(f'/proc/self/{name}', 'w', encoding='ascii') as f:
            f.write(text)
    with open('/proc/sys/user/max_user_namespaces', 'w', encoding='ascii') as f:
        f.write('0')


def everything_below(folder):
    return sorted(os.path.join(d, n) for d, dirs, files in os.walk(folder) for n in dirs + files)


def doctor_groups():
    return [os.path.join(d, n) for d, names, _ in os.walk('/sys/fs/cgroup') for n in names if 'doctor' in n]


def test_a_host_where_sandboxes_run_gets_zero_and_every_group(cay):
    cay('run', '--', 'true', check=True)
    code, found = report(cay)
    assert code == 0, found
    assert list(dict.fromkeys(c['group'] for c in found['checks'])) == GROUPS
    for c in found['checks']:
        assert set(c) == {'name', 'group', 'state', 'finding', 'fix'}
        assert c['state'] in ('ok', 'note', 'missing') and c['finding'], c
        assert c['state'] != 'missing' or c['fix'], c
        assert c['state'] != 'ok' or c['fix'] is None, c


def test_drivers_and_profiles_have_one_sentence_each(cay, mode):
    found = report(cay)[1]['drivers']
    assert [(d['driver'], d['profile']) for d in found] == [('ns', 'dev'), ('ns', 'locked'), ('vm', 'any')]
    for d in found:
        assert set(d) == {'driver', 'profile', 'mode', 'level', 'sentence'}
        assert d['mode'] == mode and d['level'] in ('full', 'reduced', 'none') and d['sentence'].endswith('.'), d
    assert found[0]['level'] != 'none'
    assert found[2]['level'] == 'none' and 'not built yet' in found[2]['sentence']


def test_people_get_marks_and_an_end_in_sentences(cay):
    r = cay('doctor', check=True)
    assert r.err == ''
    lines = r.out.splitlines()
    assert [line for line in lines if line and line[0] != ' '] == [*GROUPS, 'Assurance']
    assert sum(line.startswith('  ns, ') for line in lines) == 2
    quiet = cay('doctor', '-q', check=True).out
    assert '  ok ' not in quiet and '  note ' not in quiet and 'Assurance' in quiet


def test_it_ends_within_a_second(cay):
    best = min(timed(cay) for _ in range(5))
    assert best < 1.0, best


def timed(cay):
    start = time.monotonic()
    cay('doctor', check=True)
    return time.monotonic() - start


def test_a_full_stop_to_user_namespaces_is_named_with_its_fix(cay):
    code, found = report(cay, preexec_fn=limit_user_namespaces)
    user = check(found, 'Namespaces', 'user')
    assert code == 1
    assert user['state'] == 'missing' and 'max_user_namespaces' in user['finding'], user
    assert user['fix'].startswith('sudo sysctl -w user.max_user_namespaces='), user
    assert [d['level'] for d in found['drivers']] == ['none'] * 3
    assert "'user'" in found['drivers'][0]['sentence']


def test_a_state_directory_that_cannot_be_made_is_told(cay):
    code, found = report(cay, env={'CAY_STATE': '/proc/no/cay'})
    place = check(found, 'Storage', 'state directory')
    assert code == 1 and place['state'] == 'missing' and 'CAY_STATE' in place['fix'], place


def test_nothing_is_left_behind_and_no_state_directory_is_made(fresh_cay):
    before = everything_below(fresh_cay.state), caylib.host_mounts(fresh_cay), doctor_groups()
    missing = os.path.join(fresh_cay.state, 'a/b')
    code, found = report(fresh_cay, env={'CAY_STATE': missing})
    assert code == 0 and 'first needed' in check(found, 'Storage', 'state directory')['finding']
    fresh_cay('doctor', check=True)
    assert (everything_below(fresh_cay.state), caylib.host_mounts(fresh_cay), doctor_groups()) == before

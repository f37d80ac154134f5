# SPDX-License-Identifier: Apache-2.0
"""Create, exec and destroy many times, and check that nothing grows."""

import contextlib
import ctypes
import os
import subprocess

from memory import parent_of

SLABS = ('mnt_cache', 'ovl_inode', 'pid_namespace', 'net_namespace', 'user_namespace', 'kernfs_node_cache',
         'task_struct')
KEEP = 8


def adopt_orphans():
    """Become the parent of wardens whose creator has ended, so that we count exactly our own."""
    set_child_subreaper = 36
    if ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0) != 0:
        raise RuntimeError('cannot become a subreaper')


def processes():
    """Living descendants of ours."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    parents = {}
    for name in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError):
            parents[int(name)] = parent_of(name)
    ours, size = {os.getpid()}, 0
    while len(ours) != size:
        size = len(ours)
        ours |= {pid for pid, parent in parents.items() if parent in ours}
    return size - 1


def groups(ids):
    return sum(name.removeprefix('cay-') in ids for _, folders, _ in os.walk('/sys/fs/cgroup') for name in folders)


def mounts(state):
    with open('/proc/self/mountinfo', encoding='utf-8') as f:
        return sum(state in line for line in f)


def files(state):
    """All that the state directory holds, but for the traces that are kept of ended sandboxes."""
    return sum(len(folders) + len(names) for where, folders, names in os.walk(state)
               if not where.startswith((os.path.join(state, 'templates'), os.path.join(state, 'ended'))))


def kept(state):
    return len(os.listdir(os.path.join(state, 'ended')))


def database_kib(state):
    return sum(os.path.getsize(os.path.join(state, name)) for name in os.listdir(state)
               if name.startswith('catalog')) // 1024


def meminfo(*keys):
    with open('/proc/meminfo', encoding='utf-8') as f:
        return sum(int(line.split()[1]) for line in f if line.split(':')[0] in keys)


def slabs():
    try:
        with open('/proc/slabinfo', encoding='utf-8') as f:
            return {line.split()[0]: int(line.split()[1]) for line in f if line.split()[0] in SLABS}
    except OSError:
        return {}


def count(state, ids):
    with open('/proc/self/mountinfo', encoding='utf-8') as f:
        all_mounts = len(f.readlines())
    return {'processes': processes(), 'mounts': mounts(state), 'cgroups': groups(ids),
            'files of the state': files(state), 'traces kept': kept(state), 'catalog KiB': database_kib(state),
            'host: mounts': all_mounts, 'host: MemAvailable MiB': meminfo('MemAvailable') // 1024,
            'host: unreclaimable slab KiB': meminfo('SUnreclaim'), **{f'host: slab {k}': v for k, v in slabs().items()}}


def cycle(lab, env):
    """The id of a sandbox that is gone again."""
    box = ''
    for words in (['create', '--quiet'], ['exec', 'ID', '--', 'true'], ['kill', '--quiet', 'ID']):
        words = [box if word == 'ID' else word for word in words]
        done = subprocess.run([lab.cay, *words], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(f'cay {" ".join(words)}: {done.stderr.strip()}')
        box = box or done.stdout.strip()
    return box


def bench(lab):
    state = lab.state('cycles', in_memory=True)
    env = lab.env(state, CAY_KEEP_ENDED=str(KEEP))
    adopt_orphans()
    ids = {cycle(lab, env) for _ in range(2 * KEEP)}  # fills what is kept on purpose
    counts, done = {0: count(state, ids)}, 0
    for goal in lab.pick((100, 1000), (20, 60)):
        while done < goal:
            ids.add(cycle(lab, env))
            done += 1
        counts[goal] = count(state, ids)
    lab.raw['cycles'] = {what: [c[what] for c in counts.values()] for what in counts[0]}
    lab.raw['cycles']['after'] = list(counts)
    for what in ('processes', 'mounts', 'cgroups', 'files of the state', 'traces kept', 'catalog KiB'):
        grown = counts[done][what] - counts[0][what]
        # The catalog's log grows to 100 pages of 1 KiB before it is folded.
        slack = {'traces kept': KEEP // 8, 'catalog KiB': 128}.get(what, 0)
        lab.promise(f'{done} cycles: growth of {what}', grown, slack, '', ' -> '.join(
            str(c[what]) for c in counts.values()))

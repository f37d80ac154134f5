# SPDX-License-Identifier: Apache-2.0
"""Create, exec, destroy, many times: nothing may grow."""

import os
import subprocess

SLABS = ('mnt_cache', 'ovl_inode', 'pid_namespace', 'net_namespace', 'user_namespace', 'kernfs_node_cache', 'task_struct')
KEEP = 8


def processes():
    count = 0
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{name}/comm', encoding='utf-8', errors='replace') as f:
                count += f.read().startswith('cay')
        except OSError:
            continue
    return count


def groups():
    return sum(len(folders) for _, folders, _ in os.walk('/sys/fs/cgroup'))


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


def count(state):
    with open('/proc/self/mountinfo', encoding='utf-8') as f:
        mounts = len(f.readlines())
    return {'processes': processes(), 'mounts': mounts, 'cgroups': groups(), 'files of the state': files(state),
            'traces kept': kept(state), 'catalog KiB': database_kib(state),
            'host: MemAvailable MiB': meminfo('MemAvailable') // 1024,
            'host: unreclaimable slab KiB': meminfo('SUnreclaim'), **{f'host: slab {k}': v for k, v in slabs().items()}}


def cycle(lab, env, name):
    for words in (['create', '--quiet', '--name', name], ['exec', name, '--', 'true'], ['kill', '--quiet', name]):
        done = subprocess.run([lab.cay, *words], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(f'cay {" ".join(words)}: {done.stderr.strip()}')


def bench(lab):
    state = lab.state('cycles', in_memory=True)
    env = lab.env(state, CAY_KEEP_ENDED=str(KEEP))
    for i in range(2 * KEEP):  # fills what is kept on purpose
        cycle(lab, env, f'warm{i}')
    counts, done = {0: count(state)}, 0
    for goal in lab.pick((100, 1000), (20, 60)):
        while done < goal:
            cycle(lab, env, f'box{done}')
            done += 1
        counts[goal] = count(state)
    lab.raw['cycles'] = {what: [c[what] for c in counts.values()] for what in counts[0]}
    lab.raw['cycles']['after'] = list(counts)
    for what in ('processes', 'mounts', 'cgroups', 'files of the state', 'traces kept', 'catalog KiB'):
        grown = counts[done][what] - counts[0][what]
        # The catalog's log is folded at a size of its own: a few pages are no growth.
        slack = {'traces kept': KEEP // 8, 'catalog KiB': 64}.get(what, 0)
        lab.promise(f'{done} cycles: growth of {what}', grown, slack, '', ' -> '.join(
            str(c[what]) for c in counts.values()))

# SPDX-License-Identifier: Apache-2.0
"""Private memory of an idle sandbox: warden and init, as the kernel counts it."""

import os
import statistics
import subprocess
import time


def private_kib(pid):
    """Pages that no other process maps: what ending this one would free."""
    total = 0
    with open(f'/proc/{pid}/smaps_rollup', encoding='utf-8') as f:
        for line in f:
            if line.startswith(('Private_Clean:', 'Private_Dirty:')):
                total += int(line.split()[1])
    return total


def parent_of(pid):
    with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as f:
        return int(f.read().rsplit(')', 1)[1].split()[1])


def processes_of(folder):
    """(warden, init) of the sandbox in this directory: the warden's cwd is there."""
    wardens, parents = [], {}
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            parents[int(name)] = parent_of(name)
            if os.readlink(f'/proc/{name}/cwd') == folder:
                wardens.append(int(name))
        except OSError:
            continue
    warden = next(pid for pid in wardens if parents[pid] not in wardens)
    return warden, next(pid for pid, parent in parents.items() if parent == warden)


def weigh(state, box):
    """Init with the child that waits for the next call."""
    warden, init = processes_of(os.path.join(state, 'sandboxes', box))
    with open(f'/proc/{init}/task/{init}/children', encoding='utf-8') as f:
        return private_kib(warden), sum(map(private_kib, [init, *map(int, f.read().split())]))


def work(lab, state, box):
    for _ in range(20):
        lab.cay_says(state, 'exec', box, '--', 'sh', '-c', 'true; echo x >/tmp/x')
    subprocess.run([lab.cay, 'exec', box, '--', 'head', '-c', '100M', '/dev/zero'], env=lab.env(state),
                   stdout=subprocess.DEVNULL, check=True)


def bench(lab):
    state = lab.state('memory', in_memory=True)
    many = lab.pick(50, 10)
    idle_s = 3
    one = lab.create(state)
    time.sleep(idle_s)
    warden, init = weigh(state, one)
    lab.promise('private memory of an idle sandbox, 1 alone', warden + init, 1024, 'KiB',
                f'warden {warden} + init {init}')
    work(lab, state, one)
    time.sleep(idle_s)
    warden, init = weigh(state, one)
    lab.promise('the same after 20 calls and 100 MB of output', warden + init, 1024, 'KiB',
                f'warden {warden} + init {init}')
    boxes = [one] + [lab.create(state) for _ in range(many - 1)]
    time.sleep(idle_s)
    weights = [weigh(state, box) for box in boxes[1:]]
    means = [statistics.mean(w[i] for w in weights) for i in (0, 1)]
    lab.raw['private KiB'] = {'sandboxes': len(weights), 'warden': means[0], 'init': means[1]}
    lab.promise(f'private memory of an idle sandbox, mean of {many}', sum(means), 1024, 'KiB',
                f'warden {means[0]:.0f} + init {means[1]:.0f}')
    lab.cay_says(state, 'kill', '--all')

# SPDX-License-Identifier: Apache-2.0
"""The cost of the system call list and Landlock for a compile: CPU time with both and without."""

import os
import shutil
import statistics

import lab as lab_module
from tracing import project


def bench(lab):
    if not shutil.which('gcc') or not shutil.which('make'):
        lab.skip('walls', 'gcc or make is not installed')
        return
    files, sources = lab.pick(20, 6), os.path.join(lab.memory, 'walls')
    project(sources, files)
    make = ['make', '-s', '-B', '-C', sources]
    # Each runs twice, in mirrored order, so that drift within a round affects both alike.
    order = ('with', 'without', 'without again', 'with again')
    times = lab.turns(lab.pick(40, 12), lab.pick(170, 40), [
        (name, 1, {}, [lab.walls, 'no' if 'without' in name else 'yes', *make]) for name in order])
    lab.raw['walls'] = lab_module.summary(times)
    cpu = {name: {n: us for n, (_, us) in runs.items()} for name, runs in times.items()}
    rounds = sorted(set.intersection(*(set(c) for c in cpu.values())))
    ratios = [(cpu['with'][n] + cpu['with again'][n]) / (cpu['without'][n] + cpu['without again'][n]) for n in rounds]
    noise = [(cpu['without'][n] + cpu['with'][n]) / (cpu['without again'][n] + cpu['with again'][n]) for n in rounds]
    spread = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else 0
    lab.raw['walls, CPU ratios'] = ratios
    lab.promise(f'compile of {files} files: CPU behind both walls / without', statistics.median(ratios), 1.02,
                detail=f'{len(rounds)} rounds, mean {statistics.mean(ratios):.4f} +- {spread:.4f}, '
                       f'first half / second half of a round {statistics.median(noise):.4f}')

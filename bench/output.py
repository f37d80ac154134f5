# SPDX-License-Identifier: Apache-2.0
"""Throughput of a command's output, against a plain pipe."""

import lab as lab_module


def bench(lab):
    state = lab.state('output', in_memory=True)
    lab.cay_says(state, 'run', '--', 'true')
    mb = lab.pick(2048, 512)
    times = lab.turns(lab.pick(7, 3), lab.pick(50, 6), [
        ('pipe', 1, {}, ['sh', '-c', f'head -c {mb}M /dev/zero | cat']),
        ('cay', 1, {'CAY_STATE': state}, [lab.cay, 'run', '--', 'head', '-c', f'{mb}M', '/dev/zero'])])
    lab.raw['output'] = lab_module.summary(times)
    rate = {name: mb / lab_module.median_ms(runs) * 1000 for name, runs in times.items()}
    lab.fact(f'output of {mb} MB: throughput / a pipe', 1 / lab_module.paired(times['cay'], times['pipe']), 'x',
             f'{rate["cay"]:.0f} / {rate["pipe"]:.0f} MB/s')

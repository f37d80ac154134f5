# SPDX-License-Identifier: Apache-2.0
"""The list of tests that may fail once and pass on their retry (unsteady.txt)."""

import functools
import os

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'unsteady.txt')


@functools.cache
def listed():
    """Names as `module.test`. A line without a reason is an error."""
    names = set()
    with open(LIST, encoding='utf-8') as f:
        for line in f:
            name, _, reason = line.partition('#')[0].strip().partition(' ')
            if name and not reason.strip():
                raise ValueError(f'{LIST}: {name} has no reason')
            names.add(name)
    return names - {''}


def may_be_unsteady(name):
    """name is junit's (class, test). The list leaves out [parameters]."""
    module, test = name
    return f'{module.split(".")[-1]}.{test.split("[")[0]}' in listed()

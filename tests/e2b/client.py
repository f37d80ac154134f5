# SPDX-License-Identifier: Apache-2.0
"""What people do with the Python package e2b, against a server of ours. E2B_* in the environment say where it is.

Each claim is written once, and holds for the sync classes and for the async ones: `go` awaits what needs it. The
claims are in claims_*.py beside this file. One line of TAP per claim; usage: client.py [CLAIM...]
"""

import asyncio
import importlib
import inspect
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor

import e2b

AT_ONCE = 4  # claims of one kind
MODULES = ('commands', 'files', 'sandboxes', 'watch', 'stores')


async def go(x):
    return await x if inspect.isawaitable(x) else x


async def fails(x, *kinds, says=''):
    """The error of x, which must be one of these kinds. A sync call comes as a function."""
    try:
        await go(x() if callable(x) else x)
    except Exception as error:  # pylint: disable=broad-except
        if type(error) not in kinds and not isinstance(error, kinds or Exception):
            raise
        assert says in str(error), f'{error!r} does not say {says!r}'
        return error
    raise AssertionError(f'nothing failed with {kinds}')


class Api:
    """The classes of one kind, and a sandbox that the claims share."""

    def __init__(self, kind):
        self.kind = kind
        self.is_async = kind == 'async'
        prefix = 'Async' if self.is_async else ''
        for name in ('Sandbox', 'Volume', 'Secret'):
            setattr(self, name, getattr(e2b, prefix + name, None))
        self.shared = None

    async def box(self, **options):
        """A sandbox of a claim's own. It ends with the claim, or by its timeout."""
        return await go(self.Sandbox.create('base', **{'allow_internet_access': False, 'timeout': 300, **options}))


async def attempt(api, name, claim):
    try:
        await claim(api)
    except Exception:  # pylint: disable=broad-except
        return f'not ok - {api.kind} {name}\n' + ''.join(f'# {line}\n' for line in traceback.format_exc().splitlines())
    return f'ok - {api.kind} {name}\n'


async def run_async(api, claims):
    api.shared = await api.box(envs={'FOO': 'bar'}, metadata={'k/x': 'v/ž &=', 'kind': api.kind})
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(name, claim):
        async with turn:
            return await attempt(api, name, claim)

    try:
        return await asyncio.gather(*(one(name, claim) for name, claim in claims))
    finally:
        await api.shared.kill()


def run_sync(api, claims):
    api.shared = api.Sandbox.create('base', allow_internet_access=False, timeout=300, envs={'FOO': 'bar'},
                                    metadata={'k/x': 'v/ž &=', 'kind': api.kind})
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda row: asyncio.run(attempt(api, *row)), claims))
    finally:
        api.shared.kill()


def main():
    claims = []
    for module in MODULES:
        rows = vars(importlib.import_module(f'claims_{module}'))
        claims += [(name, f) for name, f in rows.items()
                   if inspect.iscoroutinefunction(f) and f.__module__ == f'claims_{module}' and not name.startswith('_')]
    if sys.argv[1:]:
        claims = [row for row in claims if row[0] in sys.argv[1:]]
    lines = run_sync(Api('sync'), claims) + asyncio.run(run_async(Api('async'), claims))
    sys.stdout.write(''.join(lines))
    return any(line.startswith('not ok') for line in lines)


if __name__ == '__main__':
    sys.modules['client'] = sys.modules['__main__']
    sys.exit(main())

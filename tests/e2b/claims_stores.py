# SPDX-License-Identifier: Apache-2.0
"""Secrets."""

from client import fails, go
from e2b import SecretException, SecretNotFoundException


async def a_secret_is_stored_and_found(api):
    name = f'token-{api.kind}'
    made = await go(api.Secret.create(name, 'the value', metadata={'team': 'ž'}))
    assert (made.name, made.version, made.metadata) == (name, 1, {'team': 'ž'})
    for ref in (name, made.secret_id):
        found = await go(api.Secret.get_info(ref))
        assert (found.secret_id, found.created_at) == (made.secret_id, made.created_at)
        assert 'the value' not in repr(vars(found))
    assert await go(api.Secret.exists(name)) is True
    assert await go(api.Secret.destroy(name)) is True
    assert await go(api.Secret.exists(name)) is False


async def a_secret_has_versions(api):
    name = f'versions-{api.kind}'
    await go(api.Secret.create(name, 'one', metadata={'a': 'b'}))
    second = await go(api.Secret.update(name, 'two'))
    assert (second.version, second.metadata) == (2, {'a': 'b'})
    third = await go(api.Secret.update(name, 'three', metadata={}))
    assert (third.version, third.metadata) == (3, {})
    assert third.updated_at > third.created_at
    await go(api.Secret.destroy(name))


async def a_name_is_taken_once(api):
    name = f'taken-{api.kind}'
    await go(api.Secret.create(name, 'x'))
    await fails(lambda: api.Secret.create(name, 'y'), SecretException, says='already')
    await go(api.Secret.destroy(name))


async def a_secret_needs_a_name_and_a_value(api):
    await fails(lambda: api.Secret.create('', 'x'), SecretException, says='name must be')
    await fails(lambda: api.Secret.create('a/b', 'x'), SecretException, says='name must be')
    await fails(lambda: api.Secret.create(f'empty-{api.kind}', ''), SecretException, says='value must have')


async def secrets_are_listed_in_pages(api):
    names = [f'page-{api.kind}-{i}' for i in range(3)]
    for name in names:
        await go(api.Secret.create(name, 'x'))
    pages, found = api.Secret.list(limit=2), []
    while pages.has_next:
        found += [s.name for s in await go(pages.next_items()) if s.name in names]
    assert found == names
    for name in names:
        await go(api.Secret.destroy(name))


async def an_unknown_secret_is_not_found(api):
    await fails(lambda: api.Secret.get_info('unknown'), SecretNotFoundException)
    await fails(lambda: api.Secret.update('unknown', 'x'), SecretNotFoundException)
    assert await go(api.Secret.destroy('unknown')) is False

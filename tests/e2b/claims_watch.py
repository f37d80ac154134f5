# SPDX-License-Identifier: Apache-2.0
"""Directories that are watched."""

import asyncio

from client import fails, go
from e2b import FilesystemEventType as T
from e2b import InvalidArgumentException, NotFoundException, SandboxException


class _Watch:
    """Events of either kind of client: the sync one fetches them, the async one is told."""

    @classmethod
    async def of(cls, api, path, box=None, **options):
        self = cls()
        self.api, self.seen = api, []
        files = (box or api.shared).files
        if api.is_async:
            self.handle = await files.watch_dir(path, on_event=self.seen.append, **options)
        else:
            self.handle = files.watch_dir(path, **options)
        return self

    async def until(self, *wanted):
        """All events up to these, which come in any order."""
        for _ in range(600):
            if not self.api.is_async:
                self.seen += self.handle.get_new_events()
            if {(e.name, e.type) for e in self.seen} >= set(wanted):
                return self.seen
            await asyncio.sleep(0.05)
        raise AssertionError(f'{wanted} did not come, but {self.seen}')


async def a_write_is_told(api):
    await go(api.shared.files.write('w1/f', 'old'))
    watch = await _Watch.of(api, 'w1')
    await go(api.shared.files.write('w1/f', 'new'))
    seen = await watch.until(('f', T.WRITE))
    assert {e.name for e in seen} == {'f'}, seen
    await go(watch.handle.stop())


async def a_new_file_is_told(api):
    await go(api.shared.files.make_dir('w2'))
    watch = await _Watch.of(api, 'w2')
    await go(api.shared.files.write('w2/f', 'x'))
    await watch.until(('f', T.CREATE), ('f', T.WRITE))
    await go(watch.handle.stop())


async def events_are_there_when_the_change_is(api):
    """Who fetches them right after a change gets them."""
    if api.is_async:
        return
    await go(api.shared.files.make_dir('w3'))
    handle = api.shared.files.watch_dir('w3')
    for i in range(20):
        api.shared.files.write(f'w3/f{i}', 'x')
        assert f'f{i}' in [e.name for e in handle.get_new_events()]
    handle.stop()


async def a_program_inside_is_seen(api):
    await go(api.shared.files.make_dir('w4'))
    watch = await _Watch.of(api, 'w4')
    await go(api.shared.commands.run('cd w4; echo a > a; chmod 600 a; mv a b; rm b; mkdir d'))
    await watch.until(('a', T.CREATE), ('a', T.WRITE), ('a', T.CHMOD), ('a', T.RENAME), ('b', T.CREATE), ('b', T.REMOVE), ('d', T.CREATE))
    await go(watch.handle.stop())


async def what_is_below_is_not_told(api):
    await go(api.shared.files.write('w5/sub/f', 'x'))
    watch = await _Watch.of(api, 'w5')
    await go(api.shared.files.write('w5/sub/f', 'y'))
    await go(api.shared.files.write('w5/last', 'y'))
    seen = await watch.until(('last', T.WRITE))
    assert 'sub/f' not in {e.name for e in seen}
    await go(watch.handle.stop())


async def a_whole_tree_is_watched(api):
    await go(api.shared.files.write('w6/sub/f', 'x'))
    watch = await _Watch.of(api, 'w6', recursive=True)
    await go(api.shared.files.write('w6/sub/f', 'y'))
    await watch.until(('sub/f', T.WRITE))
    await go(watch.handle.stop())


async def new_directories_are_watched(api):
    await go(api.shared.files.make_dir('w7'))
    watch = await _Watch.of(api, 'w7', recursive=True)
    await go(api.shared.commands.run('mkdir -p w7/a/b/c; echo x > w7/a/b/c/f'))
    await watch.until(('a', T.CREATE), ('a/b', T.CREATE), ('a/b/c', T.CREATE), ('a/b/c/f', T.CREATE))
    await go(api.shared.files.write('w7/a/b/g', 'y'))
    await watch.until(('a/b/g', T.WRITE))
    await go(watch.handle.stop())


async def a_moved_directory_has_its_new_name(api):
    await go(api.shared.files.make_dir('w8/old'))
    watch = await _Watch.of(api, 'w8', recursive=True)
    await go(api.shared.files.rename('w8/old', 'w8/new'))
    await watch.until(('old', T.RENAME), ('new', T.CREATE))
    await go(api.shared.files.write('w8/new/f', 'x'))
    seen = await watch.until(('new/f', T.WRITE))
    assert 'old/f' not in {e.name for e in seen}
    await go(watch.handle.stop())


async def events_have_entries(api):
    await go(api.shared.files.make_dir('w9'))
    watch = await _Watch.of(api, 'w9', include_entry=True)
    await go(api.shared.files.write('w9/f', 'four'))
    written = [e for e in await watch.until(('f', T.WRITE)) if e.type == T.WRITE][-1]
    assert (written.entry.path, written.entry.size, written.entry.owner) == ('/home/user/w9/f', 4, 'user')
    await go(api.shared.files.remove('w9/f'))
    removed = [e for e in await watch.until(('f', T.REMOVE)) if e.type == T.REMOVE][-1]
    assert removed.entry is None
    await go(watch.handle.stop())


async def what_is_missing_is_not_watched(api):
    await fails(_Watch.of(api, 'nowhere-at-all'), NotFoundException, says='does not exist')


async def a_file_is_not_watched(api):
    await go(api.shared.files.write('w-file', ''))
    await fails(_Watch.of(api, 'w-file'), InvalidArgumentException, says='not a directory')


async def a_stopped_watch_is_over(api):
    await go(api.shared.files.make_dir('w10'))
    watch = await _Watch.of(api, 'w10')
    await go(watch.handle.stop())
    if not api.is_async:
        await fails(watch.handle.get_new_events, SandboxException, says='already stopped')


async def many_changes_are_all_told(api):
    await go(api.shared.files.make_dir('w11'))
    watch = await _Watch.of(api, 'w11')
    await go(api.shared.commands.run('cd w11; for i in $(seq 2000); do : > f$i; done; : > end'))
    seen = await watch.until(('end', T.CREATE))
    assert len({e.name for e in seen if e.type == T.CREATE}) == 2001
    await go(watch.handle.stop())


async def a_watch_ends_with_its_sandbox(api):
    box = await api.box()
    await go(box.files.make_dir('w'))
    if api.is_async:
        ended = asyncio.Event()
        await box.files.watch_dir('w', on_event=lambda e: None, on_exit=lambda e: ended.set())
        await box.kill()
        await asyncio.wait_for(ended.wait(), 60)
    else:
        handle = box.files.watch_dir('w')
        box.kill()
        await fails(handle.get_new_events, SandboxException)

# SPDX-License-Identifier: Apache-2.0
"""The life of sandboxes, snapshots, forks, networks, ports, and git inside."""

import datetime
import http.client
import os
from urllib.parse import urlsplit

from client import fails, go
from e2b import (AuthenticationException, CommandExitException, NotFoundException, SandboxException, SandboxNotFoundException,
                 SandboxQuery, SandboxState, TimeoutException)

MISSING = 'i0000000000000000000'


async def a_sandbox_tells_what_it_is(api):
    info = await go(api.shared.get_info())
    assert (info.sandbox_id, info.template_id, info.state) == (api.shared.sandbox_id, 'base', SandboxState.RUNNING)
    assert info.metadata == {'k/x': 'v/ž &=', 'kind': api.kind}
    assert info.cpu_count >= 1 and info.memory_mb > 0 and info.envd_version


async def its_times_are_steady(api):
    first, second = await go(api.shared.get_info()), await go(api.shared.get_info())
    assert (first.started_at, first.end_at) == (second.started_at, second.end_at)
    assert first.started_at < first.end_at


async def info_of_nothing_is_not_found(api):
    await fails(lambda: api.Sandbox.get_info(MISSING), SandboxNotFoundException)


async def sandboxes_are_found_by_metadata(api):
    found = await go(api.Sandbox.list(query=SandboxQuery(metadata={'k/x': 'v/ž &=', 'kind': api.kind})).next_items())
    assert [s.sandbox_id for s in found] == [api.shared.sandbox_id]
    assert await go(api.Sandbox.list(query=SandboxQuery(metadata={'kind': 'other'})).next_items()) == []


async def sandboxes_are_found_by_state_and_template(api):
    paused = await go(api.Sandbox.list(query=SandboxQuery(state=[SandboxState.PAUSED], metadata={'kind': api.kind})).next_items())
    assert api.shared.sandbox_id not in [s.sandbox_id for s in paused]
    both = await go(api.Sandbox.list(query=SandboxQuery(state=[SandboxState.PAUSED, SandboxState.RUNNING], metadata={'kind': api.kind})).next_items())
    assert api.shared.sandbox_id in [s.sandbox_id for s in both]


async def a_list_has_pages(api):
    boxes = [await api.box(metadata={'page': f'of {api.kind}'}) for _ in range(3)]
    try:
        pages = api.Sandbox.list(query=SandboxQuery(metadata={'page': f'of {api.kind}'}), limit=2)
        first = await go(pages.next_items())
        assert len(first) == 2 and pages.has_next
        second = await go(pages.next_items())
        assert len(second) == 1 and not pages.has_next
        assert [s.sandbox_id for s in first + second] == [b.sandbox_id for b in reversed(boxes)]
    finally:
        for box in boxes:
            await go(box.kill())


async def a_wrong_key_is_refused(api):
    await fails(lambda: api.Sandbox.list(api_key='e2b_' + '0' * 40).next_items(), AuthenticationException)
    await fails(lambda: api.Sandbox.create('base', api_key='e2b_' + '0' * 40), AuthenticationException)


async def an_unknown_template_is_named(api):
    await fails(lambda: api.Sandbox.create('no-such-template'), SandboxException, says="template 'no-such-template' not found")


async def a_time_of_life_is_set(api):
    box = await api.box()
    await go(box.set_timeout(1000))
    left = (await go(box.get_info())).end_at - datetime.datetime.now(datetime.timezone.utc)
    assert 900 < left.total_seconds() <= 1001
    await go(box.set_timeout(100))
    left = (await go(box.get_info())).end_at - datetime.datetime.now(datetime.timezone.utc)
    assert left.total_seconds() <= 101
    await go(box.kill())


async def a_time_of_nothing_is_not_found(api):
    await fails(lambda: api.Sandbox.set_timeout(MISSING, 10), SandboxNotFoundException)


async def a_sandbox_ends_at_its_time(api):
    box = await api.box(timeout=1)
    handle = await go(box.commands.run('sleep 100', background=True, timeout=0))
    await fails(handle.wait, TimeoutException, says='sandbox was killed or reached its end of life')
    assert await go(box.is_running()) is False
    await fails(box.get_info, SandboxNotFoundException)


async def a_killed_sandbox_is_gone(api):
    box = await api.box()
    handle = await go(box.commands.run('sleep 100', background=True))
    assert await go(box.is_running()) is True
    assert await go(box.kill()) is True
    await fails(handle.wait, TimeoutException, says='sandbox was killed or reached its end of life')
    assert await go(box.is_running()) is False
    assert await go(box.kill()) is False
    await fails(lambda: box.commands.run('true'), TimeoutException, says='The sandbox was not found')
    await fails(lambda: box.files.read('x'), TimeoutException)
    await fails(lambda: api.Sandbox.connect(box.sandbox_id), NotFoundException)


async def killing_by_id_works(api):
    box = await api.box()
    assert await go(api.Sandbox.kill(box.sandbox_id)) is True
    assert await go(api.Sandbox.kill(box.sandbox_id)) is False


async def a_second_client_connects(api):
    other = await go(api.Sandbox.connect(api.shared.sandbox_id))
    assert other.sandbox_id == api.shared.sandbox_id
    assert (await go(other.commands.run('echo again'))).stdout == 'again\n'


async def connecting_makes_life_longer_only(api):
    box = await api.box(timeout=1000)
    before = (await go(box.get_info())).end_at
    await go(api.Sandbox.connect(box.sandbox_id, timeout=10))
    assert (await go(box.get_info())).end_at == before
    await go(api.Sandbox.connect(box.sandbox_id, timeout=5000))
    assert (await go(box.get_info())).end_at > before
    await go(box.kill())


async def a_sandbox_pauses_and_resumes(api):
    box = await api.box(envs={'KEPT': 'yes'})
    handle = await go(box.commands.run('sleep 300', background=True, timeout=0))
    await go(box.files.write('kept', 'as it was'))
    await go(box.pause())
    assert (await go(box.get_info())).state == SandboxState.PAUSED
    assert await go(box.is_running()) is False
    await fails(lambda: box.commands.run('true'), TimeoutException)
    again = await go(api.Sandbox.connect(box.sandbox_id))
    assert (await go(again.get_info())).state == SandboxState.RUNNING
    assert await go(again.files.read('kept')) == 'as it was'
    assert (await go(again.commands.run(f'echo $KEPT; kill -0 {handle.pid} && echo runs'))).stdout == 'yes\nruns\n'
    await go(box.kill())


async def a_paused_sandbox_is_killed(api):
    box = await api.box()
    await go(box.pause())
    assert await go(box.kill()) is True


async def a_pause_of_nothing_is_not_found(api):
    await fails(lambda: api.Sandbox.pause(MISSING), NotFoundException)


async def a_sandbox_pauses_at_its_time(api):
    box = await api.box(timeout=1, lifecycle={'on_timeout': 'pause'})
    assert (await go(box.get_info())).lifecycle['on_timeout'] == 'pause'
    while (await go(box.get_info())).state != SandboxState.PAUSED:
        pass
    await go(box.connect(timeout=60))
    assert (await go(box.commands.run('echo back'))).stdout == 'back\n'
    await go(box.kill())


async def a_sandbox_resumes_by_use(api):
    box = await api.box(lifecycle={'on_timeout': 'pause', 'auto_resume': True})
    assert (await go(box.get_info())).lifecycle == {'on_timeout': 'pause', 'auto_resume': True}
    await go(box.pause())
    assert await go(box.is_running()) is False
    assert (await go(box.commands.run('echo woken'))).stdout == 'woken\n'
    assert (await go(box.get_info())).state == SandboxState.RUNNING
    await go(box.pause())
    await go(box.files.write('woken', 'too'))
    await go(box.kill())


async def snapshots_start_sandboxes(api):
    box = await api.box()
    await go(box.files.write('kept', 'as it was'))
    snapshot = await go(box.create_snapshot())
    await go(box.files.write('kept', 'later'))
    listed = await go(box.list_snapshots().next_items())
    assert [s.snapshot_id for s in listed] == [snapshot.snapshot_id]
    made = await go(api.Sandbox.create(snapshot.snapshot_id, allow_internet_access=False))
    assert await go(made.files.read('kept')) == 'as it was'
    await go(made.kill())
    await go(box.kill())
    assert await go(api.Sandbox.delete_snapshot(snapshot.snapshot_id)) is True
    assert await go(api.Sandbox.delete_snapshot(snapshot.snapshot_id)) is False
    await fails(lambda: api.Sandbox.create(snapshot.snapshot_id), SandboxException, says='not found')


async def snapshots_have_names(api):
    box = await api.box()
    name = f'named-{api.kind}'
    snapshot = await go(box.create_snapshot(name=name))
    assert snapshot.snapshot_id == f'{name}:default' and snapshot.names == [f'{name}:default']
    made = await go(api.Sandbox.create(name, allow_internet_access=False))
    await go(made.kill())
    await go(box.kill())
    assert await go(api.Sandbox.delete_snapshot(name)) is True


async def a_snapshot_of_nothing_is_not_found(api):
    await fails(lambda: api.Sandbox.create_snapshot(MISSING), NotFoundException)


async def a_sandbox_is_forked(api):
    box = await api.box()
    await go(box.files.write('kept', 'of the first'))
    forks = await go(box.fork(count=2))
    assert len({f.sandbox_id for f in forks} | {box.sandbox_id}) == 3
    await go(box.files.write('kept', 'changed'))
    for fork in forks:
        assert await go(fork.files.read('kept')) == 'of the first'
        assert await go(fork.kill()) is True
    await go(box.kill())


async def a_fork_of_nothing_is_not_found(api):
    await fails(lambda: api.Sandbox.fork(MISSING), NotFoundException)


async def the_network_is_changed_while_it_runs(api):
    box = await api.box(allow_internet_access=True, network={'deny_out': ['192.0.9.0/24']})
    assert (await go(box.get_info())).allow_internet_access is True
    await go(box.update_network({'allow_out': ['a.test'], 'deny_out': ['0.0.0.0/0']}))
    assert (await go(box.get_info())).allow_internet_access is False
    await go(box.kill())


async def no_internet_is_no_internet(api):
    assert (await go(api.shared.get_info())).allow_internet_access is False
    await fails(lambda: api.shared.commands.run('exec 3<>/dev/tcp/192.0.2.1/80'), CommandExitException)


def _get(box, port, headers=None):
    at = urlsplit(os.environ['E2B_SANDBOX_URL'])
    c = http.client.HTTPConnection(at.hostname, at.port, timeout=60)
    c.request('GET', '/', headers={'Host': box.get_host(port), **(headers or {})})
    r = c.getresponse()
    text = r.read().decode()
    c.close()
    return r.status, text


async def ports_are_reached_by_the_name_of_their_host(api):
    port = 8101 if api.is_async else 8102
    await go(api.shared.files.write('www/index.html', 'from inside'))
    handle = await go(api.shared.commands.run(f'exec python3 -m http.server {port} --bind 127.0.0.1 -d www', background=True))
    while _get(api.shared, port)[0] == 502:
        pass
    assert _get(api.shared, port) == (200, 'from inside')
    await go(handle.kill())


async def a_closed_port_says_so(api):
    status, text = _get(api.shared, 4444)
    assert status == 502 and 'The sandbox is running but port is not open' in text


async def ports_can_need_a_token(api):
    box = await api.box(network={'allow_public_traffic': False})
    assert box.traffic_access_token
    assert _get(box, 80)[0] == 403
    assert _get(box, 80, {'e2b-traffic-access-token': box.traffic_access_token})[0] == 502
    await go(box.kill())


async def metrics_are_told(api):
    await go(api.shared.commands.run('head -c 1000000 /dev/zero > /tmp/some; true'))
    m = (await go(api.shared.get_metrics()))[-1]
    assert m.cpu_count >= 1 and m.cpu_used_pct >= 0
    assert 0 < m.mem_used <= m.mem_total and 0 <= m.mem_cache
    assert 0 < m.disk_used <= m.disk_total
    assert abs((datetime.datetime.now(datetime.timezone.utc) - m.timestamp).total_seconds()) < 600


async def metrics_have_a_time(api):
    now = datetime.datetime.now(datetime.timezone.utc)
    assert await go(api.shared.get_metrics(start=now - datetime.timedelta(days=2), end=now - datetime.timedelta(days=1))) == []


async def metrics_of_nothing_are_not_found(api):
    await fails(lambda: api.Sandbox.get_metrics(MISSING), SandboxNotFoundException)


async def a_sandbox_is_a_context(api):
    box = await api.box()
    if api.is_async:
        async with box:
            assert await box.is_running()
    else:
        with box:
            assert box.is_running()
    assert await go(box.is_running()) is False


async def git_keeps_a_history(api):
    git, where = api.shared.git, f'/home/user/repo-{api.kind}'
    await go(git.init(where, initial_branch='main'))
    await go(git.configure_user('Name', 'name@example.org', scope='local', path=where))
    await go(api.shared.files.write(f'{where}/f', 'one'))
    assert (await go(git.status(where))).file_status[0].name == 'f'
    await go(git.add(where))
    await go(git.commit(where, 'first'))
    assert (await go(git.status(where))).is_clean
    await go(git.create_branch(where, 'side'))
    branches = await go(git.branches(where))
    assert (sorted(branches.branches), branches.current_branch) == (['main', 'side'], 'side')
    await go(git.checkout_branch(where, 'main'))
    await go(git.delete_branch(where, 'side', force=True))
    assert (await go(git.branches(where))).branches == ['main']


async def git_clones_pushes_and_pulls(api):
    git, base = api.shared.git, f'/home/user/git-{api.kind}'
    await go(git.init(f'{base}/bare', bare=True, initial_branch='main'))
    await go(git.clone(f'{base}/bare', f'{base}/a'))
    await go(git.configure_user('Name', 'name@example.org', scope='local', path=f'{base}/a'))
    await go(api.shared.files.write(f'{base}/a/f', 'one'))
    await go(git.add(f'{base}/a'))
    await go(git.commit(f'{base}/a', 'first'))
    await go(git.push(f'{base}/a'))
    await go(git.clone(f'{base}/bare', f'{base}/b'))
    await go(api.shared.files.write(f'{base}/a/f', 'two'))
    await go(git.commit(f'{base}/a', 'second', allow_empty=True))
    await go(git.push(f'{base}/a'))
    await go(git.pull(f'{base}/b'))
    assert (await go(api.shared.commands.run('git log --oneline | wc -l', cwd=f'{base}/b'))).stdout.strip() == '2'


async def git_keeps_settings(api):
    git, where = api.shared.git, f'/home/user/set-{api.kind}'
    await go(git.init(where))
    await go(git.set_config('some.key', 'value', scope='local', path=where))
    assert await go(git.get_config('some.key', scope='local', path=where)) == 'value'
    assert not await go(git.get_config('other.key', scope='local', path=where))
    await go(git.remote_add(where, 'origin', 'https://example.org/x.git'))
    assert await go(git.remote_get(where, 'origin')) == 'https://example.org/x.git'

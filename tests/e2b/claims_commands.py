# SPDX-License-Identifier: Apache-2.0
"""Commands and terminals."""

import os

from client import fails, go
from e2b import (AuthenticationException, CommandExitException, InvalidArgumentException, NotFoundException, PtySize, SandboxException,
                 TimeoutException)

ROOT = os.environ.get('CAY_TEST_USER', 'root')


async def a_command_gives_its_output_and_exit_code(api):
    ran = await go(api.shared.commands.run('echo out; echo err >&2; echo $FOO; pwd; whoami'))
    assert (ran.exit_code, ran.stdout, ran.stderr, ran.error) == (0, 'out\nbar\n/home/user\nuser\n', 'err\n', None)


async def a_command_that_fails_raises(api):
    error = await fails(lambda: api.shared.commands.run('echo partly; echo bad >&2; exit 3'), CommandExitException)
    assert (error.exit_code, error.stdout, error.stderr, error.error) == (3, 'partly\n', 'bad\n', 'exit status 3')


async def a_command_that_does_not_exist_is_127(api):
    error = await fails(lambda: api.shared.commands.run('no-such-command-here'), CommandExitException)
    assert error.exit_code == 127 and 'not found' in error.stderr


async def a_killed_command_says_so(api):
    error = await fails(lambda: api.shared.commands.run('kill -9 $$'), CommandExitException)
    assert error.exit_code == -1 and error.error == 'signal: killed'


async def commands_take_variables(api):
    ran = await go(api.shared.commands.run('echo "$A|$FOO"', envs={'A': 'x y\nž', 'FOO': 'other'}))
    assert ran.stdout == 'x y\nž|other\n'


async def variables_of_a_command_end_with_it(api):
    await go(api.shared.commands.run('export GONE=1', envs={'ALSO': '1'}))
    assert (await go(api.shared.commands.run('echo "[$GONE$ALSO]"'))).stdout == '[]\n'


async def commands_take_a_directory(api):
    assert (await go(api.shared.commands.run('pwd', cwd='/tmp'))).stdout == '/tmp\n'


async def a_relative_directory_is_below_home(api):
    await go(api.shared.commands.run('mkdir -p rel/dir'))
    assert (await go(api.shared.commands.run('pwd', cwd='rel/dir'))).stdout == '/home/user/rel/dir\n'


async def a_directory_that_is_missing_is_named(api):
    await fails(lambda: api.shared.commands.run('true', cwd='/nowhere/at/all'), InvalidArgumentException, says='/nowhere/at/all')


async def commands_take_a_user(api):
    assert (await go(api.shared.commands.run('whoami', user=ROOT))).stdout == f'{ROOT}\n'


async def the_home_of_a_user_is_the_directory(api):
    home = '/root' if ROOT == 'root' else f'/home/{ROOT}'
    assert (await go(api.shared.commands.run('pwd; echo $HOME', user=ROOT))).stdout == f'{home}\n{home}\n'


async def a_user_that_is_missing_is_named(api):
    await fails(lambda: api.shared.commands.run('true', user='nobodyhere'), AuthenticationException, says="invalid username: 'nobodyhere'")


async def output_comes_to_callbacks(api):
    out, err = [], []
    await go(api.shared.commands.run('echo a; echo b >&2; echo c', on_stdout=out.append, on_stderr=err.append))
    assert (''.join(out), ''.join(err)) == ('a\nc\n', 'b\n')


async def output_comes_before_the_end(api):
    handle = await go(api.shared.commands.run('echo one; read line; echo got $line', background=True, stdin=True))
    await go(api.shared.commands.send_stdin(handle.pid, 'hello\n'))
    assert (await go(handle.wait())).stdout == 'one\ngot hello\n'


async def much_output_is_whole(api):
    ran = await go(api.shared.commands.run('head -c 3000000 /dev/zero | tr "\\0" x'))
    assert ran.stdout == 'x' * 3000000


async def output_that_is_no_text_does_not_break_it(api):
    ran = await go(api.shared.commands.run("printf 'a\\377b\\342\\202'; printf '\\254'"))
    assert ran.stdout.startswith('a') and 'b' in ran.stdout and ran.stdout.endswith('€')


async def many_lines_are_in_order(api):
    ran = await go(api.shared.commands.run('seq 20000'))
    assert ran.stdout == ''.join(f'{i}\n' for i in range(1, 20001))


async def a_command_ends_at_its_deadline(api):
    await fails(lambda: api.shared.commands.run('sleep 60', timeout=1), TimeoutException)


async def a_command_without_a_deadline_goes_on(api):
    assert (await go(api.shared.commands.run('sleep 0.2; echo end', timeout=0))).stdout == 'end\n'


async def stdin_is_closed_by_default(api):
    assert (await go(api.shared.commands.run('cat; echo end'))).stdout == 'end\n'


async def stdin_can_be_closed(api):
    handle = await go(api.shared.commands.run('cat; echo end', background=True, stdin=True))
    await go(api.shared.commands.send_stdin(handle.pid, 'abc'))
    await go(api.shared.commands.close_stdin(handle.pid))
    assert (await go(handle.wait())).stdout == 'abcend\n'


async def stdin_takes_bytes(api):
    handle = await go(api.shared.commands.run('od -An -tx1', background=True, stdin=True))
    await go(api.shared.commands.send_stdin(handle.pid, b'\x00\xff'))
    await go(api.shared.commands.close_stdin(handle.pid))
    assert (await go(handle.wait())).stdout.split() == ['00', 'ff']


async def input_to_nobody_is_not_found(api):
    await fails(lambda: api.shared.commands.send_stdin(999999, 'x'), NotFoundException)


async def input_of_a_closed_stdin_is_refused(api):
    handle = await go(api.shared.commands.run('sleep 100', background=True, stdin=False))
    try:
        await fails(lambda: api.shared.commands.send_stdin(handle.pid, 'x'), SandboxException)
    finally:
        await go(handle.kill())


async def input_comes_as_a_stream(api):
    handle = await go(api.shared.commands.run('head -c 6; echo; echo end', background=True, stdin=True))
    if api.is_async:
        async with await go(api.shared.commands.stream_input(handle.pid)) as stream:
            for part in ('ab', b'cd', 'ef'):
                await stream.send(part)
    else:
        api.shared.commands.stream_input(handle.pid, ['ab', b'cd', 'ef'])
    assert (await go(handle.wait())).stdout == 'abcdef\nend\n'


async def _stream_to_nobody(api):
    stream = await go(api.shared.commands.stream_input(999999))
    await stream.send('x')
    await stream.close()


async def a_stream_of_input_to_nobody_is_not_found(api):
    if api.is_async:
        await fails(_stream_to_nobody(api), NotFoundException)
    else:
        await fails(lambda: api.shared.commands.stream_input(999999, ['x']), NotFoundException)


async def processes_are_listed(api):
    handle = await go(api.shared.commands.run('exec sleep 100', background=True, envs={'E': '1'}, cwd='/tmp'))
    listed, = [p for p in await go(api.shared.commands.list()) if p.pid == handle.pid]
    assert (listed.cmd, listed.args, listed.envs, listed.cwd) == ('/bin/bash', ['-l', '-c', 'exec sleep 100'], {'E': '1'}, '/tmp')
    await go(handle.kill())
    await fails(handle.wait, CommandExitException)
    assert handle.pid not in [p.pid for p in await go(api.shared.commands.list())]


async def a_process_is_killed(api):
    handle = await go(api.shared.commands.run('sleep 100', background=True))
    assert await go(api.shared.commands.kill(handle.pid)) is True
    await fails(handle.wait, CommandExitException)
    assert await go(api.shared.commands.kill(handle.pid)) is False


async def a_handle_kills_its_process(api):
    handle = await go(api.shared.commands.run('sleep 100', background=True))
    assert await go(handle.kill()) is True
    assert (await go(api.shared.commands.run(f'kill -0 {handle.pid} || echo gone'))).stdout == 'gone\n'


async def killing_nobody_is_false(api):
    assert await go(api.shared.commands.kill(999999)) is False


async def a_second_client_joins_a_process(api):
    handle = await go(api.shared.commands.run('read line; echo got $line', background=True, stdin=True))
    joined = await go(api.shared.commands.connect(handle.pid))
    assert joined.pid == handle.pid
    await go(api.shared.commands.send_stdin(handle.pid, 'x\n'))
    assert (await go(joined.wait())).stdout == 'got x\n'
    assert (await go(handle.wait())).exit_code == 0


async def joining_nobody_is_not_found(api):
    await fails(lambda: api.shared.commands.connect(999999), NotFoundException)


async def a_process_outlives_its_client(api):
    handle = await go(api.shared.commands.run('sleep 100', background=True))
    await go(handle.disconnect())
    assert (await go(api.shared.commands.run(f'kill -0 {handle.pid} && echo there'))).stdout == 'there\n'
    assert await go(api.shared.commands.kill(handle.pid)) is True


async def children_in_the_background_stay(api):
    await go(api.shared.commands.run('setsid sleep 77 >/dev/null 2>&1 & echo $! > /tmp/child'))
    assert (await go(api.shared.commands.run('kill -0 $(cat /tmp/child) && kill $(cat /tmp/child) && echo there'))).stdout == 'there\n'


async def _terminal(api, size):
    """A terminal, and what reads it to its end."""
    if api.is_async:
        seen = []
        handle = await go(api.shared.pty.create(size, on_data=seen.append))

        async def read():
            await handle.wait()
            return b''.join(seen).decode()
        return handle, read
    handle = api.shared.pty.create(size)

    async def read_sync():
        seen = []
        handle.wait(on_pty=seen.append)
        return b''.join(seen).decode()
    return handle, read_sync


async def a_terminal_has_its_size(api):
    handle, read = await _terminal(api, PtySize(rows=24, cols=80))
    await go(api.shared.pty.send_stdin(handle.pid, b'stty size; echo $TERM; exit\n'))
    text = await read()
    assert '24 80' in text and 'xterm-256color' in text


async def a_terminal_changes_its_size(api):
    handle, read = await _terminal(api, PtySize(rows=24, cols=80))
    await go(api.shared.pty.resize(handle.pid, PtySize(rows=30, cols=100)))
    await go(api.shared.pty.send_stdin(handle.pid, b'stty size; tput cols; exit\n'))
    text = await read()
    assert '30 100' in text


async def a_terminal_is_killed(api):
    handle, _ = await _terminal(api, PtySize(rows=24, cols=80))
    assert await go(api.shared.pty.kill(handle.pid)) is True
    assert await go(api.shared.pty.kill(999999)) is False


async def a_terminal_takes_a_stream_of_input(api):
    handle, read = await _terminal(api, PtySize(rows=24, cols=80))
    parts = [b'echo $((20', b'+22))\n', b'exit\n']
    if api.is_async:
        async with await go(api.shared.pty.stream_input(handle.pid)) as stream:
            for part in parts:
                await stream.send(part)
    else:
        api.shared.pty.stream_input(handle.pid, parts)
    assert '42' in await read()


async def resizing_nobody_is_not_found(api):
    await fails(lambda: api.shared.pty.resize(999999, PtySize(rows=1, cols=1)), NotFoundException)

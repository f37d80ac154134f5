// SPDX-License-Identifier: Apache-2.0
// More claims about the npm package e2b, most of them as tables. They share one sandbox and run side by side, so each
// has files of its own.
import assert from 'node:assert/strict'
import {
  AuthenticationError, CommandExitError, FileNotFoundError, FilesystemEventType as T, FileType, InvalidArgumentError, NotFoundError,
  Sandbox, SandboxError, SandboxNotFoundError, Secret, SecretError, SecretNotFoundError, TimeoutError,
} from 'e2b'

const ROOT = process.env.CAY_TEST_USER ?? 'root'
const MISSING = 'i0000000000000000000'
export const cases = {}

// What a command prints: name, command, options, stdout, stderr.
const commands = [
  ['nothing', 'true', {}, '', ''],
  ['its output', 'echo out', {}, 'out\n', ''],
  ['its errors', 'echo err >&2', {}, '', 'err\n'],
  ['text that is not ASCII', 'echo žluťoučký 漢字', {}, 'žluťoučký 漢字\n', ''],
  ['a variable of the sandbox', 'echo $FOO', {}, 'bar\n', ''],
  ['a variable of its own', 'echo "$A"', { envs: { A: 'x y' } }, 'x y\n', ''],
  ['a variable with lines', 'echo "$A"', { envs: { A: 'x\ny' } }, 'x\ny\n', ''],
  ['a variable that replaces one', 'echo $FOO', { envs: { FOO: 'other' } }, 'other\n', ''],
  ['the home directory', 'pwd; echo $HOME', {}, '/home/user\n/home/user\n', ''],
  ['another directory', 'pwd', { cwd: '/tmp' }, '/tmp\n', ''],
  ['its user', 'whoami', {}, 'user\n', ''],
  ['another user', 'whoami', { user: ROOT }, `${ROOT}\n`, ''],
  ['the end of an empty stdin', 'cat; echo end', {}, 'end\n', ''],
  ['what a pipe gives', 'seq 3 | tac', {}, '3\n2\n1\n', ''],
  ['what a here-document has', 'cat <<X\na\nb\nX', {}, 'a\nb\n', ''],
  ['quotes as they are', `echo '"' "'"`, {}, `" '\n`, ''],
  ['many lines in order', 'seq 5000', {}, Array.from({ length: 5000 }, (_, i) => `${i + 1}\n`).join(''), ''],
  ['no end of line where there is none', 'printf abc', {}, 'abc', ''],
]
for (const [what, cmd, opts, stdout, stderr] of commands) {
  cases[`a command gives ${what}`] = async (box) => {
    const ran = await box.commands.run(cmd, opts)
    assert.deepEqual([ran.exitCode, ran.stdout, ran.stderr], [0, stdout, stderr])
  }
}

// Exit codes: command, code, error.
for (const [cmd, code, error] of [
  ['exit 1', 1, 'exit status 1'], ['exit 3', 3, 'exit status 3'], ['exit 255', 255, 'exit status 255'], ['false', 1, 'exit status 1'],
  ['no-such-command', 127, 'exit status 127'], ['/etc/passwd', 126, 'exit status 126'],
  ['kill -9 $$', -1, 'signal: killed'], ['kill -15 $$', -1, 'signal: terminated'],
]) {
  cases[`'${cmd}' ends with ${code}`] = async (box) => {
    await assert.rejects(box.commands.run(cmd), (e) => e instanceof CommandExitError && e.exitCode === code && e.error === error)
  }
}

// What must fail: name, call, class, text.
const failures = [
  ['a missing directory', (b) => b.commands.run('true', { cwd: '/nowhere/x' }), InvalidArgumentError, '/nowhere/x'],
  ['an unknown user', (b) => b.commands.run('true', { user: 'nobodyhere' }), AuthenticationError, "invalid username: 'nobodyhere'"],
  ['a deadline', (b) => b.commands.run('sleep 60', { timeoutMs: 300 }), TimeoutError, ''],
  ['input to nobody', (b) => b.commands.sendStdin(999999, 'x'), NotFoundError, 'not found'],
  ['the end of input to nobody', (b) => b.commands.closeStdin(999999), NotFoundError, 'not found'],
  ['joining nobody', (b) => b.commands.connect(999999), NotFoundError, 'not found'],
  ['resizing nobody', (b) => b.pty.resize(999999, { cols: 1, rows: 1 }), NotFoundError, 'not found'],
  ['terminal input to nobody', (b) => b.pty.sendInput(999999, new Uint8Array([1])), NotFoundError, 'not found'],
  ['reading what is missing', (b) => b.files.read('missing'), FileNotFoundError, "'/home/user/missing' does not exist"],
  ['reading a directory', (b) => b.files.read('/tmp'), InvalidArgumentError, 'is a directory'],
  ['writing over a directory', (b) => b.files.write('/tmp', 'x'), InvalidArgumentError, 'is a directory'],
  ['reading as nobody', (b) => b.files.read('x', { user: 'nobodyhere' }), AuthenticationError, 'invalid username'],
  ['writing as nobody', (b) => b.files.write('x', 'y', { user: 'nobodyhere' }), AuthenticationError, 'invalid username'],
  ['listing as nobody', (b) => b.files.list('/', { user: 'nobodyhere' }), AuthenticationError, 'invalid username'],
  ['listing what is missing', (b) => b.files.list('nowhere'), NotFoundError, 'does not exist'],
  ['listing a file', (b) => b.files.list('/etc/passwd'), InvalidArgumentError, 'not a directory'],
  ['a depth of nothing', (b) => b.files.list('/', { depth: 0 }), InvalidArgumentError, ''],
  ['info of what is missing', (b) => b.files.getInfo('nowhere'), NotFoundError, 'does not exist'],
  ['moving what is missing', (b) => b.files.rename('nowhere', 'x'), NotFoundError, 'does not exist'],
  ['a directory over a file', (b) => b.files.makeDir('/etc/passwd'), InvalidArgumentError, ''],
  ['watching what is missing', (b) => b.files.watchDir('nowhere', () => {}), NotFoundError, 'does not exist'],
  ['watching a file', (b) => b.files.watchDir('/etc/passwd', () => {}), InvalidArgumentError, 'not a directory'],
  ['an unknown template', () => Sandbox.create('no-such-template'), SandboxError, "template 'no-such-template' not found"],
  ['a wrong key', () => Sandbox.create('base', { apiKey: 'e2b_' + '0'.repeat(40) }), AuthenticationError, ''],
  ['info of nothing', () => Sandbox.getInfo(MISSING), SandboxNotFoundError, MISSING],
  ['connecting to nothing', () => Sandbox.connect(MISSING), SandboxNotFoundError, MISSING],
  ['time for nothing', () => Sandbox.setTimeout(MISSING, 1000), SandboxNotFoundError, MISSING],
  ['pausing nothing', () => Sandbox.pause(MISSING), SandboxNotFoundError, MISSING],
  ['metrics of nothing', () => Sandbox.getMetrics(MISSING), SandboxNotFoundError, MISSING],
  ['a snapshot of nothing', () => Sandbox.createSnapshot(MISSING), SandboxNotFoundError, MISSING],
  ['a network of nothing', () => Sandbox.updateNetwork(MISSING, {}), SandboxNotFoundError, MISSING],
  ['an unknown secret', () => Secret.getInfo('unknown'), SecretNotFoundError, 'unknown'],
  ['a new value of an unknown secret', () => Secret.update('unknown', 'x'), SecretNotFoundError, 'unknown'],
  ['a secret without a name', () => Secret.create('', 'x'), SecretError, 'name must be'],
  ['a secret without a value', () => Secret.create('empty-js', ''), SecretError, 'value must have'],
]
for (const [what, call, kind, text] of failures) {
  cases[`${what} fails`] = async (box) => {
    await assert.rejects(Promise.resolve().then(() => call(box)), (e) => {
      assert(e instanceof kind, `${e?.constructor?.name}: ${e?.message}`)
      assert(e.message.includes(text), e.message)
      return true
    })
  }
}

cases['a command whose time is over does not go on'] = async (box) => {
  await assert.rejects(box.commands.run('exec -a overdue sleep 61', { timeoutMs: 300 }), TimeoutError)
  while ((await box.commands.list()).some((p) => p.args.includes('exec -a overdue sleep 61')));
}

// Files: name, content.
for (const [i, [what, data]] of [
  ['text', 'hello\n'], ['nothing', ''], ['text that is not ASCII', 'ž漢🎉'], ['a blob', new Blob(['a blob'])], ['bytes', new Uint8Array([0, 255, 128]).buffer],
  ['a stream', new Blob(['from a stream']).stream()], ['a megabyte', 'x'.repeat(1 << 20)], ['line ends', 'a\r\nb\n'],
].entries()) {
  cases[`a file of ${what} is read as it was written`] = async (box) => {
    const wanted = data instanceof Blob ? 'a blob' : data instanceof ReadableStream ? 'from a stream' : data instanceof ArrayBuffer ? Buffer.from(data).toString('latin1') : data
    await box.files.write(`kinds/${i}`, data)
    const bytes = Buffer.from(await box.files.read(`kinds/${i}`, { format: 'bytes' }))
    assert.equal(bytes.toString(data instanceof ArrayBuffer ? 'latin1' : 'utf8'), wanted)
    assert.equal((await box.files.getInfo(`kinds/${i}`)).size, bytes.length)
  }
}
for (const name of ['plain', 'with space', 'ž', '漢', "quo'te", 'dou"ble', 'per%cent', 'plus+', 'a&b=c', '#hash', 'semi;colon', '-dash', '.hidden', '*star?']) {
  cases[`a file can be called ${name}`] = async (box) => {
    await box.files.write(`names/${name}`, name, { useOctetStream: name.includes('"') })
    assert.equal(await box.files.read(`names/${name}`), name)
    assert.equal(await box.files.exists(`names/${name}`), true)
    assert((await box.files.list('names')).some((e) => e.name === name))
  }
}
cases['metadata stays with a file'] = async (box) => {
  const info = await box.files.write('described', 'x', { metadata: { author: 'me', kind: 'test' } })
  assert.deepEqual(info.metadata, { author: 'me', kind: 'test' })
  assert.deepEqual((await box.files.getInfo('described')).metadata, { author: 'me', kind: 'test' })
}
cases['a packed upload is unpacked'] = async (box) => {
  const text = Array.from({ length: 20000 }, (_, i) => i).join(' ')
  await box.files.write('packed', text, { gzip: true })
  assert.equal(await box.files.read('packed'), text)
}
cases['a file is read as a stream and as a blob'] = async (box) => {
  await box.files.write('forms', 'forms')
  assert.equal(await (await box.files.read('forms', { format: 'blob' })).text(), 'forms')
  assert.equal(await new Response(await box.files.read('forms', { format: 'stream' })).text(), 'forms')
}
cases['a list goes as deep as asked'] = async (box) => {
  for (const f of ['a/b/c', 'a/x', 'z']) await box.files.write(`deep/${f}`, '')
  const names = async (depth) => (await box.files.list('deep', { depth })).map((e) => e.path.replace('/home/user/deep/', ''))
  assert.deepEqual(await names(1), ['a', 'z'])
  assert.deepEqual(await names(2), ['a', 'a/b', 'a/x', 'z'])
  assert.deepEqual(await names(9), ['a', 'a/b', 'a/b/c', 'a/x', 'z'])
}
cases['a link tells where it leads'] = async (box) => {
  await box.commands.run('mkdir -p links; echo x > links/f; ln -sf f links/l')
  const info = await box.files.getInfo('links/l')
  assert.deepEqual([info.type, info.symlinkTarget], [FileType.FILE, '/home/user/links/f'])
}

// Watching: name, what happens, the events that must come.
const watches = [
  ['a new file', 'echo x > f', {}, [['f', T.CREATE], ['f', T.WRITE]]],
  ['a removed file', ': > g; rm g', {}, [['g', T.CREATE], ['g', T.REMOVE]]],
  ['a renamed file', ': > a; mv a b', {}, [['a', T.RENAME], ['b', T.CREATE]]],
  ['a changed mode', ': > m; chmod 600 m', {}, [['m', T.CHMOD]]],
  ['a directory', 'mkdir d', {}, [['d', T.CREATE]]],
  ['a tree', 'mkdir -p x/y; echo 1 > x/y/z', { recursive: true }, [['x', T.CREATE], ['x/y', T.CREATE], ['x/y/z', T.CREATE]]],
]
for (const [i, [what, cmd, opts, wanted]] of watches.entries()) {
  cases[`a watch tells of ${what}`] = async (box) => {
    await box.files.makeDir(`watch/${i}`)
    const seen = new Set()
    let all
    const came = new Promise((resolve) => { all = resolve })
    const handle = await box.files.watchDir(`watch/${i}`, (e) => {
      seen.add(`${e.name} ${e.type}`)
      if (wanted.every(([name, type]) => seen.has(`${name} ${type}`))) all()
    }, opts)
    await box.commands.run(cmd, { cwd: `/home/user/watch/${i}` })
    await came
    await handle.stop()
  }
}
cases['a watch tells of a file that a client writes, with its entry'] = async (box) => {
  await box.files.write('watch/entry/f', 'old')
  let told
  const came = new Promise((resolve) => { told = resolve })
  const handle = await box.files.watchDir('watch/entry', (e) => { if (e.type === T.WRITE) told(e) }, { includeEntry: true })
  await box.files.write('watch/entry/f', 'newer')
  const event = await came
  assert.deepEqual([event.name, event.entry.size, event.entry.path], ['f', 5, '/home/user/watch/entry/f'])
  await handle.stop()
}

cases['signed URLs open one file, without an id'] = async (box) => {
  await box.files.write('signed-js', 'signed')
  const url = await box.downloadUrl('signed-js')
  const got = await fetch(url)
  assert.deepEqual([got.status, await got.text()], [200, 'signed'])
  assert.equal((await fetch(url.replace('signed-js', 'other'))).status, 401)
  const up = await box.uploadUrl('uploaded-js')
  assert.equal((await fetch(up, { method: 'POST', body: 'up', headers: { 'content-type': 'application/octet-stream' } })).status, 200)
  assert.equal(await box.files.read('uploaded-js'), 'up')
}
cases['metrics are told'] = async (box) => {
  const [m] = await box.getMetrics()
  assert(m.cpuCount >= 1 && m.memUsed > 0 && m.memTotal >= m.memUsed && m.diskTotal >= m.diskUsed)
}
cases['secrets are stored and listed'] = async () => {
  const made = await Secret.create('token-js', 'the value', { metadata: { a: 'b' } })
  assert.equal((await Secret.getInfo('token-js')).secretId, made.secretId)
  assert.equal((await Secret.update('token-js', 'other')).version, 2)
  assert((await Secret.list().nextItems()).some((s) => s.name === 'token-js' && !JSON.stringify(s).includes('the value')))
  await assert.rejects(Secret.create('token-js', 'x'), SecretError)
  assert.equal(await Secret.destroy('token-js'), true)
  assert.equal(await Secret.exists('token-js'), false)
}
cases['a sandbox resumes by use'] = async () => {
  const box = await Sandbox.create('base', { allowInternetAccess: false, lifecycle: { onTimeout: 'pause', autoResume: true } })
  await box.pause()
  assert.equal(await box.isRunning(), false)
  assert.equal((await box.commands.run('echo woken')).stdout, 'woken\n')
  assert.equal(await box.kill(), true)
}
cases['git keeps a history'] = async (box) => {
  const at = '/home/user/repo-js'
  await box.git.init(at, { initialBranch: 'main' })
  await box.git.configureUser('Name', 'name@example.org', { scope: 'local', path: at })
  await box.files.write(`${at}/f`, 'one')
  assert.equal((await box.git.status(at)).fileStatus[0].name, 'f')
  await box.git.add(at)
  await box.git.commit(at, 'first')
  await box.git.createBranch(at, 'side')
  assert.deepEqual((await box.git.branches(at)).branches.sort(), ['main', 'side'])
  await box.git.checkoutBranch(at, 'main')
  await box.git.deleteBranch(at, 'side', { force: true })
  await box.git.remoteAdd(at, 'origin', 'https://example.org/x.git')
}

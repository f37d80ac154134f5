// SPDX-License-Identifier: Apache-2.0
// What people do with the npm package e2b, against a server of ours. E2B_* in the environment say
// where it is. One line of TAP per claim; usage: node client.mjs [CLAIM...]
import assert from 'node:assert/strict'
import http from 'node:http'
import { cases } from './cases.mjs'
import { Sandbox, CommandExitError, TimeoutError, NotFoundError, FileType } from 'e2b'

// As a browser would, where names below the domain lead to the server.
function get(host, path) {
  const at = new URL(process.env.E2B_SANDBOX_URL)
  return new Promise((resolve, reject) => {
    http.get({ host: at.hostname, port: at.port, path, headers: { host } }, async (r) => {
      const parts = await r.toArray()
      resolve([r.statusCode, Buffer.concat(parts).toString()])
    }).on('error', reject)
  })
}

const claims = {
  async commands_give_their_output_and_exit_code(box) {
    const ran = await box.commands.run('echo out; echo err >&2; echo $FOO; pwd; whoami', { envs: { A: '1' } })
    assert.deepEqual([ran.exitCode, ran.stdout, ran.stderr], [0, 'out\nbar\n/home/user\nuser\n', 'err\n'])
    await assert.rejects(box.commands.run('echo partly; exit 3'), (e) => {
      assert(e instanceof CommandExitError)
      return e.exitCode === 3 && e.stdout === 'partly\n'
    })
  },
  async commands_take_directory_user_and_variables(box) {
    const ran = await box.commands.run('pwd; whoami; echo $A', { cwd: '/tmp', user: process.env.CAY_TEST_USER ?? 'root', envs: { A: 'x y' } })
    assert.equal(ran.stdout, `/tmp\n${process.env.CAY_TEST_USER ?? 'root'}\nx y\n`)
    await assert.rejects(box.commands.run('true', { cwd: '/nowhere' }))
    await assert.rejects(box.commands.run('true', { user: 'nobodyhere' }))
  },
  async output_comes_while_the_command_runs(box) {
    const seen = []
    let first
    const came = new Promise((resolve) => { first = resolve })
    const handle = await box.commands.run('echo one; read line; echo got $line', {
      background: true, stdin: true, onStdout: (s) => { seen.push(s); first() },
    })
    await came
    await box.commands.sendStdin(handle.pid, 'hello\n')
    const end = await handle.wait()
    assert.equal(end.stdout, 'one\ngot hello\n')
  },
  async stdin_can_be_closed(box) {
    const handle = await box.commands.run('cat; echo end', { background: true, stdin: true })
    await box.commands.sendStdin(handle.pid, 'abc')
    await box.commands.closeStdin(handle.pid)
    assert.equal((await handle.wait()).stdout, 'abcend\n')
  },
  async processes_are_listed_joined_and_killed(box) {
    const handle = await box.commands.run('echo up; sleep 100', { background: true })
    const listed = await box.commands.list()
    assert(listed.some((p) => p.pid === handle.pid && p.cmd === '/bin/bash'))
    const second = await box.commands.connect(handle.pid)
    assert.equal(second.pid, handle.pid)
    const both = [second, handle].map((h) => assert.rejects(h.wait(), CommandExitError))
    assert.equal(await box.commands.kill(handle.pid), true)
    await Promise.all(both)
    assert.equal(await box.commands.kill(999999), false)
  },
  async a_command_ends_at_its_deadline(box) {
    await assert.rejects(box.commands.run('sleep 60', { timeoutMs: 500 }), TimeoutError)
  },
  async much_output_arrives_whole(box) {
    const ran = await box.commands.run('head -c 3000000 /dev/zero | tr "\\0" x')
    assert.equal(ran.stdout.length, 3000000)
  },
  async terminals_work(box) {
    let text = ''
    const handle = await box.pty.create({ cols: 80, rows: 24, onData: (d) => { text += new TextDecoder().decode(d) } })
    await box.pty.resize(handle.pid, { cols: 100, rows: 30 })
    await box.pty.sendInput(handle.pid, new TextEncoder().encode('stty size; exit\n'))
    const end = await handle.wait()
    assert.equal(end.exitCode, 0)
    assert.match(text, /30 100/)
  },
  async files_are_written_and_read(box) {
    const info = await box.files.write('dir/ž ö.txt', 'hällo\n')
    assert.equal(info.path, '/home/user/dir/ž ö.txt')
    assert.equal(await box.files.read('dir/ž ö.txt'), 'hällo\n')
    await box.files.write('/tmp/empty', '')
    assert.equal(await box.files.read('/tmp/empty'), '')
    const big = new Uint8Array(5_000_000).map((_, i) => i * 7)
    await box.files.write('big', big.buffer)
    const back = await box.files.read('big', { format: 'bytes' })
    assert(Buffer.from(big).equals(Buffer.from(back)))
    await assert.rejects(box.files.read('missing'), NotFoundError)
  },
  async several_files_are_written_at_once(box) {
    const many = await box.files.write([{ path: 'm/a', data: 'A' }, { path: '/tmp/b', data: 'B' }])
    assert.deepEqual(many.map((f) => f.path), ['/home/user/m/a', '/tmp/b'])
    assert.equal(await box.files.read('m/a') + await box.files.read('/tmp/b'), 'AB')
  },
  async directories_are_made_listed_moved_and_removed(box) {
    assert.equal(await box.files.makeDir('d1/d2'), true)
    assert.equal(await box.files.makeDir('d1/d2'), false)
    await box.files.write('d1/f', 'x')
    const list = await box.files.list('d1')
    assert.deepEqual(list.map((e) => [e.name, e.type, e.path]),
      [['d2', FileType.DIR, '/home/user/d1/d2'], ['f', FileType.FILE, '/home/user/d1/f']])
    await assert.rejects(box.files.list('nowhere'), NotFoundError)
    const moved = await box.files.rename('d1/f', 'd3/g')
    assert.equal(moved.path, '/home/user/d3/g')
    assert.equal(await box.files.exists('d1/f'), false)
    const info = await box.files.getInfo('d3/g')
    assert.deepEqual([info.size, info.mode, info.owner, info.permissions], [1, 0o644, 'user', '-rw-r--r--'])
    await box.files.remove('d1')
    assert.equal(await box.files.exists('d1'), false)
  },
  async signed_urls_open_one_file(box) {
    await box.files.write('hello.txt', 'signed')
    const routed = { headers: { 'E2b-Sandbox-Id': box.sandboxId, 'E2b-Sandbox-Port': '49983' } }
    const url = await box.downloadUrl('hello.txt')
    const got = await fetch(url, routed)
    assert.deepEqual([got.status, await got.text()], [200, 'signed'])
    assert.equal((await fetch(url.replace('hello', 'other'), routed)).status, 401)
    assert.equal((await fetch(url.replace(/signature=[^&]*/, ''), routed)).status, 401)
  },
  async ports_are_reached_by_the_name_of_their_host(box) {
    await box.files.write('www/index.html', 'from inside')
    const handle = await box.commands.run('exec python3 -m http.server 8000 --bind 127.0.0.1 -d www', { background: true })
    for (;;) {
      const [status, text] = await get(box.getHost(8000), '/')
      if (status === 200) { assert.equal(text, 'from inside'); break }
      assert.deepEqual([status, JSON.parse(text).port], [502, 8000])
    }
    assert.equal((await get(box.getHost(8000), '/missing'))[0], 404)
    await handle.kill()
  },
  async snapshots_are_taken_started_and_deleted(box) {
    await box.files.write('kept', 'as it was')
    const snap = await box.createSnapshot()
    await box.files.write('kept', 'later')
    const listed = await box.listSnapshots().nextItems()
    assert.deepEqual(listed.map((s) => s.snapshotId), [snap.snapshotId])
    const made = await Sandbox.create(snap.snapshotId, { allowInternetAccess: false })
    assert.equal(await made.files.read('kept'), 'as it was')
    await made.kill()
    assert.equal(await Sandbox.deleteSnapshot(snap.snapshotId), true)
    assert.equal(await Sandbox.deleteSnapshot(snap.snapshotId), false)
  },
  async a_sandbox_is_forked(box) {
    await box.files.write('kept', 'of the first')
    const forks = await box.fork({ count: 2 })
    assert.equal(forks.length, 2)
    for (const fork of forks) {
      assert.equal(await fork.files.read('kept'), 'of the first')
      assert.equal(await fork.kill(), true)
    }
  },
  async sandboxes_are_listed_with_their_metadata(box) {
    const info = await box.getInfo()
    assert.equal(info.sandboxId, box.sandboxId)
    assert.deepEqual(info.metadata, { 'k/x': 'v/ž &=', a: 'b c' })
    assert.equal((await box.getInfo()).endAt.getTime(), info.endAt.getTime())
    const found = await Sandbox.list({ query: { metadata: { 'k/x': 'v/ž &=' } } }).nextItems()
    assert.deepEqual(found.map((s) => s.sandboxId), [box.sandboxId])
    assert.deepEqual(await Sandbox.list({ query: { metadata: { a: 'other' } } }).nextItems(), [])
  },
  async timeouts_are_set(box) {
    await box.setTimeout(100_000)
    const left = (await box.getInfo()).endAt.getTime() - Date.now()
    assert(left > 60_000 && left < 110_000, `${left}`)
  },
  async the_network_is_changed_while_it_runs() {
    const open = await Sandbox.create('base', { network: { denyOut: ['192.0.9.0/24'] } })
    assert.equal((await open.getInfo()).allowInternetAccess, true)
    await open.updateNetwork({ allowOut: ['a.test'], denyOut: ['0.0.0.0/0'] })
    assert.equal((await open.getInfo()).allowInternetAccess, false)
    await open.kill()
  },
  async a_second_client_connects(box) {
    const other = await Sandbox.connect(box.sandboxId)
    assert.equal((await other.commands.run('echo again')).stdout, 'again\n')
  },
  async a_sandbox_pauses_and_resumes(box) {
    assert.equal(await box.isRunning(), true)
    await box.pause()
    assert.equal((await box.getInfo()).state, 'paused')
    assert.equal(await box.isRunning(), false)
    assert.equal(await box.pause(), false)
    await box.connect()
    assert.equal(await box.isRunning(), true)
    assert.equal((await box.commands.run('echo back')).stdout, 'back\n')
  },
  async a_killed_sandbox_is_gone(box) {
    const handle = await box.commands.run('sleep 100', { background: true })
    const ended = assert.rejects(handle.wait(), (e) => !(e instanceof CommandExitError))
    assert.equal(await box.kill(), true)
    await ended
    assert.equal(await box.isRunning(), false)
    assert.equal(await Sandbox.kill(box.sandboxId), false)
    await assert.rejects(Sandbox.connect(box.sandboxId))
  },
}

const box = await Sandbox.create('base', { envs: { FOO: 'bar' }, metadata: { 'k/x': 'v/ž &=', a: 'b c' }, timeoutMs: 300_000, allowInternetAccess: false })
let failed = 0
async function attempt(name, claim) {
  if (process.argv.length > 2 && !process.argv.includes(name)) return
  try {
    await claim(box)
    console.log(`ok - ${name}`)
  } catch (e) {
    failed++
    console.log(`not ok - ${name}`)
    console.log(String(e?.stack ?? e).replace(/^/gm, '# '))
  }
}
const waiting = Object.entries(cases)
await Promise.all([1, 2, 3, 4].map(async () => {
  while (waiting.length) await attempt(...waiting.shift())
}))
for (const [name, claim] of Object.entries(claims)) await attempt(name, claim)
await box.kill()
process.exit(failed ? 1 : 0)

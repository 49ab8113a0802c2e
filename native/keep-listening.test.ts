import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { beforeAll, describe, expect, test } from 'vitest'
import { cannotUnshare, childrenOf, start } from '../init-waker/testing/process.ts'
import { eventually } from '../test/support/eventually.ts'
import { buildProgram } from './build.ts'
import { targetOf } from './testing/container.ts'

/** No process has this number. */
const gone = '4194305:1'

const named = async (pid: number) => `${pid}:${(await targetOf(pid)).start}`

/** A network with a stopped server. On SIGUSR1 another server takes its place, and answers what waits. */
const script = (host: string) => `
  const { spawn } = require('node:child_process')
  const { once } = require('node:events')
  const { connect } = require('node:net')
  const source = \`
    const server = require('node:net').createServer(socket => socket.on('error', () => undefined).end('answer'))
    server.listen({ host: '${host}', port: 8080, reusePort: true }, () => process.send('up'))\`
  let server
  const serve = () => {
    server = spawn(process.execPath, ['-e', source], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    return once(server, 'message')
  }
  const client = (name, lastsMs) => {
    const socket = connect({ host: '127.0.0.1', port: 8080 })
    socket.on('data', data => console.log(name, data.toString()))
    socket.on('end', () => console.log(name, 'end'))
    socket.on('error', ({ code }) => console.log(name, code))
    return once(socket, 'connect').then(() => lastsMs && setTimeout(() => socket.destroy(), lastsMs))
  }
  process.once('SIGUSR1', async () => {
    server.kill('SIGKILL')
    await once(server, 'exit')
    await client('late')
    await serve()
    console.log('restarted')
  })
  serve().then(async () => {
    server.kill('SIGSTOP')
    for (const name of ['scraper', 'other']) await client(name, 100)
    await client('patient')
    await new Promise(resolve => setTimeout(resolve, 1_500))
    for (const name of ['first', 'second']) await client(name)
    console.log('stopped')
  })`

/** A network without a server. On SIGUSR1 a client connects, and a server begins to listen after that. */
const firstScript = (host: string) => `
  const { connect, createServer } = require('node:net')
  const timer = setInterval(() => undefined, 1_000)
  process.once('SIGUSR1', () => {
    const socket = connect({ host: '127.0.0.1', port: 8080 })
    socket.on('data', data => console.log('early', data.toString()))
    socket.on('end', () => console.log('early end'))
    socket.on('error', ({ code }) => console.log('early', code))
    socket.on('connect', () => {
      const server = createServer(other => other.on('error', () => undefined).end('answer'))
      server.listen({ host: '${host}', port: 8080, reusePort: true }, () => console.log('up'))
    })
  })
  console.log('ready')`

describe.skipIf(cannotUnshare !== undefined)(`keep-listening ${cannotUnshare ?? ''}`, () => {
  let program = ''
  beforeAll(async () => {
    program = await buildProgram('keep-listening')
  })

  test.each([
    ['recent', 'IPv4', '0.0.0.0'],
    ['recent', 'IPv6 that speaks IPv4', '::'],
    ['all', 'IPv4', '0.0.0.0'],
  ])('%s clients wait for the next server: a server of %s', async (patience, _, host) => {
    const inside = `ip link set lo up; exec ${process.execPath} -e "$0"`
    const lines = () => pod.stdout().trim().split('\n')
    // With a pid namespace of its own, as nothing else ends a stopped server.
    const command = ['unshare', '--net', 'sh', '-c', inside, script(host)]
    await using pod = await start('/usr/bin/env', command, { pidNamespace: true })
    await eventually(() => expect(lines()).toContain('stopped'))
    const [server] = childrenOf(pod.pid)
    const targets = [`${server}:1`, gone, await named(server ?? 0)]
    const keeper = spawn(program, [patience, ...targets], { stdio: ['pipe', 'pipe', 'inherit'] })
    const ended = once(keeper, 'close')
    expect(String(await once(keeper.stdout, 'data'))).toBe('kept 1\n')
    // The three of the beginning have waited for too long.
    if (patience === 'recent') await eventually(() => expect(lines()).toContain('patient end'))
    process.kill(pod.pid, 'SIGUSR1')
    await eventually(() => expect(lines()).toContain('restarted'))
    keeper.stdin.end()
    expect(await ended).toEqual([0, null])
    await eventually(() =>
      expect(
        lines()
          .filter(line => line.endsWith('answer'))
          .sort(),
      ).toEqual([
        'first answer',
        'late answer',
        ...(patience === 'all' ? ['patient answer'] : []),
        'second answer',
      ]),
    )
    expect(lines().filter(line => /E[A-Z]{4}/.test(line))).toEqual([])
  })

  test.each([
    ['IPv4', '0.0.0.0', '0.0.0.0/8080'],
    ['IPv6 that speaks IPv4', '::', '::/8080'],
  ])('clients wait for the first server: a server of %s', async (_, host, address) => {
    const inside = `ip link set lo up; exec ${process.execPath} -e "$0"`
    const lines = () => pod.stdout().trim().split('\n')
    await using pod = await start(
      '/usr/bin/env',
      ['unshare', '--net', 'sh', '-c', inside, firstScript(host)],
      {
        pidNamespace: true,
      },
    )
    await eventually(() => expect(lines()).toContain('ready'))
    // An address of another host cannot be bound, and holds up nothing.
    const addresses = [address, '192.0.2.1/8080', '::1/8081/6']
    const keeper = spawn(program, ['open', await named(pod.pid), ...addresses], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const ended = once(keeper, 'close')
    expect(String(await once(keeper.stdout, 'data'))).toBe('kept 2\n')
    process.kill(pod.pid, 'SIGUSR1')
    await eventually(() => expect(lines()).toContain('up'))
    expect(lines()).not.toContain('early answer')
    keeper.stdin.end()
    expect(await ended).toEqual([0, null])
    await eventually(() => expect(lines().toSorted()).toEqual(['early answer', 'early end', 'ready', 'up']))
  })

  test('what is gone listens nowhere', () => {
    expect(spawnSync(program, ['all', gone], { encoding: 'utf8', input: '' })).toMatchObject({
      status: 0,
      stdout: 'kept 0\n',
    })
  })

  test("the node's own network is never touched", async () => {
    const { status, stderr } = spawnSync(program, ['all', await named(process.pid)], {
      encoding: 'utf8',
      input: '',
    })
    expect([status, stderr]).toEqual([1, 'keep-listening: network of the process: Operation not permitted\n'])
  })

  test.each([
    [[]],
    [['all']],
    [['x', '1:1']],
    [['all', '1']],
    [['recent', '1:1', '-1:1']],
    [['all', '']],
    [['open', '1:1', '0.0.0.0']],
    [['open', '1:1', '0.0.0.0/65536']],
    [['open', '1:1', '::/1/4']],
    [['open', '1:1', 'x/1']],
  ])('usage: %j', args => {
    expect(spawnSync(program, args, { encoding: 'utf8', input: '' })).toMatchObject({
      status: 2,
      stdout: '',
    })
  })
})

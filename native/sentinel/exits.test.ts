import { readlinkSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { childrenOf, start } from '../../init-waker/testing/process.ts'
import { eventually } from '../../test/support/eventually.ts'
import { buildProgram } from '../build.ts'
import { buildApp, buildSanitized } from './testing/build.ts'
import { dig } from './testing/graves.ts'
import { createNetwork } from './testing/network.ts'
import { processOf, startSentinel } from './testing/sentinel.ts'

/** The kernel's number of the first pid namespace. */
const host = 'pid:[4026531836]'
/** As the first process of a container is. */
const first = { pidNamespace: true } as const
const why =
  process.getuid?.() !== 0
    ? '(needs root)'
    : readlinkSync('/proc/self/ns/pid') !== host
      ? '(needs the first pid namespace of the machine)'
      : undefined

/** The kernel frees this in some 0.1 s. */
const mib = 1024
/**
 * How often a test tries whose sentinel may get no processor in time. It then looks once the memory is freed, or once the
 * children have ended, and what it reports is right.
 */
const late = 5

const builds = [
  ['release build', () => buildProgram('sentinel')],
  ['sanitized build', () => buildSanitized('sentinel')],
] as const
/** How the sentinel hears of ends. Only a process that may change networks hears of statistics, and it may do so only here. */
const ways = [
  ['statistics', []],
  ['traces', ['setpriv', '--bounding-set=-net_admin', '--']],
] as const
const cases = builds.flatMap(([name, build]) => ways.map(([way, by]) => [name, way, build, by] as const))

describe.skipIf(why !== undefined).each(cases)(
  `ends of processes, %s, by %s ${why ?? ''}`,
  (_, way, build, by) => {
    let program: string
    let app: string
    beforeAll(async () => {
      program = await build()
      app = await buildApp()
    })

    const threads = `
    const memory = Buffer.alloc(${mib} * 2 ** 20, 1)
    setInterval(() => memory[0], 1_000)
    console.log('ready')`

    const parent = `
    require('node:child_process').spawn('sleep', ['1000'], { stdio: 'ignore' })
    ${threads}`

    test.each([
      ['one thread: at once', '1', late, () => start(app, ['large', String(mib)], first)],
      ['several threads: at once', '1', late, () => start(process.execPath, ['-e', threads], first)],
      [
        'children that still run: once they have ended',
        '0',
        late,
        () => start(process.execPath, ['-e', parent], first),
      ],
      [
        'a place behind the first one of its container, so perhaps children elsewhere: at its end',
        '0',
        1,
        () => start(app, ['large', String(mib)]),
      ],
    ])('the sentinel reports the death of a large process that has %s', async (_, early, tries, run) => {
      const report = async () => {
        await using sentinel = await startSentinel(program, { by })
        await using victim = await run()
        await eventually(() => expect(victim.stdout()).toBe('ready\n'))
        const client = await sentinel.connect()
        await client.ask('watch', { name: 'v', ...processOf(victim.pid) })
        await eventually(() => expect(sentinel.stderr().includes('traces have to do')).toBe(way === 'traces'))
        process.kill(victim.pid, 'SIGKILL')
        const { values } = await client.line(line => line.word === 'died')
        await victim.exit
        // One death is one message.
        await client.ask('hello')
        expect(client.lines.filter(({ word }) => word === 'died')).toEqual([])
        return values
      }
      let values = await report()
      for (let left = tries - 1; left > 0 && values['early'] !== early; left -= 1) values = await report()
      expect(values).toMatchObject({ name: 'v', early })
    })

    test.runIf(way === 'statistics')(
      'clients that keep a connection with a large process hear of its end before its memory is freed',
      async () => {
        await using sentinel = await startSentinel(program, { by })
        await using network = await createNetwork(app)
        const client = await sentinel.connect()
        await network.heir.serve('heir')
        const server = `
      const memory = [0, 1].map(() => Buffer.alloc(${mib} * 2 ** 20, 1))
      require('node:net').createServer(() => memory).listen(8080, () => console.log('ready'))`
        const outside = `
      const to = host => require('node:net').connect({ host, port: 8080 })
        .on('connect', () => console.log('up'))
        .on('error', ({ code }) => console.log(code))
      to('${network.pod.address}')
      to('${network.pod.address6}')`
        const victim = await network.pod.start([
          ...['unshare', '--pid', '--fork', '--kill-child', process.execPath, '-e', server],
        ])
        await eventually(() => expect(victim.stdout()).toBe('ready\n'))
        const kept = await network.client.start([process.execPath, '-e', outside])
        await eventually(() => expect(kept.stdout()).toBe('up\nup\n'))
        const [pid = 0] = childrenOf(victim.pid)
        await dig(client, network, 'v', pid)
        process.kill(pid, 'SIGKILL')
        // The kernel closes a connection without a reset if the process has read everything.
        await eventually(() => expect(kept.stdout()).toBe('up\nup\nECONNRESET\nECONNRESET\n'))
        expect(network.ask('tcp')).toBe('heir 10.0.0.2')
      },
    )

    test('a process whose first thread has ended lives', async () => {
      await using sentinel = await startSentinel(program, { by })
      await using victim = await start(app, ['headless'])
      await eventually(() => expect(victim.stdout()).toBe('ready\n'))
      const client = await sentinel.connect()
      await client.ask('watch', { name: 'v', ...processOf(victim.pid) })
      // The sentinel has heard of that end once it has heard of a later one.
      process.kill(victim.pid, 'SIGUSR1')
      await eventually(() => expect(victim.stdout()).toBe('ready\nheadless\n'))
      await using other = await start(app, ['large', String(mib)])
      await eventually(() => expect(other.stdout()).toBe('ready\n'))
      await client.ask('watch', { name: 'other', ...processOf(other.pid) })
      process.kill(other.pid, 'SIGKILL')
      const { values } = await client.line(line => line.word === 'died')
      expect(values).toMatchObject({ name: 'other' })
      process.kill(victim.pid, 'SIGKILL')
      const last = await client.line(line => line.word === 'died' && line.values['name'] === 'v')
      expect(last.values).toMatchObject({ name: 'v' })
    })

    test('a storm of ends hides no death', async () => {
      await using sentinel = await startSentinel(program, { by })
      // In a pid namespace, so that no child outlives it.
      await using storm = await start(app, ['forks', '20'], first)
      await eventually(() => expect(storm.stdout()).toBe('ready\n'))
      const client = await sentinel.connect()
      for (const name of ['a', 'b', 'c']) {
        await using victim = await start(app, ['pause'])
        await client.ask('watch', { name, ...processOf(victim.pid) })
        process.kill(victim.pid, 'SIGKILL')
        await client.line(line => line.word === 'died' && line.values['name'] === name)
      }
    })
  },
)

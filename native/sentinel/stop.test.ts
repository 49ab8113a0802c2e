// Long because every case needs the same sentinel and cgroups.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { cannotUnshare, childrenOf, start, stateOf, statusField } from '../../init-waker/testing/process.ts'
import { eventually } from '../../test/support/eventually.ts'
import { buildProgram } from '../build.ts'
import { buildApp, buildSanitized } from './testing/build.ts'
import { type Cgroup, cannotCgroup, createCgroup } from './testing/cgroup.ts'
import { startIn, statesOf } from './testing/paused.ts'
import { type Client, processOf, startSentinel, startTime, type Values } from './testing/sentinel.ts'

const FOREVER = 3_600_000

/**
 * Stops everybody. The sentinel replies after a quarter of a second even if it has not seen all of them stopped, and a busy machine may
 * need longer: then they continue, and stop once more.
 *
 * @param undo what the stop before must not leave
 */
const stopAll = (client: Client, values: Values, undo = () => {}) =>
  eventually(async () => {
    const reply = await client.ask('stop', { name: 'n', deadline: FOREVER, ...values })
    expect(reply.word).toBe('stopped')
    if (reply.values['unsettled'] === '0') return reply
    await client.ask('continue', { name: 'n' })
    undo()
    throw new Error('not settled')
  })

describe.skipIf(cannotCgroup !== undefined).each([
  ['release build', () => buildProgram('sentinel')],
  ['sanitized build', () => buildSanitized('sentinel')],
])(`stopping, %s ${cannotCgroup ?? ''}`, (_, build) => {
  let program: string
  let app: string
  beforeAll(async () => {
    program = await build()
    app = await buildApp()
  })

  test('D7.stop: everybody in the cgroups and below them stops and goes on when told', async () => {
    using outer = createCgroup()
    using other = createCgroup()
    await using sentinel = await startSentinel(program)
    await using a = await startIn(app, outer)
    await using b = await startIn(app, outer.child('inner'))
    await using c = await startIn(app, other)
    await using bystander = await start(app, ['pause'])
    const client = await sentinel.connect()
    const reply = await stopAll(client, { cgroup: [outer.path, other.path] })
    expect(reply.values['count']).toBe('3')
    expect(statesOf(a, b, c, bystander)).toEqual(['T', 'T', 'T', 'S'])
    const end = await client.ask('continue', { name: 'n' })
    expect(end).toMatchObject({ word: 'continued', values: { expired: '0' } })
    // A process that resumes runs for a moment before it sleeps again.
    await eventually(() => expect(statesOf(a, b, c)).toEqual(['S', 'S', 'S']))
    expect((await client.ask('continue', { name: 'n' })).values['reason']).toBe('unknown-name')
  })

  const latencyFile = '/dev/cpu_dma_latency'

  test.skipIf(!existsSync(latencyFile))(
    'processors stay awake while somebody stands, for a moment at most',
    async () => {
      /** The effective latency limit of the kernel, in microseconds; zero: no processor idles deeply. */
      const latency = () => readFileSync(latencyFile).readInt32LE()
      /** Not at once if other sentinels are at work. */
      const rested = () => eventually(() => expect(latency()).toBeGreaterThan(0))
      using cgroup = createCgroup()
      await using sentinel = await startSentinel(program)
      await using _a = await startIn(app, cgroup)
      const client = await sentinel.connect()
      const stop = { name: 'n', deadline: FOREVER, cgroup: [cgroup.path] }
      // It lasts a tenth of a second at most, and this process may look later than that.
      await eventually(async () => {
        await rested()
        await client.ask('stop', stop)
        const seen = latency()
        await client.ask('continue', { name: 'n' })
        expect(seen).toBe(0)
      })
      await rested()
      await client.ask('stop', stop)
      await rested()
      expect((await client.ask('stop-state', { name: 'n' })).word).toBe('held')
      await client.ask('continue', { name: 'n' })
    },
  )

  test('gates are open when everybody stands, before anybody is told', async () => {
    using cgroup = createCgroup()
    await using sentinel = await startSentinel(program)
    await using a = await startIn(app, cgroup)
    const client = await sentinel.connect()
    const directory = mkdtempSync(join(tmpdir(), 'understudy-gates-'))
    try {
      const go = ['one', 'two'].map(name => join(directory, name))
      const elsewhere = join(directory, 'no', 'directory')
      const request = { name: 'n', deadline: FOREVER, cgroup: cgroup.path }
      const relative = await client.ask('stop', { ...request, go: 'one' })
      expect([relative.word, relative.values['reason']]).toEqual(['refused', 'bad-go'])
      expect(readdirSync(directory)).toEqual([])
      await eventually(() => expect(statesOf(a)).toEqual(['S']))
      const close = () => {
        for (const path of go) rmSync(path, { force: true })
      }
      const reply = await stopAll(client, { ...request, go: [...go, elsewhere] }, close)
      expect(reply.values['count']).toBe('1')
      expect(statesOf(a)).toEqual(['T'])
      expect(readdirSync(directory).sort()).toEqual(['one', 'two'])
      await client.ask('continue', { name: 'n' })
    } finally {
      rmSync(directory, { recursive: true })
    }
  })

  test('who forks all the time does not get away', async () => {
    using cgroup = createCgroup()
    await using sentinel = await startSentinel(program)
    await using parent = await start(app, ['forks', '20'])
    await eventually(() => expect(parent.stdout()).toBe('ready\n'))
    cgroup.add(parent.pid)
    for (const pid of childrenOf(parent.pid)) if (existsSync(`/proc/${pid}`)) tryAdd(cgroup, pid)
    const client = await sentinel.connect()
    await stopAll(client, { cgroup: cgroup.path })
    const members = readFileSync(`${cgroup.directory}/cgroup.procs`, 'utf8').trim().split('\n').map(Number)
    expect(members.length).toBeGreaterThan(20)
    expect(new Set(members.map(stateOf).filter(state => state !== 'Z'))).toEqual(new Set(['T']))
    await client.ask('continue', { name: 'n' })
    expect(stateOf(parent.pid)).not.toBe('T')
    process.kill(parent.pid, 'SIGKILL')
    await eventually(() => {
      for (const pid of procs(cgroup)) tryKill(pid)
      expect(procs(cgroup)).toEqual([])
    })
  })

  test('D7.continue: whom a sentinel that was killed had stopped the next one continues, and nobody else', async () => {
    using cgroup = createCgroup()
    const directory = mkdtempSync(join(tmpdir(), 'sentinel-'))
    await using a = await startIn(app, cgroup)
    await using b = await startIn(app, cgroup.child('inner'))
    await using other = await startIn(app, cgroup)
    // Another program stopped it before.
    process.kill(other.pid, 'SIGSTOP')
    await eventually(() => expect(stateOf(other.pid)).toBe('T'))
    {
      await using killed = await startSentinel(program, { directory })
      const client = await killed.connect()
      await client.ask('stop', { name: 'n', deadline: FOREVER, cgroup: cgroup.path })
      process.kill(killed.pid, 'SIGKILL')
      await killed.exit
    }
    await eventually(() => expect(statesOf(a, b, other)).toEqual(['T', 'T', 'T']))
    await using next = await startSentinel(program, { directory })
    await eventually(() => expect(statesOf(a, b, other)).toEqual(['S', 'S', 'T']))
    // The new sentinel has resumed all: later stops last, and nothing is left for a third sentinel.
    const client = await next.connect()
    await client.ask('stop', { name: 'n', deadline: FOREVER, cgroup: cgroup.path })
    await new Promise(resolve => setTimeout(resolve, 300))
    await eventually(() => expect(statesOf(a, b)).toEqual(['T', 'T']))
    await client.ask('continue', { name: 'n' })
    expect(readFileSync(join(directory, 's.stopped'), 'utf8')).toBe('')
    rmSync(directory, { recursive: true })
  })

  test('D7.continue: a stop that begins before the next sentinel has resumed them resumes them itself', async () => {
    using cgroup = createCgroup()
    const directory = mkdtempSync(join(tmpdir(), 'sentinel-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    await using a = await startIn(app, cgroup)
    const stop = { name: 'n', deadline: FOREVER, cgroup: cgroup.path }
    {
      await using killed = await startSentinel(program, { directory })
      await (await killed.connect()).ask('stop', stop)
      process.kill(killed.pid, 'SIGKILL')
      await killed.exit
    }
    await using next = await startSentinel(program, { directory })
    const client = await next.connect()
    expect((await client.ask('stop', stop)).word).toBe('stopped')
    expect((await client.ask('continue', { name: 'n' })).word).toBe('continued')
    await eventually(() => expect(statesOf(a)).toEqual(['S']))
  })

  test.each(['SIGKILL', 'SIGTERM'] as const)(
    'D7.outlasts: after %s the next sentinel continues a kept stop, with its name and its deadline',
    async signal => {
      using cgroup = createCgroup()
      const directory = mkdtempSync(join(tmpdir(), 'sentinel-'))
      onTestFinished(() => rmSync(directory, { recursive: true }))
      await using a = await startIn(app, cgroup)
      using other = createCgroup()
      await using b = await startIn(app, other)
      {
        await using earlier = await startSentinel(program, { directory })
        const client = await earlier.connect()
        await client.ask('stop', { name: 'handover-a', deadline: FOREVER, cgroup: cgroup.path })
        await client.ask('stop', { name: 'handover-b', deadline: FOREVER, cgroup: other.path })
        expect((await client.ask('keep', { name: 'handover-a', deadline: 60_000 })).word).toBe('kept')
        expect((await client.ask('keep', { name: 'handover-b', deadline: 3_000 })).word).toBe('kept')
        process.kill(earlier.pid, signal)
        await earlier.exit
      }
      expect(statesOf(a)).toEqual(['T'])
      await using next = await startSentinel(program, { directory })
      const client = await next.connect()
      // Longer than the next sentinel waits before it resumes what an earlier one has left.
      await new Promise(resolve => setTimeout(resolve, 400))
      expect(statesOf(a)).toEqual(['T'])
      expect((await client.ask('stop-state', { name: 'handover-a' })).word).toBe('held')
      await eventually(() => expect(statesOf(b)).toEqual(['S']))
      expect(statesOf(a)).toEqual(['T'])
      expect((await client.ask('continue', { name: 'handover-a' })).word).toBe('continued')
      await eventually(() => expect(statesOf(a)).toEqual(['S']))
      await client.ask('continue', { name: 'handover-b' })
      expect(readFileSync(join(directory, 's.stopped'), 'utf8')).toBe('')
    },
  )

  test('D7.outlasts: SIGINT ends a kept stop as well, because no sentinel follows', async () => {
    using cgroup = createCgroup()
    await using a = await startIn(app, cgroup)
    await using last = await startSentinel(program)
    const client = await last.connect()
    await client.ask('stop', { name: 'handover-a', deadline: FOREVER, cgroup: cgroup.path })
    await client.ask('keep', { name: 'handover-a', deadline: FOREVER })
    process.kill(last.pid, 'SIGINT')
    await last.exit
    await eventually(() => expect(statesOf(a)).toEqual(['S']))
  })

  describe.skipIf(cannotUnshare !== undefined)(`with work that it waits for ${cannotUnshare ?? ''}`, () => {
    const begin = async () => startSentinel(program, { args: ['--nsrun', await buildProgram('nsrun')] })

    const exit = (code: number) => `exit ${code}`

    /** Fields of a program that works for the stop `n`. */
    const spawned = () => {
      const { pid: target, start: begun } = processOf(process.pid)
      return { target, start: begun, ns: 'keep', cgroup: 'stay', deadline: FOREVER, during: 'n' }
    }

    /**
     * Starts programs that wait for the gate and then run a script each, and a stop that opens the gate and
     * ends after them.
     */
    async function work(client: Client, cgroup: Cgroup, scripts: readonly string[], more: Values = {}) {
      const directory = mkdtempSync(join(tmpdir(), 'understudy-work-'))
      onTestFinished(() => rmSync(directory, { recursive: true }))
      const go = join(directory, 'go')
      const workers = scripts.map(script =>
        client.ask('spawn', {
          ...spawned(),
          log: join(directory, 'log'),
          arg: ['/bin/sh', '-c', `PATH=/usr/bin:/bin; while [ ! -e ${go} ]; do sleep 0.01; done; ${script}`],
        }),
      )
      const stop = { name: 'n', deadline: FOREVER, cgroup: cgroup.path, go, after: scripts.length, ...more }
      const stopped = await client.ask('stop', stop)
      expect(stopped.word).toBe('stopped')
      return Promise.all(workers)
    }

    test('everybody goes on by themselves when it is done, before it is told', async () => {
      using cgroup = createCgroup()
      await using sentinel = await begin()
      await using a = await startIn(app, cgroup)
      const client = await sentinel.connect()
      const nothing = mkdtempSync(join(tmpdir(), 'understudy-empty-'))
      onTestFinished(() => rmSync(nothing, { recursive: true }))
      await work(client, cgroup, [0, 0].map(exit), { unless: '/nonexistent', empty: nothing, ending: a.pid })
      await eventually(() => expect(statesOf(a)).toEqual(['S']))
      expect((await client.ask('stop-state', { name: 'n' })).word).toBe('done')
      expect((await client.ask('stop-state', { name: 'm' })).values['reason']).toBe('unknown-name')
      // A process that another program stops from then on stays stopped.
      process.kill(a.pid, 'SIGSTOP')
      await eventually(() => expect(statesOf(a)).toEqual(['T']))
      const reply = await client.ask('continue', { name: 'n' })
      expect(reply).toMatchObject({ word: 'continued', values: { expired: '0' } })
      expect(Number(reply.values['held_us'])).toBeLessThan(FOREVER)
      expect(statesOf(a)).toEqual(['T'])
      process.kill(a.pid, 'SIGCONT')
      // The name is free again, also if no client has sent `continue`.
      await work(client, cgroup, [0, 0].map(exit))
      await work(client, cgroup, [0, 0].map(exit))
      await eventually(() => expect(statesOf(a)).toEqual(['S']))
    })

    test('they go on when it says that it is done, before it has ended', async () => {
      using cgroup = createCgroup()
      await using sentinel = await begin()
      await using a = await startIn(app, cgroup)
      const client = await sentinel.connect()
      const directory = mkdtempSync(join(tmpdir(), 'understudy-done-'))
      onTestFinished(() => rmSync(directory, { recursive: true }))
      const [more, end] = [join(directory, 'more'), join(directory, 'end')]
      const say = 'printf x > /proc/self/fd/199'
      const wait = (path: string) => `while [ ! -e ${path} ]; do sleep 0.01; done`
      const working = work(client, cgroup, [
        `${say}; ${wait(end)}; exit 1`,
        `${wait(more)}; ${say}; ${say}; ${wait(end)}`,
      ])
      await eventually(() => expect(statesOf(a)).toEqual(['T']))
      // The first program reported its work as done long ago.
      await new Promise(resolve => setTimeout(resolve, 200))
      expect(statesOf(a)).toEqual(['T'])
      writeFileSync(more, '')
      await eventually(() => expect(statesOf(a)).toEqual(['S']))
      expect((await client.ask('stop-state', { name: 'n' })).word).toBe('done')
      // The sentinel still reports how they end; that changes nothing.
      writeFileSync(end, '')
      const [first, second] = await working
      expect(first?.values['code']).toBe('1')
      expect(second?.values['code']).toBe('0')
      expect((await client.ask('stop-state', { name: 'n' })).word).toBe('done')
    })

    test.each([
      ['some of it failed', [0, 1], {}],
      ['there is more to do', [0, 0], { unless: ['/nonexistent', '/proc/self/exe'] }],
      ['a directory is not empty', [0, 0], { empty: ['/proc/self/fdinfo'] }],
      ['a directory is none', [0, 0], { empty: ['/nonexistent'] }],
      ['there is more of it than was said', [0, 0], { after: 1 }],
      ['there is less of it than was said', [0, 0], { after: 3 }],
      ['nobody said so', [0, 0], { after: [] }],
      ['one that must not be ending is gone', [0, 0], { ending: 4_194_304 }],
    ] as const)('they stand when %s', async (_, codes, more) => {
      using cgroup = createCgroup()
      await using sentinel = await begin()
      await using a = await startIn(app, cgroup)
      const client = await sentinel.connect()
      await work(client, cgroup, codes.map(exit), more)
      await eventually(() => expect(statesOf(a)).toEqual(['T']))
      expect((await client.ask('stop-state', { name: 'n' })).word).toBe('held')
      expect((await client.ask('continue', { name: 'n' })).word).toBe('continued')
      await eventually(() => expect(statesOf(a)).toEqual(['S']))
    })

    test('they stand when one has been told to end', async () => {
      using cgroup = createCgroup()
      await using sentinel = await begin()
      await using a = await startIn(app, cgroup)
      const client = await sentinel.connect()
      // Between the stop and the end of the work.
      await work(client, cgroup, [`kill -TERM ${a.pid}`], { ending: a.pid })
      await eventually(() => expect(statesOf(a)).toEqual(['T']))
      await client.ask('continue', { name: 'n' })
      await a.exit
    })

    test('a lost connection continues nobody who went on already', async () => {
      using cgroup = createCgroup()
      await using sentinel = await begin()
      await using a = await startIn(app, cgroup)
      const client = await sentinel.connect()
      await work(client, cgroup, [0, 0].map(exit))
      await eventually(() => expect(statesOf(a)).toEqual(['S']))
      process.kill(a.pid, 'SIGSTOP')
      await eventually(() => expect(statesOf(a)).toEqual(['T']))
      await client.close()
      const other = await sentinel.connect()
      await other.ask('hello')
      expect(statesOf(a)).toEqual(['T'])
    })

    test('D7.continue: while a program of another connection works for that stop, nobody is stopped', async () => {
      using cgroup = createCgroup()
      await using sentinel = await begin()
      await using a = await startIn(app, cgroup)
      const directory = mkdtempSync(join(tmpdir(), 'understudy-other-'))
      onTestFinished(() => rmSync(directory, { recursive: true }))
      const [lost, client] = [await sentinel.connect(), await sentinel.connect()]
      const script = `PATH=/usr/bin:/bin; cd ${directory}; : > ready; while [ -e ready ] && [ ! -e end ]; do sleep 0.01; done`
      const worker = lost.ask('spawn', {
        ...spawned(),
        log: join(directory, 'log'),
        arg: ['/bin/sh', '-c', script],
      })
      await eventually(() => expect(existsSync(join(directory, 'ready'))).toBe(true))
      const go = join(directory, 'go')
      const stop = { name: 'n', deadline: FOREVER, cgroup: cgroup.path, go }
      expect(await client.ask('stop', stop)).toMatchObject({ word: 'refused', values: { reason: 'busy' } })
      expect(statesOf(a)).toEqual(['S'])
      expect(existsSync(go)).toBe(false)
      writeFileSync(join(directory, 'end'), '')
      await worker
      expect((await client.ask('stop', stop)).word).toBe('stopped')
      expect(existsSync(go)).toBe(true)
    })

    test.each([
      [{ after: 0 }, 'bad-after'],
      [{ after: 65 }, 'bad-after'],
      [{ unless: 'relative' }, 'bad-unless'],
      [{ empty: 'relative' }, 'bad-empty'],
      [{ ending: 0 }, 'bad-ending'],
    ])('%j is refused, and nobody stands', async (more, reason) => {
      using cgroup = createCgroup()
      await using sentinel = await begin()
      await using a = await startIn(app, cgroup)
      const client = await sentinel.connect()
      const reply = await client.ask('stop', { name: 'n', deadline: FOREVER, cgroup: cgroup.path, ...more })
      expect([reply.word, reply.values['reason']]).toEqual(['refused', reason])
      await eventually(() => expect(statesOf(a)).toEqual(['S']))
    })
  })

  test('at the deadline everybody goes on by itself, and the client learns it', async () => {
    using cgroup = createCgroup()
    await using sentinel = await startSentinel(program)
    await using a = await startIn(app, cgroup)
    const client = await sentinel.connect()
    await client.ask('stop', { name: 'n', deadline: 50, cgroup: cgroup.path })
    await eventually(() => expect(statesOf(a)).toEqual(['S']))
    const { values } = await client.ask('continue', { name: 'n' })
    expect(values['expired']).toBe('1')
    expect(Number(values['held_us'])).toBeGreaterThanOrEqual(50_000)
    // An expired stop does not keep the name.
    await client.ask('stop', { name: 'n', deadline: 1, cgroup: cgroup.path })
    await eventually(() => expect(statesOf(a)).toEqual(['S']))
    await stopAll(client, { cgroup: cgroup.path })
    expect(statesOf(a)).toEqual(['T'])
  })

  test('when the connection that asked closes everybody goes on', async () => {
    using cgroup = createCgroup()
    await using sentinel = await startSentinel(program)
    await using a = await startIn(app, cgroup)
    const [asker, other] = [await sentinel.connect(), await sentinel.connect()]
    await stopAll(asker, { cgroup: cgroup.path })
    await other.close()
    const third = await sentinel.connect()
    await third.ask('hello')
    expect(statesOf(a)).toEqual(['T'])
    await asker.close()
    await eventually(() => expect(statesOf(a)).toEqual(['S']))
    expect((await third.ask('continue', { name: 'n' })).values['reason']).toBe('unknown-name')
  })

  test('what is kept outlives the connection that asked, until its new deadline or until it is continued', async () => {
    using cgroup = createCgroup()
    await using sentinel = await startSentinel(program)
    await using a = await startIn(app, cgroup)
    const asker = await sentinel.connect()
    const other = await sentinel.connect()
    expect((await asker.ask('keep', { name: 'n', deadline: FOREVER })).word).toBe('absent')
    await stopAll(asker, { cgroup: cgroup.path })
    expect((await asker.ask('keep', { name: 'n', deadline: '0' })).values['reason']).toBe('bad-deadline')
    expect((await asker.ask('keep', { name: 'n', deadline: FOREVER })).word).toBe('kept')
    await asker.close()
    await other.ask('hello')
    expect((await other.ask('stop-state', { name: 'n' })).word).toBe('held')
    expect(statesOf(a)).toEqual(['T'])
    expect((await other.ask('keep', { name: 'n', deadline: '50' })).word).toBe('kept')
    await eventually(() => expect(statesOf(a)).toEqual(['S']))
    expect((await other.ask('stop-state', { name: 'n' })).word).toBe('expired')
    expect((await other.ask('keep', { name: 'n', deadline: FOREVER })).word).toBe('absent')
  })

  test('another connection may continue it', async () => {
    using cgroup = createCgroup()
    await using sentinel = await startSentinel(program)
    await using a = await startIn(app, cgroup)
    const [asker, other] = [await sentinel.connect(), await sentinel.connect()]
    await asker.ask('stop', { name: 'n', deadline: FOREVER, cgroup: cgroup.path })
    expect((await other.ask('continue', { name: 'n' })).word).toBe('continued')
    await eventually(() => expect(statesOf(a)).toEqual(['S']))
  })

  test('SIGTERM to the sentinel makes everybody go on', async () => {
    using cgroup = createCgroup()
    await using sentinel = await startSentinel(program)
    await using a = await startIn(app, cgroup)
    const client = await sentinel.connect()
    await client.ask('stop', { name: 'n', deadline: FOREVER, cgroup: cgroup.path })
    process.kill(sentinel.pid, 'SIGTERM')
    expect(await sentinel.exit).toBe(0)
    await eventually(() => expect(statesOf(a)).toEqual(['S']))
  })

  test('who is excluded runs on, who was stopped before stays stopped', async () => {
    using cgroup = createCgroup()
    await using sentinel = await startSentinel(program)
    await using excluded = await startIn(app, cgroup)
    await using stopped = await startIn(app, cgroup)
    await using a = await startIn(app, cgroup)
    process.kill(stopped.pid, 'SIGSTOP')
    await eventually(() => expect(statesOf(stopped)).toEqual(['T']))
    const client = await sentinel.connect()
    const reply = await stopAll(client, { cgroup: cgroup.path, exclude: [excluded.pid] })
    expect(reply.values['count']).toBe('1')
    expect(statesOf(excluded, stopped, a)).toEqual(['S', 'T', 'T'])
    await client.ask('continue', { name: 'n' })
    await eventually(() => expect(statesOf(excluded, stopped, a)).toEqual(['S', 'T', 'S']))
  })

  test('while a tracer has somebody in its hands nobody is stopped', async () => {
    using cgroup = createCgroup()
    await using sentinel = await startSentinel(program)
    await using a = await startIn(app, cgroup)
    await using b = await startIn(app, cgroup)
    const client = await sentinel.connect()
    const asked = { name: 'n', deadline: FOREVER, cgroup: cgroup.path }
    {
      await using tracer = await start(app, ['trace', String(b.pid)])
      await eventually(() => expect(tracer.stdout()).toBe('ready\n'))
      expect(await client.ask('stop', asked)).toMatchObject({
        word: 'refused',
        values: { reason: 'traced' },
      })
      expect(statesOf(a, b)).toEqual(['S', 't'])
      expect(statusField(b.pid, 'ShdPnd')).toBe('0000000000000000')
    }
    await stopAll(client, asked)
    expect(statesOf(a, b)).toEqual(['T', 'T'])
  })

  test('a name that is taken is refused, and nothing of it is touched', async () => {
    using cgroup = createCgroup()
    using second = createCgroup()
    await using sentinel = await startSentinel(program)
    await using a = await startIn(app, cgroup)
    await using b = await startIn(app, second)
    const client = await sentinel.connect()
    await stopAll(client, { cgroup: cgroup.path })
    const again = await client.ask('stop', { name: 'n', deadline: 1, cgroup: second.path })
    expect(again).toMatchObject({ word: 'refused', values: { reason: 'busy' } })
    expect(statesOf(a, b)).toEqual(['T', 'S'])
  })

  test('when one of the cgroups is not there everybody goes on', async () => {
    using cgroup = createCgroup()
    await using sentinel = await startSentinel(program)
    await using a = await startIn(app, cgroup)
    const client = await sentinel.connect()
    const asked = { name: 'n', deadline: FOREVER, cgroup: [cgroup.path, `${cgroup.path}-none`] }
    expect(await client.ask('stop', asked)).toMatchObject({
      word: 'failed',
      values: { reason: expect.stringContaining('No such file') },
    })
    await eventually(() => expect(statesOf(a)).toEqual(['S']))
    expect((await client.ask('stop', { ...asked, cgroup: cgroup.path })).word).toBe('stopped')
  })

  test('a process that took over the number of a stopped one is not touched', async () => {
    using cgroup = createCgroup()
    await using sentinel = await startSentinel(program)
    const client = await sentinel.connect()
    // A pid can be reused on demand: the kernel assigns the next one after ns_last_pid.
    const reborn = await rebirth(cgroup, client)
    expect(stateOf(reborn.pid)).toBe('T')
    expect((await client.ask('continue', { name: 'n' })).word).toBe('continued')
    expect(stateOf(reborn.pid)).toBe('T')
    await reborn[Symbol.asyncDispose]()
  })

  /**
   * Stops a process, kills it, and gives its pid to another process, which another program has stopped, too.
   */
  async function rebirth(
    cgroup: Cgroup,
    client: Awaited<ReturnType<Awaited<ReturnType<typeof startSentinel>>['connect']>>,
  ) {
    for (;;) {
      const first = await startIn(app, cgroup)
      const born = startTime(first.pid)
      await client.ask('stop', { name: 'n', deadline: FOREVER, cgroup: cgroup.path })
      process.kill(first.pid, 'SIGKILL')
      await first.exit
      const procs = join(cgroup.directory, 'cgroup.procs')
      await eventually(() => expect(readFileSync(procs, 'utf8')).toBe(''))
      const script = `echo ${first.pid - 1} > /proc/sys/kernel/ns_last_pid; exec ${app} pause & echo $!; wait`
      const shell = await start('sh', ['-c', script])
      await eventually(() => expect(shell.stdout()).toMatch(/\n$/))
      const pid = Number(shell.stdout())
      process.kill(pid, 'SIGSTOP')
      await eventually(() => expect(stateOf(pid)).toBe('T'))
      const dispose = async () => {
        tryKill(pid)
        await shell[Symbol.asyncDispose]()
      }
      if (pid === first.pid && startTime(pid) !== born) return { pid, [Symbol.asyncDispose]: dispose }
      // Another process got the pid, or the start times are equal: their unit is a hundredth of a second.
      await dispose()
      await client.ask('continue', { name: 'n' })
    }
  }
})

function procs(cgroup: Cgroup): readonly number[] {
  return readFileSync(`${cgroup.directory}/cgroup.procs`, 'utf8').split('\n').filter(Boolean).map(Number)
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function tryAdd(cgroup: Cgroup, pid: number): void {
  try {
    cgroup.add(pid)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

test.skipIf(cannotCgroup !== undefined).each([
  [63, true],
  [64, false],
])(
  'D10.fork-bomb: of more processes than there is room for none stays stopped: %i children',
  async (children, fits) => {
    // The first allocation of the set; the limit of 65,536 behaves the same.
    const program = await buildProgram('sentinel', {}, { PROCESSES_MAX: 64 })
    using cgroup = createCgroup()
    const directory = mkdtempSync(join(tmpdir(), 'stop-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    const go = join(directory, 'go')
    const script = `select undef, undef, undef, 0.01 until -e $ARGV[0];
    for (1..${children}) { fork or exec "sleep", "1000" } $| = 1; print "all"; sleep 1000`
    await using sentinel = await startSentinel(program)
    await using first = await start('/usr/bin/perl', ['-e', script, go])
    cgroup.add(first.pid)
    writeFileSync(go, '')
    await eventually(() => expect(first.stdout()).toBe('all'))
    const all = [first.pid, ...childrenOf(first.pid)]
    expect(all).toHaveLength(children + 1)
    const states = () => new Set(all.map(stateOf))
    try {
      const client = await sentinel.connect()
      if (fits) {
        const reply = await stopAll(client, { cgroup: cgroup.path })
        expect(reply.values['count']).toBe('64')
        expect(states()).toEqual(new Set(['T']))
        await client.ask('continue', { name: 'n' })
      } else {
        const reply = await client.ask('stop', { name: 'n', deadline: FOREVER, cgroup: cgroup.path })
        expect(reply).toMatchObject({
          word: 'failed',
          values: { reason: expect.stringMatching(/^cgroup: /) },
        })
        expect((await client.ask('continue', { name: 'n' })).values['reason']).toBe('unknown-name')
      }
      await eventually(() => expect(states()).toEqual(new Set(['S'])))
    } finally {
      for (const pid of all) process.kill(pid, 'SIGKILL')
      await first.exit
      const procs = join(cgroup.directory, 'cgroup.procs')
      await eventually(() => expect(readFileSync(procs, 'utf8')).toBe(''))
    }
  },
)

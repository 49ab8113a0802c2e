// Long because every case needs the same primary and its processes.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { childrenOf, type Started, start, stateOf, statusField } from '../../init-waker/testing/process.ts'
import { eventually } from '../../test/support/eventually.ts'
import { buildApp } from './testing/build.ts'
import { type Cgroup, cannotCgroup, createCgroup } from './testing/cgroup.ts'
import { own } from './testing/own.ts'
import { startIn, statesOf } from './testing/paused.ts'
import { processOf, type Values } from './testing/sentinel.ts'
import { api, type Node, primary, startNode, timeout, vote } from './testing/voters.ts'

const FOREVER = 3_600_000
/** A process may end before it is reached. */
function unlessGone(act: () => void): void {
  try {
    act()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

describe.skipIf(cannotCgroup !== undefined)(`a primary that may not serve ${cannotCgroup ?? ''}`, () => {
  let app: string
  beforeAll(async () => {
    app = await buildApp()
  })
  const settled = (states: readonly string[], ...all: readonly Started[]) =>
    eventually(() => expect(statesOf(...all)).toEqual(states))
  const moment = () => new Promise(resolve => setTimeout(resolve, 300))

  /** Has a primary acknowledged by an answer of the API server, which may come too late. */
  const acknowledge = (node: Node, cgroup: Cgroup, epoch = 1) =>
    eventually(async () => {
      const acknowledged = node.ask('primary', primary([api], { cgroup: cgroup.path, epoch }))
      await node.answered({ epoch })
      expect(await acknowledged).toBe('ok')
    })
  /** Has the API server answer once, with which the primary serves for two thirds of the time-out. */
  async function serve(node: Node, cgroup: Cgroup): Promise<void> {
    await acknowledge(node, cgroup)
    await node.event('serves', {})
  }
  /** As `settled`, while the primary serves: it has the API server answer before each look. */
  const settledServing = (node: Node, states: readonly string[], ...all: readonly Started[]) =>
    eventually(async () => {
      expect(await node.answered()).toBe('ok')
      expect(statesOf(...all)).toEqual(states)
    })
  /** Begins a stop while the primary serves. The next event that tells its end is from after that. */
  const stopServing = (node: Node, values: Values, client = node.client) =>
    eventually(async () => {
      expect(await node.answered()).toBe('ok')
      while (node.client.lines.some(({ word }) => word === 'stops')) await node.event('stops', {})
      expect((await client.ask('stop', values)).word).toBe('stopped')
    })
  /** As above, until it has run out of answers. */
  async function fence(node: Node, cgroup: Cgroup, ...all: readonly Started[]): Promise<void> {
    await serve(node, cgroup)
    await node.event('stops', {})
    await settled(
      all.map(() => 'T'),
      ...all,
    )
  }
  function directoryOf(test: string): string {
    const directory = mkdtempSync(join(tmpdir(), `sentinel-${test}-`))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    return directory
  }

  test('D8.freeze: everything in its cgroups is stopped, also what comes later, until it has answers', async () => {
    const cgroup = own(createCgroup())
    const node = own(await startNode('a'))
    const a = own(await startIn(app, cgroup))
    const b = own(await startIn(app, cgroup.child('inner')))
    const bystander = own(await start(app, ['pause']))
    await serve(node, cgroup)
    await settledServing(node, ['S', 'S', 'S'], a, b, bystander)
    await node.event('stops', { name: 'pod', epoch: 1 })
    await settled(['T', 'T', 'S'], a, b, bystander)
    await eventually(() => expect(node.sentinel.stderr()).toContain('"msg":"a primary is stopped"'))
    // A kubelet restarts a container, or a probe executes something; and what is resumed is stopped again.
    const late = own(await startIn(app, cgroup.child('later')))
    process.kill(a.pid, 'SIGCONT')
    await settled(['T', 'T', 'T'], a, b, late)
    await settledServing(node, ['S', 'S', 'S'], a, b, late)
    await node.event('serves', {})
    await node.event('stops', {})
    await settled(['T', 'T', 'T', 'S'], a, b, late, bystander)
  })

  test('D8.freeze: what forks all the time does not get away', async () => {
    const cgroup = own(createCgroup())
    const node = own(await startNode('a'))
    const parent = own(await start(app, ['forks', '20']))
    await eventually(() => expect(parent.stdout()).toBe('ready\n'))
    const pids = () =>
      readFileSync(join(cgroup.directory, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean)
    const all = () => pids().map(Number)
    const states = () =>
      new Set(
        all()
          .map(stateOf)
          .filter(state => state !== 'Z'),
      )
    try {
      for (const pid of [parent.pid, ...childrenOf(parent.pid)]) unlessGone(() => cgroup.add(pid))
      await serve(node, cgroup)
      await node.event('stops', {})
      await eventually(() => expect([all().length > 20, states()]).toEqual([true, new Set('T')]))
      const before = all()
      await moment()
      expect(all()).toEqual(before)
    } finally {
      process.kill(parent.pid, 'SIGKILL')
      await eventually(() => {
        for (const pid of all()) unlessGone(() => process.kill(pid, 'SIGKILL'))
        expect(all()).toEqual([])
      })
    }
  })

  test('D8.freeze: what another program has stopped stays stopped, until that program resumes it', async () => {
    const cgroup = own(createCgroup())
    const node = own(await startNode('a'))
    const a = own(await startIn(app, cgroup))
    const job = own(await startIn(app, cgroup))
    const other = own(await startIn(app, cgroup))
    for (const { pid } of [job, other]) process.kill(pid, 'SIGSTOP')
    await settled(['S', 'T', 'T'], a, job, other)
    await fence(node, cgroup, a)
    process.kill(other.pid, 'SIGCONT')
    await settled(['T', 'T', 'T'], a, job, other)
    await moment()
    await settledServing(node, ['S', 'T', 'S'], a, job, other)
  })

  test('D8.freeze: the next sentinel keeps stopped what was, and resumes exactly that', async () => {
    const directory = directoryOf('next')
    const cgroup = own(createCgroup())
    const a = own(await startIn(app, cgroup))
    const job = own(await startIn(app, cgroup))
    process.kill(job.pid, 'SIGSTOP')
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      await using killed = await startNode('a', directory)
      if (signal === 'SIGKILL') await fence(killed, cgroup, a)
      process.kill(killed.sentinel.pid, signal)
      await killed.sentinel.exit
      expect(statesOf(a, job)).toEqual(['T', 'T'])
    }
    const startedBetween = own(await startIn(app, cgroup))
    const next = own(await startNode('a', directory))
    await settled(['T', 'T', 'T'], a, job, startedBetween)
    await moment()
    expect(statesOf(a, job, startedBetween)).toEqual(['T', 'T', 'T'])
    await next.event('stops', { name: 'pod', epoch: 1 })
    await settledServing(next, ['S', 'T', 'S'], a, job, startedBetween)
    expect(await next.ask('unprimary', { name: 'pod' })).toBe('ok')
    await eventually(() => expect(readFileSync(join(directory, 's.stopped'), 'utf8')).toBe(''))
  })

  test('D8.freeze: the end of a connection changes nothing, and the end of the guard resumes it', async () => {
    const cgroup = own(createCgroup())
    const node = own(await startNode('a'))
    const a = own(await startIn(app, cgroup))
    await fence(node, cgroup, a)
    await node.client.close()
    const other = await node.sentinel.connect()
    await moment()
    expect(statesOf(a)).toEqual(['T'])
    await other.ask('tree-continue', processOf(a.pid))
    expect(statesOf(a)).toEqual(['T'])
    expect((await other.ask('unprimary', { name: 'pod' })).word).toBe('ok')
    await settled(['S'], a)
  })

  test('D8.freeze: a process that a restore has left stopped resumes with its primary', async () => {
    const cgroup = own(createCgroup())
    const node = own(await startNode('a'))
    const a = own(await startIn(app, cgroup))
    const restored = own(await startIn(app, cgroup))
    process.kill(restored.pid, 'SIGSTOP')
    await fence(node, cgroup, a)
    await node.ask('tree-continue', processOf(restored.pid))
    await moment()
    expect(statesOf(a, restored)).toEqual(['T', 'T'])
    await settledServing(node, ['S', 'S'], a, restored)
  })

  test('D8.freeze: what a tracer from elsewhere holds gets no signal, and stops when that lets go of it', async () => {
    const cgroup = own(createCgroup())
    const node = own(await startNode('a'))
    const a = own(await startIn(app, cgroup))
    const b = own(await startIn(app, cgroup))
    {
      await using tracer = await start(app, ['trace', String(b.pid), 'runs'])
      await eventually(() => expect(tracer.stdout()).toBe('ready\n'))
      await fence(node, cgroup, a)
      await moment()
      expect([statusField(b.pid, 'State')?.[0], statusField(b.pid, 'ShdPnd')]).toEqual(['S', '0'.repeat(16)])
    }
    await settled(['T', 'T'], a, b)
    {
      await using tracer = await start(app, ['trace', String(b.pid)])
      await eventually(() => expect(tracer.stdout()).toBe('ready\n'))
      await settledServing(node, ['S', 't'], a, b)
    }
    await settledServing(node, ['S', 'S'], a, b)
  })

  test('D8.freeze: a tree that is frozen can be killed', async () => {
    const cgroup = own(createCgroup())
    const node = own(await startNode('a'))
    const a = own(await startIn(app, cgroup))
    await fence(node, cgroup, a)
    expect(await node.ask('tree-kill', processOf(a.pid))).toBe('gone')
    await a.exit
  })

  test.each(['continue', 'deadline', 'keep', 'close'] as const)(
    'D8.freeze: a stop that was there before does not resume it: %s',
    async end => {
      const cgroup = own(createCgroup())
      const node = own(await startNode('a'))
      const a = own(await startIn(app, cgroup))
      await serve(node, cgroup)
      const agent = await node.sentinel.connect()
      const deadline = end === 'deadline' ? timeout : FOREVER
      await stopServing(node, { name: 'n', deadline, cgroup: cgroup.path }, agent)
      await node.event('stops', {})
      if (end === 'continue') expect((await agent.ask('continue', { name: 'n' })).word).toBe('continued')
      if (end === 'keep') expect((await agent.ask('keep', { name: 'n', deadline: 1 })).word).toBe('kept')
      if (end === 'close') await agent.close()
      const over = async () => {
        const { word, values } = await node.client.ask('stop-state', { name: 'n' })
        expect(values['reason'] ?? word).toBe(
          end === 'deadline' || end === 'keep' ? 'expired' : 'unknown-name',
        )
      }
      await eventually(over)
      await moment()
      expect(statesOf(a)).toEqual(['T'])
      await settledServing(node, ['S'], a)
    },
  )

  test('D8.freeze: what serves again stays stopped for its dump, and no dump begins while it does not', async () => {
    const cgroup = own(createCgroup())
    const node = own(await startNode('a'))
    const a = own(await startIn(app, cgroup))
    await serve(node, cgroup)
    const stop = { name: 'n', deadline: FOREVER, cgroup: cgroup.path }
    await stopServing(node, stop)
    await node.event('stops', {})
    expect(await node.ask('stop', { ...stop, name: 'm' })).toBe('refused fenced')
    await node.answered()
    await node.event('serves', {})
    await moment()
    expect(statesOf(a)).toEqual(['T'])
    expect(await node.ask('continue', { name: 'n' })).toBe('continued')
    await settledServing(node, ['S'], a)
    await node.event('stops', {})
    await settled(['T'], a)
    expect(await node.ask('stop', stop)).toBe('refused fenced')
  })

  test('D8.pending: a primary that nobody has answered yet is not stopped, and what was before stays', async () => {
    const directory = directoryOf('pending')
    const cgroup = own(createCgroup())
    const node = own(await startNode('a', directory))
    const a = own(await startIn(app, cgroup))
    const refused = node.ask('primary', primary([api], { cgroup: cgroup.path }))
    await node.event('alone', { name: 'pod', epoch: 1 })
    await node.event('alone', { name: 'pod', epoch: 1 })
    expect(statesOf(a)).toEqual(['S'])
    expect(await node.ask('vote', vote({ name: 'b', run: 'b'.repeat(16) }))).toBe('ok')
    expect(readFileSync(join(directory, 's.votes'), 'utf8')).not.toContain('primary')
    expect(await refused).toBe('refused no-answers')
    expect(await node.answered()).toBe('absent')
    await fence(node, cgroup, a)
    // The next epoch does not free it before its voters have answered, and it is no other pod.
    const epoch = 2
    expect(await node.ask('primary', primary([api], { name: 'other', epoch }))).toBe('refused another-pod')
    expect(await node.ask('primary', primary([api], { cgroup: cgroup.path, epoch }))).toBe(
      'refused no-answers',
    )
    expect(statesOf(a)).toEqual(['T'])
    await settledServing(node, ['S'], a)
    await node.event('serves', { epoch: 1 })
    await node.event('stops', { epoch: 1 })
    await acknowledge(node, cgroup, epoch)
    await eventually(async () => {
      expect(await node.answered({ epoch })).toBe('ok')
      expect(statesOf(a)).toEqual(['S'])
    })
    expect(await node.answered({ epoch: 1 })).toBe('absent')
  })
})

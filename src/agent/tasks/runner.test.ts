import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import { seededRandom } from '../../kube/random.ts'
import { createTasks, type Wanted } from './runner.ts'

interface Run {
  readonly task: Wanted
  readonly signal: AbortSignal
  readonly succeeded: () => void
  readonly end: (error?: unknown) => void
}

function stand() {
  const clock = createFakeClock()
  const running = new Set<Run>()
  const failures: string[] = []
  const pauses: number[] = []
  const tasks = createTasks<Wanted>({
    perform: (task, signal, succeeded) =>
      new Promise<void>((resolve, reject) => {
        const run: Run = {
          task,
          signal,
          succeeded,
          end: error => {
            running.delete(run)
            if (error === undefined) resolve()
            else reject(error)
          },
        }
        running.add(run)
      }),
    onFailure: ({ key }, _, { inMs }) => {
      failures.push(key)
      pauses.push(inMs)
    },
    clock,
    random: seededRandom(1),
  })
  const settle = () => new Promise<void>(resolve => setImmediate(resolve))
  const running_ = () => [...running].map(({ task: { key, version } }) => `${key}@${version}`).sort()
  return { clock, running, failures, pauses, tasks, settle, now: running_ }
}

const task = (key: string, version = '1', memoryOf?: string): Wanted => ({
  key,
  version,
  ...(memoryOf === undefined ? {} : { memoryOf }),
})

describe('tasks', () => {
  it('what works on the same memory waits until the one before has really ended', async () => {
    const { tasks, running, now, settle } = stand()
    tasks.want([task('freeze', '1', 'pod')])
    tasks.want([task('promote', '1', 'pod')])
    const [old] = running
    expect(old?.signal.aborted).toBe(true)
    expect(now()).toEqual(['freeze@1'])
    old?.end(new Error('aborted'))
    await settle()
    expect(now()).toEqual(['promote@1'])
  })

  it('another version of a task takes the place of the first one', async () => {
    const { tasks, running, now, settle } = stand()
    tasks.want([task('watchPrimary')])
    tasks.want([task('watchPrimary', '2')])
    expect(now()).toEqual(['watchPrimary@1'])
    for (const run of running) run.end()
    await settle()
    expect(now()).toEqual(['watchPrimary@2'])
  })

  it('what ended well is not begun again, what failed is after a pause', async () => {
    const { tasks, running, now, settle, clock, failures } = stand()
    tasks.want([task('stopPrimary'), task('replicate')])
    for (const run of [...running]) run.end(run.task.key === 'replicate' ? new Error('no') : undefined)
    await settle()
    expect(now()).toEqual([])
    tasks.want([task('stopPrimary'), task('replicate')])
    expect(now()).toEqual([])
    await clock.advance(1_000)
    expect(now()).toEqual(['replicate@1'])
    expect(failures).toEqual(['replicate'])
  })

  it('D7.behind: what is tried again goes by what is known then', async () => {
    const { tasks, running, settle, clock } = stand()
    const [first, second, third] = [task('replicate'), task('replicate'), task('replicate')]
    tasks.want([first])
    const [run] = running
    // The task keeps running: only another version would abort it.
    tasks.want([second])
    expect([...running]).toEqual([run])
    expect(run?.signal.aborted).toBe(false)
    run?.end(new Error('no'))
    await settle()
    tasks.want([third])
    await clock.advance(1_000)
    expect([...running].map(each => each.task === third)).toEqual([true])
  })

  it('failures are in a row only where nothing went well between them', async () => {
    const { tasks, running, pauses, settle, clock } = stand()
    tasks.want([task('checkpoint')])
    const fail = async (times: number, { well = false } = {}) => {
      for (let time = 0; time < times; time += 1) {
        for (const run of [...running]) {
          if (well) run.succeeded()
          run.end(new Error('no'))
        }
        await settle()
        await clock.advance(60_000)
      }
    }
    await fail(9)
    expect(pauses.at(-1)).toBe(30_000)
    await fail(20, { well: true })
    expect(Math.max(...pauses.slice(9))).toBeLessThan(300)
    await fail(3)
    expect(pauses.at(-1)).toBeGreaterThanOrEqual(1_600)
  })

  it('stops everything and begins nothing any more', async () => {
    const { tasks, running, now, settle } = stand()
    tasks.want([task('watchPrimary', '1'), task('freeze', '1', 'pod'), task('promote', '1', 'pod')])
    const stopped = tasks.stop(new Error('over'))
    for (const run of running) expect(run.signal.aborted).toBe(true)
    for (const run of running) run.end(new Error('over'))
    await stopped
    await settle()
    tasks.want([task('watchPrimary', '2')])
    expect(now()).toEqual([])
  })

  it('any sequence: one at a time on each memory, and in the end just what is wanted runs', async () => {
    const wanted = fc.uniqueArray(
      fc.record({
        key: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
        version: fc.constantFrom('1', '2'),
        memory: fc.constantFrom('x', 'y', undefined),
      }),
      { selector: ({ key }) => key },
    )
    const steps = fc.array(
      fc.oneof(
        wanted.map(list => ({ type: 'want' as const, list })),
        fc.record({ type: fc.constant('end' as const), which: fc.nat(4), fails: fc.boolean() }),
        fc.constant({ type: 'pass' as const }),
      ),
      { maxLength: 25 },
    )
    await fc.assert(
      fc.asyncProperty(steps, wanted, async (list, last) => {
        const { tasks, running, settle, clock, now } = stand()
        const check = () => {
          const memories = [...running].flatMap(({ task }) => task.memoryOf ?? [])
          expect(new Set(memories).size).toBe(memories.length)
          const keys = [...running].map(({ task }) => task.key)
          expect(new Set(keys).size).toBe(keys.length)
        }
        const tasksOf = (from: typeof last) =>
          from.map(({ key, version, memory }) => task(key, version, memory))
        for (const step of list) {
          if (step.type === 'want') tasks.want(tasksOf(step.list))
          else if (step.type === 'pass') await clock.advance(300)
          else [...running][step.which]?.end(step.fails ? new Error('no') : undefined)
          check()
          await settle()
          check()
        }
        // Begins with no tasks, so that completed tasks are new again; aborted tasks do end.
        tasks.want([])
        for (let round = 0; running.size > 0 && round < 50; round += 1) {
          for (const run of [...running]) run.end(new Error('aborted'))
          await settle()
        }
        tasks.want(tasksOf(last))
        await settle()
        check()
        const expected = new Map<string, string>()
        for (const { key, version, memory } of last) {
          const place = memory ?? `own ${key}`
          if (!expected.has(place)) expected.set(place, `${key}@${version}`)
        }
        expect(now()).toEqual([...expected.values()].sort())
      }),
      { numRuns: 200 },
    )
  })
})

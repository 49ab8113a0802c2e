import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import type { Reconcile, ReconcileContext } from './reconcile.ts'
import { StopNow } from './stop.ts'
import { makeController, settle } from './testing/controller.ts'

/** A promise to be settled by the test. */
const gate = () => Promise.withResolvers<void>()

describe('controller', () => {
  test('reconciles keys with as many workers as it has, each key once at a time', async () => {
    const gates = new Map<string, ReturnType<typeof gate>>()
    const running: string[] = []
    const { queue, controller, stop, counts } = makeController(
      async key => {
        running.push(key)
        const mine = gate()
        gates.set(key, mine)
        await mine.promise
        running.splice(running.indexOf(key), 1)
      },
      { workers: 2 },
    )
    const done = controller.run(stop.signal)
    for (const key of ['a', 'b', 'c']) queue.add(key)
    await settle()
    queue.add('a')
    await settle()
    expect(running).toEqual(['a', 'b'])
    expect(counts['active']).toBe(2)
    gates.get('a')?.resolve()
    await settle()
    expect(running).toEqual(['b', 'c'])
    gates.get('b')?.resolve()
    await settle()
    expect(running).toEqual(['c', 'a'])
    for (const { resolve } of gates.values()) resolve()
    stop.abort()
    await done
    expect(counts).toMatchObject({ workers: 2, active: 0, success: 4 })
  })

  test('a key was urgent for what happened to it, not for ever', async () => {
    const priorities: number[] = []
    const results = [
      { requeueAfterMs: 50 },
      { requeueAfterMs: 0, priority: -100 },
      { requeueAfterMs: 30_000 },
    ]
    const { queue, controller, stop, clock } = makeController(async (_, { priority }) => {
      priorities.push(priority)
      return results[priorities.length - 1] ?? {}
    })
    const done = controller.run(stop.signal)
    queue.add('a', { priority: 10 })
    await clock.advance(50)
    await clock.advance(30_000)
    expect(priorities).toEqual([10, 10, -100, 0])
    stop.abort()
    await done
  })

  test('a long pass is asked to end when its key becomes more urgent, or the controller stops', async () => {
    const contexts: ReconcileContext[] = []
    const gates = [gate(), gate()]
    const { queue, controller, stop } = makeController(async (_, context) => {
      contexts.push(context)
      await gates[contexts.length - 1]?.promise
    })
    const yields = () => contexts.map(({ mustYield }) => mustYield())
    const done = controller.run(stop.signal)
    queue.add('a')
    await settle()
    queue.add('a')
    queue.add('b', { priority: 10 })
    expect(yields()).toEqual([false])
    queue.add('a', { priority: 10 })
    expect(yields()).toEqual([true])
    gates[0]?.resolve()
    await settle()
    expect(contexts[1]?.priority).toBe(10)
    expect(contexts[1]?.mustYield()).toBe(false)
    stop.abort()
    expect(contexts[1]?.mustYield()).toBe(true)
    expect(contexts[1]?.signal.aborted).toBe(false)
    gates[1]?.resolve()
    await done
  })

  test('long passes of others leave workers for urgent keys', async () => {
    const taken: string[] = []
    const { queue, controller, stop, counts } = makeController(
      async key => {
        taken.push(key)
        await new Promise(() => {})
      },
      { workers: 2, reserved: { workers: 1, priority: 10 }, drainMs: 0, graceMs: 0 },
    )
    void controller.run(stop.signal)
    for (const key of ['a', 'b', 'c']) queue.add(key)
    queue.add('lost', { priority: 10 })
    await settle()
    expect(taken.sort()).toEqual(['a', 'b', 'lost'])
    expect(counts['workers']).toBe(3)
    stop.abort()
  })

  test("with pino, every line of a pass carries its key and its reconcileID, also the pass' own", async () => {
    const lines: Record<string, unknown>[] = []
    const log = pino({ level: 'debug' }, { write: line => lines.push(JSON.parse(line)) })
    const { queue, controller, stop } = makeController(
      async (_, { log }) => log.info({ pods: 3 }, 'looked'),
      { log },
    )
    const done = controller.run(stop.signal)
    queue.add('ns/a')
    queue.add('node-1')
    await settle()
    stop.abort()
    await done
    expect(lines.map(({ msg, namespace, name }) => [msg, namespace, name])).toEqual([
      ['looked', 'ns', 'a'],
      ['reconciled', 'ns', 'a'],
      ['looked', undefined, 'node-1'],
      ['reconciled', undefined, 'node-1'],
    ])
    expect(new Set(lines.map(line => line['reconcileID'])).size).toBe(2)
  })

  test('a pass that ignores its end loses its worker, never its key', async () => {
    const hung = gate()
    const passes: string[] = []
    const { queue, controller, stop, clock } = makeController(
      async key => {
        passes.push(key)
        if (key === 'hung') await hung.promise
      },
      { timeoutMs: 1000, graceMs: 500 },
    )
    const done = controller.run(stop.signal)
    queue.add('hung')
    queue.add('other')
    await clock.advance(1499)
    expect(passes).toEqual(['hung'])
    queue.add('hung')
    await clock.advance(1)
    await settle()
    expect(passes).toEqual(['hung', 'other'])
    hung.resolve()
    await settle()
    expect(passes).toEqual(['hung', 'other', 'hung'])
    stop.abort()
    await done
  })

  test('told to stop, it finishes running passes and leaves the rest in the queue', async () => {
    const finish = gate()
    const passes: string[] = []
    const { queue, controller, stop, counts } = makeController(async (key, { signal }) => {
      passes.push(key)
      await finish.promise
      expect(signal.aborted).toBe(false)
    })
    const done = controller.run(stop.signal)
    queue.add('a')
    queue.add('b')
    await settle()
    stop.abort()
    await settle()
    finish.resolve()
    await done
    expect(passes).toEqual(['a'])
    expect(counts['success']).toBe(1)
    expect((await queue.take())?.key).toBe('b')
  })

  const untilAborted: Reconcile = (_, { signal }) =>
    new Promise<void>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason))
    })

  test('the drain has an end; a pass stopped there is neither an error nor lost', async () => {
    const { queue, controller, stop, counts, clock } = makeController(untilAborted, { drainMs: 3000 })
    const done = controller.run(stop.signal)
    queue.add('a')
    await settle()
    stop.abort()
    await clock.advance(2999)
    expect(counts['active']).toBe(1)
    await clock.advance(1)
    await done
    expect(counts).toEqual({ workers: 1, active: 0 })
    expect((await queue.take())?.key).toBe('a')
  })

  test.each([
    ['StopNow', (stop: AbortController, _: AbortController) => stop.abort(new StopNow('lost'))],
    [
      'abort during the drain',
      (stop: AbortController, abort: AbortController) => {
        stop.abort()
        abort.abort()
      },
    ],
  ])('%s ends running passes at once', async (_, end) => {
    const { queue, controller, stop, counts } = makeController(untilAborted)
    const abort = new AbortController()
    const done = controller.run(stop.signal, abort.signal)
    queue.add('a')
    await settle()
    end(stop, abort)
    await done
    expect(counts['active']).toBe(0)
    expect((await queue.take())?.key).toBe('a')
  })

  test('run again, it goes on with what came in meanwhile', async () => {
    const passes: string[] = []
    const { queue, controller, stop } = makeController(async key => {
      passes.push(key)
    })
    const first = controller.run(stop.signal)
    stop.abort()
    await first
    queue.add('a')
    const again = new AbortController()
    const second = controller.run(again.signal)
    await settle()
    expect(passes).toEqual(['a'])
    again.abort()
    await second
  })

  test('stops even when a pass hangs for ever', async () => {
    const { queue, controller, stop, clock } = makeController(() => new Promise<void>(() => {}), {
      drainMs: 100,
      graceMs: 50,
    })
    const done = controller.run(stop.signal)
    queue.add('a')
    await settle()
    stop.abort()
    await clock.advance(150)
    await done
    expect(queue.gauges().runningSeconds).toHaveLength(1)
  })
})

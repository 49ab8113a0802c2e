import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { createFakeClock } from './clock.ts'
import {
  type ControllerMetrics,
  type ControllerOptions,
  createController,
  type Reconcile,
  type ReconcileContext,
  RetryLater,
  TerminalError,
} from './controller.ts'
import { KubeError } from './errors.ts'
import type { Log } from './log.ts'
import { createQueue } from './queue.ts'
import { seededRandom } from './random.ts'
import { StopNow } from './stop.ts'

const settle = () => new Promise<void>(resolve => setImmediate(resolve))

/** A promise to be settled by the test. */
const gate = () => Promise.withResolvers<void>()

const setup = (reconcile: Reconcile, options: Partial<ControllerOptions> = {}) => {
  const clock = createFakeClock()
  const queue = createQueue({ clock, name: 'test' })
  const lines: { level: string; fields: Readonly<Record<string, unknown>>; message: string }[] = []
  const write = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string) => {
    lines.push({ level, fields, message })
  }
  const log: Log = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
  }
  const counts: Record<string, number> = {}
  const count = (name: string, by = 1) => {
    counts[name] = (counts[name] ?? 0) + by
  }
  const metrics: ControllerMetrics = {
    controller: (_, workers) => count('workers', workers),
    reconciled: (_, result) => count(result),
    failed: (_, kind) => count(`failed ${kind}`),
    active: (_, delta) => count('active', delta),
  }
  const controller = createController({
    name: 'test',
    queue,
    reconcile,
    log,
    clock,
    random: seededRandom(1),
    metrics,
    ...options,
  })
  const stop = new AbortController()
  return { clock, queue, lines, counts, controller, stop }
}

describe('controller', () => {
  test('reconciles keys with as many workers as it has, each key once at a time', async () => {
    const gates = new Map<string, ReturnType<typeof gate>>()
    const running: string[] = []
    const { queue, controller, stop, counts } = setup(
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

  test.each<
    [string, () => unknown, { result: string; failed: string[]; againAfter?: number; level: string }]
  >([
    ['success', () => undefined, { result: 'success', failed: [], level: 'debug' }],
    [
      'a result with a delay',
      () => ({ requeueAfterMs: 700 }),
      { result: 'requeue_after', failed: [], againAfter: 700, level: 'debug' },
    ],
    [
      'RetryLater',
      () => {
        throw new RetryLater(300, 'old primary still there')
      },
      { result: 'requeue_after', failed: [], againAfter: 300, level: 'debug' },
    ],
    [
      'RetryLater with backoff',
      () => {
        throw new RetryLater('backoff', 'somebody else writes all the time')
      },
      { result: 'requeue_after', failed: [], againAfter: 5, level: 'debug' },
    ],
    [
      'an error of the API server',
      () => {
        throw new KubeError('Unavailable', 'etcd is gone')
      },
      { result: 'error', failed: ['error'], againAfter: 5, level: 'warn' },
    ],
    [
      'an error with Retry-After',
      () => {
        throw new KubeError('Throttled', 'busy', { retryAfterMs: 2000 })
      },
      { result: 'error', failed: ['error'], againAfter: 2000, level: 'warn' },
    ],
    [
      'several errors of the API server at once',
      () => {
        throw new AggregateError([new KubeError('Timeout', 'slow'), new KubeError('Conflict', 'late')])
      },
      { result: 'error', failed: ['error'], againAfter: 5, level: 'warn' },
    ],
    [
      'a conflict',
      () => {
        throw new KubeError('Conflict', 'somebody was faster')
      },
      { result: 'error', failed: ['error'], againAfter: 5, level: 'debug' },
    ],
    [
      'TerminalError',
      () => {
        throw new TerminalError('bad spec')
      },
      { result: 'error', failed: ['terminal', 'error'], level: 'error' },
    ],
    [
      'a bug',
      () => {
        throw new TypeError("Cannot read properties of undefined (reading 'x')")
      },
      { result: 'error', failed: ['panic', 'error'], againAfter: 5, level: 'error' },
    ],
    [
      'something that is no Error',
      () => {
        throw 'a string'
      },
      { result: 'error', failed: ['panic', 'error'], againAfter: 5, level: 'error' },
    ],
  ])('%s', async (_, outcome, want) => {
    // Synchronous on purpose: it throws before it returns a promise.
    const { queue, controller, stop, counts, lines, clock } = setup((() => outcome()) as Reconcile)
    const done = controller.run(stop.signal)
    queue.add('ns/name', { priority: 3 })
    await settle()
    expect(counts[want.result]).toBe(1)
    for (const kind of ['error', 'terminal', 'panic', 'timeout'])
      expect(counts[`failed ${kind}`] ?? 0).toBe(want.failed.includes(kind) ? 1 : 0)
    expect(lines).toHaveLength(1)
    expect(lines[0]?.level).toBe(want.level)
    expect(lines[0]?.fields).toMatchObject({ controller: 'test', namespace: 'ns', name: 'name' })
    expect(lines[0]?.fields['reconcileID']).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    )
    stop.abort()
    await done
    // The next hand-out shows when the key comes again, and that it kept its priority.
    if (want.againAfter === undefined) {
      await clock.advance(2_000_000)
      expect(queue.depth()).toBe(0)
    } else {
      await clock.advance(want.againAfter - 1)
      expect(queue.depth()).toBe(0)
      await clock.advance(1)
      expect(await queue.take()).toEqual({ key: 'ns/name', priority: 3 })
    }
  })

  test('a failure beside a time is reported, and does not switch the time off', async () => {
    const { queue, controller, stop, counts, lines, clock } = setup(async () => ({
      requeueAfterMs: 700,
      error: new KubeError('Forbidden', 'exceeded quota'),
    }))
    const done = controller.run(stop.signal)
    queue.add('a')
    for (let pass = 1; pass <= 40; pass++) {
      await settle()
      expect([counts['error'], counts['failed error'], lines.length]).toEqual([pass, pass, pass])
      expect(lines.at(-1)).toMatchObject({ level: 'warn', fields: { retryInMs: 700 } })
      await clock.advance(700)
    }
    stop.abort()
    await done
  })

  test('a failure without a time is backed off', async () => {
    const { queue, controller, stop, clock } = setup(async () => ({
      error: new KubeError('Timeout', 'slow'),
    }))
    const done = controller.run(stop.signal)
    queue.add('a')
    await clock.advance(5 + 10)
    expect(queue.failures('a')).toBe(3)
    stop.abort()
    await done
  })

  test('a key was urgent for what happened to it, not for ever', async () => {
    const priorities: number[] = []
    const results = [
      { requeueAfterMs: 50 },
      { requeueAfterMs: 0, priority: -100 },
      { requeueAfterMs: 30_000 },
    ]
    const { queue, controller, stop, clock } = setup(async (_, { priority }) => {
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
    const { queue, controller, stop } = setup(async (_, context) => {
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
    const { queue, controller, stop, counts } = setup(
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

  test('a pass that knows before its signal that it must stop is no failure, and its key stays', async () => {
    let passes = 0
    const { queue, controller, stop, counts, lines } = setup(async () => {
      passes += 1
      if (passes === 1) throw new StopNow('this process does not lead any more')
    })
    const done = controller.run(stop.signal)
    queue.add('a')
    await settle()
    expect([passes, counts['failed panic'], counts['error']]).toEqual([2, undefined, undefined])
    expect(lines[0]).toMatchObject({ level: 'info', message: 'stopped during a pass' })
    stop.abort()
    await done
  })

  test("with pino, every line of a pass carries its key and its reconcileID, also the pass' own", async () => {
    const lines: Record<string, unknown>[] = []
    const log = pino({ level: 'debug' }, { write: line => lines.push(JSON.parse(line)) })
    const { queue, controller, stop } = setup(async (_, { log }) => log.info({ pods: 3 }, 'looked'), { log })
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

  test('a key that always fails does not disturb the others, and its backoff ends with its success', async () => {
    let broken = true
    const passes: string[] = []
    const { queue, controller, stop, clock } = setup(async key => {
      passes.push(key)
      if (key === 'bad' && broken) throw new TypeError('bug')
    })
    const done = controller.run(stop.signal)
    queue.add('bad')
    queue.add('good')
    await clock.advance(5 + 10 + 20)
    expect(passes).toEqual(['bad', 'good', 'bad', 'bad', 'bad'])
    queue.add('good')
    await settle()
    expect(passes.at(-1)).toBe('good')
    broken = false
    await clock.advance(40)
    expect(queue.failures('bad')).toBe(0)
    stop.abort()
    await done
  })

  test('what is retried with backoff comes later each time, and at once when something changes', async () => {
    let inTheWay = true
    const passes: number[] = []
    const { queue, controller, stop, clock } = setup(async () => {
      passes.push(clock.monotonic())
      if (inTheWay) throw new RetryLater('backoff', 'changed meanwhile')
    })
    const start = clock.monotonic()
    const done = controller.run(stop.signal)
    queue.add('a')
    await clock.advance(5 + 10 + 20 + 39)
    expect(passes.map(at => at - start)).toEqual([0, 5, 15, 35])
    inTheWay = false
    queue.add('a')
    await settle()
    expect([passes.length, queue.failures('a')]).toEqual([5, 0])
    stop.abort()
    await done
  })

  test('a pass that takes too long is told so, counted and backed off', async () => {
    const { queue, controller, stop, clock, counts } = setup(
      (_, { signal }) =>
        new Promise<void>((_, reject) => {
          signal.addEventListener('abort', () =>
            reject(new KubeError('Aborted', 'x', { cause: signal.reason })),
          )
        }),
      { timeoutMs: 1000 },
    )
    const done = controller.run(stop.signal)
    queue.add('slow')
    await clock.advance(1000)
    expect(counts).toMatchObject({ error: 1, 'failed timeout': 1, 'failed error': 1, active: 0 })
    expect(counts['failed panic']).toBeUndefined()
    stop.abort()
    await done
    await clock.advance(5)
    expect(queue.depth()).toBe(1)
  })

  test('a pass that ignores its end loses its worker, never its key', async () => {
    const hung = gate()
    const passes: string[] = []
    const { queue, controller, stop, clock } = setup(
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
    const { queue, controller, stop, counts } = setup(async (key, { signal }) => {
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
    const { queue, controller, stop, counts, clock } = setup(untilAborted, { drainMs: 3000 })
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
    const { queue, controller, stop, counts } = setup(untilAborted)
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
    const { queue, controller, stop } = setup(async key => {
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
    const { queue, controller, stop, clock } = setup(() => new Promise<void>(() => {}), {
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

import { describe, expect, test } from 'vitest'
import { KubeError } from './errors.ts'
import { type Reconcile, RetryLater, TerminalError } from './reconcile.ts'
import { StopNow } from './stop.ts'
import { makeController, settle } from './testing/controller.ts'

describe('how a pass ends', () => {
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
    const { queue, controller, stop, counts, lines, clock } = makeController((() => outcome()) as Reconcile)
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
    const { queue, controller, stop, counts, lines, clock } = makeController(async () => ({
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
    const { queue, controller, stop, clock } = makeController(async () => ({
      error: new KubeError('Timeout', 'slow'),
    }))
    const done = controller.run(stop.signal)
    queue.add('a')
    await clock.advance(5 + 10)
    expect(queue.failures('a')).toBe(3)
    stop.abort()
    await done
  })

  test('a pass that knows before its signal that it must stop is no failure, and its key stays', async () => {
    let passes = 0
    const { queue, controller, stop, counts, lines } = makeController(async () => {
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

  test('a key that always fails does not disturb the others, and its backoff ends with its success', async () => {
    let broken = true
    const passes: string[] = []
    const { queue, controller, stop, clock } = makeController(async key => {
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
    const { queue, controller, stop, clock } = makeController(async () => {
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
    const { queue, controller, stop, clock, counts } = makeController(
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
})

import { describe, expect, test } from 'vitest'
import { createFakeClock } from '../kube/clock.ts'
import type { ParsedProbe } from './handler.ts'
import type { Probe } from './probe.ts'
import { createProber, type ProberEvent, type ProberOptions } from './prober.ts'
import { failure, success } from './result.ts'

const probeOf = (timing: Partial<ParsedProbe['timing']> = {}, port = 1): ParsedProbe => ({
  handler: { type: 'tcp', port },
  timing: {
    initialDelayMs: 0,
    periodMs: 100,
    timeoutMs: 50,
    successThreshold: 1,
    failureThreshold: 3,
    ...timing,
  },
})

const start = (options: Partial<ProberOptions> & { answer: (nth: number) => ReturnType<Probe> }) => {
  const clock = createFakeClock()
  const events: ProberEvent['type'][] = []
  const at: number[] = []
  const stop = new AbortController()
  const begin = clock.monotonic()
  const prober = createProber({
    target: { address: '192.0.2.1' },
    clock,
    onEvent: event => void events.push(event.type),
    probe: () => {
      at.push(clock.monotonic() - begin)
      return options.answer(at.length)
    },
    ...options,
  })
  const done = prober.run(stop.signal)
  return { clock, events, at, stop, prober, done }
}

const good = async () => success
const bad = async () => failure('bad')

describe('readiness', () => {
  test('is probed at its times, the first after the initial delay', async () => {
    const { clock, at, events, stop, done } = start({
      readiness: probeOf({ initialDelayMs: 30, periodMs: 7 }),
      answer: good,
    })
    await clock.advance(30 + 3 * 7)
    expect(at).toEqual([30, 37, 44, 51])
    expect(events).toEqual(['ready'])
    stop.abort(new Error('over'))
    await done
  })

  test('counts answers in a row', async () => {
    const answers = [1, 1, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    const { clock, events, stop, done } = start({
      readiness: probeOf({ successThreshold: 3, failureThreshold: 2 }),
      answer: async nth => (answers[nth - 1] ? success : failure('bad')),
    })
    await clock.advance(4 * 100)
    expect(events).toEqual([])
    await clock.advance(100)
    expect(events).toEqual(['ready'])
    await clock.advance(100)
    expect(events).toEqual(['ready'])
    await clock.advance(100)
    expect(events).toEqual(['ready', 'notReady'])
    await clock.advance(600)
    expect(events).toEqual(['ready', 'notReady'])
    stop.abort(new Error('over'))
    await done
  })

  test('may be there from the start', async () => {
    const { clock, events, stop, done } = start({
      readiness: probeOf({ failureThreshold: 2 }),
      readyAtStart: true,
      answer: async nth => (nth === 1 ? success : failure('bad')),
    })
    await clock.advance(100)
    expect(events).toEqual([])
    await clock.advance(100)
    expect(events).toEqual(['notReady'])
    stop.abort(new Error('over'))
    await done
  })

  test('a probe that runs over its period uses up the times that it ran over', async () => {
    const { clock, at, stop, done } = start({
      readiness: probeOf({ periodMs: 100 }),
      answer: async () => {
        await clock.sleep(250)
        return success
      },
    })
    await clock.advance(700)
    expect(at).toEqual([0, 300, 600])
    stop.abort(new Error('over'))
    await clock.advance(250)
    await done
  })
})

describe('liveness', () => {
  test('is lost after so many failures in a row, once, and no more is asked', async () => {
    const { clock, events, at, done } = start({
      liveness: probeOf({ periodMs: 5 }),
      answer: async nth => (nth === 2 ? success : failure('bad')),
    })
    await clock.advance(5 * 3)
    expect(events).toEqual([])
    await clock.advance(5)
    expect(events).toEqual(['lost'])
    await done
    await clock.advance(1000)
    expect(at).toHaveLength(5)
    expect(events).toEqual(['lost'])
  })

  test('while the app is stopped on purpose nothing is asked and nothing counts', async () => {
    const slow = Promise.withResolvers<void>()
    const { clock, events, at, prober, stop, done } = start({
      liveness: probeOf({ failureThreshold: 1 }),
      answer: async nth => {
        if (nth > 1) return success
        await slow.promise
        return failure('stopped')
      },
    })
    await clock.advance(0)
    expect(at).toEqual([0])
    const first = prober.suspend()
    const second = prober.suspend()
    slow.resolve()
    await clock.advance(1000)
    first()
    first()
    await clock.advance(1000)
    expect(at).toEqual([0])
    expect(events).toEqual([])
    second()
    await clock.advance(0)
    expect(at).toEqual([0, 2000])
    stop.abort(new Error('over'))
    await done
  })

  test('a stop within one probe makes that probe void, too', async () => {
    const slow = Promise.withResolvers<void>()
    const { clock, events, at, prober, stop, done } = start({
      liveness: probeOf({ failureThreshold: 1 }),
      answer: async nth => {
        if (nth > 1) return success
        await slow.promise
        return failure('stopped meanwhile')
      },
    })
    await clock.advance(0)
    prober.suspend()()
    slow.resolve()
    await clock.advance(0)
    expect(at).toEqual([0, 0])
    expect(events).toEqual([])
    stop.abort(new Error('over'))
    await done
  })
})

describe('a prober', () => {
  test('runs both, each at its own times', async () => {
    const ports: number[] = []
    const { clock, stop, done } = start({
      readiness: probeOf({ periodMs: 100 }, 1),
      liveness: probeOf({ periodMs: 40 }, 2),
      answer: good,
      probe: async handler => {
        ports.push('port' in handler ? handler.port : 0)
        return success
      },
    })
    await clock.advance(200)
    expect(ports.filter(port => port === 1)).toHaveLength(3)
    expect(ports.filter(port => port === 2)).toHaveLength(6)
    stop.abort(new Error('over'))
    await done
  })

  test('says once what it cannot find out', async () => {
    const { clock, events, at, done } = start({
      liveness: probeOf(),
      answer: async () => ({ outcome: 'unsupported', message: 'no' }),
    })
    await clock.advance(1000)
    await done
    expect(events).toEqual(['unsupported'])
    expect(at).toHaveLength(1)
  })

  test('ends with the signal, also while suspended, and at once if it has fired', async () => {
    const { clock, prober, stop, done, at } = start({ readiness: probeOf(), answer: bad })
    await clock.advance(100)
    prober.suspend()
    await clock.advance(300)
    stop.abort(new Error('over'))
    await done
    expect(at).toEqual([0, 100])
    await prober.run(stop.signal)
    expect(at).toEqual([0, 100])
  })

  test('without probes it ends', async () => {
    await start({ answer: good }).done
  })

  test('an error of the listener ends it', async () => {
    const { done, clock } = start({
      readiness: probeOf(),
      liveness: probeOf(),
      answer: good,
      onEvent: () => {
        throw new Error('broken listener')
      },
    })
    const ended = expect(done).rejects.toThrow('broken listener')
    await clock.advance(0)
    await ended
    expect(clock.sleepers()).toBe(0)
  })
})

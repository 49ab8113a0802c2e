import { describe, expect, test } from 'vitest'
import type { EventRecord } from './event-record.ts'
import { event, makeRecorder } from './testing/recorder.ts'

const settle = () => new Promise<void>(resolve => setImmediate(resolve))

describe('recorder', () => {
  test('writes an event with everything the API server asks for', async () => {
    const { recorder, stored, results } = makeRecorder()
    recorder.record(event())
    expect(await recorder.flush()).toBe(0)
    expect(stored()).toEqual([
      {
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata: { namespace: 'ns', name: expect.stringMatching(/^web-0\.[0-9a-f]{16}$/) },
        eventTime: '2030-01-01T00:00:00.000000Z',
        reportingController: 'test-operator',
        reportingInstance: 'test-operator-1',
        type: 'Normal',
        reason: 'Promoted',
        action: 'Promote',
        note: 'hot backup web-1 is primary now',
        regarding: event().regarding,
      },
    ])
    expect(results).toEqual({ created: 1 })
  })

  test('equal events become one with a count, written at most once an interval', async () => {
    const { recorder, stored, state, clock, results } = makeRecorder()
    for (let n = 0; n < 100; n++) {
      recorder.record(event())
      await clock.advance(100)
    }
    await recorder.flush()
    expect(stored()).toHaveLength(1)
    expect(stored()[0]?.series).toEqual({ count: 100, lastObservedTime: '2030-01-01T00:00:09.900000Z' })
    expect(stored()[0]?.eventTime).toBe('2030-01-01T00:00:00.000000Z')
    expect(state.requests).toBeLessThanOrEqual(4)
    expect(results).toEqual({ created: 1, repeated: 99 })
  })

  test('the count reaches the server without a flush', async () => {
    const { recorder, stored, clock } = makeRecorder()
    recorder.record(event())
    await settle()
    recorder.record(event())
    recorder.record(event())
    await clock.advance(5000)
    expect(stored()[0]?.series?.count).toBe(3)
  })

  test('gives way to what is more urgent, but not at the end', async () => {
    const { recorder, stored } = makeRecorder({ giveWay: () => new Promise(() => undefined) })
    recorder.record(event())
    await settle()
    expect(stored()).toEqual([])
    const { recorder: ending, stored: written } = makeRecorder({
      giveWay: () => Promise.reject(new Error('no')),
    })
    ending.record(event())
    expect(await ending.flush()).toBe(0)
    expect(written()).toHaveLength(1)
  })

  test('another note, object or reason is another event, and so is the same one after the window', async () => {
    const { recorder, stored, clock } = makeRecorder()
    recorder.record(event())
    recorder.record(event({ note: 'other' }))
    recorder.record(event({ reason: 'Woken' }))
    recorder.record(event({ regarding: { ...event().regarding, uid: 'u2' } }))
    await clock.advance(360_001)
    recorder.record(event())
    await recorder.flush()
    expect(stored()).toHaveLength(5)
    expect(stored().every(({ series }) => series === undefined)).toBe(true)
  })

  test('a series whose event the server has expired goes on in a new one', async () => {
    const { recorder, server, stored } = makeRecorder()
    recorder.record(event())
    await recorder.flush()
    server.clear()
    recorder.record(event())
    await recorder.flush()
    expect(stored()).toHaveLength(1)
    expect(stored()[0]?.series?.count).toBe(2)
  })

  test('recording never waits: not for a server that hangs, and not without bound', async () => {
    const { recorder, state, results, pending } = makeRecorder({ bufferSize: 50, burst: 1000 })
    state.hang = true
    for (let n = 0; n < 80; n++) recorder.record(event({ note: `note ${n}` }))
    await settle()
    expect(pending()).toBe(50)
    expect(results).toEqual({ dropped_full: 30 })
  })

  test('one chatty object is limited, the others are not', async () => {
    const { recorder, stored, results, clock } = makeRecorder({ burst: 5, refillMs: 10_000 })
    for (let n = 0; n < 8; n++) recorder.record(event({ note: `note ${n}` }))
    recorder.record(event({ regarding: { ...event().regarding, uid: 'u2' } }))
    await clock.advance(20_000)
    for (let n = 8; n < 12; n++) recorder.record(event({ note: `note ${n}` }))
    await recorder.flush()
    expect(stored()).toHaveLength(5 + 1 + 2)
    expect(results['dropped_rate']).toBe(5)
  })

  test('an outage delays events and loses none', async () => {
    const { recorder, state, stored, clock, warnings } = makeRecorder()
    state.fail = 'Unavailable'
    for (let n = 0; n < 5; n++) recorder.record(event({ note: `note ${n}` }))
    await clock.advance(60_000)
    expect(stored()).toHaveLength(0)
    state.fail = undefined
    await clock.advance(60_000)
    expect(stored()).toHaveLength(5)
    expect(warnings).toEqual([])
  })

  test('Retry-After is respected', async () => {
    const { recorder, state, clock } = makeRecorder()
    state.fail = 'Throttled'
    recorder.record(event())
    await clock.advance(6999)
    expect(state.requests).toBe(1)
    await clock.advance(1)
    expect(state.requests).toBe(2)
  })

  test('an outage without end is given up, once, and counted', async () => {
    const { recorder, state, clock, results, warnings, pending } = makeRecorder()
    state.fail = 'Unavailable'
    recorder.record(event())
    await clock.advance(3_600_000)
    expect(results).toEqual({ dropped_failed: 1 })
    expect(warnings).toHaveLength(1)
    expect(pending()).toBe(0)
    expect(clock.sleepers()).toBe(0)
  })

  test('what the server refuses is dropped at once', async () => {
    const { recorder, state, results } = makeRecorder()
    state.fail = 'Forbidden'
    recorder.record(event())
    expect(await recorder.flush()).toBe(0)
    expect(state.requests).toBe(1)
    expect(results).toEqual({ dropped_failed: 1 })
  })

  test('an event whose answer was lost is not written twice', async () => {
    const { recorder, state, stored, clock, pending } = makeRecorder()
    state.loseAnswer = true
    recorder.record(event())
    await clock.advance(1000)
    expect(stored()).toHaveLength(1)
    expect(pending()).toBe(0)
  })

  test('a flush ends with its signal and says what is left', async () => {
    const { recorder, state } = makeRecorder()
    state.hang = true
    recorder.record(event())
    const impatient = new AbortController()
    const flushed = recorder.flush(impatient.signal)
    impatient.abort()
    expect(await flushed).toBe(1)
  })
})

describe('what is alike', () => {
  const failing = (pod: string): Partial<EventRecord> => ({
    type: 'Warning',
    reason: 'ActionFailed',
    note: `create failed: pods "set-${pod}" is forbidden: exceeded quota, used: pods=12`,
  })

  test('is one series although names differ', async () => {
    const { recorder, server, clock } = makeRecorder({
      seriesOf: ({ note }) => note.replaceAll(/-[0-9a-f]{12}/g, ''),
    })
    for (const pod of ['0123456789ab', 'ba9876543210', 'aaaaaaaaaaaa']) recorder.record(event(failing(pod)))
    await settle()
    await clock.advance(10_000)
    expect([...server.values()].map(({ series }) => series?.count)).toEqual([3])
  })

  test('a lane does not hold back another one', async () => {
    const { recorder, server, results } = makeRecorder({ burst: 2, laneOf: ({ reason }) => reason })
    for (let i = 0; i < 5; i += 1) recorder.record(event({ reason: 'PodsCreated', note: `created ${i}` }))
    recorder.record(event({ reason: 'FailedOver', note: 'slot 0' }))
    await settle()
    expect(results['dropped_rate']).toBe(3)
    expect(
      [...server.values()].map(({ reason }) => reason).filter(reason => reason === 'FailedOver'),
    ).toHaveLength(1)
  })

  test('a recorder that is closed waits for nothing', async () => {
    const { recorder, state, clock } = makeRecorder()
    state.fail = 'Unavailable'
    recorder.record(event({}))
    await settle()
    expect(clock.sleepers()).toBeGreaterThan(0)
    const flushed = recorder.flush()
    recorder.close()
    await flushed
    await settle()
    expect(clock.sleepers()).toBe(0)
  })
})

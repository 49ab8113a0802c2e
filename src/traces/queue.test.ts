import { describe, expect, it } from 'vitest'
import { createFakeClock } from '../kube/clock.ts'
import { silentLog as log } from '../kube/log.ts'
import type { DropReason } from './metrics.ts'
import {
  createTraceQueue,
  flushMs,
  gatherMs,
  largestBatch,
  mostWaiting,
  pausesMs,
  type Sent,
  tryMs,
} from './queue.ts'
import type { Span } from './span.ts'

const spans = (count: number): Span[] =>
  Array.from({ length: count }, (_, index) => ({
    ...{ traceId: '0'.repeat(32), spanId: String(index).padStart(16, '0'), name: 'x', from: 0, to: 1 },
    attributes: {},
  }))

const sent: Sent = { type: 'sent' }
const hangs = () => new Promise<Sent>(() => undefined)

async function withQueue(
  send: (batch: readonly Span[], signal: AbortSignal) => Promise<Sent>,
  work: (given: ReturnType<typeof open> & { stop(): Promise<void> }) => Promise<void>,
) {
  const given = open(send)
  const end = new AbortController()
  const running = given.queue.run(end.signal)
  const stop = async () => {
    end.abort()
    let isOver = false
    const over = running.then(() => {
      isOver = true
    })
    for (let ms = 0; !isOver && ms <= flushMs; ms += 100) await given.clock.advance(100)
    expect(isOver).toBe(true)
    await over
  }
  await work({ ...given, stop })
  await stop()
}

function open(send: (batch: readonly Span[], signal: AbortSignal) => Promise<Sent>) {
  const clock = createFakeClock()
  const counts = { sent: 0, dropped: {} as Partial<Record<DropReason, number>> }
  const batches: number[] = []
  const metrics = {
    sent: (count: number) => {
      counts.sent += count
    },
    dropped: (count: number, reason: DropReason) => {
      counts.dropped[reason] = (counts.dropped[reason] ?? 0) + count
    },
  }
  const queue = createTraceQueue({
    send: (batch, signal) => {
      batches.push(batch.length)
      return send(batch, signal)
    },
    ...{ metrics, clock, log },
  })
  return { queue, clock, counts, batches }
}

describe('the queue of traces', () => {
  it('sends what is gathered in batches', () =>
    withQueue(
      async () => sent,
      async ({ queue, clock, counts, batches }) => {
        queue.sink(() => spans(largestBatch))
        queue.sink(() => spans(3))
        await clock.advance(gatherMs)
        expect(batches).toEqual([largestBatch])
        await clock.advance(gatherMs)
        expect(batches).toEqual([largestBatch, 3])
        expect(counts).toEqual({ sent: largestBatch + 3, dropped: {} })
      },
    ))

  it('drops what has no room, and what a broken maker was to make', () =>
    withQueue(hangs, async ({ queue, counts, clock }) => {
      queue.sink(() => spans(mostWaiting - 1))
      queue.sink(() => spans(5))
      queue.sink(() => {
        throw new Error('no span')
      })
      expect(counts.dropped).toEqual({ queue_full: 4, invalid: 1 })
      await clock.advance(gatherMs)
    }))

  it('if the collector hangs, drops the batch after its tries, and sends the next one', () => {
    let tries = 0
    const send = () => {
      tries += 1
      return tries <= pausesMs.length + 1 ? hangs() : Promise.resolve(sent)
    }
    return withQueue(send, async ({ queue, clock, counts, batches }) => {
      queue.sink(() => spans(7))
      await clock.advance(gatherMs)
      for (const pause of [...pausesMs, 0]) await clock.advance(tryMs + pause)
      expect(batches).toEqual(Array(pausesMs.length + 1).fill(7))
      expect(counts).toEqual({ sent: 0, dropped: { unreachable: 7 } })
      queue.sink(() => spans(2))
      await clock.advance(2 * gatherMs)
      expect(counts.sent).toBe(2)
    })
  })

  it('tells the sender of a try that is given up to end it', () => {
    let given: AbortSignal | undefined
    return withQueue(
      (_, signal) => {
        given ??= signal
        return hangs()
      },
      async ({ queue, clock }) => {
        queue.sink(() => spans(1))
        await clock.advance(gatherMs)
        expect(given?.aborted).toBe(false)
        await clock.advance(tryMs)
        expect(given?.aborted).toBe(true)
      },
    )
  })

  it('drops a batch that the collector rejects, without another try', () =>
    withQueue(
      async () => ({ type: 'rejected', why: 'status 400' }),
      async ({ queue, clock, counts, batches }) => {
        queue.sink(() => spans(2))
        await clock.advance(gatherMs)
        expect(batches).toEqual([2])
        expect(counts.dropped).toEqual({ rejected: 2 })
      },
    ))

  it('tries again after a refused connection', () => {
    let tries = 0
    return withQueue(
      async () => {
        tries += 1
        if (tries === 1) throw new Error('ECONNREFUSED')
        return sent
      },
      async ({ queue, clock, counts }) => {
        queue.sink(() => spans(2))
        await clock.advance(gatherMs + pausesMs[0])
        expect(counts).toEqual({ sent: 2, dropped: {} })
      },
    )
  })

  it('sends the rest at the end, also what it has tried before', () => {
    let isBack = false
    return withQueue(
      async () => (isBack ? sent : { type: 'unreachable', why: 'status 503' }),
      async ({ queue, clock, counts, stop }) => {
        queue.sink(() => spans(2))
        await clock.advance(gatherMs)
        queue.sink(() => spans(3))
        isBack = true
        await stop()
        expect(counts).toEqual({ sent: 5, dropped: {} })
      },
    )
  })

  it('ends in time although the collector hangs, and counts what is lost', () =>
    withQueue(hangs, async ({ queue, clock, counts, stop }) => {
      queue.sink(() => spans(largestBatch + 1))
      await clock.advance(gatherMs)
      await stop()
      expect(counts).toEqual({ sent: 0, dropped: { shutdown: largestBatch + 1 } })
    }))
})

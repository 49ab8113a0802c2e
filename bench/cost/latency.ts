import { percentile } from '../statistics.ts'

/** A request from its due time to its answer, ms on one clock. */
export interface Request {
  readonly due: number
  readonly answered: number
}

/** A period in which the process was stopped, ms on the same clock. */
export interface Freeze {
  readonly from: number
  readonly to: number
}

export interface Latencies {
  readonly p99: number
  /** p99 of the requests during whose life the process was never stopped. */
  readonly p99Outside: number
  /** p99 of those that did not wait in the queue after a stop either. */
  readonly p99Undisturbed: number
  /** Share of all requests that were in flight while the process was stopped. */
  readonly inside: number
  /** Share of the requests that waited in the queue after a stop. */
  readonly queued: number
}

/** A request answered this soon (ms) shows that the queue is empty: four times the client's own polling period. */
const promptMs = 1

/**
 * @param requests in the order in which they were due
 * @param freezes in order
 * @throws RangeError without requests
 */
export function latenciesOf(requests: readonly Request[], freezes: readonly Freeze[]): Latencies {
  const all: number[] = []
  const outside: number[] = []
  const undisturbed: number[] = []
  let next = 0
  let isQueue = false
  for (const { due, answered } of requests) {
    const latency = answered - due
    all.push(latency)
    for (; (freezes[next]?.to ?? Number.POSITIVE_INFINITY) < due; next += 1) isQueue = true
    if ((freezes[next]?.from ?? Number.POSITIVE_INFINITY) <= answered) continue
    outside.push(latency)
    if (latency <= promptMs) isQueue = false
    if (!isQueue) undisturbed.push(latency)
  }
  return {
    p99: percentile(all, 99),
    p99Outside: percentile(outside, 99),
    p99Undisturbed: percentile(undisturbed, 99),
    inside: 1 - outside.length / all.length,
    queued: (outside.length - undisturbed.length) / all.length,
  }
}

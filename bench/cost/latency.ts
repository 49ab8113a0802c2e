import { percentile } from '../statistics.ts'

/** From its due time to its answer, ms on one clock. */
export interface Request {
  readonly due: number
  readonly answered: number
}

/** A stretch in which the process stood still, ms on the same clock. */
export interface Freeze {
  readonly from: number
  readonly to: number
}

export interface Latencies {
  readonly p99: number
  /** Of the requests during whose life the process never stood still. */
  readonly p99Outside: number
  /** Share of all requests that this leaves out. */
  readonly inside: number
}

/** @param requests in the order in which they were due; @param freezes in order. @throws RangeError without requests. */
export function latenciesOf(requests: readonly Request[], freezes: readonly Freeze[]): Latencies {
  const all: number[] = []
  const outside: number[] = []
  let next = 0
  for (const { due, answered } of requests) {
    const latency = answered - due
    all.push(latency)
    while ((freezes[next]?.to ?? Number.POSITIVE_INFINITY) < due) next += 1
    const freeze = freezes[next]
    if (freeze === undefined || freeze.from > answered) outside.push(latency)
  }
  return {
    p99: percentile(all, 99),
    p99Outside: percentile(outside, 99),
    inside: 1 - outside.length / all.length,
  }
}

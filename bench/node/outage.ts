import type { Probe } from './probe.ts'

export interface Outage {
  /**
   * From the start of the first failed probe to the start of the first good one after the last failure; 0: none failed.
   */
  readonly ms: number
  readonly failed: number
  /** The first of them, for a line of a log: ms since the event, and the error. */
  readonly failures: readonly string[]
}

const failuresTold = 5

/**
 * Returns the outage that a client saw because of an event.
 * @param since Unix ms; ignores probes that ended before
 * @throws Error if no probe was answered after the last failure
 */
export function outageOf(probes: readonly Probe[], since: number): Outage {
  const inOrder = probes.toSorted((a, b) => a.at - b.at).filter(({ at, ms }) => at + ms >= since)
  const failed = inOrder.filter(({ host }) => host === undefined)
  const first = failed[0]
  const last = failed.at(-1)
  if (first === undefined || last === undefined) {
    if (inOrder.length === 0) throw new Error('the client sent no request')
    return { ms: 0, failed: 0, failures: [] }
  }
  const back = inOrder.find(({ at, host }) => at > last.at && host !== undefined)
  if (back === undefined) throw new Error('the client got no answer after the last failure')
  return {
    ms: back.at - first.at,
    failed: failed.length,
    failures: failed.slice(0, failuresTold).map(told(since)),
  }
}

/**
 * Returns the longest time in which no request was answered, ms. A client that waits for long is not served either, although
 * no request of it fails.
 * @param since Unix ms; the client is served then
 * @throws Error if nothing was answered after it
 */
export function longestGap(probes: readonly Probe[], since: number): number {
  const answered = probes
    .flatMap(({ at, ms, host }) => (host === undefined || at + ms <= since ? [] : [at + ms]))
    .toSorted((a, b) => a - b)
  if (answered.length === 0) throw new Error('the client got no answer')
  return answered.reduce((most, at, index) => Math.max(most, at - (answered[index - 1] ?? since)), 0)
}

/**
 * Returns the outage that a client saw at the address of a pod that is then removed. Ignores failures after the last
 * answer, which are due to the removal. Undefined: the pod was removed before anything answered there.
 */
export function outageWhileThere(probes: readonly Probe[], since: number): Outage | undefined {
  const answers = probes.flatMap(({ at, host }) => (host !== undefined && at >= since ? [at] : []))
  if (answers.length === 0) return undefined
  const last = Math.max(...answers)
  return outageOf(
    probes.filter(({ at }) => at <= last),
    since,
  )
}

/** Returns the Unix ms at which one of these hosts first answered a request, or undefined if none did. */
export function firstAnswerOf(probes: readonly Probe[], hosts: ReadonlySet<string>): number | undefined {
  const times = probes.flatMap(({ at, ms, host }) => (host !== undefined && hosts.has(host) ? [at + ms] : []))
  return times.length === 0 ? undefined : Math.min(...times)
}

/**
 * Returns the answers of pods that were not primaries at that time.
 * @param primarySince Unix ms since when each pod has been a primary; a host that is missing never was
 */
export function answersFromBackups(
  probes: readonly Probe[],
  primarySince: ReadonlyMap<string, number>,
): readonly Probe[] {
  return probes.filter(({ at, ms, host }) => {
    if (host === undefined) return false
    const since = primarySince.get(host)
    return since === undefined || at + ms < since
  })
}

const told =
  (since: number) =>
  ({ at, ms, error }: Probe): string =>
    `${(at - since).toFixed(1)} ms: ${error} after ${ms.toFixed(1)} ms`

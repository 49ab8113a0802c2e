import type { Probe } from './probe.ts'

export interface Outage {
  /** Start of the first failed probe to the start of the first good one after the last failure; 0: none failed. */
  readonly ms: number
  readonly failed: number
}

/**
 * What a client saw of an event.
 * @param since Unix ms; probes that began before are of no interest, except those under way then
 * @throws Error when nothing was answered after the last failure
 */
export function outageOf(probes: readonly Probe[], since: number): Outage {
  const inOrder = probes.toSorted((a, b) => a.at - b.at).filter(({ at, ms }) => at + ms >= since)
  const failed = inOrder.filter(({ host }) => host === undefined)
  const first = failed[0]
  const last = failed.at(-1)
  if (first === undefined || last === undefined) {
    if (inOrder.length === 0) throw new Error('the client asked nothing')
    return { ms: 0, failed: 0 }
  }
  const back = inOrder.find(({ at, host }) => at > last.at && host !== undefined)
  if (back === undefined) throw new Error('the client got no answer after the last failure')
  return { ms: back.at - first.at, failed: failed.length }
}

/**
 * What a client saw at the address of a pod that is taken away afterwards: what fails after the last answer is that.
 * @throws Error when nothing was answered since
 */
export function outageWhileThere(probes: readonly Probe[], since: number): Outage {
  const answers = probes.flatMap(({ at, host }) => (host !== undefined && at >= since ? [at] : []))
  if (answers.length === 0) throw new Error('nobody answered at the address of the pod')
  const last = Math.max(...answers)
  return outageOf(
    probes.filter(({ at }) => at <= last),
    since,
  )
}

/** Unix ms at which the first request was answered by one of these hosts; undefined: none was. */
export function firstAnswerOf(probes: readonly Probe[], hosts: ReadonlySet<string>): number | undefined {
  const times = probes.flatMap(({ at, ms, host }) => (host !== undefined && hosts.has(host) ? [at + ms] : []))
  return times.length === 0 ? undefined : Math.min(...times)
}

/**
 * Answers that came from pods that were no primary then.
 * @param primarySince Unix ms since when each pod has been one; a host that is missing never was
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

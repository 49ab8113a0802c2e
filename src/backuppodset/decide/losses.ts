import { handoverDeadlineMs, handoverSlackMs } from '../../slot/decide/deadlines.ts'
import type { LossReason } from '../../slot/decide/snapshot.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { msUntilReplaced } from './breaker.ts'

export interface Failing {
  readonly pod: PodView
  readonly reason: LossReason
}

/** Returns why this primary counts as failed although it exists; undefined if it does not count as failed. */
export function failureOf(s: Snapshot, pod: PodView): LossReason | undefined {
  // A wake-up has its own deadline.
  if (pod.waking) return undefined
  if (s.set.failover.crashLoop === 'Replace' && pod.crashLooping) return 'CrashLoop'
  // The app's state is gone: a ready backup that gets the state serves sooner than an app that starts.
  if (pod.pulled?.emptied) return 'Died'
  const at = unreadyAt(s, pod)
  return at !== undefined && s.now >= at ? 'Unready' : undefined
}

/**
 * Returns the wall clock time, ms, at which a primary that is stopped for its successor has been stopped for as long as
 * its agent could ask of it; undefined if it answers, or is not stopped for a handover. An agent that was replaced
 * meanwhile may have begun once more.
 */
export function handoverOverAt(s: Snapshot, { uid, slot, unreadySince }: PodView): number | undefined {
  const memory = s.memory?.slots.get(slot ?? -1)
  if (memory?.lease.holder.uid !== uid || memory.lease.handover === undefined) return undefined
  if (unreadySince === undefined) return undefined
  return unreadySince + handoverDeadlineMs(memory.source?.bytes) + handoverSlackMs
}

/**
 * Returns the wall clock time, ms, at which a primary that stays unready counts as failed. A primary that is stopped
 * for its successor, by the Lease that this operator wrote, fails its probes and has not failed: it has the time that
 * its agent gives the handover. After that it has to answer again, within the time that every pod has. So does a primary that
 * its voters had stopped, once it runs again. If the Lease tells it to end, an operator has waited for all of this: a new
 * leader, whose own clock has only just begun to count, does not wait once more.
 */
function unreadyAt(s: Snapshot, pod: PodView): number | undefined {
  const { uid, slot, unreadySince } = pod
  const limitMs = s.set.failover.unreadySeconds * 1000
  if (limitMs === 0 || unreadySince === undefined) return undefined
  const memory = s.memory?.slots.get(slot ?? -1)
  if (memory?.lease.holder.uid !== uid) return unreadySince + limitMs
  if (memory.lease.ending === uid) return unreadySince
  const overAt = handoverOverAt(s, pod)
  if (overAt !== undefined) return overAt + limitMs
  const { settledSince, unfencedSince } = memory
  const runsSince = [settledSince, unfencedSince].map(at =>
    at === undefined ? unreadySince : s.now - (s.monotonicNow - at),
  )
  return Math.max(unreadySince, ...runsSince) + limitMs
}

/**
 * Returns the failing primaries that are worth replacing now, worst first, at most as many as there are better pods:
 * ready hot backups, and gated cold ones for crash loops of a pod that has served. A template that cannot become ready
 * has no ready hot backup and no pod that served, so it never starts a chain of replacements.
 */
export function replaceable(
  s: Snapshot,
  primaries: readonly PodView[],
  backups: { readonly readyHot: number; readonly gatedCold: number },
): Failing[] {
  const failing = primaries.flatMap(pod => {
    const reason = failureOf(s, pod)
    return reason === undefined || msUntilReplaced(s, pod.slot, reason) > 0 ? [] : [{ pod, reason }]
  })
  const since = ({ pod }: Failing) => pod.unreadySince ?? s.now
  failing.sort((a, b) => since(a) - since(b) || (a.pod.name < b.pod.name ? -1 : 1))
  let { readyHot, gatedCold } = backups
  return failing.filter(({ pod, reason }) => {
    if (readyHot > 0) return readyHot-- > 0
    if (reason === 'CrashLoop' && pod.served) return gatedCold-- > 0
    return false
  })
}

/**
 * Returns the ms until the next unready primary would count as failed or its handover would time out; undefined if
 * there is none.
 */
export function untilNextFailure(s: Snapshot): number | undefined {
  const left = s.pods
    .filter(pod => pod.kind === 'primary')
    .flatMap(pod => [unreadyAt(s, pod), handoverOverAt(s, pod)].map(at => (at ?? 0) - s.now))
    .filter(ms => ms > 0)
  return left.length === 0 ? undefined : Math.min(...left)
}

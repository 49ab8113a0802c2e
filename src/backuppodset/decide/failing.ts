import { handoverDeadlineMs, handoverSlackMs } from '../../succession/deadlines.ts'
import type { LossReason, PodView, Snapshot } from '../snapshot.ts'
import { msUntilReplaced } from './breaker.ts'

export interface Failing {
  readonly pod: PodView
  readonly reason: LossReason
}

/** Why this primary counts as failed although it exists, or undefined while it does not. */
export function failureOf(s: Snapshot, pod: PodView): LossReason | undefined {
  // A wake-up has a deadline of its own.
  if (pod.waking) return undefined
  if (s.set.failover.crashLoop === 'Replace' && pod.crashLooping) return 'CrashLoop'
  // Its state is gone: a ready backup that is given it serves sooner than an app that starts.
  if (pod.pulled?.emptied) return 'Died'
  const at = unreadyAt(s, pod)
  return at !== undefined && s.now >= at ? 'Unready' : undefined
}

/**
 * Wall clock, ms, at which a primary that stands still for its successor has done so for as long as its agent could ask of it;
 * undefined where it answers, or does not stand. An agent that has been exchanged meanwhile may have begun once more.
 */
export function handoverOverAt(s: Snapshot, { uid, slot, unreadySince }: PodView): number | undefined {
  const memory = s.memory?.slots.get(slot ?? -1)
  if (memory?.lease.holder.uid !== uid || memory.lease.handover === undefined) return undefined
  if (unreadySince === undefined) return undefined
  return unreadySince + handoverDeadlineMs(memory.source?.bytes) + handoverSlackMs
}

/**
 * Wall clock, ms, at which a primary that stays unready counts as failed. One that stands still for its successor, by the
 * Lease that this operator wrote, answers nobody and has not failed: it has the time that its agent gives the handover. From
 * then on it has to answer again, and has the time for that which every pod has.
 */
function unreadyAt(s: Snapshot, pod: PodView): number | undefined {
  const { uid, slot, unreadySince } = pod
  const limitMs = s.set.failover.unreadySeconds * 1000
  if (limitMs === 0 || unreadySince === undefined) return undefined
  const memory = s.memory?.slots.get(slot ?? -1)
  if (memory?.lease.holder.uid !== uid) return unreadySince + limitMs
  const { settledSince } = memory
  const overAt = handoverOverAt(s, pod)
  if (overAt !== undefined) return overAt + limitMs
  const settledAt = settledSince === undefined ? unreadySince : s.now - (s.monotonicNow - settledSince)
  return Math.max(unreadySince, settledAt) + limitMs
}

/**
 * The failing primaries that are worth replacing now, worst first, at most as many as there are better pods:
 * ready hot backups, and for crash loops of a pod that has served gated cold ones. A template that cannot become ready
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

/** Ms until the next primary that is unready now would count as failed; undefined if none is on that way. */
export function untilNextFailure(s: Snapshot): number | undefined {
  const left = s.pods
    .filter(pod => pod.kind === 'primary')
    .flatMap(pod => [unreadyAt(s, pod), handoverOverAt(s, pod)].map(at => (at ?? 0) - s.now))
    .filter(ms => ms > 0)
  return left.length === 0 ? undefined : Math.min(...left)
}

import type { ParsedPull } from '../../api/memory.ts'
import type { SlotStatus } from '../../api/slot-status.ts'
import type { Pod } from '../../kube/resources.ts'
import type { PulledView } from '../decide/pulled-view.ts'
import type { Candidate, LostPrimary } from '../decide/snapshot.ts'
import { containerOf } from './container.ts'

/** A container that restarted longer ago than this has continued without its state, ms: it begins a new incarnation. */
const lateMs = 60_000

/**
 * Returns the view of a pod of a set with pulled state. A primary whose container restarted has lost its state, and
 * counts as unready until it has the state again.
 */
export function withPulled<View extends Candidate>(
  pod: Pod,
  view: View,
  pull: ParsedPull,
  { slots }: PulledView,
  { refused, now }: { readonly refused: string | undefined; readonly now: number },
): View {
  const { restarts, running, startedAt } = containerOf(pod, pull.container)
  const held = view.slot === undefined ? undefined : slots.get(view.slot)
  const isEmptied =
    view.kind === 'primary' &&
    held?.holder.uid === view.uid &&
    restarts > held.holder.restarts &&
    (startedAt === undefined || now - startedAt < lateMs)
  return {
    ...view,
    ...(isEmptied ? { ready: false, unreadySince: view.unreadySince ?? startedAt ?? now } : {}),
    pulled: { restarts, running, emptied: isEmptied, refused },
  }
}

/**
 * Adds slots that had a primary in the last written status and have none now: losses that this process did not see
 * happen. The status no longer contains released slots.
 */
export function withVacated(
  lost: ReadonlyMap<number, LostPrimary>,
  status: { readonly slots?: readonly SlotStatus[] } | undefined,
  live: readonly Candidate[],
  monotonicNow: number,
): ReadonlyMap<number, LostPrimary> {
  const all = new Map(lost)
  for (const { slot, pod, epoch } of status?.slots ?? [])
    if (
      !all.has(slot) &&
      live.every(each => each.name !== pod && (each.kind !== 'primary' || each.slot !== slot))
    )
      all.set(slot, { name: pod, slot, epoch, reason: 'PodDeleted', seenAt: monotonicNow })
  return all
}

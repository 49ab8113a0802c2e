import type { BackupPodSetStatus } from '../../api/backuppodset.ts'
import type { ParsedPull } from '../../api/memory.ts'
import type { Pod } from '../../kube/resources.ts'
import type { LostPrimary, PodView } from '../snapshot.ts'
import { containerOf } from './container.ts'
import type { PulledView } from './view.ts'

/** A container that was started again longer ago than this has gone on without its state: it begins a new life, ms. */
const lateMs = 60_000

/**
 * The view of a pod of a set whose state is pulled. A primary whose container was started again has lost it, and serves
 * nobody before it has it back.
 */
export function withPulled(
  pod: Pod,
  view: PodView,
  pull: ParsedPull,
  { slots }: PulledView,
  { refused, now }: { readonly refused: string | undefined; readonly now: number },
): PodView {
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
 * Slots that had a primary when the status was last written and have none now: a loss also for a process that did not
 * see it happen. What was released is not in the status any more.
 */
export function withVacated(
  lost: ReadonlyMap<number, LostPrimary>,
  status: BackupPodSetStatus | undefined,
  live: readonly PodView[],
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

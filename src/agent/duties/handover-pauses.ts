import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Clock } from '../../kube/clock.ts'
import type { DutyOf } from './duty.ts'
import { shareOfTime } from './pace.ts'
import type { PodView } from './snapshot.ts'

/**
 * Slots whose handover came to nothing. Their primary has stood still for it, and does not at once again: it would be away
 * most of the time for as long as whatever is wrong with its successor lasts.
 */
export interface HandoverPauses {
  /** After it has stood still for so long in vain, ms. */
  begin(duty: DutyOf<'handOver'>, stoodMs: number): void
  /** Whether its primary, one of these pods, is not to stand still now. Not so for a wish that is newer than what failed. */
  isOn(lease: SlotLease, pods: readonly PodView[]): boolean
}

export function createHandoverPauses(clock: Pick<Clock, 'monotonic'>): HandoverPauses {
  const pauses = new Map<string, { readonly until: number; readonly wish: string | undefined }>()
  return {
    begin({ lease, pod, settings }, stoodMs) {
      // Of the same share of its time as for checkpoints.
      const ms = Math.max(settings.intervalMs, shareOfTime(stoodMs, settings))
      pauses.set(slotName(lease), { until: clock.monotonic() + ms, wish: pod.handoverRequest })
    },
    isOn(lease, pods) {
      const pause = pauses.get(slotName(lease))
      if (pause === undefined || clock.monotonic() >= pause.until) return false
      return pods.find(({ uid }) => uid === lease.holder.uid)?.handoverRequest === pause.wish
    },
  }
}

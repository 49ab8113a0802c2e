import type { SlotLease } from '../../api/slot-lease.ts'
import type { SlotPolicy } from '../../api/slot-policy.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Clock } from '../../kube/clock.ts'
import type { PodView } from '../observe/snapshot.ts'
import { shareOfTime } from './pace.ts'

/** A slot, its primary, and the policy by which it was stopped. */
export interface HandedOver {
  readonly lease: SlotLease
  readonly pod: PodView
  readonly policy: SlotPolicy
}

/**
 * Slots whose handover has failed. Their primary was stopped for it, and must not be stopped again at once: it would be
 * unavailable most of the time for as long as the fault of its successor lasts.
 */
export interface HandoverPauses {
  /** Begins a pause after a failed handover that had the primary stopped for `stoodMs` ms. */
  begin(of: HandedOver, stoodMs: number): void
  /**
   * Whether the slot's primary, one of these pods, must not be stopped now. A request newer than the failed one is let
   * through.
   */
  isOn(lease: SlotLease, pods: readonly PodView[]): boolean
}

export function createHandoverPauses(clock: Pick<Clock, 'monotonic'>): HandoverPauses {
  const pauses = new Map<string, { readonly until: number; readonly wish: string | undefined }>()
  return {
    begin({ lease, pod, policy }, stoodMs) {
      // The same share of its time as for checkpoints.
      const ms = Math.max(policy.intervalMs, shareOfTime(stoodMs, policy))
      pauses.set(slotName(lease), { until: clock.monotonic() + ms, wish: pod.handoverRequest })
    },
    isOn(lease, pods) {
      const pause = pauses.get(slotName(lease))
      if (pause === undefined || clock.monotonic() >= pause.until) return false
      return pods.find(({ uid }) => uid === lease.holder.uid)?.handoverRequest === pause.wish
    },
  }
}

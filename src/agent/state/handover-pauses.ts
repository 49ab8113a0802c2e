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
  /** Begins a pause after a failed handover that had the primary stopped for `stoodMs` of the `deadlineMs` that one may last, ms. */
  begin(of: HandedOver, stoodMs: number, deadlineMs: number): void
  /**
   * Whether the slot's primary, one of these pods, must not be stopped now. A request newer than the failed one is let
   * through. A request whose time is over is not: no operator accepts a stop for it any more, and it may stand for long in the Lease
   * of a set that is paused.
   */
  isOn(lease: SlotLease, pods: readonly PodView[]): boolean
}

interface Pause {
  readonly until: number
  readonly wish: string | undefined
  /** Number of the handover that failed; undefined: its operator counts none. */
  readonly number: number | undefined
  /** When its time is over, monotonic ms; infinity: without a number it is not known again. */
  readonly overAt: number
}

export function createHandoverPauses(clock: Pick<Clock, 'monotonic'>): HandoverPauses {
  const pauses = new Map<string, Pause>()
  return {
    begin({ lease, pod, policy }, stoodMs, deadlineMs) {
      // The same share of its time as for checkpoints.
      const ms = Math.max(policy.intervalMs, shareOfTime(stoodMs, policy))
      const now = clock.monotonic()
      const before = pauses.get(slotName(lease))
      const number = lease.handovers
      const overAt = number === undefined ? Number.POSITIVE_INFINITY : now - stoodMs + deadlineMs
      pauses.set(slotName(lease), {
        ...{ until: now + ms, wish: pod.handoverRequest, number },
        // By the first stop for it.
        overAt: before !== undefined && before.number === number ? before.overAt : overAt,
      })
    },
    isOn(lease, pods) {
      const pause = pauses.get(slotName(lease))
      if (pause === undefined) return false
      const now = clock.monotonic()
      const isAsked = lease.handover !== undefined && lease.handovers === pause.number
      if (isAsked && now >= pause.overAt) return true
      if (now >= pause.until) return false
      return pods.find(({ uid }) => uid === lease.holder.uid)?.handoverRequest === pause.wish
    },
  }
}

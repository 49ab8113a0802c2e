import type { NumberedSlotLease } from '../../api/numbered-slot.ts'

/**
 * The handovers of one set that this process has requested, by its own clock. The primary of a handover is stopped for a limited
 * time, which begins after the request. Only its writer knows a bound for that moment: a watch may show a request late,
 * and another leader may have written it long ago.
 */
export interface HandoverTimes {
  /**
   * Call when the API server has accepted a Lease that requests another handover. A write without an answer does not
   * count: the same number in the Lease may be another leader's.
   *
   * @param at monotonic ms before the write.
   */
  wrote(lease: NumberedSlotLease, at: number): void
  /** Returns that time for the handover that the Lease requests; undefined: this process has not requested it. */
  requestedAt(lease: NumberedSlotLease): number | undefined
}

export function createHandoverTimes(): HandoverTimes {
  /** By slot: the last request of this process. */
  const slots = new Map<number, { readonly of: string; readonly at: number }>()
  const of = ({ incarnation, holder, handover, handovers }: NumberedSlotLease) =>
    `${incarnation} ${holder.uid} ${handover} ${handovers}`
  return {
    wrote(lease, at) {
      slots.set(lease.slot, { of: of(lease), at })
    },
    requestedAt(lease) {
      const last = slots.get(lease.slot)
      return lease.handover !== undefined && last?.of === of(lease) ? last.at : undefined
    },
  }
}

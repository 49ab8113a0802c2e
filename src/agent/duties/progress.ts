import type { PaceReason } from '../../api/node-report.ts'

/** The time from one checkpoint to the next, and why it is longer than the set asks for. */
export interface SlotPace {
  readonly intervalSeconds: number
  readonly intervalReason?: PaceReason
}

/** How the work on each slot goes, for the node's report. */
export interface SlotProgress extends Partial<SlotPace> {
  /** Its primary stands still, and its last generation is saved; for so many seconds from then on. */
  readonly standsForSeconds?: number
  /** Which handover of its Lease it stands for. */
  readonly standsForHandover?: number
  /** Why it does not go on; absent while it does. */
  readonly reason?: string
  readonly message?: string
  /** The last word with which somebody asked for a checkpoint and got one. */
  readonly answeredRequest?: string
}

/** A primary that stands still for its successor. */
export interface Standing {
  readonly seconds: number
  /** Which handover of its Lease it is; undefined: the Lease does not count them. */
  readonly handover: number | undefined
}

export interface Progress {
  get(slot: string): SlotProgress | undefined
  /** Goes well, at this pace, and has done what was asked for by this word. */
  well(slot: string, pace?: SlotPace, request?: string): void
  badly(slot: string, reason: string, message: string): void
  /** @param stands undefined: it stands still no more. */
  standing(slot: string, stands: Standing | undefined): void
  keepOnly(slots: ReadonlySet<string>): void
}

export function createProgress(changed: () => void): Progress {
  const slots = new Map<string, SlotProgress>()
  const set = (slot: string, next: SlotProgress) => {
    const old = slots.get(slot)
    slots.set(slot, next)
    if (
      old?.reason !== next.reason ||
      old?.intervalSeconds !== next.intervalSeconds ||
      old?.intervalReason !== next.intervalReason ||
      old?.standsForSeconds !== next.standsForSeconds ||
      old?.standsForHandover !== next.standsForHandover ||
      old?.answeredRequest !== next.answeredRequest
    )
      changed()
  }
  return {
    get: slot => slots.get(slot),
    well(
      slot,
      pace: Partial<SlotPace> | undefined = slots.get(slot),
      request = slots.get(slot)?.answeredRequest,
    ) {
      const { intervalSeconds, intervalReason } = pace ?? {}
      const { standsForSeconds, standsForHandover } = slots.get(slot) ?? {}
      const stands = { standsForSeconds, standsForHandover }
      set(slot, lasting({ intervalSeconds, intervalReason, ...stands, answeredRequest: request }))
    },
    badly: (slot, reason, message) => set(slot, { ...lasting(slots.get(slot)), reason, message }),
    standing: (slot, stands) =>
      set(
        slot,
        lasting({
          ...slots.get(slot),
          ...{ standsForSeconds: stands?.seconds, standsForHandover: stands?.handover },
        }),
      ),
    keepOnly(keep) {
      for (const slot of [...slots.keys()]) if (!keep.has(slot)) slots.delete(slot)
    },
  }
}

type Lasting = keyof SlotPace | 'standsForSeconds' | 'standsForHandover' | 'answeredRequest'

/**
 * What stays known however it goes on. A node may try the memory of its own primary in an understudy: that its primary stands
 * still is as true after that.
 */
const lasting = ({
  intervalSeconds,
  intervalReason,
  standsForSeconds,
  standsForHandover,
  answeredRequest,
}: { [Key in Lasting]?: SlotProgress[Key] | undefined } = {}): SlotProgress => ({
  ...(intervalSeconds === undefined ? {} : { intervalSeconds }),
  ...(intervalReason === undefined ? {} : { intervalReason }),
  ...(standsForSeconds === undefined ? {} : { standsForSeconds }),
  ...(standsForHandover === undefined ? {} : { standsForHandover }),
  ...(answeredRequest === undefined ? {} : { answeredRequest }),
})

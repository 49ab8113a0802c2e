/** How the work on each slot goes, for the node's report. */
export interface SlotProgress {
  readonly intervalSeconds?: number
  /** Its primary stands still, and its last generation is saved; for so many seconds from then on. */
  readonly standsForSeconds?: number
  /** Why it does not go on; absent while it does. */
  readonly reason?: string
  readonly message?: string
  /** The last word with which somebody asked for a checkpoint and got one. */
  readonly answeredRequest?: string
}

export interface Progress {
  get(slot: string): SlotProgress | undefined
  /** Goes well, at this pace, and has done what was asked for by this word. */
  well(slot: string, intervalSeconds?: number, request?: string): void
  badly(slot: string, reason: string, message: string): void
  /** @param seconds undefined: it stands still no more. */
  standing(slot: string, seconds: number | undefined): void
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
      old?.standsForSeconds !== next.standsForSeconds ||
      old?.answeredRequest !== next.answeredRequest
    )
      changed()
  }
  return {
    get: slot => slots.get(slot),
    well(
      slot,
      intervalSeconds = slots.get(slot)?.intervalSeconds,
      request = slots.get(slot)?.answeredRequest,
    ) {
      set(slot, lasting({ intervalSeconds, answeredRequest: request }))
    },
    badly: (slot, reason, message) => set(slot, { ...lasting(slots.get(slot)), reason, message }),
    standing: (slot, seconds) =>
      set(slot, {
        ...lasting(slots.get(slot)),
        ...(seconds === undefined ? {} : { standsForSeconds: seconds }),
      }),
    keepOnly(keep) {
      for (const slot of [...slots.keys()]) if (!keep.has(slot)) slots.delete(slot)
    },
  }
}

/** What stays known however it goes on. */
const lasting = ({
  intervalSeconds,
  answeredRequest,
}: {
  [Key in 'intervalSeconds' | 'answeredRequest']?: SlotProgress[Key] | undefined
} = {}): SlotProgress => ({
  ...(intervalSeconds === undefined ? {} : { intervalSeconds }),
  ...(answeredRequest === undefined ? {} : { answeredRequest }),
})

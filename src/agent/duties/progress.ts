/** How the work on each slot goes, for the node's report. */
export interface SlotProgress {
  readonly intervalSeconds?: number
  /** Its primary stands still, and its last generation is saved. */
  readonly standing?: boolean
  /** Why it does not go on; absent while it does. */
  readonly reason?: string
  readonly message?: string
}

export interface Progress {
  get(slot: string): SlotProgress | undefined
  /** Goes well, at this pace. */
  well(slot: string, intervalSeconds?: number): void
  badly(slot: string, reason: string, message: string): void
  standing(slot: string, is: boolean): void
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
      old?.standing !== next.standing
    )
      changed()
  }
  return {
    get: slot => slots.get(slot),
    well: (slot, intervalSeconds = slots.get(slot)?.intervalSeconds) =>
      set(slot, intervalSeconds === undefined ? {} : { intervalSeconds }),
    badly(slot, reason, message) {
      const { intervalSeconds } = slots.get(slot) ?? {}
      set(slot, { ...(intervalSeconds === undefined ? {} : { intervalSeconds }), reason, message })
    },
    standing(slot, is) {
      const { intervalSeconds } = slots.get(slot) ?? {}
      set(slot, {
        ...(intervalSeconds === undefined ? {} : { intervalSeconds }),
        ...(is && { standing: is }),
      })
    },
    keepOnly(keep) {
      for (const slot of [...slots.keys()]) if (!keep.has(slot)) slots.delete(slot)
    },
  }
}

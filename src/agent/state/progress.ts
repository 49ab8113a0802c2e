import type { PaceReason } from '../../api/node-report.ts'

/** The time from one checkpoint to the next, and why it is longer than the set asks for. */
export interface SlotPace {
  readonly intervalSeconds: number
  readonly intervalReason?: PaceReason
}

/** Progress of the work on each slot, for the node's report. */
export interface SlotProgress extends Partial<SlotPace> {
  readonly standing?: Standing
  /** Why the work fails; absent while it succeeds. */
  readonly reason?: string
  readonly message?: string
  /** Value of the last request for a checkpoint that was fulfilled. */
  readonly answeredRequest?: string
}

/** A primary that is stopped for its successor, with its last generation saved. */
export interface Standing {
  /** For how long from now on. */
  readonly seconds: number
  /** How long it has been stopped already; undefined: an earlier agent has stopped it. */
  readonly stoodSeconds: number | undefined
  /** Number of the handover in its Lease; undefined: the Lease does not count them. */
  readonly handover: number | undefined
}

export interface Progress {
  get(slot: string): SlotProgress | undefined
  /** Notes a success at this pace, and that this request for a checkpoint is fulfilled. */
  succeeded(slot: string, pace?: SlotPace, request?: string): void
  failed(slot: string, reason: string, message: string): void
  /** @param standing undefined: it is no longer stopped. */
  standing(slot: string, standing: Standing | undefined): void
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
      old?.standing !== next.standing ||
      old?.answeredRequest !== next.answeredRequest
    )
      changed()
  }
  return {
    get: slot => slots.get(slot),
    succeeded(
      slot,
      pace: Partial<SlotPace> | undefined = slots.get(slot),
      request = slots.get(slot)?.answeredRequest,
    ) {
      const { intervalSeconds, intervalReason } = pace ?? {}
      const { standing } = slots.get(slot) ?? {}
      set(slot, lasting({ intervalSeconds, intervalReason, standing, answeredRequest: request }))
    },
    failed: (slot, reason, message) => set(slot, { ...lasting(slots.get(slot)), reason, message }),
    standing: (slot, standing) => set(slot, lasting({ ...slots.get(slot), standing })),
    keepOnly(keep) {
      for (const slot of [...slots.keys()]) if (!keep.has(slot)) slots.delete(slot)
    },
  }
}

type Lasting = keyof SlotPace | 'standing' | 'answeredRequest'

/**
 * Keeps the part that stays true after any success or failure. A node may try the memory of its own primary in an
 * understudy: a primary that is stopped stays stopped.
 */
const lasting = ({
  intervalSeconds,
  intervalReason,
  standing,
  answeredRequest,
}: { [Key in Lasting]?: SlotProgress[Key] | undefined } = {}): SlotProgress => ({
  ...(intervalSeconds === undefined ? {} : { intervalSeconds }),
  ...(intervalReason === undefined ? {} : { intervalReason }),
  ...(standing === undefined ? {} : { standing }),
  ...(answeredRequest === undefined ? {} : { answeredRequest }),
})

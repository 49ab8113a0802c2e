/** The rule that a primary whose app answers is saved, again and again, on another node. */

/** A primary whose app answers, as it is at one moment. */
export interface Answering {
  /** Identifies the pod. */
  readonly pod: string
  /** The life that its app has; see `Memory`. */
  readonly genesis: string
  /** True time, ms, up to which the newest copy on another machine remembers this app; undefined: there is none. */
  readonly savedUntil: number | undefined
  /** Everything works that is needed to save it: its node, an operator, and a node that could keep a copy. */
  readonly works: boolean
  /** In addition, no fault is active anywhere. */
  readonly quiet: boolean
}

export interface Unsaved {
  readonly pod: string
  /** For how long nothing has been saved of it although it could have been, ms. */
  readonly ms: number
  /** The limit for that, ms. */
  readonly limitMs: number
}

export interface UnsavedWatch {
  /**
   * Notes what all answering primaries are like now. @returns for each how long it has not been saved. A primary that
   * is missing in one look begins again in the next.
   * @param intervalMs time between two checkpoints, as the spec asks for it.
   */
  look(now: number, intervalMs: number, all: readonly Answering[]): readonly Unsaved[]
}

/** From docs/failure-model.md: a slow holder that is the only one delays the next checkpoint by a minute at most. */
const slowHolderMs = 60_000
/** From there, too: a slot waits so long for a silent holder that never reported a copy. */
const silentHolderMs = 300_000
/** Ms for a transfer, and for reports and passes after the last fault. */
const newsMs = 12_000

/** @param slack how many times longer than in the model everything may take */
export function createUnsavedWatch(slack: number): UnsavedWatch {
  interface Since {
    readonly genesis: string
    readonly works: number
    readonly quiet: number
  }
  const known = new Map<string, Since>()
  return {
    look(now, intervalMs, all) {
      for (const pod of known.keys()) if (!all.some(each => each.pod === pod)) known.delete(pod)
      return all.map(({ pod, genesis, savedUntil = 0, works, quiet }) => {
        const before = known.get(pod)
        const isSame = before?.genesis === genesis
        const since: Since = {
          genesis,
          works: isSame && works ? before.works : now,
          quiet: isSame && works && quiet ? before.quiet : now,
        }
        known.set(pod, since)
        const quietMs = (2 * intervalMs + slowHolderMs + newsMs) * slack
        const unsaved = { ms: now - Math.max(since.works, savedUntil), limitMs: quietMs + silentHolderMs }
        const atQuiet = { ms: now - Math.max(since.quiet, savedUntil), limitMs: quietMs }
        return { pod, ...(unsaved.ms - unsaved.limitMs > atQuiet.ms - atQuiet.limitMs ? unsaved : atQuiet) }
      })
    },
  }
}

import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentMetrics, Totals } from '../checkpoint/agent-metrics.ts'

/** One checkpoint, as measured by the primary's agent; seconds. */
export interface Save {
  readonly frozen: number
  readonly criuFrozen: number
  readonly pipeline: number
  /** Time since the previous checkpoint, to the precision of the polling; undefined for the first. */
  readonly gap: number | undefined
}

/** Each poll costs the agent about a millisecond. */
const lookMs = 50

/** Reports each checkpoint to `note` until it is stopped. Skips checkpoints of which several came between two polls. */
export function watchSaves(
  source: AgentMetrics,
  note: (save: Save) => void,
): {
  /** Settles when the watch ends; rejects if the agent cannot be reached. */
  readonly over: Promise<void>
  stop(): Promise<void>
} {
  const stop = new AbortController()
  const run = async () => {
    let before = await source.read('source')
    let at: number | undefined
    while (!stop.signal.aborted) {
      await sleep(lookMs)
      const now = await source.read('source')
      const more = now.count - before.count
      if (more <= 0) continue
      const seen = performance.now()
      if (more === 1) note(saveOf(before, now, at === undefined ? undefined : (seen - at) / 1000))
      at = more === 1 ? seen : undefined
      before = now
    }
  }
  const done = run()
  done.catch(() => undefined)
  return {
    over: done,
    async stop() {
      stop.abort()
      await done
    },
  }
}

const saveOf = (before: Totals, now: Totals, gap: number | undefined): Save => ({
  frozen: now.frozen - before.frozen,
  criuFrozen: now.criuFrozen - before.criuFrozen,
  pipeline: now.pipeline - before.pipeline,
  gap,
})

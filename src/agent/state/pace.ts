import type { PaceReason } from '../../api/node-report.ts'

export interface PaceSettings {
  readonly intervalMs: number
  /** Percentage of its time for which a primary may be stopped, on average. */
  readonly maxFreezePercent: number
}

/** One checkpoint, all in ms; `startedAt` by the monotonic clock. */
export interface Saved {
  readonly startedAt: number
  readonly frozenMs: number
  readonly pipelineMs: number
}

export interface Gap {
  readonly ms: number
  /** Why it is longer than the interval; absent: it is not. */
  readonly reason?: PaceReason
}

/** The pace of one primary's checkpoints. */
export interface Pace {
  saved(checkpoint: Saved, settings: PaceSettings): void
  /** Counts a failed checkpoint for which the primary was stopped. */
  failed(checkpoint: Omit<Saved, 'pipelineMs'>, settings: PaceSettings): void
  /** From the start of the newest checkpoint to the start of the next one. */
  gap(settings: PaceSettings): Gap
  /** When the next checkpoint is due, by the monotonic clock in ms; in the past if none has been taken. */
  dueAt(settings: PaceSettings): number
  /** Earliest start of a requested checkpoint, by the monotonic clock in ms. */
  onRequestAt(settings: PaceSettings): number
}

/** Time of a primary that a freeze takes up, ms: on average no other freeze begins within it. */
export const shareOfTime = (
  frozenMs: number,
  { maxFreezePercent }: Pick<PaceSettings, 'maxFreezePercent'>,
): number => (frozenMs * 100) / maxFreezePercent

/** How many intervals a primary may be ahead of its share: room for a long freeze among short ones. */
export const intervalsAhead = 10

/**
 * One long freeze (a runtime that warms up, a burst of requests) does not delay the next checkpoint by all the time
 * that it takes up: gaps of twice the interval pay it off. The pace waits at once only for the part beyond ten
 * intervals. So whenever a checkpoint begins,
 *
 *     all freezes before it * 100 / maxFreezePercent <= time since the first one + 10 * interval
 *
 * A requested checkpoint need not wait for that, but the next requested one must: only one requested checkpoint is on
 * loan at a time. See docs/adr/0108.
 */
export function createPace(): Pace {
  /**
   * Freezes that are not paid off at the start of the newest checkpoint, ms. This is not the time that they take up:
   * when the set allows a larger share, the debt shrinks at once.
   */
  let owedMs = 0
  /** That start, also of a failed checkpoint. */
  let frozenAt: number | undefined
  let last: Saved | undefined
  /** The shorter pipeline of the last two checkpoints: a pipeline that is slow by chance does not predict the next. */
  let pipelineMs = 0
  /** Whether the newest checkpoint began although the primary was more than ten intervals ahead. */
  let isOnLoan = false

  const overMs = ({ intervalMs, ...share }: PaceSettings) =>
    Math.max(0, shareOfTime(owedMs, share) - intervalsAhead * intervalMs)

  const paidOffMs = (settings: PaceSettings) =>
    Math.max(Math.min(shareOfTime(owedMs, settings), 2 * settings.intervalMs), overMs(settings))

  const froze = ({ startedAt, frozenMs }: Omit<Saved, 'pipelineMs'>, settings: PaceSettings) => {
    const goneMs = startedAt - (frozenAt ?? startedAt)
    isOnLoan = goneMs < overMs(settings)
    owedMs = Math.max(0, owedMs - (goneMs * settings.maxFreezePercent) / 100) + frozenMs
    frozenAt = startedAt
  }

  const gap = (settings: PaceSettings): Gap => {
    const { intervalMs } = settings
    const frozen = paidOffMs(settings)
    // Twice the pipeline: a node that only saves has no time left for the apps. The next checkpoint begins when this
    // one has ended, even if it was slow by chance.
    const busy = Math.max(2 * pipelineMs, last?.pipelineMs ?? 0)
    const ms = Math.max(intervalMs, frozen, busy)
    if (ms === intervalMs) return { ms }
    return { ms, reason: ms === busy ? 'Busy' : 'FreezeBudget' }
  }

  const after = (at: number | undefined, ms: number) => (at ?? Number.NEGATIVE_INFINITY) + ms

  return {
    failed: froze,
    saved(checkpoint, settings) {
      froze(checkpoint, settings)
      pipelineMs = Math.min(checkpoint.pipelineMs, last?.pipelineMs ?? settings.intervalMs)
      last = checkpoint
    },
    gap,
    dueAt: settings =>
      frozenAt === last?.startedAt
        ? after(frozenAt, gap(settings).ms)
        : // A failed checkpoint is retried as soon as its freeze is paid off.
          Math.max(after(last?.startedAt, settings.intervalMs), after(frozenAt, paidOffMs(settings))),
    onRequestAt: settings => after(frozenAt, isOnLoan ? overMs(settings) : 0),
  }
}

import type { PaceReason } from '../../api/node-report.ts'

export interface PaceSettings {
  readonly intervalMs: number
  /** Of its time that a primary may stand still, over a while. */
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
  /** One for which the primary has stood still in vain. */
  failed(checkpoint: Omit<Saved, 'pipelineMs'>, settings: PaceSettings): void
  /** From the beginning of the newest checkpoint to that of the next one. */
  gap(settings: PaceSettings): Gap
  /** When the next one is due, by the monotonic clock in ms; in the past where none has been taken. */
  dueAt(settings: PaceSettings): number
  /** From when on one is taken that somebody asks for, likewise. */
  onRequestAt(settings: PaceSettings): number
}

/** How long a freeze of so many ms lasts a primary: no other one is taken within this time, over a while. */
export const shareOfTime = (
  frozenMs: number,
  { maxFreezePercent }: Pick<PaceSettings, 'maxFreezePercent'>,
): number => (frozenMs * 100) / maxFreezePercent

/** How many intervals a primary may be ahead of its share: room for a long freeze among short ones. */
export const intervalsAhead = 10

/**
 * One long freeze (a runtime that warms up, a burst of requests) does not make the next checkpoint wait for all the time
 * that it takes up: gaps of twice the interval pay it off. Only what is more than ten intervals ahead is waited for at
 * once. So whenever a checkpoint begins,
 *
 *     all freezes before it * 100 / maxFreezePercent <= time since the first one + 10 * interval
 *
 * One that somebody asks for need not wait for that, but the next one that is asked for does: of all that are asked for
 * only one is on loan at a time. See docs/adr/0108.
 */
export function createPace(): Pace {
  /**
   * Freezes that are not paid off at the beginning of the newest one, ms. Not the time that they take up: who is allowed to
   * stand still for more of its time has less to pay off at once.
   */
  let owedMs = 0
  /** That beginning; of a checkpoint that was in vain, too. */
  let frozenAt: number | undefined
  let last: Saved | undefined
  /** Of the last two checkpoints the shorter one: one that is slow by chance says nothing of the next. */
  let pipelineMs = 0
  /** Whether the newest one was begun although the primary was more than ten intervals ahead. */
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
    // Twice the pipeline: a node that does nothing but save has no time left for what it saves.
    // And the next one begins when this one has ended, however slow it was by chance.
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
        : // What was in vain is tried again as soon as it is paid off.
          Math.max(after(last?.startedAt, settings.intervalMs), after(frozenAt, paidOffMs(settings))),
    onRequestAt: settings => after(frozenAt, isOnLoan ? overMs(settings) : 0),
  }
}

/** Whether a pod may be stopped for its move now, by the prediction of how long that would last. Pure. */
import type { ParsedMigration } from '../api/parse-migration.ts'
import type { Waited } from './patience.ts'

/** A prediction gets better while a pod waits: the first generation is its whole memory, the next ones are changes. */
export const patience = { generations: 3, ms: 30_000 } as const

export interface Predicted {
  /** How long the pod would be stopped, ms; undefined: not known. */
  readonly downtimeMs: number | undefined
  /** How long a restart of the pod takes at least, ms; undefined: not known. */
  readonly restartMs: number | undefined
  readonly waited: Waited | undefined
  /** A stop for a handover that lasts longer is given up, ms. */
  readonly deadlineMs: number
}

/**
 * `fits`: within `maxDowntime`, or there is none. `waits`: it would be longer, and a better moment may come. `accepted`: it would be
 * longer, and to move is still the best way. `worse`: a restart would be shorter, or nothing says that it would not.
 */
export type Judgement = 'fits' | 'waits' | 'accepted' | 'worse'

export function judgeDowntime(
  { maxDowntimeMs, technique, priority }: Pick<ParsedMigration, 'maxDowntimeMs' | 'technique' | 'priority'>,
  { downtimeMs, restartMs, waited, deadlineMs }: Predicted,
): Judgement {
  if (maxDowntimeMs === undefined) return 'fits'
  if (downtimeMs !== undefined && downtimeMs <= maxDowntimeMs) return 'fits'
  if (technique === 'Live' || !isOver(waited)) return 'waits'
  // A handover that long is given up, and repeated after a pause.
  if (downtimeMs !== undefined && downtimeMs > deadlineMs) return 'worse'
  // The node has to become empty, and a restart would lose what has changed since the last generation.
  if (priority === 'SystemCritical') return 'accepted'
  if (downtimeMs === undefined || restartMs === undefined) return 'worse'
  return downtimeMs <= restartMs ? 'accepted' : 'worse'
}

const isOver = (waited: Waited | undefined): boolean =>
  waited !== undefined && (waited.generations > patience.generations || waited.ms >= patience.ms)

/** Returns why the pod is not stopped. */
export function tooLong(
  judgement: 'waits' | 'worse',
  maxDowntimeMs: number | undefined,
  { downtimeMs, restartMs, deadlineMs }: Predicted,
): string {
  const bound = `the pod would be stopped for ${aboutMs(downtimeMs)}, and maxDowntime is ${maxDowntimeMs} ms`
  if (judgement === 'worse' && downtimeMs !== undefined && downtimeMs > deadlineMs)
    return `${bound}; a handover may take ${aboutMs(deadlineMs)} at most`
  return judgement === 'waits' ? bound : `${bound}; a restart would take ${aboutMs(restartMs)} or more`
}

const aboutMs = (ms: number | undefined): string =>
  ms === undefined ? 'an unknown time' : `about ${Math.round(ms)} ms`

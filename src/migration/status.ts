/** The status of a Migration that follows from its phase and the facts. Pure. */
import type { RefusalCode } from '../api/errors.ts'
import { type MigrationPhase, type MigrationStatus, migrationSucceeded } from '../api/migration.ts'
import type { MigrationReason } from '../api/migration-reasons.ts'
import { setCondition } from '../kube/conditions.ts'
import { handoverDeadlineMs } from '../slot/decide/deadlines.ts'
import { sourceOf } from './budgets.ts'
import { judgeDowntime, type Predicted } from './downtime.ts'
import type { Held, MigrationView } from './view.ts'

/** The phase that one Migration gets, with its reason. */
export interface Word {
  readonly phase: MigrationPhase
  /** Reason and message of its condition. */
  readonly reason: MigrationReason | RefusalCode
  readonly message: string
}

const outcomes: Readonly<Partial<Record<MigrationPhase, 'True' | 'False'>>> = {
  Succeeded: 'True',
  Failed: 'False',
}

/** Returns the status that follows the word. A word that repeats the status gives an equal one. */
export function statusAfter(
  view: MigrationView,
  { phase, reason, message }: Word,
  now: number,
): MigrationStatus {
  const { status, facts, generation } = view
  const source = sourceOf(view)
  const target = targetIn(facts) ?? status.target
  // One that waits is not written for each generation: there may be many.
  const saved = facts.type === 'held' && phase !== 'Pending' ? facts.saved : undefined
  const lastSaved = saved?.generation ?? status.generation
  const bytes = saved?.bytes ?? status.bytes
  const downtimeMs = facts.type === 'passed' && phase === 'Succeeded' ? facts.downtimeMs : undefined
  const times = status.phaseTimes ?? []
  return {
    phase,
    phaseTimes: times.some(each => each.phase === phase)
      ? times
      : [...times, { phase, at: new Date(now).toISOString() }],
    ...(source && { source }),
    ...(target && { target }),
    ...(lastSaved !== undefined && { generation: lastSaved }),
    ...(bytes !== undefined && { bytes }),
    ...(downtimeMs !== undefined && { downtimeMilliseconds: Math.round(downtimeMs) }),
    // The same holds for predictions; and the patience of one that waits for its turn has not begun.
    ...(phase === 'Pending' ? predictionIn(status) : predictionAfter(view)),
    conditions: setCondition(status.conditions ?? [], {
      type: migrationSucceeded,
      ...{ status: outcomes[phase] ?? 'Unknown', reason, message },
      ...{ observedGeneration: generation, now },
    }),
  }
}

/**
 * Returns the fields of the prediction. It is about the stop, so it does not change after the stop has begun. Each field keeps its last
 * value.
 */
function predictionAfter({ status, facts, wish }: MigrationView): Partial<MigrationStatus> {
  if (facts.type !== 'held' || facts.isStopping || !wish.ok) return predictionIn(status)
  const accepted = status.acceptsDowntime === undefined ? {} : { acceptsDowntime: false }
  // Another target, whose memory is still to come, has another prediction.
  if (facts.target?.hasMemory !== true) return { ...predictionIn(status), ...accepted }
  const predicted = predictedIn(facts)
  const { downtimeMs, restartMs } = predicted
  return {
    ...predictionIn(status),
    ...(downtimeMs !== undefined && { predictedDowntimeMilliseconds: Math.round(downtimeMs) }),
    ...(restartMs !== undefined && { predictedRestartMilliseconds: restartMs }),
    ...accepted,
    ...(judgeDowntime(wish.wish, predicted) === 'accepted' && { acceptsDowntime: true }),
  }
}

const predictionIn = ({
  predictedDowntimeMilliseconds: downtime,
  predictedRestartMilliseconds: restart,
  acceptsDowntime: accepts,
}: MigrationStatus): Partial<MigrationStatus> => ({
  ...(downtime !== undefined && { predictedDowntimeMilliseconds: downtime }),
  ...(restart !== undefined && { predictedRestartMilliseconds: restart }),
  ...(accepts !== undefined && { acceptsDowntime: accepts }),
})

function targetIn(facts: MigrationView['facts']): MigrationStatus['target'] {
  const pod = facts.type === 'held' ? facts.target : facts.type === 'passed' ? facts.to : undefined
  return pod && { name: pod.name, uid: pod.uid, ...(pod.node !== undefined && { node: pod.node }) }
}

export const predictedIn = ({ target, restartMs, saved }: Held): Predicted => ({
  downtimeMs: target?.impliedDowntimeMs,
  waited: target?.waited,
  restartMs,
  deadlineMs: handoverDeadlineMs(saved?.bytes),
})

/** Which Migrations a drain needs. Pure: the facts and the time decide. */
import { drainMigrationName } from '../api/drain.ts'
import type { Callable, DrainView, LeavingPrimary } from './view.ts'

/** Writes of one pass: a node may have hundreds of primaries. */
export const mostWrites = 50

/** Time until the pass that writes the others, ms. */
const nextWritesMs = 1_000

/** Pause after a Migration that has failed, doubled with each further one, and its bound, ms. */
export const pauses = { firstMs: 15_000, mostMs: 300_000 } as const

/** A Migration to be made. */
export interface Creation {
  readonly name: string
  readonly primary: LeavingPrimary
}

export interface DrainPlan {
  readonly creations: readonly Creation[]
  readonly deletions: readonly Callable[]
  /** Primaries whose Migration waits for a user. */
  readonly waiting: readonly LeavingPrimary[]
  /** Ms until time alone may change the plan; undefined: never. */
  readonly againAfterMs: number | undefined
}

/**
 * Every primary on a node that is drained gets a Migration, and another one, later and later, while they fail. Budgets of
 * Migrations decide which of them begin. A Migration that nothing asks for any more is called off while its pod still runs.
 *
 * @param now wall clock, ms since the epoch.
 */
export function decideDrain({ primaries, migrations }: DrainView, now: number): DrainPlan {
  const resting = primaries
    .filter(({ isMoving }) => !isMoving)
    .map(primary => [primary, dueAt(primary)] as const)
  const due = resting.filter(([, at]) => at <= now).map(([primary]) => primary)
  const creations = [...due]
    .sort(byTries)
    .flatMap(primary =>
      primary.next === undefined ? [] : [{ name: drainMigrationName(primary.name, primary.next), primary }],
    )
  const deletions = migrations.filter(({ isNeedless }) => isNeedless)
  const waits = resting.map(([, at]) => at - now).filter(ms => ms > 0)
  const isMore = creations.length > mostWrites || deletions.length > mostWrites
  const times = isMore ? [...waits, nextWritesMs] : waits
  return {
    creations: creations.slice(0, mostWrites),
    deletions: deletions.slice(0, mostWrites),
    waiting: primaries.filter(({ waits }) => waits !== undefined),
    againAfterMs: times.length === 0 ? undefined : Math.min(...times),
  }
}

/** Returns when the next Migration is due, ms since the epoch. */
const dueAt = ({ last }: LeavingPrimary): number =>
  last === undefined ? Number.NEGATIVE_INFINITY : last.endedAt + pauseAfter(last.number)

/** Returns the pause after the failure of this number, ms. */
export const pauseAfter = (number: number): number =>
  Math.min(pauses.mostMs, pauses.firstMs * 2 ** Math.min(number - 1, 30))

/** Primaries that have never failed come first: one that cannot move must not keep the others waiting. */
const byTries = (a: LeavingPrimary, b: LeavingPrimary): number =>
  (a.last?.number ?? 0) - (b.last?.number ?? 0) || (keyOf(a) < keyOf(b) ? -1 : 1)

const keyOf = ({ namespace, name }: LeavingPrimary) => `${namespace}/${name}`

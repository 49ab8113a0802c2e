import type { LastTransition } from '../api/backuppodset.ts'
import { failoverSteps, type LastFailover, type OriginOfMemory } from '../api/slot-status.ts'
import type { Clock } from '../kube/clock.ts'
import type { Phases } from '../slot/act/outcome.ts'
import type { Action, Outcome } from './plan.ts'

/** The last transition and failover that no written status contains yet. */
export interface PendingNews {
  readonly lastTransition: LastTransition | undefined
  readonly lastFailover: LastFailover | undefined
}

/**
 * Keeps the news of one set until a status with it is written: a write may meet a conflict, and a wake-up may end after
 * its pass.
 */
export interface PendingStatus {
  /** @returns the failovers in `outcomes`, in order. */
  note(outcomes: readonly Outcome[]): readonly LastFailover[]
  of(): PendingNews
  /** A status with exactly this news is written; news that arrived since stays. */
  told(news: PendingNews): void
}

const none: PendingNews = Object.freeze({ lastTransition: undefined, lastFailover: undefined })

export function createPendingStatus(clock: Clock): PendingStatus {
  let pending = none
  return {
    note(outcomes) {
      const transition = lastTransition(outcomes, clock)
      const all = failoversIn(outcomes, clock)
      const failover = all.at(-1)
      if (transition === undefined && failover === undefined) return all
      pending = {
        lastTransition: transition ?? pending.lastTransition,
        lastFailover: failover ?? pending.lastFailover,
      }
      return all
    },
    of: () => pending,
    told: news => {
      if (pending === news) pending = none
    },
  }
}

function lastTransition(outcomes: readonly Outcome[], clock: Clock): LastTransition | undefined {
  const conversions = outcomes.flatMap(({ type, action }) =>
    type !== 'done'
      ? []
      : action.type === 'convert' && action.pod.kind !== action.to
        ? [{ pod: action.pod.name, from: action.pod.kind, to: action.to }]
        : action.type === 'promote'
          ? [
              {
                pod: action.pod.name,
                from: action.wake ? ('coldbackup' as const) : ('hotbackup' as const),
                to: 'primary' as const,
              },
            ]
          : [],
  )
  const last = conversions.at(-1)
  if (last === undefined) return undefined
  return { ...last, at: new Date(clock.now()).toISOString() }
}

function failoversIn(outcomes: readonly Outcome[], clock: Clock): readonly LastFailover[] {
  return outcomes.flatMap((outcome): LastFailover[] => {
    const { type, action } = outcome
    if (type !== 'done' || !('role' in action) || action.role?.replaces === undefined) return []
    const { slot, replaces } = action.role
    if (replaces.reason === 'Replaced') return []
    const now = clock.monotonic()
    const endedAt = outcome.phases?.published ?? now
    return [
      {
        slot,
        from: replaces.name,
        to: action.type === 'create' ? action.name : action.pod.name,
        reason: replaces.reason,
        seconds: Math.round(endedAt - replaces.seenAt) / 1000,
        // Other actions of the pass may have taken longer.
        at: new Date(clock.now() - (now - endedAt)).toISOString(),
        ...withMemory(action, outcome.phases, replaces.seenAt),
        ...(action.role.startsEmpty ? { how: 'Empty' as const } : {}),
      },
    ]
  })
}

/**
 * The data that memory adds to a failover: the generation, its age when the primary was lost, and the duration of each
 * step.
 */
function withMemory(
  action: Action,
  phases: Phases | undefined,
  seenAt: number,
): Pick<LastFailover, 'how' | 'generation' | 'stateAge' | 'phases'> {
  const origin = action.type === 'promote' ? action.origin : pulledOrigin(action)
  return {
    ...(origin && {
      how: origin.how,
      generation: origin.generation,
      stateAge: Math.max(0, Math.round((seenAt - origin.takenAt) / 10) / 100),
    }),
    ...(action.type === 'promote' || origin ? { phases: stepsOf(phases ?? {}, seenAt) } : {}),
  }
}

/** The same for a successor that got a pulled state. */
function pulledOrigin(action: Action) {
  if ((action.type !== 'convert' && action.type !== 'create') || action.state === undefined) return undefined
  const how: OriginOfMemory = action.type === 'create' ? 'Created' : action.wake ? 'Cold' : 'Warm'
  return { ...action.state, how }
}

/** Returns the seconds of each step, from the first sight of the loss. */
export function stepsOf(phases: Phases, seenAt: number): Readonly<Record<string, number>> {
  const steps: Record<string, number> = {}
  let before = seenAt
  for (const phase of failoverSteps) {
    const at = phases[phase]
    if (at === undefined) continue
    steps[phase] = Math.max(0, Math.round(at - before) / 1000)
    before = at
  }
  return steps
}

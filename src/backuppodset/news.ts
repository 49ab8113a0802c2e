import type { LastFailover, LastTransition } from '../api/backuppodset.ts'
import type { Clock } from '../kube/clock.ts'
import type { Outcome } from './act/outcome.ts'

/** The last transition and failover that no status tells yet. */
export interface News {
  readonly lastTransition: LastTransition | undefined
  readonly lastFailover: LastFailover | undefined
}

/**
 * What has happened to a set, until a status that tells it is written: a write may meet a conflict, and a wake-up may end
 * when its pass is over.
 */
export interface NewsDesk {
  note(setKey: string, outcomes: readonly Outcome[]): void
  of(setKey: string): News
  /** A status with exactly these is written; what came in meanwhile stays. */
  told(setKey: string, news: News): void
  forget(setKey: string): void
}

const none: News = Object.freeze({ lastTransition: undefined, lastFailover: undefined })

export function createNewsDesk(clock: Clock): NewsDesk {
  const bySet = new Map<string, News>()
  const of = (setKey: string): News => bySet.get(setKey) ?? none
  return {
    note(setKey, outcomes) {
      const transition = lastTransition(outcomes, clock)
      const failover = lastFailover(outcomes, clock)
      if (transition === undefined && failover === undefined) return
      const before = of(setKey)
      bySet.set(setKey, {
        lastTransition: transition ?? before.lastTransition,
        lastFailover: failover ?? before.lastFailover,
      })
    },
    of,
    told: (setKey, news) => {
      if (bySet.get(setKey) === news) bySet.delete(setKey)
    },
    forget: setKey => bySet.delete(setKey),
  }
}

function lastTransition(outcomes: readonly Outcome[], clock: Clock): LastTransition | undefined {
  const conversions = outcomes.flatMap(({ type, action }) =>
    type === 'done' && action.type === 'convert' && action.pod.kind !== action.to ? [action] : [],
  )
  const last = conversions.at(-1)
  if (last === undefined) return undefined
  return { pod: last.pod.name, from: last.pod.kind, to: last.to, at: new Date(clock.now()).toISOString() }
}

function lastFailover(outcomes: readonly Outcome[], clock: Clock): LastFailover | undefined {
  for (const { type, action } of outcomes.toReversed()) {
    if (type !== 'done' || !('role' in action) || action.role?.replaces === undefined) continue
    const { slot, replaces } = action.role
    if (replaces.reason === 'Replaced') continue
    return {
      slot,
      from: replaces.name,
      to: action.type === 'create' ? action.name : action.pod.name,
      reason: replaces.reason,
      seconds: Math.round(clock.monotonic() - replaces.seenAt) / 1000,
      at: new Date(clock.now()).toISOString(),
    }
  }
  return undefined
}

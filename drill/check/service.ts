/** How long clients waited, and what became of the pods. */
import type { History } from '../history.ts'
import type { Facts, SlotFacts } from './facts.ts'
import { nameOf, seconds, type Violation } from './violation.ts'

/** Times that no fault explains: a dump, a sweep of the kernel. */
const steadyMs = 2_000
/** kube-proxy writes its rules at most once a second. */
export const routedMs = 1_000
/** A takeover has that many steps in a row that can each wait for a processor. */
const steps = 6

export interface Outage {
  readonly slot: number
  /** End of the last answer before, ms. */
  readonly from: number
  readonly ms: number
}

/** Returns the longest time between two answers that clients of the slot's Service got since the first fault. */
export function outageOf({ struck, end }: Facts, { slot, calls }: SlotFacts): Outage | undefined {
  if (struck === undefined) return undefined
  const good = calls.filter(({ client, answer }) => client === 'fresh' && answer !== undefined)
  const last = good.findLast(call => call.end <= struck)?.end ?? struck
  const times = [last, ...good.map(call => call.end).filter(at => at > struck), end]
  return times.slice(1).reduce<Outage>(
    (longest, at, index) => {
      const from = times[index] ?? at
      return at - from > longest.ms ? { slot, from, ms: at - from } : longest
    },
    { slot, from: struck, ms: 0 },
  )
}

/**
 * The longest outage that the failure model allows, with the part of a busy machine. For a slot that a fault has hit it is
 * the sum over all faults, because the others may delay its takeover. Each slot counts as hit if its primary may have too few voters.
 */
export function allowedMs({ lateness, begin, end, faults, outvotedAt }: Facts, mine: SlotFacts): number {
  const isHit = mine.faults.length > 0 || outvotedAt < Number.POSITIVE_INFINITY
  const model = isHit ? faults.reduce((sum, { outageMs }) => sum + outageMs, 0) : 0
  return steadyMs + model + steps * lateness(begin, end)
}

export function unserved(facts: Facts, of: SlotFacts): Violation[] {
  const outage = outageOf(facts, of)
  const allowed = allowedMs(facts, of)
  if (outage === undefined || outage.ms <= allowed) return []
  const errors = new Set(
    of.calls
      .filter(({ client, end }) => client === 'fresh' && end > outage.from && end <= outage.from + outage.ms)
      .flatMap(({ error }) => error ?? []),
  )
  return [
    {
      rule: 'Unserved',
      slot: of.slot,
      says:
        `no answer for ${seconds(outage.ms)} from ${seconds(outage.from - facts.begin)} on, ` +
        `where ${seconds(allowed)} are allowed (${[...errors].join(', ') || 'no error'})`,
    },
  ]
}

/**
 * Calls that begin once the slot is served again, and yet wait. Calls from before are not judged here: their packets may
 * have gone to a machine that no longer exists.
 */
export function hung(facts: Facts, of: SlotFacts): Violation[] {
  const { struck, healed } = facts
  if (struck === undefined || healed === undefined) return []
  const limit = 1_000 + steadyMs + steps * facts.lateness(struck, facts.end)
  const outage = outageOf(facts, of)
  // A fault may end before the takeover, so the end of the outage counts as well.
  const since = Math.max(healed, outage === undefined ? 0 : outage.from + outage.ms) + routedMs
  const late = of.calls.filter(
    ({ client, start, end }) => client !== 'direct' && start > since && end - start > limit,
  )
  const worst = late.toSorted((a, b) => b.end - b.start - (a.end - a.start))[0]
  return worst === undefined
    ? []
    : [
        {
          rule: 'Hung',
          slot: of.slot,
          says: `${late.length} calls, the longest ${nameOf(worst, facts.begin)}`,
        },
      ]
}

/** A checker that sees no answers finds nothing wrong. */
export function noTraffic({ struck, healed, end }: Facts, { slot, served }: SlotFacts): Violation[] {
  const parts = { before: [0, struck ?? end], after: [healed ?? struck ?? end, end] } as const
  return Object.entries(parts).flatMap(([when, [from, to]]): Violation[] =>
    served.some(call => call.client === 'fresh' && call.end >= from && call.end <= to)
      ? []
      : [{ rule: 'NoTraffic', slot, says: `no answer at the Service ${when} the faults` }],
  )
}

export function unprotected(history: History): Violation[] {
  return history.flatMap((entry): Violation[] =>
    entry.type === 'protection' && !entry.isFull
      ? [{ rule: 'NotProtected', says: `not within ${seconds(entry.limitMs)}: ${entry.says}` }]
      : [],
  )
}

export function restarted({ faults, begin, outvotedAt }: Facts, history: History): Violation[] {
  const hit = new Set(faults.flatMap(({ pods }) => pods))
  return history.flatMap((entry): Violation[] =>
    entry.type === 'restart' && !hit.has(entry.pod) && entry.at < outvotedAt
      ? [{ rule: 'Restarted', says: `${entry.pod}: ${entry.count} at ${seconds(entry.at - begin)}` }]
      : [],
  )
}

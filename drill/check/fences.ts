/** How long fences keep primaries stopped, and what becomes of the primaries of a node that was paused. */
import type { Facts, SlotFacts } from './facts.ts'
import { seconds, type Violation } from './violation.ts'

/** The heartbeat and its answers can each wait for a processor. */
const steps = 2

/** Judged only where the faults of the round say how long a fence may last. A pod that a fault has hit may be fenced. */
export function fencedTooLong({ begin, lateness, faults }: Facts, mine: SlotFacts): Violation[] {
  const parts = faults.map(({ fencedMs }) => fencedMs)
  if (parts.includes(undefined)) return []
  const explained = parts.reduce<number>((sum, ms = 0) => sum + ms, 0)
  const hit = new Set(faults.flatMap(({ pods }) => pods))
  return mine.fenced.flatMap(({ at, ms, uid }): Violation[] => {
    const pod = mine.leases.find(lease => lease.uid === uid)?.pod ?? uid
    const allowed = explained + steps * lateness(at, at + ms)
    if (hit.has(pod) || ms <= allowed) return []
    const says = `${pod} for ${seconds(ms)} from ${seconds(at - begin)} on, where ${seconds(allowed)} are explained`
    return [{ rule: 'Fenced', slot: mine.slot, says }]
  })
}

export function abandoned({ begin }: Facts, { slot, leases, resumes }: SlotFacts): Violation[] {
  const holder = leases.at(-1)?.uid
  return resumes.flatMap(({ uid, pod, at, fate }): Violation[] => {
    const should = uid === holder ? 'Runs' : 'Gone'
    if (fate === should) return []
    const is = { Runs: 'runs', Stopped: 'is still stopped', Gone: 'is gone' }[fate]
    const but = uid === holder ? 'has the slot' : 'has the slot no more'
    return [
      { rule: 'Abandoned', slot, says: `${pod}, paused until ${seconds(at - begin)}, ${is}, and ${but}` },
    ]
  })
}

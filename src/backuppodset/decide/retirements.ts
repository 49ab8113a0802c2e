import type { Action } from '../plan.ts'
import type { RetiredPod, Snapshot } from '../snapshot.ts'
import { isRetained } from './retention.ts'
import { remove } from './tools.ts'

/** Time after the successor serves in which proxies sync and connections forwarded through the retired pod end, ms. */
const lingerMs = 2_000

/**
 * Deletes retired pods whose successors have been on stage for long enough, and retired pods whose slots wait for no
 * successor.
 */
export const retirements = (s: Snapshot): Action[] =>
  (s.retired ?? []).filter(pod => msLeft(s, pod) <= 0).map(pod => remove(pod, 'Retired'))

/** Returns the ms until the next retired pod may be deleted. */
export function untilRetirementDelay(s: Snapshot): number | undefined {
  const left = (s.retired ?? []).map(pod => msLeft(s, pod)).filter(ms => ms > 0 && Number.isFinite(ms))
  return left.length === 0 ? undefined : Math.min(...left)
}

function msLeft(s: Snapshot, { slot, succeededAt }: RetiredPod): number {
  const its = s.memory?.slots.get(slot ?? -1)
  if (its === undefined || isRetained(its)) return 0
  if (succeededAt === undefined) return Number.POSITIVE_INFINITY
  return succeededAt + lingerMs - s.monotonicNow
}

/** The last resort for a slot that no backup can take: a new pod, more patience, or an empty start. */
import { isCloning, isUnserved } from '../../api/clone-of.ts'
import { mayBeginAnew } from '../../slot/decide/grant.ts'
import { fitsMemory } from '../../slot/decide/kinds.ts'
import { isGone, usableOf } from '../../slot/decide/knowledge.ts'
import type { SlotMemory } from '../../slot/decide/memory-view.ts'
import { msUntilSourceSays } from '../../slot/decide/source-says.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { uncopiedMs } from './clones.ts'
import { revisionFor } from './revisions.ts'

/** True if a pod can be made whose template fits the memory. */
export const canBeMade = (s: Snapshot, { lease: { restoreHash } }: SlotMemory): boolean =>
  fitsMemory(s.restoreHash, restoreHash) || revisionFor(s, restoreHash ?? '') !== undefined

/** How long the operator waits only for a pod that was made for a slot and has a node, until the pod is ready, ms. */
const arrivalMs = 120_000

/** At most so many pods are made for one slot; after that the agents and the operator retry with these. */
const mostMade = 3
const retryMs = { first: 30_000, most: 600_000 } as const

/**
 * Returns what to do for a slot that no backup can take: `make` a pod that can; wait (`awaited`) for a pod that was
 * made, or for reports from the nodes that keep the memory or have just lost the app; or begin a new, empty incarnation
 * (`anew`). Memory that a node keeps, or may keep, is given up only where the set says after how long.
 */
export function lastResort(
  s: Snapshot,
  slot: SlotMemory,
  hot: readonly PodView[],
): 'make' | 'awaited' | 'anew' {
  // A pod may take the slot by itself, or has done so.
  if (!mayBeginAnew(slot)) return 'awaited'
  if (isGone(slot) || isWornOut(s, slot)) return 'anew'
  if (usableOf(slot).length === 0 || !canBeMade(s, slot) || msUntilSourceSays(s, slot) > 0) return 'awaited'
  const left = msUntilMade(s, slot, hot)
  return left !== undefined && left <= 0 ? 'make' : 'awaited'
}

/** True if the time is over for which memory may be kept without being restored anywhere. */
const isWornOut = (s: Snapshot, slot: SlotMemory): boolean => {
  const left = msUntilWornOut(s, slot)
  return left !== undefined && left <= 0
}

/** The set limits that time. A copy with which no pod has served is lost without harm, if no node that may have it answers for long. */
function msUntilWornOut(
  { set, monotonicNow }: Snapshot,
  { lease, endedSince, uncopiedSince }: SlotMemory,
): number | undefined {
  // There is nothing to give up yet: another node copies it if this one does not (`clones`).
  if (isCloning(lease) || endedSince === undefined) return undefined
  const afterMs = set.memory?.giveUpAfterMs
  const ends = [
    ...(afterMs === undefined ? [] : [endedSince + afterMs]),
    ...(isUnserved(lease) && uncopiedSince !== undefined ? [uncopiedSince + uncopiedMs] : []),
  ]
  return ends.length === 0 ? undefined : Math.min(...ends) - monotonicNow
}

/**
 * Returns the ms until another pod is made for the slot; undefined if one is on its way, or if there are enough to
 * retry with.
 */
function msUntilMade(
  s: Snapshot,
  { lease, vacantSince }: SlotMemory,
  hot: readonly PodView[],
): number | undefined {
  const own = hot.filter(({ stage }) => stage?.successorOf === lease.slot)
  if (own.length === 0) return 0
  // A pod without a node waits for room in the cluster, and so would another one.
  const comes = (pod: PodView) =>
    pod.waking || (pod.stage?.failed === undefined && (pod.ready || pod.node === undefined))
  if (own.length >= mostMade || own.some(comes)) return undefined
  const newest = Math.max(...own.map(({ createdAt }) => createdAt))
  const isFailing = own.every(({ stage }) => stage?.failed !== undefined)
  // The longer the slot has been vacant, the longer the next pause.
  const waited = vacantSince === undefined ? 0 : s.monotonicNow - vacantSince
  const pauseMs = Math.min(retryMs.most, Math.max(isFailing ? retryMs.first : arrivalMs, waited / 2))
  return newest + pauseMs - s.now
}

/** How often to check whether a node can restore a memory by now, ms: silence causes no watch event. */
const askedAgainMs = 5_000

/**
 * Returns the ms until the next look at slots without primary whose memory is kept; undefined if no such slot waits.
 */
export function untilTried(s: Snapshot): number | undefined {
  const slots = [...(s.memory?.slots.values() ?? [])].filter(
    slot => slot.vacantSince !== undefined && !isGone(slot),
  )
  const hot = s.pods.filter(({ kind }) => kind === 'hotbackup')
  const times = slots.flatMap(slot =>
    [
      usableOf(slot).length === 0 ? askedAgainMs : msUntilMade(s, slot, hot),
      slot.lease.atLeast !== undefined || isUnserved(slot.lease) ? askedAgainMs : undefined,
      msUntilWornOut(s, slot),
      msUntilSourceSays(s, slot),
    ].filter(ms => ms !== undefined && ms > 0),
  ) as number[]
  return times.length === 0 ? undefined : Math.min(...times)
}

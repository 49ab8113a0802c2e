/** The end of primaries whose slot another pod has taken. */

import type { MemoryView } from '../../slot/decide/memory-view.ts'
import { publishedMs } from '../../slot/observe/stage.ts'
import type { Action } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { primariesByLease, untimelySuccessors } from './primaries-by-lease.ts'
import type { PrimarySets } from './primary-sets.ts'
import { isRetained } from './retention.ts'

/** How long to wait for the kubelet to publish that a pod is ready, ms; it takes a second or so. */
const selectableMs = 2_000

/** Returns the ms for which Services that select their pods may not reach this pod yet. */
const msUntilSelectable = ({ stage }: PodView): number =>
  stage?.unpublishedMs === undefined ? 0 : Math.max(0, selectableMs - stage.unpublishedMs)

/**
 * Retires superseded primaries once their successor is on stage and Services can select it. Until then connections to a
 * superseded primary end at the successor, and a Service that selects its pods would have no endpoint without it.
 */
export function retireSuperseded({ slots }: MemoryView, cast: PrimarySets): Action[] {
  const present = new Map(
    cast.primaries
      .filter(pod => !pod.stage?.promoting && !pod.waking && msUntilSelectable(pod) === 0)
      .map(pod => [pod.slot, pod]),
  )
  // The set has no place for the slot: no successor comes that the superseded primary would have to wait for.
  const isOver = (number = -1) => {
    const slot = slots.get(number)
    return slot !== undefined && isRetained(slot) && cast.primaries.every(pod => pod.slot !== number)
  }
  return (
    cast.superseded
      // A primary that a pod with a new incarnation replaces serves until that pod does.
      .filter(
        pod =>
          !pod.waking &&
          (isOver(pod.slot) || (present.has(pod.slot) && (!pod.ready || present.get(pod.slot)?.ready))),
      )
      .map(pod => ({ type: 'retire', pod }))
  )
}

/**
 * Returns the ms until a superseded primary may retire although the kubelet has not published its successor; undefined
 * if none waits.
 */
export function untilRetirement(s: Snapshot): number | undefined {
  if (s.memory === undefined) return undefined
  const { primaries, superseded } = primariesByLease(s, s.memory, untimelySuccessors(s, s.memory))
  const left = primaries
    .filter(({ slot }) => superseded.some(pod => pod.slot === slot))
    .map(pod => msUntilSelectable(pod))
    .filter(ms => ms > 0)
  return left.length === 0 ? undefined : Math.min(...left)
}

/**
 * Returns the ms until a promoted primary whose node may be dead counts as unready: no watch event comes at that
 * moment.
 */
export function untilUnpublished(s: Snapshot): number | undefined {
  const left = s.pods.flatMap(({ kind, ready, stage }) =>
    kind === 'primary' && ready && stage?.unpublishedMs !== undefined
      ? [Math.max(0, publishedMs - stage.unpublishedMs) + 1]
      : [],
  )
  return left.length === 0 ? undefined : Math.min(...left)
}

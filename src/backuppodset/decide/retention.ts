import { isCloning } from '../../api/clone-of.ts'
import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import type { SlotActionOf } from '../../slot/decide/actions.ts'
import { mayBeginAnew } from '../../slot/decide/grant.ts'
import { savedOn, standsUntil } from '../../slot/decide/handover.ts'
import { endOf, isGone, keepersOf } from '../../slot/decide/knowledge.ts'
import type { SlotMemory } from '../../slot/decide/memory-view.ts'
import { nameKeepers } from '../../slot/decide/vacant-leases.ts'
import type { Action } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'

/**
 * True for slots that a smaller `replicas` took away. Their marked Leases stay for `checkpoint.retain`, so that the
 * nodes named there keep the memory. If `replicas` grows in this time, the set gets these slots back with their memory.
 */
export const isRetained = ({ lease }: SlotMemory): boolean => lease.retainedSince !== undefined

/**
 * True if no node has ever had memory of this incarnation. Unlike memory that is gone, that is no loss. A slot that waits for its copy
 * has none: the pod that it copies runs on.
 */
export const isNeverSaved = (slot: SlotMemory | undefined): boolean =>
  slot === undefined ||
  (isCloning(slot.lease)
    ? slot.copies.length === 0
    : isGone(slot) && slot.lease.kept?.length === 0 && !slot.sourceKeeps)

/**
 * Guard against clock jumps, ms. Retention ends by the wall clock of the operator that wrote the mark, but each leader
 * must have seen the mark itself for this long, or for all of `retain` if that is shorter: a clock that jumps ends no
 * retention that has just begun.
 */
const leastSeenMs = 600_000

/**
 * Returns the ms for which the memory of a marked slot is still kept. By its own monotonic clock, no leader keeps it
 * for longer than `retain`.
 */
export function msRetained(s: Snapshot, { lease, retainedSeenAt = s.monotonicNow }: SlotMemory): number {
  if (lease.suspended) return Number.POSITIVE_INFINITY
  const retainMs = s.set.memory?.retainMs ?? 0
  const seenMs = s.monotonicNow - retainedSeenAt
  const markedMs = s.now - (Date.parse(lease.retainedSince ?? '') || s.now)
  return Math.min(retainMs - seenMs, Math.max(Math.min(retainMs, leastSeenMs) - seenMs, retainMs - markedMs))
}

/** Returns the ms until the next retained slot is forgotten; undefined if no slot is retained. */
export function untilForgotten(s: Snapshot): number | undefined {
  const left = [...(s.memory?.slots.values() ?? [])].flatMap(slot =>
    isRetained(slot) && !slot.lease.suspended && msRetained(s, slot) > 0 ? [msRetained(s, slot)] : [],
  )
  return left.length === 0 ? undefined : Math.min(...left)
}

/**
 * Marks the Leases of primaries that are about to leave, before they leave, so that a possible successor finds the
 * mark. A pod that is called and not on stage yet is marked too: its promotion comes to nothing, and must not take the
 * place of a slot that is served.
 */
export const marksOf = (s: Snapshot, leaving: readonly PodView[]): Action[] =>
  leaving.flatMap(pod => {
    const slot = s.memory?.slots.get(pod.slot ?? -1)
    if (slot?.lease.holder.uid !== pod.uid || isRetained(slot)) return []
    if (s.set.suspended) return isNeverSaved(slot) ? [] : [suspend(s, slot)]
    return mayRetain(s, slot) || pod.waking ? [mark(s, slot)] : []
  })

/** Marks or forgets slots that no primary holds and for which the set has no place. */
export const leave = (s: Snapshot, slots: readonly SlotMemory[]): Action[] =>
  slots.flatMap((slot): Action[] => {
    // Its work is done: nothing continues with its memory.
    if (s.completed !== undefined) return [forget(s, slot)]
    // Nothing ends by time alone. A slot whose memory is gone stays, too: the status says so, and it starts from an empty state when the set resumes.
    if (s.set.suspended && !isRetained(slot) && !isNeverSaved(slot))
      return mayBeginAnew(slot) ? [suspend(s, slot)] : []
    if (s.set.suspended && slot.lease.suspended) return []
    if (!mayRetain(s, slot)) return [forget(s, slot)]
    // The time begins when the set resumes without a place for it.
    if (!isRetained(slot) || slot.lease.suspended) return [mark(s, slot)]
    return msRetained(s, slot) > 0 ? nameKeepers(slot) : [forget(s, slot)]
  })

/**
 * Removes the mark of slots for which the set has a place again. A later pass chooses the successor, by the Lease as it
 * is then.
 */
export const reclaim = (slots: readonly SlotMemory[]): Action[] =>
  slots.map(slot => {
    const { retainedSince: _, ...lease } = slot.lease
    const { suspended } = lease
    const why = suspended ? 'the set resumes' : 'the set has a place for it again'
    const note = isGone(slot)
      ? `slot ${lease.slot}: ${why}, and no node has its memory any more`
      : `slot ${lease.slot}: ${why}, and it continues with the memory of ${lease.holder.name}${generationOf(slot)}`
    return assign(slot, lease, { type: suspended ? 'resumes' : 'ends', note })
  })

/** Deletes the Leases of slots in which no app has run, and whose memory is not wanted any more. */
export const drop = (s: Snapshot, slots: readonly SlotMemory[]): Action[] =>
  slots.map(slot => forget(s, slot, 'spec.cloneFrom does not name its source any more'))

/** A copy of memory with which no app has run is no loss: its source has it. */
const mayRetain = (s: Snapshot, slot: SlotMemory): boolean =>
  (s.set.memory?.retainMs ?? 0) > 0 && !isGone(slot) && !isCloning(slot.lease)

function mark(s: Snapshot, slot: SlotMemory): Action {
  const retainMs = s.set.memory?.retainMs ?? 0
  const { suspended: _, ...before } = slot.lease
  const lease: NumberedSlotLease = {
    ...before,
    ...freed,
    // Until that is over, the heir could be called to no other slot.
    ...(before.grant?.heir && { grant: { ...before.grant, isRevoked: true } }),
    kept: keepersOf(slot),
    retainedSince: new Date(s.now).toISOString(),
  }
  const until = new Date(s.now + retainMs).toISOString()
  const note = `the set has no place for slot ${lease.slot} (${lease.holder.name}) any more: its memory${generationOf(slot)} is kept on ${nodesOf(slot)} until ${until}; raise spec.replicas before then to resume it`
  return assign(slot, lease, mayRetain(s, slot) ? { type: 'begins', note } : undefined)
}

/** Marks the Lease of a slot whose primary ends until the set resumes, or has ended. */
function suspend(s: Snapshot, slot: SlotMemory): Action {
  const { lease } = slot
  const others = savedOn(slot, s)
  const standing = others.length > 0 ? { lease, until: standsUntil(slot) } : undefined
  const nodes = standing === undefined ? nodesOf(slot) : [...others, lease.node].join(', ')
  const where = isGone(slot)
    ? 'no node has its memory'
    : `its memory${generationOf(slot)} is kept on ${nodes} until spec.suspend is false`
  const note = `slot ${lease.slot} (${lease.holder.name}) is suspended: ${where}`
  const suspended: NumberedSlotLease = {
    ...{ ...lease, ...freed, kept: keepersOf(slot), suspended: true },
    // It is stopped, and must not run on: changes that it made now would be lost. Nodes with older memory are named no more: the
    // slot would resume with that while the others are away.
    ...(standing && {
      ending: lease.holder.uid,
      holders: others,
      kept: [...others, ...(lease.node === undefined ? [] : [lease.node])],
    }),
    retainedSince: new Date(s.now).toISOString(),
  }
  return { ...assign(slot, suspended, { type: 'suspends', note }), ...(standing && { standing }) }
}

/** Frees the heir for other slots: only the copies on nodes are kept. */
const freed = { heir: undefined, ending: undefined, handover: undefined } as const

const assign = (
  { resourceVersion, restarts = 0 }: SlotMemory,
  lease: NumberedSlotLease,
  retention: SlotActionOf<'writeSlot'>['retention'],
): Action => ({
  ...{ type: 'writeSlot', lease, version: resourceVersion, restarts, stateLost: false },
  ...(retention && { retention }),
})

/** @param because absent: the set has no place for the slot. */
function forget(s: Snapshot, slot: SlotMemory, because?: string): Action {
  const { lease, uid, resourceVersion } = slot
  if (isCloning(lease)) {
    const why = because ?? 'the set has no place for it any more'
    const note = `slot ${lease.slot} does not begin with the memory of ${lease.holder.name}: ${why}`
    return {
      ...{ type: 'deleteSlot', slot: lease.slot, lease: { uid, resourceVersion } },
      told: { type: 'Normal', note },
    }
  }
  const why = isGone(slot)
    ? 'no node has its memory'
    : s.completed !== undefined
      ? `its work is done, so its memory${generationOf(slot)} is deleted`
      : isRetained(slot)
        ? `its memory${generationOf(slot)} was kept for checkpoint.retain and is now deleted`
        : `checkpoint.retain is 0, so its memory${generationOf(slot)} is deleted`
  const note = `the set has no place for slot ${lease.slot} (${lease.holder.name}) any more: ${why}`
  return {
    ...{ type: 'deleteSlot', slot: lease.slot, lease: { uid, resourceVersion }, ...endOf(s.memory, slot) },
    told: {
      type: isGone(slot) || isRetained(slot) || s.completed !== undefined ? 'Normal' : 'Warning',
      note,
    },
  }
}

const nodesOf = ({ copies, unasked }: SlotMemory): string =>
  [...copies, ...unasked].map(({ node }) => node).join(', ')

const generationOf = ({ copies }: SlotMemory): string =>
  copies.length === 0 ? '' : ` (generation ${Math.max(...copies.map(({ report }) => report.generation))})`

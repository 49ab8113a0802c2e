/** New slots that begin with a copy of the memory of another pod: each has a Lease before it has a pod. */
import { type CloneOf, cloneHolder, isCloning, isOfSource } from '../../api/clone-of.ts'
import { type NumberedSlotLease, slotLeaseName } from '../../api/numbered-slot.ts'
import { reasons } from '../../api/reasons.ts'
import type { Random } from '../../kube/random.ts'
import type { Role, SlotActionOf } from '../../slot/decide/actions.ts'
import { draw } from '../../slot/decide/assignments.ts'
import { fitsMemory } from '../../slot/decide/kinds.ts'
import { endOf, isGone, usableOf } from '../../slot/decide/knowledge.ts'
import type { CloneSource, MemoryView, NoSource, SlotMemory } from '../../slot/decide/memory-view.ts'
import type { Snapshot } from '../snapshot.ts'
import { roleIn } from './primary-sets.ts'

/** The slots to which this pass gives memory of another pod. */
export interface Cloned {
  /** They have no Lease yet. */
  readonly fresh: readonly Role[]
  /** Their memory is lost while only their source has it. */
  readonly again: readonly SlotMemory[]
}

/** A node makes one copy after the other, and each copy takes room from all other sets. */
const mostAtOnce = 2

/** After this time without the memory of a clone the slot begins with its source again, ms. */
export const uncopiedMs = 30_000

/** Returns the memory with which new slots begin, or why there is none. Undefined: they begin with an empty state. */
export function cloneSourceFor(
  { restoreHash }: Pick<Snapshot, 'restoreHash'>,
  { cloneSource, refused }: MemoryView,
): CloneSource | NoSource | undefined {
  if (cloneSource === undefined) return undefined
  if (refused !== undefined) return refused
  if (!('copies' in cloneSource) || fitsMemory(restoreHash, cloneSource.restoreHash)) return cloneSource
  return {
    reason: reasons.cloneUnfit,
    message: `the memory of pod ${cloneSource.pod} cannot be restored in pods of this template: use the same images, commands, arguments, mounts and security contexts`,
  }
}

/**
 * True for a slot that waits for memory which the set does not name any more. No app has run in it. The name may be that of another
 * pod, to which the same slot has moved.
 */
export function isAbandoned(
  { set: { cloneFrom } }: { readonly set: Pick<Snapshot['set'], 'cloneFrom'> },
  { cloneSource }: Pick<MemoryView, 'cloneSource'>,
  { lease }: SlotMemory,
): boolean {
  if (!isCloning(lease) || lease.holder.name === cloneFrom) return false
  const { name, incarnation } = cloneSource?.slot ?? {}
  return lease.cloneOf.name !== name || lease.cloneOf.incarnation !== incarnation
}

/** Returns the writes for slots that begin with the memory of another pod, or wait for it without success. */
export function clones(
  s: Snapshot,
  memory: MemoryView,
  random: Random,
  { fresh, again }: Cloned,
): SlotActionOf<'writeSlot'>[] {
  const source = cloneSourceFor(s, memory)
  if (source === undefined || !('copies' in source)) return []
  const slots = [...memory.slots.values()].filter(slot => !isAbandoned(s, memory, slot))
  const open = slots.filter(({ lease }) => isCloning(lease)).length
  const refusing = slots.flatMap(slot => (isRefused(s, slot) ? (slot.lease.cloneOf?.node ?? []) : []))
  const first = source.copies.find(({ node }) => !refusing.includes(node))
  const begun = fresh
    .filter(({ slot }) => memory.foreign?.has(slot) !== true)
    .slice(0, Math.max(0, mostAtOnce - open))
    .flatMap(role => (first === undefined ? [] : [begin(s, memory, random, { role, source, of: first })]))
  const moved = slots.flatMap((slot): SlotActionOf<'writeSlot'>[] => {
    const { lease } = slot
    if (!again.includes(slot) && !isStuck(s, memory, slot)) return []
    const of = source.copies.find(({ node }) => !isRefused(s, slot) || node !== lease.cloneOf?.node)
    if (of === undefined || (isCloning(lease) && isSame(of, lease.cloneOf))) return []
    // A pod of the epoch before has lost the slot.
    const role = roleIn(s, lease.slot, undefined)
    // Another incarnation: a copy that the first node has nevertheless made is not the memory of this slot.
    const write = begin(s, memory, random, { role, source, of })
    return [{ ...write, version: slot.resourceVersion, ...endOf(memory, slot) }]
  })
  return [...begun, ...moved]
}

const isSame = (a: CloneOf, b: CloneOf): boolean =>
  a.name === b.name &&
  a.incarnation === b.incarnation &&
  a.epoch === b.epoch &&
  a.generation === b.generation &&
  a.node === b.node

interface Choice {
  readonly role: Role
  readonly source: CloneSource
  readonly of: CloneOf
}

/** Returns the write after which the slot seems to have lost a primary on the node that copies the memory. */
function begin(
  { set }: Pick<Snapshot, 'set'>,
  memory: MemoryView,
  random: Random,
  { role: { slot, epoch }, source: { pod, podUid, restoreHash }, of }: Choice,
): SlotActionOf<'writeSlot'> {
  const { policy } = memory.slots.get(slot)?.lease ?? {}
  const lease: NumberedSlotLease = {
    ...{ namespace: set.namespace, name: slotLeaseName(set.name, slot), incarnation: draw(random, 4) },
    ...{ group: set.name, slot, owner: set.uid },
    ...(policy && { policy }),
    holder: { name: pod, uid: cloneHolder(podUid) },
    ...{ epoch, node: of.node, ip: undefined, heir: undefined },
    ...{ holders: [], kept: [of.node], restoreHash },
    ...{ seal: draw(random, 32), cloneOf: of },
    signers: [{ epoch, fingerprint: memory.nodes.get(of.node)?.signer }],
  }
  const note = `slot ${slot} begins with the memory of ${pod} (generation ${of.generation}), which node ${of.node} copies`
  return {
    ...{ type: 'writeSlot', lease, version: undefined, restarts: 0, stateLost: false },
    retention: { type: 'clones', note },
  }
}

/** True if the node that is to copy the memory has said for long that it cannot. */
const isRefused = (
  { monotonicNow }: Pick<Snapshot, 'monotonicNow'>,
  { lease, uncopiedSince }: SlotMemory,
): boolean => isCloning(lease) && uncopiedSince !== undefined && monotonicNow - uncopiedSince >= uncopiedMs

/** True if the slot waits for a copy that does not come: its node is lost, or cannot make the copy. */
export function isStuck(
  s: Pick<Snapshot, 'monotonicNow'>,
  { nodes }: Pick<MemoryView, 'nodes'>,
  slot: SlotMemory,
): boolean {
  const { lease, source } = slot
  if (!isCloning(lease) || lease.retainedSince !== undefined) return false
  if (usableOf(slot).some(({ silent }) => silent !== true)) return false
  const node = nodes.get(lease.cloneOf.node)
  // The next agent of a node makes the copies that the last one has not made.
  if (node === undefined || node.silent === true || !(node.ready || node.away === true)) return true
  return isRefused(s, slot) || (source?.generation === 0 && source.reason === 'CloneSourceGone')
}

/** True if no primary runs with the memory, and no node has it. A primary that has just begun may have saved nothing yet. */
export const isLost = (slot: SlotMemory): boolean => slot.vacantSince !== undefined && isGone(slot)

/** How often to look for memory to begin with, ms: the reports about it wake no pass of this set. The longer it waits, the more rarely. */
const lookAgainMs = { least: 2_000, most: 30_000 } as const

/** Returns the ms until the next look for memory with which slots are to begin; undefined if none waits for that. */
export function untilCloned(s: Snapshot): number | undefined {
  const { memory, set } = s
  if (memory === undefined || set.suspended) return undefined
  const source = cloneSourceFor(s, memory)
  if (source === undefined || 'copies' in source) return undefined
  const slots = [...memory.slots.values()]
  const waits =
    slots.length < set.replicas ||
    slots.some(slot => isStuck(s, memory, slot) || (isOfSource(slot.lease) && isLost(slot)))
  if (!waits) return undefined
  const waited = s.monotonicNow - (memory.cloningSince ?? s.monotonicNow)
  return Math.min(lookAgainMs.most, Math.max(lookAgainMs.least, waited / 2))
}

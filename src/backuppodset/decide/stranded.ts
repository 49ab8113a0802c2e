/**
 * Hot backups that can be heir of no slot where they are, while a slot has no heir, or shares it with another slot: they are on the node of
 * the primary that they should cover. The scheduler does not move pods, so the operator replaces them.
 */
import type { MemoryView, SlotMemory } from '../../slot/decide/memory-view.ts'
import { couldInherit, sharingSlots, toInherit, uncoveredSlots } from '../../slot/decide/uncovered.ts'
import type { Action } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { arePrimariesWell, turnOf } from './handover-turns.ts'
import { canBeMade } from './last-resort.ts'
import { avoided, nodesOfPrimaries } from './near.ts'
import { relaysOf, withErrands } from './relay.ts'
import { isRetained } from './retention.ts'
import { remove } from './tools.ts'
import { updateOf } from './update.ts'

/** Deletes the stranded hot backup whose time has come. The pod that `refill` makes in its place prefers other nodes. */
export function replaceStranded(s: Snapshot): Action[] {
  const { stranded } = s
  if (stranded === undefined || stranded.dueAt > s.monotonicNow) return []
  return s.pods.filter(({ uid }) => uid === stranded.uid).map(pod => remove(pod, 'Stranded'))
}

/** Returns the ms until a stranded hot backup is replaced; undefined if none is stranded, or it is due. */
export function untilStranded({ stranded, monotonicNow }: Snapshot): number | undefined {
  const left = stranded === undefined ? 0 : stranded.dueAt - monotonicNow
  return left > 0 ? left : undefined
}

/**
 * Returns the uids of the stranded hot backups of a set that has nothing else to do, in a fixed order; undefined if
 * every slot has an heir of its own.
 */
export function strandedPods(observed: Snapshot): readonly string[] | undefined {
  const { memory } = observed
  if (memory === undefined) return undefined
  const slots = presentSlots(memory)
  const isCovered = isEachCovered(observed)
  if (isCovered && new Set(slots.map(({ lease }) => lease.heir?.uid)).size === slots.length) return undefined
  const s = withErrands(observed)
  const hot = hotBackups(s)
  if (hot === undefined || !isQuiet(s, memory)) return []
  const primaries = new Map(slots.flatMap(({ lease }) => (lease.node ? [[lease.slot, lease.node]] : [])))
  const avoid = avoided(s, nodesOfPrimaries(s, primaries))
  const short = isCovered
    ? sharingSlots(memory, primaries, hot, avoid)
    : uncoveredSlots(memory, primaries, [...hot, ...relaysOf(s)], avoid)
  const open = short.filter(
    ({ slot, nodes }) =>
      nodes.length > 0 && slots.some(each => each.lease.slot === slot && canBeMade(s, each)),
  )
  const isOutOfPlace = ({ node = '' }: PodView) =>
    open.every(slot => slot.node === node || slot.unfitNodes?.has(node))
  return open.length === 0
    ? []
    : hot
        .filter(pod => isOutOfPlace(pod) && isSpare(pod, hot, slots, memory))
        .map(({ uid, name }) => ({ uid, name }))
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .map(({ uid }) => uid)
}

const presentSlots = ({ slots }: MemoryView): readonly SlotMemory[] =>
  [...slots.values()].filter(slot => !isRetained(slot))

/** True if each slot has an heir, although some may share one: then a single attempt to make that better is enough. */
export const isEachCovered = ({ memory }: Pick<Snapshot, 'memory'>): boolean =>
  memory === undefined || presentSlots(memory).every(({ lease }) => lease.heir !== undefined)

/** Returns the hot backups of the set if they are complete, and each is in a place and can be given memory. */
function hotBackups(s: Snapshot): readonly PodView[] | undefined {
  const relays = relaysOf(s)
  const hot = s.pods.filter(pod => pod.kind === 'hotbackup' && !relays.includes(pod))
  const isUsable = ({ node, waking, stage }: PodView) =>
    node !== undefined &&
    !waking &&
    stage?.keeps === true &&
    stage.understudy &&
    !stage.died &&
    !stage.spoiled &&
    !stage.promoting
  return hot.length === s.set.hotBackups && hot.every(isUsable) ? hot : undefined
}

/** True if no slot changes hands, and no roll is in progress. */
function isQuiet(s: Snapshot, memory: MemoryView): boolean {
  const { outdated, blocked } = updateOf(s)
  const isRolling = s.set.updateStrategy === 'RollingUpdate' && outdated.length > 0 && !blocked
  return (
    !s.set.paused &&
    memory.refused === undefined &&
    (s.retired?.length ?? 0) === 0 &&
    !isRolling &&
    arePrimariesWell(s) &&
    [...memory.slots.values()].every(({ lease }) => lease.handover === undefined) &&
    turnOf(s) === undefined
  )
}

/** True if no slot would have less without this pod: no slot names it, and another pod of its node can do the same. */
function isSpare(
  pod: PodView,
  hot: readonly PodView[],
  slots: readonly SlotMemory[],
  memory: MemoryView,
): boolean {
  const twins = hot.filter(({ uid, node }) => uid !== pod.uid && node === pod.node)
  return slots.every(({ lease, copies }) => {
    if (lease.heir?.uid === pod.uid || lease.holder.uid === pod.uid) return false
    if (copies.some(({ report }) => report.usable === 'Frozen' && report.understudyUid === pod.uid))
      return false
    const slot = toInherit(memory, lease.slot, lease.node ?? '')
    const isKeptHere = lease.holders.includes(pod.node ?? '') || copies.some(copy => copy.node === pod.node)
    return !isKeptHere || !couldInherit(pod, slot) || twins.some(twin => couldInherit(twin, slot))
  })
}

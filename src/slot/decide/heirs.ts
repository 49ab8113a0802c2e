/**
 * Assigns each slot the pod that takes it first, and the nodes that keep its generations: the rule of N primaries and M
 * understudies.
 */

import { fitsMemory } from './kinds.ts'

/** A hot backup that can hold memory. */
export interface Understudy {
  readonly name: string
  readonly uid: string
  readonly node: string
  /** The only slot that it may take; undefined: any. */
  readonly onlyFor?: number | undefined
  /** Its containers do not run yet. */
  readonly isComing?: boolean
  /** The pod's restore hash: which memory it can be given. */
  readonly restoreHash?: string | undefined
}

export interface SlotToCover {
  readonly slot: number
  /** Node of the primary: memory must not be kept where it would be lost together with the primary. */
  readonly node: string | undefined
  /** Uid of the present heir. */
  readonly heirUid: string | undefined
  /** Uid of the understudy that has to be the heir, because the slot is to move there. */
  readonly targetUid?: string | undefined
  /** Uid of the understudy that holds the frozen clone, as last reported. */
  readonly frozenIn: string | undefined
  readonly holders: readonly string[]
  /** Nodes whose copy is as new as any, by recent reports. */
  readonly newestOn: readonly string[]
  /** All nodes that have or may have memory of the slot, the newest first. Default: `newestOn`. */
  readonly mayKeepOn?: readonly string[]
  /** Restore hash of its memory. */
  readonly restoreHash?: string | undefined
  /** Nodes whose machines cannot run its memory: see `misfit`. They may keep it when there are no others. */
  readonly unfitNodes?: ReadonlySet<string>
}

export interface Cover {
  readonly heir: Understudy | undefined
  readonly holders: readonly string[]
}

export interface AssignOptions {
  /** How many nodes keep the generations of a slot. */
  readonly copies: number
  /** Nodes of cold backups that could keep generations. */
  readonly coldNodes: readonly string[]
  /** Any other nodes that could keep generations. */
  readonly spareNodes: readonly string[]
  /** Nodes of both lists whose agents are away for a moment: they keep their copies, and get no new slots. */
  readonly awayNodes?: ReadonlySet<string>
  /** These nodes keep their copies only until others have them, and not if there are no others. */
  readonly forbiddenNodes?: ReadonlySet<string>
}

/**
 * Returns the heir and the holders of each slot. Every slot gets an heir if an understudy exists off its own node: the
 * one with the fewest slots, then by name. Valid assignments stay, unless an understudy has more than its share while
 * another one could take from it. Pure; applied to its own result it changes nothing.
 */
export function assign(
  slots: readonly SlotToCover[],
  understudies: readonly Understudy[],
  options: AssignOptions,
): ReadonlyMap<number, Cover> {
  const pods = [...understudies].sort((a, b) => (a.name < b.name ? -1 : 1))
  const ordered = [...slots].sort((a, b) => a.slot - b.slot)
  const heirs = heirsOf(ordered, pods)
  return new Map(
    ordered.map(slot => {
      const heir = heirs.get(slot.slot)
      return [slot.slot, { heir, holders: holdersOf(slot, heir, pods, options) }]
    }),
  )
}

/** The facts about a slot that decide which understudies may be its heir. */
export type ToInherit = Pick<SlotToCover, 'slot' | 'node' | 'restoreHash' | 'unfitNodes'>

/** True if the understudy may be the heir of the slot: on another node than its primary, where its memory can run. */
export const mayInherit = (pod: Omit<Understudy, 'name' | 'uid'>, slot: ToInherit): boolean =>
  (pod.onlyFor ?? slot.slot) === slot.slot &&
  pod.node !== slot.node &&
  slot.unfitNodes?.has(pod.node) !== true &&
  fitsMemory(pod.restoreHash, slot.restoreHash)

function heirsOf(slots: readonly SlotToCover[], pods: readonly Understudy[]): Map<number, Understudy> {
  const heirs = new Map<number, Understudy>()
  const load = new Map(pods.map(pod => [pod.uid, 0]))
  const give = (slot: SlotToCover, pod: Understudy, change: 1 | -1) => {
    load.set(pod.uid, (load.get(pod.uid) ?? 0) + change)
    if (change > 0) heirs.set(slot.slot, pod)
  }
  const leastLoaded = (slot: SlotToCover) =>
    pods
      .filter(pod => mayInherit(pod, slot))
      .reduce<Understudy | undefined>(
        (best, pod) =>
          best === undefined || (load.get(pod.uid) ?? 0) < (load.get(best.uid) ?? 0) ? pod : best,
        undefined,
      )
  for (const slot of slots) {
    const able = pods.filter(pod => mayInherit(pod, slot))
    const present =
      able.find(({ uid }) => uid === slot.targetUid) ?? able.find(({ uid }) => uid === slot.heirUid)
    if (present !== undefined) give(slot, present, 1)
  }
  for (const slot of slots) {
    if (heirs.has(slot.slot)) continue
    const pod = leastLoaded(slot)
    if (pod !== undefined) give(slot, pod, 1)
  }
  // Only moves that make the difference smaller, and not away from the frozen clone: that would have to be rebuilt.
  const movable = [...slots].sort((a, b) => b.slot - a.slot)
  for (let moved = true; moved; ) {
    moved = false
    for (const slot of movable) {
      const from = heirs.get(slot.slot)
      const to = leastLoaded(slot)
      if (from === undefined || to === undefined) continue
      if (slot.frozenIn === from.uid || slot.targetUid === from.uid) continue
      if ((load.get(from.uid) ?? 0) - (load.get(to.uid) ?? 0) < 2) continue
      give(slot, from, -1)
      give(slot, to, 1)
      moved = true
    }
  }
  /**
   * Takes one slot from the understudy. The slot goes to an idle understudy, or to a busy one that can give one of its own slots away.
   * False: none of its slots can go.
   */
  const relieve = (pod: Understudy, tried: Set<string>): boolean => {
    const itsSlots = slots.filter(({ slot, targetUid }) => heirs.get(slot) === pod && targetUid !== pod.uid)
    const ways = itsSlots
      .flatMap(slot =>
        pods.filter(to => to.isComing !== true && mayInherit(to, slot)).map(to => ({ slot, to })),
      )
      .sort((a, b) => Number(a.slot.frozenIn === pod.uid) - Number(b.slot.frozenIn === pod.uid))
    tried.add(pod.uid)
    const way =
      ways.find(({ to }) => load.get(to.uid) === 0) ??
      ways.find(({ to }) => !tried.has(to.uid) && relieve(to, tried))
    if (way === undefined) return false
    give(way.slot, pod, -1)
    give(way.slot, way.to, 1)
    return true
  }
  // An understudy has one frozen clone, so the other slots of which it is the heir have none. It pays to build another one elsewhere for
  // a slot that could go to an idle understudy, if the others cannot.
  for (const pod of pods) while ((load.get(pod.uid) ?? 0) > 1 && relieve(pod, new Set()));
  return heirs
}

/**
 * Returns the heir's node, then other nodes of hot backups, of cold ones, and any others; among equals the present
 * holders come first. A node that is being replaced keeps its copy until the new node has one as new: the newest memory
 * always has a holder.
 */
function holdersOf(
  slot: SlotToCover,
  heir: Understudy | undefined,
  pods: readonly Understudy[],
  { copies, coldNodes, spareNodes, awayNodes, forbiddenNodes }: AssignOptions,
): readonly string[] {
  // No memory may be kept at all.
  if (copies === 0) return []
  // Keeps the present order: another order would be a needless change.
  const keepsIt = (node: string) => {
    const place = slot.holders.indexOf(node)
    return place < 0 ? slot.holders.length : place
  }
  // Slots without copies start at different nodes, so that not all second copies go to the first node.
  const rotated = (nodes: readonly string[]) =>
    nodes.length === 0 ? [] : nodes.map((_, i) => nodes[(i + slot.slot) % nodes.length] ?? '')
  const stickyFirst = (nodes: readonly string[]) => rotated(nodes).sort((a, b) => keepsIt(a) - keepsIt(b))
  // A node whose pods cannot be given this memory counts as a node without hot backups: it can only keep the memory.
  const hotNodes = [...new Set(pods.filter(pod => mayInherit(pod, slot)).map(pod => pod.node))]
  const present = (nodes: readonly string[]) =>
    nodes.filter(node => awayNodes?.has(node) !== true || slot.holders.includes(node))
  const fitFirst = (nodes: readonly string[]) =>
    present(nodes).sort(
      (a, b) => Number(slot.unfitNodes?.has(a) ?? false) - Number(slot.unfitNodes?.has(b) ?? false),
    )
  const able = [
    ...(heir === undefined ? [] : [heir.node]),
    ...stickyFirst(hotNodes),
    ...fitFirst(stickyFirst(coldNodes)),
    ...fitFirst(stickyFirst(spareNodes)),
  ]
  const wanted = [...new Set(able)].filter(node => node !== slot.node).slice(0, copies)
  if (wanted.length > 0 && wanted.every(node => slot.newestOn.includes(node))) return wanted
  const { mayKeepOn = slot.newestOn } = slot
  const leaving = slot.holders.filter(
    node =>
      !wanted.includes(node) &&
      node !== slot.node &&
      mayKeepOn.includes(node) &&
      (wanted.length > 0 || forbiddenNodes?.has(node) !== true),
  )
  // If there are too many, the nodes with the oldest copies go.
  const newest = [...leaving].sort((a, b) => mayKeepOn.indexOf(a) - mayKeepOn.indexOf(b)).slice(0, copies)
  return [...wanted, ...leaving.filter(node => newest.includes(node))]
}

/** Who is to take each slot first, and which nodes keep its generations: the rule of N primaries and M understudies. */

import { fitsMemory } from './kinds.ts'

/** A hot backup that can hold memory. */
export interface Understudy {
  readonly name: string
  readonly uid: string
  readonly node: string
  /** It takes no other slot. */
  readonly onlyFor?: number | undefined
  /** Of the pod: which memory it can be given. */
  readonly restoreHash?: string | undefined
}

export interface SlotToCover {
  readonly slot: number
  /** Node of the primary: memory must not lie where it would be lost with it. */
  readonly node: string | undefined
  /** The heir that it has now. */
  readonly heirUid: string | undefined
  /** The understudy in which it lies frozen, as last reported. */
  readonly frozenIn: string | undefined
  readonly holders: readonly string[]
  /** Nodes that have as much of it as any, by what they have said lately. */
  readonly newestOn: readonly string[]
  /** All that have or may have something, the newest first. Default: `newestOn`. */
  readonly mayKeepOn?: readonly string[]
  /** Of its memory. */
  readonly restoreHash?: string | undefined
  /** Nodes whose machines cannot go on with its memory: see `misfit`. They may keep it when there are no others. */
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
  /** Any other nodes that could. */
  readonly spareNodes: readonly string[]
  /** Of both, those whose agents are away for a moment: they keep what they have, and get nothing new. */
  readonly awayNodes?: ReadonlySet<string>
  /** These keep what they have only until others have it, and not where there are no others. */
  readonly forbiddenNodes?: ReadonlySet<string>
}

/**
 * Every slot gets an heir where one exists off its own node: the understudy with the fewest slots, then by name. What
 * is valid stays, unless an understudy has more than its share while another one could take from it. Pure; applied to
 * its own result it changes nothing.
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

const mayTake = (pod: Understudy, slot: SlotToCover): boolean =>
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
      .filter(pod => mayTake(pod, slot))
      .reduce<Understudy | undefined>(
        (best, pod) =>
          best === undefined || (load.get(pod.uid) ?? 0) < (load.get(best.uid) ?? 0) ? pod : best,
        undefined,
      )
  for (const slot of slots) {
    const present = pods.find(pod => pod.uid === slot.heirUid)
    if (present !== undefined && mayTake(present, slot)) give(slot, present, 1)
  }
  for (const slot of slots) {
    if (heirs.has(slot.slot)) continue
    const pod = leastLoaded(slot)
    if (pod !== undefined) give(slot, pod, 1)
  }
  // Only a move that makes the difference smaller, and never of the clone that is there: it would have to be rebuilt.
  const movable = [...slots].sort((a, b) => b.slot - a.slot)
  for (let moved = true; moved; ) {
    moved = false
    for (const slot of movable) {
      const from = heirs.get(slot.slot)
      const to = leastLoaded(slot)
      if (from === undefined || to === undefined || slot.frozenIn === from.uid) continue
      if ((load.get(from.uid) ?? 0) - (load.get(to.uid) ?? 0) < 2) continue
      give(slot, from, -1)
      give(slot, to, 1)
      moved = true
    }
  }
  return heirs
}

/**
 * The heir's node, then other nodes of hot backups, of cold ones, and any others; among equals those that keep it
 * already. Those that have to make room go on until whoever takes their place has as much: not a moment without the newest.
 */
function holdersOf(
  slot: SlotToCover,
  heir: Understudy | undefined,
  pods: readonly Understudy[],
  { copies, coldNodes, spareNodes, awayNodes, forbiddenNodes }: AssignOptions,
): readonly string[] {
  // Nothing is to be kept at all.
  if (copies === 0) return []
  // In the order that they have: another one would be a change for nothing.
  const keepsIt = (node: string) => {
    const place = slot.holders.indexOf(node)
    return place < 0 ? slot.holders.length : place
  }
  // Slots that have no copy yet begin with different nodes, so that not all second copies lie on the first.
  const rotated = (nodes: readonly string[]) =>
    nodes.length === 0 ? [] : nodes.map((_, i) => nodes[(i + slot.slot) % nodes.length] ?? '')
  const stickyFirst = (nodes: readonly string[]) => rotated(nodes).sort((a, b) => keepsIt(a) - keepsIt(b))
  // One whose pods cannot be given this memory is as good as one without: it can only keep it.
  const hotNodes = [...new Set(pods.filter(pod => mayTake(pod, slot)).map(pod => pod.node))]
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
  // Where they are too many those go that have the oldest.
  const newest = [...leaving].sort((a, b) => mayKeepOn.indexOf(a) - mayKeepOn.indexOf(b)).slice(0, copies)
  return [...wanted, ...leaving.filter(node => newest.includes(node))]
}

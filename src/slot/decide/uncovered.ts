/** Slots without heir, and the nodes on which an understudy could be their heir. */
import { unfitNodes } from './assignments.ts'
import { mayTake } from './errands.ts'
import { mayInherit, type ToInherit } from './heirs.ts'
import type { MemoryView } from './memory-view.ts'
import type { Candidate } from './snapshot.ts'

/** A slot that has a primary, and that no understudy could take if the primary's node were lost. */
export interface Uncovered extends ToInherit {
  /** Nodes on which a new understudy could be its heir. */
  readonly nodes: readonly string[]
  /** Nodes that keep its memory, or are to keep it. */
  readonly keptOn: ReadonlySet<string>
}

/** True if this understudy may be the heir of the slot, once it is ready. */
export const couldInherit = (pod: Candidate, slot: ToInherit): boolean =>
  pod.node !== undefined &&
  mayTake(pod, slot.slot) &&
  mayInherit({ node: pod.node, restoreHash: pod.stage?.restoreHash }, slot)

/** The facts about a slot that decide about its heir, with its primary on this node. */
export const toInherit = (memory: MemoryView, slot: number, node: string): ToInherit => ({
  ...{ slot, node, restoreHash: memory.slots.get(slot)?.lease.restoreHash },
  unfitNodes: unfitNodes(memory, node),
})

/**
 * @param primaries the node of the primary of each slot that has one.
 * @param avoided nodes on which no backup of the set may run.
 */
export function uncoveredSlots(
  memory: MemoryView,
  primaries: ReadonlyMap<number, string>,
  understudies: readonly Candidate[],
  avoided: ReadonlySet<string>,
): readonly Uncovered[] {
  const able = ableNodes(memory).filter(name => !avoided.has(name))
  return [...primaries].flatMap(([number, node]): Uncovered[] => {
    const memoryOf = memory.slots.get(number)
    const slot = toInherit(memory, number, node)
    if (memoryOf === undefined || understudies.some(pod => couldInherit(pod, slot))) return []
    const { lease, copies, sourceKeeps } = memoryOf
    // After a takeover the former primary's node has the newest memory.
    const former = sourceKeeps && lease.node !== undefined ? [lease.node] : []
    return [
      {
        ...slot,
        nodes: able.filter(name => name !== node && slot.unfitNodes?.has(name) !== true),
        keptOn: new Set([...lease.holders, ...copies.map(copy => copy.node), ...former]),
      },
    ]
  })
}

/**
 * Returns the slots that have the heir of another slot, and that no idle understudy could take instead: an understudy is frozen for one slot,
 * so the others are less protected.
 */
export function sharingSlots(
  memory: MemoryView,
  primaries: ReadonlyMap<number, string>,
  understudies: readonly Candidate[],
  avoided: ReadonlySet<string>,
): readonly Uncovered[] {
  const heirOf = (slot: number) => memory.slots.get(slot)?.lease.heir?.uid
  const numbers = [...primaries.keys()].filter(slot => heirOf(slot) !== undefined)
  const sharing = numbers.filter(slot =>
    numbers.some(other => other !== slot && heirOf(other) === heirOf(slot)),
  )
  const heirs = new Set(numbers.map(heirOf))
  const idle = understudies.filter(({ uid }) => !heirs.has(uid))
  const theirs = new Map([...primaries].filter(([slot]) => sharing.includes(slot)))
  return uncoveredSlots(memory, theirs, idle, avoided)
}

/** A node whose primary its voters call silent may be lost, although its agent has written a moment ago. */
function ableNodes({ nodes, slots }: MemoryView): readonly string[] {
  const silent = new Set(
    [...slots.values()].flatMap(({ lease, votes }) => (votes?.statedAt === undefined ? [] : [lease.node])),
  )
  return [...nodes.values()]
    .filter(
      ({ name, ready, forbidden, closed }) =>
        ready && forbidden !== true && closed !== true && !silent.has(name),
    )
    .map(({ name }) => name)
}

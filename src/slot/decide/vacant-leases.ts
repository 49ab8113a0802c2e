import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import { isEqual } from '../../kube/equal.ts'
import type { SlotActionOf } from './actions.ts'
import { latecomerOf } from './ending.ts'
import { nextGrant } from './grant.ts'
import type { MemoryView, SlotMemory } from './memory-view.ts'
import { isWanted } from './origin.ts'
import type { Candidate, SlotSnapshot } from './snapshot.ts'
import { nowAskedFor, stillAskedFor } from './successors.ts'

export interface Vacancy {
  readonly hot: readonly Candidate[]
  /** Slots that wait for a pod made for them, or for their memory. */
  readonly expecting: ReadonlySet<number>
  /** Slots whose latecomer is to be terminated before another pod is called. */
  readonly ending: ReadonlySet<number>
  /** Slots to which a pod is called that is not on stage yet. */
  readonly called: readonly number[]
  /** Slots that another pod cannot have yet: their primaries are gone, but may run where no agent can stop them. */
  readonly outOfReach: readonly number[]
  /** Slots that get no successor before their grants are over. */
  readonly ungranted: ReadonlySet<number>
}

/**
 * Returns the writes for slots without a primary. The node of a pod that was made for a slot becomes a holder as soon
 * as it is known. If the memory that the Lease asks for is not available any more, the Lease asks for less; if a pod is
 * called and newer memory turns up, for more. The Lease tells a pod that did not answer in time to end, as long as another pod could be called.
 */
export function vacantLeases(
  s: SlotSnapshot,
  memory: MemoryView,
  vacancy: Vacancy,
): SlotActionOf<'writeSlot'>[] {
  const { hot, expecting, ending, called, outOfReach, ungranted } = vacancy
  return [...new Set([...expecting, ...ending, ...called, ...outOfReach])].flatMap(
    (number): SlotActionOf<'writeSlot'>[] => {
      const slot = memory.slots.get(number)
      if (slot === undefined) return []
      const { resourceVersion: version, restarts = 0 } = slot
      const { atLeast: before, ...rest } = slot.lease
      const node = hot.find(({ stage }) => stage?.successorOf === number)?.node
      const isExpecting = expecting.has(number)
      const atLeast = isExpecting ? stillAskedFor(slot, s) : nowAskedFor(slot, s)
      const isNew = isExpecting && node !== undefined && !isWanted(rest, node)
      const end = ending.has(number) ? rest.holder.uid : undefined
      const open = unnamedKeepers(slot)
      const isRevoked = outOfReach.includes(number) && rest.fence?.isRevoked === false
      const grant = ungranted.has(number) ? nextGrant(slot, undefined, false) : rest.grant
      if (
        !isNew &&
        !isRevoked &&
        isEqual(grant, rest.grant) &&
        isEqual(atLeast, before) &&
        end === rest.ending &&
        open.length === 0
      )
        return []
      const holders = isNew ? [node, ...rest.holders] : rest.holders
      const kept = rest.kept && [...rest.kept, ...open]
      const lease: NumberedSlotLease = {
        ...{ ...rest, holders, kept, ending: end },
        ...(atLeast && { atLeast }),
        ...(isRevoked && rest.fence && { fence: { ...rest.fence, isRevoked } }),
        ...(grant && { grant }),
      }
      const latecomer = end === rest.ending ? undefined : latecomerOf(s, slot)
      const isUntold = end !== undefined && latecomer?.stage?.resuming !== true
      const unresumed = isUntold && latecomer ? { unresumed: latecomer } : {}
      return [{ type: 'writeSlot', lease, version, restarts, stateLost: false, ...unresumed }]
    },
  )
}

/**
 * Returns the nodes that the Lease should name as keeping memory, and does not. An agent may be gone before it has reported
 * its copies, and the record of a death goes with the pod. A report on a first copy may come in the moment of the death.
 */
function unnamedKeepers({ lease: { kept }, copies, unasked }: SlotMemory): readonly string[] {
  const nodes = [...copies, ...unasked.filter(({ isGuess }) => !isGuess)].map(({ node }) => node)
  return kept === undefined ? [] : nodes.filter(node => !kept.includes(node))
}

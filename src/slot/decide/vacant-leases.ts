import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import type { Heir } from '../../api/slot-lease.ts'
import { isEqual } from '../../kube/equal.ts'
import type { SlotActionOf } from './actions.ts'
import { isExpectedToGo, latecomerOf } from './ending.ts'
import { nextGrant } from './grant.ts'
import { mayInherit } from './heirs.ts'
import { keepersOf } from './knowledge.ts'
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
  /** Slots whose primaries are gone, and have not been stopped yet. */
  readonly waiting: readonly number[]
}

/**
 * Returns the writes for slots without a primary. The node of a pod that was made for a slot becomes a holder as soon
 * as it is known. The pod becomes the heir once it runs, if the primary is being deleted: that serves on until the heir stands by. If
 * the memory that the Lease asks for is not available any more, the Lease asks for less; if a pod is called and newer memory turns up, for more. The Lease tells a pod that did not answer in time to end, as long as another pod could be called.
 */
export function vacantLeases(
  s: SlotSnapshot,
  memory: MemoryView,
  vacancy: Vacancy,
): SlotActionOf<'writeSlot'>[] {
  const { hot, expecting, ending, called, outOfReach, ungranted, waiting } = vacancy
  const changing = new Set([...expecting, ...ending, ...called, ...outOfReach])
  const naming = waiting.filter(number => !changing.has(number))
  return [
    ...naming.flatMap(number => nameKeepers(memory.slots.get(number))),
    ...[...changing].flatMap((number): SlotActionOf<'writeSlot'>[] => {
      const slot = memory.slots.get(number)
      if (slot === undefined) return []
      const { resourceVersion: version, restarts = 0 } = slot
      const { atLeast: before, ...rest } = slot.lease
      const made = hot.find(({ stage }) => stage?.successorOf === number)
      const node = made?.node
      const isExpecting = expecting.has(number)
      const atLeast = isExpecting ? stillAskedFor(slot, s) : nowAskedFor(slot, s)
      const isNew = isExpecting && node !== undefined && !isWanted(rest, node)
      const end = ending.has(number) ? rest.holder.uid : undefined
      const kept = keepersOf(slot)
      const isRevoked = outOfReach.includes(number) && rest.fence?.isRevoked === false
      const isServing = waiting.includes(number) && isExpectedToGo(slot, s.monotonicNow)
      const isHeirLess = rest.grant === undefined && !hot.some(({ uid }) => uid === rest.heir?.uid)
      const named = isExpecting && isServing && isHeirLess ? heirIn(made, rest) : undefined
      const heir = named ?? rest.heir
      const grant = ungranted.has(number) ? nextGrant(slot, undefined) : rest.grant
      if (
        !isNew &&
        !isRevoked &&
        isEqual(grant, rest.grant) &&
        isEqual(heir, rest.heir) &&
        isEqual(atLeast, before) &&
        end === rest.ending &&
        isEqual(kept, rest.kept)
      )
        return []
      // An heir's node is the first one: others wait for it (src/agent/transfer/precedence.ts).
      const first = isNew || named !== undefined ? node : undefined
      const others = rest.holders.filter(holder => holder !== first)
      const holders = first === undefined ? rest.holders : [first, ...others]
      const lease: NumberedSlotLease = {
        ...{ ...rest, heir, holders, kept, ending: end },
        ...(atLeast && { atLeast }),
        ...(isRevoked && rest.fence && { fence: { ...rest.fence, isRevoked } }),
        ...(grant && { grant }),
      }
      const latecomer = end === rest.ending ? undefined : latecomerOf(s, slot)
      const isUntold = end !== undefined && latecomer?.stage?.resuming !== true
      const unresumed = isUntold && latecomer ? { unresumed: latecomer } : {}
      return [{ type: 'writeSlot', lease, version, restarts, stateLost: false, ...unresumed }]
    }),
  ]
}

/** The pod that was made for a slot, if it runs and the memory of the slot can be frozen in it. */
const heirIn = (
  made: Candidate | undefined,
  { slot, node, restoreHash }: Pick<NumberedSlotLease, 'slot' | 'node' | 'restoreHash'>,
): Heir | undefined =>
  made?.stage?.containers === undefined ||
  made.stage.failed !== undefined ||
  !mayInherit({ node: made.node ?? '', restoreHash: made.stage.restoreHash }, { slot, node, restoreHash })
    ? undefined
    : { name: made.name, uid: made.uid, ip: made.stage.ip }

/** Changes nothing else in the Lease of a slot that may not have another pod yet. */
export function nameKeepers(slot: SlotMemory | undefined): SlotActionOf<'writeSlot'>[] {
  if (slot === undefined) return []
  const { lease, resourceVersion: version, restarts = 0 } = slot
  const kept = keepersOf(slot)
  if (isEqual(kept, lease.kept)) return []
  return [{ type: 'writeSlot', lease: { ...lease, kept }, version, restarts, stateLost: false }]
}

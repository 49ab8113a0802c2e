import type { SlotPolicy } from '../../api/slot-policy.ts'
import { isEqual } from '../../kube/equal.ts'
import type { Action, Tier } from '../plan.ts'
import type { Snapshot } from '../snapshot.ts'

/**
 * Puts the set's policy into each Lease that the plan writes, and adds a write for every other Lease with another policy.
 * Agents read nothing else about a set: also those of a paused set must hear of it.
 */
export function withPolicies(s: Snapshot, tiers: readonly Tier[]): readonly Tier[] {
  const stamped = tiers.map(tier => ({ ...tier, actions: tier.actions.map(action => stamp(s, action)) }))
  const touched = new Set(stamped.flatMap(({ actions }) => actions.flatMap(slotOf)))
  const actions = slotsOf(s).flatMap(({ slot, version, present }): Action[] => {
    const policy = policyFor(s, present)
    return policy === undefined || isEqual(policy, present) || touched.has(slot)
      ? []
      : [{ type: 'writePolicy', slot, version, policy }]
  })
  return actions.length === 0 ? stamped : [...stamped, { tier: 'assignments', aside: true, actions }]
}

/**
 * Returns the policy in force for a slot whose Lease has this one. Without a readable spec the policy of the last
 * accepted one stays, but it can be paused. A set that keeps no memory any more deletes its Leases, unless it is paused.
 */
function policyFor(
  { set: { paused }, policy, isSpecPartial }: Snapshot,
  present: SlotPolicy | undefined,
): SlotPolicy | undefined {
  const inForce = isSpecPartial ? (present ?? policy) : (policy ?? present)
  return inForce && { ...inForce, paused }
}

interface SlotWithPolicy {
  readonly slot: number
  readonly version: string
  readonly present: SlotPolicy | undefined
}

const slotsOf = ({ memory, formerSlots = [] }: Snapshot): readonly SlotWithPolicy[] => [
  ...[...(memory?.slots.values() ?? [])].map(({ lease: { slot, policy }, resourceVersion }) => ({
    ...{ slot, present: policy },
    version: resourceVersion,
  })),
  ...formerSlots.map(({ slot, lease, policy }) => ({
    ...{ slot, present: policy },
    version: lease.resourceVersion,
  })),
]

function stamp(s: Snapshot, action: Action): Action {
  if (action.type !== 'writeSlot' && action.type !== 'promote' && action.type !== 'giveUp') return action
  const { lease } = action
  const policy = policyFor(s, s.memory?.slots.get(lease.slot)?.lease.policy)
  return policy === undefined ? action : { ...action, lease: { ...lease, policy } }
}

/** The slot whose Lease the action writes or deletes. */
function slotOf(action: Action): readonly number[] {
  switch (action.type) {
    case 'writeSlot':
    case 'giveUp':
      return [action.lease.slot]
    case 'promote':
      return action.version === undefined ? [] : [action.lease.slot]
    case 'deleteSlot':
      return [action.slot]
    default:
      return []
  }
}

import type { LeftMemory } from '../../api/pod-contract.ts'
import type { SlotKey } from '../../api/slot-key.ts'
import type { SlotPolicy } from '../../api/slot-policy.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { isEqual } from '../../kube/equal.ts'
import { isGranted } from '../decide/grants.ts'
import { isAtStake, isToEnd, nowhere, wayFrom } from '../decide/slot-facts.ts'
import { usabilityOf } from '../decide/usability.ts'
import { policiesOf } from '../observe/observe.ts'
import { isFor, isServing } from '../observe/pod-facts.ts'
import type { PodView, Snapshot } from '../observe/snapshot.ts'

/** The latest snapshot, and what follows from it for one pod or one slot. */
export interface Present {
  /** Takes another snapshot. */
  look(): void
  readonly snapshot: Snapshot
  /** By uid. */
  readonly pods: ReadonlyMap<string, PodView>
  podOf(uid: string): PodView | undefined
  /** Name of the slot that this pod holds by the Lease. */
  slotHeldBy(uid: string): string | undefined
  /** The policy of a slot; undefined: it is unknown, or the slot is gone. */
  policyOf(slot: SlotKey): SlotPolicy | undefined
  /** How long the voters of this pod's slot wait for heartbeats, ms; undefined: it has none. */
  timeoutOf(uid: string): number | undefined
  /** Whether the primary with this uid is to be stopped at once; see `isToEnd`. */
  isToEnd(uid: string): boolean
  /** Name of the slot that this pod holds, or held; for the record. */
  slotOf(pod: PodView): string
  /** Whether the end of this pod's app is a death to declare; see `Deaths`. */
  matters(pod: PodView): boolean
  /** How many pods of this node are being deleted, whose apps do not know that yet. */
  heldPods(): number
  /** Where connections to this primary lead once it is dead; see `wayFrom`. */
  wayOf(uid: string): string | undefined
  /** Whether connections to this pod lead to another pod once it is dead. */
  hasHeir(pod: PodView): boolean
  /** Whether the agent of the heir may let it take this pod's slot without the operator. */
  hasGrant(pod: PodView): boolean
  /** Returns the memory of this pod's slot that this node could restore now; see `ServingRecord`. */
  leftOf(pod: PodView): Omit<LeftMemory, 'at'> | undefined
}

/** @param onRequest called when a policy or state has changed on which the checkpoints of this pod depend. */
export function createPresent(observe: () => Snapshot, onRequest: (uid: string) => void): Present {
  let snapshot = observe()
  let pods: ReadonlyMap<string, PodView> = new Map()
  let held: ReadonlyMap<string, string> = new Map()
  const leaseOf = (uid: string) => snapshot.slots.find(({ holder }) => holder.uid === uid)
  const wayOf = (uid: string) => {
    const lease = leaseOf(uid)
    return lease && wayFrom(snapshot, lease)
  }
  return {
    look() {
      const before = pods
      const policiesBefore = policiesOf(snapshot.slots)
      snapshot = observe()
      pods = new Map(snapshot.pods.map(pod => [pod.uid, pod]))
      const policies = policiesOf(snapshot.slots)
      for (const pod of snapshot.pods) {
        const old = before.get(pod.uid)
        if (
          pod.checkpointRequest !== old?.checkpointRequest ||
          isServing(pod) !== (old !== undefined && isServing(old)) ||
          !isEqual(policies.get(pod.uid), policiesBefore.get(pod.uid))
        )
          onRequest(pod.uid)
      }
      held = new Map(snapshot.slots.map(lease => [lease.holder.uid, slotName(lease)]))
    },
    get snapshot() {
      return snapshot
    },
    get pods() {
      return pods
    },
    podOf: uid => pods.get(uid),
    slotHeldBy: uid => held.get(uid),
    policyOf: slot => snapshot.slots.find(lease => slotName(lease) === slotName(slot))?.policy,
    timeoutOf: uid => leaseOf(uid)?.fence?.timeoutMs,
    isToEnd(uid) {
      const [pod, lease] = [pods.get(uid), leaseOf(uid)]
      return pod !== undefined && lease !== undefined && isToEnd(snapshot, lease, pod)
    },
    slotOf: pod => held.get(pod.uid) ?? `${pod.namespace}.${pod.slot ?? '-'}`,
    matters(pod) {
      const lease = leaseOf(pod.uid)
      // The set has no place for its slot: the pod ends in its grace period, and gets no successor.
      if (pod.terminating && lease?.retainedSince !== undefined) return false
      // An understudy whose app has ended only holds the place: only a successor continues its memory.
      return lease !== undefined && (pod.understudy || pod.terminating || isAtStake(snapshot, lease))
    },
    heldPods: () => snapshot.pods.filter(({ heldEnd }) => heldEnd !== undefined).length,
    wayOf,
    hasHeir(pod) {
      if (leaseOf(pod.uid) !== undefined) return ![undefined, nowhere].includes(wayOf(pod.uid))
      return snapshot.slots.some(each => isFor(each, pod) && each.name === pod.slot && each.ip !== undefined)
    },
    hasGrant(pod) {
      const lease = leaseOf(pod.uid)
      return lease !== undefined && isGranted(snapshot, lease)
    },
    leftOf(pod) {
      const lease = leaseOf(pod.uid)
      // It may have been saved since the last look.
      const now = observe()
      const kept = lease && now.kept.get(slotName(lease))
      if (lease === undefined || kept === undefined) return undefined
      const { usable } = usabilityOf(now, lease)
      if (usable === undefined) return undefined
      const { epoch, generation } = kept
      const takenAt = new Date(kept.takenAt).toISOString()
      return { epoch, generation, takenAt, usable: usable === 'Cold' ? 'Cold' : 'Staged' }
    },
  }
}

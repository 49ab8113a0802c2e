import { podConditions, servingReasons, spoiledReason } from '../../api/pod-contract.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { isDead, isFor, isFreeUnderstudy } from '../observe/pod-facts.ts'
import type { PodView, Snapshot } from '../observe/snapshot.ts'
import type { PodCondition } from '../report/conditions.ts'
import { byNumber } from './slot-facts.ts'
import { usabilityOf } from './usability.ts'

/** Returns the condition that is to be written to a pod; undefined: it shows what it should. Pure. */
export function conditionToWrite(snapshot: Snapshot, pod: PodView): PodCondition | undefined {
  const revival = revivalOf(snapshot, pod)
  const condition = revival ?? understudyConditionOf(snapshot, pod)
  const present = revival === undefined ? pod.understudyState : pod.serving
  if (condition === undefined) return undefined
  const isWaiting = condition.type === podConditions.understudy && isFreeUnderstudy(snapshot, pod)
  // While containers start, the kubelet often writes at the same time. A pod that was made for a slot may be called as soon as they run.
  if ((isWaiting || pod.madeForSlot) && pod.serving === undefined)
    return { ...condition, gate: { ...waiting, ifVersion: pod.resourceVersion } }
  const isShown =
    present?.status === condition.status &&
    present.reason === condition.reason &&
    present.message === condition.message
  return isShown ? undefined : condition
}

/**
 * The condition `serving` of a pod that waits for a slot and has been on no stage.
 *
 * The kubelet looks at a pod at once when the text about its readiness gates changes, and does not look at it again
 * before its next look at all containers, up to a second later. Without this condition, a takeover would begin with
 * such a change (`Resuming`), so that the kubelet would publish the pod as ready half a second late.
 */
const waiting = {
  status: 'False',
  reason: servingReasons.offStage,
  message: 'it waits for a slot',
} as const

/** Returns the condition `understudy` of a pod that waits for a slot; undefined for any other pod. Pure. */
export function understudyConditionOf(snapshot: Snapshot, pod: PodView): PodCondition | undefined {
  if (!pod.understudy || pod.terminating || snapshot.slots.some(({ holder }) => holder.uid === pod.uid))
    return undefined
  const type = podConditions.understudy
  const no = (reason: string, message: string) => ({ type, status: 'False', reason, message }) as const
  if (!snapshot.able) return no('NodeNotReady', 'this node cannot restore memory; its NodeReport says why')
  if (snapshot.spoiled?.has(pod.uid))
    return no(
      spoiledReason,
      'an earlier restore left changes that the agent cannot undo: the operator replaces it',
    )
  if (!isFreeUnderstudy(snapshot, pod)) return no('NotHolding', 'its containers do not run as an understudy')
  const stage = snapshot.stages.get(pod.uid)
  const slots = snapshot.slots
    .filter(lease => isFor(lease, pod))
    .map(lease => ({ lease, use: usabilityOf(snapshot, lease) }))
  const frozen = slots.find(({ lease }) => stage?.state === 'Frozen' && stage.slot === slotName(lease))
  if (frozen !== undefined)
    return { type, status: 'True', reason: 'Frozen', message: `slot ${frozen.lease.name} is frozen here` }
  const staged = slots
    .filter(({ use }) => use.usable === 'Frozen' || use.usable === 'Staged')
    .map(({ lease }) => lease.name)
  if (staged.length > 0)
    return {
      type,
      status: 'True',
      reason: 'Staged',
      message: `can take over slot ${staged.sort(byNumber).join(', ')}`,
    }
  const [first] = slots.filter(({ lease }) => lease.holders.includes(snapshot.node))
  return no(first?.use.reason ?? 'NoGeneration', first?.use.message ?? 'this node has no memory of the set')
}

/**
 * Returns the condition `serving` of a primary whose slot has begun a new life in it, after a death that left no
 * memory; undefined for any other pod. Pure.
 */
export function revivalOf(snapshot: Snapshot, pod: PodView): PodCondition | undefined {
  const lease = snapshot.slots.find(({ holder }) => holder.uid === pod.uid)
  if (lease === undefined || pod.understudy || pod.terminating) return undefined
  if (!isDead(snapshot, pod) || isDead(snapshot, pod, slotName(lease))) return undefined
  if (!pod.containers.every(({ running }) => running)) return undefined
  return {
    type: podConditions.serving,
    status: 'True',
    reason: servingReasons.onStage,
    message: `slot ${lease.name} started empty after its memory was lost`,
  }
}

import { fits, idsOf, isDead, isUp } from '../observe/pod-facts.ts'
import type { PodView, Snapshot } from '../observe/snapshot.ts'
import type { Slot } from './slot-facts.ts'
import { byNumber } from './slot-facts.ts'
import type { Task, TaskOf } from './task.ts'
import { unfitImages, unfitNode } from './unfit.ts'

/** Watches a gate, and opens it if the operator asks: the operator could not reach the gate itself. */
export function ofGate(pod: PodView): Task[] {
  if (!pod.understudy || pod.terminating || pod.gate === undefined) return []
  const { containerId, order } = pod.gate
  const attend: Task = { type: 'watchGate', key: `watchGate/${pod.uid}`, version: containerId, pod }
  return order === undefined
    ? [attend]
    : [attend, { type: 'wake', key: `wake/${pod.uid}`, version: `${containerId} ${order}`, pod }]
}

/**
 * Clears an understudy that no Lease names and in which memory cannot be restored now. It may have been promoted
 * before, and its agent may have died between the thaw and the report. Then two pods would run with one memory,
 * whatever the pod's label says by now, whether it ends, and whatever else this node can do.
 */
export function ofUnnamed(snapshot: Snapshot, pod: PodView): Task[] {
  if (!pod.understudy || (pod.kind !== 'hotbackup' && pod.kind !== 'coldbackup')) return []
  if (isDead(snapshot, pod) || pod.containers.length === 0 || !pod.containers.every(isUp)) return []
  // A preStop hook over HTTP would wait for a frozen app, because its kernel still accepts connections.
  return [clear(pod, pod.terminating)]
}

const clear = (pod: PodView, frozenToo: boolean): TaskOf<'discard'> => ({
  type: 'discard',
  key: `discard/${pod.uid}`,
  version: `${idsOf(pod)} ${frozenToo}`,
  memoryOf: pod.uid,
  pod,
  frozenToo,
})

export function ofUnderstudy(snapshot: Snapshot, slots: readonly Slot[], pod: PodView): Task[] {
  const ids = idsOf(pod)
  const present = snapshot.stages.get(pod.uid)
  // Its clone may be of use again as soon as the policy is known.
  const unknown = slots.filter(({ lease }) => lease.policy === undefined)
  if (unknown.some(({ name }) => name === present?.slot)) return [clear(pod, false)]
  const restorable = slots.flatMap(slot => {
    const kept = snapshot.kept.get(slot.name)
    if (kept === undefined || slot.lease.policy === undefined || kept.restoreHash !== pod.restoreHash)
      return []
    if (unfitNode(snapshot, kept) !== undefined || unfitImages(pod, kept) !== undefined) return []
    return [{ ...slot, kept }]
  })
  const own = restorable.filter(
    ({ lease, kept }) => lease.heir?.uid === pod.uid && lease.policy?.mode === 'Frozen' && fits(pod, kept),
  )
  // Memory that is already there goes first: all slots are equal, and a change costs a restore. A primary that is
  // stopped for this very pod comes before all.
  const awaited = own.find(({ lease }) => lease.handover === pod.uid)
  const chosen = awaited ?? own.find(({ name }) => name === present?.slot) ?? bySlot(own)[0]
  if (chosen !== undefined)
    return [
      {
        type: 'freeze',
        key: `freeze/${pod.uid}`,
        version: `${chosen.name} ${ids}`,
        memoryOf: pod.uid,
        pod,
        lease: chosen.lease,
      },
    ]
  const unproven = bySlot(restorable).find(({ kept }) => !snapshot.proven.has(kept.restoreHash))
  // An agent that starts has not yet looked at what lies in it.
  if (unproven === undefined) return [clear(pod, present !== undefined || unknown.length === 0)]
  return [
    {
      type: 'verifyRestore',
      key: `verifyRestore/${pod.uid}`,
      version: `${unproven.name} ${unproven.kept.restoreHash} ${ids}`,
      memoryOf: pod.uid,
      pod,
      lease: unproven.lease,
    },
  ]
}

const bySlot = <T extends Slot>(slots: readonly T[]): T[] =>
  [...slots].sort((a, b) => byNumber(a.lease.name, b.lease.name))

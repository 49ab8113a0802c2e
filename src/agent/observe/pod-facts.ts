import { servingReasons } from '../../api/pod-contract.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { Kept, PodView, Snapshot } from './snapshot.ts'

/**
 * Whether the pod belongs to the owner of this slot. A set may have been deleted and made again under its name before the
 * garbage collector has removed its pods and Leases: the new set must not get the old set's memory.
 */
export const isFor = (
  { namespace, group, owner }: SlotLease,
  pod: Pick<PodView, 'namespace' | 'group' | 'owner'>,
): boolean =>
  pod.namespace === namespace &&
  pod.group === group &&
  (owner === undefined || pod.owner === undefined || owner === pod.owner)

/** Whether the pod is an understudy in which this node can restore memory now. */
export const isFreeUnderstudy = (snapshot: Snapshot, pod: PodView): boolean =>
  snapshot.able &&
  pod.understudy &&
  pod.kind === 'hotbackup' &&
  !pod.terminating &&
  !isDead(snapshot, pod) &&
  pod.ip !== undefined &&
  pod.containers.length > 0 &&
  pod.containers.every(isUp)

export const isUp = ({ running, containerId }: PodView['containers'][number]) =>
  running && containerId !== undefined

/**
 * Whether the memory of a slot in this pod is gone. A slot that has begun a new life in the same pod has other memory.
 *
 * @param slot name of the slot; undefined: any slot.
 */
export function isDead({ dead }: Pick<Snapshot, 'dead'>, pod: PodView, slot?: string): boolean {
  const told = dead.get(pod.uid)
  if (told !== undefined && (slot === undefined || told === slot)) return true
  if (pod.serving?.status !== 'False' || pod.serving.reason !== servingReasons.died) return false
  const died = pod.serving.record.diedWith
  return slot === undefined || died === undefined || died === slot
}

/** True if the running containers are the ones that were put on stage, as far as the condition says. */
export const saysOnStage = ({ serving, containers }: PodView): boolean =>
  serving?.status === 'True' &&
  containers.every(
    ({ name, containerId }) => containerId !== undefined && serving.record.containers?.[name] === containerId,
  )

/**
 * Whether the pod serves. The readiness of an understudy on stage follows its condition `serving`, up to a second late.
 */
export const isServing = (pod: PodView): boolean =>
  pod.understudy ? pod.serving?.status === 'True' : pod.ready

/** A frozen tree counts against the understudy's memory limits in full, and the app needs some room on top. */
export const fits = (pod: PodView, { memory }: Pick<Kept, 'memory'>): boolean =>
  pod.containers.every(
    ({ name, memoryLimit }) => memoryLimit === undefined || (memory.get(name) ?? 0) * 1.1 <= memoryLimit,
  )

/** Names and ids of the pod's containers. */
export const idsOf = (pod: PodView): string =>
  pod.containers.map(({ name, containerId }) => `${name}=${containerId ?? ''}`).join(',')

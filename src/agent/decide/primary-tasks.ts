import { servingReasons } from '../../api/pod-contract.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { SlotPolicy } from '../../api/slot-policy.ts'
import { elsewhere } from '../observe/elsewhere.ts'
import { idsOf, isDead, isFor, isServing, isUp, saysOnStage } from '../observe/pod-facts.ts'
import type { PodView, Snapshot } from '../observe/snapshot.ts'
import { ofContradicted, ofGuarded } from './fence-tasks.ts'
import { ofGrant, ofHeir } from './grants.ts'
import type { Slot } from './slot-facts.ts'
import { anotherIn, isOnStage, isPaused, isToEnd, nowhere, wayFrom } from './slot-facts.ts'
import type { Task } from './task.ts'

/** The tasks for the pod of this node that a slot's Lease names. */
export function ofPrimary(snapshot: Snapshot, slot: Slot, pod: PodView): Task[] {
  const { lease, name } = slot
  if (isDead(snapshot, pod, name)) return [...ofDead(snapshot, slot, pod), ...ofGrant(snapshot, slot, pod)]
  const onStage = isOnStage(snapshot, lease, pod)
  const ids = idsOf(pod)
  const about = { pod, lease }
  if (pod.terminating || lease.ending === pod.uid) {
    if (!isToEnd(snapshot, lease, pod)) return []
    const policy = lastSaveOf(snapshot, slot, pod)
    // A dump may take seconds, and a primary that is to end need not complete it: this task runs beside the dump. A last save waits until
    // the dump has been cancelled.
    const last = policy && { memoryOf: pod.uid, lastSave: policy }
    return [{ type: 'stopPrimary', key: `stopPrimary/${pod.uid}`, version: name, ...about, ...last }]
  }
  if (!pod.containers.every(isUp) || pod.ip === undefined)
    return onStage || !pod.understudy
      ? []
      : [
          {
            type: 'fetch',
            key: `fetch/${name}`,
            version: `${lease.epoch}`,
            lease,
            others: elsewhere(snapshot, lease),
          },
        ]
  if (!onStage) {
    // The set no longer has a place for its slot: the promotion is void.
    if (lease.retainedSince !== undefined) return []
    const version = `${name} ${lease.epoch} ${ids}`
    return [{ type: 'promote', key: `promote/${pod.uid}`, version, memoryOf: pod.uid, ...about }]
  }
  return ofPrimaryOnStage(snapshot, slot, pod)
}

/** Returns how to save a primary that is being deleted, if its app does not know that, and another node keeps its memory. */
function lastSaveOf(snapshot: Snapshot, { lease }: Slot, pod: PodView): SlotPolicy | undefined {
  if (pod.heldEnd === undefined || lease.ending === pod.uid || !pod.containers.every(isUp)) return undefined
  // A user may delete it to get rid of its state: its successor continues from the last one that served.
  if (!isServing(pod)) return undefined
  return snapshot.able && isKeptElsewhere(snapshot, lease) && anotherIn(snapshot, lease, pod) === undefined
    ? lease.policy
    : undefined
}

const isKeptElsewhere = ({ node }: Snapshot, { unsaved, holders }: SlotLease): boolean =>
  unsaved !== true && holders.some(holder => holder !== node)

function ofPrimaryOnStage(snapshot: Snapshot, slot: Slot, pod: PodView): Task[] {
  const { lease, name } = slot
  const { policy } = lease
  const ids = idsOf(pod)
  const about = { pod, lease }
  const way = wayFrom(snapshot, lease)
  const tasks: Task[] = [
    {
      type: 'watchPrimary',
      key: `watchPrimary/${pod.uid}`,
      version: `${snapshot.sentinel} ${name} ${lease.epoch} ${ids} ${way ?? ''}${lease.grant === undefined ? '' : ' granted'}`,
      pod,
      lease,
      way,
    },
    ...ofGuarded(snapshot, slot, pod),
    ...ofContradicted(snapshot, slot, pod),
    ...ofHeir(snapshot, slot),
  ]
  if (pod.understudy || policy?.liveness !== undefined)
    tasks.push({
      type: 'probe',
      key: `probe/${pod.uid}`,
      version: `${name} ${lease.epoch} ${ids}`,
      ...about,
    })
  // How often to save, and how much, is not known.
  if (policy === undefined) return tasks
  // A stopped primary fails its probes; that is no reason to resume it.
  // A container that replaced the one with the slot's memory is not saved: its generation would count as a continuation.
  const maySave =
    snapshot.able && isKeptElsewhere(snapshot, lease) && anotherIn(snapshot, lease, pod) === undefined
  if (maySave && lease.handover !== undefined && !snapshot.handoversPaused.has(name))
    return [
      ...tasks,
      {
        type: 'handOver',
        key: `handOver/${pod.uid}`,
        version: `${name} ${lease.epoch} ${ids} ${lease.handover} ${lease.handovers ?? ''}`,
        memoryOf: pod.uid,
        ...{ ...about, policy },
      },
    ]
  // The version contains neither the pace nor the readiness: their change must not abort a dump in progress.
  if (maySave)
    tasks.push({
      type: 'checkpoint',
      key: `checkpoint/${pod.uid}`,
      version: `${name} ${lease.epoch} ${ids}`,
      memoryOf: pod.uid,
      ...{ ...about, policy },
    })
  return tasks
}

/**
 * A promoted understudy has no probes of its own in its spec, so the agent probes it even if its set keeps no memory
 * any more: then its slot has no Lease. Such a pod may stay for long, where pods are replaced only when they are deleted.
 */
export function ofLeftOnStage({ slots, dead }: Snapshot, pod: PodView): Task[] {
  if (!pod.understudy) return []
  if (slots.some(lease => lease.holder.uid === pod.uid || (isFor(lease, pod) && lease.name === pod.slot)))
    return []
  if (pod.kind !== 'primary' || pod.terminating || isDead({ dead }, pod)) return []
  if (!pod.containers.every(isUp) || pod.ip === undefined) return []
  if (!saysOnStage(pod) && pod.serving?.reason !== servingReasons.notAnswering) return []
  return [{ type: 'probe', key: `probe/${pod.uid}`, version: `without memory ${idsOf(pod)}`, pod }]
}

/** Tasks for a dead primary without a successor. Its heir may have got another slot since, or be gone. */
function ofDead(snapshot: Snapshot, { lease, name }: Slot, pod: PodView): Task[] {
  if (isPaused(lease)) return []
  const to = wayFrom(snapshot, lease) ?? nowhere
  const version = `${name} ${snapshot.sentinel} ${idsOf(pod)} ${to}`
  return [{ type: 'redirect', key: `redirect/${pod.uid}`, version, pod, lease, to, isAwaited: true }]
}

/** Former primaries that still run although the slot is another pod's: two pods must not answer with one memory. */
export function ofLosers(snapshot: Snapshot, { lease, name }: Slot): Task[] {
  const losers = snapshot.pods.filter(
    pod =>
      isFor(lease, pod) &&
      pod.slot === lease.name &&
      pod.uid !== lease.holder.uid &&
      (pod.kind === 'primary' || pod.kind === 'retired') &&
      pod.epoch < lease.epoch,
  )
  return losers.flatMap((pod): Task[] => {
    const to = lease.ip ?? nowhere
    // A redirect that was to open by itself is renewed.
    const version = `${name} ${lease.epoch} ${snapshot.sentinel} ${idsOf(pod)} ${to}`
    if (isDead(snapshot, pod))
      return [{ type: 'redirect', key: `redirect/${pod.uid}`, version, pod, lease, to, isAwaited: false }]
    return [{ type: 'stopPrimary', key: `stopPrimary/${pod.uid}`, version: name, pod, lease }]
  })
}

/**
 * A dead pod whose heir answers its connections. The operator changes its kind when the successor is in the Services, so
 * that most Services drop it; a successor may take long or fail, and a Service need not select by kind.
 */
export function ofServices(pod: PodView): Task[] {
  if (pod.serving?.heirAnswers !== true || pod.terminating) return []
  const { message } = pod.serving
  return [{ type: 'leaveServices', key: `leaveServices/${pod.uid}`, version: message, pod }]
}

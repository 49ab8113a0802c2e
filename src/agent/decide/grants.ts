/** Whether an agent uses the grant of a slot, and whether it agrees to one. Pure. */
import type { GoRequest } from '../../api/grant.ts'
import type { Least } from '../../api/least.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import { stepsBehind } from '../../slot/decide/age.ts'
import { overIn } from '../observe/grant-word.ts'
import { isDead, isFor, isFreeUnderstudy } from '../observe/pod-facts.ts'
import type { GrantRecord, PodView, Snapshot } from '../observe/snapshot.ts'
import { isPaused, type Slot } from './slot-facts.ts'
import type { Task } from './task.ts'
import { unfitImages } from './unfit.ts'
import { usabilityOf } from './usability.ts'

/** Returns the grant by which the heir of this slot may take it without the operator. */
function usable({ grants, reports }: Snapshot, { lease, name }: Slot) {
  const { grant, heir } = lease
  if (grant?.heir === undefined || grant.isRevoked || heir?.uid !== grant.heir.uid) return undefined
  if (isPaused(lease) || lease.retainedSince !== undefined) return undefined
  const record = grants.records.get(name)
  const isOpen = record?.answer === 'Prepared' || record?.answer === 'Unknown'
  const isOver = record?.epoch === lease.epoch && record.number >= grant.number && !isOpen
  const report = reports.get(grant.heir.node)
  // An agent that has not seen the primary alive does not know what earlier ones have said.
  if (isOver || report === undefined || grants.alive.get(name) !== lease.epoch) return undefined
  const to = { address: report.address, fingerprint: report.fingerprint }
  return { number: grant.number, node: grant.heir.node, heir, to }
}

/** Whether the agent of the heir may let it take this slot without the operator. */
export const isGranted = (snapshot: Snapshot, lease: SlotLease): boolean =>
  usable(snapshot, { lease, name: slotName(lease) }) !== undefined

/** The task to keep a connection to the heir's agent while the primary lives, if the Lease has a grant. */
export function ofHeir(snapshot: Snapshot, slot: Slot): Task[] {
  const to = usable(snapshot, slot)?.to
  if (to === undefined) return []
  const version = `${to.address} ${to.fingerprint}`
  return [{ type: 'reachHeir', key: `reachHeir/${slot.name}`, version, to }]
}

/** The task to tell the heir's agent that the primary is dead, if the Lease has a grant. */
export function ofGrant(snapshot: Snapshot, slot: Slot, pod: PodView): Task[] {
  const { lease, name } = slot
  const grant = usable(snapshot, slot)
  if (grant === undefined || snapshot.dead.get(pod.uid) !== name) return []
  const { heir, to } = grant
  const own = snapshot.kept.get(name)
  return [
    {
      type: 'sayGo',
      key: `sayGo/${pod.uid}`,
      version: `${name} ${lease.epoch} ${grant.number}`,
      pod,
      heir: { name: heir.name, uid: heir.uid, ip: heir.ip, node: grant.node },
      to,
      request: {
        slot: { namespace: lease.namespace, name: lease.name, incarnation: lease.incarnation },
        ...{ epoch: lease.epoch, number: grant.number, uid: heir.uid },
        ...(own && { atLeast: { epoch: own.epoch, generation: own.generation, takenAt: own.takenAt } }),
      },
    },
  ]
}

/** True if this heir may run, and neither its condition nor a failed restore says how it is. */
export function isUntold(snapshot: Snapshot, pod: PodView | undefined): boolean {
  if (pod === undefined || isDead(snapshot, pod) || pod.serving?.status === 'True') return false
  const state = snapshot.stages.get(pod.uid)?.state
  const isThawed = state === 'Thawed' || state === 'OnStage'
  return isThawed || pod.understudyState?.reason !== 'RestoreFailed'
}

/** A judgement, with the pod that would get the slot. */
export type Judgement =
  | {
      readonly answer: 'Accepted'
      readonly pod: PodView
      readonly atLeast: Least | undefined
      readonly isAnnounced: boolean
    }
  | { readonly answer: 'Refused' | 'Later'; readonly why: string }

/**
 * Judges the request of another node.
 *
 * @param from the node whose pinned key the request has.
 * @param known the latest record of the slot here.
 */
export function judgeGo(
  snapshot: Snapshot,
  request: GoRequest,
  from: string,
  known: GrantRecord | undefined,
): Judgement | 'AcceptedBefore' {
  const refused = (why: string) => ({ answer: 'Refused', why }) as const
  const later = (why: string) => ({ answer: 'Later', why }) as const
  const { epoch, number, uid } = request
  if (known?.epoch === epoch && known.number >= number)
    return known.number === number && known.answer === 'Accepted' && known.heir.uid === uid
      ? 'AcceptedBefore'
      : refused('this grant is over')
  const name = slotName(request.slot)
  const lease = snapshot.slots.find(each => slotName(each) === name)
  if (lease === undefined || lease.epoch < epoch) return later('this node does not know that Lease yet')
  const { grant } = lease
  if (lease.epoch === epoch && (grant?.number ?? 0) < number)
    return later('this node does not know that grant yet')
  if (lease.epoch > epoch || grant === undefined || overIn(lease) >= number || grant.heir?.uid !== uid)
    return refused('the Lease has no such grant any more')
  // Another node has no say in it, so its request ends nothing.
  if (from !== lease.node || grant.heir.node !== snapshot.node)
    return later('the request is from another node')
  if (!snapshot.able) return later('this node cannot restore memory now')
  if (isPaused(lease) || lease.policy === undefined || lease.retainedSince !== undefined)
    return refused('the slot gets no successor now')
  const pod = snapshot.pods.find(each => each.uid === uid)
  const isElsewhere = snapshot.slots.some(({ holder }) => holder.uid === uid)
  if (pod === undefined || isElsewhere || !isFor(lease, pod) || !isFreeUnderstudy(snapshot, pod))
    return refused('the pod cannot take a slot')
  const { isAnnounced = false } = grant
  const accepted = { answer: 'Accepted', pod, atLeast: request.atLeast, isAnnounced } as const
  return judgeMemory(snapshot, lease, pod, request) ?? accepted
}

/** Returns why the pod could not continue with the memory of this node; undefined: it could. */
function judgeMemory(
  snapshot: Snapshot,
  lease: SlotLease,
  pod: PodView,
  { atLeast }: GoRequest,
): Judgement | undefined {
  const refused = (why: string) => ({ answer: 'Refused', why }) as const
  const kept = snapshot.kept.get(slotName(lease))
  const { usable, understudyUid } = usabilityOf(snapshot, lease)
  if (kept === undefined || usable === undefined || usable === 'Cold')
    return refused('no memory is usable here')
  const isThere = usable === 'Frozen' && understudyUid === pod.uid
  const isFit = kept.restoreHash === pod.restoreHash && unfitImages(pod, kept) === undefined
  if (!isThere && !isFit) return refused('the memory does not fit the pod')
  const isOld = [atLeast, lease.atLeast].some(
    least => least !== undefined && stepsBehind(kept, least, lease.policy?.intervalMs ?? 0) > 0,
  )
  return isOld ? refused('another node has newer memory') : undefined
}

/** The next status of a Reservation, and the act that follows. Its pod holds the room until a workload adopts the pod. */
import type { ParsedReservationOrRefused } from '../../api/parse-reservation.ts'
import {
  type Reservation,
  type ReservationPhase,
  type ReservationStatus,
  reservationConditions,
} from '../../api/reservation.ts'
import { conditionLimits, setCondition } from '../../kube/conditions.ts'
import { isEqual } from '../../kube/equal.ts'
import { cutTo } from '../../kube/object.ts'
import type { Resource } from '../../kube/resources.ts'
import { settlesMs } from './arbitrate.ts'
import type { Gate, ReservedPod } from './view.ts'

export interface ReservationView {
  /** Koordinator's kind or ours. */
  readonly resource: Resource<Reservation>
  /** Unique among the reservations of both kinds. */
  readonly key: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly generation: number
  readonly parsed: ParsedReservationOrRefused
  readonly status: ReservationStatus
  /** `foreign`: another pod has its name. Undefined: there is none. */
  readonly pod: ReservedPod | 'foreign' | undefined
  /** For how long the caches have shown no such pod, ms. */
  readonly absentForMs: number
  /** The operator has created it for a job. */
  readonly isOfJob: boolean
}

export const reservationKeyOf = ({ group }: Pick<Resource<Reservation>, 'group'>, name: string): string =>
  `${group}/${name}`

/** An act for a Reservation. Its own existence announces it. */
export type ReservationAction =
  | { readonly type: 'createPod'; readonly view: ReservationView; readonly isGated: boolean }
  | {
      readonly type: 'nominate'
      readonly view: ReservationView
      readonly pod: ReservedPod
      /** Undefined: for none any more. */
      readonly node: string | undefined
    }
  | { readonly type: 'openGate'; readonly view: ReservationView; readonly pod: ReservedPod }
  | { readonly type: 'deletePod'; readonly view: ReservationView; readonly pod: ReservedPod }

export interface ReservationPlan {
  readonly statuses: readonly { readonly view: ReservationView; readonly status: ReservationStatus }[]
  readonly actions: readonly ReservationAction[]
  /** Ms until the next one expires; undefined: none does. */
  readonly againAfterMs: number | undefined
}

export interface Hold {
  /** Reservations that get no pod now, by their keys. */
  readonly held: ReadonlySet<string>
  /** No reservation gets a pod now. */
  readonly isHeld: boolean
  /** Of Reservations that the operator has created for jobs that run: whether their pods get a gate, by their keys. */
  readonly gated: ReadonlyMap<string, boolean>
  /** Gates of the pods of Reservations, by the key of the Reservation. */
  readonly gates: ReadonlyMap<string, Gate>
  /** Wall clock, ms since the epoch. */
  readonly now: number
}

/** Pause while a pod is missing, ms. */
const lookMs = 1_000

export const isOver = ({ status }: Pick<ReservationView, 'status'>): boolean =>
  status.phase === 'Succeeded' || status.phase === 'Failed'

export function decideReservations(views: readonly ReservationView[], hold: Hold): ReservationPlan {
  const { now } = hold
  const words = views.map(view => ({ view, word: wordOf(view, hold) }))
  const ends = views.flatMap(view =>
    isOver(view) || !view.parsed.ok || view.parsed.reservation.expiresAt === undefined
      ? []
      : [view.parsed.reservation.expiresAt - now],
  )
  const looks = words.some(({ view, word }) => !isOver(view) && word.reason === 'PodMissing')
  const later = [...ends, ...(looks ? [lookMs] : [])].filter(ms => ms > 0)
  return {
    statuses: words.flatMap(({ view, word }) => {
      const status = statusAfter(view, word, now)
      return isOver(view) || isEqual(status, view.status) ? [] : [{ view, status }]
    }),
    actions: words.flatMap(({ word }) => (word.action === undefined ? [] : [word.action])),
    againAfterMs: later.length === 0 ? undefined : later.reduce((a, b) => Math.min(a, b)),
  }
}

interface Word {
  readonly phase: ReservationPhase
  /** Of both conditions. */
  readonly reason: string
  readonly message: string
  readonly isScheduled: boolean
  readonly isReady: boolean
  readonly action?: ReservationAction
}

export const failedReservation = (reason: string, message: string): Word => ({
  ...{ phase: 'Failed', reason, message, isScheduled: false, isReady: false },
})

function wordOf(view: ReservationView, { held, isHeld, gates, gated, now }: Hold): Word {
  const { parsed, pod, status, key } = view
  if (isOver(view)) return ended(view)
  if (!parsed.ok) return failedReservation('InvalidReservation', parsed.message)
  if (pod === 'foreign')
    return failedReservation('InvalidReservation', `another pod has the name ${view.name}`)
  if (pod?.isAdopted === true)
    return {
      ...{ phase: 'Succeeded', reason: 'Succeeded', message: 'the workload has the pod' },
      ...{ isScheduled: true, isReady: true },
    }
  const { expiresAt } = parsed.reservation
  if (expiresAt !== undefined && now >= expiresAt)
    return failedReservation('Expired', 'no workload has adopted the pod before the reservation expired')
  if (pod === undefined) {
    // A cache that is read again may be behind for a moment: its silence is no deletion yet.
    if (status.podRef !== undefined && view.absentForMs >= settlesMs)
      return failedReservation('PodDeleted', 'the pod that held the room is gone')
    if (status.podRef !== undefined)
      return waits('PodMissing', 'the operator looks whether the pod that held the room is gone')
    const word = waits('Creating', `pod ${parsed.reservation.owner.namespace}/${view.name} is created`)
    // Whether the pod needs a gate is a matter of its job.
    return isHeld || held.has(key) || (view.isOfJob && !gated.has(key))
      ? word
      : { ...word, action: { type: 'createPod', view, isGated: gated.get(key) === true } }
  }
  if (pod.isTerminating) return failedReservation('PodDeleted', 'the pod that held the room is being deleted')
  if (pod.isGated) return behindGate(view, pod, gates.get(key))
  if (pod.node === undefined)
    return pod.unschedulable === undefined
      ? waits('Scheduling', 'the pod waits for the scheduler')
      : waits('Unschedulable', pod.unschedulable)
  return {
    ...{ phase: 'Available', reason: 'Available', message: `the pod holds room on node ${pod.node}` },
    ...{ isScheduled: true, isReady: true },
  }
}

function behindGate(
  view: ReservationView,
  pod: ReservedPod,
  gate: Gate = { type: 'closed', why: 'noRoom' },
): Word {
  if (gate.type === 'open')
    return {
      ...waits('Scheduling', 'the pod waits for the scheduler'),
      action: { type: 'openGate', view, pod },
    }
  const word =
    gate.type === 'closed'
      ? waits('Unschedulable', closedFor[gate.why])
      : waits('Scheduling', `the pod waits for room on node ${gate.node}`)
  const isFor = gate.type === 'room' || (gate.type === 'giveWay' && gate.isAnnounced)
  const node = isFor ? gate.node : undefined
  // The scheduler keeps the room of a nominated pod, so a nomination that is not true any more goes, too.
  return pod.nominated === node ? word : { ...word, action: { type: 'nominate', view, pod, node } }
}

/** Why a pod stays behind its gate. */
export const closedFor = {
  noRoom: 'no node has room, and no pods of a lower priority can give way and have room elsewhere',
  unjudged:
    'the operator cannot judge where the pod may run, because of volumes, ports, or its distance to other pods: leave preemptionOptions out, and the scheduler decides',
} as const

const waits = (reason: string, message: string): Word => ({
  ...{ phase: 'Pending', reason, message, isScheduled: false, isReady: false },
})

/** The room of a reservation that has failed is free again. A pod that a workload has stays. */
function ended(view: ReservationView): Word {
  const { pod, status } = view
  const word = failedReservation('', '')
  if (status.phase !== 'Failed' || pod === undefined || pod === 'foreign') return word
  return pod.isAdopted || pod.isTerminating ? word : { ...word, action: { type: 'deletePod', view, pod } }
}

export function statusAfter(view: ReservationView, word: Word, now: number): ReservationStatus {
  const { status, parsed, pod, generation, name } = view
  const { phase, reason, message, isScheduled, isReady } = word
  const { scheduled, ready } = reservationConditions
  const flag = (is: boolean) => (is ? 'True' : 'False')
  const about = { message: cutTo(message, conditionLimits.message), now, observedGeneration: generation }
  const conditions = setCondition(
    setCondition(status.conditions ?? [], {
      ...{ ...about, type: scheduled, status: flag(isScheduled) },
      reason: isScheduled ? 'Scheduled' : reason,
    }),
    { ...about, type: ready, status: flag(isReady), reason },
  )
  const found = pod === undefined || pod === 'foreign' ? undefined : pod
  const namespace = parsed.ok ? parsed.reservation.owner.namespace : ''
  const podRef = found && { apiVersion: 'v1', kind: 'Pod', namespace, name, uid: found.uid }
  return {
    ...status,
    phase,
    ...(podRef && { podRef }),
    ...(found?.node !== undefined && { nodeName: found.node }),
    ...(phase === 'Succeeded' && podRef && { currentOwners: [podRef] }),
    conditions,
  }
}

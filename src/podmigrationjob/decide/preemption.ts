/**
 * Preemption for the replacement of a job. The status first names node and pods. The replacement is nominated for that node, and a job with mode
 * ReservationFirst is created for each of the pods. So each of them has a replacement before it goes, and budgets and rules hold for it. The
 * scheduler sees the replacement when the room is there.
 */
import type { ParsedJob } from '../../api/parse-pod-migration-job.ts'
import {
  jobConditions,
  jobLimits,
  type PodMigrationJobStatus,
  type PreemptedPodReservation,
} from '../../api/pod-migration-job.ts'
import type { ObjectReference } from '../../api/reservation.ts'
import { keyOfRef } from '../../kube/object.ts'
import { isTrue } from './adoption.ts'
import { beforeAct, type Rules } from './before-act.ts'
import { closedFor, reservationKeyOf } from './reservation.ts'
import { reservationNameOf } from './reservation-name.ts'
import type { Gate, JobView, PreemptionFacts, PresentReservation } from './view.ts'
import { conditionOf, failed, type Word } from './word.ts'
import type { PodFacts } from './world.ts'

/** The names are the same after each restart, so that no pod gives way twice to one job. */
export const preemptionNameOf = ({ uid }: Pick<JobView, 'uid'>, victim: { readonly uid?: string }): string =>
  `preempt-${uid}-${victim.uid ?? ''}`

const reasons = { under: 'Preempting', complete: 'PreemptComplete' } as const

const refTo = ({ namespace, name, uid }: Pick<PodFacts, 'namespace' | 'name' | 'uid'>): ObjectReference => ({
  ...{ apiVersion: 'v1', kind: 'Pod' },
  ...{ namespace, name, uid },
})

type Facts = Rules & { readonly facts: PresentReservation }

/** The replacement has no node yet. */
export function unscheduled(view: JobView, job: ParsedJob, rules: Facts): Word {
  const { name, pod: replacement, resource } = rules.facts
  if (replacement?.isGated !== true)
    return byScheduler(view, rules) ?? waiting(name, replacement?.unschedulable)
  const gate = rules.gates?.get(reservationKeyOf(resource, name)) ?? { type: 'closed', why: 'noRoom' }
  const { type } = gate
  switch (type) {
    case 'open':
    case 'room': {
      const node = type === 'room' ? gate.node : replacement.nominated
      return settled(view, rules, node, waiting(name, undefined))
    }
    case 'closed':
      return settled(view, rules, undefined, waiting(name, closedFor[gate.why]))
    case 'giveWay':
      return gate.isAnnounced ? underWay(view, job, gate, rules) : toPreempt(view, job, gate, rules)
    default:
      return type satisfies never
  }
}

const waiting = (name: string, unschedulable: string | undefined): Word => ({
  phase: 'Running',
  reason: unschedulable === undefined ? 'Scheduling' : 'Unschedulable',
  message: unschedulable ?? `pod ${name} waits for the scheduler`,
  condition: { type: jobConditions.reservationScheduled, status: 'False' },
})

const preempting = (message: string): Word => ({
  ...{ phase: 'Running', reason: reasons.under, message },
  condition: { type: jobConditions.preemption, status: 'False' },
})

/** Those that have left, or whose replacement their workload has: their room comes, whatever removes them. */
function gaveWay({ status, preemptions }: JobView, { world }: Facts): readonly ObjectReference[] {
  return (status.preemptedPodsRef ?? []).filter(({ namespace = '', name, uid }) => {
    const pod = world.pods.get(keyOfRef({ namespace, name }))
    const isAdopted = preemptions.some(each => each.pod.uid === uid && each.status.podRef !== undefined)
    return pod?.uid !== uid || pod?.isTerminating === true || isAdopted
  })
}

/** No more pods need to give way, or these cannot: the status names only those that have, and the jobs of the others are called off. */
function settled(view: JobView, rules: Facts, node: string | undefined, word: Word): Word {
  const { preemptionNodeName } = view.status
  if (preemptionNodeName === undefined) return word
  const more = { preemptedPodsRef: gaveWay(view, rules) }
  if (preemptionNodeName === node) return { ...word, more }
  const { reason, message } = word
  const also = [{ type: jobConditions.preemption, status: 'False', reason, message }] as const
  return { ...word, more, also, forget: 'preemptionNodeName' }
}

type GiveWay = Extract<Gate, { type: 'giveWay' }>

function toPreempt(view: JobView, job: ParsedJob, { node, pods }: GiveWay, rules: Facts): Word {
  const { status } = view
  const held = beforeAct(view, job, rules)
  if (held !== undefined) return held
  // The API server has dropped the announcement, and would drop it again.
  if (conditionOf(status, jobConditions.preemption)?.reason === reasons.under && !status.preemptionNodeName)
    return {
      ...failed(
        'Unschedulable',
        'the kind PodMigrationJob of this cluster is too old: apply the kinds again',
      ),
      condition: { type: jobConditions.preemption, status: 'False' },
    }
  const before = gaveWay(view, rules).slice(0, jobLimits.preemptedPods - pods.length)
  return {
    ...preempting(`pods of node ${node} give way`),
    more: { preemptionNodeName: node, preemptedPodsRef: [...before, ...pods.map(refTo)] },
  }
}

function underWay(view: JobView, job: ParsedJob, { node, pods }: GiveWay, rules: Facts): Word {
  const word = preempting(`pods of node ${node} give way`)
  // Only a nominated pod finds the room that the others leave.
  if (rules.facts.pod?.nominated !== node) return word
  const next = pods.find(
    ({ uid, isTerminating }) => !isTerminating && !view.preemptions.some(({ pod }) => pod.uid === uid),
  )
  if (next === undefined || beforeAct(view, job, rules) !== undefined) return word
  return { ...word, action: { type: 'preempt', view, victim: refTo(next), ttlMs: job.ttlMs } }
}

/** Returns the Reservations of the pods that give way. A Reservation that has gone since is remembered. */
function reservationsOf({ status, preemptions }: JobView): readonly PreemptedPodReservation[] {
  const before = status.preemptedPodsReservation ?? []
  const now = preemptions.map(entryOf)
  const of = ({ preemptedPodRef: { uid } }: PreemptedPodReservation) => uid
  const isNamed = (entry: PreemptedPodReservation) =>
    (status.preemptedPodsRef ?? []).some(ref => ref.uid === of(entry))
  return [
    ...now.map(entry => ({ ...before.find(each => of(each) === of(entry)), ...entry })),
    ...before.filter(each => !now.some(entry => of(entry) === of(each))),
  ]
    .toSorted((a, b) => Number(isNamed(b)) - Number(isNamed(a)) || (a.name < b.name ? -1 : 1))
    .slice(0, jobLimits.preemptedPods)
}

function entryOf({ job, pod, status, reservation }: PreemptionFacts) {
  const { namespace, name, uid } = pod
  const { podRef } = status
  const { phase, nodeName = status.nodeName } = reservation ?? {}
  return {
    ...{ namespace, name: reservationNameOf({ uid: job }) },
    preemptedPodRef: { apiVersion: 'v1', kind: 'Pod', namespace, name, ...(uid !== undefined && { uid }) },
    ...(phase !== undefined && { phase }),
    ...(nodeName !== undefined && { nodeName }),
    ...(podRef && { podsRef: [{ apiVersion: 'v1', kind: 'Pod', ...podRef }] }),
  }
}

/**
 * For a replacement without a gate the scheduler may remove pods by itself. It nominates the replacement first, and says on each pod that it
 * removes why.
 */
function byScheduler({ status, parsed }: JobView, { facts, world }: Facts): Word | undefined {
  const { nominated } = facts.pod ?? {}
  if (nominated === undefined || status.preemptionNodeName !== undefined) return undefined
  const known = status.preemptedPodsRef ?? []
  const namespace = parsed.ok ? parsed.job.pod.namespace : ''
  const own = world.pods.get(keyOfRef({ namespace, name: facts.name }))?.priority ?? 0
  const found = [...world.pods.values()]
    .filter(({ node, isPreempted, priority }) => node === nominated && isPreempted && priority < own)
    .filter(({ uid }) => !known.some(ref => ref.uid === uid))
  const all = [...known, ...found.map(refTo)].slice(0, jobLimits.preemptedPods)
  return all.length === 0
    ? undefined
    : {
        ...preempting(`the scheduler removes pods of node ${nominated}, without a reservation for them`),
        more: { preemptedPodsRef: all },
      }
}

/** Conditions that follow when the replacement has a node. */
export const preemptionEnded = (status: PodMigrationJobStatus, node: string) =>
  conditionOf(status, jobConditions.preemption) === undefined
    ? []
    : [isTrue(jobConditions.preemption, reasons.complete, `the pods that gave way have left node ${node}`)]

/** Returns the part of the status that follows the jobs of the pods that give way. */
export const preemptionReport = (view: JobView): Partial<PodMigrationJobStatus> =>
  view.preemptions.length === 0 ? {} : { preemptedPodsReservation: reservationsOf(view) }

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
import { noRoom, reservationKeyOf } from './reservation.ts'
import { reservationNameOf } from './reservation-name.ts'
import { victimsFor } from './victims.ts'
import type { JobView, PreemptionFacts, PresentReservation } from './view.ts'
import { conditionOf, failed, type Word } from './word.ts'
import type { PodFacts } from './world.ts'

/** The names are the same after each restart, so that no pod gives way twice. */
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
  if (replacement?.isGated === true) {
    const isClosed = rules.gates?.get(reservationKeyOf(resource, name))?.type === 'closed'
    if (view.status.preemptionNodeName !== undefined) return underWay(view, job, rules)
    if (isClosed && job.isPreempting) return toPreempt(view, job, rules)
    return waiting(name, isClosed ? noRoom : undefined)
  }
  const learnt = byScheduler(view, rules)
  return learnt ?? waiting(name, replacement?.unschedulable)
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

function toPreempt(view: JobView, job: ParsedJob, rules: Facts): Word {
  const { facts, world, config } = rules
  const held = beforeAct(view, job, rules)
  if (held !== undefined || !config.ok) return held ?? waiting(facts.name, noRoom)
  const namespace = job.pod.namespace
  const pod = world.pods.get(keyOfRef({ namespace, name: facts.name }))
  const victims = pod && victimsFor(pod, world, config.args)
  if (victims === undefined)
    return waiting(
      facts.name,
      'no node has room, and no pods of a lower priority can give way and have room elsewhere',
    )
  return {
    ...preempting(`pods of node ${victims.node} give way`),
    more: { preemptionNodeName: victims.node, preemptedPodsRef: victims.pods.map(refTo) },
  }
}

function underWay(view: JobView, job: ParsedJob, rules: Facts): Word {
  const { status, preemptions } = view
  const { preemptionNodeName: node = '', preemptedPodsRef: victims = [] } = status
  const { facts, world } = rules
  const stays = ({ namespace = '', name, uid }: ObjectReference) =>
    world.pods.get(keyOfRef({ namespace, name }))?.uid === uid
  const jobOf = (victim: ObjectReference) => preemptions.find(({ pod }) => pod.uid === victim.uid)
  for (const victim of victims.filter(stays)) {
    const { status: word } = jobOf(victim) ?? {}
    if (word?.phase === 'Failed' || word?.phase === 'Aborted')
      return failed(
        'Unschedulable',
        `pod ${victim.namespace}/${victim.name} does not give way: ${word.message ?? ''}`,
      )
  }
  const word = preempting(`pods of node ${node} give way`)
  // Only a nominated pod finds the room that the others leave.
  if (facts.pod?.nominated !== node) return word
  const next = victims.find(victim => stays(victim) && jobOf(victim) === undefined)
  if (next === undefined || beforeAct(view, job, rules) !== undefined) return word
  return { ...word, action: { type: 'preempt', view, victim: next, ttlMs: job.ttlMs } }
}

/** Returns the Reservations of the pods that give way. A Reservation that has gone since is remembered. */
function reservationsOf({ status, preemptions }: JobView): readonly PreemptedPodReservation[] {
  const before = status.preemptedPodsReservation ?? []
  const now = preemptions.map(entryOf)
  const gone = before.filter(({ name }) => !now.some(other => other.name === name))
  return [
    ...gone.slice(0, Math.max(0, jobLimits.preemptedPods - now.length)),
    ...now.map(entry => ({ ...before.find(({ name }) => name === entry.name), ...entry })),
  ].toSorted((a, b) => (a.name < b.name ? -1 : 1))
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
 * Where a priority class has changed, or another scheduler sees pods with gates, the scheduler may remove pods by itself. It nominates the
 * replacement first, and says on each pod that it removes why.
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

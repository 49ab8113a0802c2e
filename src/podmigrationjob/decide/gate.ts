/**
 * Replacements with a scheduling gate, and their turns. For a pod of a high priority the scheduler removes others by itself, and asks none of our
 * rules. So the replacement of a job with `preemptionOptions`, and that of each pod that gives way to one, has a gate until a node has room, and is
 * nominated for that node before the gate goes: the scheduler keeps the room of a nominated pod from all pods of its priority or a lower one.
 */
import type { ParsedArgs } from '../../api/migration-controller-args.ts'
import type { ParsedJob } from '../../api/parse-pod-migration-job.ts'
import { keyOfRef } from '../../kube/object.ts'
import { Budgets } from './budgets.ts'
import { reservationKeyOf } from './reservation.ts'
import { Room } from './room.ts'
import { type Candidacy, mayGiveWay, type Victims, victimsFor } from './victims.ts'
import type { Gate, JobView } from './view.ts'
import type { PodFacts, RunningJob, World } from './world.ts'

interface Replacement {
  readonly key: string
  readonly view: JobView
  readonly job: ParsedJob
  readonly pod: PodFacts
}

export interface Looks {
  readonly world: World
  readonly running: readonly RunningJob[]
  readonly config: ParsedArgs
  /** Pods that give way are looked for. */
  readonly mayLook: boolean
}

export interface Gates {
  /** By the key of the Reservation. One that is not here is closed. */
  readonly gates: ReadonlyMap<string, Gate>
  /** How often pods that give way were looked for, or would have been. */
  readonly looks: number
}

const wantsGate = ({ preemptor }: JobView, { isPreempting }: ParsedJob): boolean =>
  isPreempting || preemptor !== undefined

/** Returns whether the pods of the operator's own Reservations are created with a gate, by their keys. Only those whose jobs run are in it. */
export const gatesToCreate = (views: readonly JobView[]): ReadonlyMap<string, boolean> =>
  new Map(
    views.flatMap(view => {
      const { status, parsed, reservation: facts } = view
      return status.phase === 'Running' && parsed.ok && facts.type === 'present' && facts.isOwned
        ? [[reservationKeyOf(facts.resource, facts.name), wantsGate(view, parsed.job)] as const]
        : []
    }),
  )

function replacementsIn(views: readonly JobView[], { pods }: World): readonly Replacement[] {
  return views.flatMap(view => {
    const { status, parsed, reservation: facts } = view
    if (status.phase !== 'Running' || !parsed.ok || facts.type !== 'present' || !facts.isOwned) return []
    if (facts.pod?.isGated !== true || facts.pod.isTerminating) return []
    const { namespace } = parsed.job.pod
    const pod = pods.get(keyOfRef({ namespace, name: facts.name }))
    const key = reservationKeyOf(facts.resource, facts.name)
    return pod?.uid === facts.pod.uid ? [{ key, view, job: parsed.job, pod }] : []
  })
}

const isPromised = ({ view, pod }: Replacement): boolean =>
  view.status.preemptionNodeName !== undefined || pod.nominated !== undefined

/** An order of all: each counts what those before it have, so no two wait for each other. */
const inTurn = (a: Replacement, b: Replacement): number =>
  Number(isPromised(b)) - Number(isPromised(a)) ||
  b.pod.priority - a.pod.priority ||
  a.view.createdAt - b.view.createdAt ||
  (a.key < b.key ? -1 : 1)

export function gatesOf(views: readonly JobView[], looks: Looks): Gates {
  const { world, running, config } = looks
  const all = replacementsIn(views, world)
  if (all.length === 0) return { gates: new Map(), looks: 0 }
  const room = new Room(world, new Set(all.map(({ pod }) => pod.uid)))
  const budgets = config.ok ? new Budgets(world, config.args) : undefined
  for (const { place, disruptionBudgets } of running) budgets?.add(place, disruptionBudgets)
  const found = all.toSorted(inTurn).map(each => {
    const { view, pod } = each
    const candidacy = budgets &&
      config.ok && {
        ...{ pod, workload: view.status.source?.workload, family: familyOf(view) },
        ...{ world, budgets, args: config.args },
      }
    return { each, ...gateOf(each, room, { ...looks, candidacy: candidacy || undefined }) }
  })
  return {
    gates: new Map(found.map(({ each, gate }) => [each.key, gate])),
    looks: found.filter(({ wantsLook }) => wantsLook).length,
  }
}

/** Their places are lent: the pod that a job replaces stays as long as others give way to its replacement. */
const familyOf = ({ status }: JobView): ReadonlySet<string> =>
  new Set([
    ...(status.source === undefined ? [] : [status.source.uid]),
    ...(status.preemptedPodsRef ?? []).flatMap(({ uid }) => (uid === undefined ? [] : [uid])),
  ])

interface Found {
  readonly gate: Gate
  readonly wantsLook?: boolean
}

type WithCandidacy = Looks & { readonly candidacy: Candidacy | undefined }

function gateOf({ view, job, pod }: Replacement, room: Room, looks: WithCandidacy): Found {
  if (!wantsGate(view, job) || room.isHarmless(pod)) return { gate: { type: 'open' } }
  if (pod.isUnjudged) return { gate: { type: 'closed', why: 'unjudged' } }
  const node = room.take(pod, [view.status.preemptionNodeName, pod.nominated])?.name
  if (node !== undefined) return { gate: node === pod.nominated ? { type: 'open' } : { type: 'room', node } }
  const kept = promised(view, pod, room, looks)
  const { candidacy, mayLook } = looks
  const wantsLook = kept?.isSure !== true && job.isPreempting && candidacy !== undefined
  // A pod whose job has ended without success is not asked again.
  const asked = new Set(view.preemptions.map(each => each.pod.uid))
  const isAsked = (other: PodFacts) => !asked.has(other.uid)
  const found =
    wantsLook && mayLook
      ? victimsFor(pod, room, other => isAsked(other) && mayGiveWay(other, candidacy))
      : undefined
  const victims = found ?? kept
  if (victims === undefined) return { gate: { type: 'closed', why: 'noRoom' }, wantsLook }
  if (found === undefined) room.takeElsewhere(victims.pods.filter(needsRoom(view)))
  room.reserve(victims.node)
  const { node: on, pods } = victims
  return { gate: { type: 'giveWay', node: on, pods, isAnnounced: found === undefined }, wantsLook }
}

/** Without a Reservation yet, it counts on the room that was found for it. */
const needsRoom =
  ({ preemptions }: JobView) =>
  ({ uid, isTerminating }: PodFacts): boolean =>
    !isTerminating && !preemptions.some(each => each.pod.uid === uid && each.reservation !== undefined)

/** The announcement in the status holds as long as it is possible. It is sure if no job of these pods waits for others. */
function promised(
  view: JobView,
  pod: PodFacts,
  room: Room,
  { candidacy }: WithCandidacy,
): (Victims & { readonly isSure: boolean }) | undefined {
  const { preemptionNodeName, preemptedPodsRef = [] } = view.status
  const node = room.nodes.get(preemptionNodeName ?? '')
  if (node === undefined || room.isClaimed(node.name)) return undefined
  const pods = room.on(node.name).filter(({ uid }) => preemptedPodsRef.some(ref => ref.uid === uid))
  const phaseOf = ({ uid }: PodFacts) =>
    view.preemptions.find(each => each.pod.uid === uid)?.status.phase ?? 'Pending'
  const goes = (other: PodFacts) => other.isTerminating || phaseOf(other) === 'Running'
  const isPossible = pods.every(other => goes(other) || phaseOf(other) === 'Pending')
  if (pods.length === 0 || !isPossible || !room.fits(pod, node, pods)) return undefined
  const isSure = pods.every(other => goes(other) || candidacy === undefined || mayGiveWay(other, candidacy))
  return { node: node.name, pods, isSure }
}

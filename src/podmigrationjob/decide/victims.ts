/** Which pods give way to the replacement of a job. As the scheduler does, but only to pods that can have a replacement themselves. */
import type { MigrationControllerArgs } from '../../api/migration-controller-args.ts'
import { isSystemNamespace, jobLimits } from '../../api/pod-migration-job.ts'
import type { Budgets } from './budgets.ts'
import { refusalOf } from './eligible.ts'
import { hasAll, type Room } from './room.ts'
import type { NodeRoom, PodFacts, World } from './world.ts'

export interface Victims {
  readonly node: string
  readonly pods: readonly PodFacts[]
}

export interface Candidacy {
  /** The replacement. */
  readonly pod: PodFacts
  /** Key of the workload that gets the replacement: a change of its priority class makes its other pods less important. */
  readonly workload: string | undefined
  /** Uids of the pods whose places in the budgets do not count: the pod that the job replaces, and those that give way to it. */
  readonly family: ReadonlySet<string>
  readonly world: Pick<World, 'workloads'>
  readonly budgets: Budgets
  readonly args: MigrationControllerArgs
}

/** A job for the pod could begin now, and the pod would have a replacement before it goes. */
export function mayGiveWay(
  other: PodFacts,
  { pod, workload, family, world, budgets, args }: Candidacy,
): boolean {
  const { owner, namespace } = other
  if (other.priority >= pod.priority || other.isTerminating || !other.isReady || other.isUnjudged)
    return false
  if (isSystemNamespace(namespace) || !(args.preemptOtherNamespaces || namespace === pod.namespace))
    return false
  // Only the pod of a Deployment can have a replacement before it goes.
  if (owner.type !== 'workload' || owner.kind !== 'Deployment' || owner.key === workload) return false
  const facts = world.workloads.get(owner.key)
  return (
    facts !== undefined &&
    !facts.isRolling &&
    [...facts.unhealthy].every(uid => family.has(uid)) &&
    !budgets.isUnderWay(other.uid) &&
    refusalOf({ mode: 'ReservationFirst', skipGates: new Set() }, other, world, args) === undefined &&
    budgets.obstacleTo(other, { isKeptServing: false, without: family }) === undefined
  )
}

/** Nodes that one look asks for room elsewhere, the cheapest first: a search in a full cluster has to end. */
const mostNodes = 50

/** Returns the node on which the least important pods give way, and takes room for them elsewhere; undefined: there is none. */
export function victimsFor(
  pod: PodFacts,
  room: Room,
  may: (other: PodFacts) => boolean,
): Victims | undefined {
  return [...room.nodes.values()]
    .flatMap(node => onNode(pod, node, room, may))
    .toSorted(cheaper)
    .slice(0, mostNodes)
    .find(({ pods }) => room.takeElsewhere(pods))
}

const byImportance = (a: PodFacts, b: PodFacts): number =>
  b.priority - a.priority || b.evictionCost - a.evictionCost || (a.uid < b.uid ? -1 : 1)

/** Removes all that may give way, and takes back as many as it can, the most important first. */
function onNode(
  pod: PodFacts,
  node: NodeRoom,
  room: Room,
  may: (other: PodFacts) => boolean,
): readonly Victims[] {
  if (room.isClaimed(node.name) || !node.isSchedulable) return []
  const lower = room.on(node.name).filter(may).toSorted(byImportance)
  if (lower.length === 0 || !room.fits(pod, node, lower)) return []
  let spare = room.spare(pod, node.name, lower)
  const pods = lower.filter(({ requests }) => {
    const left = Object.fromEntries(
      Object.entries(spare).map(([name, amount]) => [name, amount - (requests[name] ?? 0)]),
    )
    const isBack = hasAll(left)
    if (isBack) spare = left
    return !isBack
  })
  return pods.length > jobLimits.preemptedPods ? [] : [{ node: node.name, pods }]
}

/** As the scheduler: the least important pods, then the fewest. */
function cheaper(a: Victims, b: Victims): number {
  const highest = ({ pods }: Victims) =>
    pods.reduce((most, { priority }) => Math.max(most, priority), Number.NEGATIVE_INFINITY)
  const cost = ({ pods }: Victims) => pods.reduce((all, { evictionCost }) => all + evictionCost, 0)
  return (
    highest(a) - highest(b) ||
    a.pods.length - b.pods.length ||
    cost(a) - cost(b) ||
    (a.node < b.node ? -1 : 1)
  )
}

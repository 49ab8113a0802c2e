/** Which pods give way to the replacement of a job. As the scheduler does, but only to pods that can have a replacement themselves. */
import type { MigrationControllerArgs } from '../../api/migration-controller-args.ts'
import { jobLimits } from '../../api/pod-migration-job.ts'
import { refusalOf } from './eligible.ts'
import { Room } from './room.ts'
import type { NodeRoom, PodFacts, World } from './world.ts'

export interface Victims {
  readonly node: string
  readonly pods: readonly PodFacts[]
}

type Args = Pick<MigrationControllerArgs, 'preemptOtherNamespaces'> & MigrationControllerArgs

/** Returns the node on which the least important pods give way; undefined: no node has room without others. */
export function victimsFor(
  pod: PodFacts,
  world: Pick<World, 'workloads' | 'pods' | 'nodes'>,
  args: Args,
): Victims | undefined {
  const room = new Room(world)
  const mayGiveWay = (other: PodFacts) =>
    other.node !== undefined &&
    other.priority < pod.priority &&
    !other.isTerminating &&
    (args.preemptOtherNamespaces || other.namespace === pod.namespace) &&
    // Only the pod of a Deployment can have a replacement before it goes.
    other.owner.type === 'workload' &&
    other.owner.kind === 'Deployment' &&
    refusalOf({ mode: 'ReservationFirst', skipGates: new Set() }, other, world, args) === undefined
  const found = room.nodes.flatMap(node => {
    const pods = onNode(pod, node, room, mayGiveWay)
    return pods === undefined || !haveRoomElsewhere(pods, node, room, pod) ? [] : [{ node: node.name, pods }]
  })
  return found.toSorted(cheaper)[0]
}

const byImportance = (a: PodFacts, b: PodFacts): number =>
  b.priority - a.priority || b.evictionCost - a.evictionCost || (a.uid < b.uid ? -1 : 1)

/** Removes all that may give way, and takes back as many as it can, the most important first. */
function onNode(
  pod: PodFacts,
  node: NodeRoom,
  room: Room,
  mayGiveWay: (other: PodFacts) => boolean,
): readonly PodFacts[] | undefined {
  const all = room.on(node.name)
  const lower = all.filter(mayGiveWay).toSorted(byImportance)
  const rest = all.filter(other => !lower.includes(other))
  if (lower.length === 0 || !room.fits(pod, node, rest)) return undefined
  const victims: PodFacts[] = []
  for (const other of lower) {
    if (room.fits(pod, node, [...rest, other])) rest.push(other)
    else victims.push(other)
  }
  return victims.length > jobLimits.preemptedPods ? undefined : victims
}

/** Each takes its room there, so that two do not count on the same. */
function haveRoomElsewhere(victims: readonly PodFacts[], from: NodeRoom, room: Room, pod: PodFacts): boolean {
  const taken = new Map<string, PodFacts[]>()
  return victims.every(victim => {
    const found = room.nodes.find(node => {
      const beside = [...room.on(node.name), ...(taken.get(node.name) ?? [])]
      // Its room stays its own until it has gone, so its replacement needs as much again.
      return (
        node.name !== from.name && room.fits({ ...victim, uid: `${victim.uid}/${pod.uid}` }, node, beside)
      )
    })
    if (found === undefined) return false
    taken.set(found.name, [...(taken.get(found.name) ?? []), victim])
    return true
  })
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

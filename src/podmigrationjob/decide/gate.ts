/**
 * Whether the scheduler may see the pod of a Reservation. For a pod of a high priority the scheduler removes others by itself, and asks none of
 * our rules. So the pod has a scheduling gate until a node has room, and it is nominated for that node before the gate goes: the scheduler keeps
 * the room of a nominated pod from all pods of its priority or a lower one.
 */
import { keyOfRef } from '../../kube/object.ts'
import type { ReservationView } from './reservation.ts'
import { isHarmless, Room } from './room.ts'
import type { Gate } from './view.ts'
import type { World } from './world.ts'

const gated = ({ parsed, pod }: ReservationView): boolean =>
  parsed.ok && pod !== undefined && pod !== 'foreign' && pod.isGated && !pod.isTerminating

/**
 * Returns the gate of each Reservation whose pod has one, by key.
 * @param wanted the nodes on which pods give way, by key: no other node counts.
 */
export function gatesOf(
  reservations: readonly ReservationView[],
  world: World,
  wanted: ReadonlyMap<string, string>,
): ReadonlyMap<string, Gate> {
  const views = reservations.filter(gated)
  if (views.length === 0) return new Map()
  const room = new Room(world)
  return new Map(views.map(view => [view.key, gateOf(view, world, room, wanted.get(view.key))]))
}

function gateOf(view: ReservationView, world: World, room: Room, wanted: string | undefined): Gate {
  const namespace = view.parsed.ok ? view.parsed.reservation.owner.namespace : ''
  const pod = world.pods.get(keyOfRef({ namespace, name: view.name }))
  if (pod === undefined) return { type: 'closed' }
  if (isHarmless(pod, world)) return { type: 'open' }
  const { nominated } = pod
  const has = (name: string) => room.nodes.some(node => node.name === name && room.fits(pod, node))
  if (nominated !== undefined && nominated === (wanted ?? nominated) && has(nominated))
    return { type: 'open' }
  if (wanted !== undefined)
    return wanted === nominated ? { type: 'closed' } : { type: 'nominate', node: wanted }
  const found = room.nodes.find(node => room.fits(pod, node))
  if (found === undefined) return { type: 'closed' }
  // Another gated pod must not count on the same room.
  room.add(found.name, pod)
  return { type: 'nominate', node: found.name }
}

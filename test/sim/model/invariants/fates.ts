/** The fate of each pod: broken, terminating, or neither. */
import { isApiServer, partsOf, type Voter } from '../../../../src/api/fence.ts'
import type { NumberedSlotLease } from '../../../../src/api/numbered-slot.ts'
import { slotName } from '../../../../src/checkpoint/manifest.ts'
import { type Lease, leases, pods, resourceName } from '../../../../src/kube/resources.ts'
import { setsAsked } from '../../../../src/slot/decide/fence/electorate.ts'
import { answersNeeded } from '../../../../src/slot/decide/fence/quorum.ts'
import { type Cluster, type ModelNode, nodeGraceMs } from '../cluster.ts'
import { answers, type PodOnNode } from '../world.ts'
import type { Bounds } from './bounds.ts'
import type { Health } from './health.ts'
import { running } from './running.ts'

export type LeaseOf = (object: Lease) => NumberedSlotLease | undefined

export interface Fates {
  look(): void
  /** The pod was deleted, or its app ended by itself or hung: another pod is to succeed it. */
  isBroken(uid: string): boolean
  /** So few of its voters could answer the pod at some time that it had to stop: another pod may succeed it. */
  isShutOff(uid: string): boolean
  /** True if the kubelet ends the pod in time, with or without an agent, at a time that the operator knows. */
  isGoing(node: ModelNode, pod: PodOnNode): boolean
  /** Returns the time since which the pod has been terminating. */
  endsSince(uid: string): number | undefined
}

export function createFates(cluster: Cluster, { lookMs }: Bounds, health: Health, leaseOf: LeaseOf): Fates {
  const { time, nodes, server } = cluster
  const broken = new Set<string>()
  const shutOff = new Set<string>()
  const endsSince = new Map<string, number>()
  /**
   * Primaries that were deleted with a grace period. After a forced deletion only an agent can know when the pod has
   * ended. A pod leaves this set when its node is cut off until Kubernetes considers it lost: its kubelet has not heard
   * of the deletion, and only a fence could keep the app from running when the node is back.
   */
  const goingAsHolder = new Set<string>()
  /** How many endings of each machine have been noted. */
  const endsNoted = new Map<ModelNode, number>()

  server.subscribe((resource, { type, object, old }) => {
    if (resource !== resourceName(pods)) return
    const { uid, deletionTimestamp } = object.metadata
    if (type === 'DELETED') {
      broken.add(uid)
      goingAsHolder.delete(uid)
      return
    }
    if (deletionTimestamp === undefined || old?.metadata.deletionTimestamp !== undefined) return
    endsSince.set(uid, time.now())
    if (heldBy(cluster, leaseOf, uid) !== undefined) goingAsHolder.add(uid)
    broken.add(uid)
  })
  return {
    look() {
      for (const node of nodes) {
        if (health.cutForMs(node) >= nodeGraceMs - lookMs)
          for (const uid of node.machine.pods.keys()) goingAsHolder.delete(uid)
        const { endings } = node.machine
        for (const { uid, by } of endings.slice(endsNoted.get(node) ?? 0))
          if (by === 'itself') broken.add(uid)
        endsNoted.set(node, endings.length)
      }
      for (const { pod, app } of running(cluster)) if (!answers(app, time.now())) broken.add(pod.uid)
      for (const node of nodes)
        for (const pod of node.machine.pods.values()) {
          const lease = pod.frozen === undefined ? undefined : heldBy(cluster, leaseOf, pod.uid)
          const isAsked = (voters: readonly Voter[]) =>
            isAnswered(cluster, lease, voters, health.isAtWork(node))
          if (lease?.fence !== undefined && !setsAsked(lease.fence).every(isAsked)) shutOff.add(pod.uid)
        }
    },
    isBroken: uid => broken.has(uid),
    isShutOff: uid => shutOff.has(uid),
    isGoing: ({ machine, link }, { uid }) =>
      goingAsHolder.has(uid) && machine.up && !machine.kernel.paused && !machine.partitioned && !link.cut,
    endsSince: uid => endsSince.get(uid),
  }
}

/**
 * True if so many of these voters work that they can answer a primary.
 *
 * @param isWritten the agent of the primary's node works: its writes bring the answers of the API server.
 */
const isAnswered = (
  { nodes }: Cluster,
  lease: NumberedSlotLease | undefined,
  voters: readonly Voter[],
  isWritten: boolean,
): boolean =>
  voters.filter(voter => {
    if (isApiServer(voter)) return isWritten
    const { node: name, run } = partsOf(voter)
    const machine = nodes.find(each => each.machine.name === name)?.machine
    if (machine?.voting.run !== run || !machine.voting.isUp || !machine.up) return false
    // It has stated that the primary is silent, and keeps to that.
    const stated = lease && machine.voting.votes.get(slotName(lease))?.stated
    if (stated !== undefined && stated >= (lease?.fence?.term ?? 0)) return false
    return !machine.kernel.paused && !machine.partitioned && machine.deafTo.size === 0
  }).length >= answersNeeded(voters.length)

/** Returns the Lease that names a pod as its slot's primary. */
export const heldBy = ({ server }: Cluster, leaseOf: LeaseOf, uid: string) =>
  server
    .list(leases)
    .map(leaseOf)
    .find(lease => lease?.holder.uid === uid)

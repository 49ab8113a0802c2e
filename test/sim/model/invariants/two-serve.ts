/**
 * TwoServe: two pods with one memory serve at the same moment, although the primary of their slot has voters. ServesOn:
 * another pod gets such a slot while its primary serves.
 */
import type { NumberedSlotLease } from '../../../../src/api/numbered-slot.ts'
import { slotName } from '../../../../src/checkpoint/manifest.ts'
import { leases, pods } from '../../../../src/kube/resources.ts'
import { servingOf } from '../../../../src/slot/observe/stage.ts'
import type { ModelNode } from '../cluster.ts'
import { reaches, servingApp } from '../world.ts'
import { type Ground, onLeases } from './ground.ts'
import type { SavedGenesis } from './impostor-saved.ts'

export function twoServe(ground: Ground, saved: SavedGenesis): () => void {
  const { cluster, violate, leaseOf, fates } = ground
  const { nodes, time, server } = cluster
  /** The agent of the pod has told the API server that the memory is gone, and ends what still runs of the pod. */
  const isTold = (uid: string) => {
    const pod = server.list(pods).find(({ metadata }) => metadata.uid === uid)
    return pod !== undefined && servingOf(pod).death !== undefined
  }
  /** Nothing but the fence keeps the pod from serving: no agent that works has told of its end. */
  const isFenced = (node: ModelNode, uid: string) =>
    !fates.isBroken(uid) || (isCutOff(ground, node) && !isTold(uid))
  /** Its sentinel has promised nothing, and Kubernetes' word about its node is all that can be known of it. */
  const isBeyondFences = ({ fence, holder: { uid } }: NumberedSlotLease) => {
    const node = nodes.find(({ machine }) => machine.pods.has(uid))
    const isGuarded = fence?.isArmed || node?.machine.voting.primaries.get(uid)?.current !== undefined
    return !isGuarded && node !== undefined && isCutOff(ground, node)
  }

  /** Pods that lost their slot to another pod while only their voters had stated anything about them. */
  const shutOff = new Set<string>()
  /** Pods that lost their slot beyond all fences. On a machine that was paused they run until their agent ends them. */
  const unguarded = new Set<string>()
  const look = () => {
    const byGenesis = Map.groupBy(
      nodes.flatMap(node =>
        [...node.machine.pods.values()].flatMap(pod => {
          const app = servingApp(node.machine, pod.uid, time.now())
          return app === undefined ? [] : [{ node, pod, genesis: app.memory.genesis }]
        }),
      ),
      ({ genesis }) => genesis,
    )
    for (const [genesis, serving] of byGenesis) {
      if (serving.length < 2) continue
      const lease = server
        .list(leases)
        .flatMap(each => leaseOf(each) ?? [])
        .find(({ holder }) => serving.some(({ pod }) => pod.uid === holder.uid))
      if (lease === undefined) continue
      const isArmed = lease.fence?.isArmed === true
      const others = serving.filter(({ pod: { uid } }) => uid !== lease.holder.uid && !unguarded.has(uid))
      if (others.some(({ node, pod }) => shutOff.has(pod.uid) || (isArmed && isFenced(node, pod.uid))))
        violate(
          'TwoServe',
          genesis,
          `${genesis} serves ${slotName(lease)} in ${serving.map(({ pod, node }) => `${pod.name} on ${node.machine.name}`).join(' and ')}`,
        )
    }
  }
  const lookAtSwap = (before: NumberedSlotLease, { holder, epoch, incarnation }: NumberedSlotLease) => {
    if (before.holder.uid === holder.uid) return
    if (isBeyondFences(before)) unguarded.add(before.holder.uid)
    else unguarded.delete(before.holder.uid)
    if (before.fence === undefined) return
    // Another incarnation has another memory, so its pod need not wait for the end of the last one.
    if (before.incarnation !== incarnation) return
    if (before.fence.isArmed && !fates.isBroken(before.holder.uid)) shutOff.add(before.holder.uid)
    // An app that was started in its place has another memory; for that there is another rule.
    const genesis = saved.get(`${slotName(before)} app`) ?? 'none'
    const node = nodes.find(
      ({ machine }) => servingApp(machine, before.holder.uid, time.now())?.memory.genesis === genesis,
    )
    // Before its sentinel stops it without answers, only Kubernetes' word about its node counts.
    const isKept = node !== undefined && (before.fence.isArmed || !isCutOff(ground, node))
    if (isKept && isFenced(node, before.holder.uid))
      violate(
        'ServesOn',
        `${slotName(before)} ${epoch}`,
        `${holder.name} gets ${slotName(before)} while ${before.holder.name} serves on ${node.machine.name}`,
      )
  }
  onLeases(ground, ({ before, lease, isOfSet }) => {
    if (isOfSet && before !== undefined) lookAtSwap(before, lease)
  })
  cluster.resumed.push(look)
  return look
}

/** True if the API server, or another machine, cannot be reached from this one. */
export const isCutOff = ({ cluster }: Ground, { machine, link }: ModelNode): boolean =>
  link.cut ||
  machine.kernel.paused ||
  cluster.nodes.some(
    other => other.machine !== machine && other.machine.up && !reaches(machine, other.machine),
  )

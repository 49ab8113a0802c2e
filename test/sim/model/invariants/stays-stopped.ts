/** StaysStopped: a primary that could have answers stays stopped for lack of them. */
import { isApiServer, partsOf, type Voter } from '../../../../src/api/fence.ts'
import { leases, pods } from '../../../../src/kube/resources.ts'
import { setsAsked } from '../../../../src/slot/decide/fence/electorate.ts'
import { answersNeeded } from '../../../../src/slot/decide/fence/quorum.ts'
import type { PodOnNode } from '../world.ts'
import type { Ground } from './ground.ts'

export function staysStopped({ cluster, bounds, violate, leaseOf, health }: Ground): {
  readonly look: (elapsed: number) => void
  readonly atEnd: () => void
} {
  const { nodes, server } = cluster
  const stopped = new Map<string, number>()
  const canAnswer = (voters: readonly Voter[]) =>
    voters.filter(voter => {
      const { node: name, run } = partsOf(voter)
      const node = nodes.find(({ machine }) => machine.name === name)
      return isApiServer(voter) || (node?.machine.voting.run === run && health.isAtWork(node))
    }).length >= answersNeeded(voters.length)
  const isThere = (pod: PodOnNode) => {
    const metadata = server.find(pods, pod)?.metadata
    return metadata?.uid === pod.uid && metadata.deletionTimestamp === undefined
  }
  const frozen = () =>
    nodes.flatMap(node =>
      [...node.machine.pods.values()].flatMap(pod => (pod.frozen === undefined ? [] : [{ node, pod }])),
    )
  return {
    look(elapsed) {
      const now = frozen()
      for (const uid of stopped.keys()) if (!now.some(({ pod }) => pod.uid === uid)) stopped.delete(uid)
      for (const { node, pod } of now) {
        const lease = server
          .list(leases)
          .map(leaseOf)
          .find(each => each?.holder.uid === pod.uid)
        const isBad =
          isThere(pod) &&
          lease?.fence !== undefined &&
          health.operatorsWorkSince() !== undefined &&
          health.isAtWork(node) &&
          setsAsked(lease.fence).every(canAnswer)
        const ms = isBad ? (stopped.get(pod.uid) ?? 0) + elapsed : 0
        stopped.set(pod.uid, ms)
        if (ms > (lease?.fence?.timeoutMs ?? 0) + bounds.resumeMs)
          violate(
            'StaysStopped',
            pod.uid,
            `${pod.name} has been stopped on ${node.machine.name} for ${ms} ms`,
          )
      }
    },
    atEnd() {
      for (const { node, pod } of frozen())
        if (isThere(pod))
          violate('StaysStopped', pod.uid, `${pod.name} is still stopped on ${node.machine.name}`)
    },
  }
}

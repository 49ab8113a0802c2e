/** The slots of the existing set, and which app answers for each. */
import type { BackupPodSet } from '../../../../src/api/backuppodset.ts'
import type { NumberedSlotLease } from '../../../../src/api/numbered-slot.ts'
import { slotName } from '../../../../src/checkpoint/manifest.ts'
import { leases, type Pod, pods } from '../../../../src/kube/resources.ts'
import type { ModelNode } from '../cluster.ts'
import { answering } from '../world.ts'
import { type Ground, setOf } from './ground.ts'

export interface ServedSlot {
  readonly name: string
  readonly set: BackupPodSet
  readonly lease: NumberedSlotLease
  readonly pod: Pod | undefined
  readonly node: ModelNode | undefined
  /** The app that answers at the address of the slot's primary. */
  readonly answer: ReturnType<typeof answering>
  /** Nothing has disturbed the operators or changed the spec for a while, and the set is not paused or suspended. */
  readonly works: boolean
}

export function servedSlots({
  cluster,
  bounds,
  leaseOf,
  health,
  editedAt,
}: Ground): () => readonly ServedSlot[] {
  const { time, server, nodes } = cluster
  return () => {
    const set = setOf(cluster)
    const machines = nodes.map(({ machine }) => machine)
    return server.list(leases).flatMap((object): ServedSlot[] => {
      const lease = leaseOf(object)
      const isOurs = object.metadata.ownerReferences?.[0]?.uid === set?.metadata.uid
      if (set === undefined || lease === undefined || !isOurs || lease.retainedSince !== undefined) return []
      const pod = server.list(pods).find(({ metadata }) => metadata.uid === lease.holder.uid)
      const node = nodes.find(({ machine }) => machine.name === pod?.spec?.nodeName)
      const answer = pod && answering(machines, pod.status?.podIP ?? '', time.now())
      const works =
        health.operatorsWorkSince() !== undefined &&
        time.now() - editedAt() > bounds.soundMs &&
        set.spec.paused !== true &&
        set.spec.suspend !== true
      return [{ name: slotName(lease), set, lease, pod, node, answer, works }]
    })
  }
}

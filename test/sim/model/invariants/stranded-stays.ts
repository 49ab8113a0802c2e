/** StrandedStays: a hot backup can be heir of no slot where it is, and stays there although a slot has no heir. */
import { labels } from '../../../../src/api/labels.ts'
import { confinedAnnotation } from '../../../../src/api/pod-contract.ts'
import { leases, type Pod, pods } from '../../../../src/kube/resources.ts'
import type { ModelNode } from '../cluster.ts'
import { type Ground, setOf } from './ground.ts'
import { differences } from './not-served.ts'

export function strandedStays(ground: Ground): (elapsed: number) => void {
  const { cluster, bounds, health, editedAt, violate } = ground
  const { time, server, nodes } = cluster
  const strandedMs = new Map<string, number>()
  const works = () =>
    health.operatorsWorkSince() !== undefined &&
    nodes.every(node => health.isSound(node)) &&
    time.now() - editedAt() > bounds.soundMs &&
    setOf(cluster)?.spec.paused !== true &&
    setOf(cluster)?.spec.updateStrategy?.type !== 'RollingUpdate' &&
    differences(ground).length === 0
  return elapsed => {
    const stranded = server.list(pods).filter(pod => isStranded(ground, pod, health.isSound, 'NoHeir'))
    const isCounted = stranded.length > 0 && works()
    for (const uid of strandedMs.keys())
      if (!isCounted || stranded.every(({ metadata }) => metadata.uid !== uid)) strandedMs.delete(uid)
    if (!isCounted) return
    for (const { metadata } of stranded) {
      const ms = (strandedMs.get(metadata.uid) ?? 0) + elapsed
      strandedMs.set(metadata.uid, ms)
      if (ms > bounds.strandedMs)
        violate('StrandedStays', metadata.uid, `${metadata.name} has been heir of no slot for ${ms} ms`)
    }
  }
}

/** Made for a move, and no node has taken it: it covers nothing. */
const isNowhere = ({ metadata, spec }: Pod): boolean =>
  spec?.nodeName === undefined && metadata.annotations?.[confinedAnnotation] !== undefined

/**
 * True for a hot backup on the node of the primaries of all slots without heir, if all others are there too, and another
 * node is able to cover them. With `SharedHeir`, if each slot has an heir, the same holds for those that share one, and for hot backups that are
 * heir of none: the operator tries once.
 */
export function isStranded(
  { cluster, leaseOf }: Ground,
  { metadata, spec }: Pod,
  isAble: (node: ModelNode) => boolean,
  lack: 'NoHeir' | 'SharedHeir',
): boolean {
  const { server, nodes } = cluster
  const isHot = (pod: Pick<Pod, 'metadata'>) => pod.metadata.labels?.[labels.type] === 'hotbackup'
  const set = setOf(cluster)
  if (set === undefined || !isHot({ metadata })) return false
  const slots = server
    .list(leases)
    .filter(object => object.metadata.ownerReferences?.[0]?.uid === set.metadata.uid)
    .flatMap(object => leaseOf(object) ?? [])
    .filter(({ retainedSince }) => retainedSince === undefined)
  const without = slots.filter(({ heir }) => heir === undefined)
  const sharing = slots.filter(({ slot, heir }) =>
    slots.some(other => other.slot !== slot && other.heir?.uid === heir?.uid),
  )
  const open = without.length > 0 || lack === 'NoHeir' ? without : sharing
  const isHeir = ({ metadata: { uid } }: Pod) => slots.some(({ heir }) => heir?.uid === uid)
  const couldCover = (pod: Pod) => isHot(pod) && !isNowhere(pod) && (without.length > 0 || !isHeir(pod))
  return (
    open.length > 0 &&
    open.every(({ node }) => node === spec?.nodeName) &&
    slots.every(({ heir, holder }) => heir?.uid !== metadata.uid && holder.uid !== metadata.uid) &&
    server.list(pods).every(pod => !couldCover(pod) || pod.spec?.nodeName === spec?.nodeName) &&
    nodes.some(node => node.machine.name !== spec?.nodeName && isAble(node))
  )
}

/** Primaries that leave a drained node, and their Migrations. */
import type { BackupPodSet } from '../../api/backuppodset.ts'
import { labels } from '../../api/labels.ts'
import { isFinished, type Migration } from '../../api/migration.ts'
import { memoryAnnotation } from '../../api/pod-contract.ts'
import type { Pod } from '../../kube/resources.ts'

/** True if the operator moves the pod: its memory is kept, and its set does not let it be evicted. */
export function leaves({ metadata }: Pod, sets: readonly BackupPodSet[]): boolean {
  if (metadata.annotations?.[memoryAnnotation] === undefined || metadata.deletionTimestamp !== undefined)
    return false
  const set = sets.find(
    each =>
      each.metadata.namespace === metadata.namespace && each.metadata.name === metadata.labels?.[labels.set],
  )
  return set !== undefined && set.spec.checkpoint?.drain !== 'Evict'
}

/** Returns the Migration of the pod that has not ended, or else the latest. */
export function lastOf(all: readonly Migration[], namespace: string, uid: string): Migration | undefined {
  const its = all.filter(
    ({ metadata, spec, status }) =>
      metadata.namespace === namespace && (status?.source?.uid ?? spec.source.uid) === uid,
  )
  const created = ({ metadata }: Migration) => metadata.creationTimestamp ?? ''
  return [...its].sort(
    (a, b) => Number(isFinished(a)) - Number(isFinished(b)) || (created(a) < created(b) ? 1 : -1),
  )[0]
}

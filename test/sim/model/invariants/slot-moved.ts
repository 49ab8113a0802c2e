/** SlotMoved: the slots of a set change while its numbers stay the same. */
import { labels } from '../../../../src/api/labels.ts'
import { pods } from '../../../../src/kube/resources.ts'
import { type Ground, setOf } from './ground.ts'

/** While a set's numbers stay the same, so do its slots. The operator may choose which slots a smaller set keeps. */
export function slotMoved({ cluster, violate }: Ground): () => void {
  let settled: { readonly of: string; readonly slots: string } | undefined
  return () => {
    const set = setOf(cluster)
    if (set === undefined || set.status?.observedGeneration !== set.metadata.generation) return
    const { replicas = 1 } = set.spec
    const primaries = cluster.server
      .list(pods)
      .filter(
        ({ metadata }) =>
          metadata.labels?.[labels.type] === 'primary' &&
          metadata.deletionTimestamp === undefined &&
          metadata.ownerReferences?.[0]?.uid === set.metadata.uid,
      )
    const numbers = primaries.flatMap(({ metadata }) => metadata.labels?.[labels.slot] ?? [])
    if (numbers.length !== replicas || new Set(numbers).size !== replicas) return
    const now = { of: `${set.metadata.uid} ${set.metadata.generation}`, slots: numbers.sort().join() }
    if (settled !== undefined && settled.of === now.of && settled.slots !== now.slots)
      violate('SlotMoved', now.slots, `slots ${settled.slots} have become ${now.slots}`)
    settled = now
  }
}

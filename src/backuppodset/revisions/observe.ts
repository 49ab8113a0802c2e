import type { ParsedSet } from '../../api/parse.ts'
import { bySet, setsNamedBy } from '../../api/set-label.ts'
import type { ControllerRevision } from '../../kube/resources.ts'
import type { Store } from '../../kube/store.ts'
import { parseRevision, type Revision, type RevisionOf, type StoredRevision } from './revision.ts'

export const revisionIndexes: Readonly<Record<string, (revision: ControllerRevision) => readonly string[]>> =
  {
    [bySet]: setsNamedBy,
  }

export interface RevisionsDeps {
  readonly store: Store<ControllerRevision>
  /** True if the cache is complete: before that, every older template would look lost. */
  readonly known: () => boolean
  readonly revisionOf: RevisionOf
}

export interface RevisionsView {
  readonly current: Revision
  /** Newest first. */
  readonly stored: readonly StoredRevision[]
}

/** Returns the templates of a set that keeps memory; undefined for other sets and while they are unknown. */
export function observeRevisions(set: ParsedSet, deps: RevisionsDeps): RevisionsView | undefined {
  if (set.memory === undefined || !deps.known()) return undefined
  const stored = deps.store
    .by(bySet, `${set.namespace}/${set.name}`)
    .filter(
      ({ metadata }) =>
        metadata.deletionTimestamp === undefined &&
        metadata.ownerReferences?.some(({ uid }) => uid === set.uid) === true,
    )
    .flatMap(object => parseRevision(object, set, deps.revisionOf) ?? [])
    .sort((a, b) => b.number - a.number)
  return { current: deps.revisionOf(set.template, set.memory.containers), stored }
}

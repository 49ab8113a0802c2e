/**
 * The templates that a set had, one ControllerRevision each, as StatefulSets keep them: while memory of an older template
 * lives, pods that can be given it must still be made.
 */
import type { ParsedSet } from '../../api/parse.ts'
import { restoreHash } from '../../checkpoint/restore-hash.ts'
import { createMemo } from '../../kube/memo.ts'
import type { ControllerRevision } from '../../kube/resources.ts'
import { templateHash } from '../pod/template-hash.ts'

/** What pods are made from. */
export interface Revision {
  readonly templateHash: string
  readonly restoreHash: string
  readonly template: ParsedSet['template']
  /** Names of the containers that are saved. */
  readonly containers: readonly string[]
}

/** One that is stored. */
export interface StoredRevision extends Revision {
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  /** Grows with each. */
  readonly number: number
}

export type RevisionOf = (template: ParsedSet['template'], containers: readonly string[]) => Revision

/** Of one template and one list of containers, once: every pass asks for it. */
export function createRevisions(): RevisionOf {
  const ofTemplate = createMemo((template: ParsedSet['template']) =>
    createMemo((containers: readonly string[]) => revisionOf(template, containers)),
  )
  return (template, containers) => ofTemplate(template)(containers)
}

export const revisionOf: RevisionOf = (template, containers) => ({
  templateHash: templateHash({ template, memory: { containers } }),
  restoreHash: restoreHash(template, containers),
  template,
  containers,
})

export const revisionName = (set: string, { templateHash }: Pick<Revision, 'templateHash'>): string =>
  `${set}-${templateHash}`

/** The set as it was when this was its template, for making pods. */
export function asOf(set: ParsedSet, revision: Revision | undefined): ParsedSet {
  if (revision === undefined || set.memory === undefined) return set
  const { template, containers } = revision
  return { ...set, template, memory: { ...set.memory, containers } }
}

/** What a ControllerRevision says; undefined when that is not what its own name says: edited, or somebody else's. */
export function parseRevision(
  object: ControllerRevision,
  set: ParsedSet,
  revisionOf: RevisionOf,
): StoredRevision | undefined {
  if (set.memory === undefined) return undefined
  const { template, containers } = (object.data ?? {}) as Partial<Pick<Revision, 'template' | 'containers'>>
  if (typeof template?.spec !== 'object' || !Array.isArray(template.spec.containers)) return undefined
  if (!Array.isArray(containers)) return undefined
  const revision = revisionOf(template, containers)
  const { name, uid, resourceVersion } = object.metadata
  if (name !== revisionName(set.name, revision)) return undefined
  return { ...revision, name, uid, resourceVersion, number: object.revision }
}

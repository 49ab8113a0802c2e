/**
 * The templates that a set has had, one ControllerRevision each, as for StatefulSets. While memory of an older template
 * lives, the operator must still be able to create pods for it.
 */
import type { ParsedSet } from '../../api/parse.ts'
import { restoreHash } from '../../checkpoint/restore-hash.ts'
import { createMemo } from '../../kube/memo.ts'
import type { ControllerRevision } from '../../kube/resources.ts'
import { templateHash } from '../pod/template-hash.ts'

/** The template of pods, with its hashes. */
export interface Revision {
  readonly templateHash: string
  readonly restoreHash: string
  readonly template: ParsedSet['template']
  /** Names of the containers whose memory is saved. */
  readonly containers: readonly string[]
}

/** A revision in the API server. */
export interface StoredRevision extends Revision {
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  /** Increases with each revision. */
  readonly number: number
}

export type RevisionOf = (template: ParsedSet['template'], containers: readonly string[]) => Revision

/** Returns a function that computes each revision once and caches it: every pass needs it. */
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

/** Returns the set with this revision as its template, to create pods. */
export function asOf(set: ParsedSet, revision: Revision | undefined): ParsedSet {
  if (revision === undefined || set.memory === undefined) return set
  const { template, containers } = revision
  return { ...set, template, memory: { ...set.memory, containers } }
}

/** Parses a ControllerRevision; undefined if its content does not match the hash in its name: edited, or not ours. */
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

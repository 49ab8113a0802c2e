import type { PodKind } from '../../api/labels.ts'
import type { Action } from '../plan.ts'
import type { Revision } from '../revisions/revision.ts'
import type { Snapshot } from '../snapshot.ts'
import { isRetained } from './retention.ts'
import { isGivenUp } from './update.ts'

/**
 * Returns the number of slots by the restore hash of their memory. Memory that is only retained, that is being given
 * up, or that no pod can be made for does not count.
 */
export function kindsOfMemory(s: Snapshot): ReadonlyMap<string, number> {
  const kinds = new Map<string, number>()
  for (const slot of s.memory?.slots.values() ?? []) {
    const { restoreHash } = slot.lease
    if (restoreHash === undefined || isRetained(slot) || isGivenUp(s, slot) || !canMake(s, restoreHash))
      continue
    kinds.set(restoreHash, (kinds.get(restoreHash) ?? 0) + 1)
  }
  return kinds
}

/**
 * Returns the template for a pod that gets memory of this kind: the set's current one if the memory fits it, else the
 * last stored template that it fits. Undefined if none is left.
 */
export function revisionFor({ revisions }: Snapshot, restoreHash: string): Revision | undefined {
  if (revisions === undefined) return undefined
  const { current, stored } = revisions
  return current.restoreHash === restoreHash ? current : stored.find(it => it.restoreHash === restoreHash)
}

const canMake = (s: Snapshot, restoreHash: string) => revisionFor(s, restoreHash) !== undefined

/**
 * Returns a function that names the template for each new pod; undefined means the set's own. Backups are for the
 * memory that exists, not for the template that is wanted: after a crash between an edit and its roll, an understudy
 * has to fit the memory. Among several kinds, the one with the most slots per understudy comes next.
 */
export function revisionGiver(s: Snapshot): (kind: PodKind) => Revision | undefined {
  const kinds = kindsOfMemory(s)
  const made = new Map<string, number>()
  const key = (kind: PodKind, hash: string | undefined) => `${kind} ${hash}`
  for (const { kind, stage } of s.pods) {
    const at = key(kind, stage?.restoreHash)
    made.set(at, (made.get(at) ?? 0) + 1)
  }
  return kind => {
    if (kind === 'primary') return undefined
    const need = (hash: string) => (kinds.get(hash) ?? 0) / ((made.get(key(kind, hash)) ?? 0) + 1)
    const isCurrent = (hash: string) => Number(hash === s.restoreHash)
    const [best] = [...kinds.keys()].sort(
      (a, b) => need(b) - need(a) || isCurrent(b) - isCurrent(a) || (a < b ? -1 : 1),
    )
    if (best === undefined) return undefined
    made.set(key(kind, best), (made.get(key(kind, best)) ?? 0) + 1)
    return best === s.restoreHash ? undefined : revisionFor(s, best)
  }
}

/**
 * Stores the current template before pods of it can be outdated, and prunes templates that no pod and no memory needs.
 */
export function revisionActions(s: Snapshot): Action[] {
  if (s.revisions === undefined) return []
  const { current, stored } = s.revisions
  const isKept = stored.some(({ templateHash }) => templateHash === current.templateHash)
  if (!isKept) return [{ type: 'saveRevision', revision: current, number: (stored[0]?.number ?? 0) + 1 }]
  const alive = new Set([...s.pods, ...(s.retired ?? []), ...s.finished].map(pod => pod.templateHash))
  const remembered = new Set(
    [...(s.memory?.slots.values() ?? [])].map(({ lease }) => revisionFor(s, lease.restoreHash ?? '')),
  )
  return stored
    .filter(
      it => it.templateHash !== current.templateHash && !alive.has(it.templateHash) && !remembered.has(it),
    )
    .map(revision => ({ type: 'deleteRevision', revision }))
}

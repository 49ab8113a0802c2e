import type { Api } from '../kube/api.ts'
import { hasCause } from '../kube/errors.ts'
import { namespaces } from '../kube/resources.ts'
import type { Outcome } from './plan.ts'

/**
 * Sets whose namespace is terminating. Its pods are deleted before its sets. Each deleted primary would cause a
 * pointless failover, which starts the app of a cold backup. A terminating namespace never returns, and its sets end
 * with it.
 */
export interface TerminatingNamespaces {
  has(setUid: string): boolean
  /**
   * Asks the API server. If it does not answer, the last known state counts: this question must not fail a failover.
   */
  ask(set: { readonly uid: string; readonly namespace: string }, signal: AbortSignal): Promise<boolean>
  /** Learns it from creations that failed with the cause `NamespaceTerminating`. */
  note(setUid: string, outcomes: readonly Outcome[]): void
  forget(setUid: string): void
}

export function createTerminatingNamespaces(api: Pick<Api, 'get'>): TerminatingNamespaces {
  const sets = new Set<string>()
  return {
    has: setUid => sets.has(setUid),
    async ask({ uid, namespace }, signal) {
      const metadata = await api
        .get(namespaces, { name: namespace }, { signal })
        .then(found => found.metadata)
        .catch(() => undefined)
      signal.throwIfAborted()
      if (metadata?.deletionTimestamp !== undefined) sets.add(uid)
      return sets.has(uid)
    },
    note(setUid, outcomes) {
      if (
        outcomes.some(outcome => outcome.type === 'failed' && hasCause(outcome.error, 'NamespaceTerminating'))
      )
        sets.add(setUid)
    },
    forget: setUid => void sets.delete(setUid),
  }
}

import type { Api } from '../kube/api.ts'
import { hasCause } from '../kube/errors.ts'
import { namespaces } from '../kube/resources.ts'
import type { Outcome } from './act/outcome.ts'

/**
 * Sets whose namespace ends. Pods go before sets there: each that goes would have a backup take its place, and of a cold one
 * the application would be started, for nothing. Such a namespace never comes back, and its sets go with it.
 */
export interface Ending {
  has(setUid: string): boolean
  /** Asks the API server. Without an answer it goes on: a failover must not fail for this question. */
  ask(set: { readonly uid: string; readonly namespace: string }, signal: AbortSignal): Promise<boolean>
  /** Creations are refused with this cause. */
  note(setUid: string, outcomes: readonly Outcome[]): void
  forget(setUid: string): void
}

export function createEnding(api: Pick<Api, 'get'>): Ending {
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

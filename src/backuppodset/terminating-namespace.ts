import type { Api } from '../kube/api.ts'
import { hasCause } from '../kube/errors.ts'
import { namespaces } from '../kube/resources.ts'
import type { Outcome } from './plan.ts'

/**
 * Whether the namespace of one set is terminating. Its pods are deleted before its sets. Each deleted primary would
 * cause a pointless failover, which starts the app of a cold backup. A terminating namespace never returns, and its
 * sets end with it.
 */
export interface TerminatingNamespace {
  isKnown(): boolean
  /**
   * Asks the API server. If it does not answer, the last known state counts: this question must not fail a failover.
   */
  ask(signal: AbortSignal): Promise<boolean>
  /** Learns it from creations that failed with the cause `NamespaceTerminating`. */
  note(outcomes: readonly Outcome[]): void
}

export function createTerminatingNamespace(api: Pick<Api, 'get'>, namespace: string): TerminatingNamespace {
  let isTerminating = false
  return {
    isKnown: () => isTerminating,
    async ask(signal) {
      const metadata = await api
        .get(namespaces, { name: namespace }, { signal })
        .then(found => found.metadata)
        .catch(() => undefined)
      signal.throwIfAborted()
      if (metadata?.deletionTimestamp !== undefined) isTerminating = true
      return isTerminating
    },
    note(outcomes) {
      if (
        outcomes.some(outcome => outcome.type === 'failed' && hasCause(outcome.error, 'NamespaceTerminating'))
      )
        isTerminating = true
    },
  }
}

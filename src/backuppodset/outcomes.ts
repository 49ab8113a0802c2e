/** Consequences of the outcomes of a pass for the set, its retries and the log. */
import { isKubeError } from '../kube/errors.ts'
import { controllerOf } from '../kube/owner.ts'
import type { Pod } from '../kube/resources.ts'
import { PodChangedError } from '../slot/act/write-pod.ts'
import { isFinished } from '../slot/observe/candidate.ts'
import type { Attempt } from './action-retries.ts'
import type { Observed } from './observe.ts'
import type { Outcome } from './plan.ts'

/** Returns the set's live pods as read, overlaid with the writes of this pass. */
export function livePodsAfter(observed: Observed, outcomes: readonly Outcome[]): Pod[] {
  const { snapshot, pods } = observed
  const live = new Map<string, Pod>()
  for (const { uid } of snapshot.pods) {
    const pod = pods.get(uid)
    if (pod !== undefined) live.set(uid, pod)
  }
  for (const outcome of outcomes) {
    const { action } = outcome
    if (outcome.type === 'done' && outcome.pod !== undefined && action.type !== 'release')
      live.set(outcome.pod.metadata.uid, outcome.pod)
    const isGone = (outcome.type === 'done' && action.type === 'delete') || outcome.type === 'spent'
    if (isGone && 'pod' in action) live.delete(action.pod.uid)
  }
  return [...live.values()].filter(pod => pod.metadata.deletionTimestamp === undefined && !isFinished(pod))
}

/** Returns how many pods of the set are not live any more, and whose apps may still run: they use up their grace periods. */
export const endingAfter = (
  { pods }: Pick<Observed, 'pods'>,
  live: readonly Pod[],
  set: { readonly uid: string },
): number => {
  const stay = new Set(live.map(({ metadata }) => metadata.uid))
  return [...pods.values()].filter(
    pod => controllerOf(pod)?.uid === set.uid && !stay.has(pod.metadata.uid) && !isFinished(pod),
  ).length
}

/** Returns the roles that pods have taken. */
export const rolesIn = (outcomes: readonly Outcome[]) =>
  outcomes.flatMap(({ type, action }) =>
    type === 'done' && 'role' in action && action.role !== undefined ? [action.role] : [],
  )

/** Returns the slots for which the set has no place any more. */
export const releasedIn = (outcomes: readonly Outcome[]): readonly number[] =>
  outcomes.flatMap(({ type, action }) =>
    type === 'done' && action.type === 'delete' && action.reason === 'Surplus' ? (action.pod.slot ?? []) : [],
  )

/** Returns the outcomes as attempts; one that was given up in time is none. */
export function attemptsOf(outcomes: readonly Outcome[]): Attempt[] {
  return outcomes.flatMap((outcome): Attempt[] => {
    const what = outcome.action.type
    if (outcome.type === 'failed') return [{ what, type: 'failed', error: outcome.error }]
    return outcome.type === 'done' ? [{ what, type: 'done' }] : []
  })
}

/** Returns the failures as the error of the pass, after everything has been reported. */
export function errorOf(attempts: readonly Attempt[]): unknown {
  const errors = attempts.flatMap(attempt => (attempt.type === 'failed' ? [attempt.error] : []))
  // Pods that changed during the pass: normally the cache shows the change within milliseconds.
  const unexpected = errors.filter(
    error => !(error instanceof PodChangedError) && !isKubeError(error, 'Conflict'),
  )
  return unexpected.length > 1
    ? new AggregateError(unexpected, `${unexpected.length} actions failed`)
    : unexpected[0]
}

/** Counts the outcomes by type, for the log. */
export function tally(outcomes: readonly Outcome[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { type, action } of outcomes) {
    const key = type === 'done' ? action.type : `${action.type} ${type}`
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}

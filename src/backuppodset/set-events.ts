import { eventReasons } from '../api/reasons.ts'
import { PodChangedError } from '../slot/act/write-pod.ts'
import { type ForPod, type SetEvent, toldOf } from './action-events.ts'
import type { Action, Outcome } from './plan.ts'

const listed = 5

/** Returns the events of a pass, one for each kind of action: a thousand creations are one event. */
export function eventsOf(outcomes: readonly Outcome[], monotonicNow: number): SetEvent[] {
  const groups = new Map<string, { told: ForPod; pods: string[] }>()
  const single: SetEvent[] = []
  for (const told of outcomes.flatMap(outcome => toldOf(outcome, monotonicNow))) {
    if ('note' in told) {
      single.push(told)
      continue
    }
    const key = `${told.reason} ${told.text}`
    const group = groups.get(key) ?? { told, pods: [] }
    group.pods.push(told.pod)
    groups.set(key, group)
  }
  const grouped = [...groups.values()].map(({ told: { type, reason, action, text }, pods }): SetEvent => {
    const more = pods.length > listed ? ` and ${pods.length - listed} more` : ''
    return { type, reason, action, note: `${text} ${pods.slice(0, listed).join(', ')}${more}` }
  })
  const failure = failedActionOf(outcomes)
  return failure === undefined
    ? [...single, ...grouped]
    : [
        ...single,
        ...grouped,
        { type: 'Warning', reason: eventReasons.actionFailed, action: 'Reconcile', note: failure },
      ]
}

/**
 * Returns the first failure of a pass, for display. A pod that changed in the meantime is normal and does not count.
 */
export function failedActionOf(outcomes: readonly Outcome[]): string | undefined {
  const failures = outcomes.flatMap(outcome =>
    outcome.type === 'failed' && !(outcome.error instanceof PodChangedError) ? [outcome] : [],
  )
  const [first] = failures
  if (first === undefined) return undefined
  const message = first.error instanceof Error ? first.error.message : String(first.error)
  const others = failures.length > 1 ? ` (other failures: ${failures.length - 1})` : ''
  return `could not ${wordsOf(first.action)}: ${message}${others}`
}

/** Without names of pods: they differ from try to try, and a status that changes each time is written each time. */
function wordsOf(action: Action): string {
  switch (action.type) {
    case 'adopt':
    case 'release':
      return `${action.type} a pod`
    case 'create':
      return `create a ${action.kind}`
    case 'convert':
      return action.pod.kind === 'primary'
        ? 'give a slot to a primary'
        : `convert a ${action.pod.kind} to ${action.to}`
    case 'restore':
      return `give the app of slot ${action.slot} its state back`
    case 'wake':
      return `open the gate of a ${action.pod.kind} again`
    case 'delete':
      return `delete a ${action.pod.kind}`
    case 'promote':
      return `give slot ${action.role.slot} to a backup`
    case 'retire':
      return 'retire a former primary'
    case 'writeSlot':
      return `write the Lease of slot ${action.lease.slot}`
    case 'writePolicy':
      return `write the policy into the Lease of slot ${action.slot}`
    case 'endGrant':
      return `end the grant of slot ${action.slot} on the pod ${action.pod.name}`
    case 'stateSilence':
      return 'state in the report of a node that its primaries are silent'
    case 'deleteSlot':
      return `delete the Lease of slot ${action.slot}`
    case 'giveUp':
      return `announce that slot ${action.lease.slot} loses its memory`
    case 'saveRevision':
      return 'save a revision of the template'
    case 'deleteRevision':
      return 'delete a revision of the template'
    case 'applyService':
      return `write Service ${action.service}`
    case 'applyEndpoints':
      return `write the endpoints of Service ${action.service}`
    case 'deleteService':
      return `delete ${action.what === 'service' ? 'Service' : 'EndpointSlice'} ${action.name}`
  }
}

/**
 * Returns the series of an event, without the names and numbers that differ: a lasting failure is one event, whichever
 * and however many pods it concerns.
 */
export const seriesOf = ({ reason, note }: Pick<SetEvent, 'reason' | 'note'>): string =>
  reason === eventReasons.actionFailed
    ? note.replaceAll(/-[0-9a-f]{12}\b/g, '-*').replaceAll(/\d+/g, '#')
    : note

/**
 * Separate lanes: neither a rollout of some hundred pods nor a repeating failure may use up the budget of failover
 * events.
 */
export function laneOf({ reason, type }: Pick<SetEvent, 'reason' | 'type'>): string {
  if (reason === eventReasons.failedOver || reason === eventReasons.replaced) return 'failover'
  return reason === eventReasons.actionFailed ? reason : type
}

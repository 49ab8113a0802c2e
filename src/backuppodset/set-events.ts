import { eventReasons } from '../api/reasons.ts'
import type { Outcome } from './act/outcome.ts'
import { PodChangedError } from './act/write-pod.ts'
import type { Action, EmptyStart } from './plan.ts'
import type { StateRef } from './pulled/view.ts'

/** An event about a set. */
export interface SetEvent {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly action: string
  readonly note: string
}

const listed = 5

/** Returns the events of a pass, one for each kind of action: a thousand creations are one event. */
export function eventsOf(outcomes: readonly Outcome[], monotonicNow: number): SetEvent[] {
  const groups = new Map<string, { notice: Omit<SetEvent, 'note'>; text: string; pods: string[] }>()
  const single: SetEvent[] = []
  const tell = (type: SetEvent['type'], reason: string, action: string, text: string, pod: string) => {
    const key = `${reason} ${text}`
    const group = groups.get(key) ?? { notice: { type, reason, action }, text, pods: [] }
    group.pods.push(pod)
    groups.set(key, group)
  }
  for (const outcome of outcomes) {
    const { action } = outcome
    if (outcome.type === 'spent') {
      const name = 'pod' in action ? action.pod.name : ''
      const who = action.type === 'wake' ? action.pod.kind : 'Cold backup'
      const note = `${who} ${name} could not be woken, so the operator deleted it: ${outcome.why}`
      single.push({ type: 'Warning', reason: eventReasons.wakeFailed, action: 'Wake', note })
    }
    if (outcome.type === 'setback' && action.type === 'promote') {
      const note = `${action.pod.name} was to take over slot ${action.role.slot} and failed: ${outcome.why}`
      single.push({ type: 'Warning', reason: eventReasons.promotionFailed, action: 'Promote', note })
    }
    if (outcome.type === 'setback' && (action.type === 'convert' || action.type === 'create')) {
      const name = action.type === 'create' ? action.name : action.pod.name
      const note = `${name} did not accept the state of slot ${action.role?.slot}: ${outcome.why}`
      single.push({ type: 'Warning', reason: eventReasons.promotionFailed, action: 'Promote', note })
    }
    if (outcome.type === 'setback' && action.type === 'restore') {
      const note = `the app in ${action.pod.name} restarted and did not accept its state (${outcome.why}): slot ${action.slot} starts empty there`
      single.push({ type: 'Warning', reason: eventReasons.stateLost, action: 'Restart', note })
    }
    if (outcome.type !== 'done') continue
    if ('role' in action && action.role?.startsEmpty) {
      const note = `slot ${action.role.slot} starts empty in ${action.type === 'create' ? action.name : action.pod.name}: ${emptyBecause[action.role.startsEmpty]}`
      single.push({ type: 'Warning', reason: eventReasons.restoredEmpty, action: 'Promote', note })
    }
    switch (action.type) {
      case 'create': {
        const { kind, name, successorOf } = action
        const what = successorOf === undefined ? kind : `successor for slot ${successorOf.slot}`
        tell('Normal', eventReasons.created, 'Create', `Created ${what}`, name)
        if (action.state && action.role?.replaces) {
          const { name, reason, seenAt, why } = action.role.replaces
          const seconds = ((monotonicNow - seenAt) / 1000).toFixed(3)
          const note = `new pod ${action.name} took over slot ${action.role.slot} from ${name} (${because(reason, why)}) in ${seconds} s${stateNote(action, seenAt)}`
          const event = reason === 'Replaced' ? eventReasons.replaced : eventReasons.failedOver
          single.push({ type: 'Normal', reason: event, action: 'Promote', note })
        }
        break
      }
      case 'convert': {
        const { pod, to, role } = action
        if (role?.replaces) {
          const { name, reason, seenAt, why } = role.replaces
          const seconds = ((monotonicNow - seenAt) / 1000).toFixed(3)
          const note = `${pod.name} took over slot ${role.slot} from ${name} (${because(reason, why)}) in ${seconds} s${stateNote(action, seenAt)}`
          const event = reason === 'Replaced' ? eventReasons.replaced : eventReasons.failedOver
          single.push({ type: 'Normal', reason: event, action: 'Promote', note })
        } else if (pod.kind === 'primary')
          tell('Normal', eventReasons.slotGiven, 'Promote', 'Gave a slot to', pod.name)
        else tell('Normal', eventReasons.converted, 'Convert', `Converted ${pod.kind} to ${to}:`, pod.name)
        break
      }
      case 'restore': {
        const note = `the app in ${action.pod.name} restarted and got its state back (generation ${action.state.generation})`
        single.push({ type: 'Normal', reason: eventReasons.restoredInPlace, action: 'Restart', note })
        break
      }
      case 'wake':
        tell('Normal', eventReasons.rewoken, 'Wake', 'Opened the gate again:', action.pod.name)
        break
      case 'delete':
        tell(
          'Normal',
          eventReasons.deleted,
          'Delete',
          `Deleted ${action.pod.kind} (${action.reason})`,
          action.pod.name,
        )
        break
      case 'adopt':
        tell('Normal', eventReasons.adopted, 'Adopt', 'Adopted', action.pod.name)
        break
      case 'release':
        tell('Normal', eventReasons.released, 'Release', 'Released', action.pod.name)
        break
      case 'promote': {
        const { pod, role, origin } = action
        const from = role.replaces
          ? ` from ${role.replaces.name} (${because(role.replaces.reason, role.replaces.why)})`
          : ''
        const since = role.replaces?.seenAt
        const endedAt = outcome.phases?.published ?? monotonicNow
        const took = since === undefined ? '' : ` in ${((endedAt - since) / 1000).toFixed(3)} s`
        const age =
          origin === undefined || since === undefined
            ? ''
            : `; its memory (${origin.how}, generation ${origin.generation}) was ${((since - origin.takenAt) / 1000).toFixed(1)} s old`
        const note = `${pod.name} took over slot ${role.slot}${from}${took}${age}`
        single.push({ type: 'Normal', reason: eventReasons.failedOver, action: 'Promote', note })
        break
      }
      case 'retire':
        tell('Normal', eventReasons.retired, 'Retire', 'Retired', action.pod.name)
        break
      case 'writeSlot':
        if (action.retention) {
          const { type, note } = action.retention
          const reason = type === 'begins' ? eventReasons.slotRetained : eventReasons.slotReclaimed
          single.push({ type: 'Normal', reason, action: 'Scale', note })
        }
        if (action.stateLost) {
          const note = `the app in ${action.lease.holder.name} ended and no node has its memory: slot ${action.lease.slot} starts empty there`
          single.push({ type: 'Warning', reason: eventReasons.stateLost, action: 'Restart', note })
        }
        break
      case 'applyService':
        tell(
          'Normal',
          eventReasons.served,
          'Serve',
          `${action.version === undefined ? 'Created' : 'Changed'} Service`,
          action.service,
        )
        break
      case 'deleteService':
        if (action.what === 'service')
          tell('Normal', eventReasons.served, 'Withdraw', 'Removed Service', action.name)
        break
      case 'deleteSlot':
        if (action.told) single.push({ ...action.told, reason: eventReasons.slotForgotten, action: 'Scale' })
        break
      // Either the action that caused these has its own event, or they only repeat what the spec says.
      case 'writePolicy':
      case 'applyEndpoints':
      case 'saveRevision':
      case 'deleteRevision':
      // The code that does this sends the event before it acts.
      case 'giveUp':
        break
      default:
        action satisfies never
    }
  }
  const grouped = [...groups.values()].map(({ notice, text, pods }): SetEvent => {
    const more = pods.length > listed ? ` and ${pods.length - listed} more` : ''
    return { ...notice, note: `${text} ${pods.slice(0, listed).join(', ')}${more}` }
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

const emptyBecause: Readonly<Record<EmptyStart, string>> = {
  Gone: 'no node has its memory',
  GivenUp: 'no node could restore its memory within checkpoint.giveUpAfterSeconds',
  NoState: 'the operator has no state of it',
  Refused: 'pods did not accept its state',
}

const because = (reason: string, why: string | undefined): string =>
  why === undefined ? reason : `${reason}: ${why}`

const stateNote = ({ state }: { readonly state?: StateRef }, seenAt: number): string =>
  state === undefined
    ? ''
    : `; its state (pulled, generation ${state.generation}) was ${Math.max(0, (seenAt - state.takenAt) / 1000).toFixed(1)} s old`

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

/** The events that one action of a pass causes. */
import { eventReasons } from '../api/reasons.ts'
import type { EmptyStart } from '../slot/decide/actions.ts'
import type { StateRef } from '../slot/decide/pulled-view.ts'
import type { LostPrimary } from '../slot/decide/snapshot.ts'
import type { Action, Outcome } from './plan.ts'

/** An event about a set. */
export interface SetEvent {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly action: string
  readonly note: string
}

/** An event that names one of possibly many pods: those with equal text become one event. */
export interface ForPod extends Omit<SetEvent, 'note'> {
  readonly text: string
  readonly pod: string
}

type Told = SetEvent | ForPod
type Done = Extract<Outcome, { readonly type: 'done' }>
type ActionOf<Type extends Action['type']> = Extract<Action, { readonly type: Type }>

export function toldOf(outcome: Outcome, monotonicNow: number): readonly Told[] {
  switch (outcome.type) {
    case 'spent':
      return [wakeFailed(outcome.action, outcome.why)]
    case 'setback':
      return setbackOf(outcome.action, outcome.why)
    case 'done':
      return [...emptyStartOf(outcome.action), ...doneOf(outcome, monotonicNow)]
    case 'pending':
    case 'failed':
      return []
  }
}

const normal = (reason: string, action: string, note: string): SetEvent => ({
  type: 'Normal',
  reason,
  action,
  note,
})

const warning = (reason: string, action: string, note: string): SetEvent => ({
  type: 'Warning',
  reason,
  action,
  note,
})

const forPod = (reason: string, action: string, text: string, pod: string): ForPod => ({
  type: 'Normal',
  reason,
  action,
  text,
  pod,
})

function wakeFailed(action: Action, why: string): SetEvent {
  const name = 'pod' in action ? action.pod.name : ''
  const who = action.type === 'wake' ? action.pod.kind : 'Cold backup'
  const note = `${who} ${name} could not be woken, so the operator deleted it: ${why}`
  return warning(eventReasons.wakeFailed, 'Wake', note)
}

function setbackOf(action: Action, why: string): readonly Told[] {
  switch (action.type) {
    case 'promote': {
      const note = `${action.pod.name} was to take over slot ${action.role.slot} and failed: ${why}`
      return [warning(eventReasons.promotionFailed, 'Promote', note)]
    }
    case 'convert':
    case 'create': {
      const name = action.type === 'create' ? action.name : action.pod.name
      const note = `${name} did not accept the state of slot ${action.role?.slot}: ${why}`
      return [warning(eventReasons.promotionFailed, 'Promote', note)]
    }
    case 'restore': {
      const note = `the app in ${action.pod.name} restarted and did not accept its state (${why}): slot ${action.slot} starts empty there`
      return [warning(eventReasons.stateLost, 'Restart', note)]
    }
    default:
      return []
  }
}

function emptyStartOf(action: Action): readonly Told[] {
  if (!('role' in action) || !action.role?.startsEmpty) return []
  const note = `slot ${action.role.slot} starts empty in ${action.type === 'create' ? action.name : action.pod.name}: ${emptyBecause[action.role.startsEmpty]}`
  return [warning(eventReasons.restoredEmpty, 'Promote', note)]
}

function doneOf({ action, phases }: Done, monotonicNow: number): readonly Told[] {
  switch (action.type) {
    case 'create':
      return createdOf(action, monotonicNow)
    case 'convert':
      return [convertedOf(action, monotonicNow)]
    case 'promote':
      return [promotedOf(action, phases?.published ?? monotonicNow)]
    case 'restore': {
      const note = `the app in ${action.pod.name} restarted and got its state back (generation ${action.state.generation})`
      return [normal(eventReasons.restoredInPlace, 'Restart', note)]
    }
    case 'wake':
      return [forPod(eventReasons.rewoken, 'Wake', 'Opened the gate again:', action.pod.name)]
    case 'delete': {
      const text = `Deleted ${action.pod.kind} (${action.reason})`
      return [forPod(eventReasons.deleted, 'Delete', text, action.pod.name)]
    }
    case 'adopt':
      return [forPod(eventReasons.adopted, 'Adopt', 'Adopted', action.pod.name)]
    case 'release':
      return [forPod(eventReasons.released, 'Release', 'Released', action.pod.name)]
    case 'retire':
      return [forPod(eventReasons.retired, 'Retire', 'Retired', action.pod.name)]
    case 'writeSlot':
      return slotWrittenOf(action)
    case 'deleteSlot':
      return action.told ? [{ ...action.told, reason: eventReasons.slotForgotten, action: 'Scale' }] : []
    case 'applyService': {
      const text = `${action.version === undefined ? 'Created' : 'Changed'} Service`
      return [forPod(eventReasons.served, 'Serve', text, action.service)]
    }
    case 'deleteService':
      return action.what === 'service'
        ? [forPod(eventReasons.served, 'Withdraw', 'Removed Service', action.name)]
        : []
    // Either the action that caused these has its own event, or they only repeat what the spec says.
    case 'writePolicy':
    case 'endGrant':
    case 'stateSilence':
    case 'applyEndpoints':
    case 'saveRevision':
    case 'deleteRevision':
    // The code that does this sends the event before it acts.
    case 'giveUp':
      return []
  }
}

function createdOf(action: ActionOf<'create'>, monotonicNow: number): readonly Told[] {
  const { kind, name, role, state, successorOf } = action
  const what = successorOf === undefined ? kind : `successor for slot ${successorOf.slot}`
  const created = forPod(eventReasons.created, 'Create', `Created ${what}`, name)
  if (state === undefined || !role?.replaces) return [created]
  return [created, tookOver(`new pod ${name}`, role.slot, role.replaces, state, monotonicNow)]
}

function convertedOf({ pod, to, role, state }: ActionOf<'convert'>, monotonicNow: number): Told {
  if (role?.replaces) return tookOver(pod.name, role.slot, role.replaces, state, monotonicNow)
  return pod.kind === 'primary'
    ? forPod(eventReasons.slotGiven, 'Promote', 'Gave a slot to', pod.name)
    : forPod(eventReasons.converted, 'Convert', `Converted ${pod.kind} to ${to}:`, pod.name)
}

/** The takeover of a slot whose memory no node keeps. */
function tookOver(
  successor: string,
  slot: number,
  { name, reason, seenAt, why }: LostPrimary,
  state: StateRef | undefined,
  monotonicNow: number,
): SetEvent {
  const seconds = ((monotonicNow - seenAt) / 1000).toFixed(3)
  const age =
    state === undefined
      ? ''
      : `; its state (pulled, generation ${state.generation}) was ${Math.max(0, (seenAt - state.takenAt) / 1000).toFixed(1)} s old`
  const note = `${successor} took over slot ${slot} from ${name} (${because(reason, why)}) in ${seconds} s${age}`
  return normal(reason === 'Replaced' ? eventReasons.replaced : eventReasons.failedOver, 'Promote', note)
}

/** The takeover of a slot with its memory. @param endedAt monotonic ms at which the successor could be reached. */
function promotedOf({ pod, role, origin, lease }: ActionOf<'promote'>, endedAt: number): SetEvent {
  if (role.replaces === undefined && lease.cloneOf !== undefined)
    return normal(
      eventReasons.slotCloned,
      'Clone',
      `${pod.name} begins slot ${role.slot} with a copy of the memory of slot ${lease.cloneOf.name}`,
    )
  const from = role.replaces
    ? ` from ${role.replaces.name} (${because(role.replaces.reason, role.replaces.why)})`
    : ''
  const since = role.replaces?.seenAt
  const took = since === undefined ? '' : ` in ${((endedAt - since) / 1000).toFixed(3)} s`
  const age =
    origin === undefined || since === undefined
      ? ''
      : `; its memory (${origin.how}, generation ${origin.generation}) was ${((since - origin.takenAt) / 1000).toFixed(1)} s old`
  const note = `${pod.name} took over slot ${role.slot}${from}${took}${age}`
  return normal(eventReasons.failedOver, 'Promote', note)
}

function slotWrittenOf({ lease, retention, stateLost }: ActionOf<'writeSlot'>): readonly Told[] {
  const told: Told[] = []
  if (retention) {
    const [reason, action] = retained[retention.type]
    told.push(normal(reason, action, retention.note))
  }
  if (stateLost) {
    const note = `the app in ${lease.holder.name} ended and no node has its memory: slot ${lease.slot} starts empty there`
    told.push(warning(eventReasons.stateLost, 'Restart', note))
  }
  return told
}

const retained = {
  begins: [eventReasons.slotRetained, 'Scale'],
  ends: [eventReasons.slotReclaimed, 'Scale'],
  suspends: [eventReasons.slotSuspended, 'Suspend'],
  resumes: [eventReasons.slotResumed, 'Resume'],
  clones: [eventReasons.slotCloned, 'Clone'],
} as const

const emptyBecause: Readonly<Record<EmptyStart, string>> = {
  Gone: 'no node has its memory',
  GivenUp: 'no node could restore its memory within checkpoint.giveUpAfterSeconds',
  NoState: 'the operator has no state of it',
  Refused: 'pods did not accept its state',
}

const because = (reason: string, why: string | undefined): string =>
  why === undefined ? reason : `${reason}: ${why}`

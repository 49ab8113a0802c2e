/** The next status of each Migration. Pure: the facts and the time decide. */
import { isFinished, type MigrationStatus, migrationPriorities } from '../api/migration.ts'
import type { MigrationReason } from '../api/migration-reasons.ts'
import { beganAt, finishedAt } from '../api/migration-times.ts'
import type { ParsedMigration } from '../api/parse-migration.ts'
import { isEqual } from '../kube/equal.ts'
import { timelyMs } from '../slot/decide/deadlines.ts'
import { Admissions, type MigrationBudgets } from './budgets.ts'
import { judgeDowntime, patience, tooLong } from './downtime.ts'
import { outlived } from './retention.ts'
import { predictedIn, statusAfter, type Word } from './status.ts'
import type { Held, MigrationView, Passed, Target } from './view.ts'

/**
 * Statuses that one pass writes, and Migrations that it deletes: a namespace may have thousands, and the reason for which all of
 * them wait may change at once.
 */
export const mostWrites = 50

/** Time until the pass that writes the others, ms. */
const nextWritesMs = 1_000

/** Time for the caches to show a pod, its slot and the status of its set after a change, ms. */
export const settlesMs = 10_000

export interface Plan {
  /** Each Migration whose status changes, with its new status. */
  readonly statuses: readonly { readonly view: MigrationView; readonly status: MigrationStatus }[]
  readonly deletions: readonly MigrationView[]
  /** Ms until time alone may change the plan; undefined: never. */
  readonly againAfterMs: number | undefined
}

/** @param now wall clock, ms since the epoch. */
export function decide(views: readonly MigrationView[], now: number, budgets: MigrationBudgets): Plan {
  const inOrder = [...views].sort(byTurn)
  const admitted = new Admissions(inOrder.filter(isAdmitted), budgets)
  const statuses = inOrder.flatMap(view => {
    if (isFinished(view)) return []
    const word = wordOf(view, admitted, now)
    if (!isAdmitted(view) && word.phase === 'Reserving') admitted.add(view)
    const status = statusAfter(view, word, now)
    return isEqual(status, view.status) ? [] : [{ view, status }]
  })
  const deletions = outlived(views, now)
  const isMore = statuses.length > mostWrites || deletions.length > mostWrites
  return {
    statuses: statuses.sort((a, b) => Number(isWaiting(a)) - Number(isWaiting(b))).slice(0, mostWrites),
    deletions: deletions.slice(0, mostWrites),
    againAfterMs: soonest([
      ...views.flatMap(view => deadlinesOf(view, now).map(at => at - now)),
      ...(isMore ? [nextWritesMs] : []),
    ]),
  }
}

const isWaiting = ({ status }: { readonly status: MigrationStatus }) => status.phase === 'Pending'

/** Those under way first, then by priority, then the oldest. */
function byTurn(a: MigrationView, b: MigrationView): number {
  const rank = (view: MigrationView) =>
    isAdmitted(view) ? -1 : view.wish.ok ? migrationPriorities.indexOf(view.wish.wish.priority) : 0
  return rank(a) - rank(b) || a.createdAt - b.createdAt || (keyOf(a) < keyOf(b) ? -1 : 1)
}

const keyOf = ({ namespace, name }: MigrationView) => `${namespace}/${name}`

const isAdmitted = (view: MigrationView): boolean =>
  !isFinished(view) && view.status.phase !== undefined && view.status.phase !== 'Pending'

function wordOf(view: MigrationView, admitted: Admissions, now: number): Word {
  const { wish, facts } = view
  if (!wish.ok) return failed(wish.code, wish.message)
  const { source } = wish.wish
  switch (facts.type) {
    case 'absent':
      return settling(
        facts.seenForMs,
        isAdmitted(view) ? 'SourceGone' : 'SourceNotFound',
        isAdmitted(view)
          ? `the slot of ${source.name} does not exist any more`
          : `there is no pod ${source.name} of a BackupPodSet in this namespace`,
        view,
      )
    case 'another':
      return failed('SourceReplaced', `another pod has the name ${source.name} now`)
    case 'backup':
      return settling(
        facts.seenForMs,
        'NotAPrimary',
        `${source.name} is a backup: name the primary of a slot`,
        view,
      )
    case 'unkept':
      return settling(
        facts.seenForMs,
        'NoMemory',
        `no memory of ${source.name} is kept: see the condition CheckpointReady of its BackupPodSet, which needs checkpoint in its spec`,
        view,
      )
    case 'held':
      return isAdmitted(view) ? underWay(view, wish.wish, facts, now) : toBegin(view, facts, admitted)
    case 'passed':
      return afterSwitch(view, wish.wish, facts, now)
    default:
      return facts satisfies never
  }
}

const failed = (reason: Word['reason'], message: string): Word => ({ phase: 'Failed', reason, message })

/** A cache may be older than the Migration. */
const settling = (
  seenForMs: number,
  reason: MigrationReason,
  message: string,
  { status }: MigrationView,
): Word => ({
  ...failed(reason, message),
  ...(seenForMs < settlesMs && { phase: status.phase ?? 'Pending' }),
})

function toBegin(view: MigrationView, facts: Held, admitted: Admissions): Word {
  const obstacle = admitted.obstacleTo(view, facts.source)
  if (obstacle !== undefined) return { phase: 'Pending', ...obstacle }
  // One that cannot begin would keep a place from those of other namespaces until its time-out.
  if (facts.isPaused) return { phase: 'Pending', reason: 'SetPaused', message: 'its BackupPodSet is paused' }
  if (facts.isSuspended)
    return { phase: 'Pending', reason: 'SetSuspended', message: 'its BackupPodSet is being suspended' }
  return { phase: 'Reserving', reason: 'Begins', message: 'a pod is found or made that takes the slot' }
}

function underWay({ status }: MigrationView, wish: ParsedMigration, facts: Held, now: number): Word {
  // A paused set calls no stop off: the primary resumes by itself, and its Lease asks on.
  if (facts.isStopping && !facts.isPaused)
    return { phase: 'Stopping', reason: 'Stopping', message: 'the pod is stopped, and saved once more' }
  if (facts.target?.failed !== undefined)
    return failed(
      'TargetFailed',
      `${facts.target.name} could not be given the memory: ${facts.target.failed}`,
    )
  const word = beforeStop(wish, facts)
  const begun = beganAt(status, 'Reserving') ?? now
  if (now - begun >= wish.pendingMs)
    return failed(word.reason, `after pendingTimeoutSeconds: ${word.message}`)
  const { target, nodes } = facts
  const isHomeless = target === undefined ? nodes === 0 : target.unschedulable !== undefined
  if (isHomeless && now - homelessSince(begun, target) >= wish.unschedulableMs)
    return failed(word.reason, `after unschedulableTimeoutSeconds: ${word.message}`)
  return word
}

/** A pod that was made instead of another one has its own time to find a node. */
const homelessSince = (begun: number, target: Target | undefined): number =>
  Math.max(begun, target?.createdAt ?? 0)

function beforeStop(wish: ParsedMigration, held: Held): Word {
  const { target, isPaused, saved, nodes } = held
  const phase = target?.node === undefined ? 'Reserving' : 'Preparing'
  if (isPaused) return { phase, reason: 'SetPaused', message: 'its BackupPodSet is paused' }
  if (saved?.obstacle !== undefined)
    return { phase, reason: 'NotSaved', message: `the pod cannot be saved: ${saved.obstacle}` }
  if (target === undefined)
    return nodes === 0
      ? {
          phase,
          reason: 'NoNode',
          message: 'no other node with an agent has the labels of addedNodeSelector and takes pods',
        }
      : { phase, reason: 'TargetComing', message: 'a pod that takes the slot is on its way' }
  if (target.node === undefined)
    return {
      phase,
      reason: target.unschedulable === undefined ? 'TargetComing' : 'Unschedulable',
      message: target.unschedulable ?? `${target.name} waits for the scheduler`,
    }
  return { phase, ...preparing(wish, target, held) }
}

function preparing(wish: ParsedMigration, target: Target, held: Held): Omit<Word, 'phase'> {
  const { name, node, hasMemory } = target
  if (!hasMemory)
    return { reason: 'MemoryComing', message: `the memory is on its way to ${name} on node ${node}` }
  if (held.saved?.handoverPaused === true)
    return {
      reason: 'SetBusy',
      message: 'the pod was stopped and could not be handed over in time; it is stopped again after a pause',
    }
  // Reports of other nodes bring the passes that notice this.
  if (held.silentMs > timelyMs)
    return {
      reason: 'AgentSilent',
      message: `the agent of node ${held.source.node} is silent, and would not stop the pod`,
    }
  const predicted = predictedIn(held)
  const judgement = judgeDowntime(wish, predicted)
  switch (judgement) {
    case 'fits':
    case 'accepted':
      return { reason: 'SetBusy', message: 'waits until each primary of its BackupPodSet is well' }
    case 'waits':
    case 'worse':
      return { reason: 'DowntimeTooLong', message: tooLong(judgement, wish.maxDowntimeMs, predicted) }
    default:
      return judgement satisfies never
  }
}

function afterSwitch(
  { status }: MigrationView,
  { source, pendingMs }: ParsedMigration,
  { to, serves, isLoss, isOutside }: Passed,
  now: number,
): Word {
  if (isLoss)
    return failed(
      'SourceLost',
      `${source.name} was lost before its move had ended, or its successor was; ${to.name} has taken over`,
    )
  if (!serves)
    return now - (beganAt(status, 'Switching') ?? now) >= pendingMs
      ? failed('NotServing', `${to.name} has the slot, and has not served within pendingTimeoutSeconds`)
      : { phase: 'Switching', reason: 'Switching', message: `${to.name} has the slot and resumes` }
  if (isOutside)
    return failed(
      'MovedElsewhere',
      `another handover came first: ${to.name} serves on node ${to.node}, without the labels of addedNodeSelector`,
    )
  return { phase: 'Succeeded', reason: 'Moved', message: `${to.name} serves on node ${to.node}` }
}

/** Returns the times at which the plan may change although nothing happens, ms since the epoch. */
function deadlinesOf(view: MigrationView, now: number): readonly number[] {
  const { wish, status, facts } = view
  if (!wish.ok) return []
  const { ttlMs, pendingMs, unschedulableMs } = wish.wish
  const ended = finishedAt(status)
  if (ended !== undefined) return ttlMs === undefined ? [] : [ended + ttlMs]
  switch (facts.type) {
    case 'absent':
    case 'backup':
    case 'unkept':
      return [now + settlesMs - facts.seenForMs]
    case 'held': {
      const begun = beganAt(status, 'Reserving')
      return [
        ...timesAfter(begun, [pendingMs]),
        ...(begun === undefined ? [] : [homelessSince(begun, facts.target) + unschedulableMs]),
        ...(facts.target?.waited === undefined ? [] : [now + patience.ms - facts.target.waited.ms]),
      ]
    }
    case 'passed':
      return timesAfter(beganAt(status, 'Switching'), [pendingMs])
    case 'another':
      return []
    default:
      return facts satisfies never
  }
}

const timesAfter = (begun: number | undefined, spans: readonly number[]): readonly number[] =>
  begun === undefined ? [] : spans.map(ms => begun + ms)

function soonest(times: readonly number[]): number | undefined {
  const ahead = times.filter(ms => ms > 0)
  return ahead.length === 0 ? undefined : Math.min(...ahead)
}

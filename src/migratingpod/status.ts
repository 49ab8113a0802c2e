/** The status of a MigratingPod. Pure: the facts and the time decide. */

import type { LastMove, MigratingPodState, MigratingPodStatus } from '../api/migrating-pod.ts'
import { conditionTypes } from '../api/reasons.ts'
import { type Condition, setCondition } from '../kube/conditions.ts'
import { restoreFailed } from '../slot/observe/stage.ts'
import type { MigratingPodView, MigrationFacts, PodFacts } from './view.ts'

/** More pods than a source and a target. */
export const mostPods = 2

/** Why a MigratingPod cannot be managed, or does not serve. */
interface Word {
  readonly reason: string
  readonly message: string
}

/** Returns the pod that runs the app: the one with the slot. */
export const activePodOf = ({ pods }: Pick<MigratingPodView, 'pods'>): PodFacts | undefined =>
  pods.filter(({ isPrimary }) => isPrimary).sort((a, b) => b.epoch - a.epoch)[0]

/** @param now wall clock, ms since the epoch. */
export function statusOf(view: MigratingPodView, now: number): MigratingPodStatus {
  const { object, set } = view
  const { status: before = {}, metadata } = object
  const active = activePodOf(view)
  const obstacle = obstacleTo(view)
  const told = set.type === 'ours' ? set.status : undefined
  const slot = told?.slots?.[0] ?? told?.retainedSlots?.[0]
  const completion = completionOf(view)
  const open = openMigration(view)
  const node = active === undefined ? undefined : active.node
  const activePod = completion?.pod ?? active?.name ?? before.activePod
  const lastMove = lastMoveOf(view)
  return {
    observedGeneration: metadata.generation ?? 0,
    state: completion
      ? 'Completed'
      : obstacle === undefined
        ? (suspendedState(view) ?? stateOf(view, active, open))
        : 'Invalid',
    ...(activePod !== undefined && { activePod }),
    ...(node !== undefined && { node }),
    ...(open && { migration: open.name }),
    ...(slot?.generation !== undefined && { generation: slot.generation }),
    ...(slot?.savedAt !== undefined && { savedAt: slot.savedAt }),
    ...(lastMove && { lastMove }),
    ...failuresOf(view, active),
    ...(completion && { completion }),
    conditions: conditionsOf(view, obstacle, now),
  }
}

/** Returns the end of its app with success; its set may be gone since. */
const completionOf = ({ object, set }: MigratingPodView): MigratingPodStatus['completion'] =>
  object.status?.completion ?? (set.type === 'ours' ? set.status?.completion : undefined)

/**
 * Reasons of takeovers for which the app itself was the cause. A node that was lost, a pod that was deleted and an app that its agent has
 * ended are none.
 */
const ownEnds: readonly string[] = ['Died', 'CrashLoop']

/** Counts each pod once from which another one had to continue, and each new start of the app in the pod that has the slot. */
function failuresOf(
  { object, set }: MigratingPodView,
  active: PodFacts | undefined,
): Pick<MigratingPodStatus, 'failures' | 'lastFailure' | 'restarts'> {
  const { failures: counted = 0, lastFailure: before, activePod, restarts: known = 0 } = object.status ?? {}
  const last = set.type === 'ours' ? set.status?.lastFailover : undefined
  const isNew = last !== undefined && ownEnds.includes(last.reason) && last.from !== before
  const lastFailure = isNew ? last.from : before
  const seen = active === undefined || active.name === activePod ? known : 0
  // While it is not known who has the slot, what was counted stays.
  const restarts = Math.max(seen, active?.restarts ?? 0)
  const failures = counted + (isNew ? 1 : 0) + restarts - seen
  return {
    ...(failures > 0 && { failures }),
    ...(lastFailure !== undefined && { lastFailure }),
    ...(restarts > 0 && { restarts }),
  }
}

function obstacleTo({ object, set, pods, refused }: MigratingPodView): Word | undefined {
  const { name } = object.metadata
  switch (set.type) {
    case 'taken':
      return {
        reason: 'NameTaken',
        message: `there is a BackupPodSet ${name}${set.owner === undefined ? '' : ` of ${set.owner}`}: delete it, or choose another name`,
      }
    case 'ours': {
      const present = pods.filter(({ isLeaving }) => !isLeaving).length
      if (present > mostPods)
        return {
          reason: 'TooManyPods',
          message: `it has ${present} pods; the operator deletes surplus ones when its memory runs in one of them`,
        }
      break
    }
    case 'absent':
    case 'ending':
      break
    default:
      return set satisfies never
  }
  return refused === undefined ? undefined : { reason: 'SetRefused', message: refused }
}

/**
 * Returns the state while the pod is not to run; a move that has begun comes to its end first. The set counts pods that are
 * being deleted, too.
 */
function suspendedState({ object, set }: MigratingPodView): MigratingPodState | undefined {
  if (object.spec.suspend !== true) return undefined
  const word = (set.type === 'ours' ? set.status?.conditions : undefined)?.find(
    ({ type }) => type === conditionTypes.suspended,
  )
  return word?.status === 'True' ? 'Suspended' : 'Suspending'
}

function stateOf(
  { object, pods }: MigratingPodView,
  active: PodFacts | undefined,
  open: MigrationFacts | undefined,
): MigratingPodState {
  if (open !== undefined) return open.phase === 'Pending' ? 'MigrationPending' : 'Migrating'
  if (active !== undefined && !active.isLeaving) return active.runs ? 'Running' : 'Creating'
  const isTargetThere = pods.some(({ isPrimary, isLeaving }) => !isPrimary && !isLeaving)
  if (isTargetThere) return 'Migrating'
  // A pod has been active before: its memory may be kept.
  return active !== undefined || object.status?.activePod !== undefined ? 'MigrationPending' : 'Creating'
}

const openMigration = ({ migrations }: MigratingPodView): MigrationFacts | undefined =>
  migrations
    .filter(({ endedAt, phase }) => endedAt === undefined && phase !== 'Succeeded' && phase !== 'Failed')
    .sort(
      (a, b) => Number(a.phase === 'Pending') - Number(b.phase === 'Pending') || (a.name < b.name ? -1 : 1),
    )[0]

/** Returns the last move that is known; a Migration and the history of the set may be gone before the status is. */
function lastMoveOf({ object, set, migrations }: MigratingPodView): LastMove | undefined {
  const moved = migrations.flatMap(({ phase, name: _, from, to, endedAt, downtimeMs }): LastMove[] =>
    phase === 'Succeeded' && to !== undefined && endedAt !== undefined
      ? [
          {
            ...{ from, to, reason: 'Migration', at: endedAt },
            ...(downtimeMs !== undefined && { seconds: downtimeMs / 1000 }),
          },
        ]
      : [],
  )
  const { lastFailover } = (set.type === 'ours' ? set.status : undefined) ?? {}
  const lost = lastFailover === undefined ? [] : [lossOf(lastFailover)]
  const known = [...moved, ...lost, ...(object.status?.lastMove ? [object.status.lastMove] : [])]
  return known.sort((a, b) => Date.parse(b.at) - Date.parse(a.at))[0]
}

const lossOf = ({
  from,
  to,
  reason,
  seconds,
  stateAge,
  at,
}: LastMove & { readonly seconds: number }): LastMove => ({
  ...{ from, to, reason, seconds },
  ...(stateAge !== undefined && { stateAge }),
  at,
})

/** Characters of an agent's message that the status repeats. */
const mostWords = 1_000

/** Returns why no pod continues with the memory; undefined: a pod has it, or nothing has failed. */
function failureOf({ pods }: MigratingPodView): Word | undefined {
  // Its memory is where it was, whatever has failed in a pod that was made for a move.
  if (pods.some(({ isPrimary, isLeaving }) => isPrimary && !isLeaving)) return undefined
  const failed = pods.filter(pod => pod.failed !== undefined && !pod.isLeaving)
  const [first] = failed.sort((a, b) => (a.name < b.name ? -1 : 1))
  if (first === undefined) return undefined
  return { reason: restoreFailed, message: `${first.name}: ${first.failed?.slice(0, mostWords)}` }
}

/** The conditions of the set that a MigratingPod repeats. */
const repeated = [
  conditionTypes.ready,
  conditionTypes.degraded,
  conditionTypes.checkpointReady,
  conditionTypes.suspended,
  conditionTypes.cloned,
] as const

function conditionsOf(view: MigratingPodView, obstacle: Word | undefined, now: number): readonly Condition[] {
  const { object, set } = view
  const observedGeneration = object.metadata.generation ?? 0
  const isOf: Partial<Record<(typeof repeated)[number], boolean>> = {
    [conditionTypes.suspended]: object.spec.suspend === true,
    [conditionTypes.cloned]: object.spec.clonePod !== undefined,
    // Nothing is saved of an app that has ended.
    [conditionTypes.checkpointReady]: completionOf(view) === undefined,
  }
  const wanted = repeated.filter(type => isOf[type] !== false)
  const before = (object.status?.conditions ?? []).filter(({ type }) => wanted.some(each => each === type))
  const told = (set.type === 'ours' ? set.status?.conditions : undefined) ?? []
  return wanted.reduce<readonly Condition[]>((all, type) => {
    const its = told.find(each => each.type === type)
    const unknown = {
      status: 'Unknown',
      reason: 'Creating',
      message: 'nothing is known of its pod yet',
    } as const
    const { status, reason, message } = its ?? unknown
    if (type === conditionTypes.ready) {
      const word = obstacle ?? (status === 'False' ? failureOf(view) : undefined)
      if (word !== undefined)
        return setCondition(all, { ...{ type, status: 'False', ...word }, observedGeneration, now })
    }
    return setCondition(all, { ...{ type, status, reason, message }, observedGeneration, now })
  }, before)
}

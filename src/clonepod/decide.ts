/** The next step of a ClonePod. Pure: the facts and the time decide. */
import {
  type ClonePod,
  type ClonePodStatus,
  clonePodLimits,
  clonePodSucceeded,
  isFinishedClone,
  clonePodReasons as reasons,
} from '../api/clone-pod.ts'
import { cloneSpecOf } from '../api/clone-spec.ts'
import type { MigratingPod } from '../api/migrating-pod.ts'
import type { ParsedClonePod } from '../api/parse-clone-pod.ts'
import { conditionTypes } from '../api/reasons.ts'
import { type Condition, refusedPauseMs, setCondition } from '../kube/conditions.ts'
import type { CloneAction, ClonePlan, CloneView } from './view.ts'

interface Word {
  readonly reason: string
  readonly message: string
}

/** Between two looks at facts whose changes do not wake the ClonePod: its source, the name of its target, its turn. */
const lookAgain = { leastMs: 2_000, perPlaceMs: 500, mostMs: 60_000 } as const
/** Timers of Node end after 24 days. */
const longestTimerMs = 3_600_000
const nothing: CloneAction = { type: 'none' }

/** Returns how many ClonePods of the namespace come before this one: those under way, and older ones that wait. */
export const comeBefore = (own: ClonePod, all: readonly ClonePod[]): number =>
  all.filter(
    other =>
      other.metadata.uid !== own.metadata.uid &&
      !isFinishedClone(other) &&
      (other.status?.phase === 'Cloning' || isOlder(other, own)),
  ).length

const isOlder = ({ metadata: a }: ClonePod, { metadata: b }: ClonePod): boolean => {
  const [first = '', second = ''] = [a.creationTimestamp, b.creationTimestamp]
  return first === second ? a.name < b.name : first < second
}

/** @param now wall clock, ms since the epoch. */
export function planOf(view: CloneView, now: number): ClonePlan {
  const { object, parsed, target } = view
  const before = object.status ?? {}
  if (isFinishedClone(object)) return finished(view, now)
  if (!parsed.ok) return failed(view, { reason: reasons.invalidValue, message: parsed.message }, now)
  const leftMs = Date.parse(object.metadata.creationTimestamp ?? '') + parsed.wish.timeoutMs - now
  const later = (plan: ClonePlan): ClonePlan =>
    leftMs > 0 ? { ...plan, requeueAfterMs: Math.min(leftMs, plan.requeueAfterMs ?? leftMs) } : plan
  switch (target.type) {
    case 'unknown':
      return { action: nothing, status: before, requeueAfterMs: lookAgain.leastMs }
    case 'ours': {
      const status = { ...sourceOf(view), ...before, target: targetOf(target.pod) }
      if (hasBegun(target.pod) && view.refused === undefined) return succeeded(view, target, status, now)
      const word = wordOf(view, target.pod)
      if (leftMs <= 0) return failed({ ...view, object: { ...object, status } }, late(word, target.pod), now)
      const next = withCondition({ ...status, phase: 'Cloning' }, object, 'Unknown', word, now)
      return later({ action: nothing, status: next, ...refusedPause(view, next, now) })
    }
    default:
      return later(withoutTarget(view, parsed.wish, leftMs, now))
  }
}

function withoutTarget(view: CloneView, wish: ParsedClonePod, leftMs: number, now: number): ClonePlan {
  const { object, source, target, before } = view
  const status = object.status ?? {}
  if (status.target !== undefined && target.type !== 'ending') {
    const message = `the MigratingPod ${status.target.name} was deleted before it served`
    return failed(view, { reason: reasons.targetDeleted, message }, now)
  }
  if (source.type === 'found' && isOther(wish, source.uid)) {
    const message = `the pod ${wish.source.name} has another uid: name the new pod without its uid, or with that of now`
    return failed(view, { reason: reasons.sourceReplaced, message }, now)
  }
  const obstacle = obstacleTo(view, wish)
  if (leftMs <= 0)
    return failed(view, { reason: reasons.deadlineExceeded, message: `not begun: ${obstacle?.message}` }, now)
  if (obstacle !== undefined || source.type !== 'found') {
    const waits = { reason: reasons.sourceNotFound, message: '', ...obstacle }
    const next = withCondition({ ...status, phase: 'Pending' }, object, 'Unknown', waits, now)
    const { leastMs, perPlaceMs, mostMs } = lookAgain
    const pause = refusedPause(view, next, now).requeueAfterMs
    return {
      action: nothing,
      status: next,
      requeueAfterMs: pause ?? Math.min(mostMs, leastMs + before * perPlaceMs),
    }
  }
  const begun: ClonePodStatus = { ...status, ...sourceOf(view), phase: 'Cloning' }
  const word = { reason: reasons.begins, message: `the operator makes the MigratingPod ${wish.target}` }
  return {
    action: { type: 'create', spec: cloneSpecOf(source.owner, wish.source.name) },
    status: withCondition(begun, object, 'Unknown', word, now),
    requeueAfterMs: lookAgain.leastMs,
  }
}

const sourceOf = ({ source }: CloneView): Pick<ClonePodStatus, 'source'> =>
  source.type === 'found'
    ? { source: { uid: source.uid, ...(source.node !== undefined && { node: source.node }) } }
    : {}

const isOther = ({ source }: ParsedClonePod, uid: string): boolean =>
  source.uid !== undefined && source.uid !== uid

function obstacleTo({ source, target, before, refused }: CloneView, wish: ParsedClonePod): Word | undefined {
  if (target.type === 'taken')
    return {
      reason: reasons.nameTaken,
      message: `there is a MigratingPod ${wish.target} of ${target.owner}: delete it, or name another target`,
    }
  if (target.type === 'ending')
    return { reason: reasons.nameTaken, message: `a MigratingPod ${wish.target} is being deleted` }
  if (source.type === 'absent')
    return {
      reason: reasons.sourceNotFound,
      message: `no pod ${wish.source.name} of a BackupPodSet or MigratingPod is known in this namespace${source.now === undefined ? '' : `; if it has moved, it is ${source.now} now: delete this ClonePod, and name that`}`,
    }
  if (source.type === 'unsaved') return { reason: reasons.noMemory, message: source.why }
  if (before >= clonePodLimits.atATime)
    return {
      reason: reasons.waitsForTurn,
      message: `${clonePodLimits.atATime} ClonePods of this namespace are carried out at a time`,
    }
  return refused === undefined ? undefined : { reason: reasons.refused, message: refused }
}

/** A quota, or the permission of the namespace, may have been the reason. */
const refusedPause = ({ refused }: CloneView, { conditions }: ClonePodStatus, now: number) =>
  refused === undefined
    ? {}
    : {
        requeueAfterMs: refusedPauseMs(
          conditions?.find(({ type }) => type === clonePodSucceeded),
          now,
        ),
      }

const told = ({ status }: MigratingPod, type: string): Condition | undefined =>
  status?.conditions?.find(each => each.type === type)

/** True once it serves with the memory, which is its own from then on. */
const hasBegun = (pod: MigratingPod): boolean =>
  told(pod, conditionTypes.cloned)?.status === 'True' && told(pod, conditionTypes.ready)?.status === 'True'

/** True for a copy with which clients may have worked: it is never deleted. */
const mayHaveServed = (pod: MigratingPod): boolean =>
  pod.status?.activePod !== undefined &&
  (pod.status.state !== 'Creating' || told(pod, conditionTypes.ready)?.status === 'True')

const targetOf = ({
  metadata: { name, uid },
  status,
}: MigratingPod): NonNullable<ClonePodStatus['target']> => ({
  ...{ name, uid },
  ...(status?.activePod !== undefined && { pod: status.activePod }),
  ...(status?.node !== undefined && { node: status.node }),
})

/** Returns what the MigratingPod says: what its memory waits for, else what its pod waits for. */
function wordOf({ refused }: CloneView, pod: MigratingPod): Word {
  if (refused !== undefined) return { reason: reasons.refused, message: refused }
  const words = [told(pod, conditionTypes.cloned), told(pod, conditionTypes.ready)]
  // The name of its set may be taken: then nothing is known of the memory.
  const open = words.find(word => word?.status === 'False') ?? words.find(word => word?.status === 'Unknown')
  return open === undefined
    ? { reason: reasons.begins, message: `nothing is known of the MigratingPod ${pod.metadata.name} yet` }
    : { reason: open.reason, message: open.message }
}

const late = ({ reason, message }: Word, pod: MigratingPod): Word => ({
  reason: reasons.deadlineExceeded,
  message: `${reason}: ${message}; the MigratingPod ${pod.metadata.name} ${mayHaveServed(pod) ? 'stays, because it may have served' : 'is deleted'}`,
})

/** The copy is released first: a ClonePod that has succeeded may be deleted at any time. */
function succeeded(
  { object }: CloneView,
  { pod, isReleased }: { readonly pod: MigratingPod; readonly isReleased: boolean },
  status: ClonePodStatus,
  now: number,
): ClonePlan {
  const word = { reason: reasons.cloned, message: `${pod.status?.activePod ?? pod.metadata.name} serves` }
  const next = { ...status, phase: 'Succeeded', endedAt: timeOf(now) } as const
  return {
    action: isReleased ? nothing : { type: 'release', pod },
    status: withCondition(next, object, 'True', word, now),
    requeueAfterMs: 0,
  }
}

/** The status comes first: an operator that starts after the deletion must find the reason, and not begin again. */
const failed = ({ object }: CloneView, word: Word, now: number): ClonePlan => ({
  action: nothing,
  status: withCondition(
    { ...object.status, phase: 'Failed', endedAt: timeOf(now) },
    object,
    'False',
    word,
    now,
  ),
  requeueAfterMs: 0,
})

/** The status changes no more. The copy is released or deleted, and later the ClonePod. */
function finished({ object, parsed, target }: CloneView, now: number): ClonePlan {
  const status = object.status ?? {}
  const plan = (action: CloneAction, requeueAfterMs?: number): ClonePlan => ({
    ...{ action, status },
    ...(requeueAfterMs !== undefined && { requeueAfterMs }),
  })
  if (target.type === 'unknown') return plan(nothing, lookAgain.leastMs)
  if (target.type === 'ours' && !target.isReleased) {
    const { pod } = target
    const isKept = status.phase === 'Succeeded' || mayHaveServed(pod)
    return plan({ type: isKept ? 'release' : 'delete', pod }, lookAgain.leastMs)
  }
  const ended = Date.parse(status.endedAt ?? '')
  const ttlMs = parsed.ok ? parsed.wish.ttlMs : 0
  const leftMs = (Number.isNaN(ended) ? now : ended) + ttlMs - now
  return leftMs <= 0 ? plan({ type: 'collect' }) : plan(nothing, Math.min(leftMs, longestTimerMs))
}

const withCondition = (
  status: ClonePodStatus,
  { metadata }: ClonePod,
  is: Condition['status'],
  word: Word,
  now: number,
): ClonePodStatus => ({
  ...status,
  conditions: setCondition(status.conditions ?? [], {
    ...{ type: clonePodSucceeded, status: is, ...word },
    ...{ observedGeneration: metadata.generation ?? 0, now },
  }),
})

const timeOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`

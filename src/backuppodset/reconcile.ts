import type { BackupPodSet, BackupPodSetStatus } from '../api/backuppodset.ts'
import { memoryNotAllowed } from '../api/memory-permission.ts'
import type { ParsedSet } from '../api/parse.ts'
import { reasons } from '../api/reasons.ts'
import type { SlotPolicy } from '../api/slot-policy.ts'
import type { Clock } from '../kube/clock.ts'
import { type ReconcileContext, type Result, RetryLater } from '../kube/controller.ts'
import { isKubeError } from '../kube/errors.ts'
import { refOfKey } from '../kube/object.ts'
import { lowPriority } from '../kube/queue.ts'
import type { Random } from '../kube/random.ts'
import type { Lease, Pod } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import { act } from './act/act.ts'
import type { ActContext } from './act/context.ts'
import { PodChangedError } from './act/write-pod.ts'
import type { SetEvent } from './action-events.ts'
import type { ActionRetries, Attempt } from './action-retries.ts'
import { decide } from './decide/decide.ts'
import { isRetained } from './decide/retention.ts'
import type { FailoverHistory } from './failover-history.ts'
import { type RefusedSpec, type Specs, takeoversOf } from './in-force.ts'
import type { LostPrimaries } from './lost-primaries.ts'
import type { ClaimReader } from './memory/claim-reader.ts'
import { memoryEvents } from './memory/memory-events.ts'
import { abandonedLeases, type SlotLeaseObject, slotLeasesOf } from './memory/slot-leases.ts'
import type { SetMetrics } from './metrics.ts'
import { type Missing, missingMessage, missingMs, statusOfMissing } from './missing.ts'
import { type ObserveDeps, type Observed, observe } from './observe.ts'
import type { PendingStatus } from './pending-status.ts'
import type { Outcome } from './plan.ts'
import { isFinished } from './pod/candidate.ts'
import type { Pulled } from './pulled/pulled.ts'
import type { Report, Reporter } from './report.ts'
import { eventsOf, failedActionOf } from './set-events.ts'
import { refusedStatus, statusOf } from './status.ts'
import type { TerminatingNamespaces } from './terminating-namespaces.ts'
import type { UnlabelledPods } from './unlabelled-pods.ts'
import { refusalNotices, updateNotices } from './update-status.ts'
import type { GateChecks } from './wake/gate-checks.ts'

export interface ReconcileDeps extends Omit<ObserveDeps, 'pulled' | 'unlabelledPods'> {
  readonly sets: Pick<Store<BackupPodSet>, 'get'>
  readonly pods: Store<Pod>
  readonly clock: Clock
  readonly random: Random
  readonly lostPrimaries: Pick<LostPrimaries, 'of' | 'repaired' | 'forget'>
  readonly unlabelledPods: Pick<UnlabelledPods, 'of' | 'forget' | 'lookAgain'>
  readonly terminatingNamespaces: Pick<TerminatingNamespaces, 'has' | 'note'>
  readonly gates: Pick<GateChecks, 'look'>
  readonly reporter: Pick<Reporter, 'report'>
  readonly pendingStatus: Pick<PendingStatus, 'note' | 'of' | 'told'>
  readonly failoverHistory: Pick<FailoverHistory, 'open' | 'note' | 'of'>
  readonly pulled: Pick<Pulled, 'loaded' | 'facts' | 'after'> & NonNullable<ObserveDeps['pulled']>
  readonly metrics: Pick<SetMetrics, 'acted' | 'counted'>
  readonly actionRetries: Pick<ActionRetries, 'note'>
  readonly specs: Pick<Specs, 'inForce'>
  /** Returns whether the caches contain this process' writes for the set. If not, the set is requeued when they do. */
  readonly caughtUp: (setKey: string, priority: number) => boolean
  /**
   * Kinds of objects that sets with memory need and that have no complete list yet. Without Leases and node reports,
   * the memory of every slot would look lost.
   */
  readonly missingForMemory: () => readonly Missing[]
  readonly claims: Pick<ClaimReader, 'look' | 'againAfterMs'>
  /** Asks the API server whether the namespace has the label that allows memory. @throws KubeError. */
  readonly allowsMemory: (namespace: string, signal: AbortSignal) => Promise<boolean>
  readonly forgetSet: (setKey: string) => void
  /** Writes a policy into a slot's Lease, if that is still this version. @throws KubeError. */
  readonly writePolicy: (
    setKey: string,
    lease: Lease,
    policy: SlotPolicy,
    signal: AbortSignal,
  ) => Promise<unknown>
  readonly actContext: (set: ActContext['set'], observed: Observed, context: ReconcileContext) => ActContext
  readonly notify: (set: BackupPodSet, notices: readonly SetEvent[]) => void
}

/** Interval of passes without any trigger, ms: a safety net, since watches report every change. */
const resyncMs = 30_000
/** Interval at which a pass checks for its own writes in the caches, ms, in case the notification is missed. */
const behindMs = 5_000

/**
 * Makes one pass over one set: observe, decide, act, report. Failures are returned together with the time of the next
 * pass, not instead of it: a quota that blocks creations must not stop the timeout of a primary that hangs.
 */
export async function reconcile(
  deps: ReconcileDeps,
  key: string,
  context: ReconcileContext,
): Promise<Result> {
  const { sets, clock, metrics } = deps
  const { log, signal } = context
  if (!deps.caughtUp(key, context.priority)) return { requeueAfterMs: behindMs }
  const current = sets.get(key)
  const abandoned = abandonedOf(deps, key, current)
  if (abandoned.length > 0) await pauseAll(deps, key, abandoned, signal)
  if (current === undefined || current.metadata.deletionTimestamp !== undefined) {
    // The garbage collector deletes its pods by their owner references; no pass creates any in this time.
    if (current === undefined) deps.forgetSet(key)
    return {}
  }
  if (deps.terminatingNamespaces.has(current.metadata.uid)) return {}
  const inForce = deps.specs.inForce(current)
  if (inForce.type === 'nothing') return refuse(deps, current, inForce.refusal, context)
  const { set } = inForce
  const refusal = inForce.type === 'asWritten' ? undefined : inForce.refusal
  if (refusal) log.warn({ code: refusal.code }, refusal.message)
  if (set.memory) await assertNothingMissing(deps, current, key, signal)
  if (set.memory && !mayHaveMemory(set, deps)) {
    if (await deps.allowsMemory(set.namespace, signal))
      throw new RetryLater(50, 'the cache does not show the label of the namespace yet')
    return refuse(deps, current, { code: reasons.memoryNotAllowed, message: memoryNotAllowed }, context)
  }
  if (set.pull && !deps.pulled.loaded(set, current.status))
    throw new RetryLater(50, 'the states of an earlier operator are still loading')
  log.debug({ generation: set.generation }, 'reconciling')
  deps.failoverHistory.open(set.uid, current.status)
  if (set.memory) await deps.claims.look(set, signal)

  const isSpecPartial = inForce.type === 'takeovers'
  const observed = observe(set, current.status, { ...deps, isSpecPartial })
  const decided = decide(observed.snapshot, deps.random)
  const plan = isSpecPartial ? takeoversOf(decided) : decided
  // A decision about thousands of pods takes time: yield first, so that the end of a term is noticed before acting.
  await new Promise(resolve => setImmediate(resolve))
  const acting = deps.actContext(set, observed, context)
  const { outcomes, isCut } = await act(acting, plan).finally(acting.ended)

  deps.terminatingNamespaces.note(set.uid, outcomes)
  const now = clock.monotonic()
  for (const { slot } of rolesIn(outcomes)) deps.lostPrimaries.repaired(key, slot)
  // An empty plan does not mean that all primaries exist: a successor may still be waking.
  const settled =
    plan.tiers.length === 0 && observed.snapshot.pods.every(pod => !pod.waking) && isHeld(observed.snapshot)
  if (settled && !set.paused) deps.lostPrimaries.forget(key)
  metrics.acted(outcomes, now)
  for (const { type, action } of outcomes)
    if (action.type === 'release')
      deps.unlabelledPods[type === 'done' ? 'forget' : 'lookAgain'](action.pod.uid)
  if (outcomes.length > 0) log.info({ actions: tally(outcomes) }, 'acted')
  // Before the status write: after a conflict, the next pass no longer knows what this pass did.
  deps.notify(current, eventsOf(outcomes, now))
  deps.failoverHistory.note(set.uid, deps.pendingStatus.note(key, outcomes))
  const news = deps.pendingStatus.of(key)

  const live = after(observed, outcomes)
  const pods = live.flatMap(pod => observed.viewOf(pod) ?? [])
  // Before the status, which describes the current state. If the set was deleted during this pass, it has been
  // forgotten already: adding it again would poll its primaries forever.
  if (sets.get(key)?.metadata.uid === set.uid)
    deps.pulled.after(set, {
      lost: new Set(observed.snapshot.lost.keys()),
      released: releasedIn(outcomes),
      ...{ pods, status: current.status },
    })
  const pulledFacts = deps.pulled.facts(set)
  const status = statusOf(set, current.status, {
    pods,
    templateHash: observed.snapshot.templateHash,
    restoreHash: observed.snapshot.restoreHash,
    failure: failedActionOf(outcomes),
    gates: set.paused ? [] : deps.gates.look({ key, uid: set.uid }, live),
    ...news,
    failovers: deps.failoverHistory.of(set.uid),
    ...(refusal && { refusal }),
    ...(pulledFacts && { pulled: pulledFacts, vacant: new Set(observed.snapshot.lost.keys()) }),
    now: clock.now(),
    ...(observed.snapshot.memory && { memory: observed.snapshot.memory, monotonicNow: now }),
  })
  metrics.counted(set, status, clock.now())
  // Without `observedGeneration` the set still counts as new, so that later passes also create the remaining pods by
  // `strategy.init`.
  const { observedGeneration: _, ...unfinished } = status
  const told = await report(deps, current, isCut && observed.snapshot.isNew ? unfinished : status, signal)
  const { written, againAfterMs } = told
  if (written !== undefined) {
    deps.notify(current, memoryEvents(current.status, observed.snapshot.memory))
    if (refusal) deps.notify(current, refusalNotices(current.status, refusal))
  }
  if (told.attempt.type === 'done') {
    deps.pendingStatus.told(key, news)
    deps.notify(current, updateNotices(current.status, status))
  }

  const attempts = [...attemptsOf(outcomes), told.attempt]
  const error = errorOf(attempts)
  const claimsAfterMs = set.memory && deps.claims.againAfterMs(set)
  const failedAfterMs = deps.actionRetries.note(key, attempts)
  // Decide about the next candidate at once: the slot has no running app.
  if (outcomes.some(({ type }) => type === 'setback')) return { requeueAfterMs: 0, error }
  if (isCut) return { requeueAfterMs: 0, priority: lowPriority, error }
  const times = [plan.requeueAfterMs, againAfterMs, claimsAfterMs, failedAfterMs].map(ms => ms ?? resyncMs)
  return { requeueAfterMs: Math.min(resyncMs, ...times), error }
}

function abandonedOf(
  { memory }: ReconcileDeps,
  key: string,
  set: BackupPodSet | undefined,
): readonly SlotLeaseObject[] {
  if (memory === undefined) return []
  const { namespace = '', name } = refOfKey(key)
  const stays = set?.metadata.deletionTimestamp === undefined
  return abandonedLeases(memory.leases, { namespace, name }, stays ? set?.metadata.uid : undefined)
}

/**
 * Tells agents that no operator looks after the slots of a deleted set. Their pods end within their grace period then,
 * and no agent waits for a successor. The garbage collector deletes the same Leases, at its own pace.
 */
async function pauseAll(
  { writePolicy }: ReconcileDeps,
  key: string,
  leases: readonly SlotLeaseObject[],
  signal: AbortSignal,
): Promise<void> {
  await Promise.all(
    leases.map(async ({ lease, object }) => {
      try {
        if (lease.policy) await writePolicy(key, object, { ...lease.policy, paused: true }, signal)
      } catch (error) {
        // The Lease has changed, and its change causes another pass, or it is gone.
        if (!isKubeError(error, 'Conflict', 'NotFound')) throw error
      }
    }),
  )
}

/**
 * @throws RetryLater while a list is missing. If that lasts, the status says so, for the set has no failover in this
 *   time.
 */
async function assertNothingMissing(
  deps: ReconcileDeps,
  current: BackupPodSet,
  key: string,
  signal: AbortSignal,
): Promise<void> {
  const missing = deps.missingForMemory()
  const since = deps.since?.pass(`caches/${key}`)('missing', missing.length > 0)
  if (missing.length === 0) return
  if (since !== undefined && deps.clock.monotonic() - since >= missingMs) {
    const { generation = 0 } = current.metadata
    const status = statusOfMissing(generation, current.status, missing, deps.clock.now())
    await deps.reporter.report(current, status, signal)
  }
  throw new RetryLater(500, missingMessage(missing))
}

/** A failed status write is a failure like any other; the actions before it stay done. */
async function report(
  { reporter }: ReconcileDeps,
  current: BackupPodSet,
  status: BackupPodSetStatus,
  signal: AbortSignal,
): Promise<Report & { readonly attempt: Attempt }> {
  try {
    const report = await reporter.report(current, status, signal)
    return { ...report, attempt: { what: 'status', type: 'done' } }
  } catch (error) {
    signal.throwIfAborted()
    const attempt = { what: 'status', type: 'failed', error } as const
    return { written: undefined, againAfterMs: undefined, attempt }
  }
}

/** True if every slot has its primary, so that none is ending with a successor that waits. */
const isHeld = ({ memory, pods }: Observed['snapshot']): boolean =>
  [...(memory?.slots.values() ?? [])].every(
    slot => isRetained(slot) || pods.some(({ uid }) => uid === slot.lease.holder.uid),
  )

/**
 * Where memory is not allowed, the operator does not start a set that asks for it. A set with existing slots keeps its
 * failovers, but no new generations are saved; see `observeMemory`.
 */
const mayHaveMemory = (set: ParsedSet, { memory }: ReconcileDeps): boolean =>
  memory === undefined || memory.isPermitted(set.namespace) || slotLeasesOf(memory.leases, set).length > 0

/** Reports what must change in a set that is unreadable or has nothing to manage, and leaves it alone otherwise. */
async function refuse(
  deps: ReconcileDeps,
  current: BackupPodSet,
  refusal: RefusedSpec,
  { log, signal }: ReconcileContext,
): Promise<Result> {
  log.warn({ code: refusal.code }, refusal.message)
  const status = refusedStatus(current.metadata.generation ?? 0, current.status, refusal, deps.clock.now())
  const { written, againAfterMs } = await deps.reporter.report(current, status, signal)
  if (written === undefined) return againAfterMs === undefined ? {} : { requeueAfterMs: againAfterMs }
  deps.notify(current, refusalNotices(current.status, refusal))
  return {}
}

/** Returns the set's live pods as read, overlaid with the writes of this pass. */
function after(observed: Observed, outcomes: readonly Outcome[]): Pod[] {
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

const rolesIn = (outcomes: readonly Outcome[]) =>
  outcomes.flatMap(({ type, action }) =>
    type === 'done' && 'role' in action && action.role !== undefined ? [action.role] : [],
  )

/** Returns the slots for which the set has no place any more. */
const releasedIn = (outcomes: readonly Outcome[]): readonly number[] =>
  outcomes.flatMap(({ type, action }) =>
    type === 'done' && action.type === 'delete' && action.reason === 'Surplus' ? (action.pod.slot ?? []) : [],
  )

export function attemptsOf(outcomes: readonly Outcome[]): Attempt[] {
  return outcomes.flatMap((outcome): Attempt[] => {
    const what = outcome.action.type
    if (outcome.type === 'failed') return [{ what, type: 'failed', error: outcome.error }]
    return outcome.type === 'done' ? [{ what, type: 'done' }] : []
  })
}

/** Returns the failures as the error of the pass, after everything has been reported. */
function errorOf(attempts: readonly Attempt[]): unknown {
  const errors = attempts.flatMap(attempt => (attempt.type === 'failed' ? [attempt.error] : []))
  // Pods that changed during the pass: normally the cache shows the change within milliseconds.
  const unexpected = errors.filter(
    error => !(error instanceof PodChangedError) && !isKubeError(error, 'Conflict'),
  )
  return unexpected.length > 1
    ? new AggregateError(unexpected, `${unexpected.length} actions failed`)
    : unexpected[0]
}

function tally(outcomes: readonly Outcome[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { type, action } of outcomes) {
    const key = type === 'done' ? action.type : `${action.type} ${type}`
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}

import type { BackupPodSet, BackupPodSetStatus } from '../api/backuppodset.ts'
import { memoryNotAllowed } from '../api/memory-permission.ts'
import type { ParsedSet } from '../api/parse.ts'
import { reasons } from '../api/reasons.ts'
import type { Clock } from '../kube/clock.ts'
import { type ReconcileContext, type Result, RetryLater } from '../kube/controller.ts'
import { isKubeError } from '../kube/errors.ts'
import { keyOf } from '../kube/object.ts'
import { lowPriority } from '../kube/queue.ts'
import type { Random } from '../kube/random.ts'
import type { Pod } from '../kube/resources.ts'
import type { Store } from '../kube/store.ts'
import { act } from './act/act.ts'
import type { ActContext } from './act/context.ts'
import type { Outcome } from './act/outcome.ts'
import { PodChangedError } from './act/write-pod.ts'
import { decide } from './decide/decide.ts'
import { isRetained } from './decide/retention.ts'
import type { Departed } from './departed.ts'
import type { Ending } from './ending.ts'
import type { Attempt, Failures } from './failures.ts'
import { type RefusedSpec, type Specs, takeoversOf } from './in-force.ts'
import type { Ledger } from './ledger.ts'
import { isFinished } from './losses.ts'
import type { ClaimReader } from './memory/claim-reader.ts'
import { memoryNotices } from './memory/notices.ts'
import { slotLeasesOf } from './memory/observe.ts'
import type { SetMetrics } from './metrics.ts'
import { type Missing, missingMessage, missingMs, statusOfMissing } from './missing.ts'
import type { NewsDesk } from './news.ts'
import { failureOf, type Notice, noticesOf } from './notices.ts'
import { type ObserveDeps, type Observed, observe } from './observe.ts'
import type { Pulled } from './pulled/pulled.ts'
import type { Report, Reporter } from './report.ts'
import { refusedStatus, statusOf } from './status.ts'
import { refusalNotices, updateNotices } from './update-status.ts'
import type { GateChecks } from './wake/gate-checks.ts'

export interface ReconcileDeps extends Omit<ObserveDeps, 'pulled' | 'departed'> {
  readonly sets: Store<BackupPodSet>
  readonly pods: Store<Pod>
  readonly clock: Clock
  readonly random: Random
  readonly departed: Departed
  readonly ending: Pick<Ending, 'has' | 'note'>
  readonly gates: Pick<GateChecks, 'look'>
  readonly reporter: Reporter
  readonly news: NewsDesk
  readonly ledger: Ledger
  readonly pulled: Pulled & NonNullable<ObserveDeps['pulled']>
  readonly metrics: SetMetrics
  readonly failures: Failures
  readonly specs: Specs
  /** Whether the caches show what this process wrote for the set. If not, the set's next pass comes when they do. */
  readonly caughtUp: (setKey: string, priority: number) => boolean
  /**
   * Kinds of objects of which there is no complete list yet, and which sets with memory need: without Leases and node reports
   * every slot would look as if its memory were lost.
   */
  readonly missingForMemory: () => readonly Missing[]
  readonly claims: Pick<ClaimReader, 'look' | 'againAfterMs'>
  /** Asks the API server whether the namespace carries the label that allows memory. @throws KubeError. */
  readonly allowsMemory: (namespace: string, signal: AbortSignal) => Promise<boolean>
  readonly wroteSet: (setKey: string, set: BackupPodSet) => void
  readonly forgetSet: (setKey: string) => void
  readonly actContext: (set: ActContext['set'], observed: Observed, context: ReconcileContext) => ActContext
  readonly notify: (set: BackupPodSet, notices: readonly Notice[]) => void
}

/** A pass that nothing calls for is made so often, ms; watches tell everything, this is the net below them. */
const resyncMs = 30_000
/** Whether own writes have been seen is asked so often, ms, below the news that says so. */
const behindMs = 5_000

/**
 * One pass over one set: observe, decide, act, report. What fails in it is told beside the time of the next pass, and
 * not instead of it: a quota that stops creations must not stop the clock of a primary that hangs.
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
  if (current === undefined || current.metadata.deletionTimestamp !== undefined) {
    // Its pods go by their owner references; nothing is created meanwhile.
    if (current === undefined) deps.forgetSet(key)
    return {}
  }
  if (deps.ending.has(current.metadata.uid)) return {}
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
    throw new RetryLater(50, 'states of an operator before this one are being loaded')
  log.debug({ generation: set.generation }, 'reconciling')
  deps.ledger.open(set.uid, current.status)
  if (set.memory) await deps.claims.look(set, signal)

  const observed = observe(set, current.status, deps)
  const decided = decide(observed.snapshot, deps.random)
  const plan = inForce.type === 'takeovers' ? takeoversOf(decided) : decided
  // A decision about thousands of pods takes its time: the end of a term that came meanwhile has to be noticed first.
  await new Promise(resolve => setImmediate(resolve))
  const acting = deps.actContext(set, observed, context)
  const { outcomes, isCut } = await act(acting, plan).finally(acting.ended)

  deps.ending.note(set.uid, outcomes)
  const now = clock.monotonic()
  for (const { slot } of rolesIn(outcomes)) deps.losses.repaired(key, slot)
  // Nothing to do need not mean that all primaries are there: a successor may still be waking.
  const settled =
    plan.stages.length === 0 && observed.snapshot.pods.every(pod => !pod.waking) && isHeld(observed.snapshot)
  if (settled && !set.paused) deps.losses.forget(key)
  metrics.acted(outcomes, now)
  for (const { type, action } of outcomes)
    if (action.type === 'release') deps.departed[type === 'done' ? 'forget' : 'lookAgain'](action.pod.uid)
  if (outcomes.length > 0) log.info({ actions: tally(outcomes) }, 'acted')
  // Before the status: it may meet a conflict, and then the next pass does not know any more what this one did.
  deps.notify(current, noticesOf(outcomes, now))
  deps.ledger.note(set.uid, deps.news.note(key, outcomes))
  const news = deps.news.of(key)

  const live = after(observed, outcomes)
  const pods = live.flatMap(pod => observed.viewOf(pod) ?? [])
  // Before the status, which says what is there now.
  // A set that was deleted while this pass ran has been forgotten: its primaries would be asked for ever.
  if (sets.get(key)?.metadata.uid === set.uid)
    deps.pulled.after(set, { snapshot: observed.snapshot, outcomes, pods, status: current.status })
  const pulledFacts = deps.pulled.facts(set)
  const status = statusOf(set, current.status, {
    pods,
    templateHash: observed.snapshot.templateHash,
    restoreHash: observed.snapshot.restoreHash,
    failure: failureOf(outcomes),
    gates: set.paused ? [] : deps.gates.look({ key, uid: set.uid }, live),
    ...news,
    failovers: deps.ledger.of(set.uid),
    ...(refusal && { refusal }),
    ...(pulledFacts && { pulled: pulledFacts, vacant: new Set(observed.snapshot.lost.keys()) }),
    now: clock.now(),
    ...(observed.snapshot.memory && { memory: observed.snapshot.memory, monotonicNow: now }),
  })
  metrics.counted(set, status, clock.now())
  // The pods that are still to come are made as the first ones were.
  const { observedGeneration: _, ...unfinished } = status
  const told = await report(deps, current, isCut && observed.snapshot.isNew ? unfinished : status, signal)
  const { written, againAfterMs } = told
  if (written !== undefined) {
    deps.wroteSet(key, written)
    deps.notify(current, memoryNotices(current.status, observed.snapshot.memory))
    if (refusal) deps.notify(current, refusalNotices(current.status, refusal))
  }
  if (told.attempt.type === 'done') {
    deps.news.told(key, news)
    deps.notify(current, updateNotices(current.status, status))
  }

  const attempts = [...attemptsOf(outcomes), told.attempt]
  const error = errorOf(attempts)
  const claimsAfterMs = set.memory && deps.claims.againAfterMs(set)
  const failedAfterMs = deps.failures.note(key, attempts)
  // Who comes next is to be decided at once; a slot without an app is waiting for it.
  if (outcomes.some(({ type }) => type === 'setback')) return { requeueAfterMs: 0, error }
  if (isCut) return { requeueAfterMs: 0, priority: lowPriority, error }
  const times = [plan.requeueAfterMs, againAfterMs, claimsAfterMs, failedAfterMs].map(ms => ms ?? resyncMs)
  return { requeueAfterMs: Math.min(resyncMs, ...times), error }
}

/** @throws RetryLater while something is missing. What lasts is told, for the set gets no failover meanwhile. */
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
    const { written } = await deps.reporter.report(current, status, signal)
    if (written !== undefined) deps.wroteSet(key, written)
  }
  throw new RetryLater(500, missingMessage(missing))
}

/** A status that cannot be written is a failure like any other: what was done has been done. */
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

/** Every slot has its primary: none is going, with a successor that waits for its end. */
const isHeld = ({ memory, pods }: Observed['snapshot']): boolean =>
  [...(memory?.slots.values() ?? [])].every(
    slot => isRetained(slot) || pods.some(({ uid }) => uid === slot.lease.holder.uid),
  )

/**
 * Where memory is not allowed a set that asks for it is not begun. One whose slots live keeps its failovers: nothing is
 * saved of it any more, see `observeMemory`.
 */
const mayHaveMemory = (set: ParsedSet, { memory }: ReconcileDeps): boolean =>
  memory === undefined || memory.isPermitted(set.namespace) || slotLeasesOf(memory.leases, set).length > 0

/** A set of which nothing exists, or can be read: told what to change, and otherwise left alone. */
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
  deps.wroteSet(keyOf(current), written)
  deps.notify(current, refusalNotices(current.status, refusal))
  return {}
}

/** The set's live pods with what this pass wrote laid over what it read. */
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

export function attemptsOf(outcomes: readonly Outcome[]): Attempt[] {
  return outcomes.flatMap((outcome): Attempt[] => {
    const what = outcome.action.type
    if (outcome.type === 'failed') return [{ what, type: 'failed', error: outcome.error }]
    return outcome.type === 'done' ? [{ what, type: 'done' }] : []
  })
}

/** After everything has been reported, failures become part of the pass' result. */
function errorOf(attempts: readonly Attempt[]): unknown {
  const errors = attempts.flatMap(attempt => (attempt.type === 'failed' ? [attempt.error] : []))
  // Pods that changed while the pass ran: the cache mostly shows it within milliseconds.
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

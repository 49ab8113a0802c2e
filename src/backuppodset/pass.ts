import type { BackupPodSet, BackupPodSetStatus } from '../api/backuppodset.ts'
import type { ParsedSet } from '../api/parse.ts'
import { lowPriority } from '../kube/queue.ts'
import type { Random } from '../kube/random.ts'
import type { ReconcileContext, Result } from '../kube/reconcile.ts'
import { act } from './act/act.ts'
import { type ActDeps, createActContext } from './act-context.ts'
import type { SetEvent } from './action-events.ts'
import type { Attempt } from './action-retries.ts'
import { decide } from './decide/decide.ts'
import { isRetained } from './decide/retention.ts'
import { suspensionOf } from './decide/suspension.ts'
import { type RefusedSpec, takeoversOf } from './in-force.ts'
import { memoryEvents } from './memory/memory-events.ts'
import type { SetMetrics } from './metrics.ts'
import { type ObserveDeps, type Observed, observe } from './observe.ts'
import { attemptsOf, endingAfter, errorOf, livePodsAfter, releasedIn, rolesIn, tally } from './outcomes.ts'
import type { PendingNews } from './pending-status.ts'
import type { Outcome, Plan } from './plan.ts'
import type { Report } from './report.ts'
import { eventsOf, failedActionOf } from './set-events.ts'
import type { SetRecord } from './set-record.ts'
import { statusOf } from './status.ts'
import type { UnlabelledPods } from './unlabelled-pods.ts'
import { refusalNotices, updateNotices } from './update-status.ts'

export interface PassDeps extends Omit<ObserveDeps, 'record' | 'isSpecPartial' | 'unlabelledPods'> {
  readonly random: Random
  readonly unlabelledPods: Pick<UnlabelledPods, 'of' | 'forget' | 'lookAgain'>
  readonly metrics: Pick<SetMetrics, 'acted' | 'counted'>
  readonly act: ActDeps
  readonly notify: (set: BackupPodSet, notices: readonly SetEvent[]) => void
}

/** The set of a pass, by the spec in force. */
export interface Passing {
  readonly current: BackupPodSet
  readonly set: ParsedSet
  readonly record: SetRecord
  /** Why the written spec is not in force. */
  readonly refusal: RefusedSpec | undefined
  /** Only takeovers are allowed; see `InForce`. */
  readonly isSpecPartial: boolean
  readonly context: ReconcileContext
}

/** Observation, plan and outcomes of a pass. */
interface Done {
  readonly observed: Observed
  readonly plan: Plan
  readonly outcomes: readonly Outcome[]
  /** The pass has ended before the end of its plan. */
  readonly isCut: boolean
}

/** Interval of passes without any trigger, ms: a safety net, since watches report every change. */
const resyncMs = 30_000

/** Observes, decides, acts and reports. Failures are returned together with the time of the next pass. */
export async function makePass(deps: PassDeps, passing: Passing): Promise<Result> {
  const { current, set, record, isSpecPartial, context } = passing
  record.lateOutcomes.observed()
  const observed = observe(set, current.status, { ...deps, record, isSpecPartial })
  const decided = decide(observed.snapshot, deps.random)
  const plan = isSpecPartial ? takeoversOf(decided) : decided
  // A decision about thousands of pods takes time: yield first, so that the end of a term is noticed before acting.
  await new Promise(resolve => setImmediate(resolve))
  const acting = createActContext(deps.act, { set, record, observed, context })
  const done = { observed, plan, ...(await act(acting, plan).finally(acting.ended)) }

  const now = deps.clock.monotonic()
  noteOutcomes(deps, passing, done, now)
  const news = record.pendingStatus.of()
  const status = statusAfter(deps, passing, done, news, now)
  deps.metrics.counted(set, status, deps.clock.now())
  const told = await report(passing, done, status)
  if (told.written !== undefined) {
    deps.notify(current, memoryEvents(current.status, observed.snapshot.memory))
    if (passing.refusal) deps.notify(current, refusalNotices(current.status, passing.refusal))
  }
  if (told.attempt.type === 'done') {
    record.pendingStatus.told(news)
    deps.notify(current, updateNotices(current.status, status))
  }
  return nextPass(passing, done, told)
}

/** Notes what the pass has done, for later passes, metrics, the log and events. */
function noteOutcomes(
  { metrics, unlabelledPods, notify }: PassDeps,
  { current, set, record, context: { log } }: Passing,
  { observed: { snapshot }, plan, outcomes }: Done,
  now: number,
): void {
  record.namespace.note(outcomes)
  for (const { slot } of rolesIn(outcomes)) record.lostPrimaries.repaired(slot)
  // An empty plan does not mean that all primaries exist: a successor may still be waking.
  const settled = plan.tiers.length === 0 && snapshot.pods.every(pod => !pod.waking) && isHeld(snapshot)
  if (settled && !set.paused) record.lostPrimaries.clear(snapshot.monotonicNow)
  metrics.acted(set, outcomes, now)
  for (const { type, action } of outcomes)
    if (action.type === 'release') unlabelledPods[type === 'done' ? 'forget' : 'lookAgain'](action.pod.uid)
  if (outcomes.length > 0) log.info({ actions: tally(outcomes) }, 'acted')
  // Before the status write: after a conflict, the next pass no longer knows what this pass did.
  notify(current, eventsOf(outcomes, now))
  record.failoverHistory.note(record.pendingStatus.note(outcomes))
}

/** Returns the status after the writes of the pass. */
function statusAfter(
  { clock }: PassDeps,
  { current, set, record, refusal }: Passing,
  { observed, outcomes }: Done,
  news: PendingNews,
  now: number,
): BackupPodSetStatus {
  const { snapshot } = observed
  const live = livePodsAfter(observed, [...outcomes, ...record.lateOutcomes.of()])
  const pods = live.flatMap(pod => observed.viewOf(pod) ?? [])
  // Before the status, which describes the current state.
  record.pulled.after(set, {
    lost: new Set(snapshot.lost.keys()),
    released: releasedIn(outcomes),
    ...{ pods, status: current.status },
  })
  const pulledFacts = record.pulled.facts(set)
  return statusOf(set, current.status, {
    pods,
    ending: endingAfter(observed, live, set),
    templateHash: snapshot.templateHash,
    restoreHash: snapshot.restoreHash,
    failure: failedActionOf(outcomes),
    gates: set.paused ? [] : record.gates.look(live),
    ...news,
    failovers: record.failoverHistory.of(),
    ...(refusal && { refusal }),
    ...(snapshot.completed && { completed: snapshot.completed }),
    ...(pulledFacts && { pulled: pulledFacts, vacant: new Set(snapshot.lost.keys()) }),
    now: clock.now(),
    ...(snapshot.memory && { memory: snapshot.memory, monotonicNow: now }),
    ...(set.suspended &&
      snapshot.memory && { suspension: suspensionOf({ ...snapshot, pods }, snapshot.memory) }),
  })
}

interface Told extends Report {
  readonly attempt: Attempt
}

/** Writes the status. A failed write is a failure like any other; the actions before it stay done. */
async function report(
  { current, record, context: { signal } }: Passing,
  { observed: { snapshot }, isCut }: Done,
  status: BackupPodSetStatus,
): Promise<Told> {
  // Without `observedGeneration` the set still counts as new, so that later passes also create the remaining pods by
  // `strategy.init`.
  const { observedGeneration: _, ...unfinished } = status
  try {
    const told = await record.reporter.report(current, isCut && snapshot.isNew ? unfinished : status, signal)
    return { ...told, attempt: { what: 'status', type: 'done' } }
  } catch (error) {
    signal.throwIfAborted()
    return { written: undefined, againAfterMs: undefined, attempt: { what: 'status', type: 'failed', error } }
  }
}

/** Returns when the next pass is due, and the failures of this one. */
function nextPass(
  { set, record }: Passing,
  { plan, outcomes, isCut }: Done,
  { againAfterMs, attempt }: Told,
): Result {
  const attempts = [...attemptsOf(outcomes), attempt]
  const error = errorOf(attempts)
  const claimsAfterMs = set.memory && record.claims.againAfterMs(set)
  const failedAfterMs = record.actionRetries.note(attempts)
  // Decide about the next candidate at once: the slot has no running app.
  if (outcomes.some(({ type }) => type === 'setback')) return { requeueAfterMs: 0, error }
  if (isCut) return { requeueAfterMs: 0, priority: lowPriority, error }
  const times = [plan.requeueAfterMs, againAfterMs, claimsAfterMs, failedAfterMs].map(ms => ms ?? resyncMs)
  return { requeueAfterMs: Math.min(resyncMs, ...times), error }
}

/** True if every slot has its primary, so that none is ending with a successor that waits. */
const isHeld = ({ memory, pods }: Observed['snapshot']): boolean =>
  [...(memory?.slots.values() ?? [])].every(
    slot => isRetained(slot) || pods.some(({ uid }) => uid === slot.lease.holder.uid),
  )

import { backupPodSets } from '../api/backuppodset.ts'
import type { Api } from '../kube/api.ts'
import type { Clock } from '../kube/clock.ts'
import type { ConsistencyStore } from '../kube/consistency.ts'
import { type Controller, type ControllerMetrics, createController } from '../kube/controller.ts'
import { referenceTo } from '../kube/event-record.ts'
import type { Log } from '../kube/log.ts'
import { keyOfRef, refOfKey } from '../kube/object.ts'
import type { Queue } from '../kube/queue.ts'
import type { Random } from '../kube/random.ts'
import type { Recorder } from '../kube/recorder.ts'
import { createInFlightPromotions } from '../slot/act/in-flight-promotions.ts'
import { createPendingDeletions } from '../slot/act/pending-deletions.ts'
import { readPodWith } from '../slot/act/read-pod.ts'
import { createTerms } from '../slot/act/term.ts'
import { writePolicy } from '../slot/act/write-lease.ts'
import { createCheckLimit } from '../slot/gate/gate-checks.ts'
import { reach } from '../slot/gate/reach.ts'
import { wake } from '../slot/gate/wake.ts'
import { createStateBudget } from '../slot/http-state/budget.ts'
import type { PullMetrics } from '../slot/http-state/metrics.ts'
import { createPulled } from '../slot/http-state/pulled.ts'
import { createReports } from '../slot/observe/reports.ts'
import { createStorm } from '../slot/observe/storm.ts'
import type { WriteBehind } from '../state-store/write-behind.ts'
import type { ActDeps } from './act-context.ts'
import { type FollowedStores, follow } from './follow.ts'
import { createLead, type LeadDeps } from './lead.ts'
import { createRetirementDelay } from './memory/retirement-delay.ts'
import type { SetMetrics } from './metrics.ts'
import type { PodSettings } from './pod/render.ts'
import { createReadings } from './readings.ts'
import { type ReconcileDeps, reconcile } from './reconcile.ts'
import { createRecords } from './records.ts'
import { createRevisions } from './revisions/revision.ts'
import { createSetRecord } from './set-record.ts'
import { createSetbacks } from './setbacks.ts'
import { trackedFor } from './tracked-for.ts'
import { progressMs, urgent } from './triggers.ts'
import { createUnlabelledPods } from './unlabelled-pods.ts'

export interface SetControllerOptions extends FollowedStores, Pick<LeadDeps, 'reign'> {
  readonly api: Api
  /** The same API server over separate connections; see `ActContext`. */
  readonly urgentApi: Api
  readonly revisionsKnown: () => boolean
  /** Name of this process, for events. */
  readonly instance: string
  readonly missingForMemory: ReconcileDeps['missingForMemory']
  readonly consistency: ConsistencyStore
  readonly queue: Queue
  readonly recorder: Recorder
  readonly settings: PodSettings
  readonly metrics: SetMetrics
  readonly pullMetrics?: PullMetrics | undefined
  /** The store that keeps history and pulled states across restarts of this process, if it is durable. */
  readonly stateStore: WriteBehind
  /** Bytes that this process may use for the pulled states of all sets. */
  readonly stateBudget: number
  readonly controllerMetrics?: ControllerMetrics | undefined
  readonly workers: number
  /** Returns true while this process is the leader, by its own clock. */
  readonly mayWrite: () => boolean
  /** Sends a wake message. Default: over TCP. */
  readonly wake?: typeof wake
  /** Tests whether a gate accepts connections. Default: over TCP. */
  readonly reach?: typeof reach
  readonly clock: Clock
  readonly random: Random
  readonly log: Log & { child?(fields: Record<string, unknown>): Log }
}

export interface SetController extends Controller {
  close(): Promise<void>
}

/**
 * How long a pass waits for a gate to answer before the wake-up continues in the background. A healthy gate needs 5 ms.
 */
const wakePatienceMs = 200
/** Workers reserved for urgent sets, in addition to the others. */
const urgentWorkers = 2
/**
 * When a term ends, running passes may finish the requests that they have sent; the next leader does the rest. No
 * failover happens until then.
 */
const drainMs = 500
const graceMs = 500

/** Creates the controller of BackupPodSets. It watches from the start and reconciles while `run` runs. */
export function createSetController(options: SetControllerOptions): SetController {
  const { queue, clock, random, log, metrics, pullMetrics } = options
  const parts = createParts(options)
  const deps = reconcileDepsOf(options, parts)
  const controller = createController({
    name: 'backuppodset',
    queue,
    reconcile: (key, context) => reconcile(deps, key, context),
    workers: options.workers,
    reserved: { workers: urgentWorkers, priority: urgent },
    drainMs,
    graceMs,
    log,
    clock,
    random,
    metrics: options.controllerMetrics,
  })
  const run = createLead({ ...options, ...parts, controller, metrics, pullMetrics })
  return { run, close: parts.pulled.close }
}

/** Creates everything that outlives a pass, and keeps it up to date with the caches. */
function createParts(options: SetControllerOptions) {
  const { api, urgentApi, sets, pods, consistency, queue, settings, stateStore, clock, random, log } = options
  const terms = createTerms()
  const pendingDeletions = createPendingDeletions(ref => pods.get(keyOfRef(ref))?.metadata.uid)
  const isDeleted = pendingDeletions.has
  const pulled = createPulled({
    ...{ store: stateStore, pods, clock, random, log, isDeleted },
    budget: createStateBudget(options.stateBudget),
    read: readPodWith(urgentApi),
    metrics: options.pullMetrics,
    changed: (setUid, isUrgent) => {
      const key = records.keyOf(setUid)
      if (key !== undefined) queue.add(key, isUrgent ? {} : { afterMs: progressMs })
    },
  })
  const recordDeps = {
    ...{ api, urgentApi, consistency, pods, isDeleted, stateStore, pulled, terms, queue, clock },
    ...{ wakeKeys: settings.wakeKeys, reach: options.reach ?? reach, checkLimit: createCheckLimit() },
  }
  const records = createRecords(sets, (set, life) => createSetRecord(recordDeps, set, life))
  const setbacks = createSetbacks(clock)
  const retirementDelay = createRetirementDelay(clock)
  const reports = createReports(options.reports, clock)
  const storm = createStorm(reports, clock)
  const unlabelledPods = createUnlabelledPods({
    ...{ api, clock, log, isDeleted },
    changed: key => queue.add(key),
  })
  const ofPods = [setbacks, retirementDelay, pendingDeletions]
  follow(options, queue, { records, unlabelledPods, reports, storm, ofPods })
  return {
    ...{ terms, records, pulled, reports, storm, unlabelledPods },
    ...{ pendingDeletions, setbacks, retirementDelay },
    inFlightPromotions: createInFlightPromotions(() => clock.sleep(wakePatienceMs)),
  }
}

type Parts = ReturnType<typeof createParts>

/** Returns the dependencies of passes. */
function reconcileDepsOf(options: SetControllerOptions, parts: Parts): ReconcileDeps {
  const { api, urgentApi, sets, pods, consistency, queue, recorder, metrics, clock, random } = options
  const { terms, records, reports, storm, retirementDelay, unlabelledPods, setbacks } = parts
  const isDeleted = parts.pendingDeletions.has
  const notify: ActDeps['notify'] = (set, notices) => {
    const regarding = referenceTo(backupPodSets, set)
    for (const notice of notices) recorder.record({ regarding, ...notice })
  }
  const act: ActDeps = { ...options, ...parts, wake: options.wake ?? wake, notify }
  return {
    ...{ api, sets, pods, consistency, queue, act, clock, random, isDeleted, unlabelledPods, notify },
    recordOf: records.at,
    setbackOf: setbacks.of,
    wakening: parts.inFlightPromotions.of,
    readings: createReadings(),
    memory: {
      ...{ leases: options.leases, reports, nodeOf: options.nodes.get, clock, isDeleted, retirementDelay },
      ...{ storm, permitted: options.permitted },
    },
    services: { services: options.services, slices: options.slices },
    moves: {
      ...{ migrations: options.migrations, nodeOf: options.nodes.get },
      nodes: () => reports.all().map(({ metadata }) => metadata.name),
    },
    revisions: { store: options.revisions, known: options.revisionsKnown, revisionOf: createRevisions() },
    metrics: {
      ...metrics,
      // A pass left behind by the last term may end after this process has lost leadership.
      acted: (set, outcomes, now) =>
        metrics.acted(terms.current().leads.aborted ? undefined : set, outcomes, now),
      counted: (set, status, now) => {
        if (!terms.current().leads.aborted) metrics.counted(set, status, now)
      },
    },
    missingForMemory: options.missingForMemory,
    writePolicy: (key, { metadata: { namespace = '', name, resourceVersion } }, policy, signal) =>
      writePolicy(
        { api: trackedFor(consistency, key, urgentApi), signal },
        { namespace, name },
        resourceVersion,
        policy,
      ),
    forgetName: key => forgetName(options, key),
  }
}

/** By name and not in the set's record: metrics name sets, and only the pass that has the key may write them. */
function forgetName({ metrics, pullMetrics, consistency }: SetControllerOptions, key: string): void {
  const { namespace = '', name } = refOfKey(key)
  metrics.forget({ namespace, name })
  pullMetrics?.forget({ namespace, name })
  consistency.clear(key)
}

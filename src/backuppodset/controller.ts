import { type BackupPodSet, backupPodSets } from '../api/backuppodset.ts'
import { labels } from '../api/labels.ts'
import { memoryPermission } from '../api/memory-permission.ts'
import type { NodeReport } from '../api/node-report.ts'
import { kindLabelOf } from '../api/pod-kind.ts'
import type { Api } from '../kube/api.ts'
import type { Clock } from '../kube/clock.ts'
import type { ConsistencyStore } from '../kube/consistency.ts'
import { type Controller, type ControllerMetrics, createController } from '../kube/controller.ts'
import type { Log } from '../kube/log.ts'
import { keyOf, keyOfRef, refOfKey } from '../kube/object.ts'
import { controllerOf } from '../kube/owner.ts'
import { lowPriority, type Queue } from '../kube/queue.ts'
import type { Random } from '../kube/random.ts'
import { type Recorder, referenceTo } from '../kube/recorder.ts'
import {
  type ControllerRevision,
  type EndpointSlice,
  type Lease,
  type Namespace,
  type Node,
  namespaces as namespaceResource,
  type Pod,
  pods as podResource,
  type Service,
} from '../kube/resources.ts'
import type { Change, Store } from '../kube/store.ts'
import { tracked } from '../kube/tracked.ts'
import type { WriteBehind } from '../state-store/write-behind.ts'
import { awaitServing } from './act/await-serving.ts'
import { createInFlightPromotions } from './act/in-flight-promotions.ts'
import { createLife } from './act/life.ts'
import { openGate } from './act/open-gate.ts'
import { readPodWith } from './act/read-pod.ts'
import { createActionRetries } from './action-retries.ts'
import { createFailoverHistory } from './failover-history.ts'
import { createSpecs } from './in-force.ts'
import { createLostPrimaries, isDeath } from './lost-primaries.ts'
import { createClaimReader } from './memory/claim-reader.ts'
import { createHandoverRequests } from './memory/handover-requests.ts'
import { createReports, setsIn } from './memory/reports.ts'
import { createRetirementDelay } from './memory/retirement-delay.ts'
import { createSince } from './memory/since.ts'
import { writePolicy } from './memory/write-lease.ts'
import type { SetMetrics } from './metrics.ts'
import { bySetLabel } from './observe.ts'
import { ownerOf } from './owner.ts'
import { createPendingDeletions } from './pending-deletions.ts'
import { createPendingStatus } from './pending-status.ts'
import type { PodSettings } from './pod/render.ts'
import { createStateBudget } from './pulled/budget.ts'
import type { PullMetrics } from './pulled/metrics.ts'
import { createPulled } from './pulled/pulled.ts'
import { createReadings } from './readings.ts'
import { attemptsOf, type ReconcileDeps, reconcile } from './reconcile.ts'
import { createReporter } from './report.ts'
import { createRevisions } from './revisions/revision.ts'
import { eventsOf } from './set-events.ts'
import { createTerminatingNamespaces } from './terminating-namespaces.ts'
import { createUnlabelledPods } from './unlabelled-pods.ts'
import { createGateChecks } from './wake/gate-checks.ts'
import { reach } from './wake/reach.ts'
import { wake } from './wake/wake.ts'

export interface SetControllerOptions {
  readonly api: Api
  /** The same API server over separate connections; see `ActContext`. */
  readonly urgentApi: Api
  readonly sets: Store<BackupPodSet>
  readonly pods: Store<Pod>
  readonly leases: Store<Lease>
  readonly reports: Store<NodeReport>
  /** For their labels and taints. A change is seen in the next pass; it does not trigger one. */
  readonly nodes: Store<Node>
  readonly services: Store<Service>
  readonly slices: Store<EndpointSlice>
  readonly revisions: Store<ControllerRevision>
  readonly revisionsKnown: () => boolean
  /** Namespaces in which the operator may keep memory. */
  readonly permitted: Store<Namespace> | 'everywhere'
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
  /**
   * Identifies the term. Equal for two terms if no other process has led between them. Undefined: there is no leader
   * election.
   */
  readonly reign: () => string | undefined
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
/** Delay before a pass looks at news of generations, so that it handles several at once. */
const progressMs = 2_000
/** When a term ends, how long to wait until the state store has the pending writes. */
const flushMs = 500
/** Backoff before a pod that failed to get on stage is tried again; the pause doubles with each failure. */
const setbackMs = { first: 60_000, most: 600_000 } as const
/** Priority of sets that lost a primary over sets that only have to be looked at. */
const urgent = 10
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
  const { api, urgentApi, sets, pods, consistency, queue, recorder, settings, clock, random, log } = options
  const pendingDeletions = createPendingDeletions(ref => pods.get(keyOfRef(ref))?.metadata.uid)
  const lostPrimaries = createLostPrimaries(clock, pendingDeletions.has, key => sets.get(key)?.metadata.uid)
  const pendingStatus = createPendingStatus(clock)
  const inFlightPromotions = createInFlightPromotions(() => clock.sleep(wakePatienceMs))
  const trackedFor = (key: string, client: Api) =>
    // A pass looks through pending deletions of pods without waiting for the cache.
    tracked(client, { consistency, owner: key, untrackedDeletions: [podResource] })
  const reporter = createReporter(key => trackedFor(key, api), clock)
  const reports = createReports(options.reports, clock)
  const retirementDelay = createRetirementDelay(clock)
  const actionRetries = createActionRetries(clock)
  const since = createSince(clock)
  const handoverRequests = createHandoverRequests()
  const specs = createSpecs()
  const terminatingNamespaces = createTerminatingNamespaces(urgentApi)
  const gates = createGateChecks({
    ...{ clock, wakeKeys: settings.wakeKeys, reach: options.reach ?? reach },
    changed: (key, afterMs) => queue.add(key, { afterMs, priority: lowPriority }),
  })
  const claims = createClaimReader({
    ...{ api, clock },
    primariesOf: key =>
      pods
        .by(bySetLabel, key)
        .filter(pod => kindLabelOf(pod) === 'primary' && pod.metadata.deletionTimestamp === undefined),
    changed: key => queue.add(key),
  })
  const unlabelledPods = createUnlabelledPods({
    ...{ api, clock, log },
    isDeleted: pendingDeletions.has,
    changed: key => queue.add(key),
  })
  const read = readPodWith(urgentApi)
  const setbacks = new Map<string, { readonly why: string; readonly at: number; readonly times: number }>()
  const keyOfUid = (setUid: string) => {
    const set = sets.list().find(({ metadata }) => metadata.uid === setUid)
    return set && keyOf(set)
  }
  const failoverHistory = createFailoverHistory(options.stateStore, {
    clock,
    changed: setUid => {
      const key = keyOfUid(setUid)
      if (key !== undefined) queue.add(key)
    },
  })
  const pulled = createPulled({
    budget: createStateBudget(options.stateBudget),
    store: options.stateStore,
    pods,
    read,
    clock,
    random,
    log,
    metrics: options.pullMetrics,
    isDeleted: pendingDeletions.has,
    changed: (setUid, isUrgent) => {
      const key = keyOfUid(setUid)
      if (key !== undefined) queue.add(key, isUrgent ? {} : { afterMs: progressMs })
    },
  })
  const refusal = (uid: string) => {
    const setback = setbacks.get(uid)
    if (setback === undefined) return undefined
    const pauseMs = Math.min(setbackMs.most, setbackMs.first * 2 ** (setback.times - 1))
    return clock.monotonic() - setback.at < pauseMs ? setback.why : undefined
  }
  // Cancels wake-ups that outlive their pass when this process stops leading.
  let term = new AbortController()
  let lastReign: string | undefined

  sets.subscribe(({ type, object }) => {
    const key = keyOf(object)
    if (type === 'deleted') {
      // Here and not only in a pass: a new set of the same name may exist before the next pass, and a standby makes no
      // passes.
      lostPrimaries.forget(key)
      pendingStatus.forget(key)
      actionRetries.forget(key)
      claims.forget(key)
      gates.forget(key)
      since.forget(key)
      since.forget(`pods/${key}`)
      since.forget(`caches/${key}`)
      handoverRequests.forget(key)
      reporter.forget(object.metadata.uid)
      specs.forget(object.metadata.uid)
      terminatingNamespaces.forget(object.metadata.uid)
      failoverHistory.forget(object.metadata.uid)
      pulled.forget(object.metadata.uid)
    }
    // Agents stop the primaries of a deleted set at once until they know that it is deleted.
    const isEnding = type === 'deleted' || object.metadata.deletionTimestamp !== undefined
    queue.add(key, { priority: isEnding ? urgent : 0 })
  })
  pods.subscribe(change => {
    lostPrimaries.note(change)
    unlabelledPods.note(change)
    pendingDeletions.note(change)
    if (change.type === 'deleted') {
      setbacks.delete(change.object.metadata.uid)
      retirementDelay.forget(change.object.metadata.uid)
    }
    for (const key of setsOf(change)) queue.add(key, { priority: isLoss(change) ? urgent : 0 })
  })

  const addOf = ({
    object,
  }: Change<Lease> | Change<Service> | Change<EndpointSlice> | Change<ControllerRevision>) => {
    const set = object.metadata.labels?.[labels.set]
    if (set !== undefined) queue.add(`${object.metadata.namespace}/${set}`)
  }
  options.leases.subscribe(addOf)
  options.services.subscribe(addOf)
  options.revisions.subscribe(addOf)
  options.slices.subscribe(addOf)
  if (options.permitted !== 'everywhere')
    options.permitted.subscribe(({ object }) => {
      for (const set of sets.list())
        if (set.metadata.namespace === object.metadata.name) queue.add(keyOf(set))
    })
  options.reports.subscribe(change => {
    reports.note(change)
    for (const [key, { urgent: isUrgent }] of setsIn(change))
      queue.add(key, isUrgent ? {} : { afterMs: progressMs })
    // The capabilities of a node concern every set that wants memory.
    const isAsBefore =
      change.old?.status?.ready === change.object.status?.ready &&
      change.old?.status?.slotsKnown === change.object.status?.slotsKnown &&
      change.type !== 'deleted'
    if (!isAsBefore) for (const set of sets.list()) if (set.spec.checkpoint) queue.add(keyOf(set))
    if (change.old?.status?.disk?.reason !== change.object.status?.disk?.reason)
      for (const { namespace, set } of change.object.status?.slots ?? [])
        queue.add(`${namespace}/${set}`, { afterMs: progressMs })
  })

  const deps: ReconcileDeps = {
    sets,
    pods,
    clock,
    random,
    lostPrimaries,
    reporter,
    pendingStatus,
    failoverHistory,
    pulled: { ...pulled, refusal },
    metrics: {
      ...options.metrics,
      // A pass left behind by the last term may end after this process has lost leadership.
      counted: (set, status, now) => {
        if (!term.signal.aborted) options.metrics.counted(set, status, now)
      },
    },
    isDeleted: pendingDeletions.has,
    wakening: inFlightPromotions.of,
    readings: createReadings(),
    since,
    memory: {
      leases: options.leases,
      reports,
      nodeOf: options.nodes.get,
      clock,
      isDeleted: pendingDeletions.has,
      claims,
      isPermitted: namespace =>
        options.permitted === 'everywhere' || options.permitted.get(namespace) !== undefined,
      since,
      handoverRequests,
      retirementDelay,
      failedOnStage: refusal,
    },
    services: { services: options.services, slices: options.slices },
    unlabelledPods,
    terminatingNamespaces,
    gates,
    claims,
    revisions: { store: options.revisions, known: options.revisionsKnown, revisionOf: createRevisions() },
    missingForMemory: options.missingForMemory,
    allowsMemory: async (name, signal) => {
      const { metadata } = await api.get(namespaceResource, { name }, { signal })
      return metadata.labels?.[memoryPermission.label] === memoryPermission.value
    },
    actionRetries,
    specs,
    caughtUp: (key, priority) => {
      if (consistency.ready(key)) return true
      consistency.onReady(key, () => queue.add(key, { priority }))
      return false
    },
    writePolicy: (key, { metadata: { namespace = '', name, resourceVersion } }, policy, signal) =>
      writePolicy({ api: trackedFor(key, urgentApi), signal }, { namespace, name }, resourceVersion, policy),
    forgetSet: key => {
      const { namespace = '', name } = refOfKey(key)
      const gone = { namespace, name }
      options.metrics.forget(gone)
      options.pullMetrics?.forget(gone)
      consistency.clear(key)
    },
    notify: (set, notices) => {
      const regarding = referenceTo(backupPodSets, set)
      for (const notice of notices) recorder.record({ regarding, ...notice })
    },
    actContext: (set, observed, context) => {
      const key = `${set.namespace}/${set.name}`
      // A wake-up may outlive its pass, but not the term.
      const life = createLife([context.signal, term.signal])
      const { signal } = life
      return {
        ...pulled.acts(set, signal),
        set,
        owner: ownerOf(set),
        service: set.service,
        wakeupTimeoutMs: set.wakeupTimeout * 1000,
        api: trackedFor(key, api),
        urgentApi: trackedFor(key, urgentApi),
        settings,
        pendingDeletions,
        inFlightPromotions: {
          ...inFlightPromotions,
          start: (pod, to, role, conversion, finished) =>
            inFlightPromotions.start(
              pod,
              to,
              role,
              answered => life.during(() => conversion(answered)),
              finished,
            ),
        },
        signal,
        mayWrite: options.mayWrite,
        mustYield: context.mustYield,
        isNamespaceTerminating: () => terminatingNamespaces.ask(set, signal),
        ended: life.end,
        podOf: uid => observed.pods.get(uid),
        requestedHandover: handoverRequests.wrote,
        sliceOf: name => options.slices.get(keyOfRef({ namespace: set.namespace, name })),
        awaitServing: request => awaitServing(request, { pods, clock, read }),
        failedOnStage: (uid, why) => {
          const times = (setbacks.get(uid)?.times ?? 0) + 1
          setbacks.set(uid, { why, at: clock.monotonic(), times })
        },
        monotonic: () => clock.monotonic(),
        now: () => clock.now(),
        instance: options.instance,
        log,
        openGate: async request => {
          const started = clock.monotonic()
          const result = await openGate(request, {
            ...{ pods, read, clock, wakeKeys: settings.wakeKeys },
            wake: options.wake ?? wake,
          })
          options.metrics.woke(result.type, (clock.monotonic() - started) / 1000)
          return result
        },
        finishedLate: outcome => {
          // The end of the term cancelled it. This is no failure; the next leader continues.
          if (outcome.type === 'failed' && term.signal.aborted) return
          failoverHistory.note(set.uid, pendingStatus.note(key, [outcome]))
          options.metrics.acted([outcome], clock.monotonic())
          const current = sets.get(key)
          if (current !== undefined) deps.notify(current, eventsOf([outcome], clock.monotonic()))
          if (outcome.type === 'failed') log.warn({ set: key, err: outcome.error }, 'a wake-up failed')
          queue.add(key, { afterMs: actionRetries.note(key, attemptsOf([outcome])) })
        },
      }
    },
  }
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
  return {
    async run(stop, abort) {
      term = new AbortController()
      unlabelledPods.begin(term.signal)
      gates.begin(term.signal)
      failoverHistory.clear()
      const reign = options.reign()
      pulled.begin(reign !== undefined && reign === lastReign)
      lastReign = reign
      for (const set of sets.list()) queue.add(keyOf(set), { priority: lowPriority })
      try {
        await controller.run(stop, abort)
      } finally {
        term.abort(new Error('this process stopped leading'))
        options.metrics.reset()
        await inFlightPromotions.settled()
        await options.stateStore.flush(flushMs)
        await pulled.end()
        options.pullMetrics?.reset()
        failoverHistory.clear()
        options.stateStore.abandon()
      }
    },
    close: pulled.close,
  }
}

/** Returns the sets that a pod's change may concern: those named by its label and by its controller, now or before. */
function setsOf(change: Change<Pod>): Set<string> {
  const keys = new Set<string>()
  for (const pod of change.old ? [change.object, change.old] : [change.object]) {
    const { namespace } = pod.metadata
    const controller = controllerOf(pod)
    const labelled = pod.metadata.labels?.[labels.set]
    if (labelled !== undefined) keys.add(`${namespace}/${labelled}`)
    if (
      controller?.kind === backupPodSets.kind &&
      controller.apiVersion.startsWith(`${backupPodSets.group}/`)
    )
      keys.add(`${namespace}/${controller.name}`)
  }
  return keys
}

const isLoss = (change: Change<Pod>): boolean =>
  isDeath(change) ||
  (kindLabelOf(change.old) === 'primary' &&
    (change.type === 'deleted' || change.object.metadata.deletionTimestamp !== undefined))

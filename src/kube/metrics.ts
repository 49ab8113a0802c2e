/**
 * Prometheus metrics of everything in this kit, under the names that controller-runtime and client-go use, so that
 * existing dashboards and alerts work. One registry for each call: nothing global.
 */
import { Counter, collectDefaultMetrics, exponentialBuckets, Gauge, Histogram, Registry } from 'prom-client'
import type { ConsistencyMetrics } from './consistency.ts'
import { type ControllerMetrics, reconcileResults } from './controller.ts'
import type { ElectionMetrics } from './election.ts'
import type { ApiMetrics, ReflectorGauges, ReflectorMetrics } from './metrics-hooks.ts'
import type { QueueGauges, QueueMetrics } from './queue.ts'
import type { RecorderGauges, RecorderMetrics } from './recorder.ts'

/** The `metrics` options of the kit's parts. */
export interface Metrics {
  /** For /metrics, and for the operator's own metrics. */
  readonly registry: Registry
  readonly api: ApiMetrics
  readonly reflector: ReflectorMetrics
  readonly queue: QueueMetrics
  readonly controller: ControllerMetrics
  readonly election: ElectionMetrics
  readonly recorder: RecorderMetrics
  readonly consistency: ConsistencyMetrics
}

export interface MetricsOptions {
  /** Where to register. Default: a new registry. */
  readonly registry?: Registry | undefined
  /** Also process_* and nodejs_*. Default true. */
  readonly process?: boolean | undefined
}

/** @throws Error when the given registry already has one of the names. */
export function createMetrics({ registry = new Registry(), process = true }: MetricsOptions = {}): Metrics {
  if (process) collectDefaultMetrics({ register: registry })
  return Object.freeze({
    registry,
    api: apiMetrics(registry),
    reflector: reflectorMetrics(registry),
    queue: queueMetrics(registry),
    controller: controllerMetrics(registry),
    election: electionMetrics(registry),
    recorder: recorderMetrics(registry),
    consistency: consistencyMetrics(registry),
  })
}

function apiMetrics(registry: Registry): ApiMetrics {
  const requests = counter(
    registry,
    'rest_client_requests_total',
    'Number of HTTP requests, partitioned by status code, method, and host.',
    ['code', 'method', 'host'],
  )
  const duration = new Histogram({
    name: 'rest_client_request_duration_seconds',
    help: 'Request latency in seconds. Broken down by verb, and host.',
    labelNames: ['verb', 'host'],
    buckets: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60],
    registers: [registry],
  })
  const retries = counter(
    registry,
    'rest_client_request_retries_total',
    'Number of request retries, partitioned by status code and verb.',
    ['code', 'verb'],
  )
  return {
    request({ code, method, host, verb, seconds }) {
      requests.inc({ code, method, host })
      duration.observe({ verb, host }, seconds)
    },
    retry: ({ code, verb }) => retries.inc({ code, verb }),
  }
}

function reflectorMetrics(registry: Registry): ReflectorMetrics {
  const name = ['resource'] as const
  const lists = counter(registry, 'reflector_lists_total', 'Number of complete lists taken', name)
  const watches = counter(registry, 'reflector_watches_total', 'Number of watches started', name)
  const events = counter(registry, 'reflector_watch_events_total', 'Number of events received', [
    'resource',
    'type',
  ])
  const errors = counter(registry, 'reflector_errors_total', 'Number of failed lists and watches', [
    'resource',
    'code',
  ])
  const subscribers = counter(
    registry,
    'reflector_subscriber_errors_total',
    'Number of changes on which a subscriber of the store failed',
    name,
  )
  const readers = new Map<string, () => ReflectorGauges>()
  const gauge = (metric: string, help: string, value: (gauges: ReflectorGauges) => number) =>
    scraped(registry, metric, help, name, set => {
      for (const [resource, read] of readers) set({ resource }, value(read()))
    })
  gauge(
    'reflector_last_event_age_seconds',
    'Seconds since the last event, bookmark or complete list',
    gauges => gauges.lastEventAgeSeconds,
  )
  gauge('reflector_store_objects', 'Objects in the store', gauges => gauges.objects)
  gauge('reflector_store_resource_version', 'resourceVersion that the store has reached', gauges =>
    // Exact up to 2^53, which etcd reaches after 28 years of ten thousand writes a millisecond.
    Number(gauges.resourceVersion),
  )
  gauge('reflector_synced', '1 after the store was complete for the first time', gauges =>
    gauges.synced ? 1 : 0,
  )
  return {
    list: resource => lists.inc({ resource }),
    watch: resource => watches.inc({ resource }),
    event: (resource, type) => events.inc({ resource, type }),
    error: (resource, code) => errors.inc({ resource, code }),
    subscriberError: resource => subscribers.inc({ resource }),
    gauges(resource, read) {
      readers.set(resource, read)
      lists.inc({ resource }, 0)
      watches.inc({ resource }, 0)
      subscribers.inc({ resource }, 0)
    },
  }
}

function queueMetrics(registry: Registry): QueueMetrics {
  const names = ['name', 'controller'] as const
  const labels = (queue: string) => ({ name: queue, controller: queue })
  const adds = counter(registry, 'workqueue_adds_total', 'Total number of adds handled by workqueue', names)
  const retries = counter(
    registry,
    'workqueue_retries_total',
    'Total number of retries handled by workqueue',
    names,
  )
  const histogram = (name: string, help: string) =>
    new Histogram({
      name,
      help,
      labelNames: names,
      buckets: exponentialBuckets(10e-9, 10, 12),
      registers: [registry],
    })
  const waited = histogram(
    'workqueue_queue_duration_seconds',
    'How long in seconds an item stays in workqueue before being requested',
  )
  const worked = histogram(
    'workqueue_work_duration_seconds',
    'How long in seconds processing an item from workqueue takes.',
  )
  const queues = new Map<string, { read: () => QueueGauges; readonly priorities: Set<number> }>()
  scraped(
    registry,
    'workqueue_depth',
    'Current depth of workqueue by workqueue and priority',
    [...names, 'priority'],
    set => {
      for (const [queue, { read, priorities }] of queues) {
        const { depth } = read()
        for (const priority of depth.keys()) priorities.add(priority)
        // A priority that was seen once stays, as 0: a series that comes and goes cannot be summed over time.
        for (const priority of priorities)
          set({ ...labels(queue), priority: String(priority) }, depth.get(priority) ?? 0)
      }
    },
  )
  const running = (name: string, help: string, value: (seconds: readonly number[]) => number) =>
    scraped(registry, name, help, names, set => {
      for (const [queue, { read }] of queues) set(labels(queue), value(read().runningSeconds))
    })
  running(
    'workqueue_unfinished_work_seconds',
    "How many seconds of work is in progress and hasn't been observed by work_duration. Large values indicate stuck passes.",
    seconds => seconds.reduce((sum, each) => sum + each, 0),
  )
  running(
    'workqueue_longest_running_processor_seconds',
    'How many seconds has the longest running processor for workqueue been running.',
    seconds => Math.max(0, ...seconds),
  )
  return {
    added: queue => adds.inc(labels(queue)),
    taken: (queue, seconds) => waited.observe(labels(queue), seconds),
    done: (queue, seconds) => worked.observe(labels(queue), seconds),
    retried: queue => retries.inc(labels(queue)),
    gauges(queue, read) {
      queues.set(queue, { read, priorities: new Set([0]) })
      adds.inc(labels(queue), 0)
      retries.inc(labels(queue), 0)
      waited.zero(labels(queue))
      worked.zero(labels(queue))
    },
  }
}

const reconcileBuckets = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5,
  1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
]

function controllerMetrics(registry: Registry): ControllerMetrics {
  const name = ['controller'] as const
  const total = counter(
    registry,
    'controller_runtime_reconcile_total',
    'Total number of reconciliations per controller',
    ['controller', 'result'],
  )
  const failures = {
    error: counter(
      registry,
      'controller_runtime_reconcile_errors_total',
      'Total number of reconciliation errors per controller',
      name,
    ),
    terminal: counter(
      registry,
      'controller_runtime_terminal_reconcile_errors_total',
      'Total number of terminal reconciliation errors per controller',
      name,
    ),
    panic: counter(
      registry,
      'controller_runtime_reconcile_panics_total',
      'Total number of reconciliation panics per controller',
      name,
    ),
    timeout: counter(
      registry,
      'controller_runtime_reconcile_timeouts_total',
      'Total number of reconciliation timeouts per controller',
      name,
    ),
  }
  const time = new Histogram({
    name: 'controller_runtime_reconcile_time_seconds',
    help: 'Length of time per reconciliation per controller',
    labelNames: name,
    buckets: reconcileBuckets,
    registers: [registry],
  })
  const gauge = (metric: string, help: string) =>
    new Gauge({ name: metric, help, labelNames: name, registers: [registry] })
  const concurrent = gauge(
    'controller_runtime_max_concurrent_reconciles',
    'Maximum number of concurrent reconciles per controller',
  )
  const active = gauge('controller_runtime_active_workers', 'Number of currently used workers per controller')
  return {
    controller(controller, workers) {
      concurrent.set({ controller }, workers)
      active.set({ controller }, 0)
      for (const result of reconcileResults) total.inc({ controller, result }, 0)
      for (const each of Object.values(failures)) each.inc({ controller }, 0)
      time.zero({ controller })
    },
    reconciled(controller, result, seconds) {
      total.inc({ controller, result })
      time.observe({ controller }, seconds)
    },
    failed: (controller, kind) => failures[kind].inc({ controller }),
    active: (controller, delta) => active.inc({ controller }, delta),
  }
}

function electionMetrics(registry: Registry): ElectionMetrics {
  const status = new Gauge({
    name: 'leader_election_master_status',
    help: 'Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master.',
    labelNames: ['name'],
    registers: [registry],
  })
  return { leading: (name, leading) => status.set({ name }, leading ? 1 : 0) }
}

function recorderMetrics(registry: Registry): RecorderMetrics {
  const results = counter(
    registry,
    'event_recorder_events_total',
    'Events by outcome: created, repeated (counted in a series), dropped_full, dropped_rate, dropped_failed',
    ['result'],
  )
  let read: (() => RecorderGauges) | undefined
  scraped(registry, 'event_recorder_pending', 'Events that wait to be written', [], set => {
    if (read) set({}, read().pending)
  })
  return {
    event: result => results.inc({ result }),
    gauges(reader) {
      read = reader
    },
  }
}

function consistencyMetrics(registry: Registry): ConsistencyMetrics {
  const expired = counter(
    registry,
    'consistency_expired_total',
    'Own writes that the cache did not show in time',
    ['resource'],
  )
  return { expired: resource => expired.inc({ resource }) }
}

function counter<const L extends string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly L[],
): Counter<L> {
  return new Counter({ name, help, labelNames, registers: [registry] })
}

/** A gauge whose values are read at each scrape. */
function scraped<const L extends string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly L[],
  collect: (set: (labels: Partial<Record<L, string>>, value: number) => void) => void,
): void {
  new Gauge({
    name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      collect((labels, value) => this.set(labels, value))
    },
  })
}

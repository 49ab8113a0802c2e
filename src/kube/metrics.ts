/**
 * Prometheus metrics of everything in this kit, under the names that controller-runtime and client-go use, so that
 * existing dashboards and alerts work. One registry for each call: nothing global.
 */
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { ConsistencyMetrics } from './consistency.ts'
import type { ControllerMetrics } from './controller.ts'
import { controllerMetrics } from './controller-metrics.ts'
import type { ElectionMetrics } from './election.ts'
import { counter, scraped } from './instruments.ts'
import type { ApiMetrics, ReflectorGauges, ReflectorMetrics } from './metrics-hooks.ts'
import type { QueueMetrics } from './queue.ts'
import { queueMetrics } from './queue-metrics.ts'
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
  const reads: (() => RecorderGauges)[] = []
  scraped(registry, 'event_recorder_pending', 'Events that wait to be written', [], set => {
    set(
      {},
      reads.reduce((sum, read) => sum + read().pending, 0),
    )
  })
  return {
    event: result => results.inc({ result }),
    gauges(reader) {
      reads.push(reader)
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

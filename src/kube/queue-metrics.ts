/** Prometheus metrics of work queues, under client-go's names. */
import { exponentialBuckets, Histogram, type Registry } from 'prom-client'
import { counter, scraped } from './instruments.ts'
import type { QueueGauges, QueueMetrics } from './queue.ts'

export function queueMetrics(registry: Registry): QueueMetrics {
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

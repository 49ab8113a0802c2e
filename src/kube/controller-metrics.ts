/** Prometheus metrics of controllers, under controller-runtime's names. */
import { Gauge, Histogram, type Registry } from 'prom-client'
import { type ControllerMetrics, reconcileResults } from './controller.ts'
import { counter } from './instruments.ts'

const reconcileBuckets = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5,
  1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
]

export function controllerMetrics(registry: Registry): ControllerMetrics {
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

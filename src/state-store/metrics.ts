import { Counter, Gauge, type Registry } from 'prom-client'
import { metricName } from '../api/metrics.ts'

export interface StateStoreMetrics {
  done(operation: string, result: 'ok' | 'failed'): void
  healthy(isHealthy: boolean): void
  pending(keys: number): void
}

export function createStateStoreMetrics(registry: Registry): StateStoreMetrics {
  const registers = [registry]
  const operations = new Counter({
    name: metricName('state_store_operations_total'),
    help: 'Operations on the state store (put, renew, delete, load) by result.',
    labelNames: ['operation', 'result'],
    registers,
  })
  const up = new Gauge({
    name: metricName('state_store_up'),
    help: '1 while the last operation on the state store succeeded. At 0 everything works, but a restart would lose state.',
    registers,
  })
  const pending = new Gauge({
    name: metricName('state_store_pending_keys'),
    help: 'Keys whose last change is not in the state store yet.',
    registers,
  })
  up.set(1)
  return {
    done: (operation, result) => operations.inc({ operation, result }),
    healthy: isHealthy => up.set(isHealthy ? 1 : 0),
    pending: keys => pending.set(keys),
  }
}

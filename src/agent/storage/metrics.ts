import { Gauge, type Registry } from 'prom-client'
import { metricName } from '../../api/metrics.ts'
import type { GenerationDisk } from '../../checkpoint/disk/disk.ts'
import type { GenerationStore } from '../../checkpoint/store.ts'
import type { DiskKeeper } from './keeper.ts'

/** Registers gauges of the bytes that generations use of each budget of the node; 0 for an unused disk. */
export function createBudgetMetrics(
  registry: Registry,
  store: Pick<GenerationStore, 'bytes' | 'budget'>,
  disk: Pick<GenerationDisk, 'bytes' | 'budget'> | undefined,
  keeper: () => Pick<DiskKeeper, 'trouble' | 'refusals'> | undefined,
): void {
  const gauge = (
    name: string,
    help: string,
    values: () => readonly (readonly [string, number])[],
    label: string,
  ) =>
    new Gauge({
      name: metricName(name),
      help,
      labelNames: [label],
      registers: [registry],
      collect() {
        this.reset()
        for (const [of, value] of values()) this.set({ [label]: of }, value)
      },
    })
  gauge(
    'generations_used_bytes',
    'Bytes of generations on this node, by tier (memory, disk).',
    () => [
      ['memory', store.bytes],
      ['disk', disk?.bytes ?? 0],
    ],
    'tier',
  )
  gauge(
    'generations_budget_bytes',
    'Budget for generations on this node, by tier (memory, disk).',
    () => [
      ['memory', store.budget],
      ['disk', disk?.budget ?? 0],
    ],
    'tier',
  )
  gauge(
    'generations_disk_trouble',
    '1 for each reason why the agent does not write to the disk of this node: for any slot (DiskFull, DiskLow, KeyMissing, ...), or for the slots of a namespace (DiskShareFull).',
    () => {
      const { trouble, refusals = [] } = keeper() ?? {}
      const reasons = new Set([...(trouble === undefined ? [] : [trouble.reason]), ...refusals])
      return [...reasons].map(reason => [reason, 1] as const)
    },
    'reason',
  )
}

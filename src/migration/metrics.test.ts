import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import type { Migration, MigrationPhase, MigrationStatus } from '../api/migration.ts'
import { createMigrationMetrics } from './metrics.ts'

const now = Date.UTC(2030, 0, 1, 12)
const at = (secondsAgo: number) => new Date(now - secondsAgo * 1000).toISOString()

const statusOf = (
  times: readonly (readonly [MigrationPhase, number])[],
  reason: string,
  over: Partial<MigrationStatus> = {},
): MigrationStatus => ({
  ...{ phase: times.at(-1)?.[0] ?? 'Pending', ...over },
  phaseTimes: times.map(([phase, ago]) => ({ phase, at: at(ago) })),
  conditions: [
    ...[{ type: 'Succeeded', status: 'Unknown', reason, message: '' } as const].map(each => ({
      ...each,
      ...{ lastTransitionTime: at(0), observedGeneration: 1 },
    })),
  ],
})

const migration = (name: string, status?: MigrationStatus): Migration => ({
  metadata: { namespace: 'shop', name, uid: name, resourceVersion: '1', creationTimestamp: at(50) },
  spec: { source: { name: 'p' } },
  ...(status && { status }),
})

async function lines(registry: Registry, name: string): Promise<readonly string[]> {
  const text = await registry.getSingleMetricAsString(name)
  return text.split('\n').filter(line => line !== '' && !line.startsWith('#') && !line.endsWith(' 0'))
}

test('MP-34 the end of a Migration is counted by its reason, with its times and its size', async () => {
  const registry = new Registry()
  const metrics = createMigrationMetrics(registry)
  metrics.ended(
    statusOf(
      [
        ['Reserving', 20],
        ['Preparing', 15],
        ['Stopping', 3],
        ['Switching', 1],
        ['Succeeded', 0],
      ],
      'Moved',
      { downtimeMilliseconds: 420, predictedDowntimeMilliseconds: 390, bytes: 5_000_000 },
    ),
    now - 30_000,
  )
  metrics.ended(statusOf([['Failed', 0]], 'NoNode', { bytes: 7 }), now - 180_000)
  metrics.ended(statusOf([['Failed', 0]], 'FromTheFuture'), now)
  expect(await lines(registry, 'understudy_migrations_ended_total')).toEqual([
    'understudy_migrations_ended_total{result="failed",reason="NoNode"} 1',
    'understudy_migrations_ended_total{result="failed",reason="InvalidValue"} 1',
    'understudy_migrations_ended_total{result="succeeded",reason="Moved"} 1',
  ])
  const sums = async (name: string) =>
    (await lines(registry, name)).filter(line => /_sum/.test(line)).map(line => line.replace(/^\w+_sum/, ''))
  expect(await sums('understudy_migration_duration_seconds')).toEqual([
    '{result="succeeded"} 30',
    '{result="failed"} 180',
  ])
  expect(await sums('understudy_migration_phase_seconds')).toEqual([
    '{phase="Reserving"} 5',
    '{phase="Preparing"} 12',
    '{phase="Stopping"} 2',
    '{phase="Switching"} 1',
  ])
  expect(await sums('understudy_migration_downtime_seconds')).toEqual([' 0.42'])
  expect(await sums('understudy_migration_predicted_downtime_seconds')).toEqual([' 0.39'])
  expect(await sums('understudy_migration_bytes')).toEqual([' 5000000'])
})

test('MP-34 before anything has happened each result is 0, so that the first failure is an increase', async () => {
  const registry = new Registry()
  createMigrationMetrics(registry)
  const text = await registry.getSingleMetricAsString('understudy_migrations_ended_total')
  expect(text).toContain('{result="failed",reason="NoNode"} 0')
  expect(text).toContain('{result="succeeded",reason="Moved"} 0')
})

test('MP-34 gauges show the Migrations of the moment, and a process that no longer leads shows none', async () => {
  const registry = new Registry()
  let migrations: readonly Migration[] = [
    migration('a', statusOf([['Pending', 40]], 'SetPaused')),
    migration('b'),
    migration('c', statusOf([['Preparing', 600]], 'MemoryComing')),
    migration('d', statusOf([['Preparing', 30]], 'MemoryComing')),
    migration('e', statusOf([['Stopping', 2]], 'Stopping')),
    migration('f', statusOf([['Succeeded', 900]], 'Moved')),
  ]
  createMigrationMetrics(registry, () => ({ migrations, now }))
  expect(await lines(registry, 'understudy_migrations')).toEqual([
    'understudy_migrations{phase="Pending"} 2',
    'understudy_migrations{phase="Preparing"} 2',
    'understudy_migrations{phase="Stopping"} 1',
  ])
  expect(await lines(registry, 'understudy_migrations_waiting')).toEqual([
    'understudy_migrations_waiting{reason="SetPaused"} 1',
    'understudy_migrations_waiting{reason="MemoryComing"} 2',
  ])
  expect(await lines(registry, 'understudy_migrations_oldest_seconds')).toEqual([
    'understudy_migrations_oldest_seconds{phase="Pending"} 50',
    'understudy_migrations_oldest_seconds{phase="Preparing"} 600',
    'understudy_migrations_oldest_seconds{phase="Stopping"} 2',
  ])
  migrations = []
  for (const name of ['', '_waiting', '_oldest_seconds'])
    expect(await lines(registry, `understudy_migrations${name}`)).toEqual([])
})

import { describe, expect, it } from 'vitest'
import type { BackupPodSet, BackupPodSetStatus } from '../api/backuppodset.ts'
import { labels } from '../api/labels.ts'
import type { Migration, MigrationStatus } from '../api/migration.ts'
import { slotAnnotations } from '../api/slot-lease.ts'
import type { LastFailover } from '../api/slot-status.ts'
import type { Lease, Pod } from '../kube/resources.ts'
import { createStore } from '../kube/store.ts'
import { followTraces } from './follow.ts'
import { type Span, traceOfChange, traceOfMigration } from './span.ts'

const now = Date.parse('2030-01-01T00:01:00.000Z')
const meta = (name: string, resourceVersion: string) => ({
  ...{ namespace: 'shop', name, uid: `uid-${name}`, resourceVersion },
})

const setWith = (status: BackupPodSetStatus, version = '1'): BackupPodSet => ({
  metadata: meta('web', version),
  spec: { template: { spec: { containers: [] } } },
  status,
})
const failoverAt = (at: string): LastFailover => ({
  ...{ slot: 0, from: 'web-a', to: 'web-b', reason: 'Died', seconds: 0.5, at },
})
const failedOver = (at: string): BackupPodSetStatus => {
  const last = failoverAt(at)
  const { slot: _, ...lastFailover } = last
  return { slots: [{ slot: 0, pod: 'web-b', epoch: 4, ready: true, lastFailover }], failovers: [last] }
}

const moved = (end: string, phase: 'Succeeded' | 'Failed' = 'Succeeded'): MigrationStatus => ({
  phase,
  phaseTimes: [
    { phase: 'Stopping', at: '2030-01-01T00:00:30.000Z' },
    { phase, at: end },
  ],
  source: { uid: 'a', node: 'n1', set: 'web', slot: 0 },
  target: { name: 'web-b', uid: 'b', node: 'n2' },
})
const moveWith = (status: MigrationStatus, version = '1'): Migration => ({
  ...{ metadata: meta('move', version), spec: { source: { name: 'web-a' } }, status },
})

const lease = (holder: string): Lease => ({
  metadata: {
    ...meta('web-0', '1'),
    labels: { [labels.set]: 'web' },
    annotations: { [slotAnnotations.incarnation]: '0a1b2c3d', [slotAnnotations.pod]: 'web-b' },
  },
  spec: { holderIdentity: holder, leaseTransitions: 4 },
})

function open(leads = true) {
  const stores = {
    sets: createStore<BackupPodSet>(),
    migrations: createStore<Migration>(),
    pods: createStore<Pod>(),
    leases: createStore<Lease>(),
  }
  const spans: Span[] = []
  const followed = followTraces({
    ...stores,
    leads: () => leads,
    clock: { now: () => now },
    trace: make => void spans.push(...make()),
  })
  return { ...stores, spans, followed, traces: () => new Set(spans.map(({ traceId }) => traceId)) }
}

const change = { owner: 'uid-web', slot: 'web-0', epoch: 4 }

describe('the traces of the operator', () => {
  it('come with the status that first has a failover, once', () => {
    const { sets, spans, traces } = open()
    sets.upsert(setWith({ slots: [] }))
    sets.upsert(setWith(failedOver('2030-01-01T00:00:50.000Z'), '2'))
    const first = [...spans]
    expect(first.map(({ name }) => name)).toEqual(['failover', 'decide and write the label'])
    expect(traces()).toEqual(new Set([traceOfChange(change)]))
    sets.upsert(setWith({ ...failedOver('2030-01-01T00:00:50.000Z'), readyReplicas: 1 }, '3'))
    expect(spans).toEqual(first)
  })

  it('come with the end of a Migration, in the trace of the slot that it has moved', () => {
    const { sets, leases, migrations, traces } = open()
    sets.upsert(setWith({}))
    leases.upsert(lease('b'))
    migrations.upsert(moveWith({ phase: 'Stopping' }))
    migrations.upsert(moveWith(moved('2030-01-01T00:00:40.000Z'), '2'))
    expect(traces()).toEqual(new Set([traceOfChange(change)]))
  })

  it.each([
    ['has failed', 'b', 'Failed'],
    ['has succeeded, and another pod has the slot since', 'c', 'Succeeded'],
  ] as const)('of a Migration that %s have a trace of its own', (_, holder, phase) => {
    const { sets, leases, migrations, traces } = open()
    sets.upsert(setWith({}))
    leases.upsert(lease(holder))
    migrations.upsert(moveWith({ phase: 'Stopping' }))
    migrations.upsert(moveWith(moved('2030-01-01T00:00:40.000Z', phase), '2'))
    expect(traces()).toEqual(new Set([traceOfMigration('uid-move')]))
  })

  it('come at the start of a term for what has just ended, with the same ids, and not for what is old', () => {
    const before = open()
    before.sets.upsert(setWith({}))
    before.sets.upsert(setWith(failedOver('2030-01-01T00:00:50.000Z'), '2'))
    const next = open()
    next.sets.upsert(setWith(failedOver('2030-01-01T00:00:50.000Z'), '2'))
    next.migrations.upsert(moveWith(moved('2029-12-31T23:00:00.000Z')))
    expect(next.spans).toEqual([])
    next.followed.catchUp()
    expect(next.spans).toEqual(before.spans)
    const late = open()
    late.sets.upsert(setWith(failedOver('2029-12-31T23:00:00.000Z')))
    late.migrations.upsert(moveWith(moved('2030-01-01T00:00:40.000Z')))
    late.followed.catchUp()
    expect(late.traces()).toEqual(new Set([traceOfMigration('uid-move')]))
  })

  it('come from the leader only', () => {
    const { sets, migrations, spans } = open(false)
    sets.upsert(setWith({}))
    sets.upsert(setWith(failedOver('2030-01-01T00:00:50.000Z'), '2'))
    migrations.upsert(moveWith({ phase: 'Stopping' }))
    migrations.upsert(moveWith(moved('2030-01-01T00:00:40.000Z'), '2'))
    expect(spans).toEqual([])
  })
})

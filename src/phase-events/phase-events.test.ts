import { describe, expect, it } from 'vitest'
import { type Migration, type MigrationStatus, migrations } from '../api/migration.ts'
import type { PodMigrationJob, PodMigrationJobStatus } from '../api/pod-migration-job.ts'
import type { EventRecord } from '../kube/event-record.ts'
import { createStore } from '../kube/store.ts'
import { recordPhases } from './phase-events.ts'
import { jobSaid, migrationSaid } from './said.ts'

let version = 0
const meta = () => ({ namespace: 'shop', name: 'm', uid: 'u', resourceVersion: String(++version) })
const statusOf = (phase: MigrationStatus['phase'], reason: string): MigrationStatus => ({
  ...(phase && { phase }),
  source: { uid: 'a', node: 'n1', set: 'web', slot: 0 },
  target: { name: 'b', uid: 'b', node: 'n2' },
  conditions: [
    {
      ...{ type: 'Succeeded', status: 'Unknown', reason, message: `because of ${reason}` },
      ...{ lastTransitionTime: '2030-01-01T00:00:00Z', observedGeneration: 1 },
    },
  ],
})
const migration = (status: MigrationStatus | undefined): Migration => ({
  metadata: meta(),
  spec: { source: { name: 'a' } },
  ...(status && { status }),
})

function follow(leads = true) {
  const store = createStore<Migration>()
  const told: EventRecord[] = []
  const recorder = { record: (event: EventRecord) => void told.push(event) }
  recordPhases({ recorder, leads: () => leads }, migrations, store, migrationSaid)
  return { store, told }
}

describe('an object with phases', () => {
  it('has an event for each phase and each reason, and none for a status that says the same', () => {
    const { store, told } = follow()
    store.upsert(migration(undefined))
    store.upsert(migration(statusOf('Preparing', 'MemoryComing')))
    store.upsert(migration(statusOf('Preparing', 'MemoryComing')))
    store.upsert(migration(statusOf('Preparing', 'DowntimeTooLong')))
    store.upsert(migration(statusOf('Failed', 'SourceLost')))
    expect(told.map(({ type, reason, action }) => [type, reason, action])).toEqual([
      ['Normal', 'MemoryComing', 'Preparing'],
      ['Normal', 'DowntimeTooLong', 'Preparing'],
      ['Warning', 'SourceLost', 'Failed'],
    ])
    expect(told[2]).toMatchObject({
      regarding: { kind: 'Migration', namespace: 'shop', name: 'm', uid: 'u' },
      note: 'Failed: because of SourceLost (n1 to n2)',
    })
  })

  it('has none when it is seen first, is deleted, or another process leads', () => {
    const { store, told } = follow()
    store.replace([migration(statusOf('Succeeded', 'Moved'))], 1n)
    store.remove('shop/m')
    expect(told).toEqual([])
    const standby = follow(false)
    standby.store.upsert(migration(undefined))
    standby.store.upsert(migration(statusOf('Failed', 'SourceLost')))
    expect(standby.told).toEqual([])
  })

  it('does not tell why each of thousands of jobs waits', () => {
    const job = (status: PodMigrationJobStatus): PodMigrationJob => ({
      metadata: meta(),
      spec: { podRef: { namespace: 'shop', name: 'a' } },
      status,
    })
    expect(jobSaid(job({ phase: 'Pending', reason: 'NodeBudget' }))).toBeUndefined()
    expect(jobSaid(job({ phase: 'Failed', reason: 'Timeout', message: 'late' }))).toMatchObject({
      ...{ reason: 'Timeout', message: 'Failed: late', isBad: true },
    })
  })
})

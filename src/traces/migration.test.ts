import { describe, expect, it } from 'vitest'
import type { Migration, MigrationStatus } from '../api/migration.ts'
import { migrationSpans } from './migration.ts'
import { rootOf, traceOfChange, traceOfMigration } from './span.ts'

const at = (second: number) => `2030-01-01T00:00:${String(second).padStart(2, '0')}.000Z`
const base = Date.parse(at(0))

const migrationWith = (status: MigrationStatus): Migration => ({
  metadata: { namespace: 'shop', name: 'move', uid: 'm', resourceVersion: '1' },
  spec: { source: { name: 'web-a' } },
  status,
})

const succeeded: MigrationStatus = {
  phase: 'Succeeded',
  phaseTimes: [
    { phase: 'Pending', at: at(0) },
    { phase: 'Preparing', at: at(2) },
    { phase: 'Stopping', at: at(5) },
    { phase: 'Switching', at: at(6) },
    { phase: 'Succeeded', at: at(7) },
  ],
  source: { uid: 'a', node: 'n1', set: 'web', slot: 0 },
  target: { name: 'web-b', uid: 'b', node: 'n2' },
  ...{ generation: 9, bytes: 123, downtimeMilliseconds: 340 },
}

const change = { owner: 'u', slot: 'web-0', epoch: 4 }

describe('the spans of a Migration', () => {
  it('are a root and a child for each phase of its status, in the trace of the slot that it has moved', () => {
    const spans = migrationSpans(migrationWith(succeeded), change)
    expect(spans.map(({ name, from, to }) => [name, from - base, to - base])).toEqual([
      ['migration', 0, 7_000],
      ['Pending', 0, 2_000],
      ['Preparing', 2_000, 5_000],
      ['Stopping', 5_000, 6_000],
      ['Switching', 6_000, 7_000],
    ])
    const traceId = traceOfChange(change)
    expect(spans.every(span => span.traceId === traceId)).toBe(true)
    expect(spans.slice(1).every(({ parentId }) => parentId === rootOf(traceId))).toBe(true)
    expect(spans[0]?.attributes).toEqual({
      ...{ 'k8s.namespace.name': 'shop', 'understudy.migration': 'move', 'understudy.set': 'web' },
      ...{ 'understudy.slot': 0, 'understudy.epoch': 4, 'understudy.bytes': 123, 'understudy.generation': 9 },
      ...{ 'understudy.from': 'web-a', 'understudy.from.node': 'n1' },
      ...{ 'understudy.to': 'web-b', 'understudy.to.node': 'n2', 'understudy.downtime_ms': 340 },
    })
    expect(migrationSpans(migrationWith(succeeded), change)).toEqual(spans)
  })

  it('have a trace of their own if it has moved nothing, and the cut reason', () => {
    const message = 'x'.repeat(1_000)
    const [root] = migrationSpans(
      migrationWith({
        phase: 'Failed',
        phaseTimes: [
          { phase: 'Failed', at: at(3) },
          { phase: 'Pending', at: at(1) },
        ],
        conditions: [
          {
            ...{ type: 'Succeeded', status: 'False', reason: 'SourceGone', message },
            ...{ lastTransitionTime: at(3), observedGeneration: 1 },
          },
        ],
      }),
      undefined,
    )
    expect(root).toMatchObject({ traceId: traceOfMigration('m'), from: base + 1_000, to: base + 3_000 })
    expect(root?.attributes).toMatchObject({ 'understudy.reason': 'SourceGone' })
    expect(root?.failure).toHaveLength(256)
  })

  it.each([
    ['is under way', { ...succeeded, phase: 'Switching' as const }],
    ['has no times', { phase: 'Succeeded' as const }],
    [
      'has times that cannot be read',
      { phase: 'Failed' as const, phaseTimes: [{ phase: 'Failed' as const, at: '' }] },
    ],
  ])('are none while it %s', (_, status) => {
    expect(migrationSpans(migrationWith(status), undefined)).toEqual([])
  })
})

import { describe, expect, test } from 'vitest'
import { annotations } from '../api/labels.ts'
import type { Migration } from '../api/migration.ts'
import { scene } from './testing/scene.ts'

describe('D17.rule', () => {
  test('a cordon makes a Migration for each primary with memory of the node, and for nothing else', async () => {
    await using at = scene()
    at.usual()
    at.pod('p9', 'primary', 'n1', 9)
    await at.clock.advance(2_000)
    expect(at.names()).toEqual([])
    at.node('n1', true)
    await at.clock.advance(2_000)
    expect(at.names().sort()).toEqual(['p0-drain-1', 'p1-drain-1'])
    expect(at.migrations.get('default/p0-drain-1')).toMatchObject({
      metadata: {
        annotations: { [annotations.drainedNode]: 'n1' },
        ownerReferences: [{ kind: 'BackupPodSet', name: 'bps', uid: 'set-uid' }],
      },
      spec: {
        ...{ source: { name: 'p0', uid: 'uid-p0' }, priority: 'SystemCritical' },
        ...{ maxDowntime: '300ms', technique: 'LiveIfPossible' },
      },
    })
    expect(at.told.map(({ reason }) => reason)).toEqual(['Draining', 'Draining'])
    at.node('n2', true)
    await at.clock.advance(2_000)
    expect(at.names()).toHaveLength(2)
  })

  test('one that fails is repeated after a pause, and the event says why', async () => {
    await using at = scene()
    at.usual()
    at.node('n1', true)
    await at.clock.advance(2_000)
    at.phase('p0-drain-1', 'Failed')
    await at.clock.advance(14_000)
    expect(at.names()).not.toContain('p0-drain-2')
    await at.clock.advance(2_000)
    expect(at.names()).toContain('p0-drain-2')
    expect(at.told.at(-1)).toMatchObject({
      ...{ type: 'Warning', reason: 'DrainWaits' },
      note: expect.stringContaining('NoNode: no other node'),
    })
  })

  test('D17.waits: an event tells once for what a Migration waits, if only a user can change that', async () => {
    await using at = scene()
    at.usual()
    at.node('n1', true)
    await at.clock.advance(2_000)
    const waits = () => at.told.filter(({ reason }) => reason === 'DrainWaits').map(({ note }) => note)
    at.phase('p0-drain-1', 'Pending', 'NodeBudget')
    await at.clock.advance(2_000)
    expect(waits()).toEqual([])
    at.phase('p0-drain-1', 'Pending', 'SetPaused')
    await at.clock.advance(2_000)
    const paused = 'p0 has not left node n1: SetPaused: no other node'
    expect(waits()).toEqual([paused])
    at.phase('p0-drain-1', 'Preparing', 'MemoryComing')
    await at.clock.advance(2_000)
    at.phase('p0-drain-1', 'Preparing', 'SetPaused')
    await at.clock.advance(2_000)
    expect(waits()).toEqual([paused])
    at.phase('p0-drain-1', 'Reserving', 'NoNode')
    await at.clock.advance(2_000)
    expect(waits()).toEqual([paused, 'p0 has not left node n1: NoNode: no other node'])
  })

  test('a node that is uncordoned calls off those whose pod still runs, and no other', async () => {
    await using at = scene()
    at.usual()
    at.node('n1', true)
    await at.clock.advance(2_000)
    at.phase('p1-drain-1', 'Stopping')
    at.node('n1', false)
    await at.clock.advance(2_000)
    expect(at.names()).toEqual(['p1-drain-1'])
  })

  test.each<readonly [string, (at: ReturnType<typeof scene>) => void]>([
    ['its set lets it be evicted', at => at.set('Evict')],
    ['nothing of it is saved', at => at.lease('p0', 0, { unsaved: true })],
    ['its slot is kept for later only', at => at.lease('p0', 0, { retainedSince: '2030-01-01T00:00:00Z' })],
    ['another pod has its slot', at => at.lease('other', 0)],
    ['the Lease is of an earlier set', at => at.lease('p0', 0, { owner: 'earlier' })],
  ])('no Migration is made for a primary if %s', async (_, given) => {
    await using at = scene()
    at.usual()
    given(at)
    at.node('n1', true)
    await at.clock.advance(2_000)
    expect(at.names()).not.toContain('p0-drain-1')
  })

  test.each<readonly [string, string, (at: ReturnType<typeof scene>) => Partial<Migration>]>([
    [
      'one of another pod has the name of the first',
      'p0-drain-2',
      at => ({
        metadata: at.meta('p0-drain-1'),
        spec: { source: { name: 'p1', uid: 'gone' } },
        status: { phase: 'Failed' },
      }),
    ],
    [
      'one of a user waits for all others',
      'p0-drain-1',
      () => ({
        spec: { source: { name: 'p0' }, priority: 'SystemMaintenance' },
        status: { phase: 'Pending' },
      }),
    ],
    [
      'one of a user is deleted and has a finalizer',
      'p0-drain-1',
      at => ({ metadata: { ...at.meta('mine'), deletionTimestamp: '2030-01-01T00:00:00Z' } }),
    ],
  ])('a drain has a Migration of its own although %s', async (_, name, given) => {
    await using at = scene()
    at.usual()
    at.migrations.upsert({ metadata: at.meta('mine'), spec: { source: { name: 'p0' } }, ...given(at) })
    at.node('n1', true)
    await at.clock.advance(60_000)
    expect(at.names()).toContain(name)
  })

  test('an event tells that a Migration is refused', async () => {
    await using at = scene({ refuses: 'migrations' })
    at.usual()
    at.node('n1', true)
    await at.clock.advance(5_000)
    const note = expect.stringContaining(
      'p0 has not left node n1: Migration p0-drain-1 is refused: exceeded quota',
    )
    expect(at.told).toContainEqual(expect.objectContaining({ type: 'Warning', reason: 'DrainWaits', note }))
  })

  test('names that a user has taken are left, and a Migration of an earlier pod counts for nothing', async () => {
    await using at = scene()
    at.usual()
    at.migrations.upsert({
      ...{ metadata: at.meta('p0-drain-1'), spec: { source: { name: 'p0', uid: 'another' } } },
      status: { phase: 'Failed' },
    })
    at.node('n1', true)
    await at.clock.advance(2_000)
    expect(at.names()).toContain('p0-drain-2')
  })
})

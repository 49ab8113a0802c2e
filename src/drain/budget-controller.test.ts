import { describe, expect, test } from 'vitest'
import { labels } from '../api/labels.ts'
import { scene } from './testing/scene.ts'

describe('D17.budget', () => {
  test('a set with memory gets one that allows no eviction of its primaries', async () => {
    await using at = scene()
    at.usual()
    await at.clock.advance(2_000)
    expect(at.specs()).toEqual({
      'bps-primaries': {
        selector: { matchLabels: { [labels.set]: 'bps', type: 'primary' } },
        ...{ minAvailable: 2_147_483_647, unhealthyPodEvictionPolicy: 'IfHealthyBudget' },
      },
    })
  })

  test('it ends with the wish, or when nothing is saved any more', async () => {
    await using at = scene()
    at.usual()
    await at.clock.advance(2_000)
    at.set('Evict')
    await at.clock.advance(2_000)
    expect(at.specs()).toEqual({})
    at.set('Move')
    await at.clock.advance(2_000)
    expect(Object.keys(at.specs())).toHaveLength(1)
    at.lease('p0', 0, { unsaved: true })
    at.lease('p1', 1, { unsaved: true })
    await at.clock.advance(2_000)
    expect(at.specs()).toEqual({})
  })

  test('a budget of a user that selects primaries takes their place, and an event says so once', async () => {
    await using at = scene()
    at.usual()
    await at.clock.advance(2_000)
    at.budgets.upsert({
      metadata: at.meta('theirs'),
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'web', type: 'primary' } } },
    })
    await at.clock.advance(70_000)
    expect(Object.keys(at.specs())).toEqual(['theirs'])
    expect(at.told.map(({ reason, note }) => [reason, note.includes('theirs')])).toEqual([
      ['BudgetAbsent', true],
    ])
    at.budgets.remove('default/theirs')
    await at.clock.advance(2_000)
    expect(Object.keys(at.specs())).toEqual(['bps-primaries'])
  })

  test('a budget that was orphaned with the pods of its set is taken over by the next set of this name', async () => {
    await using at = scene()
    const metadata = { ...at.meta('bps-primaries'), labels: { [labels.set]: 'bps' } }
    at.budgets.upsert({ metadata, spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'web' } } } })
    at.usual()
    await at.clock.advance(2_000)
    expect(at.specs()['bps-primaries']).toMatchObject({ minAvailable: 2_147_483_647 })
    expect(at.budgets.get('default/bps-primaries')?.metadata.ownerReferences).toMatchObject([
      { uid: 'set-uid' },
    ])
    expect(at.told).toEqual([])
  })

  test('an object of a user that looks like one of an owner counts as one of a user', async () => {
    await using at = scene()
    const ownerReferences = [
      { apiVersion: 'v1', kind: 'BackupPodSet', name: 'bps', uid: 'set-uid', controller: true },
    ]
    at.budgets.upsert({
      ...{ metadata: { ...at.meta('forged'), ownerReferences }, spec: { selector: {}, maxUnavailable: 1 } },
    })
    at.usual()
    await at.clock.advance(2_000)
    expect(Object.keys(at.specs())).toEqual(['forged'])
  })

  test('a budget of a user counts before the first pod exists', async () => {
    await using at = scene()
    at.budgets.upsert({ metadata: at.meta('theirs'), spec: { maxUnavailable: 1, selector: {} } })
    at.set()
    at.lease('p0', 0)
    await at.clock.advance(2_000)
    expect(Object.keys(at.specs())).toEqual(['theirs'])
  })

  test('an event says that the API server refuses it', async () => {
    await using at = scene({ refuses: 'poddisruptionbudgets' })
    at.usual()
    await at.clock.advance(100)
    expect(at.told[0]).toMatchObject({
      ...{ reason: 'BudgetAbsent', note: expect.stringContaining('exceeded quota') },
    })
  })

  test('nothing is written while the budgets of users are not known', async () => {
    await using at = scene({ missing: true })
    at.usual()
    at.node('n1', true)
    await at.clock.advance(10_000)
    expect([at.specs(), at.names()]).toEqual([{}, []])
  })
})

import { describe, expect, it } from 'vitest'
import { makeLease, makeSlot } from '../../slot/testing/slots.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { actions, ofType, plan } from '../testing/decided.ts'
import { coldCopy, makeMemorySnapshot, makePrimary, makeUnderstudy } from '../testing/memory.ts'

const template = { spec: { restartPolicy: 'OnFailure', containers: [{ name: 'app', image: 'app' }] } }
const wish = { replicas: 1, hotBackups: 0, isNumbered: true, template } as const
const p0 = makePrimary('p0', 0)
const lease = makeLease(p0, { holders: ['b', 'c'] })
const slot = makeSlot(lease, [coldCopy(lease, 'b')])
const nodes = ['n-p0', 'b', 'c']
const completed = { pod: 'p0', at: '2030-01-01T00:00:05Z' }

describe('MP-29: a set whose work is done', () => {
  it('makes no pod for the slot, and deletes its memory', () => {
    const done = makeMemorySnapshot(wish, [], [slot], { completed }, nodes)
    expect(actions(done)).toMatchObject([
      {
        type: 'deleteSlot',
        slot: 0,
        told: { type: 'Normal', note: expect.stringContaining('work is done') },
      },
    ])
    const after = makeMemorySnapshot(wish, [], [], { completed }, nodes)
    expect(plan(after).tiers).toEqual([])
  })

  it('deletes a pod that was to take the slot', () => {
    const heir = makeUnderstudy('p1', { node: 'b' }, { successorOf: 0 })
    const heirs = makeSlot({ ...lease, heir: { name: 'p1', uid: heir.uid, ip: undefined } }, [
      coldCopy(lease, 'b'),
    ])
    const done = makeMemorySnapshot(wish, [heir], [heirs], { completed }, nodes)
    expect(ofType(done, 'delete')).toMatchObject([{ pod: { name: 'p1' } }])
    expect(ofType(done, 'promote')).toEqual([])
    expect(ofType(done, 'create')).toEqual([])
  })

  it('makes no pod even if it is to be suspended or resumed', () => {
    for (const suspended of [true, false]) {
      const done = makeMemorySnapshot({ ...wish, suspended }, [], [slot], { completed }, nodes)
      expect(actions(done).map(({ type }) => type)).toEqual(['deleteSlot'])
    }
  })
})

describe('MP-29: an end that is not in the status yet', () => {
  it('deletes and makes nothing, so that an operator that ends now loses nothing', () => {
    for (const known of [{ completed }, {}]) {
      const found = makeMemorySnapshot(wish, [], [slot], { ...known, isHeld: true }, nodes)
      expect(actions(found)).toEqual([])
      expect(plan(found).requeueAfterMs).toBe(1_000)
    }
  })

  it('keeps also a pod that has finished', () => {
    const finished = [makePrimary('p0', 0)]
    expect(actions(makeMemorySnapshot(wish, [], [slot], { finished, isHeld: true }, nodes))).toEqual([])
  })
})

describe('MP-29: a death of an app that may have ended with success', () => {
  const dead = (over: Partial<PodView> = {}) =>
    makePrimary('p0', 0, { ready: false, unreadySince: 1_000_000, ...over }, { died: true })
  const at = (pod: PodView, set: object = wish, ms = 0) =>
    makeMemorySnapshot(set, [pod], [slot], { now: 1_000_000 + ms }, nodes)

  it('counts once the kubelet has told how it has ended', () => {
    const untold = at(dead({ endUntold: 15_000 }))
    expect(ofType(untold, 'create')).toEqual([])
    expect(plan(untold).requeueAfterMs).toBeLessThanOrEqual(15_000)
    expect(ofType(at(dead()), 'create')).toHaveLength(1)
  })

  it('counts later while the kubelet ends sidecars: the pod has then succeeded', () => {
    const stopping = (ms: number) => ofType(at(dead({ endUntold: 60_000 }), wish, ms), 'create')
    expect(stopping(59_999)).toEqual([])
    expect(stopping(60_000)).toHaveLength(1)
  })

  it('counts after 15 s in any case: the kubelet may be away', () => {
    expect(ofType(at(dead({ endUntold: 15_000 }), wish, 14_999), 'create')).toEqual([])
    expect(ofType(at(dead({ endUntold: 15_000 }), wish, 15_000), 'create')).toHaveLength(1)
  })

  it('ends no pod of a set that is to be suspended before the kubelet has told', () => {
    const suspended = { ...wish, suspended: true }
    const untold = at(dead({ endUntold: 15_000 }), suspended)
    expect(actions(untold)).toEqual([])
    expect(at(dead(), suspended)).toSatisfy((s: Snapshot) => ofType(s, 'delete').length === 1)
    const unsaved = makeSlot(makeLease(p0, { kept: [] }), [])
    const never = (over: Partial<PodView>) =>
      makeMemorySnapshot(suspended, [dead({ served: false, ...over })], [unsaved], {}, nodes)
    expect(ofType(never({ endUntold: 15_000 }), 'delete')).toEqual([])
    expect(ofType(never({}), 'delete')).toHaveLength(1)
  })

  it('counts at once where an app never ends with success', () => {
    const always = { ...wish, template: { spec: { containers: [{ name: 'app', image: 'app' }] } } }
    expect(ofType(at(dead({ endUntold: 15_000 }), always), 'create')).toHaveLength(1)
  })
})

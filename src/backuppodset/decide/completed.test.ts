import { describe, expect, it } from 'vitest'
import { makeLease, makeSlot } from '../../slot/testing/slots.ts'
import type { PodView } from '../snapshot.ts'
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

describe('MP-29: a death of an app that may have ended with success', () => {
  const dead = (over: Partial<PodView> = {}) =>
    makePrimary('p0', 0, { ready: false, unreadySince: 1_000_000, ...over }, { died: true })
  const at = (pod: PodView, set: object = wish, ms = 0) =>
    makeMemorySnapshot(set, [pod], [slot], { now: 1_000_000 + ms }, nodes)

  it('counts once the kubelet has told how it has ended', () => {
    const untold = at(dead({ endUntold: true }))
    expect(ofType(untold, 'create')).toEqual([])
    expect(plan(untold).requeueAfterMs).toBeLessThanOrEqual(15_000)
    expect(ofType(at(dead()), 'create')).toHaveLength(1)
  })

  it('counts after 15 s in any case: the kubelet may be away', () => {
    expect(ofType(at(dead({ endUntold: true }), wish, 14_999), 'create')).toEqual([])
    expect(ofType(at(dead({ endUntold: true }), wish, 15_000), 'create')).toHaveLength(1)
  })

  it('counts at once where an app never ends with success', () => {
    const always = { ...wish, template: { spec: { containers: [{ name: 'app', image: 'app' }] } } }
    expect(ofType(at(dead({ endUntold: true }), always), 'create')).toHaveLength(1)
  })
})

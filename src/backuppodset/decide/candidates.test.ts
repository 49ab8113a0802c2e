import { describe, expect, it } from 'vitest'
import type { Grant } from '../../api/grant.ts'
import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import type { Copy, SlotMemory } from '../../slot/decide/memory-view.ts'
import { makeCopy, makeLease, makeSlot } from '../../slot/testing/slots.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { dead, died, ofType } from '../testing/decided.ts'
import { makeMemorySnapshot, makePrimary, makeUnderstudy } from '../testing/memory.ts'

describe('an understudy that has the grant of one slot', () => {
  const p1 = makePrimary('p1', 1, dead, died)
  const [h0, h1] = [makeUnderstudy('h0'), makeUnderstudy('h1')]
  const heirOf = (pod: PodView) => ({ uid: pod.uid, node: pod.node ?? '' })
  const grant: Grant = { number: 2, heir: heirOf(h0), isRevoked: false }

  interface World {
    /** The primary of slot 0, whose grant names h0. */
    readonly p0?: PodView
    readonly isOutstanding?: boolean
    readonly isUsed?: boolean
    readonly hot?: readonly PodView[]
    readonly copiesOf1?: (lease: NumberedSlotLease) => readonly Copy[]
    readonly over1?: Partial<SlotMemory>
  }

  const world = ({
    p0 = makePrimary('p0', 0),
    isOutstanding = true,
    isUsed = false,
    hot = [h0],
    copiesOf1 = lease => [makeCopy(lease, h0, 'Frozen')],
    over1 = {},
  }: World): Snapshot => {
    const of0 = makeLease(p0, { holders: ['n-h0'], heir: { name: 'h0', uid: h0.uid, ip: undefined }, grant })
    const of1 = makeLease(p1, { holders: ['n-h0', 'n-h1'] })
    const outstanding = isOutstanding ? { heir: heirOf(h0), isUsed } : undefined
    const slots = [
      makeSlot(of0, [makeCopy(of0, h0, 'Staged')], {
        grants: { words: new Map(), nextNumber: 3, outstanding },
      }),
      makeSlot(of1, copiesOf1(of1), { vacantSince: 0, ...over1 }),
    ]
    const wish = { replicas: 2, hotBackups: hot.length }
    const s = makeMemorySnapshot(wish, [p0, p1, ...hot], slots, { monotonicNow: 9_000 })
    return { ...s, ...(s.memory && { memory: { ...s.memory, grantee: 'Heir' as const } }) }
  }
  const made = (s: Snapshot) => ofType(s, 'create').flatMap(({ successorOf }) => successorOf?.slot ?? [])
  const promoted = (s: Snapshot) =>
    ofType(s, 'promote').map(({ pod, lease }) => `${pod.name} to ${lease.slot}`)
  const revoked = (s: Snapshot) =>
    ofType(s, 'writeSlot').flatMap(({ lease }) => (lease.grant?.isRevoked === true ? [lease.slot] : []))

  it('is called to another slot only when the grant is over, which is asked for at once', () => {
    const s = world({})
    expect([promoted(s), revoked(s), made(s)]).toEqual([[], [0], []])
    expect(promoted(world({ isOutstanding: false }))).toEqual(['h0 to 1'])
  })

  it('is not waited for where another one has the memory at hand', () => {
    const s = world({
      hot: [h0, h1],
      copiesOf1: lease => [makeCopy(lease, h0, 'Frozen'), makeCopy(lease, h1, 'Staged')],
    })
    expect([promoted(s), revoked(s)]).toEqual([['h1 to 1'], []])
  })

  it('keeps it for its own slot when the primaries of both have died: the other one gets a new pod', () => {
    for (const isUsed of [false, true]) {
      const s = world({ p0: makePrimary('p0', 0, dead, died), isUsed })
      expect(promoted(s)).toEqual(['h0 to 0'])
      expect(made(s)).toEqual([1])
    }
  })

  it('is not waited for while its agent is silent: that could answer only later', () => {
    const s = world({ copiesOf1: lease => [{ ...makeCopy(lease, h0, 'Frozen'), stale: true }] })
    expect([promoted(s), revoked(s), made(s)]).toEqual([[], [], [1]])
  })
})

describe('an heir of two slots', () => {
  it('has a grant of neither slot: after a death, the other slot would wait until that grant is over', () => {
    const [p0, p1] = [makePrimary('p0', 0), makePrimary('p1', 1)]
    const [h0, h1] = [makeUnderstudy('h0'), makeUnderstudy('h1')]
    const granted = (heirOf1: PodView) => {
      const words = new Map(['n-p0', 'n-p1', 'n-h0', 'n-h1'].map(node => [node, { closed: 0 }] as const))
      const slots = [p0, p1].map((primary, slot) => {
        const heir = slot === 0 ? h0 : heirOf1
        const named = { name: heir.name, uid: heir.uid, ip: heir.stage?.ip }
        const lease = makeLease(primary, { holders: ['n-h0', 'n-h1'], heir: named })
        const grants = { words, nextNumber: 1, outstanding: undefined }
        return makeSlot(lease, [makeCopy(lease, h0, 'Frozen'), makeCopy(lease, h1, 'Frozen')], { grants })
      })
      const hot = heirOf1 === h0 ? [h0] : [h0, h1]
      const s = makeMemorySnapshot({ replicas: 2, hotBackups: hot.length }, [p0, p1, ...hot], slots)
      const memory = s.memory && { ...s.memory, grantee: 'Heir' as const }
      return ofType({ ...s, ...(memory && { memory }) }, 'writeSlot').flatMap(({ lease: { slot, grant } }) =>
        grant?.heir === undefined ? [] : [`${slot} ${grant.heir.uid}`],
      )
    }
    expect(granted(h1)).toEqual([`0 ${h0.uid}`, `1 ${h1.uid}`])
    expect(granted(h0)).toEqual([])
  })
})

describe('a slot whose grant names an heir that is out of reach', () => {
  const p0 = makePrimary('p0', 0, dead, died)
  const [h0, h1] = [makeUnderstudy('h0'), makeUnderstudy('h1')]
  const heir = { uid: h0.uid, node: 'n-h0' }
  const seen = (grant: Omit<Grant, 'number' | 'heir'>, { isUsed = false, stale = true } = {}) => {
    const lease = makeLease(p0, { holders: ['n-h0', 'n-h1'], grant: { number: 2, heir, ...grant } })
    const copies = [{ ...makeCopy(lease, h0, 'Frozen'), stale }, makeCopy(lease, h1, 'Staged')]
    const { name, uid, resourceVersion } = h0
    const untold = grant.isAnnounced ? { untold: { name, uid, resourceVersion } } : {}
    const grants = { words: new Map(), nextNumber: 3, outstanding: { heir, isUsed, ...untold } }
    const slot = makeSlot(lease, copies, { grants, vacantSince: 0 })
    const s = makeMemorySnapshot({ replicas: 1, hotBackups: 2 }, [p0, h0, h1], [slot])
    return {
      promoted: ofType(s, 'promote').map(({ pod }) => pod.name),
      revoked: ofType(s, 'writeSlot').flatMap(({ lease }) => lease.grant?.isRevoked ?? []),
      ended: ofType(s, 'endGrant').map(({ pod, number }) => `${pod.name} ${number}`),
      made: ofType(s, 'create').length,
    }
  }

  it('waits until the operator has ended it, and for no new pod, if another one has the memory at hand', () => {
    const announced = { isRevoked: false, isAnnounced: true } as const
    expect(seen(announced)).toEqual({ promoted: [], revoked: [true], ended: [], made: 0 })
    const revoked = { ...announced, isRevoked: true }
    expect(seen(revoked)).toEqual({ promoted: [], revoked: [], ended: ['h0 2'], made: 0 })
  })

  it('is given to the heir if that has the memory at hand, or has used its grant, or can resume unseen', () => {
    const announced = { isRevoked: false, isAnnounced: true } as const
    expect(seen(announced, { stale: false }).promoted).toEqual(['h0'])
    expect(seen(announced, { isUsed: true }).promoted).toEqual(['h0'])
    expect(seen({ isRevoked: false }).promoted).toEqual(['h0'])
  })
})

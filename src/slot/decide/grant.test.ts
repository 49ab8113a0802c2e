import { describe, expect, it } from 'vitest'
import type { Grant, GrantWord } from '../../api/grant.ts'
import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import { makeCandidate, makeCopy, makeHolder, makeLease, makeSlot, stage } from '../testing/slots.ts'
import {
  endsOfGrants,
  grantOfSuccessor,
  grantStateOf,
  type HeirState,
  mayBeginAnew,
  mayCall,
  nextGrant,
  untilGrantsEnd,
  usedHeirOf,
} from './grant.ts'
import type { Copy } from './memory-view.ts'
import { callable } from './successors.ts'

const p0 = makeHolder('p0', 0)
const heir = (name: string) =>
  makeCandidate(name, 'hotbackup', { node: `n-${name}`, stage: stage({ understudy: true }) })
const [h0, h1] = [heir('h0'), heir('h1')]
const named: Grant = { number: 3, heir: { uid: h0.uid, node: 'n-h0' }, isRevoked: false }
const lease = makeLease(p0, { holders: ['n-h0', 'n-h1'], grant: named })
const copies = [makeCopy(lease, h0, 'Frozen'), makeCopy(lease, h1, 'Frozen')]
const words = (p?: GrantWord, h?: GrantWord) =>
  new Map([...(p ? [['n-p0', p] as const] : []), ...(h ? [['n-h0', h] as const] : [])])
const saidOf = (
  said: ReadonlyMap<string, GrantWord>,
  state: HeirState = 'Waits',
  isSourceSilent = false,
) => ({ words: said, heirState: () => state, onPod: () => untold, isSourceSilent })
const untold = { over: 0, isTold: false }
const served = { isServed: true, isAnnounced: false }
const announced: Grant = { ...named, isAnnounced: true }
const stateOf = (said: ReadonlyMap<string, GrantWord>, state: HeirState = 'Waits', over = {}) =>
  grantStateOf({ ...lease, ...over }, saidOf(said, state))
const slotOf = (
  said: ReadonlyMap<string, GrantWord>,
  over: Partial<NumberedSlotLease> = {},
  state: HeirState = 'Waits',
  kept: readonly Copy[] = copies,
) => {
  const whole = { ...lease, ...over }
  return makeSlot(whole, kept, { grants: grantStateOf(whole, saidOf(said, state)) })
}

describe('a grant is outstanding', () => {
  it.each([
    ['nothing is said', words()],
    ['only earlier ones are over', words({ closed: 2 }, { closed: 2 })],
    ['the node of the primary may have used it', words({ closed: 3, used: 3 })],
    [
      'the node of the heir has agreed, whatever the other says',
      words({ closed: 3 }, { closed: 3, used: 3 }),
    ],
  ])('where %s', (_, said) => {
    expect(stateOf(said).outstanding?.heir).toEqual(named.heir)
    expect(mayCall(slotOf(said), h0.uid)).toBe(true)
    expect(mayCall(slotOf(said), h1.uid)).toBe(false)
    expect(mayBeginAnew(slotOf(said))).toBe(false)
  })

  it.each([
    ['the node of the primary never uses it', words({ closed: 3 })],
    [
      'the node of the heir never uses it, although it may have been told',
      words({ closed: 3, used: 3 }, { closed: 3 }),
    ],
  ])('no more where %s', (_, said) => {
    expect(stateOf(said).outstanding).toBeUndefined()
    expect(mayCall(slotOf(said), h1.uid)).toBe(true)
  })

  it('no more where Kubernetes has given up the node of the heir, unless an agent has said that it is used', () => {
    expect(stateOf(words(), 'NodeLost').outstanding).toBeUndefined()
    expect(stateOf(words({ closed: 2 }, { closed: 2 }), 'NodeLost').outstanding).toBeUndefined()
    // The heir may run behind a cut, and no voters stop it.
    expect(stateOf(words({ closed: 3, used: 3 }), 'NodeLost').outstanding?.isUsed).toBe(true)
    expect(stateOf(words(undefined, { closed: 3, used: 3 }), 'NodeLost').outstanding).toBeDefined()
    const over = {
      ...{ holder: { name: 'h0', uid: h0.uid }, epoch: 2, node: 'n-h0' },
      grant: { ...named, isRevoked: true, source: 'n-p0' },
    }
    expect(stateOf(words({ closed: 3, used: 3 }), 'NodeLost', over).outstanding).toBeDefined()
  })

  it('no more where the heir certainly does not run', () => {
    expect(stateOf(words(), 'Over').outstanding).toBeUndefined()
    // It has the slot by its grant only, and serves.
    expect(stateOf(words(), 'OnStage').outstanding).toBeDefined()
  })

  it('also once it is recorded, until the heir serves or its agent acts by the Lease again', () => {
    const over = {
      holder: { name: 'h0', uid: h0.uid },
      epoch: 2,
      node: 'n-h0',
      grant: { ...named, isRevoked: true },
    }
    expect(stateOf(words(), 'Waits', over).outstanding).toEqual({ heir: named.heir, isUsed: false })
    expect(stateOf(words(undefined, { closed: 3, used: 3 }), 'Waits', over).outstanding).toBeDefined()
    // The word of the earlier primary's node is no word of the heir's.
    expect(stateOf(words({ closed: 3 }), 'Waits', over).outstanding).toBeDefined()
    const from = { ...over, grant: { ...over.grant, source: 'n-p0' } }
    expect(stateOf(words({ closed: 3, used: 3 }), 'Waits', from).outstanding).toBeDefined()
    expect(stateOf(words({ closed: 3 }), 'Waits', from).outstanding).toBeUndefined()
    expect(stateOf(words(), 'OnStage', over).outstanding).toBeUndefined()
    expect(stateOf(words(undefined, { closed: 3 }), 'Waits', over).outstanding).toBeUndefined()
  })

  it('and used, where the agent of the primary says so, or that of the heir while the other cannot', () => {
    const agreed = { closed: 3, used: 3 }
    const usedBy = (said: ReadonlyMap<string, GrantWord>, isSilent: boolean) =>
      usedHeirOf({ grants: grantStateOf(lease, saidOf(said, 'Waits', isSilent)) })
    expect(usedHeirOf(slotOf(words({ closed: 3, used: 3 })))).toEqual(named.heir)
    expect(usedHeirOf(slotOf(words(undefined, agreed)))).toEqual(named.heir)
    // No node takes the slot of a primary on another one by its word alone.
    expect(usedBy(words({ closed: 2 }, agreed), false)).toBeUndefined()
    expect(usedBy(words({ closed: 3 }, agreed), false)).toBeUndefined()
    expect(usedBy(words({ closed: 2 }, agreed), true)).toEqual(named.heir)
    expect(usedHeirOf(slotOf(words({ closed: 2 }, { closed: 2 })))).toBeUndefined()
    expect(usedHeirOf(slotOf(words({ closed: 3, used: 2 })))).toBeUndefined()
  })
})

describe('a grant that the heir announces', () => {
  const used = words({ closed: 3, used: 3 }, { closed: 3, used: 3 })
  const on = (pod: Partial<typeof untold>, grant = announced) =>
    grantStateOf({ ...lease, grant }, { ...saidOf(used), onPod: () => ({ ...untold, ...pod }) }).outstanding
  const endedOn = (over: number, grant = announced) => on({ over }, grant)
  const podOf = ({ name, uid, resourceVersion }: typeof h0) => ({ name, uid, resourceVersion })
  const ends = (grant: Grant, isTold = false, over: Partial<NumberedSlotLease> = {}, heir = h0) => {
    const whole = { ...lease, grant, ...over }
    const said = { ...saidOf(words()), onPod: () => ({ over: 0, isTold, pod: podOf(h0) }) }
    const slot = makeSlot(whole, copies, { grants: grantStateOf(whole, said) })
    const memory = { slots: new Map([[0, slot]]), copies: 1, nodes: new Map() }
    return endsOfGrants({ pods: [p0, heir], lost: new Map(), now: 0, monotonicNow: 0, memory })
  }
  const revoked = { ...announced, isRevoked: true }
  const late = stage({ understudy: true, late: true, failed: 'it did not serve within 10 s' })

  it('is over once the operator has ended it on the pod, whatever agents say', () => {
    expect(endedOn(3)).toBeUndefined()
    expect(endedOn(4)).toBeUndefined()
    expect(endedOn(2)).toEqual({ heir: named.heir, isUsed: false })
    // An heir that does not look there may run.
    expect(endedOn(3, named)).toEqual({ heir: named.heir, isUsed: true })
  })

  it('is used once the pod says that it resumes, and an agent that it has used it', () => {
    expect(on({ isTold: true })).toEqual({ heir: named.heir, isUsed: true })
    const alone = grantStateOf(
      { ...lease, grant: announced },
      { ...saidOf(words()), onPod: () => ({ over: 0, isTold: true }) },
    )
    expect(alone.outstanding).toEqual({ heir: named.heir, isUsed: false })
  })

  it('is not over because the node of the heir is lost: the API server has its word, or will not get it', () => {
    expect(stateOf(words(), 'NodeLost', { grant: announced }).outstanding).toBeDefined()
    expect(stateOf(words(), 'Over', { grant: announced }).outstanding).toBeUndefined()
  })

  it('is ended on the pod once it is revoked, unless an agent has told that the pod resumes', () => {
    const end = { type: 'endGrant', pod: podOf(h0), slot: 0, incarnation: lease.incarnation, number: 3 }
    expect(ends(revoked)).toEqual([end])
    // A pod that leaves is no candidate any more.
    expect(ends(revoked, false, {}, h1)).toEqual([end])
    expect(ends(announced)).toEqual([])
    expect(ends({ ...named, isRevoked: true })).toEqual([])
    expect(ends(revoked, true)).toEqual([])
  })

  it('is ended after its record only if the heir is late', () => {
    const recorded = { holder: { name: 'h0', uid: h0.uid }, epoch: 2, node: 'n-h0' }
    expect(ends(revoked, false, recorded)).toEqual([])
    expect(ends(revoked, false, recorded, { ...h0, stage: late })).toHaveLength(1)
  })

  it('replaces one of the other kind, once that is over', () => {
    const wish = { isServed: true, isAnnounced: true }
    expect(nextGrant(slotOf(words()), h0, wish)).toEqual({ ...named, isRevoked: true })
    expect(nextGrant(slotOf(words(), { grant: announced }), h0, wish)).toEqual(announced)
    const over = words({ closed: 3 }, { closed: 3 })
    expect(nextGrant(slotOf(over), h0, wish)).toEqual({ ...announced, number: 4 })
  })
})

describe('while a grant is outstanding', () => {
  const s = { pods: [], lost: new Map(), now: 0, monotonicNow: 0 }

  it('only its heir can be called', () => {
    expect(callable(s, slotOf(words()), [h0, h1]).map(({ uid }) => uid)).toEqual([h0.uid])
    expect(callable(s, slotOf(words()), [h1])).toEqual([])
    expect(callable(s, slotOf(words({ closed: 3 })), [h0, h1])).toHaveLength(2)
  })

  it('an heir that has used it is called, whatever its node reports of the memory', () => {
    const slot = slotOf(words({ closed: 3, used: 3 }), {}, 'Waits', [])
    expect(callable(s, slot, [h0, h1]).map(({ uid }) => uid)).toEqual([h0.uid])
  })

  it('the record of a takeover remembers it for the heir, and only its number for another pod', () => {
    expect(grantOfSuccessor(slotOf(words()), h0.uid)).toEqual({ ...named, isRevoked: true, source: 'n-p0' })
    expect(grantOfSuccessor(slotOf(words({ closed: 3 })), h1.uid)).toEqual({ number: 3, isRevoked: false })
  })
})

describe('the grant in a Lease', () => {
  const both = words({ closed: 0 }, { closed: 0 })
  const fresh = () => {
    const { grant: _, ...rest } = lease
    return makeSlot(rest, copies, { grants: grantStateOf(rest, saidOf(both)) })
  }

  it('names the heir once its node has the memory in that pod, and both agents have answered a grant without an heir', () => {
    expect(nextGrant(fresh(), h0, served)).toEqual({ number: 1, heir: named.heir, isRevoked: false })
    expect(nextGrant(fresh(), h0)).toBeUndefined()
    expect(nextGrant(fresh(), undefined, served)).toBeUndefined()
    expect(nextGrant({ ...fresh(), copies: [makeCopy(lease, h1, 'Frozen')] }, h0, served)).toBeUndefined()
    expect(
      nextGrant({ ...fresh(), copies: [makeCopy(lease, h0, undefined, { usable: 'Cold' })] }, h0, served),
    ).toBeUndefined()
    const { grants } = fresh()
    expect(
      grants && nextGrant({ ...fresh(), grants: { ...grants, words: words({ closed: 0 }) } }, h0, served),
    ).toEqual({ number: 1, isRevoked: false })
  })

  it('stays while the same pod is the heir, also while the primary does not answer', () => {
    expect(nextGrant(slotOf(words()), h0, served)).toEqual(named)
    expect(nextGrant(slotOf(words()), h0)).toEqual(named)
  })

  it('is revoked while the agent of the heir is silent, and given to no such pod', () => {
    const silent = copies.map(copy => (copy.node === 'n-h0' ? { ...copy, silent: true, stale: true } : copy))
    expect(nextGrant(slotOf(words(), {}, 'Waits', silent), h0, served)).toEqual({ ...named, isRevoked: true })
    expect(nextGrant({ ...fresh(), copies: silent }, h0, served)).toBeUndefined()
  })

  it('is revoked before another pod is named, and that waits for the end of the first one', () => {
    const revoked = { ...named, isRevoked: true }
    expect(nextGrant(slotOf(words()), h1, served)).toEqual(revoked)
    expect(nextGrant(slotOf(words()), undefined, served)).toEqual(revoked)
    expect(nextGrant(slotOf(words(), { grant: revoked }), h0, served)).toEqual(revoked)
    const over = new Map([...words({ closed: 3 }, { closed: 3 }), ['n-h1', { closed: 3 }] as const])
    expect(nextGrant(slotOf(over, { grant: revoked }), undefined, served)).toEqual({
      number: 3,
      isRevoked: false,
    })
    expect(nextGrant(slotOf(over, { grant: revoked }), h1, served)).toEqual({
      ...{ number: 4, isRevoked: false },
      heir: { uid: h1.uid, node: 'n-h1' },
    })
  })

  it('has a number that no agent has heard of, also if a person has removed it from the Lease', () => {
    const { grant: _, ...rest } = lease
    const grants = grantStateOf(rest, saidOf(words({ closed: 5 }, { closed: 4, used: 6 })))
    expect(nextGrant(makeSlot(rest, copies, { grants }), h0, served)?.number).toBe(7)
  })

  it('is looked at again while only time may end it', () => {
    const seen = (slot: ReturnType<typeof slotOf>) =>
      untilGrantsEnd({ memory: { slots: new Map([[0, slot]]), copies: 1, nodes: new Map() } })
    expect(seen(slotOf(words()))).toBeUndefined()
    expect(seen({ ...slotOf(words()), vacantSince: 1 })).toBe(2_000)
    expect(seen({ ...slotOf(words({ closed: 3 })), vacantSince: 1 })).toBeUndefined()
    expect(seen(slotOf(words({ closed: 2 }, { closed: 3, used: 3 })))).toBe(2_000)
    expect(seen(slotOf(words({ closed: 3, used: 3 }, { closed: 3, used: 3 })))).toBeUndefined()
  })
})

import { describe, expect, it } from 'vitest'
import type { Copy, SlotMemory } from '../../slot/decide/memory-view.ts'
import { makeCopy, makeLease, makeSlot } from '../../slot/testing/slots.ts'
import type { PodView } from '../snapshot.ts'
import { actions, ofType } from '../testing/decided.ts'
import { coldCopy, makeMemorySnapshot, makePrimary, makeUnderstudy } from '../testing/memory.ts'
import { makePod } from '../testing/snapshots.ts'

describe('a set whose memory must not be kept', () => {
  const p0 = makePrimary('p0', 0)
  const h0 = makeUnderstudy('h0')
  const refusing = (slots: Parameters<typeof makeMemorySnapshot>[2], refusedForLong = true) => {
    const s = makeMemorySnapshot({ replicas: 1, hotBackups: 1 }, [p0, h0], slots, {}, ['n-p0', 'n-x'])
    if (s.memory === undefined) throw new Error('no memory')
    return {
      ...s,
      memory: { ...s.memory, refused: { reason: 'ClaimNotShared', message: 'no' }, refusedForLong },
    }
  }

  it('has Leases that name no heir and no node: nobody saves anything', () => {
    expect(ofType(refusing([]), 'writeSlot')).toMatchObject([
      { lease: { holder: { name: 'p0' }, heir: undefined, holders: [] } },
    ])
  })

  it('takes back what was assigned before, and touches no pod for it', () => {
    const lease = makeLease(p0, { heir: { name: 'h0', uid: h0.uid, ip: '10.0.0.1' }, holders: ['n-h0'] })
    const s = refusing([makeSlot(lease, [makeCopy(lease, h0, 'Frozen')])])
    expect(actions(s)).toMatchObject([
      { type: 'writeSlot', lease: { incarnation: lease.incarnation, heir: undefined, holders: [] } },
    ])
    const empty = { ...lease, heir: undefined, holders: [], unsaved: true }
    expect(actions(refusing([makeSlot(empty, [])]))).toEqual([])
  })

  it('D7.kept: costs no copy while it may pass: nothing is saved, and all stays where it is', () => {
    const heir = { name: 'h0', uid: h0.uid, ip: '10.0.0.1' }
    const lease = makeLease(p0, { heir, holders: ['n-h0'], kept: ['n-h0'] })
    const slot = makeSlot(lease, [makeCopy(lease, h0, 'Frozen')])
    expect(actions(refusing([slot], false))).toMatchObject([
      {
        type: 'writeSlot',
        lease: { incarnation: lease.incarnation, heir, holders: ['n-h0'], kept: ['n-h0'], unsaved: true },
      },
    ])
    expect(actions(refusing([{ ...slot, lease: { ...lease, unsaved: true } }], false))).toEqual([])
    // No new slot gets copies, either.
    expect(ofType(refusing([], false), 'writeSlot')).toMatchObject([
      { lease: { heir: undefined, holders: [] } },
    ])
    // A primary that dies is followed by a successor.
    const gone = { ...p0, ready: false, stage: { ...p0.stage, died: true } } as PodView
    const s = refusing([slot], false)
    expect(ofType({ ...s, pods: [gone, h0] }, 'promote')).toMatchObject([{ pod: { name: 'h0' } }])
  })
})

describe('the Lease of a primary', () => {
  const p0 = makePrimary('p0', 0)
  const h0 = makeUnderstudy('h0')
  const lease = makeLease(p0, { heir: { name: 'h0', uid: h0.uid, ip: '10.0.0.1' }, holders: ['n-h0'] })
  const key = 'a'.repeat(64)
  const signers = (slots: readonly Parameters<typeof makeSlot>[]) => {
    const s = makeMemorySnapshot(
      { replicas: 1, hotBackups: 1 },
      [p0, h0],
      slots.map(each => makeSlot(...each)),
    )
    const nodes = new Map(
      ['n-p0', 'n-h0'].map(name => [name, { name, ready: true, problem: undefined, signer: key }]),
    )
    if (s.memory === undefined) throw new Error('no memory')
    return ofType({ ...s, memory: { ...s.memory, nodes } }, 'writeSlot')[0]?.lease.signers
  }
  const source = (signed: boolean) => ({
    source: { ...makeCopy(lease, p0, undefined, { signed }).report, role: 'source' as const },
  })

  it('names the key that signs its memory from the beginning', () => {
    expect(signers([])).toEqual([{ epoch: 1, fingerprint: key }])
    expect(signers([[lease, []]])).toEqual([{ epoch: 1, fingerprint: key }])
  })

  it('rolling upgrade: of memory that is there already not before a holder has it signed', () => {
    const copy = (signed: boolean) => [makeCopy(lease, h0, 'Frozen', { signed })]
    expect(signers([[lease, copy(false), source(false)]])).toBeUndefined()
    expect(signers([[lease, copy(false), source(true)]])).toBeUndefined()
    expect(signers([[lease, copy(true), source(true)]])).toEqual([{ epoch: 1, fingerprint: key }])
  })
})

it('D7.owner: a slot of whose name another Lease is there is written when that is gone, and its primary starts meanwhile', () => {
  const s = makeMemorySnapshot({ replicas: 1, hotBackups: 0 }, [makePrimary('p0', 0)], [])
  if (s.memory === undefined) throw new Error('no memory')
  expect(ofType(s, 'writeSlot')).toHaveLength(1)
  expect(actions({ ...s, memory: { ...s.memory, foreign: new Set([0]) } })).toEqual([])
})

describe('D7.kept: a copy is let go only for one that is as new', () => {
  const p0 = makePrimary('p0', 0)
  const h0 = makeUnderstudy('h0')
  const lease = makeLease(p0, { holders: ['n-h0', 'a'], kept: ['n-h0', 'a'] })
  const wish = { replicas: 1, hotBackups: 1 }
  const holders = (of: Partial<Copy>, report: Partial<Copy['report']>, over: Partial<SlotMemory> = {}) => {
    const here = { ...makeCopy(lease, h0, 'Staged', report), ...of }
    const other = coldCopy(lease, 'a')
    const copies = [here, { ...other, report: { ...other.report, epoch: 1, generation: 57 } }]
    const s = makeMemorySnapshot(wish, [p0, h0], [makeSlot(lease, copies, over)])
    if (s.memory === undefined) throw new Error('a set without memory')
    const [next] = ofType({ ...s, memory: { ...s.memory, copies: 1 } }, 'writeSlot')
    return [next?.lease.holders, next?.lease.kept]
  }
  const both = [
    ['n-h0', 'a'],
    ['n-h0', 'a'],
  ]
  it.each([
    ['of many generations before', {}, { epoch: 1, generation: 3 }, both],
    ['of an epoch before', {}, { epoch: 0, generation: 60 }, both],
    ['of a node that may be dead', { timely: false }, { epoch: 1, generation: 57 }, both],
    ['of the generation before', {}, { epoch: 1, generation: 56 }, [['n-h0'], ['n-h0', 'a']]],
  ])('%s', (_, of, report, expected) => {
    expect(holders(of, report)).toEqual(expected)
  })

  it('and none once another app runs in the primary: what is kept is all that there is', () => {
    expect(holders({}, { epoch: 1, generation: 56 }, { replacedSince: 900 })).toEqual(both)
  })

  it('D7.let-go: who was let go is asked as long as it is heard, and nobody where none is to be kept', () => {
    const former = makeLease(p0, { holders: ['n-h0'], kept: ['n-h0', 'a'] })
    const keptNext = (over: Partial<Copy>, memory: object = {}, slot: Partial<SlotMemory> = {}) => {
      const copies = [makeCopy(former, h0, 'Staged'), { ...coldCopy(former, 'a'), ...over }]
      const s = makeMemorySnapshot(wish, [p0, h0], [makeSlot({ ...former, ip: '10.0.0.9' }, copies, slot)])
      if (s.memory === undefined) throw new Error('a set without memory')
      return ofType({ ...s, memory: { ...s.memory, copies: 1, ...memory } }, 'writeSlot')[0]?.lease.kept
    }
    expect(keptNext({ stale: true, silent: true })).toEqual(['n-h0'])
    // Its agent only starts.
    expect(keptNext({ stale: true }, { copies: 2 })).toEqual(['n-h0', 'a'])
    expect(keptNext({ stale: true, silent: true }, {}, { fetching: ['b', 'n-h0'] })).toEqual(['n-h0', 'b'])
    const refused = { refused: { reason: 'r', message: 'm' }, refusedForLong: true }
    expect(keptNext({}, refused)).toEqual([])
  })
})

it('D7.holders: nodes of cold backups and others get a copy only where the template may run', () => {
  const p0 = makePrimary('p0', 0)
  const c0 = makePod('c0', 'coldbackup', { node: 'n-c0' })
  const names = ['n-p0', 'n-c0', 'a', 'b', 'c']
  const holders = (...forbidden: readonly string[]) => {
    const s = makeMemorySnapshot({ replicas: 1, coldBackups: 1 }, [p0, c0], [], {}, names)
    const nodes = new Map(
      [...(s.memory?.nodes ?? [])].map(([name, node]) => [
        name,
        { ...node, forbidden: forbidden.includes(name) },
      ]),
    )
    if (s.memory === undefined) throw new Error('a set without memory')
    return ofType({ ...s, memory: { ...s.memory, nodes } }, 'writeSlot')[0]?.lease.holders
  }
  expect(holders()).toEqual(['n-c0', 'a'])
  expect(holders('n-c0', 'a')).toEqual(['b', 'c'])
  expect(holders('n-c0', 'a', 'b', 'c')).toEqual([])
})

describe('MP-28: the source of a clone', () => {
  const p0 = makePrimary('p0', 0, { epoch: 2, node: 'b' })
  const cloneOf = { name: 'other-0', incarnation: '00000001', epoch: 3, generation: 7, node: 'a' }
  const lease = makeLease(p0, { cloneOf, holders: ['a'], kept: ['a'] })
  /** The Lease as it is after the pass. */
  const leaseOf = (
    copies: readonly Copy[],
    { nodes = ['a', 'b'], over = {}, refused = false }: Partial<World> = {},
  ) => {
    const slots = [makeSlot(lease, copies, over)]
    const s = makeMemorySnapshot({ replicas: 1, hotBackups: 0 }, [p0], slots, {}, nodes)
    const word = { reason: 'MemoryNotAllowed', message: '' }
    const asked = refused && s.memory ? { ...s, memory: { ...s.memory, refused: word } } : s
    return ofType(asked, 'writeSlot')[0]?.lease ?? lease
  }
  interface World {
    readonly nodes: readonly string[]
    readonly over: Partial<SlotMemory>
    readonly refused: boolean
  }
  const served = { ...cloneOf, served: true }

  it('is forgotten once its primary is on stage, and another node has the memory', () => {
    expect(leaseOf([coldCopy(lease, 'a')])).not.toHaveProperty('cloneOf')
    // All that there is may be on the node of the primary.
    expect(leaseOf([coldCopy(lease, 'b')])).toMatchObject({ cloneOf: served })
    expect(leaseOf([])).toMatchObject({ cloneOf: served })
    // The other node may be lost.
    expect(leaseOf([{ ...coldCopy(lease, 'a'), stale: true }])).toMatchObject({ cloneOf: served })
  })

  it('is remembered while no memory may be kept: that says nothing of other nodes', () => {
    expect(leaseOf([coldCopy(lease, 'a')], { refused: true })).toMatchObject({ cloneOf: served })
  })

  it('is forgotten if no other node could have it, once its own has', () => {
    const nodes = ['b']
    expect(leaseOf([], { nodes })).toMatchObject({ cloneOf: served })
    const said = { namespace: 'default', name: lease.name, incarnation: lease.incarnation }
    const source = { ...said, role: 'source' as const, generation: 1 }
    expect(leaseOf([], { nodes, over: { source } })).not.toHaveProperty('cloneOf')
  })
})

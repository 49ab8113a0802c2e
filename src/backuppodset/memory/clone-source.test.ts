import { describe, expect, it } from 'vitest'
import { cloneHolder } from '../../api/clone-of.ts'
import type { SlotReport } from '../../api/node-report.ts'
import { type NumberedSlotLease, numberedSlotLeaseBody } from '../../api/numbered-slot.ts'
import type { Lease } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import type { NodeView } from '../../slot/decide/memory-view.ts'
import { leaseIndexes } from '../../slot/observe/slot-leases.ts'
import { makeSlotReport } from '../../slot/testing/objects.ts'
import { makeHolder, makeLease } from '../../slot/testing/slots.ts'
import { cloneSourceOf } from './clone-source.ts'

/** The fingerprint of the key of a node's agent. */
const keyOf = (node: string) => node.repeat(64)

const other = makeLease(makeHolder('other-x', 0), {
  ...{ name: 'other-0', group: 'other', incarnation: '0a0a0a0a', restoreHash: 'fits' },
  ...{ epoch: 3, node: 'a', holders: ['b', 'c'], kept: ['b'] },
  signers: [
    { epoch: 3, fingerprint: keyOf('a') },
    { epoch: 2, fingerprint: keyOf('b') },
  ],
})

/** A slot of the set that waits for its copy. */
const own = makeLease(makeHolder('other-x', 0, { uid: cloneHolder('u') }), {
  ...{ name: 'clones-0', group: 'clones', node: 'a', kept: ['a'] },
  cloneOf: { name: 'other-0', incarnation: '0a0a0a0a', epoch: 3, generation: 1, node: 'a' },
})

interface World {
  readonly leases?: readonly NumberedSlotLease[]
  readonly own?: readonly NumberedSlotLease[]
  /** By node: its report on the other slot. */
  readonly said?: Readonly<Record<string, Partial<SlotReport>>>
  readonly silent?: readonly string[]
  readonly starting?: readonly string[]
  readonly nodes?: Readonly<Record<string, Partial<NodeView>>>
}

const saved = { a: { epoch: 3, generation: 7 }, b: { epoch: 3, generation: 6 } }

function sourceIn({ leases = [other], own: ours = [], said = saved, ...world }: World = {}) {
  const silentFor = (node: string) => (world.silent?.includes(node) ? 13_000 : 0)
  const views = ['a', 'b', 'c'].map(name => {
    const view: NodeView = { name, ready: true, problem: undefined, signer: keyOf(name), clones: true }
    return [name, { ...view, ...world.nodes?.[name] }] as const
  })
  const store = createStore<Lease>({ indexes: leaseIndexes })
  for (const lease of [...leases, ...ours]) {
    const body = numberedSlotLeaseBody(lease)
    store.upsert({ ...body, metadata: { ...body.metadata, uid: lease.name, resourceVersion: '1' } })
  }
  return cloneSourceOf(
    { namespace: 'default', name: 'clones', own: ours, nodes: new Map(views) },
    'other-x',
    {
      leases: store,
      reports: {
        ofSet: key =>
          key !== 'default/other'
            ? []
            : Object.entries(said).map(([node, over]) => ({
                node,
                slot: makeSlotReport({ name: 'other-0', incarnation: '0a0a0a0a', ...over }),
                ...{ seenAt: 0, writtenAt: undefined },
              })),
        silentFor,
        knows: node => world.starting?.includes(node) !== true,
      },
    },
  )
}

/** The node of each copy, with its generation; or the reason why there is none. */
function told(world: World = {}): readonly string[] {
  const found = sourceIn(world)
  if (found === undefined) return []
  return 'copies' in found
    ? found.copies.map(({ node, generation }) => `${node} ${generation}`)
    : [found.reason]
}

describe('MP-28: the memory with which new slots begin', () => {
  it('is all that is known of the slot of that pod, the best copy first', () => {
    expect(sourceIn()).toEqual({
      ...{ pod: 'other-x', podUid: 'uid-other-x', restoreHash: 'fits' },
      slot: { name: 'other-0', incarnation: '0a0a0a0a' },
      copies: [
        { name: 'other-0', incarnation: '0a0a0a0a', epoch: 3, generation: 7, node: 'a' },
        { name: 'other-0', incarnation: '0a0a0a0a', epoch: 3, generation: 6, node: 'b' },
      ],
    })
  })

  it.each<[string, World, readonly string[]]>([
    ['a node that claims a later epoch', { said: { ...saved, b: { epoch: 4, generation: 1 } } }, ['a 7']],
    ['a node that says no epoch', { said: { ...saved, b: { generation: 9 } } }, ['a 7']],
    [
      'a node that the Lease does not name',
      { said: { ...saved, x: { epoch: 3, generation: 9 } } },
      ['a 7', 'b 6'],
    ],
    ['another incarnation', { said: { ...saved, b: { incarnation: 'ffffffff', epoch: 3 } } }, ['a 7']],
    ['a node without a generation', { said: { ...saved, b: { epoch: 3, generation: 0 } } }, ['a 7']],
    ['a silent node', { silent: ['a'] }, ['b 6']],
    ['an agent that starts', { starting: ['a'] }, ['b 6']],
    ['a node that cannot keep memory', { nodes: { a: { ready: false } } }, ['b 6']],
    ['a node that is out of service', { nodes: { a: { outOfService: true } } }, ['b 6']],
    ['an agent of the version before', { nodes: { a: { clones: false } } }, ['b 6']],
  ])('does not count: %s', (_, world, copies) => {
    expect(told(world)).toEqual(copies)
  })

  it('comes from the node that has saved its epoch before any other: a holder could have changed what it signs', () => {
    expect(told({ said: { ...saved, b: { epoch: 3, generation: 900 } } })).toEqual(['a 7', 'b 900'])
    expect(told({ said: { ...saved, a: { epoch: 2, generation: 7 } } })).toEqual(['b 6', 'a 7'])
    expect(told({ said: { b: { epoch: 2, generation: 4 }, c: { epoch: 2, generation: 5 } } })).toEqual([
      'b 4',
      'c 5',
    ])
  })

  it.each<[string, World, string]>([
    ['no pod has this name', { leases: [] }, 'NoCloneSource'],
    ['the pod waits for its own copy', { leases: [{ ...own, name: 'x-0', group: 'x' }] }, 'NoCloneSource'],
    ['nothing is saved', { said: {} }, 'CloneNotSaved'],
    ['nothing is saved any more', { leases: [{ ...other, unsaved: true }] }, 'CloneNotSaved'],
    ['no agent that has it reports', { silent: ['a', 'b'] }, 'CloneNotSaved'],
    [
      'all agents are of the version before',
      { nodes: { a: { clones: false }, b: { clones: false } } },
      'CloneUnsupported',
    ],
  ])('is none if %s', (_, world, reason) => {
    expect(told(world)).toEqual([reason])
  })

  it('says which node cannot copy it, and why', () => {
    expect(sourceIn({ silent: ['a', 'b'] })).toMatchObject({
      // The slot is known, although its memory is not.
      slot: { name: 'other-0', incarnation: '0a0a0a0a' },
      message: expect.stringMatching(/a \(its agent is silent or starting\), b \(/),
    })
    const itself = { ...other, name: 'clones-3', group: 'clones' }
    expect(sourceIn({ leases: [], own: [itself] })).toMatchObject({
      message: expect.stringContaining('this set itself'),
    })
  })

  it('is that of the same slot once one has begun, whichever pod has that by then', () => {
    const moved = { ...other, holder: { name: 'other-y', uid: 'uid-y' } }
    expect(told({ leases: [moved] })).toEqual(['NoCloneSource'])
    expect(sourceIn({ leases: [moved], own: [own] })).toMatchObject({ pod: 'other-x', podUid: 'uid-y' })
    // The slot is gone, and a new one has a pod of that name.
    const renewed = { ...other, incarnation: '0b0b0b0b' }
    const said = { a: { ...saved.a, incarnation: '0b0b0b0b' } }
    expect(told({ leases: [renewed], own: [own], said })).toEqual(['a 7'])
    expect(told({ leases: [], own: [own] })).toEqual(['NoCloneSource'])
  })
})

import { describe, expect, it } from 'vitest'
import type { Fence } from '../../api/fence.ts'
import type { Condition } from '../../kube/conditions.ts'
import type { MemoryView, SlotMemory } from '../../slot/decide/memory-view.ts'
import { makeCopy, makeSlot } from '../../slot/testing/slots.ts'
import { makeFence, makeVotes, voteOf, votersOf } from '../../slot/testing/votes.ts'
import { conditionsOf } from '../conditions.ts'
import { actions, ofType, plan } from '../testing/decided.ts'
import { copies, fenced, h0, lease, nodes, p0, plain, seen } from '../testing/fenced.ts'
import { makePrimary } from '../testing/memory.ts'
import { updateNotices } from '../update-status.ts'

describe('a primary whose node is silent', () => {
  it('is replaced at once when it is fenced off: nothing waits for its node, or for its pod', () => {
    const s = seen(makeSlot(lease, copies, fenced))
    expect(ofType(s, 'promote')).toMatchObject([
      {
        pod: { name: 'h0' },
        role: { slot: 0, epoch: 2, replaces: { name: 'p0', reason: 'NodeLost', seenAt: 0 } },
        lease: { holder: { name: 'h0' }, fence: { term: 2, version: 0, voters: [], isArmed: false } },
        version: '1',
      },
    ])
    expect(ofType(s, 'writeSlot')).toEqual([])
  })

  it('gets the statement of the API server first, before any other action', () => {
    const s = seen(makeSlot(lease, copies, { votes: makeVotes(lease) }))
    const [first] = plan(s).tiers
    expect(first).toMatchObject({
      aside: true,
      actions: [{ type: 'stateSilence', node: 'n-p0', silences: 1 }],
    })
    expect(ofType(s, 'promote')).toEqual([])
  })

  it('is replaced although it is being deleted, and its agent does not say that it has stopped', () => {
    const going = { vacantSince: 99_000, holderGoesBy: 130_000 }
    expect(ofType(seen(makeSlot(lease, copies, going), [h0]), 'promote')).toEqual([])
    expect(ofType(seen(makeSlot(lease, copies, { ...going, ...fenced }), [h0]), 'promote')).toMatchObject([
      { pod: { name: 'h0' } },
    ])
  })

  it('gets a pod made for its slot where no backup is left', () => {
    const s = seen(makeSlot(lease, copies, fenced), [p0])
    expect(ofType(s, 'create')).toMatchObject([
      { kind: 'hotbackup', successorOf: { slot: 0, near: ['n-h0'] } },
      { kind: 'hotbackup' },
    ])
  })

  it('stays while most nodes are silent, and the set says when it looks again', () => {
    const s = seen(makeSlot(lease, copies, fenced), [p0, h0], { heldMs: 30_000 })
    expect(actions(s)).toEqual([])
    expect(plan(s).requeueAfterMs).toBe(30_000)
  })

  it('stays while no other pod could continue with its memory, and nothing is stated', () => {
    expect(actions(seen(makeSlot(lease, [makeCopy(lease, h0, undefined)], fenced)))).toEqual([])
  })
})

describe('a primary that no agent can stop', () => {
  const silence = { silent: new Set<string>(), statedAt: undefined, unheardMs: 20_000, isReachable: false }
  const unheard = { votes: makeVotes(lease, silence) }
  const heard = { votes: makeVotes(lease, { ...silence, unheardMs: 5_000, isReachable: true }) }
  const hung = { ...p0, ready: false, unreadySince: -60_000 }
  const revoked = { ...lease.fence, isRevoked: true }

  it('D8.reach: is not replaced because it is unready: its term is revoked, and its voters decide', () => {
    expect(ofType(seen(makeSlot(lease, copies, unheard), [hung, h0]), 'promote')).toEqual([])
    expect(ofType(seen(makeSlot(lease, copies, unheard), [hung, h0]), 'writeSlot')).toMatchObject([
      { lease: { holder: { name: 'p0' }, fence: { term: 1, version: 1, isArmed: true, isRevoked: true } } },
    ])
    const told = makeSlot({ ...lease, fence: revoked }, copies, unheard)
    expect(actions(seen(told, [hung, h0]))).toEqual([])
    expect(ofType(seen({ ...told, ...fenced }, [hung, h0]), 'promote')).toHaveLength(1)
  })

  it('is not replaced because its pod is gone, either', () => {
    const gone = { vacantSince: 99_000, ...unheard }
    expect(ofType(seen(makeSlot(lease, copies, gone), [h0]), 'promote')).toEqual([])
    expect(ofType(seen(makeSlot(lease, copies, gone), [h0]), 'writeSlot')).toMatchObject([
      { lease: { fence: { isRevoked: true } } },
    ])
    expect(actions(seen(makeSlot({ ...lease, fence: revoked }, copies, gone), [h0]))).toEqual([])
    expect(ofType(seen(makeSlot(lease, copies, { ...gone, ...heard }), [h0]), 'promote')).toHaveLength(1)
    expect(ofType(seen(makeSlot(lease, copies, { ...gone, ...fenced }), [h0]), 'promote')).toHaveLength(1)
  })

  it('D8.start: waits for the next word of its agent where the operator has just started, and is not revoked for that', () => {
    const unknown = makeSlot(lease, copies, {
      votes: makeVotes(lease, { ...silence, unheardMs: 1_000 }),
    })
    expect(actions(seen(unknown, [hung, h0]))).toEqual([])
  })

  it('is left to its agent where that writes, and serves on without a fence that it has acknowledged', () => {
    const writes = (slot: SlotMemory) => ofType(seen(slot, [hung, h0]), 'writeSlot')
    expect(writes(makeSlot(lease, copies, heard))).toMatchObject([
      { lease: { ending: p0.uid, fence: { isRevoked: false } } },
    ])
    const unarmed = { ...lease, fence: { ...lease.fence, isArmed: false } }
    const silent = { votes: makeVotes(lease, { ...silence, silent: new Set(nodes), statedAt: 0 }) }
    expect(writes(makeSlot(unarmed, copies, silent))).toMatchObject([
      { lease: { ending: p0.uid, fence: { isRevoked: false } } },
    ])
  })

  it('D8.stuck: gets a new term when so many of its voters were restarted that it cannot be answered', () => {
    const both = { ...lease, holders: ['n-h0', 'n-h1'] }
    const three = { ...both, fence: makeFence(both) }
    const term = (restarted: readonly string[]) => {
      const over = { silent: new Set(restarted), statedAt: undefined, unheardMs: 10 }
      const slot = makeSlot(three, copies, { votes: makeVotes(three, over) })
      return ofType(seen(slot), 'writeSlot').map(action => action.lease.fence?.term)
    }
    expect(term(votersOf(three).nodes)).toEqual([2])
    expect(term(votersOf(three).nodes.slice(0, 1))).toEqual([1])
  })

  it('D8.starting: is stopped before another pod is called, also by an agent that is not ready', () => {
    const view = (name: string, ready: boolean) =>
      [name, { name, ready, problem: undefined, vote: voteOf(name) }] as const
    const starting = { nodes: new Map([view('n-p0', false), view('n-h0', true)]) }
    const called = (endingSince: number | undefined) =>
      ofType(seen(makeSlot(lease, copies, { ...heard, endingSince }), [hung, h0], starting), 'promote').length
    expect([called(undefined), called(99_000), called(83_000), called(82_000)]).toEqual([0, 0, 0, 1])
  })

  it('is not replaced either where only one of its containers was started again: the others serve on', () => {
    const partly = { replacedSince: 0, remains: true }
    const away = seen(makeSlot(lease, copies, { ...unheard, ...partly }))
    expect(actions(away)).toMatchObject([
      { lease: { holder: { name: 'p0' }, ending: undefined, fence: { isRevoked: true } } },
    ])
    const back = seen(makeSlot(lease, copies, { ...heard, ...partly }))
    expect(actions(back)).toMatchObject([{ lease: { holder: { name: 'p0' }, ending: p0.uid } }])
    const wholly = seen(makeSlot(lease, copies, { ...unheard, replacedSince: 0 }))
    expect(ofType(wholly, 'promote')).toHaveLength(1)
  })

  it('D8.untold: is not replaced while its voters hear it, although no report says that it has a fence', () => {
    const unarmed = makeSlot({ ...lease, fence: { ...lease.fence, isArmed: false } }, copies, unheard)
    expect(ofType(seen(unarmed, [hung, h0]), 'promote')).toEqual([])
    expect(ofType(seen(unarmed, [hung, h0]), 'writeSlot')).toMatchObject([
      { lease: { holder: { name: 'p0' }, ending: undefined, fence: { isRevoked: true } } },
    ])
    // The other holder may have been lost together with the node of the primary.
    const both = { ...lease, holders: ['n-h0', 'n-h1'] }
    const three = { ...both, fence: makeFence(both, { isArmed: false }) }
    const one = { ...silence, silent: new Set(votersOf(three).nodes.slice(0, 1)), statedAt: 0 }
    const half = makeSlot(three, copies, { votes: makeVotes(three, one) })
    expect(ofType(seen(half, [hung, h0]), 'writeSlot')).toMatchObject([{ lease: { ending: p0.uid } }])
  })

  it('gets a new term when its agent writes again', () => {
    const back = makeSlot({ ...lease, fence: revoked }, copies, heard)
    expect(ofType(seen(back), 'writeSlot')).toMatchObject([
      { lease: { fence: { term: 2, version: 1, isArmed: false, isRevoked: false } } },
    ])
  })
})

describe('the fence of a slot', () => {
  const written = (
    fence: Fence | undefined,
    over: Partial<SlotMemory> = {},
    memory: Partial<MemoryView> = {},
  ) =>
    ofType(
      seen(makeSlot({ ...plain, ...(fence && { fence }) }, copies, over), [p0, h0], memory),
      'writeSlot',
    ).map(action => action.lease.fence)
  const { namespace, name, incarnation } = lease
  const source = { namespace, name, incarnation, role: 'source', generation: 3 } as const

  it('begins where holders vote, unless the set wants none', () => {
    expect(written(undefined)).toEqual([makeFence(plain, { isArmed: false })])
    expect(written(undefined, {}, { nodeTimeoutMs: undefined })).toEqual([])
    const none = { nodeTimeoutMs: undefined }
    const calm = (isReachable: boolean) => ({
      votes: makeVotes(lease, { silent: new Set(), statedAt: undefined, isReachable }),
    })
    expect(written(lease.fence, calm(true), none)).toMatchObject([{ term: 2, version: 0 }])
    // Nothing would stop a primary that is cut off.
    expect(written(lease.fence, calm(false), none)).toEqual([])
    expect(written({ ...lease.fence, timeoutMs: 9_000 }, calm(false))).toEqual([])
    expect(written(lease.fence, calm(false), { nodes: new Map() })).toEqual([])
  })

  it('is armed by the word of the sentinel', () => {
    const waiting = makeFence(plain, { isArmed: false })
    expect(written(waiting)).toEqual([])
    const acknowledged = { term: 1, version: 1 }
    expect(written(waiting, { source: { ...source, acknowledged } })).toEqual([lease.fence])
  })

  it('begins a new term for a primary that is heard again', () => {
    expect(written(lease.fence, { votes: makeVotes(lease, { isHeard: true, unheardMs: 10 }) })).toEqual([
      makeFence(plain, { term: 2, isArmed: false }),
    ])
  })

  it('begins a new term with a new incarnation, and with a primary that the Lease does not name yet', () => {
    const begun = makePrimary('p0', 0, {}, { restarts: 1 })
    const anew = seen(makeSlot({ ...lease, kept: [] }, [], { replacedSince: 500, unasked: [] }), [begun])
    expect(ofType(anew, 'writeSlot')).toMatchObject([
      { stateLost: true, lease: { fence: { term: 2, version: 0 } } },
    ])
    const other = makePrimary('p1', 0, { epoch: 2 })
    expect(ofType(seen(makeSlot(lease, copies), [other, h0]), 'writeSlot')).toMatchObject([
      { lease: { holder: { name: 'p1' }, fence: { term: 2, version: 0 } } },
    ])
  })
})

it('a set whose takeovers are held says so, in its conditions and in one event', () => {
  const told = (heldMs: number, previous: readonly Condition[] = []) => {
    const { set, memory, monotonicNow, pods, templateHash, now } = seen(
      makeSlot(lease, copies, fenced),
      [p0, h0],
      { heldMs },
    )
    const facts = { pods, templateHash, now, memory, monotonicNow, failure: undefined }
    return conditionsOf(set, previous, {}, { ...facts, lastTransition: undefined, lastFailover: undefined })
  }
  const held = told(20_000)
  expect(held.find(({ type }) => type === 'Degraded')).toMatchObject({
    ...{ status: 'True', reason: 'OperatorBlind' },
    message: expect.stringContaining('slot 0: the node of the primary is silent, but so are most nodes'),
  })
  expect(updateNotices({}, { conditions: held })).toMatchObject([
    { type: 'Warning', reason: 'OperatorBlind' },
  ])
  expect(updateNotices({ conditions: held }, { conditions: told(10_000, held) })).toEqual([])
  expect(told(0).find(({ type }) => type === 'Degraded')).toMatchObject({ status: 'False' })
})

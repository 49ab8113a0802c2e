import { describe, expect, it } from 'vitest'
import { makeCandidate, makeCopy, makeHolder, makeLease, makeSlot, stage } from '../../testing/slots.ts'
import { makeFence, makeVotes, voteOf, votersOf } from '../../testing/votes.ts'
import type { MemoryView, SlotMemory } from '../memory-view.ts'
import { dueStatements, heldSlots, isFencedOff, untilVerdict, verdictOf } from './verdict.ts'

const p0 = makeHolder('p0', 0)
const h0 = makeCandidate('h0', 'hotbackup', { node: 'n-h0', stage: stage({ understudy: true }) })
const plain = makeLease(p0, { holders: ['n-h0'] })
const lease = { ...plain, fence: makeFence(plain) }
const { api, nodes } = votersOf(lease)
const copies = [makeCopy(lease, h0, 'Frozen')]
const silent = makeSlot(lease, copies, { votes: makeVotes(lease) })
const monotonicNow = 100_000

const seen = (slot: SlotMemory, over: Partial<MemoryView> = {}) => {
  const node = (name: string) =>
    [name, { name, ready: true, problem: undefined, vote: voteOf(name) }] as const
  const memory: MemoryView = {
    slots: new Map([[slot.lease.slot, slot]]),
    copies: 2,
    nodes: new Map([node('n-p0'), node('n-h0')]),
    ...over,
  }
  return { pods: [], lost: new Map(), memory, now: 0, monotonicNow }
}
const verdict = (over: Partial<SlotMemory>, memory: Partial<MemoryView> = {}) => {
  const slot = { ...silent, ...over }
  return verdictOf(seen(slot, memory), slot)
}
const votes = (over: Parameters<typeof makeVotes>[1]) => ({ votes: makeVotes(lease, over) })
const both = { silent: new Set([api, ...nodes]) }

describe('the verdict on a primary', () => {
  it.each([
    ['has no fence', { lease: plain }],
    ['has no voters', { lease: { ...lease, fence: makeFence(plain, { version: 0, voters: [] }) } }],
    ['is not stated to be silent', votes({ silent: new Set(), statedAt: undefined })],
  ])('is that it serves while it %s', (_, over) => {
    expect(verdict({ votes: undefined, ...over }).type).toBe('Serves')
  })

  it('is to promote, without any votes, once its node is out of service', () => {
    const nodes = new Map([['n-p0', { name: 'n-p0', ready: false, problem: undefined, outOfService: true }]])
    const held = { nodes, heldMs: 30_000 }
    expect(verdict({ lease: plain, votes: undefined }, held).type).toBe('Promote')
    expect(verdict({ lease: plain, votes: undefined, copies: [] }, held).type).toBe('NothingUsable')
  })

  it('is to make the statement of the API server where only that is missing', () => {
    expect(verdict({})).toEqual({
      type: 'FenceThenPromote',
      statement: {
        ...{ type: 'stateSilence', node: 'n-p0', silences: 1 },
        report: { uid: 'uid-n-p0', resourceVersion: '7' },
      },
      lookAgainMs: 3_000,
    })
  })

  it('is to promote once enough voters have stated it, with all of two, or two of three', () => {
    expect(verdict(votes(both)).type).toBe('Promote')
    const three = { ...plain, holders: ['n-h0', 'n-x'] }
    const slot = { ...silent, lease: { ...three, fence: makeFence(three) } }
    expect(verdict({ ...slot, votes: makeVotes(three) }).type).toBe('Promote')
    expect(verdict({ ...slot, votes: makeVotes(three, { silent: new Set(nodes) }) }).type).toBe(
      'FenceThenPromote',
    )
  })

  it.each([
    [
      'the sentinel of the primary has not acknowledged any voters',
      { lease: { ...lease, fence: makeFence(lease, { isArmed: false }) }, ...votes(both) },
      3_000,
    ],
    ['the agent of its node wrote a moment ago', votes({ unheardMs: 2_000 }), 1_000],
    [
      'more statements may be on their way',
      votes({ ...both, suspectedAt: monotonicNow - 100, statedAt: monotonicNow }),
      400,
    ],
    [
      'the report of its node has made another voter of the API server',
      { lease: { ...lease, fence: makeFence({ ...lease, node: 'n-other' }) } },
      3_000,
    ],
  ])('is to wait while %s', (_, over, lookAgainMs) => {
    expect(verdict(over)).toEqual({ type: 'WaitForFence', lookAgainMs })
  })

  it('D8.useless: writes nothing where no other pod could have the memory', () => {
    expect(verdict({ copies: [] }).type).toBe('NothingUsable')
    expect(verdict({ copies: [makeCopy(lease, h0, undefined)] }).type).toBe('NothingUsable')
    expect(verdict({ copies: copies.map(copy => ({ ...copy, stale: true })) }).type).toBe('NothingUsable')
    const source = makeCopy(lease, { ...h0, node: 'n-p0' }, 'Staged')
    expect(verdict({ copies: [source], ...votes(both) }).type).toBe('NothingUsable')
  })

  it('D8.useless: is looked at again once an agent that writes may have written late enough', () => {
    const verdictFor = (over: Parameters<typeof makeVotes>[1]) =>
      verdict({ copies: [], ...votes({ ...both, ...over }) })
    const waits = (ms: number) => ({ type: 'NothingUsable', lookAgainMs: ms })
    // A sixth of the time-out after the moment from which a write counts, and then as often as the agent writes.
    expect(verdictFor({ statedAt: monotonicNow - 1_000, unheardMs: 200 })).toEqual(waits(2_500))
    expect(verdictFor({ statedAt: monotonicNow - 3_200, unheardMs: 400 })).toEqual(waits(500))
    expect(verdictFor({ statedAt: monotonicNow - 9_000, unheardMs: 9_000 })).toEqual(waits(3_000))
  })

  it('D8.stuck: is looked at again where a stuck primary waits for its agent, or a voter will count as silent', () => {
    const none = { silent: new Set<string>(), statedAt: undefined }
    const revoked = { lease: { ...lease, fence: makeFence(lease, { isRevoked: true }) } }
    const away = { ...none, unheardMs: 20_000, isReachable: false }
    expect(verdict({ ...revoked, ...votes(away) })).toEqual({ type: 'WaitForFence', lookAgainMs: 3_000 })
    const over = { ...none, overAt: monotonicNow + 700 }
    expect(verdict(votes(over))).toEqual({ type: 'Serves', lookAgainMs: 700 })
  })

  it('D8.recovered: is to recover in place what is heard again, and not too often', () => {
    expect(verdict(votes({ isHeard: true, unheardMs: 10 })).type).toBe('RecoverInPlace')
    expect(verdict(votes({ isHeard: true, unheardMs: 10, termSeenAt: monotonicNow - 4_000 }))).toEqual({
      ...{ type: 'WaitForFence', lookAgainMs: 2_990 },
    })
    expect(verdict(votes({ isHeard: true, unheardMs: 10, termSeenAt: monotonicNow - 8_000 }))).toEqual({
      ...{ type: 'WaitForFence', lookAgainMs: 2_000 },
    })
    expect(verdict(votes({ isHeard: true, unheardMs: 3_000 })).type).toBe('FenceThenPromote')
    // It will never serve in this term again.
    expect(verdict(votes({ ...both, isHeard: true })).type).toBe('Promote')
  })

  it('D8.blind: promotes and states nothing while most nodes are silent, and recovers what is heard', () => {
    const blind = { type: 'OperatorBlind', lookAgainMs: 30_000 }
    expect(verdict({}, { heldMs: 30_000 })).toEqual(blind)
    expect(verdict(votes(both), { heldMs: 30_000 })).toEqual(blind)
    expect(verdict(votes({ isHeard: true, unheardMs: 10 }), { heldMs: 30_000 }).type).toBe('RecoverInPlace')
    expect(heldSlots(seen(silent, { heldMs: 1 }))).toEqual([0])
    expect(heldSlots(seen(silent))).toEqual([])
  })
})

describe('the statements of the API server', () => {
  it('are one for each node, whatever number of primaries it has', () => {
    const s = seen(silent)
    const other = { ...silent, lease: { ...lease, slot: 1 } }
    const slots = new Map([...s.memory.slots, [1, other]])
    expect(dueStatements({ ...s, memory: { ...s.memory, slots } })).toHaveLength(1)
  })

  it('are not made about a slot for which the set has no place', () => {
    const retained = { ...silent, lease: { ...lease, retainedSince: '2030-01-01T00:00:00Z' } }
    expect(dueStatements(seen(retained))).toEqual([])
  })
})

it('a verdict that changes with time says when', () => {
  expect(untilVerdict(seen({ ...silent, ...votes({ unheardMs: 2_000 }) }))).toBe(1_000)
  expect(untilVerdict(seen({ ...silent, copies: [] }))).toBe(3_000)
  expect(untilVerdict(seen({ ...silent, ...votes(both) }))).toBeUndefined()
  const retained = { ...lease, retainedSince: '2030-01-01T00:00:00Z' }
  expect(untilVerdict(seen({ ...silent, lease: retained }))).toBeUndefined()
})

it('only what is fenced off is replaced', () => {
  const of = (slot: SlotMemory) => isFencedOff(seen(slot), slot)
  expect([of(silent), of({ ...silent, ...votes(both) })]).toEqual([false, true])
  expect(isFencedOff(seen(silent), undefined)).toBe(false)
})

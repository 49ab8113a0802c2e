// Long because it is a list of situations for one pure function.
import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../kube/random.ts'
import { unaskedOf } from '../../slot/decide/knowledge.ts'
import type { SlotMemory, Votes } from '../../slot/decide/memory-view.ts'
import { isNamed } from '../../slot/decide/origin.ts'
import { makeCopy, makeLease, makeSlot } from '../../slot/testing/slots.ts'
import { makeFence, makeVotes, votersOf } from '../../slot/testing/votes.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { actions, ofType, plan } from '../testing/decided.ts'
import {
  coldCopy,
  makeMemorySnapshot,
  makePrimary,
  makeUnderstudy,
  parsedMemory,
  staged,
} from '../testing/memory.ts'
import { played } from '../testing/played.ts'
import { actionsOf, makePod, makeSnapshot } from '../testing/snapshots.ts'
import { decide } from './decide.ts'
import { suspensionOf } from './suspension.ts'

const suspended = { suspended: true, replicas: 1, hotBackups: 0 }
const p0 = makePrimary('p0', 0)
const lease = makeLease(p0, { holders: ['b', 'c'] })
const nodes = ['n-p0', 'b', 'c']
const running = makeSlot(lease, [coldCopy(lease, 'b')])

const at = (slot: SlotMemory, pod: PodView | undefined = p0, wish = {}, over: Partial<Snapshot> = {}) =>
  makeMemorySnapshot({ ...suspended, ...wish }, pod ? [pod] : [], [slot], over, nodes)

/** The primary has stopped for its suspension, and this is what the nodes report. */
const stopped = (over: Partial<SlotMemory> = {}): SlotMemory => {
  const asked = { ...lease, handover: p0.uid, handovers: 1 }
  const last = { generation: 4, takenAt: '2030-01-01T00:00:00Z' }
  return makeSlot(asked, [makeCopy(asked, { ...p0, node: 'b' }, undefined, last), coldCopy(asked, 'c')], {
    source: {
      ...{ namespace: 'default', name: lease.name, incarnation: lease.incarnation, role: 'source' },
      ...{ ...last, final: true, standsForSeconds: 60, standsForHandover: 1 },
    },
    ...{ sourceSeenAt: 900, handoverRequestedAt: 800, sourceKeeps: true },
    ...over,
  })
}

const reasonOf = (s: Snapshot): string | undefined => s.memory && suspensionOf(s, s.memory).running[0]?.reason

describe('D16.suspend: a set that is suspended', () => {
  it('has its primary stopped and saved first: the primary is handed over to itself', () => {
    expect(actions(at(running))).toMatchObject([
      { type: 'writeSlot', requestsHandover: true, lease: { handover: p0.uid, handovers: 1 } },
    ])
  })

  it('marks the Lease only while the primary is stopped, and before it deletes the pod', () => {
    const { tiers } = plan(at(stopped()))
    expect(tiers.map(({ tier }) => tier)).toEqual(['assignments', 'primaries'])
    expect(tiers[0]?.actions).toMatchObject([
      {
        ...{ type: 'writeSlot', version: '1', retention: { type: 'suspends' } },
        // Node c has an older generation, so the Lease does not name it.
        lease: {
          ...{ suspended: true, ending: p0.uid, handover: undefined },
          ...{ holders: ['b'], kept: ['b', 'n-p0'] },
        },
        standing: { until: 800 + 60_000 - 2_000 },
      },
    ])
    expect(tiers[1]?.actions).toMatchObject([{ type: 'delete', pod: { name: 'p0' }, reason: 'Suspended' }])
  })

  it('does not resume with older memory while the nodes with the last generation are away', () => {
    const [written] = ofType(at(stopped()), 'writeSlot')
    if (written === undefined) throw new Error('no mark')
    const { retainedSince: _, ...marked } = written.lease
    const open = { ...marked, ending: undefined }
    const backups = ['b', 'c'].map(node => makeUnderstudy(`h-${node}`, { node }))
    const resumesWith = (...awake: string[]) => {
      const shown = backups.filter(({ node = '' }) => awake.includes(node) && isNamed(open, node))
      const copies = shown.map(pod => makeCopy(open, pod, 'Staged'))
      const answers = copies.map(({ node, report }) => ({ node, report, status: undefined, fresh: true }))
      const unasked = unaskedOf(open, answers, { isVacant: true, isDeath: false, isLong: false })
      const slot = makeSlot(open, copies, { vacantSince: 900, unasked })
      const s = makeMemorySnapshot({ replicas: 1, hotBackups: 2 }, backups, [slot], {}, nodes)
      expect(ofType(s, 'create').filter(({ kind }) => kind === 'primary')).toEqual([])
      return ofType(s, 'promote').map(({ pod }) => pod.name)
    }
    expect(resumesWith('c')).toEqual([])
    expect(resumesWith('b', 'c')).toEqual(['h-b'])
  })

  it.each([
    ['no other node has the last generation', { copies: [coldCopy(lease, 'b')] }],
    ['another process has asked for the stop', { handoverRequestedAt: undefined }],
    ['the stop is about to end', { sourceSeenAt: -60_000 }],
    ['the report is of an earlier stop', { source: { ...stopped().source, standsForHandover: 0 } }],
    [
      'the agent of the other node is silent',
      { copies: stopped().copies.map(copy => ({ ...copy, stale: true })) },
    ],
  ] as readonly (readonly [string, Partial<SlotMemory>])[])('ends nothing while %s', (_, over) => {
    const all = actions(at(stopped(over)))
    expect(all.filter(({ type }) => type === 'delete')).toEqual([])
    expect(all.filter(action => action.type === 'writeSlot' && action.retention !== undefined)).toEqual([])
  })

  const source = {
    namespace: 'default',
    name: 'bps-0',
    incarnation: '00000000',
    role: 'source',
    generation: 0,
  } as const
  const away = { stale: true, timely: false }
  const copyWith = (over: Partial<SlotMemory['copies'][number]['report']>) => {
    const copy = coldCopy(lease, 'b')
    return { ...copy, report: { ...copy.report, ...over } }
  }
  const obstacles: readonly (readonly [string, Snapshot])[] = [
    [
      'UnsupportedState',
      at(makeSlot(lease, [], { source: { ...source, reason: 'UnsupportedState', message: 'io_uring' } })),
    ],
    ['SavePaused', at(makeSlot(lease, [], { source: { ...source, handoverPaused: true } }))],
    ['NoOtherNode', at(makeSlot({ ...lease, holders: [] }, []))],
    ['NoOtherNode', at(makeSlot({ ...lease, unsaved: true }, []))],
    ['NoOtherNode', at(makeSlot(lease, []))],
    ['NoOtherNode', at(makeSlot(lease, [{ ...coldCopy(lease, 'b'), timely: false }]))],
    ['NoOtherNode', at(makeSlot(lease, [copyWith({ reason: 'StoreFull' })]))],
    ['NoOtherNode', at(makeSlot(lease, running.copies, { source: { ...source, generation: 6 } }))],
    // It has been stopped: it does not wait for a node that went away meanwhile.
    ['NoOtherNode', at(stopped({ copies: stopped().copies.map(copy => ({ ...copy, ...away })) }))],
    ['NotAnswering', at(running, { ...p0, ready: false, unreadySince: 999_999 })],
    ['TakingOver', at(running, makePrimary('p0', 0, {}, { promoting: true }))],
    ['NotSaved', makeMemorySnapshot(suspended, [p0], [], {}, nodes)],
    ['NodeNotReady', makeMemorySnapshot(suspended, [p0], [running], {}, ['b', 'c'])],
  ]
  it.each(obstacles)('keeps a primary that cannot be saved, and says why: %s', (reason, s) => {
    expect(reasonOf(s)).toBe(reason)
    const all = actions(s)
    expect(all.filter(({ type }) => type === 'delete' || type === 'create')).toEqual([])
    expect(all.filter(action => action.type === 'writeSlot' && action.lease.handover !== undefined)).toEqual(
      [],
    )
  })

  it('says which nodes cannot take the last generation, and waits for one that can while the primary is stopped', () => {
    const full = [copyWith({ reason: 'StoreFull' }), { ...coldCopy(lease, 'c'), timely: false }]
    const s = at(makeSlot(lease, full))
    expect(s.memory && suspensionOf(s, s.memory).running[0]?.message).toBe(
      'no other node can take its last changes now: node b reports StoreFull, node c has an agent that is silent',
    )
    const late = stopped({
      copies: [coldCopy(lease, 'b')],
      source: { ...stopped().source, ...source, generation: 9 },
    })
    expect(reasonOf(at(late))).toBe('Saving')
  })

  it('names the way out for a primary that is not Ready, and keeps the last saved state of a deleted pod', () => {
    const s = at(running, { ...p0, ready: false, unreadySince: 999_999 })
    expect(s.memory && suspensionOf(s, s.memory).running[0]?.message).toContain('kubectl delete pod p0')
    expect(actions(makeMemorySnapshot(suspended, [], [running], {}, nodes))).toMatchObject([
      { type: 'writeSlot', retention: { type: 'suspends' }, lease: { suspended: true } },
    ])
  })

  it('has the voters shut off a deleted primary whose agent is dead, and keeps its memory then', () => {
    const fenced = { ...lease, fence: makeFence(lease) }
    const silence = { silent: new Set<string>(), statedAt: undefined, unheardMs: 20_000, isReachable: false }
    const gone = (votes: Votes) => {
      const slot = makeSlot(fenced, running.copies, { vacantSince: 0, votes })
      return actions(makeMemorySnapshot(suspended, [], [slot], { monotonicNow: 100_000 }, nodes))
    }
    const [only, ...others] = gone(makeVotes(fenced, silence))
    expect(only).toMatchObject({ type: 'writeSlot', lease: { fence: { isRevoked: true } } })
    expect(only).not.toHaveProperty('lease.retainedSince')
    expect(others).toEqual([])
    const { api, nodes: voters } = votersOf(fenced)
    expect(gone(makeVotes(fenced, { silent: new Set([api, ...voters]) }))).toMatchObject([
      { type: 'writeSlot', retention: { type: 'suspends' } },
    ])
  })

  it('keeps its primary while memory is not allowed, and while a Migration moves it', () => {
    const s = at(running)
    const refused = { reason: 'MemoryNotAllowed', message: 'no label' }
    expect(s.memory && suspensionOf(s, { ...s.memory, refused }).running).toMatchObject([refused])
    const moves = [
      {
        uid: 'm',
        name: 'm',
        source: p0.uid,
        nodes: new Set(['b']),
        nodeSelector: {},
        maxDowntimeMs: undefined,
      },
    ]
    expect(reasonOf(at(running, p0, {}, { moves }))).toBe('Moving')
    // A stop that has begun comes first.
    expect(reasonOf(at(stopped({ handoverRequestedAt: undefined }), p0, {}, { moves }))).toBe('Saving')
  })

  it('ends a grant first', () => {
    const heir = { uid: 'h', node: 'b' }
    const grants = { words: new Map(), nextNumber: 2, outstanding: { heir, isUsed: false } }
    const granted = { ...lease, grant: { number: 1, heir, isRevoked: false } }
    const s = at(makeSlot(granted, [coldCopy(lease, 'b')], { grants }))
    expect(reasonOf(s)).toBe('GrantOutstanding')
    expect(ofType(s, 'writeSlot')).toMatchObject([
      { lease: { grant: { isRevoked: true }, handover: undefined } },
    ])
  })

  it('lets a dead primary go with the memory that is kept, and waits for one that its agent is about to stop', () => {
    const dead = { ...makePrimary('p0', 0, { ready: false }, { died: true }) }
    expect(ofType(at(running, dead), 'delete')).toMatchObject([{ reason: 'Suspended' }])
    const [mark] = ofType(at(running, dead), 'writeSlot')
    expect(mark).toMatchObject({ lease: { suspended: true, ending: undefined } })
    expect(mark).not.toHaveProperty('standing')
    const going = makeSlot(lease, [coldCopy(lease, 'b')], { holderGoesBy: 5_000, vacantSince: 900 })
    const without = (slot: SlotMemory) => makeMemorySnapshot(suspended, [], [slot], {}, nodes)
    expect(actions(without(going))).toEqual([])
    expect(actions(without({ ...going, holderGoesBy: undefined }))).toMatchObject([
      { type: 'writeSlot', lease: { suspended: true } },
    ])
  })

  it('lets a pod go that has never served and of which no memory was ever saved, and keeps nothing of it', () => {
    const pending = makePrimary('p0', 0, { ready: false, served: false, node: undefined })
    const withoutLease = makeMemorySnapshot(suspended, [pending], [], {}, nodes)
    expect(actions(withoutLease)).toMatchObject([{ type: 'delete', reason: 'Suspended' }])
    const crashing = makePrimary('p0', 0, { ready: false, served: false })
    const never = makeSlot({ ...lease, kept: [] }, [])
    expect(actions(at(never, crashing))).toMatchObject([{ type: 'delete', reason: 'Suspended' }])
    expect(actions(makeMemorySnapshot(suspended, [], [never], {}, nodes))).toMatchObject([
      { type: 'deleteSlot', slot: 0, told: { type: 'Normal' } },
    ])
    // It was called and comes with the memory of its slot.
    const coming = makePrimary('p0', 0, { ready: false, served: false }, { promoting: true })
    expect(ofType(at(running, coming), 'delete')).toEqual([])
  })

  it('stops one primary at a time on each node', () => {
    const [x, y, z] = [
      makePrimary('x', 0, { node: 'n1' }),
      makePrimary('y', 1, { node: 'n1' }),
      makePrimary('z', 2, { node: 'n2' }),
    ]
    const slots = [x, y, z].map(pod => {
      const its = makeLease(pod, { holders: ['b'] })
      return makeSlot(its, [coldCopy(its, 'b')])
    })
    const s = makeMemorySnapshot({ ...suspended, replicas: 3 }, [x, y, z], slots, {}, ['n1', 'n2', 'b'])
    const asked = ofType(s, 'writeSlot').filter(({ requestsHandover }) => requestsHandover)
    expect(asked.map(({ lease: { slot } }) => slot)).toEqual([0, 2])
  })

  it('keeps its backups as long as a primary runs, and has none afterwards', () => {
    const hot = makeUnderstudy('h0', { node: 'b' })
    const wish = { ...suspended, hotBackups: 1 }
    const first = makeMemorySnapshot(wish, [p0, hot], [running], {}, nodes)
    expect(ofType(first, 'delete')).toEqual([])
    const kept = makeSlot(
      { ...lease, suspended: true, retainedSince: '2030-01-01T00:00:00Z' },
      running.copies,
    )
    const after = makeMemorySnapshot(wish, [hot], [kept], {}, nodes)
    expect(actions(after)).toMatchObject([{ type: 'delete', pod: { name: 'h0' } }])
  })

  it('without memory just ends its pods; with memory that is not known yet it ends none', () => {
    const pods = [makePod('p', 'primary', { slot: 0, epoch: 1 }), makePod('h', 'hotbackup')]
    const s = makeSnapshot({ ...suspended, hotBackups: 1, coldBackups: 0 }, pods)
    expect(ofType(s, 'delete').map(({ pod }) => pod.name)).toContain('p')
    const unknown = makeSnapshot({ ...suspended, coldBackups: 0, hotBackups: 1, memory: parsedMemory }, pods)
    expect(ofType(unknown, 'delete')).toEqual([])
  })
})

describe('D16.resume: memory of a suspended set', () => {
  const since = '1970-01-01T00:00:00.000Z'
  const kept = makeSlot({ ...lease, suspended: true, retainedSince: since }, running.copies, {
    retainedSeenAt: 0,
  })
  const resumed = { ...suspended, suspended: false }

  it('is kept without a time limit, also where no node has it any more', () => {
    for (const slot of [kept, { ...kept, copies: [] }]) {
      const s = makeMemorySnapshot(suspended, [], [slot], { now: 1e12, monotonicNow: 1e10 }, nodes)
      expect(plan(s)).toEqual({ tiers: [], requeueAfterMs: undefined })
    }
  })

  it('comes back with the slot', () => {
    const s = makeMemorySnapshot(resumed, [], [kept], {}, nodes)
    const [back] = ofType(s, 'writeSlot')
    expect(back).toMatchObject({ retention: { type: 'resumes' }, lease: { incarnation: lease.incarnation } })
    expect(back?.lease).not.toHaveProperty('retainedSince')
    expect(back?.lease.suspended).toBe(true)
  })

  it('is taken by a successor, which is no failover; if the set is suspended again before, it stays', () => {
    const { retainedSince: _, ...open } = kept.lease
    const slot = makeSlot(open, running.copies, { vacantSince: 900 })
    const made = makeUnderstudy('m', { node: 'b' }, { successorOf: 0 })
    const copies = [makeCopy(open, made, 'Staged')]
    const s = makeMemorySnapshot(resumed, [made], [{ ...slot, copies }], {}, nodes)
    const [promotion] = ofType(s, 'promote')
    expect(promotion?.role.replaces?.reason).toBe('Replaced')
    expect(promotion?.lease).not.toHaveProperty('suspended')
    const again = makeMemorySnapshot(suspended, [], [slot], {}, nodes)
    expect(ofType(again, 'writeSlot')).toMatchObject([
      { retention: { type: 'suspends' }, lease: { retainedSince: expect.anything(), suspended: true } },
    ])
  })

  it('comes back before memory that a smaller set keeps, whose time runs on', () => {
    const other = makeLease(makePrimary('p1', 1), { holders: ['b'], retainedSince: since })
    const slots = [makeSlot(other, [coldCopy(other, 'b')]), kept]
    const back = ofType(makeMemorySnapshot(resumed, [], slots, {}, nodes), 'writeSlot')
    expect(back.map(({ lease: { slot } }) => slot)).toEqual([0])
    const over = makeMemorySnapshot(suspended, [], slots, { now: 1e12, monotonicNow: 1e10 }, nodes)
    expect(ofType(over, 'deleteSlot')).toEqual([])
    const seen = makeSlot(other, [coldCopy(other, 'b')], { retainedSeenAt: 0 })
    const later = makeMemorySnapshot(suspended, [], [seen, kept], { now: 1e12, monotonicNow: 1e10 }, nodes)
    expect(ofType(later, 'deleteSlot')).toMatchObject([{ slot: 1 }])
  })

  it('is kept for checkpoint.retain from then on, if the set has no place for it any more', () => {
    const s = makeMemorySnapshot({ ...resumed, replicas: 0 }, [], [kept], {}, nodes)
    const [mark] = ofType(s, 'writeSlot')
    expect(mark).toMatchObject({
      retention: { type: 'begins' },
      lease: { retainedSince: '1970-01-01T00:16:40.000Z' },
    })
    expect(mark?.lease).not.toHaveProperty('suspended')
  })

  it('begins anew in its own slot where it is gone, and an event says so', () => {
    const gone = makeSlot({ ...kept.lease, kept: [], holders: [] }, [], { vacantSince: undefined })
    const s = makeMemorySnapshot(resumed, [], [gone], {}, nodes)
    expect(ofType(s, 'writeSlot')[0]?.retention?.note).toMatch(/no node has its memory/)
    const { retainedSince: _, suspended: __, ...open } = gone.lease
    const next = makeMemorySnapshot(resumed, [], [makeSlot(open, [], { vacantSince: 900 })], {}, nodes)
    expect(ofType(next, 'create')).toMatchObject([
      { kind: 'primary', role: { slot: 0, startsEmpty: 'Gone' } },
    ])
  })

  it('keeps a primary that was marked and not deleted, if the set resumes in between', () => {
    const marked = makeSlot({ ...kept.lease, ending: p0.uid }, running.copies)
    const s = makeMemorySnapshot(resumed, [p0], [marked], {}, nodes)
    expect(ofType(s, 'delete')).toEqual([])
    const [written] = ofType(s, 'writeSlot')
    expect(written?.lease).toMatchObject({ ending: undefined, holder: { uid: p0.uid } })
    expect(written?.lease).not.toHaveProperty('suspended')
    // If it stays suspended, the next leader deletes the pod.
    expect(ofType(at(marked), 'delete')).toMatchObject([{ reason: 'Suspended' }])
  })

  it('goes through suspend and resume to a pod elsewhere, from any state, in a few passes', () => {
    const random = seededRandom(5)
    const comes = { comes: () => true }
    const step = (s: Snapshot) => played(s, decide(s, random), comes)
    let s = staged(at(running))
    for (let pass = 0; pass < 6; pass += 1) s = step(s)
    expect(s.pods).toEqual([])
    const slot = s.memory?.slots.get(0)
    expect(slot?.lease).toMatchObject({ suspended: true, incarnation: lease.incarnation })
    expect(actionsOf(decide(s, random))).toEqual([])
    if (slot === undefined) return
    // The test's cluster shows no copies of a slot without a primary by itself.
    const back = makeSlot(slot.lease, [coldCopy(slot.lease, 'b')], { vacantSince: s.monotonicNow })
    s = makeMemorySnapshot(resumed, [], [back], { monotonicNow: s.monotonicNow }, nodes)
    const first = decide(s, random)
    expect(actionsOf(first)).toMatchObject([{ type: 'writeSlot', retention: { type: 'resumes' } }])
    s = played(s, first, comes)
    expect(actionsOf(decide(s, random))).toMatchObject([
      { type: 'create', successorOf: { slot: 0, near: ['b'] } },
      { type: 'writeSlot', lease: { ending: undefined, incarnation: lease.incarnation } },
    ])
  })
})

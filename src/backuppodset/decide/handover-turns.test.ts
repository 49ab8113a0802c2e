// Long because one set at rest serves all of its cases.
import { describe, expect, it } from 'vitest'
import type { SlotReport } from '../../api/node-report.ts'
import { seededRandom } from '../../kube/random.ts'
import { isHandedOver } from '../../slot/decide/handover.ts'
import type { SlotMemory } from '../../slot/decide/memory-view.ts'
import { makeLease, makeSlot } from '../../slot/testing/slots.ts'
import type { Action } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { makeMemorySnapshot, makePrimary, makeUnderstudy, staged } from '../testing/memory.ts'
import { played } from '../testing/played.ts'
import { actionsOf, makeSet } from '../testing/snapshots.ts'
import { decide } from './decide.ts'
import { turnOf } from './handover-turns.ts'
import { failureOf } from './losses.ts'
import { swapInProgress } from './rollout-with-memory.ts'

const random = seededRandom(1)

/** Two primaries and two hot backups, everything in its place; under OnDelete, so that no roll starts. */
function begun(wish: Partial<Snapshot['set']> = {}): Snapshot {
  const primaries = [makePrimary('p0', 0), makePrimary('p1', 1)]
  const hot = [makeUnderstudy('h0'), makeUnderstudy('h1')]
  const s = makeMemorySnapshot(
    { replicas: 2, hotBackups: 2, updateStrategy: 'OnDelete', ...wish },
    [...primaries, ...hot],
    primaries.map(pod => makeSlot(makeLease(pod), [])),
  )
  return play(staged(s)).end
}

/** Plays passes until no action is left. */
function play(from: Snapshot) {
  let s = from
  const actions: Action[] = []
  for (let passes = 0; passes < 50; passes += 1) {
    const plan = decide(s, random)
    if (plan.tiers.length === 0) return { end: s, actions }
    actions.push(...actionsOf(plan))
    s = played(s, plan, { comes: () => true })
  }
  throw new Error('does not come to rest')
}

const changed = (s: Snapshot, name: string, over: (pod: PodView) => PodView): Snapshot => ({
  ...s,
  pods: s.pods.map(pod => (pod.name === name ? over(pod) : pod)),
})
const asked = (s: Snapshot, name: string, handoverRequested = true) =>
  changed(s, name, pod => ({ ...pod, ...(pod.stage && { stage: { ...pod.stage, handoverRequested } }) }))
const handoverOf = (s: Snapshot, slot: number) => s.memory?.slots.get(slot)?.lease.handover
const assigned = (s: Snapshot) =>
  actionsOf(decide(s, random)).flatMap(action => (action.type === 'writeSlot' ? [action.lease] : []))

const withSlots = (s: Snapshot, change: (slot: SlotMemory) => SlotMemory): Snapshot => {
  const slots = [...(s.memory?.slots ?? [])].map(([slot, it]) => [slot, change(it)] as const)
  return { ...s, ...(s.memory && { memory: { ...s.memory, slots: new Map(slots) } }) }
}
/** Changes the reports of the primaries' nodes on their slots. */
const withSource = (s: Snapshot, over: Partial<SlotReport>): Snapshot =>
  withSlots(s, it => ({ ...it, source: it.source && { ...it.source, ...over } }))

describe('a slot that somebody wants to go to another pod', () => {
  it('D7.migration: goes standing still, with the life of its memory, and no other slot is touched', () => {
    const before = begun()
    const { end, actions } = play(asked(before, 'p0'))
    const [standing] = actions
    expect(standing).toMatchObject({ type: 'writeSlot', lease: { slot: 0, holder: { name: 'p0' } } })
    const promotions = actions.filter(({ type }) => type === 'promote')
    expect(promotions).toMatchObject([
      { role: { slot: 0, epoch: 2, replaces: { name: 'p0', reason: 'Replaced' } } },
    ])
    expect(actions.findIndex(({ type }) => type === 'promote')).toBeLessThan(
      actions.findIndex(({ type }) => type === 'retire'),
    )
    const leases = (s: Snapshot) => [...(s.memory?.slots.values() ?? [])].map(({ lease }) => lease)
    expect(leases(end).map(({ incarnation }) => incarnation)).toEqual(
      leases(before).map(({ incarnation }) => incarnation),
    )
    expect(leases(end)[1]?.holder).toEqual(leases(before)[1]?.holder)
    expect(leases(end)[0]?.handover).toBeUndefined()
    expect(end.pods.filter(({ kind }) => kind === 'hotbackup')).toHaveLength(2)
  })

  it('one at a time, and who has begun goes on', () => {
    const both = asked(asked(begun(), 'p1'), 'p0')
    expect(assigned(both)).toMatchObject([{ slot: 0, handover: expect.any(String) }])
    const first = played(asked(begun(), 'p1'), decide(asked(begun(), 'p1'), random), { comes: () => true })
    expect(handoverOf(first, 1)).toBeDefined()
    expect(assigned(asked(first, 'p0'))).toEqual([])
  })

  it('D7.consent: is swapped on the word of a source that is fresh, and as long as that said only', () => {
    const wish = asked(begun(), 'p0')
    const standing = played(wish, decide(wish, random), { comes: () => true })
    const swaps = (s: Snapshot) =>
      actionsOf(decide(s, random)).filter(({ type }) => type === 'promote').length
    expect(swaps(standing)).toBe(1)
    const { monotonicNow } = standing
    const seenAt = (at: number | undefined) => withSlots(standing, it => ({ ...it, sourceSeenAt: at }))
    // The primary stays stopped for sixty seconds, and the swap needs some time to reach its node.
    expect(swaps(seenAt(monotonicNow - 57_000))).toBe(1)
    expect(swaps(seenAt(monotonicNow - 58_000))).toBe(0)
    // The report is new to this operator, but the request is older: the primary may run again.
    const askedAt = (at: number | undefined) =>
      withSlots(standing, it => ({ ...it, handoverRequestedAt: at }))
    expect(swaps(askedAt(monotonicNow - 57_000))).toBe(1)
    expect(swaps(askedAt(monotonicNow - 58_000))).toBe(0)
    // Another leader requested it, at a time that this process does not know.
    const turn = turnOf(askedAt(undefined))
    expect(turn && isHandedOver(turn, standing)).toBe(false)
    // The agent has not written for a while, so it could not have withdrawn its report.
    expect(swaps(seenAt(undefined))).toBe(0)
    // An agent of an earlier version does not report how long the stop lasts.
    const brief = withSlots(standing, ({ source, ...slot }) => {
      const { standsForSeconds: _, ...said } = source ?? { standsForSeconds: 0 }
      return { ...slot, source: said as SlotReport }
    })
    expect(swaps(brief)).toBe(0)
    // The report is of the handover before this one.
    expect(swaps(withSource(standing, { standsForHandover: 0 }))).toBe(0)
    // The successor has another generation than the last one.
    expect(swaps(withSource(standing, { generation: 4 }))).toBe(0)
  })

  it('D7.handed-over: a handover begins only to a node that the newest generation can reach, and one in progress goes on', () => {
    const full = (s: Snapshot) =>
      withSlots(s, it => ({
        ...it,
        copies: it.copies.map(copy => ({ ...copy, report: { ...copy.report, reason: 'StoreFull' } })),
      }))
    /** The primaries' nodes have saved once more. */
    const ahead = (s: Snapshot) =>
      withSlots(s, it => ({
        ...it,
        source: it.source && { ...it.source, generation: it.source.generation + 1 },
      }))
    const wish = asked(begun(), 'p0')
    expect(turnOf(ahead(wish))?.successor?.name).toBeDefined()
    expect(turnOf(full(ahead(wish)))).toBeUndefined()
    // It has the newest one, so its reason is over: nothing has come since that could show it.
    expect(turnOf(full(wish))?.successor?.name).toBeDefined()
    const standing = played(wish, decide(wish, random), { comes: () => true })
    expect(turnOf(full(standing))?.successor?.uid).toBe(handoverOf(standing, 0))
  })

  it('D7.swapped: is swapped although a creation is refused on every pass: its primary is stopped for it', () => {
    const wish = asked(begun(), 'p0')
    const standing = played(wish, decide(wish, random), { comes: () => true })
    const lacking = { ...standing, set: { ...standing.set, coldBackups: 1 } }
    const types = actionsOf(decide(lacking, random)).map(({ type }) => type)
    expect(types).toContain('create')
    expect(types.filter(type => type === 'promote')).toHaveLength(1)
    // No handover begins with that, and no swap is planned where the plan does something else with the slot.
    expect(actionsOf(decide({ ...wish, set: lacking.set }, random)).map(({ type }) => type)).not.toContain(
      'promote',
    )
    const { memory } = standing
    const turn = turnOf(standing)
    if (memory === undefined || turn?.successor === undefined) throw new Error('no turn')
    const swapBeside = (planned: readonly Action[]) => swapInProgress(standing, memory, planned)
    expect(swapBeside([])).toMatchObject([{ type: 'promote' }])
    expect(swapBeside([{ type: 'delete', pod: turn.successor, reason: 'Surplus' }])).toEqual([])
    expect(swapBeside([{ type: 'delete', pod: turn.primary, reason: 'Surplus' }])).toEqual([])
  })

  it('D7.asked-in-vain: does not begin with an agent that is silent, and is called off when no agent stops the primary in time', () => {
    const wish = asked(begun(), 'p0')
    const silent = withSlots(wish, it => ({ ...it, sourceSeenAt: undefined }))
    expect(turnOf(silent)).toBeUndefined()
    const deaf = withSlots(wish, it => ({
      ...it,
      copies: it.copies.map(copy => ({ ...copy, timely: false })),
    }))
    expect(turnOf(deaf)).toBeUndefined()
    const standing = played(wish, decide(wish, random), { comes: () => true })
    const { monotonicNow } = standing
    /** The primary's node says nothing of a stop. */
    const running = (requestedAt: number) =>
      withSlots(standing, ({ source, ...it }) => {
        const { final: _, standsForSeconds: __, standsForHandover: ___, ...said } = source ?? {}
        return { ...it, source: said as SlotReport, handoverRequestedAt: requestedAt }
      })
    expect(turnOf(running(monotonicNow - 10_000))).toBeDefined()
    const late = running(monotonicNow - 60_000)
    expect(turnOf(late)).toBeUndefined()
    expect(assigned(late)).toMatchObject([{ slot: 0, handover: undefined }])
    // The last report of an agent that is away since says that the primary stands.
    const stale = withSlots(standing, it => ({
      ...it,
      sourceSeenAt: undefined,
      handoverRequestedAt: monotonicNow - 10_000,
    }))
    expect(turnOf(stale)).toBeDefined()
    expect(decide(stale, random).requeueAfterMs).toBeLessThanOrEqual(60_000)
    expect(turnOf({ ...stale, monotonicNow: monotonicNow + 120_000 })).toBeUndefined()
  })

  it('stays where it is when the wish is taken back', () => {
    const wish = asked(begun(), 'p0')
    const standing = played(wish, decide(wish, random), { comes: () => true })
    expect(handoverOf(standing, 0)).toBeDefined()
    expect(assigned(asked(standing, 'p0', false))).toMatchObject([
      { slot: 0, handover: undefined, handovers: 1 },
    ])
  })

  it('D7.consent: is another one each time that it begins', () => {
    const wish = asked(begun(), 'p0')
    expect(assigned(wish)).toMatchObject([{ slot: 0, handovers: 1 }])
    const standing = played(wish, decide(wish, random), { comes: () => true })
    const off = asked(standing, 'p0', false)
    const again = asked(played(off, decide(off, random), { comes: () => true }), 'p0')
    expect(assigned(again)).toMatchObject([{ slot: 0, handovers: 2 }])
  })

  it('D7.consent: is requested once more by a leader that did not request it: it cannot know how old that is', () => {
    const wish = asked(begun(), 'p0')
    const standing = played(wish, decide(wish, random), { comes: () => true })
    expect(assigned(standing)).toEqual([])
    const next = withSlots(standing, it => ({ ...it, handoverRequestedAt: undefined }))
    const [write] = actionsOf(decide(next, random))
    expect(write).toMatchObject({
      ...{ type: 'writeSlot', requestsHandover: true },
      lease: { slot: 0, handover: handoverOf(standing, 0), handovers: 2 },
    })
    const [once, ...more] = play(next).actions.filter(({ type }) => type === 'promote')
    expect(once).toMatchObject({ role: { slot: 0, epoch: 2 }, standing: { lease: { handovers: 2 } } })
    expect(more).toEqual([])
  })

  describe('D7.handover-unready: is not lost to a failover while its primary stands still', () => {
    const failover = { ...makeSet().failover, unreadySeconds: 4 }
    const wish = asked(begun({ failover }), 'p0')
    const before = played(wish, decide(wish, random), { comes: () => true })
    // The last generation is in transit: a gigabyte gets 13 + 25 + 5 s, and 5 s more to be resumed if the handover
    // fails.
    const bytes = 1_000_000_000
    const sent = withSource(
      withSlots(before, it => ({ ...it, copies: [] })),
      { final: false, bytes },
    )
    const unready = (s: Snapshot, ms: number) =>
      changed(s, 'p0', pod => ({ ...pod, ready: false, unreadySince: s.now - ms }))
    const isFailing = (s: Snapshot) => {
      const [pod] = s.pods.filter(({ name }) => name === 'p0')
      return pod !== undefined && failureOf(s, pod) === 'Unready'
    }

    it('for as long as its agent gives the handover', () => {
      expect(handoverOf(sent, 0)).toBeDefined()
      expect(decide(unready(sent, 40_000), random).requeueAfterMs).toBe(8_000)
      // The handover could not be called off: the primary has as long to answer again as every pod.
      expect(isFailing(unready(sent, 51_999))).toBe(false)
      expect(isFailing(unready(sent, 52_000))).toBe(true)
      // Another size gives another deadline.
      expect(isFailing(unready(withSource(sent, { bytes: 2 * bytes }), 52_000))).toBe(false)
    })

    it('and is called off when its time is over: an agent that was exchanged meanwhile may have begun once more', () => {
      const plan = (ms: number) => decide(unready(withSource(before, { final: false, bytes }), ms), random)
      const writes = (ms: number) =>
        plan(ms).tiers.flatMap(({ actions }) =>
          actions.flatMap(action =>
            action.type === 'writeSlot' && action.lease.slot === 0 ? [action.lease] : [],
          ),
        )
      expect(writes(47_999)).toEqual([])
      expect(writes(48_000)).toMatchObject([{ handover: undefined, ending: undefined }])
    })

    it.each([
      ['the handover is called off', 'settledSince'],
      ['its voters have stopped it, too, and it runs again', 'unfencedSince'],
    ] as const)('and has to answer again only when %s', (_, since) => {
      const off = (ms: number) =>
        withSlots(unready(sent, 20_000), it => ({
          ...it,
          lease: { ...it.lease, handover: undefined },
          [since]: sent.monotonicNow - ms,
        }))
      expect(isFailing(off(3_999))).toBe(false)
      expect(decide(off(3_000), random).requeueAfterMs).toBe(1_000)
      expect(isFailing(off(4_000))).toBe(true)
    })

    it('and another leader does not wait once more for a primary that its Lease tells to end', () => {
      const told = (uid: string | undefined) =>
        withSlots(unready(sent, 1), it => ({
          ...it,
          lease: { ...it.lease, handover: undefined, ending: uid && it.lease.holder.uid },
          ...{ settledSince: sent.monotonicNow, unfencedSince: sent.monotonicNow },
        }))
      expect(isFailing(told(undefined))).toBe(false)
      expect(isFailing(told('told'))).toBe(true)
    })

    it('and a primary of which no handover is wanted has its usual time', () => {
      const other = changed(sent, 'p1', pod => ({ ...pod, ready: false, unreadySince: sent.now - 4_000 }))
      const [p1] = other.pods.filter(({ name }) => name === 'p1')
      expect(p1 && failureOf(other, p1)).toBe('Unready')
    })
  })

  it.each<[string, (s: Snapshot) => Snapshot]>([
    ['the set is paused', s => ({ ...s, set: { ...s.set, paused: true } })],
    ['another primary is not well', s => changed(s, 'p1', pod => ({ ...pod, ready: false }))],
    ['nobody else has its memory', s => withSlots(s, it => ({ ...it, copies: [] }))],
    ['its primary has stood still in vain', s => withSource(s, { handoverPaused: true })],
    ['it cannot be saved', s => withSource(s, { reason: 'DumpFailed' })],
    ['it is a hot backup that carries the wish', s => asked(asked(s, 'p0', false), 'h0')],
  ])('not while %s', (_, change) => {
    const s = change(asked(begun(), 'p0'))
    expect(assigned(s).filter(({ handover }) => handover !== undefined)).toEqual([])
  })
})

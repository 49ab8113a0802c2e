import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { seededRandom } from '../../kube/random.ts'
import type { SlotMemory } from '../../slot/decide/memory-view.ts'
import type { Action } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { createStrandings } from '../strandings.ts'
import { makeMemorySnapshot, staged, stageOf } from '../testing/memory.ts'
import { played } from '../testing/played.ts'
import { actionsOf } from '../testing/snapshots.ts'
import { decide } from './decide.ts'
import { isEachCovered, strandedPods } from './stranded.ts'

/** An event that hits a set between two passes. */
const events = fc.oneof(
  ...(
    [
      ...(['die', 'delete', 'linger', 'restart', 'unready', 'lose-hot', 'lose-cold', 'crowd'] as const),
      // The node's copies are gone; cannot be restored now; are unknown, because its agent starts.
      ...(['emptied', 'unable', 'silent'] as const),
    ] as const
  ).map(type => fc.record({ type: fc.constant(type), which: fc.nat(20) })),
  fc.record({ type: fc.constant('scale' as const), which: fc.nat(3), hot: fc.nat(3) }),
)
type Event = typeof events extends fc.Arbitrary<infer T> ? T : never

function happens(s: Snapshot, event: Event): Snapshot {
  const slots = [...(s.memory?.slots.values() ?? [])]
  const keep = { monotonicNow: s.monotonicNow, ...(s.retired && { retired: s.retired }) }
  const nodes = [...(s.memory?.nodes.keys() ?? [])]
  const withPods = (pods: readonly PodView[]) => makeMemorySnapshot(s.set, pods, slots, keep, nodes)
  if (event.type === 'scale')
    return makeMemorySnapshot(
      { ...s.set, replicas: event.which, hotBackups: event.hot },
      s.pods,
      slots,
      keep,
      nodes,
    )
  const withSlots = (change: (slot: SlotMemory) => SlotMemory, pods = s.pods) =>
    makeMemorySnapshot(s.set, pods, slots.map(change), keep, nodes)
  const kind =
    event.type === 'lose-cold'
      ? 'coldbackup'
      : ['lose-hot', 'emptied', 'unable', 'silent', 'crowd'].includes(event.type)
        ? 'hotbackup'
        : 'primary'
  const those = s.pods.filter(pod => pod.kind === kind)
  const hit = those[event.which % Math.max(1, those.length)]
  if (hit === undefined) return s
  const others = s.pods.filter(pod => pod !== hit)
  switch (event.type) {
    case 'die':
      return withPods([
        ...others,
        { ...hit, ready: false, stage: { ...stageOf(hit), died: true, serving: false } },
      ])
    case 'restart':
      return hit.stage?.understudy
        ? s
        : withSlots(slot =>
            // Either just now, or so long ago that no agent will report it any more.
            slot.lease.holder.uid === hit.uid
              ? { ...slot, replacedSince: s.monotonicNow - (event.which % 2) * 20_000 }
              : slot,
          )
    case 'unready':
      return withPods([...others, { ...hit, ready: false, unreadySince: 0 }])
    case 'linger':
      return withSlots(
        slot =>
          slot.lease.holder.uid === hit.uid ? { ...slot, holderGoesBy: s.monotonicNow + 1_000 } : slot,
        others,
      )
    case 'emptied':
    case 'unable':
    case 'silent':
      return withSlots(slot => {
        const left = slot.copies.filter(({ node }) => node !== hit.node)
        const there = slot.copies.filter(({ node }) => node === hit.node)
        if (event.type === 'emptied') return { ...slot, copies: left }
        if (event.type === 'silent')
          return {
            ...slot,
            copies: left,
            unasked: [...slot.unasked, ...there.map(({ node }) => ({ node, why: 'it starts' }))],
          }
        const unable = there.map(({ report: { usable: _, ...report }, ...copy }) => ({ ...copy, report }))
        return { ...slot, copies: [...left, ...unable] }
      })
    // As if the scheduler had bound it to the node of a primary.
    case 'crowd': {
      const primaries = s.pods.filter(pod => pod.kind === 'primary')
      const node = primaries[event.which % Math.max(1, primaries.length)]?.node
      return withPods([...others, { ...hit, node: node ?? hit.node }])
    }
    case 'delete':
    case 'lose-hot':
    case 'lose-cold':
      return withPods(others)
  }
}
const kinds = ['primary', 'hotbackup', 'coldbackup'] as const

/** Checks the invariants of every plan, in any state. */
function check(s: Snapshot, all: readonly Action[]): void {
  const touched = all.flatMap(action => ('pod' in action ? [action.pod.uid] : []))
  expect(new Set(touched).size, 'one action a pod').toBe(touched.length)
  const named = new Set([...(s.memory?.slots.values() ?? [])].map(({ lease }) => lease.holder.uid))
  for (const action of all) {
    if (action.type === 'promote') {
      const slot = s.memory?.slots.get(action.role.slot)
      const isKept = slot?.copies.some(({ report }) => report.usable !== undefined)
      if (action.version !== undefined) expect(isKept, 'only with its memory').toBe(true)
      expect(action.lease.incarnation, 'in the same life').toBe(slot?.lease.incarnation)
      expect(action.role.epoch).toBeGreaterThanOrEqual(slot?.lease.epoch ?? 0)
      expect(action.pod.stage?.understudy).toBe(true)
    }
    if (action.type === 'create' && action.role?.startsEmpty) {
      const slot = s.memory?.slots.get(action.role.slot)
      const left = [...(slot?.copies ?? []), ...(slot?.unasked ?? [])]
      expect(left, 'empty only where nobody is left who has the memory, or might').toEqual([])
    }
    if (action.type === 'create' && action.successorOf !== undefined) {
      const left = s.pods.filter(
        pod =>
          (pod.kind === 'hotbackup' ? pod.ready : pod.kind === 'coldbackup' && pod.gate === 'waiting') &&
          stageOf(pod).failed === undefined &&
          (stageOf(pod).successorOf ?? action.successorOf?.slot) === action.successorOf?.slot &&
          !touched.includes(pod.uid) &&
          !named.has(pod.uid),
      )
      expect(left, 'made only where no backup is left').toEqual([])
    }
    if (action.type === 'convert') expect(action.to, 'no label without memory').not.toBe('primary')
    if (action.type === 'delete' && action.pod.kind === 'primary' && action.pod.ready)
      expect(['Surplus', 'Retired'], `${action.pod.name} serves`).toContain(action.reason)
    if (action.type === 'writeSlot') {
      const present = s.memory?.slots.get(action.lease.slot)
      if (action.stateLost)
        expect([present?.copies, present?.unasked], 'a life ends only where its memory is gone').toEqual([
          [],
          [],
        ])
      expect(action.lease.epoch).toBeGreaterThanOrEqual(present?.lease.epoch ?? 0)
      expect(action.lease.holders).not.toContain(action.lease.node)
      if (!action.stateLost && present?.lease.holder.uid === action.lease.holder.uid)
        expect(action.lease.incarnation).toBe(present.lease.incarnation)
    }
  }
  const leased = all.flatMap(action =>
    action.type === 'writeSlot' || action.type === 'promote' ? [action.lease.slot] : [],
  )
  expect(new Set(leased).size, 'one write a Lease').toBe(leased.length)
}

it('comes to rest in its numbers, with a Lease for each primary, after any walk; memory goes on wherever it can', () => {
  fc.assert(
    fc.property(
      fc.array(events, { maxLength: 20 }),
      fc.array(fc.boolean(), { maxLength: 10 }),
      fc.nat(),
      (walk, torn, seed) => {
        const draws = seededRandom(seed)
        let tries = 0
        const answers = { comes: () => torn[tries++] !== true }
        let s = makeMemorySnapshot({ replicas: 2, hotBackups: 2, coldBackups: 1 }, [], [], {}, ['n-x', 'n-y'])
        const strandings = createStrandings({ monotonic: () => s.monotonicNow })
        const pass = () => {
          const stranded = strandings.note(strandedPods(s), isEachCovered(s))
          const next = decide(stranded ? { ...s, stranded } : s, draws)
          check(s, actionsOf(next))
          s = played(s, next, answers)
          return next.tiers.length + Number(stranded !== undefined)
        }
        for (let i = 0; i < 4; i += 1) pass()
        for (const event of walk) {
          s = happens(s, event)
          pass()
        }
        const healed = () =>
          staged(
            makeMemorySnapshot(
              s.set,
              s.pods.map(pod =>
                pod.stage?.died
                  ? pod
                  : {
                      ...pod,
                      ready: pod.kind !== 'coldbackup',
                      unreadySince: undefined,
                      stage: { ...stageOf(pod), failed: undefined },
                    },
              ),
              // The agents are back: their copies are usable, and memory that no node has shown by now is gone.
              [...(s.memory?.slots.values() ?? [])].map(slot => ({
                ...slot,
                holderGoesBy: undefined,
                unasked: [],
                copies: slot.copies.map(copy => ({ ...copy, report: { usable: 'Cold', ...copy.report } })),
              })),
              { monotonicNow: s.monotonicNow + 5_000, ...(s.retired && { retired: s.retired }) },
              ['n-x', 'n-y'],
            ),
          )
        let passes = 0
        for (s = healed(); pass() > 0; s = healed()) {
          passes += 1
          if (passes > 60) throw new Error('does not come to rest')
        }
        const ofKind = (kind: PodView['kind']) => s.pods.filter(pod => pod.kind === kind)
        const { replicas, hotBackups } = s.set
        expect(kinds.map(kind => ofKind(kind).length)).toEqual([replicas, hotBackups, 1])
        expect(s.retired ?? []).toEqual([])
        const all = [...(s.memory?.slots.values() ?? [])].map(({ lease }) => lease)
        // Slots that the set has no place for are only kept.
        const leases = all.filter(({ retainedSince }) => retainedSince === undefined)
        expect(leases.map(({ holder }) => holder.uid).sort()).toEqual(
          ofKind('primary')
            .map(({ uid }) => uid)
            .sort(),
        )
        for (const { slot, epoch, heir, node } of leases) {
          const primary = ofKind('primary').find(pod => pod.slot === slot)
          expect(primary?.epoch).toBe(epoch)
          const able = ofKind('hotbackup').filter(pod => pod.node !== node)
          expect(heir === undefined).toBe(able.length === 0)
          if (heir === undefined)
            expect(
              ofKind('hotbackup').filter(pod => leases.every(other => other.heir?.uid !== pod.uid)),
              'no hot backup is left that could be moved',
            ).toEqual([])
        }
      },
    ),
    { numRuns: 300 },
  )
}, 60_000)

import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { seededRandom } from '../../kube/random.ts'
import type { SlotMemory } from '../../slot/decide/memory-view.ts'
import type { Move } from '../../slot/decide/move.ts'
import type { Action } from '../plan.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { createStrandings } from '../strandings.ts'
import { makeMemorySnapshot, staged, stageOf, templatesOf } from '../testing/memory.ts'
import { played } from '../testing/played.ts'
import { actionsOf } from '../testing/snapshots.ts'
import { decide } from './decide.ts'
import { movesOf } from './moves.ts'
import { isEachCovered, strandedPods } from './stranded.ts'

const nodes = ['n-x', 'n-y', 'n-z']

/** An event that hits a set between two passes. */
const events = fc.oneof(
  ...(
    [
      ...(['die', 'delete', 'unready', 'lose-hot', 'fail-hot', 'unbind-hot', 'emptied', 'silent'] as const),
      ...(['call-off', 'roll', 'pause', 'resume'] as const),
    ] as const
  ).map(type => fc.record({ type: fc.constant(type), which: fc.nat(20) })),
  fc.record({ type: fc.constant('scale' as const), which: fc.nat(3), hot: fc.nat(2) }),
  // The target nodes of a move: of pods that exist, of the others, or none.
  fc.record({ type: fc.constant('move' as const), which: fc.nat(20), to: fc.nat(7), slow: fc.boolean() }),
  fc.record({ type: fc.constant('relabel' as const), which: fc.nat(20), to: fc.nat(7) }),
  // The scheduler binds pods that were made for a slot, there or elsewhere; otherwise they wait.
  fc.record({ type: fc.constant('bind' as const), which: fc.nat(20), astray: fc.boolean() }),
)
type Event = typeof events extends fc.Arbitrary<infer T> ? T : never

const keepOf = (s: Snapshot): Partial<Snapshot> => ({
  monotonicNow: s.monotonicNow,
  ...templatesOf(s),
  ...(s.retired && { retired: s.retired }),
  ...(s.moves && { moves: s.moves }),
})

/** Any three nodes of a world. */
const nodesFor = (s: Snapshot, to: number): ReadonlySet<string> => {
  const all = [...new Set([...nodes, ...s.pods.flatMap(({ node }) => node ?? [])])].sort()
  return new Set(to === 7 ? all : all.filter((_, i) => (i + to) % 3 === 0))
}

function happens(s: Snapshot, event: Event): Snapshot {
  const slots = [...(s.memory?.slots.values() ?? [])]
  const withPods = (pods: readonly PodView[]) => makeMemorySnapshot(s.set, pods, slots, keepOf(s), nodes)
  const primaries = s.pods.filter(({ kind }) => kind === 'primary')
  const hot = s.pods.filter(({ kind }) => kind === 'hotbackup')
  const one = (pods: readonly PodView[]) => pods[event.which % Math.max(1, pods.length)]
  const others = (hit: PodView | undefined) => s.pods.filter(pod => pod !== hit)
  const change = (hit: PodView | undefined, over: (hit: PodView) => Partial<PodView>) =>
    hit === undefined ? s : withPods([...others(hit), { ...hit, ...over(hit) }])
  const again = (set: Partial<Snapshot['set']>, over: Partial<Snapshot> = {}) =>
    makeMemorySnapshot({ ...s.set, ...set }, s.pods, slots, { ...keepOf(s), ...over }, nodes)
  switch (event.type) {
    case 'scale':
      return again({ replicas: event.which, hotBackups: event.hot })
    case 'pause':
    case 'resume':
      return again({ paused: event.type === 'pause' })
    case 'roll':
      return again({}, { templateHash: `t${event.which % 3}` })
    case 'call-off': {
      const { moves: _, ...rest } = s
      return rest
    }
    case 'move': {
      const primary = one(primaries)
      if (primary === undefined) return s
      const move: Move = {
        ...{
          name: 'm',
          uid: `m-${primary.uid}`,
          source: primary.uid,
          nodeSelector: { a: 'b' },
          nodes: nodesFor(s, event.to),
        },
        maxDowntimeMs: event.slow ? 100 : undefined,
      }
      return { ...s, moves: [move, ...(s.moves ?? []).filter(({ source }) => source !== primary.uid)] }
    }
    case 'relabel':
      return { ...s, moves: (s.moves ?? []).map(move => ({ ...move, nodes: nodesFor(s, event.to) })) }
    case 'bind':
      return bound(s, event.astray)
    case 'die':
      return change(one(primaries), hit => ({
        ready: false,
        stage: { ...stageOf(hit), died: true, serving: false },
      }))
    case 'unready':
      return change(one(primaries), () => ({ ready: false, unreadySince: 0 }))
    case 'fail-hot':
      return change(one(hot.filter(({ node }) => node !== undefined)), hit => ({
        stage: { ...stageOf(hit), failed: 'torn' },
      }))
    case 'unbind-hot':
      return change(one(hot), hit => ({
        ready: false,
        unreadySince: 0,
        stage: { ...stageOf(hit), containers: undefined },
      }))
    case 'delete':
      return withPods(others(one(primaries)))
    case 'lose-hot':
      return withPods(others(one(hot)))
    case 'emptied':
    case 'silent': {
      const node = one(hot)?.node
      const changed = slots.map((slot): SlotMemory => {
        const copies = slot.copies.filter(each => each.node !== node)
        const gone = slot.copies.filter(each => each.node === node)
        const unasked =
          event.type === 'silent' ? gone.map(each => ({ node: each.node, why: 'it starts' })) : []
        return { ...slot, copies, unasked: [...slot.unasked, ...unasked] }
      })
      return makeMemorySnapshot(s.set, s.pods, changed, keepOf(s), nodes)
    }
  }
}

/** Pods that were made for a slot come to a node, and their containers run. */
function bound(s: Snapshot, astray: boolean): Snapshot {
  const pods = s.pods.map((pod): PodView => {
    const { stage } = pod
    if (pod.kind !== 'hotbackup' || stage?.successorOf === undefined) return pod
    if (stage.containers !== undefined && pod.node !== undefined)
      return { ...pod, ready: true, unreadySince: undefined }
    const source = s.pods.find(({ kind, slot }) => kind === 'primary' && slot === stage.successorOf)
    const move = s.moves?.find(each => each.source === source?.uid)
    const may = [...(astray || move === undefined ? nodes : move.nodes)].filter(node => node !== source?.node)
    const [node = undefined] = may
    return node === undefined
      ? { ...pod, node, ready: false }
      : { ...pod, node, ready: true, unreadySince: undefined, stage: { ...stage, containers: 'app=1' } }
  })
  return makeMemorySnapshot(s.set, pods, [...(s.memory?.slots.values() ?? [])], keepOf(s), nodes)
}

/** A pod that was made for a move waits for the scheduler. */
const unbound = (s: Snapshot, known: Snapshot): Snapshot => ({
  ...s,
  pods: s.pods.map(pod =>
    pod.kind === 'hotbackup' &&
    pod.stage?.successorOf !== undefined &&
    known.pods.every(({ uid }) => uid !== pod.uid)
      ? { ...pod, node: undefined, ready: false }
      : pod,
  ),
})

/** Checks the invariants of every plan, in any state. */
function check(s: Snapshot, all: readonly Action[]): void {
  const touched = all.flatMap(action => ('pod' in action ? [action.pod.uid] : []))
  expect(new Set(touched).size, 'one action a pod').toBe(touched.length)
  if (s.set.paused) expect(all).toEqual([])
  for (const action of all) {
    if (action.type === 'promote') {
      const slot = s.memory?.slots.get(action.role.slot)
      const isKept = slot?.copies.some(({ report }) => report.usable !== undefined)
      if (action.version !== undefined) expect(isKept, 'only with its memory').toBe(true)
      expect(action.lease.incarnation, 'in the same life').toBe(slot?.lease.incarnation)
    }
    if (action.type === 'create' && action.role?.startsEmpty) {
      const slot = s.memory?.slots.get(action.role.slot)
      expect([...(slot?.copies ?? []), ...(slot?.unasked ?? [])], 'empty only without memory').toEqual([])
    }
    if (action.type === 'delete' && action.pod.kind === 'primary' && action.pod.ready)
      expect(['Surplus', 'Retired'], `${action.pod.name} serves`).toContain(action.reason)
    if (action.type === 'writeSlot') {
      const present = s.memory?.slots.get(action.lease.slot)
      if (action.stateLost) expect([present?.copies, present?.unasked]).toEqual([[], []])
      expect(action.lease.epoch).toBeGreaterThanOrEqual(present?.lease.epoch ?? 0)
      expect(action.lease.holders).not.toContain(action.lease.node)
      const kept = present?.copies.filter(({ node }) => present.lease.holders.includes(node)) ?? []
      if (!action.stateLost && present?.lease.holder.uid === action.lease.holder.uid && kept.length > 0)
        expect(
          kept.some(({ node }) => action.lease.holders.includes(node)),
          'a copy stays until another one is there',
        ).toBe(true)
    }
  }
  const asked = [...(s.memory?.slots.values() ?? [])].filter(({ lease }) => lease.handover !== undefined)
  expect(asked.length, 'one primary is stopped at a time').toBeLessThanOrEqual(1)
  const leased = all.flatMap(action =>
    action.type === 'writeSlot' || action.type === 'promote' ? [action.lease.slot] : [],
  )
  expect(new Set(leased).size, 'one write a Lease').toBe(leased.length)
}

/** All agents and pods are well again, except for pods whose app has ended, and those that could not be given memory if `failed`. */
function healed(s: Snapshot, failed: boolean): Snapshot {
  const pods = s.pods.map((pod): PodView => {
    if (pod.stage?.died) return pod
    const made = pod.stage?.successorOf !== undefined
    if (made && failed && pod.stage?.failed !== undefined) return pod
    return {
      ...pod,
      ready: pod.kind !== 'coldbackup' && pod.node !== undefined,
      unreadySince: undefined,
      stage: { ...stageOf(pod), failed: undefined, containers: 'app=1' },
    }
  })
  const slots = [...(s.memory?.slots.values() ?? [])].map(slot => ({
    ...slot,
    holderGoesBy: undefined,
    unasked: [],
    copies: slot.copies.map(copy => ({ ...copy, report: { usable: 'Cold' as const, ...copy.report } })),
  }))
  const over = { ...keepOf(s), monotonicNow: s.monotonicNow + 5_000 }
  const set = { ...s.set, paused: false }
  return staged(makeMemorySnapshot(set, pods, slots, over, nodes))
}

it('comes to rest with moves at any time, with a primary for each slot; no move waits for nothing', () => {
  fc.assert(
    fc.property(
      fc.record({
        walk: fc.array(events, { maxLength: 25 }),
        torn: fc.array(fc.boolean(), { maxLength: 10 }),
        seed: fc.nat(),
        replicas: fc.integer({ min: 1, max: 3 }),
        hotBackups: fc.nat(2),
        onDelete: fc.boolean(),
        required: fc.boolean(),
        goal: fc.record({ which: fc.nat(20), to: fc.nat(7) }),
      }),
      ({ walk, torn, seed, replicas, hotBackups, onDelete, required, goal }) => {
        const draws = seededRandom(seed)
        let tries = 0
        const answers = { comes: () => torn[tries++] !== true }
        const wish = {
          ...{ replicas, hotBackups },
          updateStrategy: onDelete ? ('OnDelete' as const) : ('RollingUpdate' as const),
          ...(required && { antiAffinity: 'Required' as const }),
        }
        let s = makeMemorySnapshot(wish, [], [], { templateHash: 't0', restoreHash: 'a' }, nodes)
        const strandings = createStrandings({ monotonic: () => s.monotonicNow })
        let last: readonly Action[] = []
        const pass = () => {
          const stranded = strandings.note(strandedPods(s), isEachCovered(s))
          const next = decide(stranded ? { ...s, stranded } : s, draws)
          check(s, actionsOf(next))
          last = actionsOf(next)
          s = unbound(played(s, next, answers), s)
          return next.tiers.length + Number(stranded !== undefined)
        }
        const rest = (what: string) => {
          let passes = 0
          for (s = healed(bound(s, false), false); pass() > 0; s = healed(bound(s, false), false)) {
            passes += 1
            if (passes > 60) throw new Error(`${what} does not come to rest: ${JSON.stringify(last)}`)
          }
          const leases = [...(s.memory?.slots.values() ?? [])].map(({ lease }) => lease)
          expect(
            leases.filter(({ handover }) => handover !== undefined),
            `${what}: a primary stands`,
          ).toEqual([])
        }
        for (let i = 0; i < 4; i += 1) pass()
        for (const event of walk) {
          s = happens(s, event)
          pass()
        }
        rest('with a move')
        s = happens({ ...s, moves: [] }, { type: 'move', slow: false, ...goal })
        rest('with the last move')
        for (const { slot, move } of movesOf(s).values())
          expect([...move.nodes], 'a move waits only if it can go nowhere').toEqual(
            [...move.nodes].filter(node => node === slot.lease.node),
          )
        s = happens(s, { type: 'call-off', which: 0 })
        rest('after the move')
        const count = (kind: PodView['kind']) => s.pods.filter(pod => pod.kind === kind).length
        expect([count('primary'), count('hotbackup')]).toEqual([s.set.replicas, s.set.hotBackups])
        const leases = [...(s.memory?.slots.values() ?? [])]
          .map(({ lease }) => lease)
          .filter(({ retainedSince }) => retainedSince === undefined)
        expect(leases.map(({ holder }) => holder.uid).sort()).toEqual(
          s.pods.flatMap(({ kind, uid }) => (kind === 'primary' ? [uid] : [])).sort(),
        )
        expect(leases.every(({ handover }) => handover === undefined)).toBe(true)
      },
    ),
    { numRuns: 300 },
  )
}, 60_000)

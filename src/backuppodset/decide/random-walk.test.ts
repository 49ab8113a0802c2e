import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { seededRandom } from '../../kube/random.ts'
import type { GateState } from '../../slot/decide/snapshot.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { actionsOf, applied, makeSnapshot } from '../testing/snapshots.ts'
import { decide } from './decide.ts'
import { partitionPrimaries } from './primary-sets.ts'

/** An event that hits a set between two passes. `which` picks the pod. */
const disturbances = fc.oneof(
  ...(['lose', 'unready', 'crash', 'recover', 'finish', 'unslot', 'twin', 'forge'] as const).map(type =>
    fc.record({ type: fc.constant(type), which: fc.nat(20) }),
  ),
  fc.record({
    type: fc.constant('relabel' as const),
    which: fc.nat(20),
    kind: fc.constantFrom('primary', 'hotbackup', 'coldbackup'),
  }),
  fc.record({
    type: fc.constant('gate' as const),
    which: fc.nat(20),
    gate: fc.constantFrom<GateState>('none', 'starting', 'waiting', 'open'),
  }),
  fc.record({ type: fc.constant('template' as const), hash: fc.constantFrom('now', 'next', 'bad') }),
  fc.record({ type: fc.constant('scale' as const), to: fc.tuple(fc.nat(3), fc.nat(3), fc.nat(3)) }),
)
type Disturbance = typeof disturbances extends fc.Arbitrary<infer T> ? T : never

function disturb(s: Snapshot, event: Disturbance): Snapshot {
  const over = { templateHash: s.templateHash, epochs: new Map(s.epochs) }
  if (event.type === 'template') return makeSnapshot(s.set, s.pods, { ...over, templateHash: event.hash })
  if (event.type === 'scale') {
    const [replicas, hotBackups, coldBackups] = event.to
    return makeSnapshot({ ...s.set, replicas, hotBackups, coldBackups }, s.pods, over)
  }
  const hit = s.pods[event.which % Math.max(1, s.pods.length)]
  if (hit === undefined) return s
  const others = s.pods.filter(pod => pod !== hit)
  const become = (change: Partial<PodView>) => makeSnapshot(s.set, [...others, { ...hit, ...change }], over)
  switch (event.type) {
    case 'lose':
      return makeSnapshot(s.set, others, over)
    case 'finish':
      return makeSnapshot(s.set, others, { ...over, finished: [hit] })
    case 'unready':
      return become({ ready: false, unreadySince: 0 })
    case 'crash':
      return become({ ready: false, unreadySince: 999_999, crashLooping: true })
    case 'recover':
      return become({ ready: hit.kind !== 'coldbackup', unreadySince: undefined, crashLooping: false })
    case 'unslot':
      return become({ slot: undefined, epoch: 0 })
    case 'twin':
      return become({ slot: 0, epoch: s.epochs.get(0) ?? 0 })
    case 'forge':
      return makeSnapshot(s.set, [...others, { ...hit, epoch: 999_999_999 }], {
        ...over,
        epochs: hit.slot === undefined ? over.epochs : over.epochs.set(hit.slot, 999_999_999),
      })
    case 'relabel':
      return become({ kind: event.kind as PodView['kind'] })
    case 'gate':
      return become(
        event.gate === 'open' || event.gate === 'none'
          ? { gate: event.gate }
          : { gate: event.gate, ready: false, unreadySince: 999_999 },
      )
  }
}

/** The disturbances are over: every live pod does its job again. */
const healed = (s: Snapshot): Snapshot =>
  makeSnapshot(
    s.set,
    s.pods.map(pod => {
      const isCold = pod.kind === 'coldbackup'
      const gate =
        isCold && pod.gate === 'starting' ? 'waiting' : !isCold && pod.gate === 'starting' ? 'open' : pod.gate
      const ready = !isCold && gate !== 'waiting'
      return { ...pod, gate, ready, crashLooping: false, unreadySince: ready ? undefined : 999_999 }
    }),
    { templateHash: s.templateHash, epochs: s.epochs },
  )

/** Checks the invariants of every plan, in any state. */
function check(s: Snapshot, actions: ReturnType<typeof actionsOf>): void {
  const touched = actions.flatMap(action => ('pod' in action ? [action.pod.uid] : []))
  expect(new Set(touched).size, 'one action a pod').toBe(touched.length)
  const roles = actions.flatMap(action => ('role' in action && action.role ? [action.role] : []))
  expect(new Set(roles.map(({ slot }) => slot)).size, 'one role a slot').toBe(roles.length)
  for (const { slot, epoch } of roles)
    expect(epoch, 'epochs rise').toBeGreaterThanOrEqual(Math.min((s.epochs.get(slot) ?? 0) + 1, 999_999_999))
  const { primaries } = partitionPrimaries(s.pods.filter(pod => pod.kind === 'primary'))
  const gone = actions.flatMap(action => (action.type === 'delete' ? [action] : []))
  for (const { pod, reason } of gone)
    if (pod.kind === 'primary' && pod.ready && pod.epoch < 999_999_999)
      expect(['Surplus', 'Superseded', 'Finished'], `${pod.name} serves`).toContain(reason)
  const kept = primaries.filter(pod => pod.ready && !gone.some(action => action.pod.uid === pod.uid))
  const ready = primaries.filter(pod => pod.ready && pod.epoch < 999_999_999)
  expect(kept.length, 'serving primaries stay').toBeGreaterThanOrEqual(Math.min(ready.length, s.set.replicas))
}

it('comes to rest in its numbers after any walk through losses, failures, gates, templates and scales', () => {
  fc.assert(
    fc.property(fc.array(disturbances, { maxLength: 25 }), fc.nat(), (walk, seed) => {
      const random = seededRandom(seed)
      let s = makeSnapshot({ replicas: 2, hotBackups: 1, coldBackups: 1 }, [])
      const pass = () => {
        const plan = decide(s, random)
        check(s, actionsOf(plan))
        s = applied(s, plan)
        return plan.tiers.length
      }
      for (const event of walk) {
        s = disturb(s, event)
        pass()
      }
      let passes = 0
      for (s = healed(s); pass() > 0; s = healed(s)) {
        passes += 1
        if (passes > 100) throw new Error('does not come to rest')
      }
      const count = (kind: PodView['kind']) => s.pods.filter(pod => pod.kind === kind).length
      expect([count('primary'), count('hotbackup'), count('coldbackup')]).toEqual([
        s.set.replicas,
        s.set.hotBackups,
        s.set.coldBackups,
      ])
      const primaries = s.pods.filter(pod => pod.kind === 'primary')
      expect(new Set(primaries.map(({ slot }) => slot)).size).toBe(primaries.length)
      expect(s.pods.every(pod => pod.templateHash === s.templateHash)).toBe(true)
    }),
    { numRuns: 2000 },
  )
})

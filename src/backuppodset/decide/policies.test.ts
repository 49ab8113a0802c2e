import { expect, it } from 'vitest'
import { limits } from '../../api/backuppodset.ts'
import { parsePolicy, type SlotPolicy } from '../../api/slot-policy.ts'
import { seededRandom } from '../../kube/random.ts'
import { makeCopy, makeLease, makeSlot } from '../../slot/testing/slots.ts'
import { takeoversOf } from '../in-force.ts'
import { policyOf } from '../memory/policy.ts'
import type { Action } from '../plan.ts'
import type { Snapshot } from '../snapshot.ts'
import { makeMemorySnapshot, makePrimary, makeUnderstudy, parsedMemory } from '../testing/memory.ts'
import { played } from '../testing/played.ts'
import { actionsOf, makeSet } from '../testing/snapshots.ts'
import { decide } from './decide.ts'

const random = seededRandom(1)
const restoreHash = '0123456789abcdef'
const policyFor = (wish: Partial<Snapshot['set']>): SlotPolicy | undefined =>
  policyOf(makeSet({ memory: parsedMemory, ...wish }), restoreHash)
const policy = policyFor({})
const edited = policyFor({ memory: { ...parsedMemory, intervalMs: 5_000 } })

const p0 = makePrimary('p0', 0)
const p1 = makePrimary('p1', 1)
const h0 = makeUnderstudy('h0')
/** Two slots whose Leases have this policy, in a set that wants another one. */
const world = (
  present: SlotPolicy | undefined,
  wanted: SlotPolicy | undefined,
  over: Partial<Snapshot> = {},
  wish: Partial<Snapshot['set']> = {},
  primaries = [p0, p1],
) => {
  const slots = primaries.map(pod => {
    const heir = { name: 'h0', uid: h0.uid, ip: '10.0.0.1' }
    const lease = makeLease(pod, {
      ...{ heir, holders: ['n-h0'], kept: ['n-h0'], ...(present && { policy: present }) },
    })
    return makeSlot(lease, [makeCopy(lease, h0, pod.slot === 0 ? 'Frozen' : 'Staged')])
  })
  const set = { replicas: 2, hotBackups: 1, ...wish }
  return makeMemorySnapshot(set, [...primaries, h0], slots, { policy: wanted, ...over })
}
const actions = (s: Snapshot) => actionsOf(decide(s, random))
const policies = (all: readonly Action[]) =>
  all.flatMap(action => (action.type === 'writePolicy' ? [[action.slot, action.policy]] : []))

/** Every write of a Lease, with the policy in it. */
const written = (all: readonly Action[]) =>
  all.flatMap((action): (readonly [string, number, SlotPolicy | undefined])[] => {
    if (action.type === 'writePolicy') return [[action.type, action.slot, action.policy]]
    return 'lease' in action && 'slot' in action.lease
      ? [[action.type, action.lease.slot, action.lease.policy]]
      : []
  })

it('D7.policy: nothing is written where the Leases say what the spec says', () => {
  expect(actions(world(policy, policy))).toEqual([])
})

it('D7.policy: an edit, and a Lease of the version before, cause one write of each Lease, and nothing else', () => {
  for (const present of [policy, undefined]) {
    const s = world(present, edited)
    expect(actions(s)).toEqual(
      [0, 1].map(slot => ({ type: 'writePolicy', slot, version: '1', policy: edited })),
    )
    const after = played(s, decide(s, random), { comes: () => true })
    expect(actions({ ...s, ...after, policy: edited })).toEqual([])
  }
})

it('D7.policy: a paused set writes its policy and does nothing else', () => {
  const paused = policyFor({ paused: true })
  const dead = makePrimary('p0', 0, { ready: false }, { died: true })
  const s = world(policy, paused, {}, { paused: true }, [dead, p1])
  expect(actions(s)).toMatchObject([
    { type: 'writePolicy', slot: 0, policy: { paused: true } },
    { type: 'writePolicy', slot: 1, policy: { paused: true } },
  ])
  expect(actions(world(paused, paused, {}, { paused: true }, [dead, p1]))).toEqual([])
  // Its first pass afterwards says in one write who takes over, and that successors are called again.
  expect(written(actions(world(paused, policy, {}, {}, [dead, p1])))).toEqual([
    ['promote', 0, policy],
    // Its heir has another slot now.
    ['writeSlot', 1, policy],
  ])
})

it('D7.policy: a promotion, a first Lease and a retained slot bring the policy themselves', () => {
  const dead = makePrimary('p0', 0, { ready: false }, { died: true })
  expect(written(actions(world(policy, edited, {}, {}, [dead, p1])))).toEqual([
    ['promote', 0, edited],
    ['writeSlot', 1, edited],
  ])

  const fresh = makeMemorySnapshot({ replicas: 1, hotBackups: 1 }, [p0, h0], [], { policy })
  expect(actions(fresh)).toMatchObject([{ type: 'writeSlot', lease: { slot: 0, policy, owner: 'set-uid' } }])

  const memory = { ...parsedMemory, retainMs: 60_000 }
  const smaller = actions(world(policy, edited, {}, { replicas: 1, memory }))
  expect(smaller).toContainEqual(
    expect.objectContaining({
      type: 'writeSlot',
      lease: expect.objectContaining({ retainedSince: expect.any(String), policy: edited }),
    }),
  )
  expect(written(smaller).map(([, slot]) => slot)).toEqual([1, 0])
})

it('D7.policy: an edit also reaches the slot of a promotion that an earlier leader has begun', () => {
  const called = makeUnderstudy('h0', { kind: 'primary', slot: 0, epoch: 2 }, { promoting: true })
  const lease = makeLease(called, { epoch: 2, kept: [called.node ?? ''], ...(policy && { policy }) })
  const slot = makeSlot(lease, [makeCopy(lease, called, 'Staged')])
  const s = makeMemorySnapshot({ replicas: 1, hotBackups: 0 }, [called], [slot], { policy: edited })
  expect(policies(actions(s))).toEqual([[0, edited]])
})

it('D7.policy: the slots of a set that keeps no memory any more are paused with it, or deleted', () => {
  const former = { formerSlots: [{ slot: 0, lease: { uid: 'l', resourceVersion: '7' }, policy }] }
  const s = makeMemorySnapshot({ memory: undefined, paused: true }, [p0], [], former)
  const { memory: _, ...without } = s
  expect(actions(without)).toEqual([
    { type: 'writePolicy', slot: 0, version: '7', policy: { ...policy, paused: true } },
  ])
  const going = actions({ ...without, set: { ...without.set, paused: false } })
  expect(going).toContainEqual({ type: 'deleteSlot', slot: 0, lease: { uid: 'l', resourceVersion: '7' } })
  expect(policies(going)).toEqual([])
})

it('D7.unreadable: without an accepted spec the last policy stays, and can be paused', () => {
  const partial = { isSpecPartial: true }
  const kept = (s: Snapshot) => policies(actionsOf(takeoversOf(decide(s, random))))
  expect(kept(world(policy, edited, partial))).toEqual([])
  expect(kept(world(policy, edited, partial, { paused: true }))).toEqual(
    [0, 1].map(slot => [slot, { ...policy, paused: true }]),
  )
  // No operator has written one yet: what can be read is better than nothing.
  expect(kept(world(undefined, edited, partial))).toEqual([0, 1].map(slot => [slot, edited]))
})

it('D7.policy: what the operator writes, agents read, also where only a part of the spec is readable', () => {
  expect(policy).toMatchObject({ mode: 'Frozen', intervalMs: 10_000, keep: 2, paused: false, restoreHash })
  expect(policyOf(makeSet({ memory: undefined }), restoreHash)).toBeUndefined()
  const ms = (intervalMs: number) => policyFor({ memory: { ...parsedMemory, intervalMs } })?.intervalMs
  expect([ms(1_000.4), ms(1), ms(1e9)]).toEqual([1_000, limits.interval.min, limits.interval.max])
  // The operator writes no policy that agents could not read, or every pass would write it again.
  expect(policyFor({ memory: { ...parsedMemory, containers: ['No Name'] } })).toBeUndefined()
  expect(parsePolicy(JSON.stringify({ v: 1, ...policy }))).toEqual(policy)
})

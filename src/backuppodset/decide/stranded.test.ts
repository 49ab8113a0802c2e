// Long because one small world serves all of its cases.
import { describe, expect, it } from 'vitest'
import { createFakeClock } from '../../kube/clock.ts'
import type { MemoryView, NodeView, SlotMemory } from '../../slot/decide/memory-view.ts'
import { makeCopy, makeLease, makeSlot } from '../../slot/testing/slots.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { createStrandings } from '../strandings.ts'
import { dead, died, ofType, plan } from '../testing/decided.ts'
import { coldCopy, makeMemorySnapshot, makePrimary, makeUnderstudy, stageOf } from '../testing/memory.ts'
import { played } from '../testing/played.ts'
import { makePod } from '../testing/snapshots.ts'
import { strandedPods } from './stranded.ts'

const primary = (name: string, slot: number, node: string, over: Partial<PodView> = {}) =>
  makePrimary(name, slot, { node, ...over })
const hot = (name: string, node: string | undefined, over: Partial<PodView> = {}) =>
  makeUnderstudy(name, { node, ...over })
const heirOf = ({ name, uid }: PodView) => ({ name, uid, ip: '10.0.0.1' })

const slotOf = (pod: PodView, heir?: PodView, holders: readonly string[] = [], kept = holders) => {
  const lease = makeLease(pod, { holders, ...(heir && { heir: heirOf(heir) }) })
  return makeSlot(
    lease,
    kept.map(node => coldCopy(lease, node)),
  )
}

/** A set whose numbers are those of its pods. */
function world(
  pods: readonly PodView[],
  slots: readonly SlotMemory[],
  nodes: readonly string[],
  over: Partial<Snapshot> = {},
  wish: Partial<Snapshot['set']> = {},
): Snapshot {
  const count = (kind: PodView['kind']) => pods.filter(pod => pod.kind === kind).length
  const numbers = { replicas: count('primary'), hotBackups: count('hotbackup'), ...wish }
  return makeMemorySnapshot(numbers, pods, slots, over, nodes)
}

const withMemory = (s: Snapshot, over: Partial<MemoryView>): Snapshot =>
  s.memory === undefined ? s : { ...s, memory: { ...s.memory, ...over } }

const withNode = (s: Snapshot, name: string, over: Partial<NodeView>): Snapshot => {
  const nodes = new Map(s.memory?.nodes)
  nodes.set(name, { name, ready: true, problem: undefined, ...over })
  return withMemory(s, { nodes })
}

/** The state that was seen in a cluster: the understudy is beside the primary, and node b has room. */
const p0 = primary('p0', 0, 'a')
const h0 = hot('h0', 'a')
const beside = (over: Partial<Snapshot> = {}, wish: Partial<Snapshot['set']> = {}) =>
  world([p0, h0], [slotOf(p0, undefined, ['b'])], ['a', 'b'], over, wish)

const due = (s: Snapshot, uid = 'uid-h0'): Snapshot => ({
  ...s,
  stranded: { uid, dueAt: s.monotonicNow },
})
const deleted = (s: Snapshot) => ofType(s, 'delete').map(({ pod, reason }) => [pod.name, reason])
const nearOf = (s: Snapshot) => ofType(s, 'create').map(({ near }) => near?.nodes)

describe('a hot backup is stranded', () => {
  it('on the node of the primary that it should cover, if another node could cover it', () => {
    expect(strandedPods(beside())).toEqual(['uid-h0'])
  })

  it('ready or not', () => {
    const s = beside()
    expect(strandedPods({ ...s, pods: [p0, { ...h0, ready: false }] })).toEqual(['uid-h0'])
  })

  it('not if every slot has its heir', () => {
    const h1 = hot('h1', 'b')
    const s = world([p0, h0, h1], [slotOf(p0, h1, ['b'])], ['a', 'b'])
    expect(strandedPods(s)).toBeUndefined()
  })

  it('on the node of primaries that share the heir elsewhere, if another node could cover one of them', () => {
    const p1 = primary('p1', 1, 'a')
    const h1 = hot('h1', 'b')
    const shared = [slotOf(p0, h1, ['b']), slotOf(p1, h1, ['b'])]
    const pods = [p0, p1, h0, h1]
    expect(strandedPods(world(pods, shared, ['a', 'b']))).toEqual(['uid-h0'])
    // It could cover a slot, or there is no second understudy at all.
    expect(strandedPods(world([p0, p1, hot('h0', 'c'), h1], shared, ['a', 'b', 'c']))).toEqual([])
    expect(strandedPods(world([p0, p1, h1], shared, ['a', 'b']))).toEqual([])
    const ownHeirs = [slotOf(p0, h1, ['b']), slotOf(p1, hot('h2', 'b'), ['b'])]
    expect(strandedPods(world([...pods, hot('h2', 'b')], ownHeirs, ['a', 'b']))).toBeUndefined()
  })

  it('not while another hot backup could be heir, or has no node yet', () => {
    for (const h1 of [hot('h1', 'b'), hot('h1', undefined)])
      expect(strandedPods(world([p0, h0, h1], [slotOf(p0)], ['a', 'b']))).toEqual([])
  })

  it('not if no other node could cover the slot', () => {
    const s = beside()
    const machine = { architecture: 'x86_64', kernel: '6.1', criu: '4.0' }
    const onA = withNode(s, 'a', { machine })
    for (const no of [
      world([p0, h0], [slotOf(p0)], ['a']),
      withNode(s, 'b', { ready: false }),
      withNode(s, 'b', { forbidden: true }),
      withNode(s, 'b', { closed: true }),
      withNode(onA, 'b', { machine: { ...machine, architecture: 'aarch64' } }),
    ])
      expect(strandedPods(no)).toEqual([])
    expect(strandedPods(withNode(onA, 'b', { machine }))).toEqual(['uid-h0'])
  })

  it('on a node whose machine cannot run the memory of the slot', () => {
    const machine = { architecture: 'x86_64', kernel: '6.1', criu: '4.0' }
    const s = world([p0, hot('h0', 'old')], [slotOf(p0)], ['a', 'b', 'old'])
    expect(strandedPods(s)).toEqual([])
    const measured = withNode(withNode(s, 'a', { machine }), 'old', {
      machine: { ...machine, kernel: '5.4' },
    })
    expect(strandedPods(measured)).toEqual(['uid-h0'])
  })

  it('not where only nodes with primaries are left, and anti-affinity is required', () => {
    const p1 = primary('p1', 1, 'b')
    const s = (antiAffinity: Snapshot['set']['antiAffinity'], nodes: readonly string[]) =>
      strandedPods(world([p0, p1, h0, hot('h1', 'a')], slots, nodes, {}, { antiAffinity }))
    const slots = [slotOf(p0), slotOf(p1, hot('h1', 'a'), ['a'])]
    expect(s('Required', ['a', 'b'])).toEqual([])
    expect(s('Preferred', ['a', 'b'])).toEqual(['uid-h0'])
    expect(s('Required', ['a', 'b', 'c'])).toEqual(['uid-h0'])
  })

  it('not if it is the heir of a slot, or was called to one', () => {
    const p1 = primary('p1', 1, 'b')
    expect(strandedPods(world([p0, p1, h0], [slotOf(p0), slotOf(p1, h0, ['a'])], ['a', 'b', 'c']))).toEqual(
      [],
    )
  })

  it('not if it is the only one on a node with memory of a slot that it could take', () => {
    const machine = { architecture: 'x86_64', kernel: '6.1', criu: '4.0' }
    const older = { machine: { ...machine, kernel: '5.4' } }
    // The heir of slot 1 cannot run the memory of slot 0. The other one is beside the primary of slot 0, and the second
    // holder of slot 1.
    const p1 = primary('p1', 1, 'c')
    const h1 = hot('h1', 'd')
    const s = world([p0, p1, h0, h1], [slotOf(p0), slotOf(p1, h1, ['d', 'a'])], ['b'])
    const nodes = [
      ['a', { machine }],
      ['c', older],
      ['d', older],
    ] as const
    const mixed = nodes.reduce((so, [name, over]) => withNode(so, name, over), s)
    expect(strandedPods(mixed)).toEqual([])
    const alone = world([p0, p1, h0, h1], [slotOf(p0), slotOf(p1, h1, ['d'])], ['b'])
    expect(strandedPods(nodes.reduce((so, [name, over]) => withNode(so, name, over), alone))).toEqual([
      'uid-h0',
    ])
  })

  it('not if the clone of a slot is frozen in it', () => {
    const s = beside()
    const slot = slotOf(p0, undefined, ['b'])
    const frozen = { ...slot, copies: [makeCopy(slot.lease, h0, 'Frozen')] }
    expect(strandedPods(withMemory(s, { slots: new Map([[0, frozen]]) }))).toEqual([])
  })
})

describe('a stranded hot backup stays', () => {
  it.each<[string, Snapshot]>([
    ['while the set is paused', beside({}, { paused: true })],
    ['while the set lacks hot backups', beside({}, { hotBackups: 2 })],
    ['while the set has too many', beside({}, { hotBackups: 0 })],
    ['while a slot has no primary', beside({}, { replicas: 2 })],
    ['while a primary is not ready', { ...beside(), pods: [{ ...p0, ready: false }, h0] }],
    ['while it wakes', { ...beside(), pods: [p0, { ...h0, waking: true }] }],
    ['during a roll', beside({ templateHash: 'next' })],
    ['while a former primary retires', beside({ retired: [{ ...p0, succeededAt: undefined }] })],
    [
      'while memory must not be kept',
      withMemory(beside(), { refused: { reason: 'MemoryNotAllowed', message: 'not allowed' } }),
    ],
  ])('%s', (_, s) => {
    expect(strandedPods(s) ?? []).toEqual([])
  })

  it('during a handover', () => {
    const slot = slotOf(p0, undefined, ['b'])
    const asked = { ...slot, lease: { ...slot.lease, handover: 'uid-other' } }
    expect(strandedPods(withMemory(beside(), { slots: new Map([[0, asked]]) }))).toEqual([])
  })

  it('but is replaced where a roll waits for the user', () => {
    expect(strandedPods(beside({ templateHash: 'next' }, { updateStrategy: 'OnDelete' }))).toEqual(['uid-h0'])
  })
})

describe('a stranded hot backup is replaced', () => {
  it('once its time has come, and not before', () => {
    const s = beside()
    const waits = { ...s, stranded: { uid: 'uid-h0', dueAt: s.monotonicNow + 7_000 } }
    expect([deleted(waits), plan(waits).requeueAfterMs]).toEqual([[], 7_000])
    expect(deleted(due(s))).toEqual([['h0', 'Stranded']])
  })

  it('by one that prefers the node that can cover the slot; then nothing is left to do', () => {
    const clock = createFakeClock()
    const strandings = createStrandings(clock)
    const answers = { comes: () => true }
    const observed = (s: Snapshot): Snapshot => {
      const stranded = strandings.note(strandedPods(s))
      return stranded === undefined ? s : due(s, stranded.uid)
    }
    const first = observed(beside())
    expect(deleted(first)).toEqual([['h0', 'Stranded']])
    const without = observed(played(first, plan(first), answers))
    expect(nearOf(without)).toEqual([['b']])
    let s = played(without, plan(without), answers)
    expect(s.pods.find(({ kind }) => kind === 'hotbackup')?.node).toBe('b')
    for (let passes = 0; plan(observed(s)).tiers.length > 0; passes += 1) {
      if (passes > 5) throw new Error('does not come to rest')
      s = played(s, plan(observed(s)), answers)
    }
    expect(s.memory?.slots.get(0)?.lease.heir?.name).toBe(s.pods.find(({ node }) => node === 'b')?.name)
    expect(strandedPods(s)).toBeUndefined()
  })

  it('by one that prefers the node that can cover one of the slots which share an heir', () => {
    const p1 = primary('p1', 1, 'a')
    const h1 = hot('h1', 'b')
    const shared = [slotOf(p0, h1, ['b']), slotOf(p1, h1, ['b'])]
    const without = world([p0, p1, h1], shared, ['a', 'b', 'c'], {}, { hotBackups: 2, antiAffinity: 'None' })
    expect(nearOf(without)).toEqual([['b', 'c']])
  })

  it('one of several at a time', () => {
    const h1 = hot('h1', 'a')
    const s = world([p0, h0, h1], [slotOf(p0, undefined, ['b'])], ['a', 'b'])
    expect(strandedPods(s)).toEqual(['uid-h0', 'uid-h1'])
    expect(deleted(due(s))).toEqual([['h0', 'Stranded']])
  })
})

describe('a new hot backup prefers nodes', () => {
  const takenOver = (over: Partial<SlotMemory> = {}) => {
    const lost = makePrimary('p0', 0, { node: 'a', ...dead }, died)
    const heir = hot('h0', 'b')
    const lease = makeLease(lost, { heir: heirOf(heir), holders: ['b'], kept: ['b'] })
    const slot = makeSlot(lease, [makeCopy(lease, heir, 'Frozen')], {
      vacantSince: 0,
      sourceKeeps: true,
      ...over,
    })
    return world([lost, heir], [slot], ['a', 'b'], { monotonicNow: 9_000 })
  }

  it('where it can cover the slot that another one takes over in the same pass', () => {
    const s = takenOver()
    expect(ofType(s, 'promote').map(({ pod }) => pod.name)).toEqual(['h0'])
    expect(ofType(s, 'create')).toMatchObject([{ near: { nodes: ['a'], besidePrimary: true } }])
  })

  it('but not the one whose primary its voters call silent', () => {
    const votes = {
      silent: new Set<string>(),
      termSeenAt: 0,
      statedAt: 1,
      suspectedAt: 1,
      isHeard: false,
      isReachable: true,
      unheardMs: 5_000,
    }
    expect(nearOf(takenOver({ votes }))).toEqual([undefined])
  })

  it('only for slots without heir', () => {
    const h1 = hot('h1', 'b')
    expect(nearOf(world([p0, h1], [slotOf(p0, h1, ['b'])], ['a', 'b', 'c'], {}, { hotBackups: 2 }))).toEqual([
      undefined,
    ])
  })

  it('none where no node could cover the slot', () => {
    expect(nearOf(world([p0], [slotOf(p0)], ['a'], {}, { hotBackups: 1 }))).toEqual([undefined])
  })

  it('for the most slots, then those with their memory, then those without a primary', () => {
    const p1 = primary('p1', 1, 'b')
    const of = (kept: readonly string[], nodes: readonly string[]) =>
      nearOf(
        world(
          [p0, p1],
          [slotOf(p0, undefined, kept), slotOf(p1, undefined, kept)],
          nodes,
          {},
          { hotBackups: 1 },
        ),
      )
    expect(of(['d'], ['a', 'b', 'c', 'd'])).toEqual([['d', 'c', 'a', 'b']])
    expect(of(['b'], ['a', 'b', 'c'])).toEqual([['c', 'b', 'a']])
  })

  it('for different slots, if several pods are made', () => {
    const p1 = primary('p1', 1, 'b')
    const s = world([p0, p1], [slotOf(p0), slotOf(p1)], ['a', 'b'], {}, { hotBackups: 3 })
    expect(nearOf(s)).toEqual([['a', 'b'], ['b'], undefined])
  })

  it('beside a cold backup that becomes hot only what that one leaves open', () => {
    const cold = makePod('c0', 'coldbackup', { node: 'b', stage: stageOf(h0) })
    const s = world([p0, cold], [slotOf(p0)], ['a', 'b', 'c'], {}, { hotBackups: 2 })
    expect(nearOf(s)).toEqual([undefined])
  })
})

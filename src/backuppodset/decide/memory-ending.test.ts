import { describe, expect, it } from 'vitest'
import type { NodeView, SlotMemory } from '../../slot/decide/memory-view.ts'
import { makeCopy, makeLease, makeSlot } from '../../slot/testing/slots.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { actions, dead, died, ofType, plan } from '../testing/decided.ts'
import { makeMemorySnapshot, makePrimary, makeUnderstudy, stageOf } from '../testing/memory.ts'

describe('a primary that hangs', () => {
  const hung = makePrimary('p0', 0, { ready: false, unreadySince: 0 })
  const h0 = makeUnderstudy('h0')
  const lease = makeLease(hung, { heir: { name: 'h0', uid: h0.uid, ip: '10.0.0.1' }, holders: ['n-h0'] })
  const at = (endingSince: number | undefined, nodes: readonly string[], pod = hung) => {
    const held = endingSince === undefined ? lease : { ...lease, ending: hung.uid }
    const slot = makeSlot(held, [makeCopy(lease, h0, 'Frozen')], { endingSince })
    return makeMemorySnapshot(
      { replicas: 1, hotBackups: 1 },
      [pod, h0],
      [slot],
      { monotonicNow: 10_000 },
      nodes,
    )
  }

  it('D7.ending: is ended before another one is called, so that two never run; not for ever', () => {
    const first = at(undefined, ['n-p0', 'n-h0'])
    expect(actions(first)).toMatchObject([
      { type: 'writeSlot', lease: { ending: hung.uid, epoch: 1, incarnation: lease.incarnation } },
    ])
    const waits = at(4_000, ['n-p0', 'n-h0'])
    expect(actions(waits)).toEqual([])
    expect(plan(waits).requeueAfterMs).toBe(4_000)
    expect(ofType(at(0, ['n-p0', 'n-h0']), 'promote')).toMatchObject([
      { lease: { ending: undefined, epoch: 2 } },
    ])
  })

  it('D7.ending: at once where its agent has said that it has ended, and where no agent is there to say it', () => {
    const ended = makePrimary('p0', 0, dead, died)
    expect(ofType(at(9_000, ['n-p0', 'n-h0'], ended), 'promote')).toHaveLength(1)
    expect(ofType(at(undefined, ['n-h0']), 'promote')).toHaveLength(1)
  })

  it('D7.ending: one that is well again meanwhile stays', () => {
    const well = makePrimary('p0', 0)
    expect(actions(at(9_000, ['n-p0', 'n-h0'], well))).toMatchObject([
      { type: 'writeSlot', lease: { ending: undefined } },
    ])
  })
})

describe('D7.ending: a pod that was called and did not answer in time', () => {
  const p0 = makePrimary('p0', 0)
  const h1 = makeUnderstudy('h1')
  const slow = makeUnderstudy('h0', {}, { failed: 'it did not serve within 10 s', late: true })
  const lease = makeLease(p0, {
    ...{ holder: { name: 'h0', uid: slow.uid }, node: 'n-h0', epoch: 2, holders: ['n-h1'] },
    kept: ['n-h1'],
  })
  const told = { ...lease, ending: slow.uid }
  const able = ['n-h0', 'n-h1']
  const wish = { replicas: 1, hotBackups: 2 }
  const at = (
    given: typeof lease,
    over: Partial<SlotMemory> = {},
    pods: readonly PodView[] = [slow, h1],
    nodes: readonly string[] = able,
  ) => {
    const slot = makeSlot(given, [makeCopy(given, h1, 'Staged')], over)
    return makeMemorySnapshot(wish, pods, [slot], { monotonicNow: 50_000 }, nodes)
  }

  it('is ended before another one is called, for it may run by now; not for ever', () => {
    expect(ofType(at(lease), 'promote')).toEqual([])
    expect(ofType(at(lease), 'writeSlot')).toMatchObject([
      { lease: { ...lease, ending: slow.uid }, version: '1' },
    ])
    const waits = at(told, { endingSince: 44_000 })
    expect(actions(waits)).toEqual([])
    expect(plan(waits).requeueAfterMs).toBe(4_000)
    expect(ofType(at(told, { endingSince: 40_000 }), 'promote')).toMatchObject([
      { pod: { name: 'h1' }, lease: { ending: undefined, epoch: 3 } },
    ])
  })

  it('and the next one is called at once where it has ended, cannot run, or no agent is there to end it', () => {
    const calls = (pod: PodView, nodes = able, of = lease) =>
      ofType(at(of, { endingSince: 50_000 }, [pod, h1], nodes), 'promote').map(it => it.pod.name)
    expect(calls(slow, able, told)).toEqual([])
    expect(calls(slow, ['n-h1'])).toEqual([])
    expect(calls(slow, ['n-h1'], told)).toEqual(['h1'])
    expect(calls(makeUnderstudy('h0', {}, { failed: 'its app has ended', died: true }))).toEqual(['h1'])
    expect(calls(makeUnderstudy('h0', {}, { failed: 'torn' }))).toEqual(['h1'])
  })

  it('is ended first also where the agent of its node only starts, for it may have come on stage before', () => {
    const started = (silent: boolean): Snapshot => {
      const { memory, ...s } = at(silent ? told : lease, silent ? { endingSince: 50_000 } : {})
      if (memory === undefined) throw new Error('the set keeps memory')
      const starting: NodeView = { name: 'n-h0', ready: false, silent, problem: undefined }
      return { ...s, memory: { ...memory, nodes: new Map([...memory.nodes, ['n-h0', starting]]) } }
    }
    expect(actions(started(false))).toMatchObject([{ type: 'writeSlot', lease: { ending: slow.uid } }])
    expect(ofType(started(true), 'promote')).toMatchObject([{ pod: { name: 'h1' } }])
  })

  it('may run once its agent has told that it resumes: then the next one waits for its end or the loss of its node, however long the agent is away', () => {
    const resuming = { ...slow, stage: { ...stageOf(slow), resuming: true } }
    const long = { endingSince: -1_000_000 }
    const waits = (over: Partial<SlotMemory> = {}, nodes = ['n-h1']) =>
      at(told, { ...long, ...over }, [resuming, h1], nodes)
    for (const s of [waits(), waits({}, able)]) {
      expect(actions(s)).toEqual([])
      expect(plan(s).requeueAfterMs).toBe(2_000)
    }
    const [first] = ofType(waits({ isNodeLost: true }), 'promote')
    expect(first).toMatchObject({ pod: { name: 'h1' } })
    expect(first?.unresumed).toBeUndefined()
    // The cache may not show yet that it resumes.
    expect(ofType(at(told, long, [slow, h1], ['n-h1']), 'promote')).toMatchObject([
      { pod: { name: 'h1' }, unresumed: { name: 'h0', uid: slow.uid } },
    ])
  })

  it('goes on where nobody else is there any more, and when it is called again', () => {
    expect(ofType(at(told, { endingSince: 49_000 }, [slow]), 'writeSlot')).toMatchObject([
      { lease: { ending: undefined, holder: { name: 'h0' } } },
    ])
    const called = { kind: 'primary', slot: 0, epoch: 2, ready: false, waking: true } as const
    const again = makeUnderstudy('h0', called, { promoting: true })
    expect(ofType(at(told, { endingSince: 49_000 }, [again, h1]), 'writeSlot')).toMatchObject([
      { lease: { ending: undefined, holder: { name: 'h0' } } },
    ])
  })

  it('has as long as those before it had, when it is not the first', () => {
    const times = { comingSince: 20_000, calledSince: 38_000 }
    expect(actions(at(lease, times))).toEqual([])
    expect(plan(at(lease, times)).requeueAfterMs).toBe(6_000)
    expect(ofType(at(lease, { comingSince: 26_000, calledSince: 38_000 }), 'writeSlot')).toMatchObject([
      { lease: { ending: slow.uid } },
    ])
    // Without an agent on its node the pod does not come.
    expect(ofType(at(lease, times, [slow, h1], ['n-h1']), 'writeSlot')).toMatchObject([
      { lease: { ending: slow.uid } },
    ])
    // A pod that could follow is made meanwhile, and a pod that was made stays.
    const none = { ...at(lease, times, [slow]), set: { ...at(lease).set, hotBackups: 1 } }
    expect(ofType(none, 'create')).toMatchObject([{ successorOf: { slot: 0 } }])
    for (const over of [times, {}]) {
      const made = at(lease, over, [slow, makeUnderstudy('h1', {}, { successorOf: 0 })])
      expect(ofType({ ...made, set: { ...made.set, hotBackups: 1 } }, 'delete')).toEqual([])
    }
  })

  it('has the time to answer once its agent has told that it resumes, however long ago it was called', () => {
    const comes = { ...slow, stage: { ...stageOf(slow), resuming: true } }
    const resumes = (resumingSince: number, given = lease) =>
      at(given, { comingSince: 20_000, calledSince: 20_000, resumingSince }, [comes, h1])
    expect(actions(resumes(49_000))).toEqual([])
    expect(plan(resumes(41_000)).requeueAfterMs).toBe(1_000)
    const [late] = ofType(resumes(40_000), 'writeSlot')
    expect(late).toMatchObject({ lease: { ending: slow.uid } })
    expect(late?.unresumed).toBeUndefined()
    // Its agent ends it as soon as it reads this Lease.
    expect(actions(resumes(49_000, told))).toEqual([])
    // The cache may not show yet that it resumes.
    expect(ofType(at(lease), 'writeSlot')).toMatchObject([{ unresumed: { name: 'h0', uid: slow.uid } }])
  })

  it('is not deleted for its gate, which it has passed, if it was a cold backup', () => {
    const cold = { ...slow, kind: 'coldbackup', gate: 'open' } as const
    const others = [makeUnderstudy('c1', { kind: 'coldbackup', gate: 'open' }), h1]
    const s = at(lease, {}, [cold, ...others])
    const deleted = ofType({ ...s, set: { ...s.set, hotBackups: 1, coldBackups: 1 } }, 'delete')
    expect(deleted).toMatchObject([{ pod: { name: 'c1' }, reason: 'GateSpent' }])
  })
})

import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../kube/random.ts'
import type { PulledSlot } from '../../slot/decide/pulled-view.ts'
import type { LostPrimary } from '../../slot/decide/snapshot.ts'
import { makePull } from '../../slot/testing/pulled.ts'
import type { PodView, Snapshot } from '../snapshot.ts'
import { actionsOf, makePod, makePods, makeSnapshot } from '../testing/snapshots.ts'
import { decide } from './decide.ts'

const pull = makePull()
const held = (slot: number, name: string, over: Partial<PulledSlot> = {}): [number, PulledSlot] => [
  slot,
  {
    incarnation: `life-${slot}`,
    generation: 7,
    bytes: 10,
    takenAt: 500,
    holder: { name, uid: `uid-${name}`, epoch: 1, restarts: 0 },
    refusals: 0,
    ...over,
  },
]
const lost = (slot: number, name: string): [number, LostPrimary] => [
  slot,
  { name, slot, epoch: 1, reason: 'PodDeleted', seenAt: 900 },
]
const inSet = (pod: PodView, over: Partial<NonNullable<PodView['pulled']>> = {}): PodView => ({
  ...pod,
  pulled: { restarts: 0, running: true, emptied: false, refused: undefined, ...over },
})
const plan = (
  set: Partial<Snapshot['set']>,
  pods: readonly PodView[],
  slots: readonly [number, PulledSlot][],
  over: Partial<Snapshot> = {},
) =>
  actionsOf(
    decide(
      makeSnapshot({ pull, ...set }, pods, { pulled: { slots: new Map(slots) }, ...over }),
      seededRandom(1),
    ),
  )
const backups = (h: number, c: number) => makePods(0, h, c).map(pod => inSet(pod))

describe('a successor is given the state of the primary that it succeeds', () => {
  it('D9.pulled: a hot backup, else a cold one, else a new pod', () => {
    const over = { lost: new Map([lost(0, 'p0')]), epochs: new Map([[0, 1]]) }
    const state = { incarnation: 'life-0', generation: 7, bytes: 10, takenAt: 500 }
    const role = { slot: 0, epoch: 2 }
    expect(plan({}, backups(1, 1), [held(0, 'p0')], over)[0]).toMatchObject({
      type: 'convert',
      pod: { name: 'h0' },
      to: 'primary',
      wake: false,
      role,
      state,
    })
    expect(plan({}, backups(0, 1), [held(0, 'p0')], over)[0]).toMatchObject({
      type: 'convert',
      pod: { name: 'c0' },
      wake: true,
      state,
    })
    expect(plan({}, [], [held(0, 'p0')], over)[0]).toMatchObject({
      type: 'create',
      kind: 'primary',
      role,
      state,
    })
  })

  it('nobody inherits by the number of a slot alone: neither a new one, nor one whose last primary had no state', () => {
    const scaled = plan({ replicas: 1 }, [], [held(0, 'old')])
    expect(scaled[0]).toMatchObject({ type: 'create', role: { slot: 0, replaces: undefined } })
    expect(scaled[0]).not.toHaveProperty('state')
    const other = plan({}, backups(1, 0), [held(0, 'old')], { lost: new Map([lost(0, 'p0')]) })
    expect(other[0]).not.toHaveProperty('state')
    expect(other[0]).toMatchObject({ pod: { name: 'h0' }, role: { startsEmpty: 'NoState' } })
  })

  it('a lost slot comes before a free one of a lower number, where its state would be left behind', () => {
    const over = { lost: new Map([lost(1, 'p1')]), epochs: new Map([[1, 1]]) }
    expect(plan({}, backups(1, 0), [held(1, 'p1')], over)[0]).toMatchObject({
      role: { slot: 1 },
      state: { generation: 7 },
    })
    // The same in sets that pull no state: the address belongs to the slot.
    const paper = actionsOf(decide(makeSnapshot({}, makePods(0, 1, 0), over), seededRandom(1)))
    expect(paper[0]).toMatchObject({ role: { slot: 1, epoch: 2, replaces: { name: 'p1' } } })
  })

  it('who refuses it is passed over; after three, the slot begins anew and says so', () => {
    const over = { lost: new Map([lost(0, 'p0')]) }
    const refused = (name: string, kind: PodView['kind']) =>
      inSet(makePod(name, kind), { refused: 'answered 500' })
    const hot = refused('h0', 'hotbackup')
    expect(
      plan({ hotBackups: 2 }, [hot, ...backups(0, 1)], [held(0, 'p0', { refusals: 1 })], over)[0],
    ).toMatchObject({
      type: 'convert',
      pod: { name: 'c0' },
      state: { generation: 7 },
    })
    const exhausted = [hot, refused('c0', 'coldbackup')]
    const third = plan({}, exhausted, [held(0, 'p0', { refusals: 2 })], over)[0]
    expect(third).toMatchObject({ type: 'create', kind: 'primary', state: { generation: 7 } })
    const last = plan({}, exhausted, [held(0, 'p0', { refusals: 3 })], over)[0]
    expect(last).toMatchObject({ type: 'create', kind: 'primary', role: { slot: 0, startsEmpty: 'Refused' } })
    expect(last).not.toHaveProperty('state')
  })
})

describe('an app that was started again where it is', () => {
  const primary = inSet(makePod('p0', 'primary', { slot: 0, epoch: 1, ready: false, unreadySince: 0 }), {
    restarts: 1,
    emptied: true,
  })
  it('is succeeded by a ready hot backup', () => {
    expect(plan({ coldBackups: 0 }, [primary, ...backups(1, 0)], [held(0, 'p0')])[0]).toMatchObject({
      type: 'convert',
      pod: { name: 'h0' },
      role: { slot: 0, epoch: 2, replaces: { name: 'p0', reason: 'Died' } },
      state: { generation: 7 },
    })
  })
  it('else is given its state back where it is, once it runs', () => {
    const set = { hotBackups: 0, coldBackups: 0 }
    expect(plan(set, [primary], [held(0, 'p0')])).toMatchObject([
      { type: 'restore', pod: { name: 'p0' }, slot: 0 },
    ])
    const down = inSet(primary, { restarts: 1, emptied: true, running: false })
    expect(plan(set, [down], [held(0, 'p0')])).toEqual([])
    expect(plan(set, [{ ...primary, waking: true }], [held(0, 'p0')])).toEqual([])
  })
})

describe('a roll', () => {
  const old = inSet(makePod('p0', 'primary', { slot: 0, epoch: 1, templateHash: 'old' }))
  const rolling = { updateStrategy: 'RollingUpdate', coldBackups: 0 } as const
  it('D3.http-rolls: gives the state on', () => {
    expect(plan(rolling, [old, ...backups(1, 0)], [held(0, 'p0')])).toMatchObject([
      { type: 'convert', role: { replaces: { reason: 'Replaced' } }, state: { generation: 7 } },
    ])
    expect(plan({ ...rolling, hotBackups: 0 }, [old], [held(0, 'p0')])).toMatchObject([
      { type: 'create', kind: 'primary', state: { generation: 7 } },
    ])
  })
  it('waits while there is no state, and while one is refused: nothing is lost by an edit', () => {
    expect(plan(rolling, [old, ...backups(1, 0)], [])).toEqual([])
    const refusing = inSet(makePod('h0', 'hotbackup'), { refused: 'answered 400' })
    expect(plan(rolling, [old, refusing], [held(0, 'p0')])).toEqual([])
  })
})

import { describe, expect, it } from 'vitest'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { PodView, Snapshot } from '../observe/snapshot.ts'
import {
  container,
  died,
  lease,
  nameOf,
  pod,
  snapshot,
  typesOf,
  usableAt,
} from '../testing/fake/snapshots.ts'
import { desiredTasks } from './desired-tasks.ts'
import { slotReportsOf } from './slot-reports.ts'

describe('a primary', () => {
  const world = (over: Partial<PodView> = {}, slot: Partial<SlotLease> = {}) =>
    snapshot({ pods: [pod('p', over)], slots: [lease(slot)] })

  it('is guarded and saved', () => {
    expect(typesOf(desiredTasks(world()))).toEqual(['checkpoint', 'watchPrimary'])
    // A slot that must not be saved now keeps its copies.
    expect(typesOf(desiredTasks(world({}, { unsaved: true })))).toEqual(['watchPrimary'])
  })

  it('D7.grant: has a connection kept to the agent of its heir, for as long as that has a grant', () => {
    const heir = { name: 'h', uid: 'uid-h', ip: '10.0.0.2' }
    const grant = { number: 3, heir: { uid: 'uid-h', node: 'b' }, isRevoked: false }
    const grants = { records: new Map(), alive: new Map([[nameOf(), 1]]) }
    const reports = new Map([['b', usableAt('b', lease())]])
    const tasksOf = (slot: Partial<SlotLease>, over: Partial<Snapshot> = {}) =>
      typesOf(desiredTasks({ ...world({}, slot), grants, reports, ...over }))
    expect(tasksOf({ heir, grant })).toContain('reachHeir')
    for (const without of [
      tasksOf({ heir }),
      tasksOf({ heir, grant: { ...grant, isRevoked: true } }),
      tasksOf({ heir: { ...heir, uid: 'uid-i' }, grant }),
      tasksOf({ heir, grant }, { reports: new Map() }),
      tasksOf({ heir, grant }, { grants: { ...grants, alive: new Map() } }),
    ])
      expect(without).not.toContain('reachHeir')
  })

  it('D6.probes: a promoted one goes on being probed when its set keeps no memory any more', () => {
    const record = { containers: { app: 'containerd://c0ffee' } }
    const without = (over: Partial<PodView> = {}, rest: Partial<Snapshot> = {}) =>
      snapshot({
        pods: [
          pod('p', {
            understudy: true,
            serving: { status: 'True', reason: 'OnStage', message: 'epoch 2', record },
            ...over,
          }),
        ],
        ...{ slots: [], ...rest },
      })
    expect(typesOf(desiredTasks(without()))).toEqual(['probe'])
    const notAnswering = { status: 'False', reason: 'NotAnswering', message: '503', record: {} }
    expect(typesOf(desiredTasks(without({ serving: notAnswering })))).toEqual(['probe'])
    // A slot of another set of this name, which was deleted, is not its own.
    const foreign = lease({ owner: 'before', holder: { name: 'h', uid: 'uid-h' } })
    expect(typesOf(desiredTasks(without({ owner: 'now' }, { slots: [foreign] })))).toContain('probe')
    // The app was never on stage, it has ended, or its kubelet probes it.
    for (const it of [
      without({ serving: undefined }),
      without({ containers: [container({ containerId: 'containerd://another' })] }),
      without({ serving: died(nameOf()) }),
      without({ terminating: true }),
      without({ understudy: false }),
      without({ kind: 'hotbackup' }),
      without({ kind: 'retired' }),
      // The Lease of its slot is there: another pod holds the slot, or this one, whose promotion is not done.
      without({}, { slots: [lease({ holder: { name: 'h', uid: 'uid-h' }, epoch: 2 })] }),
      without({}, { slots: [lease()] }),
    ])
      expect(typesOf(desiredTasks(it))).not.toContain('probe')
  })

  it.each([{}, { handover: 'uid-h' }])('is not saved if another app runs in its place: %o', over => {
    const another = { containers: [container({ containerId: 'containerd://another' })] }
    expect(typesOf(desiredTasks(world(another, { containers: 'app=containerd://c0ffee', ...over })))).toEqual(
      ['watchPrimary'],
    )
  })

  it('stands still for its successor, but not again at once when that was in vain', () => {
    const called = world({}, { handover: 'uid-h' })
    expect(typesOf(desiredTasks(called))).toEqual(['handOver', 'watchPrimary'])
    const paused = { ...called, handoversPaused: new Set([nameOf()]) }
    expect(typesOf(desiredTasks(paused))).toEqual(['checkpoint', 'watchPrimary'])
    const said = (s: Snapshot) =>
      slotReportsOf(s, { latest: () => undefined, progress: () => undefined })[0]?.handoverPaused
    expect([said(called), said(paused)]).toEqual([undefined, true])
  })

  it.each([
    [
      'is not ready, which may come of its checkpoint',
      world({ ready: false }),
      ['checkpoint', 'watchPrimary'],
    ],
    ['has nobody who would keep its memory', world({}, { holders: ['a'] }), ['watchPrimary']],
    [
      'has no container yet',
      world({ containers: [container({ containerId: undefined, running: false })] }),
      [],
    ],
    ['is of a set that keeps no memory', { ...world(), slots: [] }, []],
    ['is of a slot whose policy is unknown', world({}, { policy: undefined }), ['watchPrimary']],
    ['is on a node that cannot', { ...world(), able: false }, ['watchPrimary']],
    ['died', { ...world(), dead: new Map([['uid-p', nameOf()]]) }, ['redirect']],
    ['died before this agent came', world({ serving: died(nameOf()) }), ['redirect']],
    [
      'died in an earlier life of its slot',
      world({ serving: died(nameOf({ incarnation: 'ffffffff' })) }),
      ['checkpoint', 'watchPrimary'],
    ],
    ['is deleted, and nobody has its memory', world({ terminating: true }), []],
  ] as const)('when it %s', (_, it, expected) => {
    expect(typesOf(desiredTasks(it))).toEqual(expected)
  })

  it('D7.endpoints: leaves its Services some time after its death, if it is still in them', () => {
    const served = { serving: { ...died(nameOf()), heirAnswers: true as const } }
    const another = { holder: { name: 'h', uid: 'uid-h' }, epoch: 2, ip: '10.0.0.2' }
    const typesAt = (over: Partial<PodView>, slot: Partial<SlotLease> = {}) =>
      typesOf(desiredTasks(world({ ...served, ...over }, slot)))
    expect(typesAt({})).toEqual(['leaveServices', 'redirect'])
    expect(typesAt({}, another)).toEqual(['leaveServices', 'redirect'])
    // A Service need not select by kind, and the Lease of the slot may be gone.
    expect(typesAt({ kind: 'retired' }, another)).toEqual(['leaveServices', 'redirect'])
    expect(typesOf(desiredTasks({ ...world(served), slots: [] }))).toEqual(['leaveServices'])
    expect(typesAt({ terminating: true }, another)).toEqual(['redirect'])
  })

  it('is buried when it is deleted and its memory is usable elsewhere', () => {
    const it = { ...world({ terminating: true }), reports: new Map([['b', usableAt('b', lease())]]) }
    expect(typesOf(desiredTasks(it))).toEqual(['stopPrimary'])
  })

  it('ends in its grace, with no duty, where the set has no place for its slot; with a place again it is buried', () => {
    const at = (it: Partial<SlotLease>) => ({
      ...world({ terminating: true }, it),
      reports: new Map([['b', usableAt('b', lease())]]),
    })
    expect(typesOf(desiredTasks(at({ retainedSince: '2030-01-01T00:00:00.000Z' })))).toEqual([])
    expect(typesOf(desiredTasks(at({})))).toEqual(['stopPrimary'])
  })

  it('D7.swap: is buried when its Lease says so, before anybody else is called', () => {
    const ending = world({ ready: false }, { ending: 'uid-p' })
    expect(typesOf(desiredTasks(ending))).toEqual(['stopPrimary'])
    expect(typesOf(desiredTasks(world({}, { ending: 'uid-of-another' })))).toEqual([
      'checkpoint',
      'watchPrimary',
    ])
    const buried = { ...ending, dead: new Map([['uid-p', nameOf()]]) }
    expect(typesOf(desiredTasks(buried))).toEqual(['redirect'])
  })

  it('is buried when another pod was called to its slot', () => {
    const called = world({ epoch: 1 }, { holder: { name: 'h', uid: 'uid-h' }, node: 'b', epoch: 2 })
    expect(typesOf(desiredTasks(called))).toEqual(['stopPrimary'])
    // Also while its containers are down: `stopPrimary` finds what still runs, and declares the end.
    const isDown = { containers: [container({ running: false, containerId: undefined })] }
    expect(typesOf(desiredTasks({ ...called, pods: [pod('p', { epoch: 1, ...isDown })] }))).toEqual([
      'stopPrimary',
    ])
    const dead = { ...called, dead: new Map([['uid-p', nameOf()]]) }
    expect(desiredTasks(dead)).toMatchObject([{ type: 'redirect', to: '127.0.0.1', isAwaited: false }])
  })

  it('is guarded anew when its heir, its containers or the sentinel change', () => {
    const versions = [
      world(),
      world({}, { heir: { name: 'h', uid: 'uid-h', ip: '10.0.0.9' } }),
      world({ containers: [container({ containerId: 'containerd://beef' })] }),
      { ...world(), sentinel: '2' },
    ].map(it => desiredTasks(it).find(({ type }) => type === 'watchPrimary')?.version)
    expect(new Set(versions).size).toBe(4)
  })
})

import { describe, expect, it } from 'vitest'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { PodView, Snapshot } from '../observe/snapshot.ts'
import {
  kept,
  lease,
  nameOf,
  peer,
  pod,
  policy,
  snapshot,
  typesOf,
  usableAt,
} from '../testing/fake/snapshots.ts'
import { desiredTasks } from './desired-tasks.ts'
import { isAtStake } from './slot-facts.ts'

describe('where connections to a dead primary go', () => {
  const heir = { name: 'h', uid: 'uid-h', ip: '10.0.0.9' }
  const way = (over: Partial<SlotLease>, more: Partial<Snapshot> = {}) => {
    const it = snapshot({ pods: [pod('p')], slots: [lease(over)], ...more })
    return desiredTasks(it).find(({ type }) => type === 'watchPrimary')
  }
  it('D7.grave: to its heir; to nobody where its memory has to start first; nowhere else where nobody has it', () => {
    const kept = { reports: new Map([['b', usableAt('b', lease())]]) }
    expect(way({ heir })).toMatchObject({ way: '10.0.0.9' })
    expect(way({}, kept)).toMatchObject({ way: '127.0.0.1' })
    expect(way({})).toMatchObject({ way: undefined })
  })

  it('not to an heir that has another slot by now: other memory would answer', () => {
    const other = lease({ name: 'web-1', holder: { name: 'h', uid: 'uid-h' }, node: 'b' })
    const both = { slots: [lease({ heir }), other] }
    expect(way({}, both)).toMatchObject({ way: undefined })
    expect(way({}, { ...both, reports: new Map([['b', usableAt('b', lease())]]) })).toMatchObject({
      way: '127.0.0.1',
    })
  })

  it('to whoever holds its slot, as soon as that is known', () => {
    const next = lease({ holder: { name: 'c', uid: 'uid-c' }, node: 'b', epoch: 2, ip: '10.0.0.7' })
    const dead = { dead: new Map([['uid-p', nameOf()]]) }
    const it = snapshot({ pods: [pod('p')], slots: [next], ...dead })
    const away = { type: 'redirect', pod: { name: 'p' }, isAwaited: false }
    expect(desiredTasks(it)).toMatchObject([{ ...away, to: '10.0.0.7' }])
    expect(desiredTasks({ ...it, slots: [{ ...next, ip: undefined }] })).toMatchObject([
      { ...away, to: '127.0.0.1' },
    ])
  })

  it('D7.grave: of a dead one that waits for a successor not to its heir either, once that has another slot', () => {
    const reports = new Map([['b', usableAt('b', lease())]])
    const dead = snapshot({ pods: [pod('p')], dead: new Map([['uid-p', nameOf()]]), reports })
    const waits = { type: 'redirect', isAwaited: true }
    const before = desiredTasks({ ...dead, slots: [lease({ heir })] })
    expect(before).toMatchObject([{ ...waits, to: '10.0.0.9' }])
    // Two slots have one heir, and both primaries died at once.
    const other = lease({ name: 'web-1', holder: { name: 'h', uid: 'uid-h' }, node: 'b' })
    const after = desiredTasks({ ...dead, slots: [lease({ heir }), other] })
    expect(after).toMatchObject([{ ...waits, to: '127.0.0.1' }])
    expect(after[0]?.version).not.toBe(before[0]?.version)
  })

  it('of a paused set nobody is succeeded: no grave is dug, nobody is ended, and none is kept closed', () => {
    const reports = new Map([['b', usableAt('b', lease())]])
    const world = (over: Partial<PodView>) =>
      snapshot({
        pods: [pod('p', over)],
        slots: [lease({ heir, policy: policy({ paused: true }) })],
        reports,
      })
    expect(desiredTasks(world({})).find(({ type }) => type === 'watchPrimary')).toMatchObject({
      way: undefined,
    })
    expect(typesOf(desiredTasks(world({ terminating: true })))).toEqual([])
    expect(typesOf(desiredTasks({ ...world({}), dead: new Map([['uid-p', nameOf()]]) }))).toEqual([])
  })
})

describe('what is at stake', () => {
  const slot = lease({ kept: ['b'], holders: ['b'] })
  const said = (over: object) => peer('b', { slotsKnown: true, slots: [{ ...entry, ...over }] })
  const entry = {
    namespace: 'default',
    name: 'web-0',
    incarnation: slot.incarnation,
    role: 'holder',
    generation: 5,
  } as const
  const none = { generation: 0 }
  const disk = { onDisk: { generation: 4, takenAt: '2030-01-01T00:00:00Z' } }
  it.each([
    ['nobody: its agent says that it has none', slot, said(none), false],
    ['nobody: nobody ever kept any of it', lease({ kept: [] }), undefined, false],
    ['who can bring it back', slot, said({ usable: 'Staged' }), true],
    ['D7.kept: who cannot bring it back now', slot, said({ reason: 'NodeNotReady' }), true],
    ['D7.kept: who has it on the disk only', slot, said({ ...none, ...disk }), true],
    ['D7.kept: who has not asked its disk yet', slot, said({ ...none, reason: 'DiskUnread' }), true],
    ['D7.kept: whose agent has only just started', slot, peer('b', { slotsKnown: false }), true],
    ['D7.kept: whose agent is of an earlier version', slot, peer('b'), true],
    ['D7.kept: who reports nothing at all', slot, undefined, true],
    [
      'D7.kept: a holder of which a Lease of an earlier version says nothing',
      lease({ kept: undefined }),
      undefined,
      true,
    ],
  ])('is what is kept by %s', (_, held, report, isIt) => {
    const reports = new Map(report === undefined ? [] : [['b', report] as const])
    expect(isAtStake(snapshot({ slots: [held], reports }), held)).toBe(isIt)
  })

  it('D7.kept: is what its own node has saved, if nobody else has anything', () => {
    const own = lease({ kept: [] })
    const world = snapshot({ slots: [own], kept: new Map([[nameOf(), kept()]]) })
    expect(isAtStake(world, own)).toBe(true)
    expect(isAtStake({ ...world, node: 'b' }, own)).toBe(false)
  })
})

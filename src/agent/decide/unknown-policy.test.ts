import { describe, expect, it } from 'vitest'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { PodView, Snapshot } from '../observe/snapshot.ts'
import {
  died,
  kept,
  lease,
  nameOf,
  peer,
  pod,
  snapshot,
  stored,
  typesOf,
  understudy,
  usableAt,
} from '../testing/fake/snapshots.ts'
import { desiredTasks } from './desired-tasks.ts'
import { slotReportsOf } from './slot-reports.ts'

describe('D7.policy: a slot whose policy is unknown', () => {
  const heir = { name: 'h', uid: 'uid-h', ip: '10.0.0.2' }
  const unknown = (over: Partial<SlotLease> = {}) => lease({ policy: undefined, ...over })
  const held = unknown({ node: 'b', holders: ['a'], heir })
  const frozen = { slot: nameOf(), epoch: 1, generation: 5, state: 'Frozen' as const }
  const world = (over: Partial<Snapshot> = {}) =>
    snapshot({
      ...{ pods: [understudy('h')], slots: [held], reports: new Map([['b', peer('b')]]) },
      ...{ kept: new Map([[nameOf(), kept()]]), stages: new Map([['uid-h', frozen]]) },
      ...over,
    })

  it('saves, fetches and freezes nothing on a holder, and its frozen clone stays', () => {
    expect(desiredTasks(world())).toMatchObject([{ type: 'discard', frozenToo: false }])
    // The agent has just started, and has not looked into the pod yet.
    expect(desiredTasks(world({ stages: new Map() }))).toMatchObject([{ type: 'discard', frozenToo: false }])
    // An app that no Lease names must not run, whatever is unknown.
    expect(
      desiredTasks(world({ stages: new Map([['uid-h', { ...frozen, state: 'Thawed' }]]) })),
    ).toMatchObject([{ type: 'discard', frozenToo: false }])
    // A clone of another slot, whose policy is known, is of no use here.
    const other = world({
      slots: [unknown({ name: 'web-1', node: 'b' }), lease({ node: 'b', holders: ['a'] })],
    })
    expect(desiredTasks({ ...other, kept: new Map() })).toContainEqual(
      expect.objectContaining({ type: 'discard', frozenToo: true }),
    )
  })

  it('fails over all the same: its primary is ended, and its successor takes over', () => {
    const called = unknown({ holder: { name: 'h', uid: 'uid-h' }, epoch: 2, holders: ['b'] })
    expect(typesOf(desiredTasks(world({ slots: [called] })))).toEqual(['promote'])
    const reports = new Map([['b', usableAt('b', lease())]])
    const primary = (over: Partial<PodView>, said: Partial<SlotLease>) =>
      typesOf(desiredTasks(snapshot({ pods: [pod('p', over)], slots: [unknown(said)], reports })))
    expect(primary({ terminating: true }, {})).toEqual(['stopPrimary'])
    expect(primary({}, { ending: 'uid-p' })).toEqual(['stopPrimary'])
    expect(primary({}, { holder: { name: 'h', uid: 'uid-h' }, epoch: 2 })).toEqual(['stopPrimary'])
    expect(primary({ serving: died(nameOf()) }, {})).toEqual(['redirect'])
    expect(primary({ understudy: false }, { handover: 'uid-h' })).toEqual(['watchPrimary'])
  })

  it('is usable by what is here, and the report says why nothing new comes', () => {
    const reported = (s: Snapshot) =>
      slotReportsOf(s, {
        latest: () => stored({ generation: 5 }),
        progress: () => undefined,
      })[0]
    expect(reported(world())).toMatchObject({
      ...{ role: 'holder', generation: 5, usable: 'Frozen', understudyUid: 'uid-h', reason: 'PolicyUnknown' },
    })
    const source = snapshot({ pods: [pod('p')], slots: [unknown()] })
    expect(reported(source)).toMatchObject({ role: 'source', generation: 5, reason: 'PolicyUnknown' })
  })
})

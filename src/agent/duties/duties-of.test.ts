import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { podConditions } from '../../api/pod-contract.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Stored } from '../../checkpoint/store.ts'
import { dutiesOf, isAtStake, isKeptElsewhere } from './duties-of.ts'
import type { Duty } from './duty.ts'
import { type KeptGenerations, slotReportsOf, understudyConditionOf } from './slot-reports.ts'
import type { PodView, Snapshot } from './snapshot.ts'
import {
  container,
  kept,
  lease,
  nameOf,
  peer,
  pod,
  policy,
  snapshot,
  understudy,
  usableAt,
} from './testing/snapshots.ts'

const types = (duties: readonly Duty[]) => duties.map(({ type }) => type).sort()
const onStage = { slot: nameOf(), epoch: 1, generation: 5, state: 'OnStage' } as const
const died = (slot: string) => ({
  status: 'False',
  reason: 'Died',
  message: 'container app (containerd://1) has ended',
  record: { diedWith: slot },
})

describe('a primary', () => {
  const world = (over: Partial<PodView> = {}, slot: Partial<SlotLease> = {}) =>
    snapshot({ pods: [pod('p', over)], slots: [lease(slot)] })

  it('is guarded and saved', () => {
    expect(types(dutiesOf(world()))).toEqual(['checkpoint', 'watchPrimary'])
    // A slot that must not be saved now keeps its copies.
    expect(types(dutiesOf(world({}, { unsaved: true })))).toEqual(['watchPrimary'])
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
    expect(types(dutiesOf(without()))).toEqual(['probe'])
    const notAnswering = { status: 'False', reason: 'NotAnswering', message: '503', record: {} }
    expect(types(dutiesOf(without({ serving: notAnswering })))).toEqual(['probe'])
    // A slot of another set of this name, which was deleted, is not its own.
    const foreign = lease({ owner: 'before', holder: { name: 'h', uid: 'uid-h' } })
    expect(types(dutiesOf(without({ owner: 'now' }, { slots: [foreign] })))).toContain('probe')
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
      expect(types(dutiesOf(it))).not.toContain('probe')
  })

  it('stands still for its successor, but not again at once when that was in vain', () => {
    const called = world({}, { handover: 'uid-h' })
    expect(types(dutiesOf(called))).toEqual(['handOver', 'watchPrimary'])
    const paused = { ...called, handoversPaused: new Set([nameOf()]) }
    expect(types(dutiesOf(paused))).toEqual(['checkpoint', 'watchPrimary'])
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
    expect(types(dutiesOf(it))).toEqual(expected)
  })

  it('is buried when it is deleted and its memory is usable elsewhere', () => {
    const it = { ...world({ terminating: true }), reports: new Map([['b', usableAt('b', lease())]]) }
    expect(types(dutiesOf(it))).toEqual(['stopPrimary'])
  })

  it('ends in its grace, with no duty, where the set has no place for its slot; with a place again it is buried', () => {
    const at = (it: Partial<SlotLease>) => ({
      ...world({ terminating: true }, it),
      reports: new Map([['b', usableAt('b', lease())]]),
    })
    expect(types(dutiesOf(at({ retainedSince: '2030-01-01T00:00:00.000Z' })))).toEqual([])
    expect(types(dutiesOf(at({})))).toEqual(['stopPrimary'])
  })

  it('D7.swap: is buried when its Lease says so, before anybody else is called', () => {
    const ending = world({ ready: false }, { ending: 'uid-p' })
    expect(types(dutiesOf(ending))).toEqual(['stopPrimary'])
    expect(types(dutiesOf(world({}, { ending: 'uid-of-another' })))).toEqual(['checkpoint', 'watchPrimary'])
    const buried = { ...ending, dead: new Map([['uid-p', nameOf()]]) }
    expect(types(dutiesOf(buried))).toEqual(['redirect'])
  })

  it('is buried when another pod was called to its slot', () => {
    const called = world({ epoch: 1 }, { holder: { name: 'h', uid: 'uid-h' }, node: 'b', epoch: 2 })
    expect(types(dutiesOf(called))).toEqual(['stopPrimary'])
    // Also while its containers are down: `stopPrimary` finds what still runs, and declares the end.
    const isDown = { containers: [container({ running: false, containerId: undefined })] }
    expect(types(dutiesOf({ ...called, pods: [pod('p', { epoch: 1, ...isDown })] }))).toEqual(['stopPrimary'])
    const dead = { ...called, dead: new Map([['uid-p', nameOf()]]) }
    expect(dutiesOf(dead)).toMatchObject([{ type: 'redirect', to: '127.0.0.1', isAwaited: false }])
  })

  it('is guarded anew when its heir, its containers or the sentinel change', () => {
    const versions = [
      world(),
      world({}, { heir: { name: 'h', uid: 'uid-h', ip: '10.0.0.9' } }),
      world({ containers: [container({ containerId: 'containerd://beef' })] }),
      { ...world(), sentinel: '2' },
    ].map(it => dutiesOf(it).find(({ type }) => type === 'watchPrimary')?.version)
    expect(new Set(versions).size).toBe(4)
  })
})

describe('an understudy', () => {
  const own = (over: Partial<PodView> = {}) => understudy('h', over)
  const slot = lease({ node: 'b', holders: ['a'], heir: { name: 'h', uid: 'uid-h', ip: '10.0.0.2' } })
  const world = (over: Partial<Snapshot> = {}) =>
    snapshot({
      pods: [own()],
      slots: [slot],
      reports: new Map([['b', peer('b')]]),
      kept: new Map([[nameOf(), kept()]]),
      ...over,
    })

  it('of an heir has the memory frozen into it while the node fetches more', () => {
    expect(types(dutiesOf(world()))).toEqual(['freeze', 'replicate'])
  })

  it.each([
    ['before anything has arrived', world({ kept: new Map() }), ['discard', 'replicate']],
    [
      'while its container restarts',
      world({ pods: [own({ containers: [container({ running: false })] })] }),
      ['replicate'],
    ],
    [
      'when memory is of another template',
      world({ kept: new Map([[nameOf(), kept({ restoreHash: 'f'.repeat(16) })]]) }),
      ['discard', 'replicate'],
    ],
    [
      'when it has no room for it',
      world({ pods: [own({ containers: [container({ memoryLimit: 1_050_000 })] })] }),
      ['replicate', 'verifyRestore'],
    ],
    [
      'when it has no room, and the kind is proven',
      world({
        pods: [own({ containers: [container({ memoryLimit: 1_050_000 })] })],
        proven: new Set([kept().restoreHash]),
      }),
      ['discard', 'replicate'],
    ],
    [
      'when the set wants it staged',
      world({ slots: [{ ...slot, policy: policy({ mode: 'Staged' }) }] }),
      ['replicate', 'verifyRestore'],
    ],
    ['when the source has no report', world({ reports: new Map() }), ['freeze']],
    ['while the node can bring nothing back', world({ able: false }), ['discard', 'replicate']],
    ['while it ends', world({ pods: [own({ terminating: true })] }), ['discard', 'replicate']],
    [
      'that was woken to be called, and is not',
      world({ pods: [own({ kind: 'coldbackup' })] }),
      ['discard', 'replicate'],
    ],
    ['when it is retired', world({ pods: [own({ kind: 'retired' })] }), ['replicate']],
  ] as const)('%s', (_, it, expected) => {
    expect(types(dutiesOf(it))).toEqual(expected)
  })

  it('D6.called-off: nothing runs on in it without being called, and what lies there stays where it may be of use', () => {
    const cleared = (over: Partial<Snapshot>) =>
      dutiesOf(world(over)).flatMap(duty => (duty.type === 'discard' ? [duty.frozenToo] : []))
    expect(cleared({ able: false })).toEqual([false])
    expect(cleared({ pods: [own({ kind: 'coldbackup' })] })).toEqual([false])
    expect(cleared({ able: false, pods: [own({ terminating: true })] })).toEqual([true])
    expect(cleared({ pods: [own({ kind: 'coldbackup', terminating: true })] })).toEqual([true])
    // Promoted, at its gate, dead, or no understudy at all.
    const named = { ...slot, holder: { name: 'h', uid: own().uid } }
    expect(cleared({ able: false, slots: [named] })).toEqual([])
    expect(cleared({ able: false, pods: [own({ containers: [container({ running: false })] })] })).toEqual([])
    expect(cleared({ able: false, pods: [own({ serving: died(nameOf()) })] })).toEqual([])
    expect(cleared({ able: false, pods: [pod('h', { kind: 'hotbackup' })] })).toEqual([])
    expect(cleared({ able: false, pods: [own({ kind: 'primary', epoch: 2 })] })).toEqual([])
  })

  it('keeps the slot that lies in it although a lower one could', () => {
    const other = { ...slot, name: 'web-1' }
    const two = world({
      slots: [slot, other],
      kept: new Map([slot, other].map(each => [slotName(each), kept()])),
      stages: new Map([['uid-h', { slot: slotName(other), epoch: 1, generation: 5, state: 'Frozen' }]]),
    })
    expect(dutiesOf(two).find(({ type }) => type === 'freeze')?.lease?.name).toBe('web-1')
    expect(dutiesOf({ ...two, stages: new Map() }).find(({ type }) => type === 'freeze')?.lease?.name).toBe(
      'web-0',
    )
  })

  it('goes on stage when the Lease names it, and is a primary from then on', () => {
    const called = world({
      slots: [{ ...slot, holder: { name: 'h', uid: 'uid-h' }, node: 'a', holders: ['b'], epoch: 2 }],
    })
    expect(types(dutiesOf(called))).toEqual(['promote'])
    const thawed = { ...called, stages: new Map([['uid-h', { ...onStage, state: 'Thawed' as const }]]) }
    expect(types(dutiesOf(thawed))).toEqual(['promote'])
    const there = { ...called, stages: new Map([['uid-h', onStage]]) }
    expect(types(dutiesOf(there))).toEqual(['checkpoint', 'probe', 'watchPrimary'])
  })
})

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
    expect(dutiesOf(world())).toMatchObject([{ type: 'discard', frozenToo: false }])
    // The agent has just started, and has not looked into the pod yet.
    expect(dutiesOf(world({ stages: new Map() }))).toMatchObject([{ type: 'discard', frozenToo: false }])
    // An app that no Lease names must not run, whatever is unknown.
    expect(dutiesOf(world({ stages: new Map([['uid-h', { ...frozen, state: 'Thawed' }]]) }))).toMatchObject([
      { type: 'discard', frozenToo: false },
    ])
    // A clone of another slot, whose policy is known, is of no use here.
    const other = world({
      slots: [unknown({ name: 'web-1', node: 'b' }), lease({ node: 'b', holders: ['a'] })],
    })
    expect(dutiesOf({ ...other, kept: new Map() })).toContainEqual(
      expect.objectContaining({ type: 'discard', frozenToo: true }),
    )
  })

  it('fails over all the same: its primary is ended, and its successor takes over', () => {
    const called = unknown({ holder: { name: 'h', uid: 'uid-h' }, epoch: 2, holders: ['b'] })
    expect(types(dutiesOf(world({ slots: [called] })))).toEqual(['promote'])
    const reports = new Map([['b', usableAt('b', lease())]])
    const primary = (over: Partial<PodView>, said: Partial<SlotLease>) =>
      types(dutiesOf(snapshot({ pods: [pod('p', over)], slots: [unknown(said)], reports })))
    expect(primary({ terminating: true }, {})).toEqual(['stopPrimary'])
    expect(primary({}, { ending: 'uid-p' })).toEqual(['stopPrimary'])
    expect(primary({}, { holder: { name: 'h', uid: 'uid-h' }, epoch: 2 })).toEqual(['stopPrimary'])
    expect(primary({ serving: died(nameOf()) }, {})).toEqual(['redirect'])
    expect(primary({ understudy: false }, { handover: 'uid-h' })).toEqual(['watchPrimary'])
  })

  it('is usable by what is here, and the report says why nothing new comes', () => {
    const latest = {
      manifest: { generation: 5, epoch: 1, takenAt: '2030-01-01T00:00:00Z', bytes: 1, frozenSeconds: 0 },
    }
    const reported = (s: Snapshot) =>
      slotReportsOf(s, {
        latest: () => ({ ...latest, pipelineMs: 1 }) as unknown as ReturnType<KeptGenerations['latest']>,
        progress: () => undefined,
      })[0]
    expect(reported(world())).toMatchObject({
      ...{ role: 'holder', generation: 5, usable: 'Frozen', understudyUid: 'uid-h', reason: 'PolicyUnknown' },
    })
    const source = snapshot({ pods: [pod('p')], slots: [unknown()] })
    expect(reported(source)).toMatchObject({ role: 'source', generation: 5, reason: 'PolicyUnknown' })
  })
})

it('D7.owner: an understudy gets no memory of a deleted set of the same name', () => {
  const heir = { name: 'h', uid: 'uid-h', ip: '10.0.0.2' }
  const typesFor = (owner: string | undefined, ofPod: string | undefined) =>
    types(
      dutiesOf(
        snapshot({
          pods: [understudy('h', { ...(ofPod !== undefined && { owner: ofPod }) })],
          slots: [lease({ node: 'b', holders: ['a'], heir, ...(owner !== undefined && { owner }) })],
          ...{ reports: new Map([['b', peer('b')]]), kept: new Map([[nameOf(), kept()]]) },
        }),
      ),
    )
  expect(typesFor('now', 'now')).toContain('freeze')
  expect(typesFor('before', 'now')).not.toContain('freeze')
  expect(typesFor('before', 'now')).toContain('discard')
  // A set that was deleted without its pods leaves Leases and pods that no object owns.
  expect(typesFor(undefined, 'now')).toContain('freeze')
  expect(typesFor('now', undefined)).toContain('freeze')
})

describe('where connections to a dead primary go', () => {
  const heir = { name: 'h', uid: 'uid-h', ip: '10.0.0.9' }
  const way = (over: Partial<SlotLease>, more: Partial<Snapshot> = {}) => {
    const it = snapshot({ pods: [pod('p')], slots: [lease(over)], ...more })
    return dutiesOf(it).find(({ type }) => type === 'watchPrimary')
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
    expect(dutiesOf(it)).toMatchObject([{ ...away, to: '10.0.0.7' }])
    expect(dutiesOf({ ...it, slots: [{ ...next, ip: undefined }] })).toMatchObject([
      { ...away, to: '127.0.0.1' },
    ])
  })

  it('D7.grave: of a dead one that waits for a successor not to its heir either, once that has another slot', () => {
    const reports = new Map([['b', usableAt('b', lease())]])
    const dead = snapshot({ pods: [pod('p')], dead: new Map([['uid-p', nameOf()]]), reports })
    const waits = { type: 'redirect', isAwaited: true }
    const before = dutiesOf({ ...dead, slots: [lease({ heir })] })
    expect(before).toMatchObject([{ ...waits, to: '10.0.0.9' }])
    // Two slots have one heir, and both primaries died at once.
    const other = lease({ name: 'web-1', holder: { name: 'h', uid: 'uid-h' }, node: 'b' })
    const after = dutiesOf({ ...dead, slots: [lease({ heir }), other] })
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
    expect(dutiesOf(world({})).find(({ type }) => type === 'watchPrimary')).toMatchObject({ way: undefined })
    expect(types(dutiesOf(world({ terminating: true })))).toEqual([])
    expect(types(dutiesOf({ ...world({}), dead: new Map([['uid-p', nameOf()]]) }))).toEqual([])
  })
})

describe('a pod that is woken or made for a slot', () => {
  const called = lease({ holder: { name: 'c', uid: 'uid-c' }, node: 'a', epoch: 2, holders: ['b'] })
  const report = usableAt('b', lease())
  const world = (over: Partial<PodView>) =>
    snapshot({
      pods: [understudy('c', { kind: 'coldbackup', ...over })],
      slots: [called],
      reports: new Map([['b', report]]),
    })
  const gated = {
    containers: [container({ containerId: undefined, running: false })],
    gate: { containerId: 'containerd://9a7e', order: undefined },
  }

  it('has its memory fetched while it starts, and is brought on stage when it holds it', () => {
    expect(dutiesOf(world(gated))).toMatchObject([
      { type: 'fetch', others: [{ address: report.address, fingerprint: report.fingerprint }] },
      { type: 'watchGate' },
    ])
    expect(dutiesOf(world({}))).toMatchObject([{ type: 'promote', others: [{ address: report.address }] }])
  })

  it('asks only the nodes that the Lease names, whatever another one claims to have', () => {
    const forged = usableAt('x', lease())
    const slots = forged.slots.map(each => ({ ...each, generation: 900, takenAt: '2099-01-01T00:00:00Z' }))
    const stranger = ['x', { ...forged, slots }] as const
    const addressesOf = (it: Snapshot) =>
      dutiesOf(it).flatMap(duty => ('others' in duty ? duty.others.map(({ address }) => address) : []))
    for (const it of [world(gated), world({})])
      expect(addressesOf({ ...it, reports: new Map([stranger, ...it.reports]) })).toEqual(['b:9443'])
    // A holder whose source does not answer.
    const holder = snapshot({
      slots: [lease({ node: 'b', holders: ['a', 'c'] })],
      reports: new Map([stranger, ['b', peer('b')], ['c', usableAt('c', lease())]]),
    })
    expect(addressesOf(holder)).toEqual(['c:9443'])
    // Nor does the stranger's report make the end of an app a death: no other pod could continue with the memory.
    const dying = snapshot({ pods: [pod('p', { terminating: true })], slots: [lease()] })
    expect(dutiesOf({ ...dying, reports: new Map([stranger]) })).toEqual([])
  })

  it('D7.node-wakes: has its gate told to open when the operator wrote so, once for each order and gate', () => {
    const order = { containerId: 'containerd://9a7e', order: `primary ${'0'.repeat(64)}` }
    const duties = dutiesOf(world({ ...gated, gate: order }))
    expect(types(duties)).toEqual(['fetch', 'wake', 'watchGate'])
    const versionOf = (gate: PodView['gate']) =>
      dutiesOf(world({ ...gated, gate })).find(({ type }) => type === 'wake')?.version
    expect(versionOf({ ...order, containerId: 'containerd://2' })).not.toBe(versionOf(order))
    expect(types(dutiesOf(world({ ...gated, gate: order, understudy: false })))).not.toContain('wake')
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

describe('a primary that runs other containers than its Lease has the memory of', () => {
  const first = lease({ containers: 'app=containerd://c0ffee' })
  it('D7.ids: is not saved: it would take the place of what was saved of the one before', () => {
    const types = (held: SlotLease) =>
      dutiesOf(snapshot({ pods: [pod('p')], slots: [held] })).map(({ type }) => type)
    expect(types(first)).toContain('checkpoint')
    expect(types({ ...first, containers: 'app=containerd://before' })).not.toContain('checkpoint')
    expect(types(lease())).toContain('checkpoint')
  })

  it('D7.unsettled: nor where the Lease names none, and one was started again since the life began', () => {
    const types = (restarts: number, before: number | undefined, held = lease()) =>
      dutiesOf(
        snapshot({
          pods: [pod('p', { containers: [container({ restarts })] })],
          slots: [held],
          ...(before !== undefined && { restarts: new Map([[nameOf(), before]]) }),
        }),
      ).map(({ type }) => type)
    expect(types(1, 0)).not.toContain('checkpoint')
    for (const [restarts, before] of [
      [0, 0],
      [1, 1],
      [1, undefined],
    ] as const)
      expect(types(restarts, before)).toContain('checkpoint')
    // Container ids say more than restart counts.
    expect(types(1, 0, first)).toContain('checkpoint')
  })
})

describe('what the node says of slots', () => {
  const slot = lease({ node: 'b', holders: ['a'], heir: { name: 'h', uid: 'uid-h', ip: '10.0.0.2' } })
  const world = (over: Partial<Snapshot>) =>
    snapshot({ slots: [slot], pods: [understudy('h')], kept: new Map([[nameOf(), kept()]]), ...over })
  const frozen = new Map([['uid-h', { ...onStage, state: 'Frozen' as const }]])
  const nothing = { latest: () => undefined, progress: () => undefined }
  it.each([
    ['frozen', world({ stages: frozen }), 'Frozen', undefined, 'Frozen'],
    ['staged', world({ proven: new Set([kept().restoreHash]) }), 'Staged', undefined, 'Staged'],
    ['of a kind never brought back', world({}), undefined, 'Unproven', 'Unproven'],
    ['without an understudy', world({ pods: [] }), 'Cold', 'NoUnderstudy', undefined],
    ['with nothing yet', world({ kept: new Map() }), undefined, 'NoGeneration', 'NoGeneration'],
    [
      'on a node that cannot',
      world({ able: false, stages: frozen }),
      undefined,
      'NodeNotReady',
      'NodeNotReady',
    ],
  ] as const)('%s', (_, it, usable, reason, condition) => {
    const [report] = slotReportsOf(it, nothing)
    expect([report?.usable, report?.reason]).toEqual([usable, reason])
    const [first] = it.pods
    expect(first && understudyConditionOf(it, first)?.reason).toBe(condition)
    expect(first && understudyConditionOf(it, first)?.type).toBe(first && podConditions.understudy)
  })
})

it('D7.kept: a generation is elsewhere only if it is of this epoch', () => {
  const slot = lease({ epoch: 2 })
  const with9 = (epoch: number) => {
    const [entry] = usableAt('b', slot).slots
    const slots = entry === undefined ? [] : [{ ...entry, epoch, generation: 9 }]
    return snapshot({ reports: new Map([['b', peer('b', { slots })]]) })
  }
  expect(isKeptElsewhere(with9(2), slot, 8)).toBe(true)
  expect(isKeptElsewhere(with9(2), slot, 10)).toBe(false)
  expect(isKeptElsewhere(with9(1), slot, 8)).toBe(false)
})

it('D7.let-go: a node that was let go says what it has, until it has nothing', () => {
  const stored = { manifest: { generation: 5, epoch: 1 } } as unknown as Stored
  const said = (names: readonly string[], latest: Stored | undefined) =>
    slotReportsOf(snapshot({ slots: [lease({ node: 'b', holders: ['c'], kept: names })] }), {
      latest: () => latest,
      progress: () => undefined,
    }).map(({ role, generation }) => [role, generation])
  expect(said(['a', 'c'], stored)).toEqual([['holder', 5]])
  expect(said(['a', 'c'], undefined)).toEqual([])
  // The operator may have let it go before it saw the report.
  expect(said(['c'], stored)).toEqual([['holder', 5]])
})

it('D7.let-go: it mentions the slot until its last fetch has ended', () => {
  const said = (isFetching: boolean) =>
    slotReportsOf(snapshot({ slots: [lease({ node: 'b', holders: ['c'], kept: ['a'] })] }), {
      latest: () => undefined,
      progress: () => undefined,
      isFetching: () => isFetching,
    }).map(({ role, generation }) => [role, generation])
  expect(said(true)).toEqual([['holder', 0]])
  expect(said(false)).toEqual([])
})

describe('D7.kept: what the node of the last primary says', () => {
  const own = lease({ holder: { name: 'p', uid: 'uid-p' } })
  const stored = { manifest: { generation: 5, epoch: 1 } } as unknown as Stored
  const there = { latest: () => stored, progress: () => undefined }
  const world = (over: Partial<Snapshot>) =>
    snapshot({ slots: [own], kept: new Map([[nameOf(), kept()]]), ...over })
  const report = (over: Partial<Snapshot>, generations: KeptGenerations = there) =>
    slotReportsOf(world(over), generations)[0]
  const dead = pod('p', { serving: died(nameOf()) })
  const called = pod('p', { understudy: true })
  it.each([
    ['is gone', { pods: [] }],
    ['has died', { pods: [dead] }],
    ['was called and is not there yet', { pods: [called] }],
  ])('is how its memory could go on, when that %s', (_, over) => {
    expect(report(over)).toMatchObject({ role: 'source', usable: 'Cold' })
    expect(report({ ...over, able: false })).toMatchObject({ reason: 'NodeNotReady' })
  })
  it.each([
    ['runs', { pods: [pod('p')] }],
    ['was brought on stage', { pods: [called], stages: new Map([['uid-p', onStage]]) }],
  ])('is nothing of that, while it %s', (_, over) => {
    expect(report(over)).not.toHaveProperty('usable')
    expect(report(over)).not.toHaveProperty('reason')
  })
  it('is what is on its disk, and that this has not been asked yet', () => {
    const none = { latest: () => undefined, progress: () => undefined }
    const onDisk = { generation: 4, takenAt: '' }
    expect(report({}, { ...none, isRead: () => false })).toMatchObject({ reason: 'DiskUnread' })
    expect(report({}, { ...none, onDisk: () => onDisk })).toMatchObject({ generation: 0, onDisk })
  })
})

describe('any world', () => {
  const names = ['p', 'q', 'h', 'i'] as const
  const podArb = (name: string) =>
    fc
      .record({
        kind: fc.constantFrom('primary', 'hotbackup', 'coldbackup', 'retired'),
        slot: fc.constantFrom(undefined, 'web-0', 'web-1'),
        epoch: fc.integer({ min: 0, max: 2 }),
        ip: fc.constantFrom(undefined, '10.0.0.1'),
        understudy: fc.boolean(),
        ready: fc.boolean(),
        terminating: fc.boolean(),
        serving: fc.constantFrom(undefined, died(nameOf()), {
          status: 'True',
          reason: 'OnStage',
          message: '',
          record: {},
        }),
        containers: fc.constantFrom(
          [container()],
          [container({ running: false })],
          [container({ containerId: undefined, running: false })],
          [container({ memoryLimit: 1_000 })],
          [],
        ),
      })
      .map(over => pod(name, over))
  const leaseArb = (name: string) =>
    fc
      .record({
        holder: fc.constantFrom(...names).map(name => ({ name, uid: `uid-${name}` })),
        epoch: fc.integer({ min: 1, max: 3 }),
        node: fc.constantFrom(undefined, 'a', 'b'),
        heir: fc.constantFrom(
          undefined,
          ...names.map(name => ({ name, uid: `uid-${name}`, ip: '10.0.0.2' })),
        ),
        holders: fc.subarray(['a', 'b']),
      })
      .map(over => lease({ ...over, name }))
  const worlds = fc
    .record({
      able: fc.boolean(),
      pods: fc.subarray([...names]).chain(chosen => fc.tuple(...chosen.map(podArb))),
      slots: fc.subarray(['web-0', 'web-1']).chain(chosen => fc.tuple(...chosen.map(leaseArb))),
      mode: fc.constantFrom('Frozen' as const, 'Staged' as const, undefined),
      reported: fc.boolean(),
      isKept: fc.boolean(),
      proven: fc.boolean(),
      stages: fc.array(
        fc.record({
          uid: fc.constantFrom(...names.map(name => `uid-${name}`)),
          name: fc.constantFrom('web-0', 'web-1'),
          state: fc.constantFrom('Frozen' as const, 'Thawed' as const, 'OnStage' as const),
        }),
      ),
      dead: fc.subarray(names.map(name => `uid-${name}`)),
    })
    .map(
      (w): Snapshot =>
        snapshot({
          able: w.able,
          pods: w.pods,
          slots: w.slots.map(each => ({ ...each, policy: w.mode && policy({ mode: w.mode }) })),
          reports: new Map(w.reported ? [['b', usableAt('b', lease())]] : []),
          kept: new Map(w.isKept ? w.slots.map(each => [slotName(each), kept()]) : []),
          proven: new Set(w.proven ? [kept().restoreHash] : []),
          stages: new Map(
            w.stages.map(({ uid, name, state }) => [
              uid,
              { slot: nameOf({ name }), epoch: 1, generation: 5, state },
            ]),
          ),
          dead: new Map(w.dead.map(uid => [uid, nameOf()])),
        }),
    )
  const holds = (check: (duties: readonly Duty[], world: Snapshot) => void) =>
    fc.assert(
      fc.property(worlds, world => check(dutiesOf(world), world)),
      { numRuns: 2_000 },
    )

  it('no two duties have one key, and at most one of two slots works on the memory of one pod', () => {
    holds(duties => {
      const keys = duties.map(({ key }) => key)
      // Two Leases that name one pod are a client's mistake: then keys collide, and only one duty is done.
      const perPod = new Map<string, Set<string>>()
      for (const duty of duties)
        if (duty.memoryOf !== undefined)
          perPod.set(duty.memoryOf, (perPod.get(duty.memoryOf) ?? new Set()).add(duty.type))
      for (const kinds of perPod.values()) {
        expect(kinds.has('checkpoint') && (kinds.has('freeze') || kinds.has('verifyRestore'))).toBe(false)
        expect(kinds.has('freeze') && kinds.has('verifyRestore')).toBe(false)
        expect(kinds.has('promote') && (kinds.has('freeze') || kinds.has('verifyRestore'))).toBe(false)
      }
      expect(keys.length).toBeGreaterThanOrEqual(new Set(keys).size)
    })
  })

  it('D7.when: only what serves, is not on its way out and is kept elsewhere is saved', () => {
    holds((duties, world) => {
      for (const duty of duties) {
        if (duty.type !== 'checkpoint') continue
        expect(duty.pod.terminating).toBe(false)
        expect(duty.pod.uid).toBe(duty.lease.holder.uid)
        expect(world.dead.get(duty.pod.uid)).not.toBe(slotName(duty.lease))
        expect(duty.lease.holders.some(node => node !== world.node)).toBe(true)
      }
    })
  })

  it('nothing is ever brought back in a pod that has a role, or in one that is no understudy', () => {
    holds((duties, world) => {
      const holders = new Set(world.slots.map(({ holder }) => holder.uid))
      for (const duty of duties) {
        if (duty.type !== 'freeze' && duty.type !== 'verifyRestore' && duty.type !== 'discard') continue
        expect(holders.has(duty.pod.uid)).toBe(false)
        expect(
          duty.pod.kind === 'hotbackup' || (duty.type === 'discard' && duty.pod.kind === 'coldbackup'),
        ).toBe(true)
        if (duty.pod.terminating) expect(duty.type, 'memory leaves a pod that ends').toBe('discard')
        else expect([duty.pod.understudy, world.dead.has(duty.pod.uid)]).toEqual([true, false])
      }
    })
  })

  it('nobody goes on stage but whom the Lease names', () => {
    holds(duties => {
      for (const duty of duties) if (duty.type === 'promote') expect(duty.lease.holder.uid).toBe(duty.pod.uid)
    })
  })

  it('nobody is ended who holds the slot and stays', () => {
    holds(duties => {
      for (const duty of duties)
        if (duty.type === 'stopPrimary')
          expect(
            duty.pod.terminating ||
              duty.lease.ending === duty.pod.uid ||
              duty.lease.holder.uid !== duty.pod.uid,
          ).toBe(true)
    })
  })
})

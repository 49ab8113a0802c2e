import { describe, expect, it } from 'vitest'
import { slotName } from '../../checkpoint/manifest.ts'
import type { PodView, Snapshot } from '../observe/snapshot.ts'
import {
  container,
  died,
  kept,
  lease,
  nameOf,
  onStage,
  peer,
  pod,
  policy,
  snapshot,
  typesOf,
  understudy,
  usableAt,
} from '../testing/fake/snapshots.ts'
import { desiredTasks } from './desired-tasks.ts'

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
    expect(typesOf(desiredTasks(world()))).toEqual(['freeze', 'replicate'])
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
    expect(typesOf(desiredTasks(it))).toEqual(expected)
  })

  it('D6.called-off: nothing runs on in it without being called, and what lies there stays where it may be of use', () => {
    const cleared = (over: Partial<Snapshot>) =>
      desiredTasks(world(over)).flatMap(task => (task.type === 'discard' ? [task.frozenToo] : []))
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
    expect(desiredTasks(two).find(({ type }) => type === 'freeze')?.lease?.name).toBe('web-1')
    expect(
      desiredTasks({ ...two, stages: new Map() }).find(({ type }) => type === 'freeze')?.lease?.name,
    ).toBe('web-0')
  })

  it('goes on stage when the Lease names it, and is a primary from then on', () => {
    const called = world({
      slots: [{ ...slot, holder: { name: 'h', uid: 'uid-h' }, node: 'a', holders: ['b'], epoch: 2 }],
    })
    expect(typesOf(desiredTasks(called))).toEqual(['promote'])
    const thawed = { ...called, stages: new Map([['uid-h', { ...onStage, state: 'Thawed' as const }]]) }
    expect(typesOf(desiredTasks(thawed))).toEqual(['promote'])
    const there = { ...called, stages: new Map([['uid-h', onStage]]) }
    expect(typesOf(desiredTasks(there))).toEqual(['checkpoint', 'probe', 'watchPrimary'])
  })
})

it('D7.owner: an understudy gets no memory of a deleted set of the same name', () => {
  const heir = { name: 'h', uid: 'uid-h', ip: '10.0.0.2' }
  const typesFor = (owner: string | undefined, ofPod: string | undefined) =>
    typesOf(
      desiredTasks(
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
    expect(desiredTasks(world(gated))).toMatchObject([
      { type: 'fetch', others: [{ address: report.address, fingerprint: report.fingerprint }] },
      { type: 'watchGate' },
    ])
    expect(desiredTasks(world({}))).toMatchObject([{ type: 'promote' }])
  })

  it('asks only the nodes that the Lease names, whatever another one claims to have', () => {
    const forged = usableAt('x', lease())
    const slots = forged.slots.map(each => ({ ...each, generation: 900, takenAt: '2099-01-01T00:00:00Z' }))
    const stranger = ['x', { ...forged, slots }] as const
    const addressesOf = (it: Snapshot) =>
      desiredTasks(it).flatMap(task => ('others' in task ? task.others.map(({ address }) => address) : []))
    const lied = world(gated)
    expect(addressesOf({ ...lied, reports: new Map([stranger, ...lied.reports]) })).toEqual(['b:9443'])
    // A holder whose source does not answer.
    const holder = snapshot({
      slots: [lease({ node: 'b', holders: ['a', 'c'] })],
      reports: new Map([stranger, ['b', peer('b')], ['c', usableAt('c', lease())]]),
    })
    expect(addressesOf(holder)).toEqual(['c:9443'])
    // Nor does the stranger's report make the end of an app a death: no other pod could continue with the memory.
    const dying = snapshot({ pods: [pod('p', { terminating: true })], slots: [lease()] })
    expect(desiredTasks({ ...dying, reports: new Map([stranger]) })).toEqual([])
  })

  it('D7.node-wakes: has its gate told to open when the operator wrote so, once for each order and gate', () => {
    const order = { containerId: 'containerd://9a7e', order: `primary ${'0'.repeat(64)}` }
    const tasks = desiredTasks(world({ ...gated, gate: order }))
    expect(typesOf(tasks)).toEqual(['fetch', 'wake', 'watchGate'])
    const versionOf = (gate: PodView['gate']) =>
      desiredTasks(world({ ...gated, gate })).find(({ type }) => type === 'wake')?.version
    expect(versionOf({ ...order, containerId: 'containerd://2' })).not.toBe(versionOf(order))
    expect(typesOf(desiredTasks(world({ ...gated, gate: order, understudy: false })))).not.toContain('wake')
  })
})

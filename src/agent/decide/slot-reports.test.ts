import { describe, expect, it } from 'vitest'
import { podConditions } from '../../api/pod-contract.ts'
import type { Stored } from '../../checkpoint/store.ts'
import type { Snapshot } from '../observe/snapshot.ts'
import {
  died,
  fence,
  kept,
  lease,
  nameOf,
  onStage,
  pod,
  snapshot,
  stored,
  understudy,
} from '../testing/fake/snapshots.ts'
import { type KeptGenerations, slotReportsOf } from './slot-reports.ts'
import { understudyConditionOf } from './understudy-condition.ts'

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

describe('of a handover, the node of the successor says', () => {
  const heir = { name: 'h', uid: 'uid-h', ip: '10.0.0.2' }
  const frozen = { ...onStage, state: 'Frozen' as const }
  /** Its words when it keeps generation 5, and its successor has this one frozen. */
  const said = (inSuccessor: number, over: Partial<ReturnType<typeof kept>> = {}, handover = 'uid-h') => {
    const slots = [lease({ node: 'b', holders: ['a'], heir, handover })]
    const stages = new Map([['uid-h', { ...frozen, generation: inSuccessor }]])
    const world = { slots, stages, pods: [understudy('h')], kept: new Map([[nameOf(), kept(over)]]) }
    const [report] = slotReportsOf(snapshot(world), { latest: () => undefined, progress: () => undefined })
    return [report?.usable, report?.successorGeneration, report?.final]
  }
  it('which generation that one could continue with, whether or not it is the last', () => {
    expect(said(5)).toEqual(['Frozen', 5, undefined])
    expect(said(5, { final: true })).toEqual(['Frozen', 5, true])
  })

  it('nothing of the newest one while an earlier one is frozen', () => {
    expect(said(4)).toEqual(['Frozen', undefined, undefined])
    expect(said(4, { final: true })).toEqual(['Frozen', undefined, undefined])
  })

  it('nothing where the successor is on another node', () => {
    expect(said(5, {}, 'uid-elsewhere')).toEqual(['Frozen', undefined, undefined])
  })
})

it('D7.grant: a node that has nothing says what it knows of the grant of its heir: without that word it would not end', () => {
  const grant = { number: 2, heir: { uid: 'uid-h', node: 'a' }, isRevoked: true }
  const slot = lease({ node: 'b', holders: ['c'], kept: ['c'], grant })
  const said = (words: Snapshot['grantWords']) =>
    slotReportsOf(snapshot({ slots: [slot], grantWords: words }), {
      latest: () => undefined,
      progress: () => undefined,
    })
  expect(said(new Map([[nameOf(), { closed: 2 }]]))).toMatchObject([{ grant: { closed: 2 } }])
  expect(said(new Map())).toEqual([])
})

it('D7.let-go: a node that was let go says what it has, until it has nothing', () => {
  const fifth = stored({ generation: 5 })
  const said = (names: readonly string[], latest: Stored | undefined) =>
    slotReportsOf(snapshot({ slots: [lease({ node: 'b', holders: ['c'], kept: names })] }), {
      latest: () => latest,
      progress: () => undefined,
    }).map(({ role, generation }) => [role, generation])
  expect(said(['a', 'c'], fifth)).toEqual([['holder', 5]])
  expect(said(['a', 'c'], undefined)).toEqual([])
  // The operator may have let it go before it saw the report.
  expect(said(['c'], fifth)).toEqual([['holder', 5]])
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
  const fifth = stored({ generation: 5 })
  const there = { latest: () => fifth, progress: () => undefined }
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

it('D10.disk-share: a slot says why the disk takes nothing newer of it, and loses no other word for that', () => {
  const second = stored({ generation: 2 })
  const said = (diskRefusal: (slot: string) => string | undefined) =>
    slotReportsOf(snapshot({ slots: [lease({ node: 'b', holders: ['a'] })] }), {
      latest: () => second,
      progress: () => undefined,
      diskRefusal,
    })
  const [refused, written] = [said(() => 'DiskShareFull'), said(() => undefined)]
  expect(refused).toEqual(written.map(slot => ({ ...slot, diskReason: 'DiskShareFull' })))
  expect(written[0]).not.toHaveProperty('diskReason')
})

describe('fences', () => {
  const nothing = { latest: () => undefined, progress: () => undefined }
  const [first, second] = ['0123456789abcdef', 'fedcba9876543210']
  const asked = (voters: readonly string[], over: Parameters<typeof lease>[0] = {}) =>
    lease({
      fence: { term: 3, version: 1, timeoutMs: 5_000, voters, isArmed: true, isRevoked: false },
      ...over,
    })

  it('a voter says what it has stated, also when it is no holder any more', () => {
    const slots = [asked([`a/${first}`], { node: 'b', holders: ['c'] })]
    const said = (known: Parameters<typeof fence>[0]) =>
      slotReportsOf(snapshot({ slots, fence: fence({ run: first, ...known }) }), nothing)
    const silent = new Map([[nameOf(), 3]])
    expect(said({ silent })).toMatchObject([{ role: 'holder', generation: 0, silentTerm: 3 }])
    expect(said({})).toEqual([])
    // It counts for its term only.
    expect(said({ silent: new Map([[nameOf(), 2]]) })).toEqual([])
  })

  it('the node of a primary says what its sentinel has acknowledged', () => {
    const said = (known: Parameters<typeof fence>[0]) =>
      slotReportsOf(
        snapshot({
          slots: [asked([`b/${first}`])],
          pods: [pod('p')],
          fence: fence({ run: second, ...known }),
        }),
        nothing,
      )[0]?.acknowledged
    const guarded = (slot: string) => new Map([['uid-p', { term: 3, acknowledged: { slot, version: 1 } }]])
    expect(said({ guarded: guarded(nameOf()) })).toEqual({ term: 3, version: 1 })
    expect(said({ guarded: guarded(nameOf({ incarnation: 'fedcba98' })) })).toBeUndefined()
    // An earlier agent has asked for it, and this one does not know for what.
    expect(said({ guarded: new Map([['uid-p', { term: 3 }]]) })).toBeUndefined()
  })

  it('a fenced primary is on stage: its node says so, and does not offer what it has saved of it', () => {
    const it = (known: Parameters<typeof fence>[0]) =>
      snapshot({
        slots: [asked([`b/${first}`])],
        pods: [understudy('p')],
        kept: new Map([[nameOf(), kept()]]),
        fence: fence({ run: second, ...known }),
      })
    const said = (known: Parameters<typeof fence>[0]) => slotReportsOf(it(known), nothing)[0]
    expect(said({})?.usable).toBe('Cold')
    expect(said({})?.fenced).toBeUndefined()
    const fenced = said({ fenced: new Set(['uid-p']) })
    expect(fenced?.usable).toBeUndefined()
    expect(fenced?.fenced).toBe(true)
  })
})

// Long because it is a list of situations for one function, with the fixtures that they share.

import { describe, expect, it } from 'vitest'
import { cloneHolder } from '../../api/clone-of.ts'
import { labels } from '../../api/labels.ts'
import type { NodeReport, NodeReportStatus, SlotReport } from '../../api/node-report.ts'
import { type NumberedSlotLease, numberedSlotLeaseBody } from '../../api/numbered-slot.ts'
import { parseSet } from '../../api/parse.ts'
import {
  holdInitContainer,
  podConditions,
  type ServingRecord,
  savedAnnotation,
  servingReasons,
} from '../../api/pod-contract.ts'
import { formatServingRecord, servingRecordAnnotation } from '../../api/serving-record.ts'
import { formatSlotKey } from '../../api/slot-key.ts'
import { createFakeClock } from '../../kube/clock.ts'
import type { Lease, Node, Pod } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import { createReports, reportIndexes } from '../../slot/observe/reports.ts'
import { createSince } from '../../slot/observe/since.ts'
import { leaseIndexes } from '../../slot/observe/slot-leases.ts'
import { makePodObject, makeReport, makeSlotReport, type PodCondition } from '../../slot/testing/objects.ts'
import { makeLease } from '../../slot/testing/slots.ts'
import { makeFence } from '../../slot/testing/votes.ts'
import { makePrimary } from '../testing/memory.ts'
import type { Claim } from './claims.ts'
import { type MemoryDeps, observeMemory } from './observe.ts'

const parsed = parseSet({
  metadata: { name: 'bps', namespace: 'default', uid: 'set', resourceVersion: '1' },
  spec: {
    replicas: 1,
    checkpoint: {},
    template: { spec: { containers: [{ name: 'app', image: 'web:1' }] } },
  },
})
if (!parsed.ok || parsed.set.memory === undefined) throw new Error('the set keeps no memory')
const set = { ...parsed.set, memory: parsed.set.memory }

/** The fields of a report that matter. Its copy is usable as `Cold` if nothing else is said. */
type Said = Partial<Omit<SlotReport, 'usable'>> & { readonly usable?: SlotReport['usable'] | 'not' }

interface World {
  readonly status?: Partial<NodeReportStatus>
  readonly silentMs?: number
  /** Ms between a first look and the look whose result is returned. */
  readonly laterMs?: number
  /** Ms into that time after which every agent repeats its report. */
  readonly speaksMs?: number
  readonly owner?: string | undefined
  readonly pod?: Pod
  /** The pod at the looks before the last one. Absent: the same. */
  readonly before?: Pod
  /** The Lease at the looks before the last one. Absent: the same. */
  readonly leaseBefore?: NumberedSlotLease
  readonly nodes?: readonly Node[]
  readonly memory?: Partial<typeof set.memory>
  readonly template?: object
  readonly claims?: readonly Claim[]
  readonly spec?: Partial<typeof set>
}

async function viewed(
  lease: NumberedSlotLease,
  reports: Readonly<Record<string, Said>>,
  {
    status,
    silentMs = 0,
    laterMs = 0,
    speaksMs,
    owner,
    pod,
    before,
    leaseBefore = lease,
    nodes,
    memory,
    template,
    claims = [],
    spec,
  }: World = {},
) {
  const clock = createFakeClock()
  const leases = createStore<Lease>({ indexes: leaseIndexes })
  const ownerReferences =
    owner === undefined ? [] : [{ apiVersion: 'v1', kind: 'S', name: 'bps', uid: owner }]
  const write = (of: NumberedSlotLease, version: bigint) => {
    const body = numberedSlotLeaseBody(of)
    const metadata = { ...body.metadata, uid: 'lease', resourceVersion: `${version}`, ownerReferences }
    leases.replace([{ ...body, metadata }], version)
  }
  write(leaseBefore, 1n)
  const store = createStore<NodeReport>({ indexes: reportIndexes })
  const reported = createReports(store, clock)
  store.subscribe(change => reported.note({ ...change, initial: false }))
  const { namespace, name, incarnation } = lease
  store.replace(
    Object.entries(reports).map(([node, { usable = 'Cold', ...over }]) => {
      const report = makeSlotReport({ namespace, name, incarnation, ...over })
      const slots = [usable === 'not' ? report : { ...report, usable }]
      const { metadata, status: known } = makeReport(node, { ...status, slots })
      const { slotsKnown: _, ...earlier } = known
      return { metadata, status: status?.slotsKnown === undefined ? earlier : known }
    }),
    1n,
  )
  await clock.advance(silentMs)
  const told = createSince(clock)
  const asked = {
    ...{ ...set, ...spec },
    memory: { ...set.memory, ...memory },
    template: { ...set.template, spec: { ...set.template.spec, ...template } },
  }
  const deps: MemoryDeps = {
    leases,
    nodeOf: name => nodes?.find(({ metadata }) => metadata.name === name),
    reports: reported,
    clock,
    isDeleted: () => false,
    claims: { of: () => claims },
    storm: { heldForMs: () => 0 },
    permitted: 'everywhere',
    since: told,
    handoverTimes: { requestedAt: () => undefined },
  }
  const view = (seen = pod) => observeMemory(asked, () => seen, deps)
  if (laterMs === 0) return view()
  view(before)
  if (speaksMs !== undefined) {
    await clock.advance(speaksMs)
    for (const { status, ...old } of store.list())
      reported.note({
        ...{ type: 'updated', old, initial: false },
        object: { ...old, ...(status && { status }) },
      })
    view(before)
  }
  await clock.advance(laterMs - (speaksMs ?? 0))
  write(lease, 2n)
  return view()
}

const observed = async (...world: Parameters<typeof viewed>) =>
  (await viewed(...world)).slots.get(world[0].slot)

/** The primary of `makePrimary('p0', 0)`. */
const running = makePodObject('p0')
const died = { type: podConditions.serving, status: 'False', reason: 'Died' }
const nothing = { generation: 0, usable: 'not' } as const
const containerOf = (name: string, containerID: string) => ({
  ...{ name, containerID, image: '', imageID: '', ready: true, restartCount: 0 },
})
const understudyOf = (conditions: readonly PodCondition[], type?: string) =>
  makePodObject('h0', {
    ...(type !== undefined && { metadata: { labels: { [labels.type]: type } } }),
    spec: { initContainers: [{ name: holdInitContainer }] },
    status: { conditions },
  })

describe('what is believed of a slot', () => {
  const lease = makeLease(makePrimary('p0', 0), { node: 'n1', holders: ['n2'] })

  it('is what the nodes say that its Lease names', async () => {
    const slot = await observed(
      lease,
      {
        n1: { role: 'source', generation: 7 },
        n2: { generation: 6 },
        // This node keeps no copy of the slot, but reports one to attract the memory, and the pods that get it.
        x: { generation: 900, takenAt: '2099-01-01T00:00:00Z' },
      },
      { pod: running },
    )
    expect(slot?.source).toMatchObject({ generation: 7 })
    expect(slot?.copies.map(({ node }) => node)).toEqual(['n2'])
  })

  it('a node that was called, and has not looked again, is still the one that had a copy', async () => {
    const slot = await observed({ ...lease, node: 'n2', holders: [] }, { n2: { generation: 6 } })
    expect(slot?.copies.map(({ node }) => node)).toEqual(['n2'])
  })
})

describe('D7.kept: who may keep something of a slot', () => {
  const lease = makeLease(makePrimary('p0', 0), { node: 'n1', holders: ['n2'], kept: ['n2'] })
  const known = { slotsKnown: true }
  it.each<[string, Said, World, string[], string[]]>([
    ['has it: kept, though it cannot be used', { usable: 'not' }, {}, ['n2'], []],
    ['says that it has nothing', nothing, { status: known }, [], []],
    [
      'had the primary, and has not read since that another one has it',
      { role: 'source', usable: 'not' },
      { status: known },
      ['n2'],
      [],
    ],
    ['starts, and has not said yet', nothing, { status: { slotsKnown: false } }, [], ['n2']],
    ['is of an earlier version', nothing, {}, [], ['n2']],
    ['has not asked its disk', { ...nothing, reason: 'DiskUnread' }, { status: known }, [], ['n2']],
    ['had nothing, and is silent since', nothing, { status: known, silentMs: 31_000 }, [], ['n2']],
    [
      'has it on its disk only',
      { ...nothing, onDisk: { generation: 3, takenAt: '' } },
      { status: known },
      ['n2'],
      [],
    ],
  ])('a node that %s', async (_, report, world, copies, unasked) => {
    const slot = await observed(lease, { n2: report }, world)
    expect([slot?.copies.map(({ node }) => node), slot?.unasked.map(({ node }) => node)]).toEqual([
      copies,
      unasked,
    ])
  })

  it('a node that reports nothing at all; by a Lease of an earlier version any holder', async () => {
    expect((await observed(lease, {}))?.unasked).toMatchObject([{ node: 'n2' }])
    const old = { ...lease, kept: undefined }
    expect((await observed(old, {}, { pod: running }))?.unasked).toMatchObject([{ node: 'n2' }])
    expect((await observed(old, {}))?.unasked).toMatchObject([{ node: 'n2' }, { node: 'n1' }])
    expect((await observed({ ...lease, kept: [] }, {}))?.unasked).toEqual([])
  })

  it('what an agent that starts has said before counts as old', async () => {
    const slot = await observed(lease, { n2: {} }, { status: { slotsKnown: false } })
    expect(slot?.copies).toMatchObject([{ node: 'n2', stale: true }])
  })
})

describe('D7.kept: the node of the last primary keeps memory like any other', () => {
  const lease = makeLease(makePrimary('p0', 0), { node: 'n1', holders: ['n2'], kept: ['n1'] })
  const source = { role: 'source', generation: 7 } as const
  const status = { slotsKnown: true }
  const with1 = (over: Said) => ({ n1: { ...source, ...over }, n2: nothing })
  const dead = { ...running, status: { conditions: [died] } }
  const inServices = { ...running, status: { conditions: [{ ...died, status: 'True' }] } }
  const deleted = { ...running, metadata: { ...running.metadata, deletionTimestamp: 'now' } }
  const other = { ...running, status: { containerStatuses: [containerOf('app', 'containerd://2')] } }
  it.each<[string, NumberedSlotLease, Pod | undefined]>([
    ['gone', lease, undefined],
    ['dead', lease, dead],
    ['dead, and in its Services until its heir is', lease, inServices],
    ['deleted', lease, deleted],
    ['not what runs any more', { ...lease, containers: 'app=containerd://1' }, other],
  ])('once that is %s: it has a copy', async (_, its, pod) => {
    const slot = await observed(its, with1({}), { status, ...(pod && { pod }) })
    expect(slot?.copies).toMatchObject([{ node: 'n1', report: { generation: 7 } }])
    expect(slot?.sourceKeeps).toBe(true)
  })

  it('and is asked: its silence, and a disk that is not read, are no word that all is gone', async () => {
    const open = async (reports: Parameters<typeof viewed>[1], world: World = {}) =>
      (await observed(lease, reports, { status, ...world }))?.unasked.map(({ node }) => node)
    expect(await open({ n2: nothing })).toEqual(['n1'])
    expect(await open(with1({ ...nothing, reason: 'DiskUnread' }))).toEqual(['n1'])
    expect(await open(with1(nothing), { silentMs: 31_000 })).toEqual(['n1', 'n2'])
    expect(await open(with1(nothing))).toEqual([])
  })

  it('D7.holder-asked: so is every holder, which may have fetched it after its last word', async () => {
    const unasked = async (of: NumberedSlotLease, silentMs: number) =>
      (await observed(of, with1(nothing), { status, silentMs }))?.unasked
    expect(await unasked(lease, 1)).toMatchObject([{ node: 'n1' }, { node: 'n2', isGuess: true }])
    // No node ever had memory that a holder could have fetched.
    expect(await unasked({ ...lease, kept: [] }, 1)).toEqual([])
  })

  it('D7.holder-asked: so is the node of a death, which is told only where somebody keeps something', async () => {
    const first = { ...lease, kept: [] }
    const unasked = async (pod: Pod, silentMs: number) =>
      (await observed(first, with1(nothing), { status, pod, silentMs }))?.unasked.map(({ node }) => node)
    expect(await unasked(dead, 1)).toEqual(['n1', 'n2'])
    // By now both report that they have none.
    expect(await unasked(dead, 0)).toEqual([])
  })

  it('D7.holder-asked: so is a node that the Lease names, until it has reported in the time of the present primary', async () => {
    const named = { ...lease, kept: ['n1', 'n2'] }
    const unasked = async (world: World) =>
      (await observed(named, with1({}), { status, pod: running, ...world }))?.unasked.map(({ node }) => node)
    expect(await unasked({ silentMs: 1 })).toEqual(['n2'])
    expect(await unasked({ silentMs: 1, laterMs: 2_000, speaksMs: 1_000 })).toEqual([])
  })

  it('D7.let-go: a holder that has nothing may be fetching, until it reports that it knows that it was let go', async () => {
    const fetching = async (of: NumberedSlotLease, world: World = {}, n2: Said = nothing) =>
      (await observed(of, { ...with1({}), n2 }, { status, pod: running, ...world }))?.fetching
    const letGo = { ...lease, holders: ['n3'], kept: ['n2', 'n1'] }
    expect(await fetching(lease)).toEqual(['n2'])
    expect(await fetching(lease, { silentMs: 31_000 })).toEqual([])
    expect(await fetching(lease, {}, {})).toEqual([])
    // Its report does not mention the slot, and is from before.
    const another = { ...nothing, name: 'bps-7' }
    expect(await fetching(letGo, { silentMs: 1 }, another)).toEqual(['n2'])
    expect(await fetching(letGo, {}, another)).toEqual([])
    // It has reported since, and has not read that it was let go.
    expect(await fetching(letGo)).toEqual(['n2'])
    expect(await fetching(letGo, { silentMs: 31_000 })).toEqual([])
  })

  describe('D7.record: and the record of a death counts until its report comes', () => {
    const memory = { epoch: 1, generation: 9, takenAt: '2030-01-01T00:00:00.250Z', usable: 'Staged' } as const
    const at = Date.parse('2030-01-01T00:00:01Z')
    const left = { ...memory, at }
    const slot = formatSlotKey(lease) ?? ''
    const deadWith = (record: ServingRecord): Pod => ({
      ...running,
      metadata: {
        ...running.metadata,
        annotations: { [servingRecordAnnotation]: formatServingRecord(record, 'it has ended') ?? '' },
      },
      status: { conditions: [{ ...died, message: 'it has ended' }] },
    })
    const sourceOf = async (record: ServingRecord, world: World = {}, said: Said = {}) => {
      const reports = with1({ epoch: 1, usable: 'not', ...said })
      return (await observed(lease, reports, { status, silentMs: 1, pod: deadWith(record), ...world }))
        ?.source
    }
    const record = { diedWith: slot, left }

    it('with what the node had saved, and how that can be used', async () => {
      expect(await sourceOf(record)).toMatchObject(memory)
      const { copies } = (await observed(lease, with1({ epoch: 1, usable: 'not' }), {
        ...{ status, silentMs: 1, pod: deadWith(record) },
      })) ?? { copies: [] }
      expect(copies).toMatchObject([{ node: 'n1', report: memory }])
    })

    it('also of a primary that served on after its deletion, however lately its node has reported before its end', async () => {
      const deletionTimestamp = '2030-01-01T00:00:30Z'
      const ending = (pod: Pod): Pod => ({ ...pod, metadata: { ...pod.metadata, deletionTimestamp } })
      const world = {
        before: ending(running),
        pod: ending(deadWith(record)),
        laterMs: 8_000,
        speaksMs: 7_000,
      }
      expect(await sourceOf(record, world)).toMatchObject(memory)
    })

    it.each<[string, ServingRecord, World, Said]>([
      ['a report from after the death', record, { silentMs: 0 }, {}],
      // Its node has restarted since, and the record stays on the pod; this process has just become leader.
      [
        'a report from after the death, which this process has not seen come',
        record,
        { status: { ...status, updatedAt: new Date(at).toISOString() } },
        {},
      ],
      ['another memory ended', { ...record, diedWith: `${slot}x` }, {}, {}],
      ['the node has reported that it cannot restore it', record, {}, { reason: 'NodeNotReady' }],
      ['it is older than the report', { ...record, left: { ...left, generation: 6 } }, {}, {}],
      ['it is of an earlier epoch', { ...record, left: { ...left, epoch: 0 } }, {}, {}],
      ['no memory is left', { diedWith: slot }, {}, {}],
    ])('but not: %s', async (_, given, world, said) => {
      const source = await sourceOf(given, world, said)
      expect([source?.generation, source?.usable]).toEqual([7, undefined])
    })
  })

  it('D16.suspended: a slot that resumes has been without a primary since then, however long its memory was only kept', async () => {
    const leaseBefore = { ...lease, retainedSince: '2030-01-01T00:00:00Z' }
    const world = { status, leaseBefore, laterMs: 200_000 }
    const sinceThen = async (of: World) => {
      const slot = await observed(lease, with1({ epoch: 1 }), of)
      return [slot?.vacantSince, slot?.endedSince].map(at => at !== undefined && at >= 200_000)
    }
    expect(await sinceThen(world)).toEqual([true, true])
    expect(await sinceThen({ ...world, leaseBefore: lease })).toEqual([false, false])
  })

  it('and while it is on stage, what another node has of its epoch proves that it has saved: its "none" from before that counts no more', async () => {
    const unnamed = { ...lease, kept: ['n2'] }
    const keeps = async (of: NumberedSlotLease, n2: Said, world: World = {}) =>
      (
        await observed(
          of,
          { n1: { ...source, ...nothing }, n2 },
          { status, silentMs: 1, pod: running, ...world },
        )
      )?.sourceKeeps
    expect(await keeps(unnamed, { epoch: 1 })).toBe(true)
    expect(await keeps(unnamed, { epoch: 1 }, { laterMs: 2_000, speaksMs: 1_000 })).toBe(false)
    // The primary had that from another one.
    expect(await keeps(unnamed, { epoch: 0 })).toBe(false)
    // Once the Lease names it, the other copy may be lost.
    expect(await keeps({ ...unnamed, kept: ['n1', 'n2'] }, nothing)).toBe(true)
  })

  it('while the primary is on stage it is no copy to go on with, and nobody is asked', async () => {
    const at = (report: Said, world: World = {}) =>
      observed(lease, with1(report), { status, pod: running, ...world })
    expect(await at({})).toMatchObject({ copies: [], unasked: [], sourceKeeps: true })
    expect(await at(nothing, { silentMs: 31_000 })).toMatchObject({ unasked: [], sourceKeeps: true })
    expect(await at(nothing)).toMatchObject({ unasked: [], sourceKeeps: false })
  })
})

it('D7.kept: a claim that is missing for a pass costs no copy; where it stays away, all that is kept goes', async () => {
  const lease = makeLease(makePrimary('p0', 0), { node: 'n1', holders: ['n2'], kept: ['n1', 'n2'] })
  const told = { n1: { role: 'source', generation: 7 } as const, n2: {} }
  const claims = [{ name: 'data', readOnly: false, state: { type: 'missing' } as const }]
  const at = async (laterMs: number) => {
    const view = await viewed(lease, told, { claims, laterMs })
    const slot = view.slots.get(0)
    return [
      view.refused?.reason,
      view.refusedForLong,
      slot?.sourceKeeps,
      slot?.copies.map(({ node }) => node),
    ]
  }
  expect(await at(0)).toEqual(['ClaimMissing', false, true, ['n1', 'n2']])
  expect(await at(299_000)).toEqual(['ClaimMissing', false, true, ['n1', 'n2']])
  expect(await at(300_000)).toEqual(['ClaimMissing', true, false, ['n2']])
})

describe('D7.owner: a Lease of this name', () => {
  const lease = makeLease(makePrimary('p0', 0), { node: 'n1', holders: ['n2'] })
  it('is that of a set that was deleted: nothing of it is ours, and its name is waited for', async () => {
    const view = await viewed(lease, {}, { owner: 'another' })
    expect([...view.slots]).toEqual([])
    expect([...(view.foreign ?? [])]).toEqual([0])
  })
  it.each([
    ['ours', 'set'],
    ['left behind with its pods', undefined],
  ])('is %s', async (_, owner) => {
    const view = await viewed(lease, {}, { owner })
    expect([...view.slots.keys()]).toEqual([0])
    expect([...(view.foreign ?? [])]).toEqual([])
  })
})

describe('D7.ids: the holder runs', () => {
  const lease = makeLease(makePrimary('p0', 0), { node: 'n1', containers: 'app=containerd://1' })
  const pod = (ids: Record<string, string>) =>
    makePodObject('p0', {
      metadata: { annotations: { [savedAnnotation]: 'app' } },
      spec: { containers: Object.keys(ids).map(name => ({ name })) },
      status: { containerStatuses: Object.entries(ids).map(([name, id]) => containerOf(name, id)) },
    })
  const since = async (it: Pod) => (await observed(lease, {}, { pod: it }))?.replacedSince
  it('what its memory is of, whatever becomes of containers that are not saved', async () => {
    expect(await since(pod({ app: 'containerd://1', proxy: 'containerd://9' }))).toBeUndefined()
  })
  it('something else, though no counter has grown: its node has lost what it knew of containers', async () => {
    expect(await since(pod({ app: 'containerd://2', proxy: 'containerd://9' }))).toBeTypeOf('number')
  })
  it('nothing that is known: the runtime has not made it yet', async () => {
    expect(await since(pod({ app: '' }))).toBeUndefined()
  })
})

it('D7.kept: an understudy that was called and did not come leaves the memory where it is', async () => {
  const lease = makeLease(makePrimary('h0', 0), { node: 'n1', holders: [], kept: [] })
  const report = { n1: { role: 'source', usable: 'not' } } as const
  const failed = { type: podConditions.understudy, status: 'False', reason: 'RestoreFailed' }
  expect((await observed(lease, report, { pod: understudyOf([failed]) }))?.copies).toMatchObject([
    { node: 'n1' },
  ])
  const serving = { type: podConditions.serving, status: 'True' }
  expect((await observed(lease, report, { pod: understudyOf([serving]) }))?.copies).toEqual([])
})

it('D7.ending: since when somebody is called, and others before it, is known until one comes on stage', async () => {
  const lease = makeLease(makePrimary('h0', 0), { node: 'n1', holders: [], kept: [] })
  const at = (type: string, conditions: readonly PodCondition[]) =>
    observed(lease, {}, { pod: understudyOf(conditions, type) })
  const known = { calledSince: expect.any(Number), comingSince: expect.any(Number) }
  const unknown = { calledSince: undefined, comingSince: undefined }
  expect(await at('hotbackup', [])).toMatchObject(known)
  expect(await at('hotbackup', [died])).toMatchObject(known)
  expect(await at('hotbackup', [{ type: podConditions.serving, status: 'True' }])).toMatchObject(unknown)
  expect(await at('primary', [])).toMatchObject(unknown)
  expect(await observed(lease, {}, { pod: running })).toMatchObject(unknown)
})

it('D7.ending: since when a called pod resumes is known until it is on stage', async () => {
  const lease = makeLease(makePrimary('h0', 0), { node: 'n1', holders: [], kept: [] })
  const at = async (condition: Omit<PodCondition, 'type'>, type = 'hotbackup') => {
    const pod = understudyOf([{ type: podConditions.serving, ...condition }], type)
    return (await observed(lease, {}, { pod }))?.resumingSince
  }
  const resuming = { status: 'False', reason: servingReasons.resuming }
  expect(await at(resuming)).toEqual(expect.any(Number))
  expect(await at({ status: 'False', reason: servingReasons.offStage })).toBeUndefined()
  expect(await at({ status: 'True' })).toBeUndefined()
  expect(await at(resuming, 'primary')).toBeUndefined()
})

it('D7.handover-unready: since when a Lease asks for no handover is known by our own clock', async () => {
  const lease = makeLease(makePrimary('p0', 0), { node: 'n1', holders: ['n2'] })
  const at = async (handover: string | undefined) =>
    (await observed({ ...lease, handover }, { n2: {} }, { pod: running, laterMs: 5_000 }))?.settledSince
  expect(await at(undefined)).toBeLessThan(
    (await observed(lease, {}, { silentMs: 5_000 }))?.settledSince ?? 0,
  )
  expect(await at('uid-h0')).toBeUndefined()
})

it('since when a primary is not stopped by its voters is known by our own clock', async () => {
  const plain = makeLease(makePrimary('p0', 0), { node: 'n1', holders: ['n2'] })
  const lease = { ...plain, fence: makeFence(plain) }
  const at = async (fenced: boolean, ms: number, its: NumberedSlotLease = lease) => {
    const source = { role: 'source', generation: 1, ...(fenced && { fenced }) } as const
    return (await observed(its, { n1: source, n2: {} }, { pod: running, laterMs: ms }))?.unfencedSince
  }
  expect(await at(false, 5_000)).toEqual(expect.any(Number))
  expect(await at(true, 5_000)).toBeUndefined()
  // A silent agent cannot report it, and voters that are not armed stop nothing.
  expect(await at(false, 12_000)).toBeUndefined()
  const unarmed = { ...lease, fence: { ...lease.fence, isArmed: false } }
  expect(await at(false, 12_000, unarmed)).toEqual(expect.any(Number))
})

describe('D7.holders: memory lies where its template may run', () => {
  const lease = makeLease(makePrimary('p0', 0), { node: 'n1', holders: ['n2'] })
  const told = { n1: {}, n2: {}, n3: {} }
  const node = (name: string, pool: string): Node => ({
    metadata: { name, uid: name, resourceVersion: '1', labels: { pool } },
  })
  const nodes = [node('n1', 'secret'), node('n2', 'secret'), node('n3', 'shared')]
  const template = { nodeSelector: { pool: 'secret' } }
  const forbidden = ({ nodes: all }: Awaited<ReturnType<typeof viewed>>) =>
    [...all.values()].flatMap(({ name, forbidden: is }) => (is ? [name] : []))

  it('and nowhere else, unless the set says so; too few copies are told with the cure', async () => {
    const view = await viewed(lease, told, { nodes, template })
    expect(forbidden(view)).toEqual(['n3'])
    expect(view.caveats).toMatchObject([
      { reason: 'FewerCopies', message: expect.stringContaining('set checkpoint.holders to Any') },
    ])
    const any = await viewed(lease, told, { nodes, template, memory: { matchingHolders: false } })
    expect([forbidden(any), any.caveats]).toEqual([[], []])
  })

  it('a node that is not known has no labels: it is no place for what asks for one', async () => {
    expect(forbidden(await viewed(lease, told, { nodes: nodes.slice(1), template }))).toEqual(['n1', 'n3'])
    expect(forbidden(await viewed(lease, told))).toEqual([])
  })

  it('nothing is told where all copies are there', async () => {
    const view = await viewed(lease, told, { nodes, template, memory: { copies: 1 } })
    expect(view.caveats).toEqual([])
  })
})

describe('MP-28: a slot that waits for its copy', () => {
  const cloneOf = { name: 'other-0', incarnation: '00000001', epoch: 1, generation: 3, node: 'n1' }
  const lease = makeLease(makePrimary('other-x', 0), {
    ...{ holder: { name: 'other-x', uid: cloneHolder('u') }, node: 'n1', kept: ['n1'], cloneOf },
  })
  const since = async (report: Said, of = lease, silentMs = 0) => {
    const said = { n1: { role: 'source', ...report } } as const
    const world = { status: { slotsKnown: true }, laterMs: 5_000, silentMs }
    return (await observed(of, said, world))?.uncopiedSince
  }

  it('knows for how long its node has said that it cannot make it', async () => {
    expect(await since({ ...nothing, reason: 'StoreFull' })).toBe(createFakeClock().monotonic())
    expect(await since(nothing)).toBeUndefined()
    // Then the agent says that nothing is refused to it.
    for (const reason of ['PolicyUnknown', 'DiskUnread', 'Unproven'])
      expect(await since({ ...nothing, reason })).toBeUndefined()
    expect(await since({ generation: 1, reason: 'StoreFull' })).toBeUndefined()
    // A copy that it cannot use is none.
    expect(await since({ generation: 1, usable: 'not', reason: 'NodeNotReady' })).toBeDefined()
  })

  it('knows for how long no node that may have its copy answers, once a pod was called and until one has served', async () => {
    const called = { ...lease, holder: { name: 'h0', uid: 'h0' } }
    const served = { ...called, cloneOf: { ...cloneOf, served: true as const } }
    expect(await since({ ...nothing, reason: 'StoreFull' }, called)).toBeUndefined()
    expect(await since({ generation: 1 }, called)).toBeUndefined()
    expect(await since({ generation: 1 }, called, 31_000)).toBeDefined()
    expect(await since({ ...nothing, reason: 'StoreFull' }, called, 31_000)).toBeDefined()
    expect(await since({ generation: 1 }, served, 31_000)).toBeUndefined()
  })

  it('looks for its source only while a slot may need that, and counts the time only while one may begin', async () => {
    const looks = async (of: NumberedSlotLease, over: Partial<typeof set> = {}) => {
      const { cloneSource, cloningSince } = await viewed(of, {}, { spec: { cloneFrom: 'other-x', ...over } })
      return [cloneSource !== undefined, cloningSince !== undefined]
    }
    const { cloneOf: _, ...begun } = { ...lease, holder: { name: 'p0', uid: 'p0' } }
    expect(await looks(lease)).toEqual([true, true])
    expect(await looks(lease, { paused: true })).toEqual([true, false])
    expect(await looks(lease, { suspended: true })).toEqual([true, false])
    expect(await looks(lease, { cloneFrom: undefined })).toEqual([false, false])
    expect(await looks(begun)).toEqual([false, false])
    expect(await looks(begun, { replicas: 2 })).toEqual([true, true])
    // Its source was removed from the Lease: it has not begun.
    expect(await looks({ ...begun, holder: lease.holder })).toEqual([true, true])
  })
})

describe('a node is closed to new pods', () => {
  const lease = makeLease(makePrimary('p0', 0), { node: 'n1', holders: ['n2'] })
  const told = { n1: {}, n2: {} }
  const closed = async (world: World) =>
    [...(await viewed(lease, told, world)).nodes.values()].flatMap(({ name, closed: is }) =>
      is ? [name] : [],
    )

  it('that is cordoned, or where the template may not run, even if it may keep memory', async () => {
    const taints = [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }]
    const metadata = { name: 'n2', uid: 'n2', resourceVersion: '1' }
    expect(await closed({ nodes: [{ metadata, spec: { taints } }] })).toEqual(['n2'])
    const memory = { matchingHolders: false }
    expect(await closed({ nodes: [{ metadata }], template: { nodeName: 'x' }, memory })).toEqual([])
    const template = { nodeSelector: { pool: 'secret' } }
    expect(await closed({ nodes: [{ metadata }], template, memory })).toEqual(['n1', 'n2'])
  })

  it('whose agent should have written by now, although it does not count as silent yet', async () => {
    expect(await closed({ silentMs: 11_000 })).toEqual([])
    expect(await closed({ silentMs: 13_000 })).toEqual(['n1', 'n2'])
  })
})

describe('how long a primary that is being deleted is waited for', () => {
  const lease = makeLease(makePrimary('p0', 0), { node: 'n1' })
  const going = (deletionTimestamp: string, deletionGracePeriodSeconds = 10) =>
    makePodObject('p0', { metadata: { deletionTimestamp, deletionGracePeriodSeconds } })
  it.each(['1970-01-01T00:00:00Z', '2099-01-01T00:00:00Z'])(
    'is its grace and two seconds more, from when it was seen, whatever the API server has for a clock: %s',
    async time => {
      const start = createFakeClock().monotonic()
      const by = async (laterMs: number) =>
        ((await observed(lease, {}, { pod: going(time), laterMs }))?.holderGoesBy ?? 0) - start
      expect([await by(0), await by(7_000)]).toEqual([12_000, 12_000])
    },
  )

  describe('on a node that may be cut off', () => {
    const start = createFakeClock().monotonic()
    const ready = (status: 'True' | 'False') =>
      makePodObject('p0', {
        metadata: going('1970-01-01T00:00:00Z').metadata,
        spec: { nodeName: 'n1' },
        status: { conditions: [{ type: 'Ready', status }] },
      })
    const by = async (laterMs: number, world: World = {}) =>
      ((await observed(lease, { n1: { role: 'source' } }, { pod: ready('True'), laterMs, ...world }))
        ?.holderGoesBy ?? 0) - start

    it('D7.deleted: its grace is not over before anything was heard of its node since', async () => {
      expect([await by(0), await by(7_000), await by(60_000)]).toEqual([12_000, 12_000, 62_000])
    })

    it('D7.deleted: and counts from the first word of its agent', async () => {
      expect(await by(60_000, { speaksMs: 20_000 })).toBe(32_000)
    })

    it('D7.deleted: that it cannot have said before it saw the deletion', async () => {
      expect([await by(60_000, { speaksMs: 4_900 }), await by(60_000, { speaksMs: 5_100 })]).toEqual([
        62_000, 17_100,
      ])
    })

    it('until Kubernetes takes it for lost', async () => {
      expect(await by(60_000, { pod: ready('False') })).toBe(12_000)
    })
  })
})

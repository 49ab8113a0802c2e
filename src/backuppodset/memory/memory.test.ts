// Long because pods, reports and the status share the fixtures of one slot.
import { describe, expect, it } from 'vitest'
import type { Grant } from '../../api/grant.ts'
import { labels } from '../../api/labels.ts'
import type { NodeReport, SlotReport } from '../../api/node-report.ts'
import {
  holdInitContainer,
  memoryAnnotation,
  podConditions,
  savedAnnotation,
  spoiledReason,
} from '../../api/pod-contract.ts'
import { createFakeClock } from '../../kube/clock.ts'
import type { Pod } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import { takenAt } from '../../slot/decide/copy-age.ts'
import type { MemoryView, NodeView, SlotMemory } from '../../slot/decide/memory-view.ts'
import { createReports, reportIndexes, setsIn } from '../../slot/observe/reports.ts'
import { withStage } from '../../slot/observe/stage.ts'
import { checkpointReadiness } from '../../slot/report/readiness.ts'
import { slotFacts } from '../../slot/report/status.ts'
import { makeReport, makeSlotReport } from '../../slot/testing/objects.ts'
import { makeCopy, makeLease, makeSlot } from '../../slot/testing/slots.ts'
import { claimOf } from '../observe.ts'
import { viewOf } from '../pod/view.ts'
import type { PodView } from '../snapshot.ts'
import { makePrimary, makeUnderstudy } from '../testing/memory.ts'
import { makeSet } from '../testing/snapshots.ts'
import { memoryEvents } from './memory-events.ts'

type Condition = {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
}

const pod = (type: string, understudy: boolean, conditions: readonly Condition[]): Pod =>
  ({
    metadata: {
      name: 'p',
      namespace: 'default',
      uid: 'u',
      resourceVersion: '1',
      creationTimestamp: '1970-01-01T00:00:00Z',
      labels: { [labels.type]: type, [labels.set]: 'bps' },
      annotations: { [memoryAnnotation]: 'kept' },
    },
    spec: { containers: [], initContainers: understudy ? [{ name: holdInitContainer }] : [] },
    status: {
      podIP: '10.0.0.9',
      conditions: conditions.map(each => ({ ...each, lastTransitionTime: '1970-01-01T00:00:10Z' })),
    },
  }) as Pod

const stage = (it: Pod, summons = false, failed?: string) => {
  const view = viewOf(it, undefined)
  if (view === undefined) throw new Error('no view')
  const lease = makeLease(makePrimary('p', 3, { uid: 'u', epoch: 7 }))
  return withStage(it, view, summons ? lease : undefined, failed)
}
const ready = { type: 'Ready', status: 'True' }
const holding = { type: 'ContainersReady', status: 'True' }
const serving = { type: podConditions.serving, status: 'True', reason: 'OnStage' }
const dead = { type: podConditions.serving, status: 'False', reason: 'Died' }
const torn = { type: podConditions.understudy, status: 'False', reason: 'RestoreFailed' }

describe('what a pod with memory is good for', () => {
  it('D7.readiness: a dead primary serves nobody, whatever the kubelet has started in its place', () => {
    expect(stage(pod('primary', false, [ready]))).toMatchObject({ ready: true, stage: { died: false } })
    expect(stage(pod('primary', false, [ready, dead]))).toMatchObject({
      ready: false,
      unreadySince: 10_000,
      stage: { died: true },
    })
  })

  it('an understudy is ready to be taken when it holds the stage, and as a primary when its app answers', () => {
    expect(stage(pod('hotbackup', true, [])).ready).toBe(false)
    expect(stage(pod('hotbackup', true, [holding])).ready).toBe(true)
    expect(stage(pod('primary', true, [holding]))).toMatchObject({ ready: false })
    expect(stage(pod('primary', true, [serving]))).toMatchObject({
      ready: true,
      stage: { serving: true },
    })
  })

  it('an understudy may run once its agent has told that it resumes, until that tells that it does not', () => {
    const mayRun = (...conditions: readonly Condition[]) =>
      stage(pod('hotbackup', true, conditions)).stage?.resuming
    const resuming = { type: podConditions.serving, status: 'False', reason: 'Resuming' }
    expect(mayRun(resuming)).toBe(true)
    expect(mayRun({ ...resuming, reason: 'NotAnswering' })).toBe(true)
    for (const conditions of [[], [dead], [{ ...dead, reason: 'OffStage' }], [resuming, torn]])
      expect(mayRun(...conditions)).toBe(false)
  })

  it('a condition from before a restart of its node makes no backup ready', () => {
    const word = { type: podConditions.understudy, status: 'True', reason: 'Frozen' }
    const unready = { type: 'ContainersReady', status: 'False' }
    const frozen = (state: { readonly running?: object; readonly waiting?: object }): Pod => {
      const it = running(pod('hotbackup', true, [word, unready]), 'app', {
        app: ['c://1', 0],
        proxy: ['c://2', 0],
      })
      const [app, proxy] = it.status?.containerStatuses ?? []
      if (app === undefined || proxy === undefined) throw new Error('no statuses')
      return { ...it, status: { ...it.status, containerStatuses: [{ ...app, state }, proxy] } }
    }
    // Probes fail while an app is frozen, and restarts of a sidecar end nothing that is kept.
    expect(stage(frozen({ running: {} })).ready).toBe(true)
    expect(stage(frozen({ waiting: {} })).ready).toBe(false)
    expect(stage(pod('hotbackup', true, [word, unready])).ready).toBe(false)
  })

  const running = (
    it: Pod,
    saved: string,
    statuses: Record<string, [id: string, restarts: number]>,
  ): Pod => ({
    ...it,
    metadata: { ...it.metadata, annotations: { ...it.metadata.annotations, [savedAnnotation]: saved } },
    spec: { ...it.spec, containers: Object.keys(statuses).map(name => ({ name })) },
    status: {
      ...it.status,
      containerStatuses: Object.entries(statuses).map(([name, [containerID, restartCount]]) => ({
        ...{ name, containerID, restartCount, image: '', imageID: '', ready: true },
      })),
    },
  })

  it('D7.ending: one that did not answer in time may run; what its agent says of it counts', () => {
    const why = 'it did not serve within 10 s'
    const held = (...conditions: Condition[]) => pod('hotbackup', true, conditions)
    const late = (it: Pod, summons = true, failed: string | undefined = why) =>
      stage(it, summons, failed).stage?.late
    expect(late(held(holding))).toBe(true)
    // Not late: no Lease calls the pod, the wait for it is not over, or it came on stage.
    expect(late(held(holding), false)).toBeUndefined()
    expect(stage(held(holding), true).stage?.late).toBeUndefined()
    expect(late(held(holding, serving))).toBeUndefined()
    expect(late(held(torn))).toBeUndefined()
    expect(late(held(torn), true, torn.reason)).toBeUndefined()
    expect(late(held(holding, dead))).toBeUndefined()
  })

  it('D7.lost-node: a promoted pod that Kubernetes does not call Ready any more serves nobody, whatever its dead node has said', () => {
    const promoted = pod('primary', true, [serving, holding, { type: 'Ready', status: 'False' }])
    const view = viewOf(promoted, undefined)
    if (view === undefined) throw new Error('no view')
    const unreadyAfter = (unpublishedMs: number) =>
      withStage(promoted, view, undefined, undefined, { unpublishedMs, now: 100_000 })
    // Its kubelet is about to publish that.
    expect(unreadyAfter(1_000)).toMatchObject({ ready: true, unreadySince: undefined })
    expect(unreadyAfter(8_000)).toMatchObject({ ready: false, unreadySince: 92_000 })
    const backup = pod('hotbackup', true, [holding])
    const holds = viewOf(backup, undefined)
    if (holds === undefined) throw new Error('no view')
    expect(withStage(backup, holds, undefined, undefined, { silent: true }).ready).toBe(false)
  })

  it('D7.saved: restarts of containers that are not saved are nobody’s death', () => {
    const both = running(pod('primary', false, [ready]), 'app,worker', {
      ...{ app: ['c://1', 0], proxy: ['c://2', 7], worker: ['c://3', 2] },
    })
    expect(stage(both).stage).toMatchObject({ restarts: 2, containers: 'app=c://1,worker=c://3' })
    const one = running(both, 'app', { app: ['c://1', 0], proxy: ['c://2', 7] })
    expect(stage(one).stage).toMatchObject({ restarts: 0, containers: 'app=c://1' })
  })

  it('D7.untold: an understudy whose containers are others than those on stage only holds it again', () => {
    const told = { ...serving, message: 'epoch 2: app is c://1; generation 3 of 2030-01-01T00:00:00Z' }
    const on = (id: string) => stage(running(pod('primary', true, [told]), 'app', { app: [id, 0] }))
    expect(on('c://1')).toMatchObject({ ready: true, stage: { serving: true, replaced: 'No' } })
    expect(on('c://2')).toMatchObject({ ready: false, stage: { serving: false, replaced: 'Wholly' } })
    // Its agent does not report which containers are on stage.
    const brief = running(pod('primary', true, [serving]), 'app', { app: ['c://2', 0] })
    expect(stage(brief)).toMatchObject({ ready: true, stage: { replaced: 'No' } })
  })

  it('one that a Lease names is the primary of its slot before its label says so, unless it failed', () => {
    const called = pod('hotbackup', true, [holding])
    expect(stage(called, true)).toMatchObject({
      kind: 'primary',
      slot: 3,
      epoch: 7,
      stage: { promoting: true },
    })
    const failed = { kind: 'hotbackup', slot: undefined, stage: { promoting: false } }
    expect(stage(pod('hotbackup', true, [holding, torn]), true)).toMatchObject(failed)
    expect(stage(called, true, 'too late')).toMatchObject(failed)
    expect(stage(pod('hotbackup', true, [dead]), true)).toMatchObject(failed)
    expect(stage(pod('hotbackup', true, [holding, torn])).stage?.spoiled).toBe(false)
    const spoiled = { ...torn, reason: spoiledReason }
    expect(stage(pod('hotbackup', true, [holding, spoiled])).stage?.spoiled).toBe(true)
    // The pod is late, but on stage.
    expect(stage(pod('hotbackup', true, [torn, serving]), true, 'too late')).toMatchObject({
      kind: 'primary',
    })
    // Nothing can be restored into a pod that runs the app itself.
    expect(stage(pod('hotbackup', false, [ready]), true)).toMatchObject({ kind: 'hotbackup' })
  })
})

describe('losers', () => {
  const set = makeSet()
  const retired = (owner: string | undefined, annotation = true): Pod => {
    const it = pod('retired', false, [])
    const ownerReferences =
      owner === undefined
        ? []
        : [{ apiVersion: 'v1', kind: 'BackupPodSet', name: 'bps', uid: owner, controller: true }]
    return {
      ...it,
      metadata: { ...it.metadata, ownerReferences, ...(annotation ? {} : { annotations: {} }) },
    }
  }

  it('stay with their set, and are adopted by none', () => {
    expect(claimOf(set, retired(set.uid))).toBe('ours')
    expect(claimOf(set, retired(undefined))).toBe('ignore')
    expect(claimOf(set, retired('other'))).toBe('ignore')
  })

  it('are those made for memory: the label of another pod is for its owner to change', () => {
    expect(claimOf(set, retired(set.uid, false))).toBe('release')
  })
})

const slotReport = (over: Partial<SlotReport> = {}) => makeSlotReport({ usable: 'Staged', ...over })
const report = (version: number, slots: readonly SlotReport[]): NodeReport => {
  const { metadata, ...rest } = makeReport('n1', { slots, updatedAt: new Date(version).toISOString() })
  return { ...rest, metadata: { ...metadata, resourceVersion: `${version}` } }
}

describe('reports of nodes', () => {
  it('tell by our own clock since when a generation is known, and for how long a node is silent', async () => {
    const clock = createFakeClock()
    const store = createStore<NodeReport>({ indexes: reportIndexes })
    const reports = createReports(store, clock)
    store.subscribe(change => reports.note(change))
    const start = clock.monotonic()
    store.upsert(report(1, [slotReport()]))
    await clock.advance(1_000)
    store.upsert(report(2, [slotReport()]))
    expect(reports.ofSet('default/bps')).toMatchObject([{ node: 'n1', seenAt: start }])
    await clock.advance(1_000)
    store.upsert(report(3, [slotReport({ generation: 2 })]))
    expect(reports.ofSet('default/bps')).toMatchObject([{ seenAt: start + 2_000 }])
    await clock.advance(500)
    expect(reports.silentFor('n1')).toBe(500)
    expect(reports.silentFor('nobody')).toBe(Number.POSITIVE_INFINITY)
    expect(reports.ofSet('default/other')).toEqual([])
  })

  it('name the sets for which something has changed, and whether somebody may act on it', () => {
    const before = report(1, [slotReport(), slotReport({ name: 'other-0' })])
    const change = (slots: readonly SlotReport[]) => {
      const sets = setsIn({ type: 'updated', old: before, object: report(2, slots), initial: false })
      return Object.fromEntries([...sets].map(([key, { urgent }]) => [key, urgent]))
    }
    const other = slotReport({ name: 'other-0' })
    expect(change([slotReport({ takenAt: '2026-01-01T00:00:00Z' }), other])).toEqual({})
    expect(change([slotReport({ generation: 2 }), other])).toEqual({ 'default/bps': false })
    expect(change([slotReport({ usable: 'Frozen', understudyUid: 'x' }), other])).toEqual({
      'default/bps': true,
    })
    expect(change([slotReport()])).toEqual({ 'default/other': true })
    expect(change([slotReport({ final: true }), other])).toEqual({ 'default/bps': true })
    expect(change([slotReport({ fenced: true }), other])).toEqual({ 'default/bps': true })
    expect(change([slotReport({ diskReason: 'DiskShareFull' }), other])).toEqual({ 'default/bps': false })
  })
})

it('the age of memory counts from when it was taken, and does not believe clocks that are far off', () => {
  const lease = makeLease(makePrimary('p0', 0))
  const times = { now: 1_000_000, monotonicNow: 50_000 }
  const copy = (takenAt: string | undefined) => ({
    ...makeCopy(lease, makeUnderstudy('h0'), 'Staged', takenAt === undefined ? {} : { takenAt }),
    seenAt: 49_000,
  })
  const at = (agoMs: number) => new Date(times.now - agoMs).toISOString()
  // Seen a second ago, after 0.2 s in transit.
  const age = (of: ReturnType<typeof copy>) => (times.monotonicNow - takenAt(of, times)) / 1000
  expect(age(copy(undefined))).toBe(1.2)
  expect(age(copy(at(4_000)))).toBe(4)
  expect(age(copy(at(-60_000)))).toBe(1.2)
  expect(age(copy(at(3_600_000)))).toBe(1.2)
})

describe('status', () => {
  const p0 = makePrimary('p0', 0)
  const h0 = makeUnderstudy('h0')
  const lease = makeLease(p0, { heir: { name: 'h0', uid: h0.uid, ip: undefined }, holders: ['n-h0'] })
  const times = { now: 60_000, monotonicNow: 1_000 }
  const at = { monotonicNow: times.monotonicNow, intervalMs: 10_000 }
  const node = (name: string, ok: boolean, problem?: string): NodeView => ({ name, ready: ok, problem })
  const memory = (slot: SlotMemory, nodes: readonly NodeView[]): MemoryView => ({
    slots: new Map([[0, slot]]),
    copies: 2,
    nodes: new Map(nodes.map(each => [each.name, each])),
  })
  const both = [node('n-p0', true), node('n-h0', true)]

  it('protection is the best that a pod could do, also a pod that does not exist yet', () => {
    const facts = (slot: SlotMemory, pods = [p0, h0]) => slotFacts(slot, p0, pods, times)
    const frozen = makeSlot(lease, [makeCopy(lease, h0, 'Frozen')])
    expect(facts(frozen)).toMatchObject({
      generation: 3,
      savedAt: '1970-01-01T00:00:59.300Z',
      usableOn: ['n-h0'],
      protection: 'Frozen',
    })
    expect(facts(makeSlot(lease, [makeCopy(lease, h0, 'Staged')])).protection).toBe('Staged')
    // No backup exists: a new pod can resume with the copy.
    expect(facts(frozen, [p0])).toMatchObject({ usableOn: ['n-h0'], protection: 'Cold' })
    expect(facts(makeSlot(lease, [makeCopy(lease, h0, undefined)])).protection).toBe('None')
    expect(facts(makeSlot(lease, [makeCopy(lease, p0, 'Frozen')])).protection).toBe('None')
    expect(facts(frozen, [p0, makeUnderstudy('h0', {}, { failed: 'torn' })]).protection).toBe('Cold')
    const succeeded = makeSlot({ ...lease, holder: { name: 'x', uid: 'x' } }, frozen.copies)
    expect(facts(succeeded)).toMatchObject({ generation: 0, usableOn: [], protection: 'None' })
  })

  it('says which hot backup may take the slot without the operator', () => {
    const granted = (over: Partial<Grant>, holder = lease.holder) => {
      const grant = { number: 2, isRevoked: false, heir: { uid: h0.uid, node: 'n-h0' }, ...over }
      return slotFacts(makeSlot({ ...lease, holder, grant }, []), p0, [p0, h0], times).grantedTo
    }
    expect(granted({})).toBe('h0')
    expect(granted({ isRevoked: true })).toBeUndefined()
    expect(granted({}, { name: 'x', uid: 'x' })).toBeUndefined()
    expect(slotFacts(makeSlot(lease, []), p0, [p0, h0], times)).not.toHaveProperty('grantedTo')
  })

  it('says how far apart checkpoints are, and why further than the set asks for', () => {
    const source = slotReport({ role: 'source', intervalSeconds: 6, intervalReason: 'FreezeBudget' })
    expect(slotFacts(makeSlot(lease, [], { source }), p0, [p0, h0], times)).toMatchObject({
      ...{ intervalSeconds: 6, intervalReason: 'FreezeBudget' },
    })
    expect(slotFacts(makeSlot(lease, []), p0, [p0, h0], times)).not.toHaveProperty('intervalReason')
  })

  it('CheckpointReady names the first thing in the way, with its cure', () => {
    const readiness = (slot: SlotMemory, nodes: readonly NodeView[], pods = [p0, h0]) => {
      const facts = slotFacts(slot, p0, pods, times)
      const status = { slot: 0, pod: 'p0', epoch: 1, ready: true, ...facts }
      const { status: value, reason, message } = checkpointReadiness(memory(slot, nodes), pods, [status], at)
      return [value, reason, message]
    }
    const nothing = makeSlot(lease, [])
    const withSource = (over: Partial<SlotReport>) =>
      makeSlot(lease, [], { source: slotReport({ role: 'source', generation: 0, ...over }) })
    expect(readiness(nothing, [])).toEqual([
      'False',
      'NoAgents',
      expect.stringContaining('install the agent'),
    ])
    expect(readiness(nothing, [node('n-p0', false, 'canary: no; load the module')])).toEqual([
      'False',
      'NoNodeReady',
      expect.stringContaining('n-p0: canary: no; load the module'),
    ])
    expect(readiness(nothing, [node('n-h0', true)])).toEqual([
      'False',
      'NodeNotReady',
      expect.stringContaining('no agent reports from it'),
    ])
    expect(readiness(withSource({ reason: 'TooBig', message: 'raise it' }), both)).toEqual([
      'False',
      'TooBig',
      'slot 0 (p0): raise it',
    ])
    expect(readiness(makeSlot({ ...lease, heir: undefined }, []), both)[1]).toBe('NoUnderstudy')
    expect(readiness(withSource({}), both)[1]).toBe('NotSaved')
    expect(readiness(withSource({ generation: 1 }), both)[1]).toBe('NotStaged')
    expect(readiness(makeSlot(lease, [makeCopy(lease, h0, 'Frozen')]), both)[0]).toBe('True')
  })

  it('CheckpointReady says that nothing is saved any more although an older state could be taken over', () => {
    const savedAt = '2030-01-01T00:00:00.000Z'
    const readiness = (
      heardMs: number,
      source: Partial<SlotReport> = {},
      { nodes = both, intervalSeconds = 10 } = {},
    ) => {
      const slot = makeSlot(
        lease,
        [{ ...makeCopy(lease, h0, 'Frozen'), seenAt: times.monotonicNow - heardMs }],
        {
          source: slotReport({ role: 'source', ...source }),
        },
      )
      const status = {
        ...{ slot: 0, pod: 'p0', epoch: 1, ready: true, generation: 7, usableOn: ['n-h0'] },
        ...{ protection: 'Frozen' as const, intervalSeconds, savedAt },
      }
      const told = checkpointReadiness(memory(slot, nodes), [p0, h0], [status], at)
      return [told.status, told.reason, told.message]
    }
    const trouble = { reason: 'StoreFull', message: 'no room; make some' }
    expect(readiness(60_000, trouble)).toEqual([
      'False',
      'StoreFull',
      `slot 0 (p0): its newest usable memory is from ${savedAt}; no room; make some`,
    ])
    expect(readiness(60_000)[1]).toBe('NotSaved')
    expect(readiness(60_000, {}, { nodes: [node('n-p0', false, 'canary: no'), node('n-h0', true)] })).toEqual(
      ['False', 'NodeNotReady', expect.stringContaining('its node cannot save memory: canary: no')],
    )
    // A single failure, or an interval that the set or a slow freeze lengthens, does not matter.
    expect(readiness(20_000, trouble)[0]).toBe('True')
    expect(readiness(60_000, {}, { intervalSeconds: 13 })[0]).toBe('True')
  })

  it('D7.kept: CheckpointReady says of a slot without primary who keeps its memory, and why it does not go on', () => {
    const slot = makeSlot(
      { ...lease, kept: ['n-h0', 'n-x'] },
      [makeCopy(lease, h0, undefined, { message: 'no canary' })],
      {
        vacantSince: 0,
        unasked: [{ node: 'n-x', why: 'its agent is silent' }],
      },
    )
    const told = checkpointReadiness(memory(slot, both), [h0], [], at)
    expect(told).toMatchObject({ status: 'False', reason: 'MemoryWaits' })
    expect(told.message).toMatch(
      /slot 0 .*n-h0 \(no canary\), n-x \(its agent is silent\).*giveUpAfterSeconds/,
    )
    const limited = checkpointReadiness({ ...memory(slot, both), giveUpAfterMs: 60_000 }, [h0], [], at)
    expect(limited.message).toMatch(/after 60 s$/)
    expect(checkpointReadiness(memory({ ...slot, vacantSince: undefined }, both), [h0], [], at).status).toBe(
      'True',
    )
  })

  it('CheckpointReady says of a slot that no pod takes, although its memory could be restored, in which pods that failed', () => {
    const failing = (name: string, successorOf: number) =>
      makeUnderstudy(name, {}, { failed: 'criu: no room', successorOf })
    const pods = [h0, failing('h1', 0), failing('h2', 1)]
    const told = (
      ms: number,
      its: readonly PodView[] = pods,
      over: Partial<SlotMemory> = {},
      isPaused = false,
    ) => {
      const usable = makeCopy(lease, h0, 'Staged')
      const slot = makeSlot(lease, [usable], { vacantSince: at.monotonicNow - ms, ...over })
      return checkpointReadiness(memory(slot, both), its, [], { ...at, isPaused })
    }
    expect(told(9_999).status).toBe('True')
    expect(told(10_000)).toMatchObject({ status: 'False', reason: 'NoPrimary' })
    expect(told(10_000).message).toMatch(/slot 0 .* n-h0: it could not be restored in h1 \(criu: no room\)$/)
    expect(told(10_000, [h0]).message).toMatch(/no pod has taken it yet$/)
    expect(told(10_000, pods, {}, true).message).toMatch(/no pod is called while spec.paused is true$/)
    const outstanding = { heir: { uid: h0.uid, node: 'n-h0' }, isUsed: true }
    expect(told(10_000, [h0], { grants: { words: new Map(), nextNumber: 2, outstanding } }).message).toMatch(
      /h0 on n-h0 may have it by its grant; the slot waits for a word of the agent of .* or n-h0$/,
    )
    // One is on its way.
    expect(told(10_000, pods, { calledSince: 1 }).status).toBe('True')
    // Where no copy is usable, the reason is another one.
    expect(told(10_000, pods, { copies: [makeCopy(lease, h0, undefined)] }).reason).toBe('MemoryWaits')
  })

  it('CheckpointReady says why nothing is saved before all else, and what to know of what is, always', () => {
    const caveats = [
      { reason: 'First', message: 'the disk is ahead' },
      { reason: 'Second', message: 'a name is old' },
    ]
    const readiness = (slot: SlotMemory, over: Partial<MemoryView>) => {
      const facts = slotFacts(slot, p0, [p0, h0], times)
      const status = { slot: 0, pod: 'p0', epoch: 1, ready: true, ...facts }
      return checkpointReadiness({ ...memory(slot, both), ...over }, [p0, h0], [status], at)
    }
    const frozen = makeSlot(lease, [makeCopy(lease, h0, 'Frozen')])
    expect(readiness(frozen, { caveats })).toEqual({
      status: 'True',
      reason: 'First',
      message: 'successors could take over the memory of 1 primaries; the disk is ahead; a name is old',
    })
    expect(readiness(makeSlot(lease, []), { caveats })).toMatchObject({
      status: 'False',
      reason: 'NotSaved',
      message: expect.stringMatching(/; the disk is ahead; a name is old$/),
    })
    const refused = { reason: 'ClaimNotShared', message: 'use another one' }
    expect(readiness(frozen, { refused })).toEqual({ status: 'False', ...refused })
  })

  it('each of these is one event, until something else is said', () => {
    const view = memory(makeSlot(lease, []), both)
    const caveat = { reason: 'Caveat', message: 'the disk is ahead' }
    const refused = { reason: 'Refused', message: 'use another one' }
    const saying = (message: string) => ({
      conditions: [
        {
          ...({ type: 'CheckpointReady', status: 'True', reason: 'R', message } as const),
          ...{ lastTransitionTime: '', observedGeneration: 1 },
        },
      ],
    })
    const reasonsOf = (previous: Parameters<typeof memoryEvents>[0], over: Partial<MemoryView>) =>
      memoryEvents(previous, { ...view, ...over }).map(({ reason }) => reason)
    const all = { refused, caveats: [caveat] }
    expect(reasonsOf(undefined, all)).toEqual(['Refused', 'Caveat'])
    expect(reasonsOf(saying('all well; the disk is ahead'), all)).toEqual(['Refused'])
    expect(reasonsOf(saying('use another one; the disk is ahead'), all)).toEqual([])
    expect(reasonsOf(undefined, {})).toEqual([])
  })
})

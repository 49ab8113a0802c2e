import { describe, expect, it } from 'vitest'
import { limits } from '../api/backuppodset.ts'
import { labels } from '../api/labels.ts'
import { makeCopy, makeLease, makeSlot } from '../slot/testing/slots.ts'
import { viewOf } from './pod/view.ts'
import { refusedStatus, statusOf } from './status.ts'
import { coldCopy, makePrimary } from './testing/memory.ts'
import { makePod, makeSet } from './testing/snapshots.ts'
import { updateNotices } from './update-status.ts'

it('a refused set makes no progress, whatever it did before', () => {
  const progressing = {
    type: 'Progressing',
    status: 'True',
    reason: 'Converging',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
    observedGeneration: 1,
  } as const
  const refusal = { code: 'ImageMissing', message: 'give every container an image' }
  const { conditions } = refusedStatus(2, { conditions: [progressing] }, refusal, 0)
  expect(conditions?.map(({ type, status, reason }) => [type, status, reason])).toEqual([
    ['Progressing', 'False', 'ImageMissing'],
    ['Ready', 'False', 'ImageMissing'],
    ['Degraded', 'True', 'ImageMissing'],
    ['Reconciling', 'False', 'ImageMissing'],
    ['Stalled', 'True', 'ImageMissing'],
  ])
})

it('R29: a template that does not start is told with the words of the kubelet, and after ten minutes no progress', () => {
  const pod = viewOf(
    {
      metadata: {
        ...{ name: 'a', namespace: 'default', uid: 'a', resourceVersion: '1' },
        ...{ creationTimestamp: '1970-01-01T00:00:00Z', labels: { [labels.type]: 'primary' } },
      },
      status: {
        containerStatuses: [
          {
            ...{ name: 'app', image: '', imageID: '', ready: false, restartCount: 0 },
            state: { waiting: { reason: 'ImagePullBackOff', message: 'Back-off pulling image "nothing"' } },
          },
        ],
      },
    },
    undefined,
  )
  const at = (second: number) =>
    statusOf(makeSet({ replicas: 1, hotBackups: 0, coldBackups: 0 }), undefined, {
      ...{ pods: pod ? [pod] : [], templateHash: 'now', failure: undefined, now: second * 1000 },
      ...{ lastTransition: undefined, lastFailover: undefined },
    }).conditions?.filter(({ type }) => type === 'Ready' || type === 'Progressing')
  expect(at(10)).toMatchObject([
    { status: 'False', message: expect.stringContaining('a: ImagePullBackOff: Back-off pulling') },
    { status: 'True', reason: 'Converging' },
  ])
  expect(at(600)?.[1]).toMatchObject({ status: 'False', reason: 'ProgressDeadlineExceeded' })
})

describe('D16.suspend: a suspended set says', () => {
  const set = makeSet({ replicas: 1, hotBackups: 0, coldBackups: 0, suspended: true })
  const primary = makePrimary('p0', 0)
  const lease = makeLease(primary, { holders: ['b', 'c'] })
  const marked = { ...lease, suspended: true, retainedSince: '2026-01-01T00:00:00Z' } as const
  const copies = ['b', 'c'].map(node => coldCopy(lease, node))
  type Facts = Parameters<typeof statusOf>[2]
  const of = (slot: ReturnType<typeof makeSlot> | undefined, over: Partial<Facts> = {}, wish = set) =>
    statusOf(wish, undefined, {
      ...{ pods: [], templateHash: 'now', failure: undefined, now: 1_000_000, monotonicNow: 1_000 },
      ...{ lastTransition: undefined, lastFailover: undefined },
      memory: {
        slots: new Map(slot === undefined ? [] : [[0, slot]]),
        copies: 2,
        nodes: new Map([['b', { name: 'b', ready: true, problem: undefined }]]),
      },
      ...over,
    })
  const wordOf = (...args: Parameters<typeof of>) =>
    of(...args).conditions?.find(({ type }) => type === 'Suspended')
  const running = (reason: string) => ({
    suspension: {
      ...{ leaving: [], saving: new Set<number>(), ungranted: new Set<number>() },
      running: [{ pod: primary, reason, message: 'why' }],
    },
    pods: [primary],
  })

  it('where its memory is, and what the loss of a node has cost', () => {
    expect(wordOf(makeSlot(marked, copies))).toMatchObject({ status: 'True', reason: 'Suspended' })
    const silent = [copies[0], copies[1] && { ...copies[1], stale: true }].flatMap(copy => copy ?? [])
    expect(wordOf(makeSlot(marked, silent))).toMatchObject({
      ...{ status: 'True', reason: 'MemoryAtRisk', message: expect.stringContaining('only on node b') },
    })
    expect(of(makeSlot(marked, silent)).retainedSlots).toEqual([
      {
        ...{ slot: 0, pod: 'p0', since: '2026-01-01T00:00:00Z', generation: 3 },
        ...{ keptOn: ['b', 'c'], unsureOn: ['c'] },
      },
    ])
    const older = copies.map(copy =>
      copy.node === 'b' ? copy : { ...copy, report: { ...copy.report, generation: 2 } },
    )
    expect(wordOf(makeSlot(marked, older))).toMatchObject({
      ...{ reason: 'MemoryAtRisk', message: expect.stringContaining('only on node b') },
    })
    const gone = makeSlot({ ...marked, kept: undefined }, [])
    expect(wordOf(gone)).toMatchObject({ status: 'True', reason: 'MemoryLost' })
    expect(wordOf(undefined)).toMatchObject({ status: 'True', message: expect.stringContaining('no memory') })
  })

  it('why a primary still runs, that its end is near, and that it is neither Ready nor broken', () => {
    for (const reason of ['Saving', 'Unsupported']) {
      const word = wordOf(makeSlot(lease, copies), running(reason))
      expect(word).toMatchObject({ status: 'False', reason, message: expect.stringContaining('(p0): why') })
    }
    expect(wordOf(makeSlot(lease, copies))).toMatchObject({ status: 'False', reason: 'Suspending' })
    const ending = of(makeSlot(marked, copies), { ending: 1 }).conditions
    expect(ending).toMatchObject([
      ...[{}, {}, { type: 'Progressing', status: 'True', reason: 'Suspending' }, {}, {}],
      { type: 'Suspended', status: 'False', reason: 'Suspending', message: expect.stringContaining('1 pod') },
      ...[{}, {}, {}],
    ])
    const { conditions = [] } = of(makeSlot(marked, copies))
    expect(conditions.map(({ type, status, reason }) => [type, status, reason])).toMatchObject([
      ['Ready', 'False', 'Suspended'],
      ['Available', 'False', 'Suspended'],
      ['Progressing', 'False', 'Suspended'],
      ['Degraded', 'False', 'AsExpected'],
      ['Paused', 'False', 'Running'],
      ['Suspended', 'True', 'Suspended'],
      ['CheckpointReady', 'True', 'AllProtected'],
      ['Reconciling', 'False', 'Suspended'],
      ['Stalled', 'False', 'AsExpected'],
    ])
  })

  it('nothing while it is paused, and nothing once it runs again', () => {
    const paused = { ...set, paused: true }
    expect(wordOf(makeSlot(lease, copies), running('Saving'), paused)).toMatchObject({ reason: 'Paused' })
    expect(wordOf(makeSlot(lease, copies), {}, { ...set, suspended: false })).toBeUndefined()
  })

  it('in an event what a user has to know, once', () => {
    const at = (...args: Parameters<typeof of>) => of(...args)
    const refused = at(makeSlot(lease, copies), running('Unsupported'))
    expect(updateNotices(undefined, refused)).toMatchObject([
      { type: 'Warning', reason: 'Unsupported', action: 'Suspend' },
    ])
    expect(updateNotices(refused, refused)).toEqual([])
    expect(updateNotices(refused, at(makeSlot(lease, copies), running('Saving')))).toEqual([])
    const lost = at(makeSlot({ ...marked, kept: undefined }, []))
    expect(updateNotices(refused, lost)).toMatchObject([{ type: 'Warning', reason: 'MemoryLost' }])
  })
})

it('D3.relay: a roll that waits says for what, in a condition and once in an event', () => {
  const set = makeSet({ replicas: 1, hotBackups: 0, coldBackups: 0, updateStrategy: 'RollingUpdate' })
  const p0 = makePrimary('p0', 0, { templateHash: 'before' })
  const slot = makeSlot(makeLease(p0), [])
  const of = (previous: ReturnType<typeof statusOf> | undefined, isSaved = true) =>
    statusOf(set, previous, {
      ...{ pods: [p0], templateHash: 'now', failure: undefined, now: 1_000, monotonicNow: 1_000 },
      ...{ lastTransition: undefined, lastFailover: undefined },
      memory: {
        ...{ slots: new Map([[0, isSaved ? { ...slot, copies: [coldCopy(slot.lease, 'x')] } : slot]]) },
        ...{ copies: 1, nodes: new Map() },
      },
    })
  const word = (status: ReturnType<typeof of>, type: string) =>
    status.conditions?.find(condition => condition.type === type)
  const waits = of(undefined, false)
  const why = expect.stringContaining('slot 0 (p0) waits: only node n-p0 has its memory; add a node')
  expect(word(waits, 'Progressing')).toMatchObject({ status: 'True', reason: 'RollWaits', message: why })
  expect(word(waits, 'Ready')).toMatchObject({ status: 'False', reason: 'RollingOut', message: why })
  expect(updateNotices(undefined, waits)).toMatchObject([{ type: 'Warning', reason: 'RollWaits', note: why }])
  expect(updateNotices(waits, of(waits, false))).toEqual([])
  expect(word(of(waits), 'Progressing')).toMatchObject({ status: 'True', reason: 'RollingOut' })
})

describe('a slot that changes hands', () => {
  const set = makeSet({ replicas: 2, hotBackups: 0, coldBackups: 0 })
  const status = (successorIsReady: boolean, loserIsReady: boolean) =>
    statusOf(set, undefined, {
      pods: [
        makePod('a', 'primary', { slot: 0, epoch: 1, ready: loserIsReady }),
        makePod('b', 'primary', { slot: 1, epoch: 1 }),
        makePod('c', 'primary', { slot: 0, epoch: 2, ready: successorIsReady }),
      ],
      ...{ templateHash: 'now', failure: undefined, now: 0 },
      ...{ lastTransition: undefined, lastFailover: undefined },
    })

  it('is one replica, named by its successor, and ready as long as one of the two is', () => {
    expect(status(true, true)).toMatchObject({
      ...{ replicas: 2, readyReplicas: 2, primaryPodNames: ['b', 'c'] },
      summary: { replicas: '2/2' },
      slots: [
        { slot: 0, pod: 'c' },
        { slot: 1, pod: 'b' },
      ],
    })
    expect(status(false, true).readyReplicas).toBe(2)
    expect(status(false, false)).toMatchObject({ replicas: 2, readyReplicas: 1 })
  })

  it('is not in place yet', () => {
    const { conditions = [] } = status(true, true)
    const whole = conditions.filter(({ status }) => status === 'True').map(({ type }) => type)
    expect(whole).toEqual(['Available', 'Progressing', 'Reconciling'])
  })

  it('two primaries of one epoch are two: one of them gets another slot', () => {
    const pods = ['a', 'b'].map(name => makePod(name, 'primary', { slot: 0, epoch: 1 }))
    const facts = { templateHash: 'now', failure: undefined, now: 0, lastTransition: undefined }
    expect(statusOf(set, undefined, { ...facts, pods, lastFailover: undefined }).replicas).toBe(2)
  })
})

describe('D10.bounds: a set that is larger than the lists of its status', () => {
  const many = limits.listed + 50
  const nodes = Array.from({ length: 12 }, (_, index) => makePrimary(`x${index}`, 0, { node: `n${index}` }))
  const primaries = Array.from({ length: many }, (_, index) => makePrimary(`p${1000 + index}`, index))
  const slotOf = (index: number, over: object, copies: boolean) => {
    const lease = { ...makeLease(makePrimary(`p${1000 + index}`, index)), ...over }
    return makeSlot(
      lease,
      copies ? nodes.map(node => makeCopy(lease, node, undefined, { usable: 'Cold' })) : [],
    )
  }
  const of = (savedUpTo: number, retained: number) =>
    statusOf(makeSet({ replicas: many, hotBackups: many, coldBackups: many }), undefined, {
      pods: [
        ...primaries,
        ...primaries.map((_, index) => makePod(`h${index}`, 'hotbackup')),
        ...primaries.map((_, index) => makePod(`c${index}`, 'coldbackup')),
      ],
      memory: {
        slots: new Map([
          ...primaries.map((_, index) => [index, slotOf(index, {}, index < savedUpTo)] as const),
          ...Array.from({ length: retained }, (_, index) => {
            const slot = 9_000 - index
            const marks = { retainedSince: '2026-01-01T00:00:00Z', suspended: true } as const
            const kept = slotOf(slot, marks, true)
            const copies = kept.copies.map(copy => ({ ...copy, stale: true }))
            return [slot, { ...kept, copies }] as const
          }),
        ]),
        copies: 2,
        nodes: new Map(
          primaries.map(({ node = '' }) => [node, { name: node, ready: true, problem: undefined }]),
        ),
      },
      failovers: Array.from({ length: 100 }, (_, index) => ({
        ...{ slot: index, from: 'a', to: 'b', reason: 'PodDeleted', seconds: 1 },
        at: '2026-01-01T00:00:00Z',
      })),
      ...{ templateHash: 'now', failure: 'x'.repeat(100_000), now: 0 },
      ...{ lastTransition: undefined, lastFailover: undefined },
    })

  it('lists as much as the schema lets pass, and counts on', () => {
    const status = of(many, many)
    expect(status).toMatchObject({ replicas: many, hotbackups: many, coldbackups: many })
    expect(status.primaryPodNames).toHaveLength(limits.listed)
    expect(status.hotbackupPodNames).toHaveLength(limits.listed)
    expect(status.coldbackupPodNames).toHaveLength(limits.listed)
    expect(status.slots).toHaveLength(limits.listed)
    expect(status.slots?.[0]).toMatchObject({ slot: 0, usableOnCount: 12 })
    expect(status.slots?.[0]?.usableOn).toHaveLength(limits.usableOn)
    expect(status.retainedSlots).toHaveLength(limits.listed)
    expect(status.retainedSlotCount).toBe(many)
    expect(status.retainedSlots?.[0]).toMatchObject({ slot: 9_001 - many, keptOnCount: 12 })
    expect(status.retainedSlots?.[0]?.keptOn).toHaveLength(limits.usableOn)
    expect(status.retainedSlots?.[0]?.unsureOn).toHaveLength(limits.usableOn)
    expect(status.failovers).toHaveLength(limits.failovers)
    expect(status.conditions?.length).toBeLessThanOrEqual(16)
    const { message } = status.conditions?.find(({ type }) => type === 'Degraded') ?? {}
    expect(message).toMatch(/^x+…$/)
    expect(message).toHaveLength(limits.conditionMessage)
    expect(Buffer.byteLength(JSON.stringify(status))).toBeLessThan(1_000_000)
  })

  it('is judged by all of them: one that is not listed and would be lost is told', () => {
    const readiness = (saved: number) =>
      of(saved, 0).conditions?.find(({ type }) => type === 'CheckpointReady')
    expect(readiness(many)).toMatchObject({ status: 'True', message: expect.stringContaining(`${many}`) })
    expect(readiness(many - 1)).toMatchObject({
      status: 'False',
      message: expect.stringContaining(`slot ${many - 1} `),
    })
  })

  it('and counts nothing beside a list that has all', () => {
    const status = of(many, 1)
    expect(status).not.toHaveProperty('retainedSlotCount')
    expect(status.retainedSlots).toHaveLength(1)
  })
})

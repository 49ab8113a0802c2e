import { describe, expect, it } from 'vitest'
import type { BackupPodSetStatus } from '../api/backuppodset.ts'
import { makeLease, makeSlot } from '../slot/testing/slots.ts'
import { kstatusOf } from './kstatus.ts'
import type { PodView } from './snapshot.ts'
import { refusedStatus, statusOf } from './status.ts'
import { coldCopy, makePrimary } from './testing/memory.ts'
import { makePod, makeSet } from './testing/snapshots.ts'

type Verdict = 'Current' | 'InProgress' | 'Failed'

/**
 * The judgement of kstatus (`sigs.k8s.io/cli-utils/pkg/kstatus/status`, `checkGenericProperties` and `checkReadyCondition`) about an
 * object of a kind that it does not know. Each rule is the first that applies.
 */
const rules: readonly {
  readonly applies: (status: BackupPodSetStatus, generation: number) => boolean
  readonly verdict: Verdict
}[] = [
  {
    applies: ({ observedGeneration }, generation) => observedGeneration !== generation,
    verdict: 'InProgress',
  },
  { applies: status => told(status, 'Reconciling') === 'True', verdict: 'InProgress' },
  { applies: status => told(status, 'Stalled') === 'True', verdict: 'Failed' },
  { applies: status => told(status, 'Ready') === 'True', verdict: 'Current' },
  { applies: status => told(status, 'Ready') !== undefined, verdict: 'InProgress' },
  { applies: () => true, verdict: 'Current' },
]

const told = ({ conditions = [] }: BackupPodSetStatus, wanted: string) =>
  conditions.find(({ type }) => type === wanted)?.status

const judge = (status: BackupPodSetStatus, generation: number): Verdict | undefined =>
  rules.find(({ applies }) => applies(status, generation))?.verdict

const facts = {
  ...{ templateHash: 'now', failure: undefined, now: 1_000_000 },
  ...{ lastTransition: undefined, lastFailover: undefined },
}
const set = makeSet({ replicas: 2, hotBackups: 1, coldBackups: 0 })
const p0 = makePrimary('p0', 0)
const p1 = makePrimary('p1', 1)
const hot = makePod('h', 'hotbackup')
const of = (pods: readonly PodView[], over: object = {}, ofSet: object = {}) =>
  statusOf({ ...set, ...ofSet }, undefined, {
    ...facts,
    pods: pods.map(pod => ({ ...pod, templateHash: 'now' })),
    ...over,
  })

describe('D19.kstatus: tools that know kstatus judge a set', () => {
  const complete = of([p0, p1, hot])
  const stuck = { ready: false, stuck: 'ImagePullBackOff', createdAt: 0 }
  it.each<[string, BackupPodSetStatus, Verdict]>([
    ['that is complete', complete, 'Current'],
    ['without a backup', of([p0, p1]), 'InProgress'],
    ['of which nothing is there yet', of([]), 'InProgress'],
    [
      'whose newest generation the operator has not seen',
      { ...complete, observedGeneration: 0 },
      'InProgress',
    ],
    ['whose pods do not start for ten minutes', of([p0, p1, { ...hot, ...stuck }]), 'Failed'],
    [
      'that was refused at once',
      refusedStatus(1, undefined, { code: 'ImageMissing', message: '' }, 0),
      'Failed',
    ],
    [
      'that was refused while it is complete',
      of([p0, p1, hot], { refusal: { code: 'ImageMissing', message: 'an image' } }),
      'Failed',
    ],
    ['that is suspended', of([], {}, { suspended: true }), 'InProgress'],
    ['that is paused and complete', of([p0, p1, hot], {}, { paused: true }), 'Current'],
  ])('%s', (_, status, verdict) => {
    expect(judge(status, set.generation)).toBe(verdict)
    // The library takes the first of the two in the list.
    expect([told(status, 'Reconciling'), told(status, 'Stalled')]).not.toEqual(['True', 'True'])
  })
})

describe('D19.available: a set is available', () => {
  const available = (...args: Parameters<typeof of>) =>
    of(...args).conditions?.find(({ type }) => type === 'Available')

  it('while its primaries serve, although a backup is missing', () => {
    const status = of([p0, p1])
    expect(told(status, 'Ready')).toBe('False')
    expect(available([p0, p1])).toMatchObject({ status: 'True', message: '2 of 2 primaries are ready' })
  })

  it('not when one of them does not, whatever stands by', () => {
    const word = { status: 'False', reason: 'PrimariesMissing', message: '1 of 2 primaries are ready' }
    expect(available([p0, hot])).toMatchObject(word)
  })

  it('also without a wanted primary, and not while it is suspended', () => {
    expect(available([hot], {}, { replicas: 0 })?.status).toBe('True')
    expect(available([], {}, { suspended: true })).toMatchObject({ status: 'False', reason: 'Suspended' })
  })
})

it('D19.columns: kubectl get counts pods that are ready', () => {
  const { summary } = of([p0, { ...makePrimary('p1', 1), ready: false }, { ...hot, ready: false }])
  expect(summary).toEqual({
    ...{ replicas: '2/2', hotbackups: '1/1', coldbackups: '0/0', ready: '1/2', readyBackups: '0/1' },
  })
})

it('D19.kstatus: a template that would cost memory needs a user, one whose pods are deleted by hand does not', () => {
  const stalledBy = (reason: string) =>
    kstatusOf({ type: 'Progressing', status: 'False', reason, message: 'why' })[1]
  expect(stalledBy('UpdateWouldLoseState')).toMatchObject({ status: 'True', message: 'why' })
  expect(stalledBy('UpdateOnDelete')).toMatchObject({ status: 'False', message: '' })
})

it('D19.columns: the protection of a set is that of the slot that would lose most', () => {
  const leases = [p0, p1].map(pod => makeLease(pod))
  const protectionWith = (...saved: readonly boolean[]) => {
    const slots = leases.map(
      (lease, index) => [index, makeSlot(lease, saved[index] ? [coldCopy(lease, 'x')] : [])] as const,
    )
    const memory = { slots: new Map(slots), copies: 1, nodes: new Map() }
    return of([p0, p1, hot], { memory }).summary?.protection
  }
  expect(protectionWith(true, true)).toBe('Cold')
  expect(protectionWith(true, false)).toBe('None')
})

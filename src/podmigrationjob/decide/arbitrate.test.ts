import { describe, expect, it, test } from 'vitest'
import { neverEvict, type SkipGate } from '../../api/pod-migration-job.ts'
import { argsWith, budgetWith, podWith, runningFor, waitingFor, worldOf } from '../testing/worlds.ts'
import { arbitrate, disruptionBudgetsOf } from './arbitrate.ts'
import type { PodFacts, WaitingJob, World } from './world.ts'

const one = (pod: PodFacts, args = argsWith(), world = worldOf([pod]), over: Partial<WaitingJob> = {}) =>
  arbitrate({ waiting: [waitingFor(pod, over)], running: [] }, world, args).verdicts.get(`job-${pod.name}`)

const order = (
  pods: readonly PodFacts[],
  over: (pod: PodFacts) => Partial<WaitingJob> = () => ({}),
  history: Partial<World['history']> = {},
) =>
  arbitrate(
    { waiting: pods.map(pod => waitingFor(pod, over(pod))).reverse(), running: [] },
    worldOf(pods, { history }),
    argsWith({ maxMigratingPerWorkload: '100%', maxUnavailablePerWorkload: '100%' }),
  ).admitted.map(({ pod }) => pod.name)

describe('PJ02: eviction cost', () => {
  it('never: the pod is refused in every mode, and no gate opens that', () => {
    const pod = podWith('p', { evictionCost: neverEvict })
    const gates = new Set<SkipGate>([
      'BarePod',
      'LocalStorage',
      'SystemCritical',
      'ExpectedReplicas',
      'RollingOut',
    ])
    for (const mode of ['EvictDirectly', 'Live', 'ReservationFirst'] as const)
      expect(one(pod, argsWith(), worldOf([pod]), { mode, skipGates: gates })).toMatchObject({
        type: 'refused',
        reason: 'ForbiddenMigratePod',
      })
  })

  it('among pods of one priority the cheaper one goes first', () => {
    const pods = [100, -5, 0].map((evictionCost, index) => podWith(`p${index}`, { evictionCost }))
    expect(order(pods)).toEqual(['p1', 'p2', 'p0'])
  })
})

describe('PJ19: the order of the design', () => {
  it('class, priority, cost, priority of the job, failures, descheduled, age, name: the first difference decides', () => {
    const pods = [
      podWith('a-be', { qos: 'BE', priority: 9 }),
      podWith('b-lse', { qos: 'LSE' }),
      podWith('c-lsr', { qos: 'LSR' }),
      podWith('d-high', { priority: 5 }),
      podWith('e-cheap', { evictionCost: -1 }),
      podWith('f-wanted'),
      podWith('g-failed'),
      podWith('h-plain'),
      podWith('i-young'),
    ]
    const failures = new Map([['uid-g-failed', 2]])
    const over = ({ name }: PodFacts) => ({
      priority: name === 'f-wanted' ? 1 : 0,
      createdAt: name === 'i-young' ? 5 : 0,
    })
    const expected = [
      'b-lse',
      'c-lsr',
      'd-high',
      'e-cheap',
      'f-wanted',
      'h-plain',
      'i-young',
      'g-failed',
      'a-be',
    ]
    expect(order(pods, over, { failures })).toEqual(expected)
  })

  it('a workload from which fewer pods were taken comes first', () => {
    const of = (name: string): Partial<PodFacts> => ({
      owner: { type: 'workload', key: `Deployment/default/${name}`, kind: 'Deployment' },
    })
    const descheduled = new Map([['Deployment/default/a', 3]])
    expect(order([podWith('1', of('a')), podWith('2', of('b'))], undefined, { descheduled })).toEqual([
      '2',
      '1',
    ])
  })
})

describe('PJ24: filters of the configuration, with both values', () => {
  const cases: readonly [string, Partial<PodFacts>, object, object, SkipGate][] = [
    [
      'evictFailedBarePods',
      { owner: { type: 'none' }, isFailed: true },
      {},
      { evictFailedBarePods: true },
      'BarePod',
    ],
    ['evictLocalStoragePods', { hasLocalStorage: true }, {}, { evictLocalStoragePods: true }, 'LocalStorage'],
    [
      'evictSystemCriticalPods',
      { isSystemCritical: true },
      {},
      { evictSystemCriticalPods: true },
      'SystemCritical',
    ],
    ['ignorePvcPods', { hasClaim: true }, { ignorePvcPods: true }, {}, 'PersistentVolumeClaim'],
    [
      'labelSelector',
      { labels: { app: 'b' } },
      { labelSelector: { matchLabels: { app: 'a' } } },
      { labelSelector: { matchLabels: { app: 'b' } } },
      'LabelSelector',
    ],
  ]
  test.each(cases)('%s', (_, over, refusing, letting, gate) => {
    const pod = podWith('p', over)
    expect(one(pod, argsWith({ ...refusing }))?.type).toBe('refused')
    expect(one(pod, argsWith({ ...letting }))?.type).toBe('admitted')
    expect(one(pod, argsWith({ ...refusing }), worldOf([pod]), { skipGates: new Set([gate]) })?.type).toBe(
      'admitted',
    )
  })

  it('a bare pod that has not failed is refused all the same', () => {
    expect(
      one(podWith('p', { owner: { type: 'none' } }), argsWith({ evictFailedBarePods: true }))?.type,
    ).toBe('refused')
  })

  it.each([
    { isStatic: true },
    { qos: 'SYSTEM' },
    { owner: { type: 'workload', key: 'DaemonSet/a/b', kind: 'DaemonSet' } },
  ] as const)('no pod of the system itself: %o', over => {
    expect(one(podWith('p', over))?.type).toBe('refused')
  })
})

describe('PJ17: disruption budgets', () => {
  const pods = ['a', 'b', 'c', 'd', 'e', 'f'].map(name => podWith(name, { disruptionBudgets: ['pdb'] }))
  const admitted = (
    over: Parameters<typeof budgetWith>[1],
    args: object = {},
    running: readonly PodFacts[] = [],
  ) =>
    arbitrate(
      { waiting: pods.map(pod => waitingFor(pod)), running: running.map(runningFor) },
      worldOf(pods, { budgets: [budgetWith('pdb', over)] }),
      argsWith({ maxMigratingPerWorkload: '100%', ...args }),
    ).admitted.length

  it('win over the algorithm: more than it allows, and fewer', () => {
    expect(admitted({ allowed: 5 }, { maxUnavailablePerWorkload: 1 })).toBe(5)
    expect(admitted({ allowed: 0 }, { maxUnavailablePerWorkload: '100%' })).toBe(0)
  })

  it('an admitted job has its disruption still to take, and one whose pod is going has taken it', () => {
    const [first = podWith('none')] = pods
    expect(admitted({ allowed: 2 }, {}, [first])).toBe(1)
    expect(disruptionBudgetsOf({ mode: 'EvictDirectly' }, { ...first, isTerminating: true })).toEqual([])
  })

  it('one whose state is not known yet lets no pod go, nor do two for one pod', () => {
    expect(admitted({ allowed: 2, isCurrent: false })).toBe(0)
    const pod = podWith('p', { disruptionBudgets: ['pdb', 'other'] })
    const world = worldOf([pod], { budgets: [budgetWith('pdb'), budgetWith('other')] })
    expect(one(pod, argsWith(), world)).toMatchObject({ type: 'waits', reason: 'DisruptionBudget' })
  })
})

describe('the application changes', () => {
  it('PJ29: no job of a workload begins while it rolls out; the others do', () => {
    const pods = [
      podWith('a'),
      podWith('b', { owner: { type: 'workload', key: 'Deployment/default/x', kind: 'Deployment' } }),
    ]
    const world = worldOf(pods, { rolling: ['Deployment/default/x'] })
    const { verdicts } = arbitrate(
      { waiting: pods.map(pod => waitingFor(pod)), running: [] },
      world,
      argsWith(),
    )
    expect(verdicts.get('job-a')?.type).toBe('admitted')
    expect(verdicts.get('job-b')).toMatchObject({ type: 'waits', reason: 'RollingOut' })
  })

  it('missing pods count as unavailable: a workload that has just lost one gives no other', () => {
    const pods = ['a', 'b', 'c'].map(name => podWith(name))
    const world = worldOf(pods, { desired: { 'StatefulSet/default/web': 4 } })
    const [pod = podWith('none')] = pods
    expect(one(pod, argsWith({ maxUnavailablePerWorkload: 1 }), world)).toMatchObject({
      type: 'waits',
      reason: 'UnavailableBudget',
    })
  })
})

it('PJ22: the flow control lets so many begin, and refuses none', () => {
  const pods = ['a', 'b', 'c'].map(name => podWith(name))
  const args = argsWith({ maxMigratingPerWorkload: '100%', maxUnavailablePerWorkload: '100%' })
  const { admitted, verdicts } = arbitrate(
    { waiting: pods.map(pod => waitingFor(pod)), running: [] },
    worldOf(pods),
    args,
    2,
  )
  expect(admitted.map(({ name }) => name)).toEqual(['job-a', 'job-b'])
  expect(verdicts.get('job-c')).toMatchObject({ type: 'waits', reason: 'FlowControl' })
})

describe('PJ26: the places of a pod are lent to those that give way to its replacement', () => {
  const owner = (name: string) =>
    ({ type: 'workload', kind: 'Deployment', key: `Deployment/default/${name}` }) as const
  const source = podWith('source', { owner: owner('a'), disruptionBudgets: ['pdb'] })
  const victim = podWith('victim', { owner: owner('b'), disruptionBudgets: ['pdb'] })
  const sibling = podWith('sibling', { owner: owner('b') })
  const verdict = (args: object, lentBy: string | undefined, running = [source]) => {
    const world = worldOf([source, victim, sibling], { budgets: [budgetWith('pdb')] })
    const waiting = [waitingFor(victim, { mode: 'ReservationFirst', lentBy })]
    const jobs = { waiting, running: running.map(runningFor) }
    return arbitrate(jobs, world, argsWith({ ...args })).verdicts.get('job-victim')
  }

  it.each([
    ['GlobalBudget', { maxMigratingGlobally: 1 }],
    ['NamespaceBudget', { maxMigratingPerNamespace: 1 }],
    ['NodeBudget', { maxMigratingPerNode: 1 }],
    ['DisruptionBudget', {}],
  ])('%s', (reason, args) => {
    expect(verdict(args, undefined)).toMatchObject({ type: 'waits', reason })
    expect(verdict(args, source.uid)).toMatchObject({ type: 'admitted' })
    const two = verdict({ maxMigratingGlobally: 1 }, source.uid, [source, sibling])
    expect(two).toMatchObject({ type: 'waits', reason: 'GlobalBudget' })
  })

  it('a pod of the same workload that is under way does not count as missing', () => {
    const args = { maxMigratingPerWorkload: '100%', maxUnavailablePerWorkload: 1 }
    const plain = { ...victim, disruptionBudgets: [] }
    const world = worldOf([plain, sibling])
    const asked = (lentBy?: string) =>
      arbitrate(
        { waiting: [waitingFor(plain, { lentBy })], running: [runningFor(sibling)] },
        world,
        argsWith(args),
      ).verdicts.get('job-victim')
    expect(asked()).toMatchObject({ reason: 'UnavailableBudget' })
    expect(asked(sibling.uid)).toMatchObject({ type: 'admitted' })
  })
})

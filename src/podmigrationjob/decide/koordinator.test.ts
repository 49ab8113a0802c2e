/**
 * The cases of Koordinator's filters and sorts as data, from koordinator-sh/koordinator, pkg/descheduler/controllers/migration/arbitrator
 * (filter_test.go, sort_test.go), and bugs that its users have found.
 */
import { describe, expect, it, test } from 'vitest'
import { argsWith, podWith, runningFor, waitingFor, worldOf } from '../testing/worlds.ts'
import { arbitrate } from './arbitrate.ts'
import { Budgets } from './budgets.ts'
import { inOrder } from './order.ts'
import type { PodFacts } from './world.ts'

const names = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
const verdictOf = (
  pod: PodFacts,
  world: ReturnType<typeof worldOf>,
  args: ReturnType<typeof argsWith>,
  running: readonly PodFacts[] = [],
) =>
  arbitrate({ waiting: [waitingFor(pod)], running: running.map(runningFor) }, world, args).verdicts.get(
    `job-${pod.name}`,
  )

interface Limit {
  readonly migrating: number
  readonly samePod: boolean
  readonly same: boolean
  readonly most: number
  readonly passes: boolean
}

// TestFilterMaxMigratingPerNode, TestFilterMaxMigratingPerNamespace.
const limits: readonly Limit[] = [
  { migrating: 0, samePod: false, same: true, most: 0, passes: true },
  { migrating: 0, samePod: false, same: true, most: 1, passes: true },
  { migrating: 1, samePod: true, same: true, most: 1, passes: true },
  { migrating: 1, samePod: false, same: true, most: 1, passes: false },
  { migrating: 1, samePod: false, same: false, most: 1, passes: true },
  { migrating: 2, samePod: true, same: true, most: 2, passes: true },
  { migrating: 2, samePod: false, same: false, most: 2, passes: true },
  { migrating: 2, samePod: false, same: true, most: 2, passes: false },
]

/** Budgets that know these pods, asked for one more. */
const passes = (args: Readonly<Record<string, unknown>>, migrating: readonly PodFacts[], pod: PodFacts) => {
  const budgets = new Budgets(worldOf([...migrating, pod], { desired }), argsWith(args))
  for (const each of migrating) {
    const { place, disruptionBudgets } = runningFor(each)
    budgets.add(place, disruptionBudgets)
  }
  return budgets.obstacleTo(pod, { isKeptServing: false }) === undefined
}
const desired = { 'StatefulSet/default/web': 1_000, 'StatefulSet/default/other': 1_000 }
const wide = { maxUnavailablePerWorkload: '100%', maxMigratingPerWorkload: '100%' }

describe('PJ18: limits of a node, of a namespace, and of the cluster', () => {
  test.each(limits)('of a node: %o', ({ migrating, samePod, same, most, passes: wanted }) => {
    const others = names(migrating, 'moving').map(name => podWith(name))
    const pod = samePod ? (others[0] ?? podWith('p')) : podWith('p', { node: same ? 'n1' : 'n2' })
    expect(passes({ ...wide, maxMigratingPerNode: most }, others, pod)).toBe(wanted)
  })

  test.each(limits)('of a namespace: %o', ({ migrating, samePod, same, most, passes: wanted }) => {
    const others = names(migrating, 'moving').map(name => podWith(name))
    const pod = samePod ? (others[0] ?? podWith('p')) : podWith('p', same ? {} : { namespace: 'another' })
    expect(passes({ ...wide, maxMigratingPerNamespace: most }, others, pod)).toBe(wanted)
  })

  // TestFilterMaxMigratingGlobally.
  test.each(limits.slice(0, 4))('of the cluster: %o', ({ migrating, samePod, most, passes: wanted }) => {
    const others = names(migrating, 'moving').map(name => podWith(name))
    const pod = samePod ? (others[0] ?? podWith('p')) : podWith('p', { node: 'n2', namespace: 'another' })
    expect(passes({ ...wide, maxMigratingGlobally: most }, others, pod)).toBe(wanted)
  })
})

describe('PJ16: migrating pods of a workload', () => {
  // TestFilterMaxMigratingPerWorkload: ten replicas, of which nine may be unavailable.
  test.each([
    { migrating: 0, samePod: false, same: false, most: 1, passes: true },
    { migrating: 1, samePod: true, same: true, most: 1, passes: true },
    { migrating: 1, samePod: false, same: true, most: 1, passes: false },
    { migrating: 1, samePod: false, same: false, most: 1, passes: true },
    { migrating: 2, samePod: true, same: true, most: 2, passes: true },
    { migrating: 2, samePod: false, same: true, most: 2, passes: false },
    { migrating: 2, samePod: false, same: false, most: 2, passes: true },
  ])('%o', ({ migrating, samePod, same, most, passes: wanted }) => {
    const others = names(migrating, 'moving').map(name => podWith(name))
    const owner = { type: 'workload', key: 'StatefulSet/default/other', kind: 'StatefulSet' } as const
    const pod = samePod ? (others[0] ?? podWith('p')) : podWith('p', same ? {} : { owner })
    const args = { maxMigratingPerWorkload: most, maxUnavailablePerWorkload: '100%' }
    expect(passes(args, others, pod)).toBe(wanted)
  })
})

describe('PJ17: unavailable pods of a workload', () => {
  // TestFilterMaxUnavailablePerWorkload: ten replicas; the pod itself is not one of them, and not ready.
  test.each([
    { unavailable: 0, migrating: 0, most: 1, same: true, passes: true },
    { unavailable: 1, migrating: 0, most: 1, same: true, passes: false },
    { unavailable: 0, migrating: 1, most: 1, same: true, passes: false },
    { unavailable: 1, migrating: 1, most: 1, same: true, passes: false },
    { unavailable: 0, migrating: 0, most: 2, same: true, passes: true },
    { unavailable: 1, migrating: 0, most: 2, same: true, passes: true },
    { unavailable: 0, migrating: 1, most: 2, same: true, passes: true },
    { unavailable: 1, migrating: 1, most: 2, same: true, passes: false },
    { unavailable: 1, migrating: 1, most: 2, same: false, passes: true },
  ])('%o', ({ unavailable, migrating, most, same, passes: wanted }) => {
    const bad = names(unavailable, 'bad').map(name => podWith(name, { isReady: false }))
    const moving = names(migrating, 'moving').map(name => podWith(name))
    const good = names(10 - unavailable - migrating, 'good').map(name => podWith(name))
    const owner = { type: 'workload', key: 'StatefulSet/default/other', kind: 'StatefulSet' } as const
    const pod = podWith('p', { isReady: false, ...(!same && { owner }) })
    const world = worldOf([...bad, ...moving, ...good, pod], { desired: { 'StatefulSet/default/web': 10 } })
    const args = argsWith({ maxMigratingPerWorkload: 9, maxUnavailablePerWorkload: most })
    expect(verdictOf(pod, world, args, moving)?.type === 'admitted').toBe(wanted)
  })
})

describe('workloads of which all pods could be away', () => {
  // TestFilterExpectedReplicas.
  test.each([
    { replicas: 1, most: 1, passes: false },
    { replicas: 100, most: 100, passes: false },
    { replicas: 100, most: 10, passes: true },
  ])('with skipCheckExpectedReplicas: false, %o', ({ replicas, most, passes: wanted }) => {
    const pods = names(replicas, 'p').map(name => podWith(name))
    const [pod = podWith('none')] = pods
    const limit = { maxUnavailablePerWorkload: most, maxMigratingPerWorkload: replicas - 1, rounding: 'Down' }
    const verdict = verdictOf(pod, worldOf(pods), argsWith({ ...limit, skipCheckExpectedReplicas: false }))
    expect(verdict?.type).toBe(wanted ? 'admitted' : 'refused')
    expect(verdictOf(pod, worldOf(pods), argsWith({ ...limit, maxMigratingPerWorkload: '100%' }))?.type).toBe(
      'admitted',
    )
  })
})

describe('PJ19: the order that Koordinator has now', () => {
  const batch = (index: number | undefined): Partial<PodFacts> =>
    index === undefined ? {} : { owner: { type: 'workload', key: `Job/default/b${index}`, kind: 'Job' } }
  const sorted = (
    count: number,
    of: Readonly<Record<number, number>>,
    running: readonly (number | undefined)[] = [],
    created: (index: number) => number = () => 0,
  ) => {
    const pods = names(count, 'p').map((name, index) => podWith(name, batch(of[index])))
    const moving = running.map((index, at) => podWith(`moving-${at}`, batch(index)))
    const world = worldOf([...pods, ...moving])
    const args = argsWith({ sortOrder: 'Koordinator' })
    const budgets = new Budgets(world, args)
    for (const pod of moving) budgets.add(runningFor(pod).place, [])
    const candidates = pods.map((pod, index) => ({
      pod,
      job: waitingFor(pod, { createdAt: created(index) }),
    }))
    return inOrder(candidates, world, budgets, args).map(({ pod }) => Number(pod.name.slice(2)))
  }

  // TestSortJobsByCreationTime: the newest first.
  it('by age', () => {
    const times = [222_222, 222_222_222, 111_111_111, 11_111, 11_111]
    expect(sorted(5, {}, [], index => times[index] ?? 0)).toEqual([1, 2, 0, 3, 4])
  })

  // TestSortJobsByController.
  test.each([
    [10, { 4: 0, 8: 0 }, [0, 1, 2, 3, 4, 8, 5, 6, 7, 9]],
    [10, {}, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]],
    [10, { 3: 0, 8: 0, 1: 1, 9: 1 }, [0, 1, 9, 2, 3, 8, 4, 5, 6, 7]],
    [5, { 2: 0, 3: 0, 4: 0 }, [0, 1, 2, 3, 4]],
    [6, { 0: 0, 4: 1, 2: 2 }, [0, 1, 2, 3, 4, 5]],
  ])('jobs of one batch Job stay together: %i, %o', (count, of, expected) => {
    expect(sorted(count, of)).toEqual(expected)
  })

  // TestSortJobsByMigratingNum.
  test.each([
    [10, { 4: 0, 8: 0 }, [undefined, 1, undefined, 0, undefined], [4, 8, 0, 1, 2, 3, 5, 6, 7, 9]],
    [10, {}, [undefined, undefined], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]],
    [5, { 0: 0, 1: 0, 2: 0, 3: 0, 4: 0 }, [0, undefined], [0, 1, 2, 3, 4]],
    [5, { 2: 0, 3: 0, 4: 0 }, [0, undefined], [2, 3, 4, 0, 1]],
    [10, { 4: 0, 8: 0, 7: 1 }, [1, 1, undefined, 0, undefined], [7, 4, 8, 0, 1, 2, 3, 5, 6, 9]],
  ])(
    'a batch Job of which more pods are under way comes first: %i, %o, %o',
    (count, of, running, expected) => {
      expect(sorted(count, of, running)).toEqual(expected)
    },
  )
})

describe('bugs that users of Koordinator have found', () => {
  const pods = names(20, 'p').map(name =>
    podWith(name, { owner: { type: 'workload', key: `ReplicaSet/default/${name}`, kind: 'ReplicaSet' } }),
  )

  it('koordinator#1150: more waiting jobs of a node than may run do not keep each other waiting', () => {
    const args = argsWith({ maxMigratingPerNode: 2 })
    const { admitted } = arbitrate(
      { waiting: pods.map(pod => waitingFor(pod)), running: [] },
      worldOf(pods),
      args,
    )
    expect(admitted).toHaveLength(2)
  })

  it('koordinator#2203: a job that is refused takes no place, and does not delay those behind it', () => {
    const [first = podWith('p'), ...rest] = pods
    const never = podWith(first.name, { evictionCost: 2_147_483_647, priority: 1_000 })
    const args = argsWith({ maxMigratingPerNode: 1 })
    const waiting = [never, ...rest].map(pod => waitingFor(pod))
    const { verdicts, admitted } = arbitrate({ waiting, running: [] }, worldOf([never, ...rest]), args)
    expect(verdicts.get(`job-${never.name}`)?.type).toBe('refused')
    expect(admitted).toHaveLength(1)
  })

  it('koordinator#3039: a job whose pod cannot be loaded never passes', () => {
    const pod = podWith('absent')
    const gone = arbitrate({ waiting: [waitingFor(pod)], running: [] }, worldOf([]), argsWith())
    expect(gone.verdicts.get('job-absent')).toMatchObject({ type: 'refused', reason: 'MissingPod' })
    const early = arbitrate(
      { waiting: [waitingFor(pod, { seenForMs: 0 })], running: [] },
      worldOf([]),
      argsWith(),
    )
    expect(early.verdicts.get('job-absent')).toMatchObject({ type: 'waits', reason: 'MissingPod' })
  })

  it('koordinator#3039: nor one whose workload cannot be loaded', () => {
    const pod = podWith('p', { owner: { type: 'unknown', name: 'ReplicaSet web-1' } })
    expect(verdictOf(pod, worldOf([pod]), argsWith())).toMatchObject({
      type: 'waits',
      reason: 'WorkloadUnknown',
    })
  })

  it('koordinator#1084: a known risk can be accepted by the job, with a reason', () => {
    const pod = podWith('p', { hasLocalStorage: true })
    const world = worldOf([pod])
    expect(verdictOf(pod, world, argsWith())).toMatchObject({
      type: 'refused',
      reason: 'ForbiddenMigratePod',
    })
    const job = waitingFor(pod, { skipGates: new Set(['LocalStorage'] as const) })
    expect(arbitrate({ waiting: [job], running: [] }, world, argsWith()).admitted).toHaveLength(1)
  })
})

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { podMigrationJobs } from '../../../src/api/pod-migration-job.ts'
import type { OperatorProcess } from '../lib/operator-process.ts'
import { createJobsWorld, isEviction, type JobsWorld } from './world.ts'

let world: JobsWorld
let operator: OperatorProcess
beforeAll(async () => {
  world = await createJobsWorld()
})
beforeEach(async () => {
  operator = await world.leader()
})
afterAll(() => world[Symbol.asyncDispose]())
afterEach(async () => {
  await operator[Symbol.asyncDispose]()
  await world.clean()
})

const isStatusOfJob = ({ method, path }: { readonly method: string; readonly path: string }) =>
  method === 'PATCH' && /podmigrationjobs\/[^/]+\/status$/.test(path)

/** Ends the operator with the answer to its `index`-th write, which the API server has executed. */
const crashAt = (index: number) => {
  let seen = 0
  world.proxy.between(
    () => {
      if (seen === index) operator.kill()
      seen += 1
    },
    request => isStatusOfJob(request) || isEviction(request),
    1_000,
  )
}

describe('a crash at any write', () => {
  it.each([0, 1, 2, 3])(
    'write %i: the next operator ends the job the same way, and evicts no other pod',
    async index => {
      const { name } = await world.workload(3)
      crashAt(index)
      const job = await world.job(`${name}-0`)
      await operator.exited()
      world.proxy.heal()
      operator = await world.leader()
      await world.reaches(job, { phase: 'Succeed', reason: 'EvictComplete' })
      expect([await world.stays(`${name}-1`), await world.stays(`${name}-2`)]).toEqual([true, true])
    },
  )
})

it('a lost answer to an admission takes its place: the next job waits although the cache is behind', async () => {
  const { name } = await world.workload(6)
  await world.configure({
    maxMigratingGlobally: 1,
    maxMigratingPerWorkload: '100%',
    maxUnavailablePerWorkload: '100%',
  })
  world.kubelet.lingering.add(`${name}-0`)
  world.kubelet.lingering.add(`${name}-1`)
  const isWatch = ({ path, watch }: { readonly path: string; readonly watch: boolean }) =>
    watch && path.endsWith('/podmigrationjobs')
  const jobs = [
    await world.job(`${name}-0`, { paused: true }),
    await world.job(`${name}-1`, { paused: true }),
  ]
  for (const job of jobs) await world.reaches(job, { reason: 'Paused' })
  for (const job of jobs) await world.patch(job, { paused: false })
  world.proxy.loseResponse(1, isStatusOfJob)
  const stale = world.proxy.delayWatch(isWatch)
  const phases = async () => {
    const { items } = await world.api.list(podMigrationJobs, {})
    return items.filter(({ status }) => status?.phase === 'Running').length
  }
  const until = Date.now() + 5_000
  while (Date.now() < until) {
    expect(await phases()).toBeLessThanOrEqual(1)
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  stale.end()
  for (const pod of [`${name}-0`, `${name}-1`]) world.kubelet.lingering.delete(pod)
  world.kubelet.look()
  for (const job of jobs) await world.reaches(job, { phase: 'Succeed' })
})

it('an abort in the moment in which the eviction is accepted comes too late: the job does not say that the pod stays', async () => {
  const { name } = await world.workload(3)
  world.kubelet.lingering.add(`${name}-0`)
  const job = await world.job(`${name}-0`, { paused: true })
  await world.reaches(job, { reason: 'Paused' })
  // The cache of the operator does not show the deletion either.
  const stale = world.proxy.delayWatch(({ path, watch }) => watch && path.endsWith('/pods'))
  world.proxy.between(
    async () => {
      await world.patch(job, { abort: true })
    },
    isEviction,
    1,
  )
  await world.patch(job, { paused: false })
  await world.reaches(job, { phase: 'Running', reason: 'Evicting' })
  expect((await world.get(job)).spec.abort).toBe(true)
  stale.end()
  world.kubelet.lingering.delete(`${name}-0`)
  world.kubelet.look()
  await world.reaches(job, { phase: 'Succeed', reason: 'EvictComplete' })
})

it('two operators: one leads, the other takes over, and each pod is evicted once', async () => {
  await operator[Symbol.asyncDispose]()
  await using first = await world.operator()
  await first.leading()
  // Left running, it would act beside the operator of the next test.
  await using second = await world.operator()
  const { name } = await world.workload(4)
  await world.configure({ maxMigratingGlobally: 1 })
  const jobs = await Promise.all([0, 1].map(index => world.job(`${name}-${index}`)))
  await world.reaches(jobs[0] ?? '', { phase: 'Succeed' }).catch(() => undefined)
  first.kill()
  await second.leading()
  for (const job of jobs) await world.reaches(job, { phase: 'Succeed' })
  const evicted = world.proxy.requests.filter(isEviction).map(({ path }) => path)
  const ours = evicted.filter(path => path.includes(`/${name}-`))
  expect(new Set(ours).size).toBe(2)
  expect([await world.stays(`${name}-2`), await world.stays(`${name}-3`)]).toEqual([true, true])
})

it('PJ30: the order is the same after the operator was killed: failures of a pod count as before', async () => {
  const { name } = await world.workload(4)
  await world.configure({
    maxMigratingGlobally: 1,
    maxMigratingPerWorkload: '100%',
    maxUnavailablePerWorkload: '100%',
  })
  // The first pod has a failed job.
  world.refuseEvictions()
  await world.reaches(await world.job(`${name}-0`, { ttl: '1s' }), { phase: 'Failed', reason: 'Timeout' })
  world.proxy.heal()
  const paused = await world.job(`${name}-0`, { paused: true })
  const other = await world.job(`${name}-1`, { paused: true })
  for (const job of [paused, other]) await world.reaches(job, { reason: 'Paused' })
  operator.kill()
  await operator.exited()
  // The older job would come first, if its pod had not failed before.
  for (const job of [paused, other]) await world.patch(job, { paused: false })
  operator = await world.leader()
  await world.reaches(paused, { phase: 'Succeed' })
  await world.reaches(other, { phase: 'Succeed' })
  const order = world.proxy.requests.filter(isEviction).map(({ path }) => path.split('/').at(-2))
  expect(order.lastIndexOf(`${name}-1`), order.join()).toBeLessThan(order.lastIndexOf(`${name}-0`))
})

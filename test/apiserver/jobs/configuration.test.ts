import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { podMigrationJobs } from '../../../src/api/pod-migration-job.ts'
import { isKubeError } from '../../../src/kube/errors.ts'
import { eventually } from '../../support/eventually.ts'
import { createJobsWorld, type JobsWorld } from './world.ts'

let world: JobsWorld
beforeAll(async () => {
  world = await createJobsWorld()
  await world.leader()
})
afterAll(() => world[Symbol.asyncDispose]())
afterEach(() => world.clean())

/** Waits until the operator has read a configuration under which jobs wait. */
const waits = async (pod: string, reason: string) => {
  const name = await world.job(pod)
  await world.reaches(name, { phase: 'Pending', reason })
  return name
}

it('PJ21 PJ28: with enabled: false jobs wait; the configuration is read again when it changes', async () => {
  const { name } = await world.workload(2)
  await world.configure({ enabled: false })
  const job = await waits(`${name}-0`, 'Disabled')
  expect(await world.stays(`${name}-0`)).toBe(true)
  await world.configure({ enabled: true })
  await world.reaches(job, { phase: 'Succeed', reason: 'EvictComplete' })
})

it('with a configuration that cannot be read no job begins, and each says what is wrong', async () => {
  const { name } = await world.workload(2)
  await world.configure('maxMigratingPerNode: many')
  const job = await waits(`${name}-0`, 'InvalidConfiguration')
  expect((await world.get(job)).status?.message).toContain('maxMigratingPerNode is "many"')
  expect(await world.stays(`${name}-0`)).toBe(true)
})

it('PJ23: a dry run decides, and does nothing', async () => {
  const { name } = await world.workload(2)
  await world.configure({ enabled: false })
  const job = await waits(`${name}-0`, 'Disabled')
  await world.configure({ dryRun: true })
  await world.reaches(job, { phase: 'Succeed', reason: 'DryRun' })
  expect(await world.stays(`${name}-0`)).toBe(true)
})

it('PJ18 PJ20: many jobs at once: no more than the budgets allow are ever under way', async () => {
  const all = await Promise.all([world.workload(6), world.workload(6), world.workload(6)])
  await world.configure({
    ...{ enabled: false, maxMigratingPerNode: 2, maxMigratingGlobally: 4, evictQPS: '1000', evictBurst: 10 },
    ...{ maxMigratingPerWorkload: '100%', maxUnavailablePerWorkload: '100%' },
  })
  const names = all.flatMap(({ pods }) => pods.map(({ metadata }) => metadata.name))
  const jobs = await Promise.all(names.map(name => waits(name, 'Disabled')))
  // Pods that are slow to go keep their places.
  for (const name of names) world.kubelet.lingering.add(name)
  await world.configure({
    ...{ maxMigratingPerNode: 2, maxMigratingGlobally: 4, evictQPS: '1000', evictBurst: 10 },
    ...{ maxMigratingPerWorkload: '100%', maxUnavailablePerWorkload: '100%' },
  })
  for (;;) {
    const { items } = await world.api.list(podMigrationJobs, {})
    const running = items.filter(({ status }) => status?.phase === 'Running')
    expect(running.length).toBeLessThanOrEqual(4)
    const nodes = running.map(({ status }) => status?.source?.nodeName)
    for (const node of new Set(nodes))
      expect(nodes.filter(each => each === node).length).toBeLessThanOrEqual(2)
    const going = running.filter(({ status }) => status?.reason === 'Evicting')
    for (const { spec } of going) world.kubelet.lingering.delete(spec.podRef.name)
    world.kubelet.look()
    if (items.filter(({ status }) => status?.phase === 'Succeed').length === jobs.length) break
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  for (const name of names) expect(await world.stays(name)).toBe(false)
})

it('PJ22: flowControlQPS lets few jobs begin', async () => {
  const { name } = await world.workload(6)
  const slow = { flowControlQPS: '0.01', flowControlBurst: 2, maxMigratingPerWorkload: '100%' }
  await world.configure({ ...slow, enabled: false })
  const jobs = await Promise.all([0, 1, 2, 3].map(index => waits(`${name}-${index}`, 'Disabled')))
  await world.configure({ ...slow, maxUnavailablePerWorkload: '100%' })
  await eventually(async () => {
    const phases = await Promise.all(jobs.map(async job => (await world.get(job)).status))
    expect(phases.filter(status => status?.phase === 'Succeed')).toHaveLength(2)
    expect(phases.filter(status => status?.reason === 'FlowControl')).toHaveLength(2)
  })
})

it('jobs that have ended are deleted after finishedJobTTL', async () => {
  const { name } = await world.workload(2)
  const job = await world.job(`${name}-0`)
  await world.reaches(job, { phase: 'Succeed' })
  await world.configure({ finishedJobTTL: '0s' })
  // A job that waits makes the operator look.
  await world.job(`${name}-1`, { paused: true })
  await eventually(async () => {
    const isGone = await world.get(job).then(
      () => false,
      (error: unknown) => isKubeError(error, 'NotFound'),
    )
    expect(isGone).toBe(true)
  })
})

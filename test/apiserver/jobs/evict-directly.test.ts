import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { evictionCostAnnotation } from '../../../src/api/pod-migration-job.ts'
import { pods } from '../../../src/kube/resources.ts'
import { eventually } from '../../support/eventually.ts'
import { createJobsWorld, type JobsWorld } from './world.ts'

let world: JobsWorld
beforeAll(async () => {
  world = await createJobsWorld()
  await world.leader()
})
afterAll(() => world[Symbol.asyncDispose]())
afterEach(() => world.clean())

const pod = (name: string) => world.api.get(pods, { namespace: world.namespace, name })

describe('EvictDirectly', () => {
  it('PJ06: the pod is evicted, and the job has succeeded when it is gone', async () => {
    const { pods: made, name } = await world.workload(2)
    const wanted = { phase: 'Succeed', status: 'Complete', reason: 'EvictComplete' } as const
    const { status } = await world.reaches(await world.job(`${name}-0`), wanted)
    expect(await world.stays(`${name}-0`)).toBe(false)
    expect(await world.stays(`${name}-1`)).toBe(true)
    const workload = `ReplicaSet/${world.namespace}/${name}`
    expect(status).toMatchObject({ source: { uid: made[0]?.metadata.uid, workload } })
  })

  it('PJ02: a pod with the highest eviction cost is never removed', async () => {
    const { name } = await world.workload(2, { annotations: { [evictionCostAnnotation]: '2147483647' } })
    await world.reaches(await world.job(`${name}-0`), { phase: 'Failed', reason: 'ForbiddenMigratePod' })
    expect(await world.stays(`${name}-0`)).toBe(true)
  })

  it('PJ03: a paused job waits until it is not paused any more', async () => {
    const { name } = await world.workload(2)
    const paused = await world.job(`${name}-0`, { paused: true })
    await world.reaches(paused, { phase: 'Pending', reason: 'Paused' })
    expect(await world.stays(`${name}-0`)).toBe(true)
    await world.patch(paused, { paused: false })
    await world.reaches(paused, { phase: 'Succeed' })
  })

  it('the grace period is that of the job; an eviction that has begun cannot be aborted', async () => {
    const { name } = await world.workload(2)
    world.kubelet.lingering.add(`${name}-0`)
    const slow = await world.job(`${name}-0`, { deleteOptions: { gracePeriodSeconds: 7 } })
    await world.reaches(slow, { phase: 'Running', reason: 'Evicting' })
    await eventually(async () =>
      expect((await pod(`${name}-0`)).metadata).toMatchObject({ deletionGracePeriodSeconds: 7 }),
    )
    await world.patch(slow, { abort: true })
    world.kubelet.lingering.delete(`${name}-0`)
    await world.api.delete(pods, { namespace: world.namespace, name: `${name}-0` }, { gracePeriodSeconds: 0 })
    await world.reaches(slow, { phase: 'Succeed' })
  })

  it('a job that names another uid fails, and the namesake stays', async () => {
    const { name } = await world.workload(2)
    const uid = '00000000-0000-0000-0000-000000000000'
    const other = await world.job('', { podRef: { namespace: world.namespace, name: `${name}-0`, uid } })
    await world.reaches(other, { phase: 'Failed', reason: 'MissingPod' })
    expect(await world.stays(`${name}-0`)).toBe(true)
  })

  it('a job fails if its pod was created again under the same name meanwhile', async () => {
    const { name, labels, ownerReferences } = await world.workload(2)
    const paused = await world.job(`${name}-0`, { paused: true })
    await world.reaches(paused, { reason: 'Paused' })
    await world.api.delete(pods, { namespace: world.namespace, name: `${name}-0` }, { gracePeriodSeconds: 0 })
    await world.makePod({ name: `${name}-0`, labels, ownerReferences })
    await world.patch(paused, { paused: false })
    await world.reaches(paused, { phase: 'Failed', reason: 'MissingPod' })
    expect(await world.stays(`${name}-0`)).toBe(true)
  })
})

describe('what stands in the way', () => {
  it('PJ17: a job waits for the disruption budget of its pod, and says so; then it goes on', async () => {
    const { name } = await world.workload(3)
    await world.budget(name, 0)
    const waiting = await world.job(`${name}-0`)
    const { status } = await world.reaches(waiting, { phase: 'Pending', reason: 'DisruptionBudget' })
    expect(status?.conditions).toEqual([
      expect.objectContaining({
        ...{ type: 'Arbitrated', status: 'False', reason: 'DisruptionBudget' },
        message: expect.stringContaining(name),
      }),
    ])
    await world.allow(name, 1)
    await world.reaches(waiting, { phase: 'Succeed' })
  })

  it('PJ14: the answer of the API server is told; the job can be aborted, and the pod stays', async () => {
    const { name } = await world.workload(3)
    world.refuseEvictions()
    const stuck = await world.job(`${name}-0`)
    await world.reaches(stuck, { phase: 'Running', status: 'Eviction', reason: 'FailedEvict' })
    await world.patch(stuck, { abort: true })
    await world.reaches(stuck, { phase: 'Aborted', reason: 'Aborted' })
    expect(await world.stays(`${name}-0`)).toBe(true)
  })

  it('PJ04: the job fails when its ttl is over, and the pod stays', async () => {
    const { name } = await world.workload(3)
    world.refuseEvictions()
    const late = await world.job(`${name}-0`, { ttl: '1s' })
    await world.reaches(late, { phase: 'Failed', reason: 'Timeout' })
    expect(await world.stays(`${name}-0`)).toBe(true)
  })

  it('koordinator#1527: a pod of another scheduler is a pod as any other', async () => {
    const { name } = await world.workload(2, { spec: { schedulerName: 'another' } })
    expect((await pod(`${name}-0`)).spec?.schedulerName).toBe('another')
    await world.reaches(await world.job(`${name}-0`), { phase: 'Succeed' })
  })
})

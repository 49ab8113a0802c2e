/** How pods are removed: the policies of the configuration, and the options that reach the API server. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { softEvictionAnnotation } from '../../../src/api/pod-migration-job.ts'
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
const graceOf = (name: string) =>
  eventually(async () => {
    const { deletionGracePeriodSeconds } = (await pod(name)).metadata
    expect(deletionGracePeriodSeconds).toBeDefined()
    return deletionGracePeriodSeconds
  })
/** The controller has read the configuration: it says so for a job that cannot begin. */
const configured = async (args: Readonly<Record<string, unknown>>) => {
  const { name } = await world.workload(1)
  await world.configure({ ...args, enabled: false })
  const job = await world.job(`${name}-0`)
  await world.reaches(job, { reason: 'Disabled' })
  await world.patch(job, { abort: true })
  await world.reaches(job, { phase: 'Aborted' })
  await world.configure(args)
}

describe.each(['Eviction', 'Delete'])('PJ25: evictionPolicy %s', evictionPolicy => {
  const lingering = async (spec: object) => {
    const { name } = await world.workload(2)
    world.kubelet.lingering.add(`${name}-0`)
    return { name: `${name}-0`, job: await world.job(`${name}-0`, spec) }
  }

  it('PJ25: the grace period of the configuration reaches the pod, and that of a job replaces it', async () => {
    // The three pods may have one node, where two may migrate by default.
    await configured({
      ...{ evictionPolicy, maxMigratingPerNode: 0 },
      defaultDeleteOptions: { gracePeriodSeconds: 11 },
    })
    if (evictionPolicy === 'Delete') world.refuseEvictions()
    expect(await graceOf((await lingering({})).name)).toBe(11)
    expect(await graceOf((await lingering({ deleteOptions: { gracePeriodSeconds: 7 } })).name)).toBe(7)
    // The options of the job replace the others as a whole: the pod has its own grace period.
    expect(await graceOf((await lingering({ deleteOptions: {} })).name)).toBe(30)
  })

  it('PJ25: the preconditions reach the API server: with another version of the pod it refuses, and the pod stays', async () => {
    await configured({ evictionPolicy })
    if (evictionPolicy === 'Delete') world.refuseEvictions()
    const { name } = await world.workload(2)
    const deleteOptions = { preconditions: { resourceVersion: '1' } }
    const other = await world.job(`${name}-0`, { deleteOptions })
    const { status } = await world.reaches(other, { phase: 'Running', reason: 'FailedEvict' })
    expect(status?.message).toMatch(/resourceVersion|version/i)
    expect(await world.stays(`${name}-0`)).toBe(true)
    await world.patch(other, { abort: true })
    await world.reaches(other, { phase: 'Aborted' })
    const { resourceVersion } = (await pod(`${name}-0`)).metadata
    const fitting = await world.job(`${name}-0`, { deleteOptions: { preconditions: { resourceVersion } } })
    await world.reaches(fitting, { phase: 'Succeed', reason: 'EvictComplete' })
  })
})

describe('PJ25: evictionPolicy SoftEviction', () => {
  const asked = async (name: string) =>
    eventually(async () => {
      const text = (await pod(name)).metadata.annotations?.[softEvictionAnnotation]
      expect(text).toBeDefined()
      return JSON.parse(text ?? '')
    })

  it('PJ25: an annotation asks the controller of the pod, with the options; the job has succeeded when the pod is gone', async () => {
    await configured({ evictionPolicy: 'SoftEviction', defaultDeleteOptions: { gracePeriodSeconds: 9 } })
    const { name } = await world.workload(2)
    const job = await world.job(`${name}-0`)
    const { metadata } = await world.reaches(job, { phase: 'Running', reason: 'SoftEvicting' })
    expect(await asked(`${name}-0`)).toMatchObject({
      ...{ deleteOptions: { gracePeriodSeconds: 9 }, initiator: `PodMigrationJob/${metadata.uid}` },
      timestamp: expect.stringMatching(/^\d{4}-/),
    })
    expect(await world.stays(`${name}-0`)).toBe(true)
    await world.api.delete(pods, { namespace: world.namespace, name: `${name}-0` }, { gracePeriodSeconds: 0 })
    await world.reaches(job, { phase: 'Succeed', reason: 'EvictComplete' })
  })

  it.each([
    ['an abort', { abort: true }, { phase: 'Aborted' }],
    ['the end of the ttl', { ttl: '1s' }, { phase: 'Failed', reason: 'Timeout' }],
  ] as const)('%s takes the request back, and the pod stays', async (_, change, end) => {
    await configured({ evictionPolicy: 'SoftEviction' })
    const { name } = await world.workload(2)
    const job = await world.job(`${name}-0`)
    await world.reaches(job, { reason: 'SoftEvicting' })
    await world.patch(job, change)
    await world.reaches(job, end)
    expect((await pod(`${name}-0`)).metadata.annotations ?? {}).not.toHaveProperty([softEvictionAnnotation])
    expect(await world.stays(`${name}-0`)).toBe(true)
  })
})

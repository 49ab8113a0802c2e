import { describe, expect, it } from 'vitest'
import { jobManager, jobSpecAnnotation } from '../api/migrating-job.ts'
import { type MigratingPod, migratingPods } from '../api/migrating-pod.ts'
import { systemClock } from '../kube/clock.ts'
import { KubeError } from '../kube/errors.ts'
import { silentLog } from '../kube/log.ts'
import { type Job, jobs } from '../kube/resources.ts'
import { createApiServer } from '../kube/testing/api-server.ts'
import { createMemoryApi, type MemoryCall } from '../kube/testing/memory-api.ts'
import { reconcile } from './controller.ts'

const ref = { namespace: 'shop', name: 'sum' }
const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'app', image: 'app' }] } }

/** A Job, and operators whose caches are always up to date. */
function scene(managedBy = jobManager) {
  const server = createApiServer(systemClock.now, ['jobs', 'migratingpods'])
  const kind = { apiVersion: 'batch/v1', kind: 'Job' }
  server.create(jobs, { ...kind, metadata: { name: 'sum' }, spec: { managedBy, template } }, 'shop')
  const job = () => server.get<Job>(jobs, ref)
  const pod = () => server.find<MigratingPod>(migratingPods, ref)
  const pass = (faults: Parameters<typeof createMemoryApi>[1] = {}) =>
    reconcile(
      {
        jobs: { get: () => server.find<Job>(jobs, ref) },
        pods: { get: pod },
        clock: systemClock,
      },
      'shop/sum',
      { api: createMemoryApi(server, faults), log: silentLog, signal: new AbortController().signal },
    )
  return { server, job, pod, pass }
}

describe('MP-29: a pass over a Job', () => {
  it.each([0, 1].flatMap(at => (['send', 'reply'] as const).map(when => [at, when] as const)))(
    'that ends at write %i (%s) is completed by the next one, with one MigratingPod',
    async (at, when) => {
      const { job, pod, pass } = scene()
      let calls = 0
      const fail = () => {
        if (calls++ === at) throw new KubeError('Unavailable', 'the process has ended')
      }
      await expect(pass({ [when]: fail })).rejects.toThrow('the process has ended')
      await pass()
      await pass()
      expect(job().status).toMatchObject({ active: 0, startTime: expect.anything() })
      expect(pod()).toMatchObject({
        metadata: { ownerReferences: [{ kind: 'Job', uid: job().metadata.uid }] },
        spec: { template: { spec: { ...template.spec, restartPolicy: 'OnFailure' } } },
      })
    },
  )

  it.each([0, 1, 2].flatMap(at => (['send', 'reply'] as const).map(when => [at, when] as const)))(
    'of a failed Job that ends at write %i (%s) neither begins it anew nor forgets why',
    async (at, when) => {
      const { server, job, pod, pass } = scene()
      await pass()
      await pass()
      const made = pod()
      if (made === undefined) throw new Error('no MigratingPod')
      server.replace(migratingPods, ref, { ...made, status: { activePod: 'sum-0', failures: 9 } }, 'status')
      let calls = 0
      const created: string[] = []
      const fail = ({ verb }: MemoryCall) => {
        if (verb === 'create') created.push(verb)
        if (calls++ === at) throw new KubeError('Unavailable', 'the process has ended')
      }
      for (let n = 0; n < 6; n++) await pass({ [when]: fail }).catch(() => undefined)
      expect(job().status).toMatchObject({ failed: 9, active: 0 })
      expect(job().status?.conditions?.find(({ type }) => type === 'Failed')?.reason).toBe(
        'BackoffLimitExceeded',
      )
      expect([pod(), created]).toEqual([undefined, []])
    },
  )

  it('deletes the MigratingPod of a failed Job only once its status says why', async () => {
    const { server, job, pod, pass } = scene()
    await pass()
    await pass()
    const made = pod()
    if (made === undefined) throw new Error('no MigratingPod')
    server.replace(migratingPods, ref, { ...made, status: { activePod: 'sum-0', failures: 9 } }, 'status')
    // Another client has written the Job meanwhile.
    const conflict = ({ verb }: MemoryCall) => {
      if (verb === 'update') throw new KubeError('Conflict', 'the object has been modified')
    }
    await expect(pass({ send: conflict })).rejects.toThrow('has been modified')
    expect(pod()).toBeDefined()
    await pass()
    expect([pod() !== undefined, job().status?.conditions?.at(-1)?.type]).toEqual([true, 'FailureTarget'])
    await pass()
    expect(pod()).toBeUndefined()
  })

  it('over what it has written writes nothing', async () => {
    const { server, pass } = scene()
    await pass()
    await pass()
    const before = server.version
    await pass()
    expect(server.version).toBe(before)
  })

  it('leaves a Job of another manager alone', async () => {
    const { server, pod, pass } = scene('example.com/other')
    const before = server.version
    await pass()
    expect([pod(), server.version]).toEqual([undefined, before])
  })

  it('passes a suspension on, and keeps what users have set in the MigratingPod', async () => {
    const { server, job, pod, pass } = scene()
    await pass()
    const made = pod()
    if (made === undefined) throw new Error('no MigratingPod')
    const { spec, metadata } = made
    server.replace(migratingPods, ref, { ...made, spec: { ...spec, checkpoint: { keep: 5 } } }, undefined)
    server.replace(jobs, ref, { ...job(), spec: { ...job().spec, suspend: true, template } }, undefined)
    await pass()
    expect(pod()?.spec).toMatchObject({ suspend: true, checkpoint: { keep: 5 } })
    expect(pod()?.metadata.annotations?.[jobSpecAnnotation]).not.toBe(
      metadata.annotations?.[jobSpecAnnotation],
    )
  })

  it('tells why its MigratingPod is refused, and tries again', async () => {
    const { job, pass } = scene()
    const refuse = ({ verb }: MemoryCall) => {
      if (verb === 'create') throw new KubeError('Forbidden', 'memory is not allowed in this namespace')
    }
    expect(await pass({ send: refuse })).toEqual({ requeueAfterMs: 1_000 })
    expect(job().status?.conditions).toMatchObject([
      { reason: 'Refused', message: expect.stringContaining('memory is not allowed') },
    ])
  })
})

import { describe, expect, it } from 'vitest'
import { type BackupPodSet, backupPodSets } from '../api/backuppodset.ts'
import { type MigratingPod, migratingPods } from '../api/migrating-pod.ts'
import { systemClock } from '../kube/clock.ts'
import { KubeError } from '../kube/errors.ts'
import { silentLog } from '../kube/log.ts'
import { createApiServer } from '../kube/testing/api-server.ts'
import { createMemoryApi, type MemoryCall } from '../kube/testing/memory-api.ts'
import { reconcile } from './controller.ts'

const ref = { namespace: 'shop', name: 'web' }
const template = { spec: { containers: [{ name: 'app', image: 'app' }] } }

/** A MigratingPod, and operators whose caches are always up to date. */
function scene() {
  const server = createApiServer(systemClock.now, ['migratingpods', 'backuppodsets'])
  const kind = { apiVersion: 'backup.example.com/v1alpha1', kind: 'MigratingPod' }
  server.create(migratingPods, { ...kind, metadata: { name: 'web' }, spec: { template } }, 'shop')
  const object = () => server.get<MigratingPod>(migratingPods, ref)
  const set = () => server.find<BackupPodSet>(backupPodSets, ref)
  const pass = (faults: Parameters<typeof createMemoryApi>[1] = {}) =>
    reconcile(
      {
        objects: { get: () => server.find<MigratingPod>(migratingPods, ref) },
        sets: { get: set },
        pods: { by: () => [] },
        leases: { by: () => [] },
        migrations: { by: () => [] },
        clock: systemClock,
      },
      'shop/web',
      { api: createMemoryApi(server, faults), log: silentLog, signal: new AbortController().signal },
    )
  return { server, object, set, pass }
}

/** Fails at the call with this number, before or after the server has executed it. */
const failing = (at: number, when: 'send' | 'reply') => {
  let calls = 0
  return {
    [when]: () => {
      if (calls++ === at) throw new KubeError('Unavailable', 'the process has ended')
    },
  }
}

describe('MP-06: a pass', () => {
  it.each([0, 1].flatMap(at => (['send', 'reply'] as const).map(when => [at, when] as const)))(
    'that ends at write %i (%s) is completed by the next one, with one set',
    async (at, when) => {
      const { object, set, pass } = scene()
      await expect(pass(failing(at, when))).rejects.toThrow('the process has ended')
      await pass()
      await pass()
      expect(object().status).toMatchObject({ state: 'Creating', observedGeneration: 1 })
      expect(set()?.spec).toMatchObject({ replicas: 1, hotBackups: 0, coldBackups: 0, template })
    },
  )

  it('MP-29: makes no other set for one that has completed', async () => {
    const { server, object, set, pass } = scene()
    const completion = { pod: 'web-0', at: '2030-01-01T00:00:00Z' }
    server.replace(migratingPods, ref, { ...object(), status: { completion } }, 'status')
    await pass()
    expect(set()).toBeUndefined()
    expect(object().status).toMatchObject({ state: 'Completed', completion })
  })

  it('does not carry on what was removed from the template', async () => {
    const { server, object, set, pass } = scene()
    const to = (labels: Readonly<Record<string, string>>) =>
      server.replace(
        migratingPods,
        ref,
        { ...object(), spec: { template: { ...template, metadata: { labels } } } },
        undefined,
      )
    to({ app: 'x', track: 'beta' })
    await pass()
    to({ app: 'x' })
    await pass()
    expect(set()?.spec.template.metadata?.labels).toEqual({ app: 'x' })
  })

  it('over what it has written writes nothing', async () => {
    const { server, pass } = scene()
    await pass()
    await pass()
    const before = server.version
    await pass()
    expect(server.version).toBe(before)
  })

  it('of two operators makes one set', async () => {
    const { set, pass } = scene()
    const both = await Promise.allSettled([pass(), pass()])
    expect(set()?.metadata.ownerReferences).toHaveLength(1)
    // The slower one has an old version of the status, and tries again.
    expect(both.some(({ status }) => status === 'fulfilled')).toBe(true)
    await pass()
  })

  it('tells why its set is refused, and tries again', async () => {
    const { object, pass } = scene()
    const refuse = ({ verb }: MemoryCall) => {
      if (verb === 'create') throw new KubeError('Forbidden', 'memory is not allowed in this namespace')
    }
    expect(await pass({ send: refuse })).toEqual({ requeueAfterMs: 1_000 })
    expect(object().status?.state).toBe('Invalid')
    expect(object().status?.conditions?.[0]).toMatchObject({
      reason: 'SetRefused',
      message: expect.stringContaining('memory is not allowed'),
    })
    await pass()
    expect(object().status?.state).toBe('Creating')
  })

  it('waits for the set of an earlier MigratingPod of its name, which is being collected', async () => {
    const { server, object, set, pass } = scene()
    const owner = {
      apiVersion: 'backup.example.com/v1alpha1',
      kind: 'MigratingPod',
      name: 'web',
      uid: 'before',
    }
    const metadata = { name: 'web', ownerReferences: [{ ...owner, controller: true }] }
    server.create(backupPodSets, { metadata, spec: { replicas: 1, template } }, 'shop')
    await pass()
    expect(object().status?.state).toBe('Creating')
    expect(set()?.metadata.ownerReferences?.[0]?.uid).toBe('before')
  })
})

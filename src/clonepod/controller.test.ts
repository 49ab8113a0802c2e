import { describe, expect, it } from 'vitest'
import { type BackupPodSet, backupPodSets } from '../api/backuppodset.ts'
import { type ClonePod, clonePods } from '../api/clone-pod.ts'
import { labels } from '../api/labels.ts'
import { type MigratingPod, migratingPods } from '../api/migrating-pod.ts'
import { kindLabels } from '../api/pod-kind.ts'
import { createFakeClock } from '../kube/clock.ts'
import { KubeError } from '../kube/errors.ts'
import { silentLog } from '../kube/log.ts'
import { ownerReference } from '../kube/owner.ts'
import { type Pod, pods } from '../kube/resources.ts'
import { createApiServer } from '../kube/testing/api-server.ts'
import { createMemoryApi, type MemoryCall } from '../kube/testing/memory-api.ts'
import { reconcile } from './controller.ts'

const namespace = 'shop'
const ref = { namespace, name: 'copy' }
const template = { spec: { containers: [{ name: 'app', image: 'app' }] } }
const source = { name: 'web-p' }
const started = Date.parse('2030-01-01T00:00:00Z')

/** A primary with memory, a ClonePod, and operators whose caches are always up to date. */
function scene(spec: object = { source }) {
  const clock = createFakeClock({ now: started })
  const plurals = ['clonepods', 'migratingpods', 'backuppodsets', 'pods']
  const server = createApiServer(clock.now, plurals)
  const setSpec = { replicas: 1, checkpoint: { interval: '1s' }, service: { name: 'web' }, template }
  server.create(backupPodSets, { metadata: { name: 'web' }, spec: setSpec }, namespace)
  const set = server.get<BackupPodSet>(backupPodSets, { namespace, name: 'web' })
  const marks = { [labels.set]: 'web', ...kindLabels('primary') }
  const ownerReferences = [ownerReference(backupPodSets, set.metadata)]
  const made = { metadata: { name: 'web-p', labels: marks, ownerReferences }, spec: template.spec }
  server.create(pods, made, namespace)
  server.create(clonePods, { metadata: { name: 'copy' }, spec }, namespace)
  const object = () => server.find<ClonePod>(clonePods, ref)
  const copy = () => server.find<MigratingPod>(migratingPods, ref)
  const named = (key: string) => ({ namespace, name: key.split('/')[1] ?? '' })
  const pass = (faults: Parameters<typeof createMemoryApi>[1] = {}) =>
    reconcile(
      {
        objects: { get: object, by: () => server.list<ClonePod>(clonePods) },
        pods: { get: key => server.find<Pod>(pods, named(key)) },
        sets: { get: key => server.find<BackupPodSet>(backupPodSets, named(key)) },
        migratingPods: {
          get: key => server.find<MigratingPod>(migratingPods, named(key)),
          hasSynced: () => true,
        },
        clock,
      },
      'shop/copy',
      { api: createMemoryApi(server, faults), log: silentLog, signal: new AbortController().signal },
    )
  const serves = () => {
    const pod = copy()
    if (pod === undefined) throw new Error('no copy')
    const word = (type: string) => ({ type, status: 'True', reason: 'Yes', message: '' })
    const status = { state: 'Running', activePod: 'copy-0', conditions: [word('Cloned'), word('Ready')] }
    server.replace(migratingPods, ref, { ...pod, status }, 'status')
  }
  return { clock, server, object, copy, pass, serves }
}

const steps = [0, 1, 2, 3].flatMap(at => (['send', 'reply'] as const).map(when => [at, when] as const))

describe('MP-28: passes over a ClonePod', () => {
  it.each(steps)('that end at write %i (%s) still make one copy, and release it', async (at, when) => {
    const { object, copy, pass, serves } = scene()
    let calls = 0
    const created: MemoryCall[] = []
    const faults = {
      [when]: (call: MemoryCall) => {
        if (when === 'reply' && call.verb === 'create') created.push(call)
        if (calls++ === at) throw new KubeError('Unavailable', 'the process has ended')
      },
    }
    for (let n = 0; n < 3; n++) await pass(faults).catch(() => undefined)
    expect(copy()).toMatchObject({
      metadata: { ownerReferences: [{ kind: 'ClonePod', uid: object()?.metadata.uid }] },
      spec: { template, clonePod: 'web-p', checkpoint: { interval: '1s' } },
    })
    expect(copy()?.spec).not.toHaveProperty('service')
    expect(object()?.status).toMatchObject({ phase: 'Cloning', source: { uid: expect.any(String) } })
    serves()
    for (let n = 0; n < 3; n++) await pass(faults).catch(() => undefined)
    expect(object()?.status).toMatchObject({ phase: 'Succeeded', target: { pod: 'copy-0' } })
    expect(copy()?.metadata.ownerReferences).toEqual([])
  })

  it.each(steps)(
    'that end at write %i (%s) delete a copy that came to nothing, and make no other',
    async (at, when) => {
      const { clock, object, copy, pass } = scene({ source, timeoutSeconds: 60 })
      await pass()
      await pass()
      await clock.advance(60_000)
      let calls = 0
      const created: string[] = []
      const faults = {
        [when]: ({ verb }: MemoryCall) => {
          if (verb === 'create') created.push(verb)
          if (calls++ === at) throw new KubeError('Unavailable', 'the process has ended')
        },
      }
      for (let n = 0; n < 5; n++) await pass(faults).catch(() => undefined)
      expect(object()?.status?.conditions?.[0]).toMatchObject({ status: 'False', reason: 'DeadlineExceeded' })
      expect([copy(), created]).toEqual([undefined, []])
    },
  )

  it('collect it after its time, and leave the copy', async () => {
    const { clock, object, copy, pass, serves } = scene({ source, ttlSecondsAfterFinished: 10 })
    await pass()
    serves()
    await pass()
    await clock.advance(9_000)
    await pass()
    expect(object()?.status?.phase).toBe('Succeeded')
    await clock.advance(2_000)
    await pass()
    expect([object(), copy()?.metadata.name]).toEqual([undefined, 'copy'])
  })

  it('touch no MigratingPod of its name that is not its own', async () => {
    const { server, object, copy, pass } = scene()
    server.create(migratingPods, { metadata: { name: 'copy' }, spec: { template } }, namespace)
    const before = copy()
    await pass()
    expect(object()?.status?.conditions?.[0]).toMatchObject({ reason: 'NameTaken' })
    expect(copy()).toEqual(before)
  })

  it('say which pod a MigratingPod has now whose pod has moved', async () => {
    const { server, object, pass } = scene({ source: { name: 'roaming-0' } })
    const status = { state: 'Running', activePod: 'roaming-3' }
    const moved = { namespace, name: 'roaming' }
    server.create(migratingPods, { metadata: { name: 'roaming' }, spec: { template } }, namespace)
    server.replace(migratingPods, moved, { ...server.get(migratingPods, moved), status }, 'status')
    await pass()
    expect(object()?.status?.conditions?.[0]).toMatchObject({
      ...{ reason: 'SourceNotFound', message: expect.stringContaining('it is roaming-3 now') },
    })
  })

  it('say why the API server refuses the copy, and try again', async () => {
    const { object, copy, pass } = scene()
    const refuse = ({ verb }: MemoryCall) => {
      if (verb === 'create') throw new KubeError('Forbidden', 'exceeded quota')
    }
    expect(await pass({ send: refuse })).toMatchObject({ requeueAfterMs: 1_000 })
    expect(object()?.status).toMatchObject({
      phase: 'Pending',
      conditions: [{ reason: 'Refused', message: 'exceeded quota' }],
    })
    await pass()
    expect(copy()).toBeDefined()
  })

  it.each([
    ['a backup', { ...kindLabels('hotbackup') }, 'NoMemory'],
    ['of no set', { [labels.set]: null }, 'SourceNotFound'],
  ] as const)('copy no pod that is %s', async (_, change, reason) => {
    const { server, object, copy, pass } = scene()
    const pod = { namespace, name: 'web-p' }
    server.patch(pods, pod, 'merge', { metadata: { labels: change } }, undefined)
    await pass()
    expect(object()?.status?.conditions?.[0]?.reason).toBe(reason)
    expect(copy()).toBeUndefined()
  })
})

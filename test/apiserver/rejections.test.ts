import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type BackupPodSet, backupPodSets, defaults } from '../../src/api/backuppodset.ts'
import { parseDuration } from '../../src/api/memory.ts'
import { parseSet } from '../../src/api/parse.ts'
import { type Api, createApi } from '../../src/kube/api.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { isKubeError } from '../../src/kube/errors.ts'
import { adminKubeconfig } from './lib/plane.ts'
import { container, rejected, rejectedInsideThePod, set } from './lib/rejected-sets.ts'

let api: Api
beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
})
afterAll(() => api.close())

const dryRun = (body: object) =>
  api.create<BackupPodSet>(backupPodSets, body, { namespace: 'default', dryRun: true })

async function refusal(body: object): Promise<string> {
  try {
    await dryRun(body)
  } catch (error) {
    if (isKubeError(error, 'Invalid', 'BadRequest')) return error.message
    throw error
  }
  throw new Error('was accepted')
}

describe('F02: bad input is refused with a message that says what to change', () => {
  it('there are at least 25 cases', () => expect(rejected.length).toBeGreaterThanOrEqual(25))
  it.each(rejected)('%s', async (_, body, message) => {
    expect(await refusal(body)).toMatch(message)
    // The operator also refuses a set that was stored without this rule.
    expect(parseSet(body as BackupPodSet)).toMatchObject({ ok: false })
  })
  it.each(rejectedInsideThePod)('%s', async (_, body, message) => {
    expect(await refusal(body)).toMatch(message)
  })

  it('the rules hold for changes as for new objects', async () => {
    const { metadata } = await api.create(backupPodSets, set({ name: 'change' }), { namespace: 'default' })
    const ref = { namespace: 'default', name: metadata.name }
    const change = (spec: object) => api.patch(backupPodSets, ref, { type: 'merge', body: { spec } })
    try {
      await expect(change({ replicas: -1 })).rejects.toThrow(/greater than or equal to 0/)
      await expect(change({ template: { spec: { nodeName: 'n' } } })).rejects.toThrow(/remove .*nodeName/)
      const scale = { type: 'merge', body: { spec: { replicas: -1 } } } as const
      await expect(api.patch(backupPodSets, ref, scale, { subresource: 'scale' })).rejects.toThrow(
        /spec\.replicas.*greater than or equal to 0/,
      )
      expect((await api.get(backupPodSets, ref)).metadata.generation).toBe(1)
    } finally {
      await api.delete(backupPodSets, ref)
    }
  })

  it('a generated name counts as a whole', async () => {
    const body = { ...set(), metadata: { generateName: 'x'.repeat(46) } }
    expect(await refusal(body)).toMatch(/choose a name of at most 50 characters/)
  })

  it.each([
    ['spec.hotbackups', set({ spec: { hotbackups: 2 } })],
    ['spec.strategy.hotBackupToReplicas', set({ spec: { strategy: { hotBackupToReplicas: 'random' } } })],
    [
      'spec.template.spec.containers[0].imagePullPolicyy',
      set({ pod: { containers: [{ ...container, imagePullPolicyy: 'Always' }] } }),
    ],
    [
      'spec.template.spec.containers[0].livenessProbe.httpGet.prot',
      set({ pod: { containers: [{ ...container, livenessProbe: { httpGet: { port: 80, prot: 1 } } }] } }),
    ],
  ])('the unknown field %s is named when the client asks for it, as kubectl does', async (field, body) => {
    const path = '/apis/backup.example.com/v1alpha1/namespaces/default/backuppodsets'
    const query = { dryRun: 'All', fieldValidation: 'Strict' }
    await expect(api.request('POST', path, { body, query })).rejects.toThrow(`unknown field "${field}"`)
    // Server-side apply never accepts fields that it cannot own.
    await expect(
      api.patch(
        backupPodSets,
        { namespace: 'default', name: 'set' },
        { type: 'apply', body },
        { dryRun: true, fieldManager: 'test' },
      ),
    ).rejects.toThrow(/field not declared in schema/)
  })
})

describe('odd input that is meant', () => {
  it.each<[string, object]>([
    ['a parked set', set({ spec: { replicas: 0, hotBackups: 0, coldBackups: 0 } })],
    ['a name of 50 characters', set({ name: 'x'.repeat(50) })],
    [
      'quantities as numbers and as text',
      set({ pod: { containers: [{ ...container, resources: { limits: { cpu: 1, memory: '64Mi' } } }] } }),
    ],
    [
      'a port without protocol',
      set({ pod: { containers: [{ ...container, ports: [{ containerPort: 80 }] }] } }),
    ],
    [
      'what kubectl create --dry-run writes into templates',
      set({ metadata: { creationTimestamp: null, labels: { app: 'web' } } }),
    ],
    ['an empty label', set({ metadata: { labels: { app: '' } } })],
    [
      'a port of 20000 that is opened after the gate has gone',
      set({
        pod: { containers: [{ ...container, ports: [{ containerPort: 20_000 }] }] },
        spec: { coldBackups: 1 },
      }),
    ],
    ['nothing where a default is', set({ spec: { strategy: null, replicas: null, failover: null } })],
    ['no grace', set({ pod: { terminationGracePeriodSeconds: 0 } })],
    ['host network without cold backups', set({ pod: { hostNetwork: true } })],
    ['the same scheduler twice', set({ pod: { schedulerName: 'mine' }, spec: { schedulerName: 'mine' } })],
    [
      'a sidecar',
      set({ pod: { initContainers: [{ ...container, name: 'sidecar', restartPolicy: 'Always' }] } }),
    ],
    ['memory with nothing said about it', set({ spec: { checkpoint: {} } })],
    [
      'a claim and a terminal beside hot backups that are to be warm',
      set({
        spec: { checkpoint: {}, hotBackup: { mode: 'Warm' } },
        pod: {
          containers: [{ ...container, tty: true }],
          volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
        },
      }),
    ],
    [
      'one port for two protocols',
      set({
        spec: {
          service: {
            name: 'set-3-web',
            perSlot: true,
            ports: [
              { name: 'a', port: 53 },
              { name: 'b', port: 53, protocol: 'UDP' },
            ],
          },
        },
      }),
    ],
  ])('%s', async (_, body) => {
    const stored = await dryRun(body)
    expect(parseSet(stored)).toMatchObject({ ok: true })
  })

  it('the schema fills in every default of what memory needs', async () => {
    const { checkpoint } = (await dryRun(set({ spec: { checkpoint: {} } }))).spec
    const { volumes, ...rest } = defaults.checkpoint
    expect(checkpoint).toEqual({ ...rest, volumes })
  })

  it('the schema fills in every default, so that parsing adds nothing', async () => {
    const stored = await dryRun(set())
    // The default of the update strategy depends on another field.
    const { template: _, updateStrategy: __, failover, suspend, ...spec } = stored.spec
    const { nodeTimeout = '', ...sameForm } = failover ?? {}
    const parsed = parseSet(stored)
    expect(parsed).toMatchObject({
      ok: true,
      set: {
        ...spec,
        suspended: suspend,
        failover: { ...sameForm, nodeTimeoutMs: parseDuration(nodeTimeout) },
      },
    })
    expect(spec).toMatchObject({ replicas: 1, hotBackups: 0, coldBackups: 0, wakeupTimeout: 5 })
  })
})

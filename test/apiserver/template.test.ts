import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { type BackupPodSet, backupPodSets, placements } from '../../src/api/backuppodset.ts'
import { podKinds } from '../../src/api/labels.ts'
import { type ParsedSet, parseSet } from '../../src/api/parse.ts'
import { renderPod } from '../../src/backuppodset/pod/render.ts'
import { type Api, createApi } from '../../src/kube/api.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import type { Pod } from '../../src/kube/resources.ts'
import { adminKubeconfig } from './lib/plane.ts'

let api: Api
beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
})
afterAll(() => api.close())

const dryRun = (spec: object) =>
  api.create<BackupPodSet>(
    backupPodSets,
    { apiVersion: 'backup.example.com/v1alpha1', kind: 'BackupPodSet', metadata: { name: 'set' }, spec },
    { namespace: 'default', dryRun: true },
  )

describe('spec.template', () => {
  it('keeps every field that this Kubernetes has', async () => {
    // Read the server's own document, not the one from which our schema was made.
    const { body } = await api.request('GET', '/openapi/v3/api/v1')
    const definitions = (body as { components: { schemas: Record<string, Definition> } }).components.schemas
    const { nodeName, ephemeralContainers, activeDeadlineSeconds, ...spec } = everyField(
      { $ref: '#/components/schemas/io.k8s.api.core.v1.PodSpec' },
      definitions,
    ) as Record<string, object>
    expect([nodeName, ephemeralContainers, activeDeadlineSeconds]).not.toContain(undefined)
    const template = {
      metadata: { name: 'x', labels: { app: 'x' }, annotations: { 'example.com/a': 'x'.repeat(1000) } },
      spec: { ...spec, restartPolicy: 'Always', schedulerName: 'default-scheduler', os: { name: 'linux' } },
    }
    const stored = await dryRun({ template })
    expect(stored.spec.template).toEqual(template)
    expect(JSON.stringify(template).length).toBeGreaterThan(10_000)
  })

  it('merges what several appliers own, as for the pods of a Deployment', async () => {
    const ref = { namespace: 'default', name: 'merge' }
    const apply = (fieldManager: string, container: object) =>
      api.patch(
        backupPodSets,
        ref,
        {
          type: 'apply',
          body: {
            apiVersion: 'backup.example.com/v1alpha1',
            kind: 'BackupPodSet',
            metadata: { name: ref.name },
            spec: { template: { spec: { containers: [container] } } },
          },
        },
        { fieldManager },
      )
    try {
      await apply('owner', { name: 'app', image: 'app:1', ports: [{ containerPort: 80 }] })
      await apply('injector', { name: 'proxy', image: 'proxy:1', env: [{ name: 'A', value: '1' }] })
      const { spec } = await apply('owner', { name: 'app', image: 'app:2', ports: [{ containerPort: 81 }] })
      expect(spec.template.spec?.containers).toEqual([
        { name: 'app', image: 'app:2', ports: [{ containerPort: 81, protocol: 'TCP' }] },
        { name: 'proxy', image: 'proxy:1', env: [{ name: 'A', value: '1' }] },
      ])
    } finally {
      await api.delete(backupPodSets, ref)
    }
  })
})

describe('samples', () => {
  const directory = new URL('../../samples/', import.meta.url)
  const sets = ['', 'by-use/']
    .flatMap(place => readdirSync(new URL(place, directory)).map(name => `${place}${name}`))
    .filter(name => name.endsWith('.yaml'))
    .flatMap(file =>
      parseAllDocuments(readFileSync(new URL(file, directory), 'utf8'))
        .map(document => document.toJS() as BackupPodSet)
        .filter(({ kind }) => kind === 'BackupPodSet')
        .map(set => [file, set] as const),
    )

  it('there are some', () => expect(sets.length).toBeGreaterThanOrEqual(4))

  it.each(sets)('%s: the server accepts the pods that are made of it', async (_, { spec }) => {
    const set = parsed(await dryRun(spec))
    for (const kind of podKinds)
      for (const strategy of placements)
        for (const gatePosition of ['First', 'Last'] as const) {
          const name = `${set.name}-0123456789ab`
          const action = { type: 'create', kind, name, strategy, role: undefined } as const
          const settings = {
            wakerImage: 'understudy.invalid/waker:test',
            wakeKeys: [new Uint8Array(32)],
          } as const
          const body = renderPod({ ...set, gatePosition }, action, settings)
          const query = { dryRun: 'All', fieldValidation: 'Strict' }
          const made = await api.request('POST', '/api/v1/namespaces/default/pods', { body, query })
          expect((made.body as Pod).metadata.labels).toMatchObject({
            ...set.template.metadata?.labels,
            type: kind,
          })
        }
  })
})

describe('a namespace that enforces the level `restricted`', () => {
  const spec = {
    replicas: 1,
    checkpoint: {},
    template: {
      spec: {
        securityContext: { runAsNonRoot: true, runAsUser: 1000 },
        containers: [
          {
            name: 'app',
            image: 'app',
            securityContext: {
              allowPrivilegeEscalation: false,
              readOnlyRootFilesystem: true,
              capabilities: { drop: ['ALL'] },
            },
          },
        ],
      },
    },
  }

  it('takes the pods of a set that keeps memory, though the template names no seccomp profile', async () => {
    const name = `restricted-${process.pid}`
    const enforced = { 'pod-security.kubernetes.io/enforce': 'restricted' }
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: enforced } }
    await api.request('POST', '/api/v1/namespaces', { body })
    try {
      const send = (pod: object) =>
        api.request('POST', `/api/v1/namespaces/${name}/pods`, { body: pod, query: { dryRun: 'All' } })
      const set = { ...parsed(await dryRun(spec)), namespace: name }
      const settings = {
        wakerImage: 'understudy.invalid/waker:test',
        wakeKeys: [new Uint8Array(32)],
      } as const
      const render = (kind: (typeof podKinds)[number], of: ParsedSet) =>
        renderPod(of, { type: 'create', kind, name: 'x', strategy: 'random', role: undefined }, settings)
      for (const kind of podKinds) await send(render(kind, set))
      await expect(send(render('primary', { ...set, memory: undefined }))).rejects.toThrow(/seccompProfile/)
    } finally {
      await api.request('DELETE', `/api/v1/namespaces/${name}`)
    }
  })
})

function parsed(set: BackupPodSet): ParsedSet {
  const result = parseSet(set)
  if (!result.ok) throw new Error(result.message)
  return result.set
}

interface Definition {
  readonly $ref?: string
  readonly allOf?: readonly Definition[]
  readonly type?: string
  readonly format?: string
  readonly enum?: readonly string[]
  readonly items?: Definition
  readonly additionalProperties?: Definition
  readonly properties?: Readonly<Record<string, Definition>>
}

/**
 * Returns a value with every field of a definition. Claim templates in volumes may have only these two metadata fields.
 */
function everyField(definition: Definition, all: Readonly<Record<string, Definition>>): unknown {
  const reference = definition.$ref ?? definition.allOf?.[0]?.$ref
  if (reference !== undefined) {
    const name = reference.slice(reference.lastIndexOf('/') + 1)
    if (name.endsWith('.resource.Quantity')) return '1Gi'
    if (name.endsWith('.intstr.IntOrString')) return '50%'
    if (name.endsWith('.meta.v1.ObjectMeta'))
      return { labels: { app: 'x' }, annotations: { 'example.com/a': 'x' } }
    const target = all[name]
    if (target === undefined) throw new Error(`the server describes no ${name}`)
    return everyField(target, all)
  }
  const { properties, items, additionalProperties } = definition
  if (properties !== undefined)
    return Object.fromEntries(Object.entries(properties).map(([key, of]) => [key, everyField(of, all)]))
  if (items !== undefined) return [everyField(items, all)]
  if (additionalProperties !== undefined) return { key: everyField(additionalProperties, all) }
  if (definition.format === 'date-time') return '2026-01-01T00:00:00Z'
  if (definition.format === 'byte') return 'eA=='
  switch (definition.type) {
    case 'integer':
    case 'number':
      return 1
    case 'boolean':
      return false
    case 'string':
      return definition.enum?.[0] ?? 'x'
    default:
      return { key: 'x' }
  }
}

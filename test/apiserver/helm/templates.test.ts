/** The chart gives the objects of the kustomizations: real Helm beside real kustomize. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { chartFiles } from '../../../deploy/chart/chart.ts'
import { objectsIn } from '../../../deploy/chart/kustomize.ts'
import { idOf, isMap, type KubeObject } from '../../../deploy/chart/merge.ts'
import { writeFiles } from '../../../deploy/chart/write.ts'
import { buildMs, type HelmTools, openHelm } from '../../support/helm.ts'
import { manifests, project, text } from '../../unit/deploy/manifests.ts'
import { type Case, expectedOf, overlayOf } from './case.ts'
import { componentCases } from './component-cases.ts'
import { imageCases, placeCases } from './place-cases.ts'
import { workloadCases } from './workload-cases.ts'

const cases = [...componentCases, ...placeCases, ...imageCases, ...workloadCases]

let tools: HelmTools
beforeAll(async () => {
  tools = await openHelm()
}, buildMs)
afterAll(() => tools?.[Symbol.asyncDispose]())

const registry = ['--set', 'images.registry=understudy.invalid']
const system = 'understudy-system'

/** Runs `helm template`. Values of `given` count more than the registry of the manifests. */
async function template(given: object, namespace = system, ...more: readonly string[]) {
  const files = await tools.values({ images: { registry: 'understudy.invalid' } })
  const own = await tools.values(given)
  return tools.helm(
    'template',
    'understudy',
    tools.chart,
    '--namespace',
    namespace,
    ...files,
    ...own,
    ...more,
  )
}

/** @throws with Helm's message if it refuses. */
async function objectsOf(given: object, namespace?: string): Promise<readonly KubeObject[]> {
  const { code, stdout, stderr } = await template(given, namespace)
  expect([code, stderr]).toEqual([0, ''])
  return objectsIn(stdout)
}

const noteOf = ({ metadata: { annotations } }: KubeObject, name: string) =>
  isMap(annotations) ? annotations[name] : undefined
const isHook = (object: KubeObject) => noteOf(object, 'helm.sh/hook') !== undefined
const policy = 'helm.sh/resource-policy'

/** Without what only Helm reads. */
function plain(object: KubeObject): KubeObject {
  const { annotations } = object.metadata
  if (!isMap(annotations) || annotations[policy] === undefined) return object
  const { [policy]: _, ...others } = annotations
  const { annotations: _all, ...metadata } = object.metadata
  return {
    ...object,
    metadata: Object.keys(others).length === 0 ? metadata : { ...metadata, annotations: others },
  }
}

const byId = (objects: readonly KubeObject[]) =>
  Object.fromEntries(objects.map(object => [idOf(object), object]))

describe('D19.chart: the objects of the chart are those of the kustomizations', () => {
  test.each(cases)('with $title', async (each: Case) => {
    const [built, objects] = await Promise.all([
      tools.kustomize(overlayOf(each)),
      objectsOf(each.values ?? {}, each.namespace),
    ])
    const own = objects.filter(object => !isHook(object))
    expect(own.length).toBeGreaterThan(30)
    // No object twice.
    expect(Object.keys(byId(own))).toHaveLength(own.length)
    expect(byId(own.map(plain))).toEqual(byId(expectedOf(each, built)))
  })

  test('the policy of the gate is in each namespace that a user names', async () => {
    const objects = await objectsOf({ gate: { namespaces: ['shop', '42'] } }, 'backups')
    const policies = objects.filter(({ metadata }) => metadata.name === 'understudy-gate')
    const built = await Promise.all(
      ['shop', '42'].map(namespace => tools.kustomize({ resources: ['network-policy'], namespace })),
    )
    const expected = JSON.stringify(built.flat()).replaceAll(system, 'backups')
    expect(policies).toEqual(JSON.parse(expected))
  })

  test('what Prometheus and Grafana get is what deploy/ has, with the labels of the user', async () => {
    const names = ['serviceMonitor', 'podMonitor', 'prometheusRule', 'dashboard']
    const flags = Object.fromEntries(names.map(name => [name, true]))
    const objects = await objectsOf({ monitoring: { ...flags, labels: { release: 'kube-prometheus' } } })
    const before = Object.keys(byId(await objectsOf({})))
    const added = objects.filter(object => !before.includes(idOf(object)))
    const files = ['service-monitor', 'pod-monitor', 'prometheus-rule']
    const written = (await Promise.all(files.map(name => manifests(`deploy/alerts/${name}.yaml`)))).flat()
    const labelled = written.map(({ metadata, ...object }) => ({
      ...object,
      metadata: { ...metadata, labels: { ...metadata.labels, release: 'kube-prometheus' } },
    }))
    const dashboard = added.find(({ kind }) => kind === 'ConfigMap')
    const monitors = added.filter(object => object !== dashboard)
    expect(byId(monitors)).toEqual(
      Object.fromEntries(labelled.map(it => [`${it.kind} ${it.metadata.name}`, it])),
    )
    expect(dashboard?.['data']).toEqual({ 'understudy.json': await text('deploy/grafana/understudy.json') })
    expect(dashboard?.metadata['labels']).toMatchObject({
      grafana_dashboard: '1',
      release: 'kube-prometheus',
    })
  })

  test('every directory of deploy/ is a part of the chart, or none for users of it', async () => {
    const entries = await readdir(join(project, 'deploy'), { withFileTypes: true })
    const names = entries.flatMap(entry => (entry.isDirectory() ? entry.name : []))
    const inBase = ['admission', 'agent', 'operator']
    const inTestsAbove = ['network-policy', 'alerts', 'grafana']
    const notInstalled = ['argocd', 'chart', 'docker']
    const known = cases.flatMap(({ resources = ['base'], components = [] }) => [...resources, ...components])
    const all = new Set([...known, ...inBase, ...inTestsAbove, ...notInstalled])
    expect(names.filter(name => !all.has(name))).toEqual([])
  })
})

describe('D19.values: bad values are refused with a sentence', () => {
  test.each<[string, object, string, string?]>([
    ['no registry', { images: { registry: '' } }, 'set images.registry: no public registry serves'],
    ['the namespace default', {}, 'install into a namespace of its own, not into default', 'default'],
    [
      'a namespace of Kubernetes',
      {},
      'install into a namespace of its own, not into kube-system',
      'kube-system',
    ],
    ['one namespace for both', {}, 'the agents are privileged and need a namespace', 'understudy-agents'],
    [
      'reservations alone',
      { podMigrationJobs: { reservations: true } },
      'need podMigrationJobs.enabled=true',
    ],
    [
      'preemptions without reservations',
      { podMigrationJobs: { enabled: true, preemptions: true } },
      'podMigrationJobs.preemptions needs podMigrationJobs.reservations=true',
    ],
    ['two stores', { stateStore: { redis: true, url: 'redis://a' } }, 'exclude each other'],
    [
      'a Redis without password',
      { stateStore: { redis: true, passwordSecret: '' } },
      'needs stateStore.passwordSecret',
    ],
    ['an unknown value', { clonepods: { enabled: true } }, "additional properties 'clonepods' not allowed"],
    ['an unknown value inside', { operator: { replica: 3 } }, "additional properties 'replica' not allowed"],
    ['a word for a number', { operator: { replicas: 'two' } }, 'got string, want integer'],
    ['no replica', { operator: { replicas: 0 } }, 'minimum'],
    ['a word for a flag', { agents: { enabled: 'no' } }, 'got string, want boolean'],
    ['an unknown class', { agents: { priorityClass: 'mine' } }, 'value must be one of'],
    ['a collector without a scheme', { traces: { endpoint: 'tempo:4318' } }, 'does not match pattern'],
    ['half a digest', { images: { agent: { digest: 'sha256:12' } } }, 'does not match pattern'],
    ['a name that no namespace has', { gate: { namespaces: ['Shop'] } }, 'does not match pattern'],
  ])('%s', async (_, values, message, namespace) => {
    const { code, stderr } = await template(values, namespace)
    expect([code, stderr]).toEqual([1, expect.stringContaining(message)])
  })

  test('values.yaml has what values.schema.json knows, and no more', async () => {
    const [values, schema] = await Promise.all(
      ['values.yaml', 'values.schema.json'].map(async name =>
        parse(await readFile(join(tools.chart, name), 'utf8')),
      ),
    )
    // Helm adds `global` itself.
    const { global: _, ...properties } = schema.properties
    expect(Object.keys(values)).toEqual(Object.keys(properties))
  })
})

test('D19.chart: `helm lint` finds nothing, with and without values', async () => {
  for (const values of [[], registry]) {
    const { code, stdout } = await tools.helm('lint', '--strict', tools.chart, ...values)
    expect([code, stdout]).toEqual([0, expect.stringContaining('0 chart(s) failed')])
  }
})

describe('D19.keep: kinds and hook', () => {
  test('Helm keeps the kinds of which users have objects, and no other object', async () => {
    const objects = await objectsOf({ clonePods: { enabled: true }, podMigrationJobs: { enabled: true } })
    const kept = objects.filter(object => noteOf(object, policy) === 'keep').map(idOf)
    const kinds = objects.filter(({ kind }) => kind === 'CustomResourceDefinition').map(idOf)
    expect(kinds.filter(kind => !kept.includes(kind))).toEqual([
      'CustomResourceDefinition nodereports.backup.example.com',
    ])
    expect(kept.filter(kind => !kinds.includes(kind))).toEqual([])
  })

  test('the hook runs before anything is deleted, and can be left out', async () => {
    const hooks = (await objectsOf({})).filter(isHook)
    expect(hooks.map(idOf).sort()).toEqual([
      'ClusterRole understudy-uninstall',
      'ClusterRoleBinding understudy-uninstall',
      `Job ${system} understudy-uninstall`,
      `ServiceAccount ${system} understudy-uninstall`,
    ])
    expect(hooks.map(hook => noteOf(hook, 'helm.sh/hook'))).toEqual(hooks.map(() => 'pre-delete'))
    expect((await objectsOf({ uninstall: { sweep: false } })).filter(isHook)).toEqual([])
  })

  test('D20.chart: a chart of a release names its images by digest, unless a user sets a tag or has loaded them into the nodes', async () => {
    const digests = { operator: 'a', agent: 'b', waker: 'c' }
    const bound = Object.fromEntries(
      Object.entries(digests).map(([name, digit]) => [name, `sha256:${digit.repeat(64)}`]),
    )
    const release = { registry: 'registry.example/u', digests: bound }
    const chart = await writeFiles(
      join(tools.scratch, 'released', 'understudy'),
      await chartFiles(tools.kustomize, release),
    )
    const imagesWith = async (images: object) => {
      const { code, stdout, stderr } = await tools.helm(
        ...['template', 'understudy', chart, '--namespace', system],
        ...(await tools.values({ images })),
      )
      expect([code, stderr]).toEqual([0, ''])
      const found = [...stdout.matchAll(/(?:image: |--waker-image=)(\S+)/g)].map(([, image = '']) => image)
      return [...new Set(found)].sort()
    }
    expect(await imagesWith({})).toEqual(
      ['agent', 'operator', 'waker'].map(name => `registry.example/u/${name}@${bound[name]}`),
    )
    expect(await imagesWith({ registry: 'other.example', agent: { tag: '0.0.9' } })).toEqual([
      'other.example/agent:0.0.9',
      `other.example/operator@${bound['operator']}`,
      `other.example/waker@${bound['waker']}`,
    ])
    for (const image of await imagesWith({ registry: 'understudy.invalid' }))
      expect(image).toMatch(/^understudy\.invalid\/[a-z]+:\d/)
  })

  test('its Job has the image and the registry secrets of the operator, and the options that are set', async () => {
    const objects = await objectsOf(
      {
        images: { pullSecrets: ['pull'] },
        uninstall: { timeoutSeconds: 30 },
        operator: { nodeSelector: { pool: 'a' } },
      },
      'backups',
    )
    const job = objects.find(({ kind }) => kind === 'Job')
    expect(job?.metadata['namespace']).toBe('backups')
    expect(job?.['spec']).toMatchObject({
      activeDeadlineSeconds: 90,
      template: {
        spec: {
          imagePullSecrets: [{ name: 'pull' }],
          nodeSelector: { pool: 'a' },
          containers: [
            {
              image: expect.stringMatching(/^understudy\.invalid\/operator:\d/),
              args: ['uninstall', '--timeout=30s'],
            },
          ],
        },
      },
    })
  })
})

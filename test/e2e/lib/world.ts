/** The cluster under test for one test: its API, and sets that are deleted after the test. */

import { randomBytes } from 'node:crypto'
import { expect, inject } from 'vitest'
import {
  type BackupPodSet,
  type BackupPodSetSpec,
  backupPodSets,
  type CheckpointSpec,
} from '../../../src/api/backuppodset.ts'
import { isAtGate } from '../../../src/api/gate.ts'
import { labels, type PodKind } from '../../../src/api/labels.ts'
import { memoryAllowed } from '../../../src/api/memory-permission.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { isKubeError } from '../../../src/kube/errors.ts'
import { isReady } from '../../../src/kube/ready.ts'
import { namespaces, nodes, type Pod, pods, type Service, services } from '../../../src/kube/resources.ts'
import { eventually } from '../../support/eventually.ts'
import { tellOnFailure } from './story.ts'

/** The application of most tests: an HTTP server that counts in memory; see images/counter. */
export const counterTemplate = {
  metadata: { labels: { app: 'counter' } },
  spec: {
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 5,
    containers: [
      {
        name: 'counter',
        image: 'understudy.invalid/counter:0.1.0',
        imagePullPolicy: 'IfNotPresent',
        ports: [{ containerPort: 8080 }],
        readinessProbe: { httpGet: { path: '/healthz', port: 8080 }, periodSeconds: 1 },
      },
    ],
  },
} as const

/** The same with additions to its container or its pod. */
export const counterWith = (container: object, pod: object = {}) => ({
  ...counterTemplate,
  spec: {
    ...counterTemplate.spec,
    ...pod,
    containers: counterTemplate.spec.containers.map(one => ({ ...one, ...container })),
  },
})

export interface World extends AsyncDisposable {
  readonly api: Api
  /** The test's own namespace. */
  readonly namespace: string
  createSet(name: string, spec: Partial<BackupPodSetSpec>): Promise<TestSet>
  createService(name: string, selector: Record<string, string>): Promise<Service>
}

export interface TestSet {
  readonly name: string
  readonly namespace: string
  get(): Promise<BackupPodSet>
  scale(numbers: Pick<BackupPodSetSpec, 'replicas' | 'hotBackups' | 'coldBackups'>): Promise<void>
  patch(spec: object): Promise<BackupPodSet>
  /** Pods that are not being deleted, by name. */
  pods(kind?: PodKind): Promise<Pod[]>
  /** Waits until the status says Ready for exactly these numbers, and returns the pods by kind. */
  settled(p: number, h: number, c: number, timeoutMs?: number): Promise<Record<PodKind, Pod[]>>
  deletePod(pod: Pod, gracePeriodSeconds?: number): Promise<void>
}

/**
 * Stops of a pod are long on a busy machine, and by default each is paid for by fifty times as long without another one: a test that waits for the
 * next saved state would wait for minutes.
 */
export const often = (checkpoint: CheckpointSpec): CheckpointSpec => ({ maxFreezePercent: 50, ...checkpoint })

export const restartsOf = (pod: Pod): number =>
  (pod.status?.containerStatuses ?? []).reduce((sum, { restartCount }) => sum + restartCount, 0)

export const typeOf = (pod: Pod): string | undefined => pod.metadata.labels?.[labels.type]

/** Namespace of the operator. */
export const system = 'understudy-system'

/** The pods of the operator. */
export const replicas = async ({ api }: Pick<World, 'api'>): Promise<readonly Pod[]> =>
  (await api.list(pods, { namespace: system, labelSelector: 'app.kubernetes.io/component=operator' })).items

export async function connect(): Promise<Api> {
  return createApi({
    connection: await loadConnection({ kubeconfig: inject('cluster').kubeconfig }),
    userAgent: 'understudy-test/0',
  })
}

export async function createWorld(): Promise<World> {
  const api = await connect()
  const namespace = `test-${randomBytes(4).toString('hex')}`
  await api.create(namespaces, { metadata: { name: namespace, labels: memoryAllowed } })
  const keepFacts = expect.getState().currentTestName ? tellOnFailure({ api, namespace }) : undefined
  return {
    api,
    namespace,
    async createSet(name, spec) {
      const body = {
        apiVersion: 'backup.example.com/v1alpha1',
        kind: 'BackupPodSet',
        metadata: { name, namespace },
        spec: {
          template: counterTemplate,
          ...spec,
          ...(spec.checkpoint && { checkpoint: often(spec.checkpoint) }),
        },
      }
      await api.create(backupPodSets, body, { namespace })
      return testSet(api, namespace, name)
    },
    createService: (name, selector) =>
      api.create(
        services,
        { metadata: { name, namespace }, spec: { selector, ports: [{ port: 80, targetPort: 8080 }] } },
        { namespace },
      ),
    async [Symbol.asyncDispose]() {
      await keepFacts?.()
      await api.delete(namespaces, { name: namespace }, { propagationPolicy: 'Background' })
      await api.close()
    },
  }
}

/**
 * Waits until no other world exists. A test that examines the whole cluster would also see the sets of worlds that are
 * still being deleted, and agents and nodes that an earlier test has disturbed.
 */
export async function alone({ api, namespace }: Pick<World, 'api' | 'namespace'>): Promise<void> {
  await eventually(async () => {
    const sets = (await api.list(backupPodSets, {})).items
    const others = sets.filter(({ metadata }) => metadata.namespace !== namespace)
    const worlds = (await api.list(namespaces, {})).items
      .map(({ metadata }) => metadata.name)
      .filter(name => name.startsWith('test-') && name !== namespace)
    const disturbed = (await api.list(pods, { namespace: system })).items.filter(pod => !isReady(pod))
    const away = (await api.list(nodes, {})).items.filter(node => !isReady(node))
    if (others.length + worlds.length + disturbed.length + away.length > 0)
      throw new Error(
        `not alone: ${JSON.stringify({
          sets: others.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`),
          worlds,
          disturbed: disturbed.map(({ metadata }) => metadata.name),
          away: away.map(({ metadata }) => metadata.name),
        })}`,
      )
  }, 180_000)
}

export function testSet(api: Api, namespace: string, name: string): TestSet {
  const ref = { namespace, name }
  const set: TestSet = {
    name,
    namespace,
    get: () => api.get(backupPodSets, ref),
    async scale(numbers) {
      await set.patch(numbers)
    },
    patch: spec => api.patch(backupPodSets, ref, { type: 'merge', body: { spec } }),
    async pods(kind) {
      const { items } = await api.list(pods, { namespace, labelSelector: `${labels.set}=${name}` })
      return items
        .filter(pod => pod.metadata.deletionTimestamp === undefined)
        .filter(pod => kind === undefined || typeOf(pod) === kind)
        .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    },
    settled: (p, h, c, timeoutMs = 90_000) =>
      eventually(async () => {
        const { metadata, status } = await set.get()
        const ready = status?.conditions?.find(({ type }) => type === 'Ready')
        const seen = [status?.readyReplicas, status?.readyHotbackups, status?.gatedColdbackups]
        if (
          status?.observedGeneration !== metadata.generation ||
          ready?.status !== 'True' ||
          seen.join() !== `${p},${h},${c}`
        )
          throw new Error(`not settled at ${p}/${h}/${c}: ${JSON.stringify(status)}`)
        const all = await set.pods()
        const of = (kind: PodKind) => all.filter(pod => typeOf(pod) === kind)
        const byKind = { primary: of('primary'), hotbackup: of('hotbackup'), coldbackup: of('coldbackup') }
        const counts = [byKind.primary.length, byKind.hotbackup.length, byKind.coldbackup.length]
        if (counts.join() !== `${p},${h},${c}`) throw new Error(`pods are ${counts.join('/')}`)
        // The status may be stale, so the pods themselves decide.
        if (![...byKind.primary, ...byKind.hotbackup].every(isReady) || !byKind.coldbackup.every(isAtGate))
          throw new Error('pods are not all in place')
        return byKind
      }, timeoutMs),
    async deletePod(pod, gracePeriodSeconds) {
      await api
        .delete(pods, { namespace, name: pod.metadata.name }, { uid: pod.metadata.uid, gracePeriodSeconds })
        .catch((error: unknown) => {
          if (!isKubeError(error, 'NotFound')) throw error
        })
    },
  }
  return set
}

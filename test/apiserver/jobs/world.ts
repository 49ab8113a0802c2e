/** An operator with PodMigrationJobs on a real API server, with pods that a fake kubelet makes ready. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, inject } from 'vitest'
import { argsConfigMap } from '../../../src/api/migration-controller-args.ts'
import { type PodMigrationJob, podMigrationJobs } from '../../../src/api/pod-migration-job.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { isKubeError } from '../../../src/kube/errors.ts'
import { isReady } from '../../../src/kube/ready.ts'
import {
  configMaps,
  namespaces,
  type Pod,
  podDisruptionBudgets,
  pods,
  replicaSets,
} from '../../../src/kube/resources.ts'
import { eventually } from '../../support/eventually.ts'
import { startFaultProxy } from '../fault-proxy.ts'
import { startFakeKubelet } from '../lib/fake-kubelet.ts'
import { type OperatorProcess, startOperator } from '../lib/operator-process.ts'
import { adminKubeconfig } from '../lib/plane.ts'

const run = promisify(execFile)
export const crds = (name: string) => new URL(`../../../crds/${name}`, import.meta.url).pathname

export type JobsWorld = Awaited<ReturnType<typeof createJobsWorld>>

export const isEviction = ({ path }: { readonly path: string }): boolean => path.endsWith('/eviction')

export async function createJobsWorld() {
  const namespace = `jobs-${randomBytes(4).toString('hex')}`
  const connection = await loadConnection({ kubeconfig: adminKubeconfig() })
  const api = createApi({ connection })
  const proxy = await startFaultProxy(connection)
  const scratch = await mkdtemp(join(tmpdir(), 'understudy-jobs-'))
  const proxied = join(scratch, 'kubeconfig')
  await writeFile(proxied, proxy.kubeconfig)
  const kubectl = (...args: string[]) => run(inject('kubectl'), ['--kubeconfig', adminKubeconfig(), ...args])
  await kubectl('apply', '-k', crds('pod-migration-jobs'))
  await eventually(() => api.list(podMigrationJobs, {}))
  await api.create(namespaces, { metadata: { name: namespace } })
  const kubelet = startFakeKubelet(api, namespace)
  const operators = new Set<OperatorProcess>()
  /** Its requests go through the proxy, which injects faults. */
  const operator = async (...flags: string[]): Promise<OperatorProcess> => {
    const started = startOperator(proxied, namespace, '--pod-migration-jobs', ...flags)
    operators.add(started)
    return started
  }
  const leader = async (): Promise<OperatorProcess> => {
    const started = await operator('--no-leader-elect')
    await started.leading()
    return started
  }
  return {
    ...{ api, namespace, kubelet, proxy, kubectl, operator, leader, ...objectsIn(api, namespace) },
    /** As for a budget that allows none, until the end of the test: a pod that goes was deleted. */
    refuseEvictions: () => proxy.status(429, { match: isEviction, count: 1_000, reason: 'TooManyRequests' }),
    /** Ends all faults, and deletes all jobs and the configuration. */
    async clean() {
      proxy.heal()
      await api.delete(configMaps, { namespace, name: argsConfigMap.name }).catch(() => undefined)
      const { items } = await api.list(podMigrationJobs, {})
      for (const { metadata } of items)
        await api.delete(podMigrationJobs, { name: metadata.name }).catch(() => undefined)
    },
    async [Symbol.asyncDispose]() {
      for (const each of operators) await each[Symbol.asyncDispose]()
      await kubelet[Symbol.asyncDispose]()
      await proxy.close()
      await api.close()
      await rm(scratch, { recursive: true, force: true })
    },
  }
}

export function objectsIn(api: Api, namespace: string) {
  let count = 0
  const next = (prefix: string) => {
    count += 1
    return `${prefix}${count}`
  }
  const ref = (name: string) => ({ namespace, name })
  const template = (labels: object) => ({
    metadata: { labels },
    spec: { containers: [{ name: 'app', image: 'app' }] },
  })
  const makePod = async (metadata: object, more: object = {}): Promise<Pod> => {
    const spec = { ...template({}).spec, ...more }
    const pod = await api.create(pods, { metadata, spec }, { namespace })
    return eventually(async () => {
      const now = await api.get(pods, ref(pod.metadata.name))
      if (!isReady(now)) throw new Error('not ready')
      return now
    })
  }
  return {
    makePod,
    /** Makes a workload of ready pods. There is no controller of ReplicaSets here, so no pod is created again. */
    async workload(
      replicas: number,
      { spec: more = {}, ...over }: { readonly annotations?: object; readonly spec?: object } = {},
    ) {
      const name = next('w')
      const labels = { app: name }
      const spec = { replicas, selector: { matchLabels: labels }, template: template(labels) }
      const { metadata } = await api.create(replicaSets, { metadata: { name }, spec }, { namespace })
      const status = { replicas, observedGeneration: metadata.generation }
      await api.patch(replicaSets, ref(name), { type: 'merge', body: { status } }, { subresource: 'status' })
      const ownerReferences = [
        { apiVersion: 'apps/v1', kind: 'ReplicaSet', name, uid: metadata.uid, controller: true },
      ]
      const made = Array.from({ length: replicas }, (_, index) =>
        makePod({ name: `${name}-${index}`, labels, ownerReferences, ...over }, more),
      )
      return { name, labels, ownerReferences, pods: await Promise.all(made) }
    },
    /** Makes a job for a pod of the namespace. */
    async job(pod: string, spec: object = {}, metadata: object = {}): Promise<string> {
      const name = `${namespace}-${next('job')}`
      const body = {
        ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'PodMigrationJob' },
        metadata: { name, ...metadata },
        spec: { mode: 'EvictDirectly', podRef: { namespace, name: pod }, ...spec },
      }
      await api.create(podMigrationJobs, body)
      return name
    },
    get: (name: string) => api.get(podMigrationJobs, { name }),
    reaches: (name: string, status: Partial<NonNullable<PodMigrationJob['status']>>) =>
      eventually(async () => {
        const found = await api.get(podMigrationJobs, { name })
        expect(found.status).toMatchObject(status)
        return found
      }),
    patch: (name: string, spec: object) =>
      api.patch(podMigrationJobs, { name }, { type: 'merge', body: { spec } }),
    /** True while the pod is there and not being deleted. */
    stays: (name: string) =>
      api.get(pods, ref(name)).then(
        pod => pod.metadata.deletionTimestamp === undefined,
        (error: unknown) => {
          if (isKubeError(error, 'NotFound')) return false
          throw error
        },
      ),
    /** Makes a disruption budget, whose state a controller would keep. */
    async budget(app: string, disruptionsAllowed: number) {
      const spec = { minAvailable: 1, selector: { matchLabels: { app } } }
      await api.create(podDisruptionBudgets, { metadata: { name: app }, spec }, { namespace })
      await allow(app, disruptionsAllowed)
    },
    allow,
    /** Writes the configuration of the controller, as YAML. */
    async configure(args: Readonly<Record<string, unknown>> | string) {
      const { name, key } = argsConfigMap
      const data = { [key]: typeof args === 'string' ? args : JSON.stringify(args) }
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data }
      await api.patch(configMaps, ref(name), { type: 'apply', body }, { force: true })
    },
  }

  async function allow(name: string, disruptionsAllowed: number) {
    const status = {
      ...{ observedGeneration: 1, disruptionsAllowed, disruptedPods: null },
      ...{ currentHealthy: 3, desiredHealthy: 1, expectedPods: 3 },
    }
    await api.patch(
      podDisruptionBudgets,
      ref(name),
      { type: 'merge', body: { status } },
      { subresource: 'status' },
    )
  }
}

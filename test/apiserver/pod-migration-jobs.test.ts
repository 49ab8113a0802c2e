// Long because every case needs the same operator and fake kubelet.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest'
import { argsConfigMap } from '../../src/api/migration-controller-args.ts'
import {
  evictionCostAnnotation,
  type PodMigrationJob,
  podMigrationJobs,
} from '../../src/api/pod-migration-job.ts'
import { type Api, createApi } from '../../src/kube/api.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { isKubeError } from '../../src/kube/errors.ts'
import { configMaps, namespaces, podDisruptionBudgets, pods, replicaSets } from '../../src/kube/resources.ts'
import { eventually } from '../support/eventually.ts'
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts'
import { type FakeKubelet, startFakeKubelet } from './lib/fake-kubelet.ts'
import { type OperatorProcess, startOperator } from './lib/operator-process.ts'
import { adminKubeconfig } from './lib/plane.ts'

const run = promisify(execFile)
const namespace = `jobs-${randomBytes(4).toString('hex')}`
let api: Api
let kubelet: FakeKubelet
let operator: OperatorProcess
let proxy: FaultProxy

const kubectl = (...args: string[]) => run(inject('kubectl'), ['--kubeconfig', adminKubeconfig(), ...args])
const crds = (name: string) => new URL(`../../crds/${name}`, import.meta.url).pathname

beforeAll(async () => {
  const connection = await loadConnection({ kubeconfig: adminKubeconfig() })
  api = createApi({ connection })
  proxy = await startFaultProxy(connection)
  await kubectl('apply', '-k', crds('pod-migration-jobs'))
  await eventually(() => api.list(podMigrationJobs, {}))
  await api.create(namespaces, { metadata: { name: namespace } })
  kubelet = startFakeKubelet(api, namespace)
  operator = start()
  await operator.leading()
})
afterAll(async () => {
  await operator[Symbol.asyncDispose]()
  await kubelet[Symbol.asyncDispose]()
  await proxy.close()
  await api.close()
})
afterEach(async () => {
  proxy.heal()
  await configure(undefined)
  const { items } = await api.list(podMigrationJobs, {})
  for (const { metadata } of items)
    await api.delete(podMigrationJobs, { name: metadata.name }).catch(() => undefined)
})

const start = (kubeconfig = adminKubeconfig(), ...flags: string[]) =>
  startOperator(
    kubeconfig,
    namespace,
    '--pod-migration-jobs',
    ...(flags.length > 0 ? flags : ['--no-leader-elect']),
  )

/** Writes the configuration, and waits until the operator has it: with `undefined`, the defaults. */
async function configure(args: Readonly<Record<string, unknown>> | undefined) {
  const { name, key } = argsConfigMap
  await api.delete(configMaps, { namespace, name }).catch(() => undefined)
  if (args === undefined) return
  await api.create(configMaps, { metadata: { name }, data: { [key]: JSON.stringify(args) } }, { namespace })
}

let count = 0
/** A workload of ready pods. There is no controller of ReplicaSets here, so no pod is created again. */
async function workload(
  replicas: number,
  over: { readonly annotations?: object; readonly spec?: object } = {},
) {
  count += 1
  const name = `w${count}`
  const labels = { app: name }
  const template = { metadata: { labels }, spec: { containers: [{ name: 'app', image: 'app' }] } }
  const owner = await api.create(
    replicaSets,
    { metadata: { name }, spec: { replicas, selector: { matchLabels: labels }, template } },
    { namespace },
  )
  await api.patch(
    replicaSets,
    { namespace, name },
    { type: 'merge', body: { status: { replicas, observedGeneration: owner.metadata.generation } } },
    { subresource: 'status' },
  )
  const ownerReferences = [
    { apiVersion: 'apps/v1', kind: 'ReplicaSet', name, uid: owner.metadata.uid, controller: true },
  ]
  const made = Array.from({ length: replicas }, async (_, index) => {
    const metadata = { name: `${name}-${index}`, labels, ownerReferences, annotations: over.annotations }
    const pod = await api.create(pods, { metadata, spec: { ...template.spec, ...over.spec } }, { namespace })
    return eventually(async () => {
      const now = await api.get(pods, { namespace, name: pod.metadata.name })
      if (!now.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'))
        throw new Error('not ready')
      return now
    })
  })
  return { name, labels, pods: await Promise.all(made) }
}

async function job(pod: string, spec: object = {}, metadata: object = {}): Promise<string> {
  count += 1
  const name = `${namespace}-job${count}`
  const body = {
    ...{
      apiVersion: 'backup.example.com/v1alpha1',
      kind: 'PodMigrationJob',
      metadata: { name, ...metadata },
    },
    spec: { mode: 'EvictDirectly', podRef: { namespace, name: pod }, ...spec },
  }
  await api.create(podMigrationJobs, body)
  return name
}

const get = (name: string) => api.get(podMigrationJobs, { name })
const reaches = (name: string, status: Partial<NonNullable<PodMigrationJob['status']>>) =>
  eventually(async () => {
    const found = await get(name)
    expect(found.status).toMatchObject(status)
    return found
  })
const patch = (name: string, spec: object) =>
  api.patch(podMigrationJobs, { name }, { type: 'merge', body: { spec } })
const exists = (name: string) =>
  api.get(pods, { namespace, name }).then(
    pod => pod.metadata.deletionTimestamp === undefined,
    (error: unknown) => {
      if (isKubeError(error, 'NotFound')) return false
      throw error
    },
  )
async function budget(app: string, minAvailable: number, disruptionsAllowed: number) {
  const selector = { matchLabels: { app } }
  await api.create(
    podDisruptionBudgets,
    { metadata: { name: app }, spec: { minAvailable, selector } },
    { namespace },
  )
  await allow(app, disruptionsAllowed)
}
const allow = (name: string, disruptionsAllowed: number) =>
  api.patch(
    podDisruptionBudgets,
    { namespace, name },
    {
      type: 'merge',
      body: {
        status: {
          ...{
            observedGeneration: 1,
            disruptionsAllowed,
            currentHealthy: 3,
            desiredHealthy: 1,
            expectedPods: 3,
          },
          disruptedPods: null,
        },
      },
    },
    { subresource: 'status' },
  )

describe('EvictDirectly', () => {
  it('PJ06: the pod is evicted, and the job has succeeded when it is gone', async () => {
    const { pods: made, name } = await workload(2)
    const ended = await reaches(await job(`${name}-0`), {
      phase: 'Succeed',
      status: 'Complete',
      reason: 'EvictComplete',
    })
    expect(await exists(`${name}-0`)).toBe(false)
    expect(await exists(`${name}-1`)).toBe(true)
    expect(ended.status).toMatchObject({
      source: { uid: made[0]?.metadata.uid, workload: `ReplicaSet/${namespace}/${name}` },
    })
  })

  it('PJ02: a pod with the highest eviction cost is never removed', async () => {
    const { name } = await workload(2, { annotations: { [evictionCostAnnotation]: '2147483647' } })
    await reaches(await job(`${name}-0`), { phase: 'Failed', reason: 'ForbiddenMigratePod' })
    expect(await exists(`${name}-0`)).toBe(true)
  })

  it('PJ03: a paused job waits until it is not paused any more', async () => {
    const { name } = await workload(2)
    const paused = await job(`${name}-0`, { paused: true })
    await reaches(paused, { phase: 'Pending', reason: 'Paused' })
    expect(await exists(`${name}-0`)).toBe(true)
    await patch(paused, { paused: false })
    await reaches(paused, { phase: 'Succeed' })
  })

  it('PJ25: grace period and version are those of the job, and the uid is always asked', async () => {
    const { name } = await workload(2)
    kubelet.lingering.add(`${name}-0`)
    const slow = await job(`${name}-0`, { deleteOptions: { gracePeriodSeconds: 7 } })
    await reaches(slow, { phase: 'Running', reason: 'Evicting' })
    const pod = await eventually(async () => {
      const now = await api.get(pods, { namespace, name: `${name}-0` })
      expect(now.metadata.deletionTimestamp).toBeDefined()
      return now
    })
    expect(pod.metadata.deletionGracePeriodSeconds).toBe(7)
    // From here on there is no way back.
    await patch(slow, { abort: true })
    kubelet.lingering.delete(`${name}-0`)
    await api.delete(pods, { namespace, name: `${name}-0` }, { gracePeriodSeconds: 0 })
    await reaches(slow, { phase: 'Succeed' })
  })

  it('a namesake of the pod is another pod, and stays', async () => {
    const { name, pods: made } = await workload(2)
    const podRef = { namespace, name: `${name}-0`, uid: '00000000-0000-0000-0000-000000000000' }
    const other = await job(`${name}-0`, { podRef })
    await reaches(other, { phase: 'Failed', reason: 'MissingPod' })
    expect((await api.get(pods, { namespace, name: `${name}-0` })).metadata.uid).toBe(made[0]?.metadata.uid)
  })

  it('a job that was made before its pod was created again under the same name fails', async () => {
    const { name } = await workload(2)
    const paused = await job(`${name}-0`, { paused: true })
    await reaches(paused, { reason: 'Paused' })
    const old = await api.get(pods, { namespace, name: `${name}-0` })
    await api.delete(pods, { namespace, name: `${name}-0` }, { gracePeriodSeconds: 0 })
    const { name: podName, labels, ownerReferences } = old.metadata
    await api.create(
      pods,
      {
        metadata: { name: podName, labels, ownerReferences },
        spec: { containers: [{ name: 'app', image: 'app' }] },
      },
      { namespace },
    )
    await patch(paused, { paused: false })
    await reaches(paused, { phase: 'Failed', reason: 'MissingPod' })
    expect(await exists(podName)).toBe(true)
  })
})

describe('disruption budgets', () => {
  it('PJ17: a job waits for the budget of its pod, and says so; then it goes on', async () => {
    const { name } = await workload(3)
    await budget(name, 1, 0)
    const waiting = await job(`${name}-0`)
    const { status } = await reaches(waiting, { phase: 'Pending', reason: 'DisruptionBudget' })
    expect(status?.conditions).toEqual([
      expect.objectContaining({
        type: 'Arbitrated',
        status: 'False',
        reason: 'DisruptionBudget',
        message: expect.stringContaining(name),
      }),
    ])
    await allow(name, 1)
    await reaches(waiting, { phase: 'Succeed' })
  })

  it('PJ14: what the API server refuses is told, and the job can be aborted: the pod stays', async () => {
    const { name } = await workload(3)
    await budget(name, 1, 1)
    const refused = proxied(429)
    await using other = await led(refused)
    const stuck = await job(`${name}-0`)
    await reaches(stuck, { phase: 'Running', status: 'Eviction', reason: 'FailedEvict' })
    await patch(stuck, { abort: true })
    await reaches(stuck, { phase: 'Aborted', reason: 'Aborted' })
    expect(await exists(`${name}-0`)).toBe(true)
    await other.back()
  })

  it('PJ04: the job fails when its ttl is over, and the pod stays', async () => {
    const { name } = await workload(3)
    await using other = await led(proxied(429))
    const late = await job(`${name}-0`, { ttl: '1s' })
    await reaches(late, { phase: 'Failed', reason: 'Timeout' })
    expect(await exists(`${name}-0`)).toBe(true)
    await other.back()
  })
})

const isEviction = ({ path }: { readonly path: string }) => path.endsWith('/eviction')
const proxied = (code: number) => () => {
  proxy.status(code, { match: isEviction, count: 1_000, reason: 'TooManyRequests' })
}

/** Replaces the operator by one that reaches the API server through the proxy. */
async function led(fault: () => void) {
  await operator[Symbol.asyncDispose]()
  fault()
  operator = start(await proxyKubeconfig())
  await operator.leading()
  const back = async () => {
    await operator[Symbol.asyncDispose]()
    proxy.heal()
    operator = start()
    await operator.leading()
  }
  let isBack = false
  return {
    back: async () => {
      isBack = true
      await back()
    },
    async [Symbol.asyncDispose]() {
      if (!isBack) await back()
    },
  }
}

async function proxyKubeconfig(): Promise<string> {
  const { mkdtemp, writeFile } = await import('node:fs/promises')
  const directory = await mkdtemp('/tmp/jobs-')
  await writeFile(`${directory}/kubeconfig`, proxy.kubeconfig)
  return `${directory}/kubeconfig`
}

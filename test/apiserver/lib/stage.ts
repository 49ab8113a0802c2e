/** Creates a namespace with a fake kubelet, and fault proxies that only the operators use. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { backupPodSets } from '../../../src/api/backuppodset.ts'
import { labels } from '../../../src/api/labels.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { namespaces, type Pod, pods } from '../../../src/kube/resources.ts'
import { type FaultProxy, startFaultProxy } from '../fault-proxy.ts'
import { type FakeKubelet, type FakeKubeletOptions, startFakeKubelet } from './fake-kubelet.ts'
import { type OperatorProcess, startOperator } from './operator-process.ts'
import { adminKubeconfig } from './plane.ts'

export interface ProxiedOperator {
  readonly process: OperatorProcess
  readonly proxy: FaultProxy
}

export interface Stage extends AsyncDisposable {
  readonly api: Api
  readonly namespace: string
  readonly kubelet: FakeKubelet
  /** Each operator has a proxy of its own. */
  start(...flags: string[]): Promise<ProxiedOperator>
  make(spec: Readonly<Record<string, unknown>>): Promise<void>
  change(spec: Readonly<Record<string, unknown>>): Promise<void>
  /** Pods that are not being deleted. */
  live(): Promise<Pod[]>
}

export async function onStage(options?: FakeKubeletOptions): Promise<Stage> {
  const connection = await loadConnection({ kubeconfig: adminKubeconfig() })
  const api = createApi({ connection })
  const namespace = `stage-${randomBytes(4).toString('hex')}`
  await api.create(namespaces, { metadata: { name: namespace } })
  const dir = await mkdtemp(join(tmpdir(), 'understudy-stage-'))
  const kubelet = startFakeKubelet(api, namespace, options)
  const operators: ProxiedOperator[] = []
  const ref = { namespace, name: 'set' }
  return {
    api,
    namespace,
    kubelet,
    async start(...flags) {
      const proxy = await startFaultProxy(connection)
      const kubeconfig = join(dir, String(operators.length))
      await writeFile(kubeconfig, proxy.kubeconfig)
      const operator = { process: startOperator(kubeconfig, namespace, ...flags), proxy }
      operators.push(operator)
      return operator
    },
    async make(spec) {
      const containers = [{ name: 'app', image: 'app' }]
      const template = { spec: { terminationGracePeriodSeconds: 1, containers } }
      const body = {
        apiVersion: 'backup.example.com/v1alpha1',
        kind: 'BackupPodSet',
        metadata: { name: 'set' },
        spec: { template, ...spec },
      }
      await api.create(backupPodSets, body, { namespace })
    },
    async change(spec) {
      await api.patch(backupPodSets, ref, { type: 'merge', body: { spec } })
    },
    live: async () =>
      (await api.list(pods, { namespace })).items.filter(
        ({ metadata }) => metadata.deletionTimestamp === undefined,
      ),
    async [Symbol.asyncDispose]() {
      for (const { process, proxy } of operators) {
        await process[Symbol.asyncDispose]()
        await proxy.close()
      }
      await kubelet[Symbol.asyncDispose]()
      await api.delete(backupPodSets, ref).catch(() => {})
      await api.close()
      await rm(dir, { recursive: true })
    },
  }
}

export const ofKind = (all: readonly Pod[], kind: string): Pod[] =>
  all.filter(pod => pod.metadata.labels?.[labels.type] === kind)

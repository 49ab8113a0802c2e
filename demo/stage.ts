/** The cluster of the story: a playground, or the user's own. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { ensureImages } from '../images/build.ts'
import { type Cluster, DEFAULT_NAME, up } from '../playground/cluster.ts'
import { deployOperator } from '../playground/deploy.ts'
import { memoryAllowed } from '../src/api/memory-permission.ts'
import { type Api, createApi } from '../src/kube/api.ts'
import { loadConnection } from '../src/kube/connection.ts'
import { isKubeError } from '../src/kube/errors.ts'
import { deployments, namespaces, type Service } from '../src/kube/resources.ts'
import type { Progress } from '../src/terminal/progress.ts'
import { type Traffic, trafficFromNode, trafficThroughApi } from './traffic.ts'

export interface Stage extends AsyncDisposable {
  readonly api: Api
  readonly namespace: string
  /** Time limit of one operation, ms. */
  readonly patienceMs: number
  kubectl(...args: readonly string[]): Promise<string>
  traffic(service: Service): Traffic
  /** Commands with which the user can continue in kubectl. */
  readonly goOn: readonly string[]
  readonly tearDown: string
}

const userAgent = 'understudy-demo/0'
/** The images of what the story shows. `npm run playground -- up` adds those of the other samples. */
const shown = ['operator', 'agent', 'waker', 'counter', 'nginx'] as const
const run = promisify(execFile)

/** Starts the playground with the operator, or uses a running one. */
export async function playgroundStage(
  name: string | undefined,
  progress: Progress,
  signal: AbortSignal,
): Promise<Stage & { readonly cluster: Cluster }> {
  const cluster = await up({
    name,
    images: inner =>
      progress.step('images', async ({ detail }) => {
        const images = await ensureImages(shown, { progress: detail, ...(inner && { signal: inner }) })
        return Object.values(images).map(({ path }) => path)
      }),
    progress,
    signal,
  })
  await deployOperator(cluster, { progress, signal })
  const api = createApi({
    connection: await loadConnection({ kubeconfig: cluster.kubeconfigPath }),
    userAgent,
  })
  const [node = 'n1'] = cluster.nodes
  const playground = `npm run playground --${cluster.name === DEFAULT_NAME ? '' : ` --name ${cluster.name}`}`
  return {
    cluster,
    api,
    namespace: 'default',
    patienceMs: 120_000,
    kubectl: async (...args) =>
      (await run(cluster.kubectl, ['--kubeconfig', cluster.kubeconfigPath, ...args], { signal })).stdout,
    traffic: service =>
      trafficFromNode(
        argv => cluster.argvInNetwork(node, argv),
        `http://${service.spec?.clusterIP}:${service.spec?.ports?.[0]?.port}/`,
      ),
    goOn: [
      `export KUBECONFIG=${cluster.kubeconfigPath} PATH=${cluster.stateDir}/bin:$PATH`,
      ...kubectlLines(''),
      `${playground} kill-node 3`,
    ],
    tearDown: `${playground} down`,
    [Symbol.asyncDispose]: () => api.close(),
  }
}

const demoNamespace = 'understudy-demo'

/** The demo saves the memory of its own pods, which an administrator allows for each namespace. */
const allowMemory = (api: Api, name: string, signal: AbortSignal) =>
  api.patch(
    namespaces,
    { name },
    { type: 'merge', body: { metadata: { labels: memoryAllowed } } },
    { signal },
  )

/** Uses the cluster of the user's kubeconfig, which must have the operator installed, and a namespace of its own. */
export async function currentStage(signal: AbortSignal): Promise<Stage> {
  const connection = await loadConnection()
  const api = createApi({ connection, userAgent })
  try {
    await requireOperator(api, signal)
    await api
      .create(namespaces, { metadata: { name: demoNamespace } }, { signal })
      .catch((error: unknown) => {
        if (!isKubeError(error, 'AlreadyExists')) throw error
      })
    await allowMemory(api, demoNamespace, signal)
  } catch (error) {
    await api.close()
    throw error
  }
  return {
    api,
    namespace: demoNamespace,
    patienceMs: 300_000,
    kubectl: async (...args) => (await run('kubectl', [...args], { signal })).stdout,
    traffic: service => trafficThroughApi(api, demoNamespace, service.metadata.name),
    goOn: kubectlLines(` -n ${demoNamespace}`),
    tearDown: `kubectl delete namespace ${demoNamespace}`,
    [Symbol.asyncDispose]: () => api.close(),
  }
}

async function requireOperator(api: Api, signal: AbortSignal): Promise<void> {
  const ref = { namespace: 'understudy-system', name: 'understudy-operator' }
  const operator = await api.get(deployments, ref, { signal }).catch((error: unknown) => {
    if (isKubeError(error, 'NotFound')) return undefined
    throw error
  })
  if (operator === undefined)
    throw new Error(
      'the operator is not installed on this cluster: see docs/install.md (its images have to be where your nodes find them), then kubectl apply -k deploy/',
    )
  if ((operator.status?.availableReplicas ?? 0) === 0)
    throw new Error(
      'the operator is installed but not available: kubectl -n understudy-system describe deployment,pod',
    )
}

const kubectlLines = (namespace: string): string[] => [
  `kubectl${namespace} get bps -w`,
  `kubectl${namespace} get pods -L type -L backup.example.com/slot`,
  `kubectl${namespace} scale bps bps-sample --replicas 4`,
  `kubectl${namespace} delete pod -l type=primary`,
  `kubectl${namespace} describe bps bps-sample`,
]

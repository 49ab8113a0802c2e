/** The cluster that the nodes join: a small playground with the operator, and a namespace for the trials. */
import { ensureImages } from '../images/build.ts'
import { ensureArtifacts } from '../playground/artifacts/artifacts.ts'
import { type Cluster, down, openCluster, up } from '../playground/cluster.ts'
import { deployOperator } from '../playground/deploy.ts'
import { run } from '../playground/exec.ts'
import { PlaygroundError } from '../playground/failure.ts'
import { memoryAllowed } from '../src/api/memory-permission.ts'
import { type Api, createApi } from '../src/kube/api.ts'
import { loadConnection } from '../src/kube/connection.ts'
import { namespaces } from '../src/kube/resources.ts'
import type { Progress } from '../src/terminal/progress.ts'

export interface Stage extends AsyncDisposable {
  readonly cluster: Cluster
  readonly api: Api
  readonly namespace: string
  readonly artifacts: { readonly kube: string; readonly containerd: string }
  readonly pauseImage: string
  /** Archives of the images for the nodes that join. */
  readonly images: readonly string[]
}

/** The images of a node that joins. The operator stays on the playground's own node. */
const forGuests = ['pause', 'agent', 'waker', 'counter'] as const

const namespace = 'portability'

/**
 * Injected containers have a limit of a hundredth of a processor. Their start costs the runtime a few hundredths of a second, and an emulated processor more
 * than a whole one: with that limit, minutes.
 */
async function giveTime(cluster: Cluster, signal: AbortSignal): Promise<void> {
  const kubectl = (...args: readonly string[]): Promise<string> =>
    run([cluster.kubectl, '--kubeconfig', cluster.kubeconfigPath, '-n', 'understudy-system', ...args], {
      signal,
    })
  const value = '--injected-resources=cpu=200m'
  const patch = [{ op: 'add', path: '/spec/template/spec/containers/0/args/-', value }]
  const operator = 'deployment/understudy-operator'
  await kubectl('patch', operator, '--type=json', '-p', JSON.stringify(patch))
  await kubectl('rollout', 'status', operator, '--timeout=240s')
}

/** Brings up a cluster of its own. Closing it takes the cluster down. */
export async function openStage(name: string, progress: Progress, signal: AbortSignal): Promise<Stage> {
  if ((await openCluster(name)) !== undefined)
    throw new PlaygroundError(`cluster ${name} is up already, and this run would take it down at its end`, {
      advice: `npm run playground -- --name ${name} down, or another --name`,
    })
  const images = await progress.step('images', step =>
    ensureImages(['operator', ...forGuests], { progress: step.detail, signal }),
  )
  const cluster = await up({
    name,
    nodes: 1,
    images: Object.values(images).map(({ path }) => path),
    progress,
    signal,
  })
  try {
    await deployOperator(cluster, { progress, signal })
    await progress.step('time for starts on emulated processors', () => giveTime(cluster, signal))
    const artifacts = await ensureArtifacts(['kube', 'containerd'], { progress, signal })
    const api = createApi({ connection: await loadConnection({ kubeconfig: cluster.kubeconfigPath }) })
    await api.create(namespaces, { metadata: { name: namespace, labels: memoryAllowed } })
    return {
      cluster,
      api,
      namespace,
      artifacts,
      pauseImage: images.pause.ref,
      images: forGuests.map(image => images[image].path),
      async [Symbol.asyncDispose]() {
        await api.close()
        await down(name, { progress })
      },
    }
  } catch (error) {
    await down(name, { progress })
    throw error
  }
}

import { ensureImages, type ImageName } from '../images/build.ts'
import { type Cluster, clusterName, openCluster, up } from '../playground/cluster.ts'
import { type Api, createApi } from '../src/kube/api.ts'
import { loadConnection } from '../src/kube/connection.ts'
import type { Progress } from '../src/terminal/progress.ts'
import type { BenchImages } from './bench.ts'

export type Target =
  /**
   * A playground of that name. If it is not up, the bench starts it and takes it down afterwards, unless `keep` is set.
   */
  | { readonly type: 'playground'; readonly name: string; readonly keep: boolean }
  /** The cluster of the user's own kubeconfig. */
  | { readonly type: 'current' }

export interface BenchCluster {
  readonly api: Api
  readonly playground: Cluster | undefined
  readonly images: BenchImages
  close(): Promise<void>
}

export interface OpenOptions {
  /** Images that a playground does not have by itself. */
  readonly images: readonly ImageName[]
  readonly progress: Progress
  readonly signal: AbortSignal
}

export async function openTarget(
  target: Target,
  { images, progress, signal }: OpenOptions,
): Promise<BenchCluster> {
  if (target.type === 'current') {
    const { version } = await projectImages([], signal, progress)
    const api = createApi({ connection: await loadConnection(), userAgent })
    return {
      api,
      playground: undefined,
      images: version,
      close: () => api.close(),
    }
  }
  const name = clusterName(target.name)
  const wasUp = (await openCluster(name)) !== undefined
  const { archives, version } = await projectImages(images, signal, progress)
  const cluster = await up({ name, images: archives, progress, signal })
  const api = createApi({
    connection: await loadConnection({ kubeconfig: cluster.kubeconfigPath }),
    userAgent,
  })
  return {
    api,
    playground: cluster,
    images: version,
    async close() {
      await api.close()
      if (!wasUp && !target.keep) await progress.step(`take down ${name}`, () => cluster.down())
    },
  }
}

const userAgent = 'understudy-bench/1'

async function projectImages(more: readonly ImageName[], signal: AbortSignal, progress: Progress) {
  const built = await progress.step('images', step =>
    ensureImages(['operator', 'agent', 'waker', 'counter', 'redis', 'zoo', ...more], {
      signal,
      progress: text => step.detail(text),
    }),
  )
  return {
    archives: Object.values(built).map(({ path }) => path),
    version: {
      counter: built.counter.ref,
      waker: built.waker.ref,
      redis: built.redis.ref,
      zoo: built.zoo.ref,
    },
  }
}

/**
 * Provides one real cluster for all end-to-end tests: the playground named `e2e`, brought up here and taken down at the
 * end. With UNDERSTUDY_USE_CURRENT_CLUSTER=1 it is the user's own, which must have the operator installed.
 */
import type { TestProject } from 'vitest/node'
import { ensureImages, imageNames } from '../../images/build.ts'
import { down as takeDown, up } from '../../playground/cluster.ts'
import { deployOperator } from '../../playground/deploy.ts'
import { createProgress } from '../../src/terminal/progress.ts'

/** Facts about the cluster for test files; handles cannot be passed to them. */
export interface ClusterFacts {
  /** Path of a kubeconfig with all rights. */
  readonly kubeconfig: string
  /** Name of the playground, or undefined for the user's own cluster. */
  readonly playground: string | undefined
}

declare module 'vitest' {
  export interface ProvidedContext {
    cluster: ClusterFacts
  }
}

/** With another name, two checkouts can test on one machine at the same time. */
const name = process.env['UNDERSTUDY_E2E_CLUSTER'] ?? 'e2e'

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (process.env['UNDERSTUDY_USE_CURRENT_CLUSTER'] === '1') {
    const kubeconfig = process.env['KUBECONFIG'] ?? `${process.env['HOME']}/.kube/config`
    project.provide('cluster', { kubeconfig, playground: undefined })
    return async () => {}
  }
  const stop = new AbortController()
  const interrupt = () => stop.abort(new Error('interrupted'))
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt)
  const progress = createProgress(process.stderr)
  const { signal } = stop
  const down = async () => {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt)
    if (process.env['UNDERSTUDY_KEEP'] === undefined) await takeDown(name)
  }
  try {
    const cluster = await up({
      name,
      images: async () =>
        Object.values(
          await progress.step('images', step => ensureImages(imageNames, { progress: step.detail, signal })),
        ).map(({ path }) => path),
      progress,
      signal,
    })
    await deployOperator(cluster, { progress, signal })
    project.provide('cluster', { kubeconfig: cluster.kubeconfigPath, playground: name })
    return down
  } catch (error) {
    // Also after an interrupt when the cluster was already up: nothing else would take it down.
    await down()
    throw error
  }
}

/** Starts an etcd and a kube-apiserver with our CRDs for each worker of this project. */
import type { TestProject } from 'vitest/node'
import type { ControlPlane } from '../../playground/control-plane.ts'
import { startPlane } from './lib/start-plane.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Paths of the administrators' kubeconfigs, one for each worker. */
    kubeconfigs: string[]
    /** Path of kubectl. */
    kubectl: string
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const planes: ControlPlane[] = []
  const stop = async () => {
    await Promise.all(planes.map(plane => plane.stop()))
  }
  try {
    // One after the other: the first one downloads what all need.
    for (let worker = 0; worker < project.config.maxWorkers; worker += 1) planes.push(await startPlane())
  } catch (error) {
    await stop()
    throw error
  }
  project.provide(
    'kubeconfigs',
    planes.map(({ kubeconfigPath }) => kubeconfigPath),
  )
  project.provide('kubectl', planes[0]?.kubectl ?? '')
  return stop
}

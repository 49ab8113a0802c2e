/** An etcd and a kube-apiserver for each worker of this project, with our CRDs in it. */
import { execFile } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { TestProject } from 'vitest/node'
import { startControlPlane } from '../../playground/control-plane.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Paths of the administrators' kubeconfigs, one for each worker. */
    kubeconfigs: string[]
    /** Path of kubectl. */
    kubectl: string
  }
}

const run = promisify(execFile)

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const planes: Plane[] = []
  const stop = async () => {
    await Promise.all(planes.map(plane => plane.stop()))
  }
  try {
    // One after the other: the first one brings what has to be downloaded.
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

type Plane = Awaited<ReturnType<typeof startControlPlane>>

async function startPlane(): Promise<Plane> {
  const plane = await startControlPlane()
  try {
    const kubectl = (...args: string[]) => run(plane.kubectl, ['--kubeconfig', plane.kubeconfigPath, ...args])
    await kubectl('apply', '-k', new URL('../../crds', import.meta.url).pathname)
    // `kubectl wait` fails on a CRD that has no conditions yet; the first list works when the kind is served.
    await eventually(() => kubectl('get', 'backuppodsets,nodereports', '--all-namespaces'))
  } catch (error) {
    await plane.stop()
    throw error
  }
  return plane
}

async function eventually(attempt: () => Promise<unknown>): Promise<void> {
  for (let left = 100; ; left -= 1) {
    try {
      await attempt()
      return
    } catch (error) {
      if (left === 0) throw error
      await setTimeout(200)
    }
  }
}

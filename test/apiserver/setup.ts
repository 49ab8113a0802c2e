/** One etcd and one kube-apiserver for all tests of this project, with our CRDs in it. */
import { execFile } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { TestProject } from 'vitest/node'
import { startControlPlane } from '../../playground/control-plane.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** Path of the administrator's kubeconfig. */
    kubeconfig: string
    /** Path of kubectl. */
    kubectl: string
  }
}

const run = promisify(execFile)

export async function setup(project: TestProject): Promise<() => Promise<void>> {
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
  project.provide('kubeconfig', plane.kubeconfigPath)
  project.provide('kubectl', plane.kubectl)
  return () => plane.stop()
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

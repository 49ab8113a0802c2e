/** Starts an etcd and a kube-apiserver that serve our kinds and contain nothing else. */
import { execFile } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type ControlPlane, startControlPlane } from '../../../playground/control-plane.ts'

const run = promisify(execFile)

export async function startPlane(): Promise<ControlPlane> {
  const plane = await startControlPlane()
  try {
    const kubectl = (...args: string[]) => run(plane.kubectl, ['--kubeconfig', plane.kubeconfigPath, ...args])
    await kubectl('apply', '-k', new URL('../../../crds', import.meta.url).pathname)
    // `kubectl wait` fails on a CRD without conditions; the first successful list proves that the kind is served.
    await eventually(() => kubectl('get', 'backuppodsets,nodereports', '--all-namespaces'))
    return plane
  } catch (error) {
    await plane.stop()
    throw error
  }
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

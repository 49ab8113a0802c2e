/** Starts an etcd and a kube-apiserver that serve our kinds and contain nothing else. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { type ControlPlane, startControlPlane } from '../../../playground/control-plane.ts'
import { until } from '../../../playground/until.ts'

const run = promisify(execFile)

export async function startPlane(): Promise<ControlPlane> {
  const plane = await startControlPlane()
  try {
    const kubectl = (...args: string[]) => run(plane.kubectl, ['--kubeconfig', plane.kubeconfigPath, ...args])
    await kubectl('apply', '-k', new URL('../../../crds', import.meta.url).pathname)
    // `kubectl wait` fails on a CRD without conditions; the first successful list proves that the kind is served.
    const list = () => kubectl('get', 'backuppodsets,nodereports', '--all-namespaces').catch(() => undefined)
    await until('the API server serves our kinds', list, { patienceMs: 60_000, pollMs: 200 })
    return plane
  } catch (error) {
    await plane.stop()
    throw error
  }
}

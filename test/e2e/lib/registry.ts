/** A registry from which the nodes of the playground pull. */
import { ensureImages } from '../../../images/build.ts'
import type { Cluster } from '../../../playground/cluster.ts'
import { run } from '../../../playground/exec.ts'
import { parseImageList } from '../../../playground/images-on-nodes.ts'
import { pushArchive } from '../../../release/push.ts'
import { startImageRegistry } from '../../support/image-registry.ts'

export interface NodesRegistry extends AsyncDisposable {
  /** `HOST:PORT`. */
  readonly address: string
}

/** Starts a registry with the images of operator, agent and waker under `PREFIX/`. */
export async function openNodesRegistry(cluster: Cluster, prefix: string): Promise<NodesRegistry> {
  const registry = await startImageRegistry(cluster.plan.host.address)
  const { address } = registry
  const onAll = (script: string) =>
    Promise.all(cluster.nodes.map(node => cluster.inNode(node, ['sh', '-c', script])))
  const settings = `/etc/containerd/certs.d/${address}`
  const close = async () => {
    await registry.stop()
    await onAll(`rm -rf ${settings}`)
    for (const node of cluster.nodes) {
      const ctr = (...args: string[]) =>
        cluster.inNode(node, ['ctr', '--namespace', 'k8s.io', 'images', ...args])
      const ours = parseImageList(await ctr('list')).filter(({ name }) => name.startsWith(`${address}/`))
      if (ours.length > 0) await ctr('remove', ...ours.map(({ name }) => name))
    }
  }
  try {
    // It has no certificate.
    await onAll(`mkdir -p ${settings} && echo '[host."http://${address}"]' > ${settings}/hosts.toml`)
    for (const { path, ref } of Object.values(await ensureImages(['operator', 'agent', 'waker']))) {
      const target = `${address}/${prefix}/${ref.slice(ref.lastIndexOf('/') + 1)}`
      await pushArchive(registry.crane, path, target)
      // A kubelet that has pulled an image does not count the same image under another name as loaded any more.
      await run([registry.crane, 'mutate', target, '--label', 'registry=test', '--tag', target])
    }
  } catch (error) {
    await close()
    throw error
  }
  return { address, [Symbol.asyncDispose]: close }
}

import { copyFile, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { writeKubeconfig } from './kubeconfig.ts'
import type { ClusterPaths } from './paths.ts'
import type { Authority } from './pki.ts'
import type { ClusterPlan, NodePlan } from './plan.ts'

interface Place {
  readonly plan: ClusterPlan
  readonly paths: Pick<ClusterPaths, 'pki'>
}

type KubeconfigWriter = (
  path: string,
  name: string,
  user: string,
  groups?: readonly string[],
) => Promise<void>

/** Writes kubeconfigs, each with a certificate of its own. */
export function kubeconfigWriter({ plan, paths }: Place, authority: Authority): KubeconfigWriter {
  return async (path, name, user, groups = []) => {
    await mkdir(dirname(path), { recursive: true })
    await writeKubeconfig({
      path,
      name: plan.name,
      server: `https://${plan.controlPlane.address}:${plan.apiPort}`,
      user,
      caPath: join(paths.pki, 'ca.crt'),
      certificate: await authority.issue({ name, commonName: user, organizations: groups, usage: 'client' }),
    })
  }
}

/** Writes the credentials of a node into a directory. A node gets only its own. */
export async function writeNodeCredentials(
  place: Place,
  authority: Authority,
  node: NodePlan,
  directory: string,
): Promise<void> {
  const kubeconfig = kubeconfigWriter(place, authority)
  await kubeconfig(
    join(directory, 'kubelet.kubeconfig'),
    `kubelet-${node.name}`,
    `system:node:${node.name}`,
    ['system:nodes'],
  )
  await kubeconfig(join(directory, 'kube-proxy.kubeconfig'), `kube-proxy-${node.name}`, 'system:kube-proxy')
  const serving = await authority.issue({
    name: `kubelet-serving-${node.name}`,
    commonName: `system:node:${node.name}`,
    organizations: ['system:nodes'],
    usage: 'server',
    hosts: [node.name, node.address],
  })
  await copyFile(serving.certPath, join(directory, 'kubelet-serving.crt'))
  await copyFile(serving.keyPath, join(directory, 'kubelet-serving.key'))
  await copyFile(authority.caPath, join(directory, 'ca.crt'))
}

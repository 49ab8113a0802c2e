import type { V1Container, V1PodSpec } from '@kubernetes/client-node'
import type { Wire } from '../../kube/object.ts'

type PodSpec = Wire<V1PodSpec>

/**
 * True if everything that the init containers of this pod have done is in its memory or on a shared volume, so that they need not run again
 * before that memory is restored in another pod. The memory has the writable layers of the saved containers and the
 * emptyDirs that they mount. It has neither the network of the pod nor the files of the node, and a container that is not saved
 * starts from what init containers have prepared for it.
 * @param saved names of the containers whose memory is saved.
 */
export function hasInitInMemory(
  { initContainers = [], containers, volumes = [] }: PodSpec,
  saved: readonly string[] = [],
): boolean {
  if (initContainers.some(isSidecar) || containers.some(({ name }) => !saved.includes(name))) return false
  const ofNode = new Set(volumes.filter(({ hostPath }) => hostPath !== undefined).map(({ name }) => name))
  return initContainers.every(
    container => !setsUpNetwork(container) && !container.volumeMounts?.some(({ name }) => ofNode.has(name)),
  )
}

const isSidecar = ({ restartPolicy }: Wire<V1Container>): boolean => restartPolicy === 'Always'

/** With this capability it can change addresses, routes and packet filters, which each pod has of its own. */
const setsUpNetwork = ({ securityContext }: Wire<V1Container>): boolean =>
  securityContext?.capabilities?.add?.some(name => /^(CAP_)?NET_ADMIN$/i.test(name)) ?? false

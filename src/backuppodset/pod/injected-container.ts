import type { V1Container } from '@kubernetes/client-node'
import type { InjectedResources } from '../../api/injected-resources.ts'
import type { Wire } from '../../kube/object.ts'

export type Container = Wire<V1Container>

/**
 * Returns the common part of all injected containers: the waker's image, no privileges, and resources that keep the
 * pod's quality of service class.
 * @param beside the template's own containers, which determine the resources.
 */
export function injectedContainer(
  name: string,
  image: string,
  command: readonly string[],
  beside: readonly Container[],
  { cpu, memory }: InjectedResources,
): Container {
  return {
    name,
    image,
    imagePullPolicy: 'IfNotPresent',
    command,
    // Requests would lift a BestEffort pod to Burstable; their absence would lower a Guaranteed pod to Burstable.
    ...(beside.some(hasResources)
      ? { resources: { requests: { cpu, memory }, limits: { cpu, memory } } }
      : {}),
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 65_532,
      runAsGroup: 65_532,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    },
  }
}

const hasResources = ({ resources }: Container): boolean =>
  Object.keys(resources?.requests ?? {}).length + Object.keys(resources?.limits ?? {}).length > 0

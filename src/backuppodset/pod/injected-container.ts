import type { V1Container } from '@kubernetes/client-node'
import type { Wire } from '../../kube/object.ts'

export type Container = Wire<V1Container>

/** Requests and limits of each injected container, where it has any. */
export interface InjectedResources {
  readonly cpu: string
  readonly memory: string
}

/** Some runtimes start no container below 12 MiB (CRI-O's `container_min_memory`); the waker itself needs less than one. */
export const injectedResources: InjectedResources = { cpu: '10m', memory: '16Mi' }

/**
 * What every container has that is added to somebody's pod: the waker's image, no rights at all, and resources that
 * leave the pod's quality of service as it is.
 * @param beside the template's own containers, which decide about resources.
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
    // With requests it would lift a BestEffort pod to Burstable, without them lower a Guaranteed pod to it.
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

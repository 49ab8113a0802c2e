import type { V1Container } from '@kubernetes/client-node'
import { gateContainerName, gatePort } from '../../api/gate.ts'
import type { Wire } from '../../kube/object.ts'

export { gateContainerName, gatePort }

type Container = Wire<V1Container>

/**
 * The init container that holds a cold backup back until it is woken over TCP.
 * @param digest SHA-256 (hex) of the only token that opens it.
 * @param beside the template's own containers, which decide about resources.
 */
export function gateContainer(image: string, digest: string, beside: readonly Container[]): Container {
  return {
    name: gateContainerName,
    image,
    imagePullPolicy: 'IfNotPresent',
    command: ['/waker', 'wait', '--port', String(gatePort), '--token-sha256', digest],
    ports: [{ name: gateContainerName, containerPort: gatePort, protocol: 'TCP' }],
    // A gate with requests would lift a BestEffort pod to Burstable, one without would lower a Guaranteed pod to it.
    ...(beside.some(hasResources)
      ? { resources: { requests: { cpu: '10m', memory: '8Mi' }, limits: { cpu: '10m', memory: '8Mi' } } }
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

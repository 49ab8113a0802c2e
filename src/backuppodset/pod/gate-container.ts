import { gateContainerName, gatePort } from '../../api/gate.ts'
import { type Container, injectedContainer } from './injected-container.ts'

export { gateContainerName, gatePort }

/**
 * The init container that holds a cold backup back until it is woken over TCP.
 * @param digest SHA-256 (hex) of the only token that opens it.
 */
export function gateContainer(image: string, digest: string, beside: readonly Container[]): Container {
  const command = ['/waker', 'wait', '--port', String(gatePort), '--token-sha256', digest]
  return {
    ...injectedContainer(gateContainerName, image, command, beside),
    ports: [{ name: gateContainerName, containerPort: gatePort, protocol: 'TCP' }],
  }
}

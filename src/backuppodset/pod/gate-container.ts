import { gateContainerName, gatePort } from '../../api/gate.ts'
import { gateSocket } from '../../api/stage.ts'
import { type Container, injectedContainer } from './injected-container.ts'

export { gateContainerName, gatePort }

/**
 * The init container that holds a cold backup back until it is woken over TCP.
 * @param digest SHA-256 (hex) of the only token that opens it.
 * @param directory where it puts itself, for containers that hold the stage, and takes messages of its node's agent.
 */
export function gateContainer(
  image: string,
  digest: string,
  beside: readonly Container[],
  directory?: string,
): Container {
  const forMemory = directory === undefined ? [] : ['--install', directory, '--socket', gateSocket]
  const command = ['/waker', 'wait', '--port', String(gatePort), '--token-sha256', digest, ...forMemory]
  return {
    ...injectedContainer(gateContainerName, image, command, beside),
    ports: [{ name: gateContainerName, containerPort: gatePort, protocol: 'TCP' }],
  }
}

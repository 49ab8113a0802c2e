import { digestArguments, gateContainerName, gatePort } from '../../api/gate.ts'
import { gateSocket } from '../../api/stage.ts'
import { type Container, type InjectedResources, injectedContainer } from './injected-container.ts'

export { gateContainerName, gatePort }

/** A year: the gate answers when it opens. Whenever else an answer fails to come the kubelet asks again a second later. */
const probeSeconds = 31_536_000

/**
 * The init container that holds a cold backup back until it is woken over TCP. It stays: of its end the kubelet would hear
 * up to a second later, of the answer to its startup probe at once. See docs/adr/0094-a-gate-that-stays.md. Where the
 * template has named the gate's port as its own it ends instead, and leaves it free.
 * @param digest SHA-256 (hex) of the only token that opens it.
 * @param directories where it puts itself, for containers that hold the stage; it takes messages of its node's agent then.
 */
export function gateContainer(
  image: string,
  digest: string,
  beside: readonly Container[],
  resources: InjectedResources,
  directories: readonly string[] = [],
): Container {
  const installs = directories.flatMap(directory => ['--install', directory])
  const forMemory = installs.length === 0 ? [] : [...installs, '--socket', gateSocket]
  const command = ['/waker', 'wait', '--port', String(gatePort), ...digestArguments(digest), ...forMemory]
  const gate = {
    ...injectedContainer(gateContainerName, image, command, beside, resources),
    ports: [{ name: gateContainerName, containerPort: gatePort, protocol: 'TCP' }],
  }
  if (beside.some(({ ports }) => ports?.some(({ containerPort }) => containerPort === gatePort))) return gate
  return {
    ...gate,
    command: [...command, '--stay'],
    restartPolicy: 'Always',
    startupProbe: {
      httpGet: { path: '/opened', port: gatePort },
      periodSeconds: 1,
      timeoutSeconds: probeSeconds,
      // To be restarted would help nobody.
      failureThreshold: 2 ** 31 - 1,
    },
  }
}

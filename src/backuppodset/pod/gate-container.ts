import { digestArguments, gateContainerName, gatePort } from '../../api/gate.ts'
import type { InjectedResources } from '../../api/injected-resources.ts'
import { gateSocket } from '../../api/pod-contract.ts'
import { type Container, injectedContainer } from './injected-container.ts'

export { gateContainerName, gatePort }

/**
 * A year: the gate answers the probe when it opens. If a probe ends without an answer, the kubelet probes again a
 * second later.
 */
const probeSeconds = 31_536_000

/**
 * Returns the init container that holds a cold backup until it is woken over TCP. It keeps running after it opens: the
 * kubelet notices an exit up to a second later, but the answer to a startup probe at once. See
 * docs/adr/0094-a-gate-that-stays.md. If the template itself uses the gate's port, the gate exits instead and frees the
 * port.
 * @param digest SHA-256 (hex) of the only token that opens it.
 * @param directories where it installs the waker, for held containers; it then also takes messages from its node's
 *   agent.
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
      // A restart would not help.
      failureThreshold: 2 ** 31 - 1,
    },
  }
}

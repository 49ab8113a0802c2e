/**
 * The init container that holds a cold backup. Its name and port are part of the API, since templates may not use them.
 */
import type { Pod } from '../kube/resources.ts'

export const gateContainerName = 'understudy-gate'

/** TCP, on the pod's own address. */
export const gatePort = 20_000

/** Status of a gate as the kubelet reports it. */
export interface GateStatus {
  /** Distinguishes runs of a gate. */
  readonly containerId: string | undefined
  readonly running: boolean
  /**
   * True once the kubelet may start the next container: a gate that exits has exited, or a gate that stays has started
   * up.
   */
  readonly opened: boolean
}

/** Returns the status of a pod's gate; undefined if the pod has no gate. */
export function gateOf({ spec, status }: Pod): GateStatus | undefined {
  const gate = spec?.initContainers?.find(({ name }) => name === gateContainerName)
  if (gate === undefined) return undefined
  const told = status?.initContainerStatuses?.find(({ name }) => name === gateContainerName)
  const running = told?.state?.running !== undefined && told.state.running !== null
  return {
    containerId: told?.containerID || undefined,
    running,
    opened:
      gate.restartPolicy === 'Always'
        ? running && told.started === true
        : told?.state?.terminated?.exitCode === 0,
  }
}

const digestOption = '--token-sha256'

/** Arguments that pass a gate the SHA-256 (hex) of the only token that opens it. */
export const digestArguments = (digest: string): readonly string[] => [digestOption, digest]

/** Returns the token digest of a pod's gate; undefined if there is no gate, or not one that we created. */
export function gateDigestOf({ spec }: Pod): string | undefined {
  const command = spec?.initContainers?.find(({ name }) => name === gateContainerName)?.command ?? []
  const at = command.indexOf(digestOption)
  return at < 0 ? undefined : command[at + 1]
}

/** True if the gate runs and holds the pod. */
export function isAtGate(pod: Pod): boolean {
  const gate = gateOf(pod)
  return gate?.running === true && !gate.opened
}

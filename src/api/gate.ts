/** The init container that holds a cold backup back: its name and port are part of the API, since templates may not use them. */
import type { Pod } from '../kube/resources.ts'

export const gateContainerName = 'understudy-gate'

/** TCP, on the pod's own address. */
export const gatePort = 20_000

/** What the kubelet tells of a gate. */
export interface GateStatus {
  /** Tells one life of a gate from the next. */
  readonly containerId: string | undefined
  readonly running: boolean
  /** The kubelet starts what comes behind it, or has: its end of one that ends, its startup of one that stays. */
  readonly opened: boolean
}

/** Undefined when the pod has no gate. */
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

/** How a gate is told the SHA-256 (hex) of the only token that opens it. */
export const digestArguments = (digest: string): readonly string[] => [digestOption, digest]

/** Of which token a pod's gate holds the digest; undefined: it has no gate, or one that nobody of us made. */
export function gateDigestOf({ spec }: Pod): string | undefined {
  const command = spec?.initContainers?.find(({ name }) => name === gateContainerName)?.command ?? []
  const at = command.indexOf(digestOption)
  return at < 0 ? undefined : command[at + 1]
}

/** It runs, and holds the pod back. */
export function isAtGate(pod: Pod): boolean {
  const gate = gateOf(pod)
  return gate?.running === true && !gate.opened
}

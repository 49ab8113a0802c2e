import { gateContainerName } from '../api/gate.ts'
import type { Pod } from '../kube/resources.ts'

/** Kubelets write whole seconds. */
const roundingMs = 1_000

/** Returns the shortest start that is known of pods of a set: the first one also had to pull the image. */
export function shortestRestartMs(pods: readonly Pod[]): number | undefined {
  const known = pods.flatMap(pod => restartMsOf(pod) ?? [])
  return known.length === 0 ? undefined : Math.min(...known)
}

/**
 * Returns how long a restart of the pod takes at least, ms: the time that the kubelet needed from its first sight of the pod until the
 * containers ran. The start of the app itself comes on top. Undefined: not known, because a container has been restarted, or the
 * pod waited at a gate.
 */
export function restartMsOf(pod: Pod | undefined): number | undefined {
  const { startTime, containerStatuses = [] } = pod?.status ?? {}
  const seenAt = Date.parse(startTime ?? '')
  if (Number.isNaN(seenAt) || containerStatuses.length === 0) return undefined
  if (pod?.spec?.initContainers?.some(({ name }) => name === gateContainerName)) return undefined
  const started = containerStatuses.map(({ restartCount, state }) =>
    restartCount === 0 ? Date.parse(state?.running?.startedAt ?? '') : Number.NaN,
  )
  const last = Math.max(...started)
  return Number.isNaN(last) || last < seenAt ? undefined : last - seenAt + roundingMs
}

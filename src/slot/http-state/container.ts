import type { Pod } from '../../kube/resources.ts'

export interface ContainerLife {
  /** Restarts, including the next one as soon as the running container has ended. */
  readonly restarts: number
  readonly running: boolean
  /** Start of the running container, ms since the epoch. */
  readonly startedAt: number | undefined
}

/**
 * Identifies the current run of a container. If the kubelet reports no status yet, the container counts as just
 * started.
 */
export function containerOf(pod: Pod, name: string): ContainerLife {
  const status = pod.status?.containerStatuses?.find(each => each.name === name)
  if (status === undefined)
    return { restarts: 0, running: pod.status?.phase === 'Running', startedAt: undefined }
  const { state, lastState, restartCount } = status
  const running = state?.running !== undefined
  const hasEnded = state?.terminated !== undefined || lastState?.terminated !== undefined
  const startedAt = Date.parse(state?.running?.startedAt ?? '')
  return {
    restarts: restartCount + (!running && hasEnded ? 1 : 0),
    running,
    startedAt: Number.isNaN(startedAt) ? undefined : startedAt,
  }
}

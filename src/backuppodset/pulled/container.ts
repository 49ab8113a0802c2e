import type { Pod } from '../../kube/resources.ts'

export interface ContainerLife {
  /** Starts beyond the first, the one that is due included: it grows as soon as what ran has ended. */
  readonly restarts: number
  readonly running: boolean
  /** Of what runs, ms since the epoch. */
  readonly startedAt: number | undefined
}

/** Which life of a container this is. Kubelets that tell nothing of it yet are taken to have just started it. */
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

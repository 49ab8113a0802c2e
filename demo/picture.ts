/** The pods of a set in readable form: the output of `kubectl get pods -L type`, and a little more. */
import { isAtGate } from '../src/api/gate.ts'
import { annotations, isPodKind, labels, type PodKind, podKinds } from '../src/api/labels.ts'
import type { Pod } from '../src/kube/resources.ts'

export interface PodRow {
  readonly name: string
  readonly uid: string
  readonly kind: PodKind
  readonly slot: string
  readonly epoch: string
  readonly node: string
  readonly ip: string | undefined
  /** `1/1`. */
  readonly ready: string
  /** `Running`, `Init:0/1`, `Terminating`, ... */
  readonly status: string
  readonly restarts: number
  /** True if the pod does the job of its kind: serves, could serve, or waits at its gate. */
  readonly inPlace: boolean
  /** True if the pod is being deleted. */
  readonly leaving: boolean
}

export interface Numbers {
  readonly primary: number
  readonly hotbackup: number
  readonly coldbackup: number
}

/** Returns undefined for a pod whose label names no kind. */
export function rowOf(pod: Pod): PodRow | undefined {
  const kind = pod.metadata.labels?.[labels.type]
  if (!isPodKind(kind)) return undefined
  const { containers = [], initContainers = [] } = pod.spec ?? {}
  const staying = initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always')
  const statuses = [
    ...(pod.status?.containerStatuses ?? []),
    ...(pod.status?.initContainerStatuses ?? []).filter(({ name }) => staying.some(it => it.name === name)),
  ]
  const isReady =
    pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
  return {
    name: pod.metadata.name,
    uid: pod.metadata.uid,
    kind,
    slot: pod.metadata.labels?.[labels.slot] ?? '',
    epoch: pod.metadata.annotations?.[annotations.epoch] ?? '',
    node: pod.spec?.nodeName ?? '',
    ip: pod.status?.podIP,
    ready: `${statuses.filter(({ ready }) => ready).length}/${containers.length + staying.length}`,
    status: statusOf(pod),
    restarts: statuses.reduce((sum, { restartCount }) => sum + restartCount, 0),
    inPlace: kind === 'coldbackup' ? isAtGate(pod) : isReady,
    leaving: pod.metadata.deletionTimestamp !== undefined,
  }
}

/**
 * Returns the rows of all pods, including those being deleted: primaries, then hot, then cold backups, each by name.
 */
export function rowsOf(pods: readonly Pod[]): PodRow[] {
  return pods
    .flatMap(pod => rowOf(pod) ?? [])
    .sort((a, b) => podKinds.indexOf(a.kind) - podKinds.indexOf(b.kind) || (a.name < b.name ? -1 : 1))
}

export const staying = (rows: readonly PodRow[]): PodRow[] => rows.filter(({ leaving }) => !leaving)

export function numbersOf(rows: readonly PodRow[]): Numbers {
  const count = (kind: PodKind) => staying(rows).filter(row => row.kind === kind).length
  return { primary: count('primary'), hotbackup: count('hotbackup'), coldbackup: count('coldbackup') }
}

/** True once an operation has ended: numbers as wished, all pods in place. Ignores pods that are being deleted. */
export function isSettled(rows: readonly PodRow[], wish: Numbers): boolean {
  const numbers = numbersOf(rows)
  return podKinds.every(kind => numbers[kind] === wish[kind]) && staying(rows).every(({ inPlace }) => inPlace)
}

/** Computes kubectl's STATUS column, for the states that these pods go through. */
function statusOf(pod: Pod): string {
  const { metadata, spec, status } = pod
  if (metadata.deletionTimestamp !== undefined) return 'Terminating'
  const init = status?.initContainerStatuses ?? []
  const total = spec?.initContainers?.length ?? 0
  const done = init.filter(({ name, state, started }) =>
    spec?.initContainers?.some(it => it.name === name && it.restartPolicy === 'Always')
      ? started === true
      : state?.terminated?.exitCode === 0,
  ).length
  if (total > done && spec?.nodeName !== undefined) return `Init:${done}/${total}`
  const waiting = (status?.containerStatuses ?? []).find(({ state }) => state?.waiting !== undefined)
  return waiting?.state?.waiting?.reason ?? status?.phase ?? 'Pending'
}

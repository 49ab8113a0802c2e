import { annotations, isPodKind, labels } from '../../api/labels.ts'
import type { Pod } from '../../kube/resources.ts'
import type { GateState, PodView } from '../snapshot.ts'
import { gateContainerName } from './gate-container.ts'

/** A wake-up that this process has under way. */
export interface Wakening {
  readonly to: 'primary' | 'hotbackup'
  readonly slot: number | undefined
  readonly epoch: number
}

/**
 * The pod as the rules see it, or undefined when its `type` label names no kind.
 * Never throws: labels and annotations can be edited by anybody, and what cannot be read counts as absent.
 */
export function viewOf(pod: Pod, wakening: Wakening | undefined): PodView | undefined {
  const kind = pod.metadata.labels?.[labels.type]
  if (!isPodKind(kind)) return undefined
  const ready = pod.status?.conditions?.find(condition => condition.type === 'Ready')
  const isReady = ready?.status === 'True'
  const gate = gateStateOf(pod)
  const unreadySince = latest(ready?.lastTransitionTime ?? pod.metadata.creationTimestamp, startOf(pod))
  return {
    name: pod.metadata.name,
    uid: pod.metadata.uid,
    resourceVersion: pod.metadata.resourceVersion,
    kind: wakening?.to ?? kind,
    slot: wakening
      ? wakening.slot
      : kind === 'primary'
        ? natural(pod.metadata.labels?.[labels.slot])
        : undefined,
    epoch: wakening?.epoch ?? epochOf(pod),
    node: pod.spec?.nodeName,
    createdAt: time(pod.metadata.creationTimestamp) ?? 0,
    ready: isReady,
    // Not Ready was the cold backup's duty: of a gate that has just opened the kubelet has not told the end yet.
    unreadySince: isReady || (gate === 'open' && gateEndOf(pod) === undefined) ? undefined : unreadySince,
    served: isReady || unreadySince > latest(pod.metadata.creationTimestamp, startOf(pod)),
    crashLooping: [
      ...(pod.status?.containerStatuses ?? []),
      ...(pod.status?.initContainerStatuses ?? []),
    ].some(({ state }) => state?.waiting?.reason === 'CrashLoopBackOff'),
    gate,
    waking: wakening !== undefined,
    templateHash: pod.metadata.labels?.[labels.templateHash],
  }
}

export const epochOf = (pod: Pod): number => natural(pod.metadata.annotations?.[annotations.epoch]) ?? 0

export const slotOf = (pod: Pod): number | undefined => natural(pod.metadata.labels?.[labels.slot])

/** The container ID of the gate that runs or ran last, which tells one life of a gate from the next. */
export const gateIdOf = (pod: Pod): string | undefined =>
  pod.status?.initContainerStatuses?.find(status => status.name === gateContainerName)?.containerID

function gateStateOf(pod: Pod): GateState {
  if (!pod.spec?.initContainers?.some(container => container.name === gateContainerName)) return 'none'
  const status = pod.status?.initContainerStatuses?.find(({ name }) => name === gateContainerName)
  if (status?.state?.terminated?.exitCode === 0) return 'open'
  if (!status?.state?.running) return 'starting'
  // The kubelet reports the end of a gate up to a second late; the wake-up has noted which gate it opened.
  if (
    status.containerID !== undefined &&
    pod.metadata.annotations?.[annotations.openedGate] === status.containerID
  )
    return 'open'
  return pod.status?.podIP === undefined ? 'starting' : 'waiting'
}

const gateEndOf = (pod: Pod) =>
  pod.status?.initContainerStatuses?.find(({ name }) => name === gateContainerName)?.state?.terminated

/** When the pod's own containers could start: the end of its init containers, of its gate at least. */
const startOf = (pod: Pod): string | undefined => {
  const initialized = pod.status?.conditions?.find(({ type }) => type === 'Initialized')
  return initialized?.status === 'True' ? initialized.lastTransitionTime : gateEndOf(pod)?.finishedAt
}

const latest = (...times: readonly (string | undefined)[]): number =>
  Math.max(0, ...times.map(text => time(text) ?? 0))

/** A number as labels and annotations carry it; undefined where there is none, or something else. */
export const natural = (text: string | undefined): number | undefined =>
  text !== undefined && /^(0|[1-9]\d{0,8})$/.test(text) ? Number(text) : undefined

const time = (text: string | undefined): number | undefined => {
  const ms = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(ms) ? undefined : ms
}

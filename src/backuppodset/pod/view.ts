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
    unreadySince: isReady
      ? undefined
      : (time(ready?.lastTransitionTime) ?? time(pod.metadata.creationTimestamp) ?? 0),
    crashLooping: [
      ...(pod.status?.containerStatuses ?? []),
      ...(pod.status?.initContainerStatuses ?? []),
    ].some(({ state }) => state?.waiting?.reason === 'CrashLoopBackOff'),
    gate: gateStateOf(pod),
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

const natural = (text: string | undefined): number | undefined =>
  text !== undefined && /^(0|[1-9]\d{0,8})$/.test(text) ? Number(text) : undefined

const time = (text: string | undefined): number | undefined => {
  const ms = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(ms) ? undefined : ms
}

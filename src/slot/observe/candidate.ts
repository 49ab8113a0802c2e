import { gateContainerName, gateOf } from '../../api/gate.ts'
import { annotations, isPodKind, labels } from '../../api/labels.ts'
import { kindLabelOf } from '../../api/pod-kind.ts'
import type { Pod } from '../../kube/resources.ts'
import type { Candidate, GateState } from '../decide/snapshot.ts'

/** A wake-up in progress in this process. */
export interface Wakening {
  readonly to: 'primary' | 'hotbackup'
  readonly slot: number | undefined
  readonly epoch: number
}

/**
 * Returns the pod as the rules of slots see it, or undefined if its labels name no kind.
 * Never throws: any client may edit labels and annotations, and unreadable ones count as absent.
 */
export function candidateOf(pod: Pod, wakening: Wakening | undefined): Candidate | undefined {
  const kind = kindLabelOf(pod)
  if (!isPodKind(kind)) return undefined
  const ready = pod.status?.conditions?.find(condition => condition.type === 'Ready')
  const isReady = ready?.status === 'True'
  const gate = gateStateOf(pod)
  const start = startOf(pod)
  const unreadySince = latest(ready?.lastTransitionTime ?? pod.metadata.creationTimestamp, start)
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
    // A cold backup is unready by design; after its gate opens, it takes a moment until the kubelet reports the start.
    unreadySince: isReady || (gate === 'open' && start === undefined) ? undefined : unreadySince,
    served: isReady || unreadySince > latest(pod.metadata.creationTimestamp, start),
    gate,
    waking: wakening !== undefined,
  }
}

export const epochOf = (pod: Pod): number => natural(pod.metadata.annotations?.[annotations.epoch]) ?? 0

export const slotOf = (pod: Pod): number | undefined => natural(pod.metadata.labels?.[labels.slot])

/** Returns the container ID of the gate that runs or ran last, which distinguishes runs of a gate. */
export const gateIdOf = (pod: Pod): string | undefined => gateOf(pod)?.containerId

export function gateStateOf(pod: Pod): GateState {
  const gate = gateOf(pod)
  if (gate === undefined) return 'none'
  if (gate.opened) return 'open'
  if (!gate.running) return 'starting'
  // The kubelet reports it later; the wake-up has recorded which gate it opened.
  if (
    gate.containerId !== undefined &&
    pod.metadata.annotations?.[annotations.openedGate] === gate.containerId
  )
    return 'open'
  return pod.status?.podIP === undefined ? 'starting' : 'waiting'
}

/**
 * Returns when the pod's own containers could start: when its init containers ended, or at least its gate. Undefined:
 * not reported yet.
 */
function startOf({ spec, status }: Pod): string | undefined {
  const initialized = status?.conditions?.find(({ type }) => type === 'Initialized')
  if (initialized?.status === 'True') return initialized.lastTransitionTime
  const stateOf = (name: string | undefined) => status?.initContainerStatuses?.find(it => it.name === name)
  const names = spec?.initContainers?.map(({ name }) => name) ?? []
  const ended = stateOf(gateContainerName)?.state?.terminated?.finishedAt
  // A gate that stays does not end. The next container starts when the gate opens, so its first known start counts.
  const behind = stateOf(names[names.indexOf(gateContainerName) + 1])
  const { running, terminated } = behind?.state ?? {}
  return ended ?? behind?.lastState?.terminated?.startedAt ?? terminated?.startedAt ?? running?.startedAt
}

const latest = (...times: readonly (string | undefined)[]): number =>
  Math.max(0, ...times.map(text => time(text) ?? 0))

/** Parses a natural number in a label or annotation; undefined if it is absent or something else. */
export const natural = (text: string | undefined): number | undefined =>
  text !== undefined && /^(0|[1-9]\d{0,8})$/.test(text) ? Number(text) : undefined

const time = (text: string | undefined): number | undefined => {
  const ms = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(ms) ? undefined : ms
}

/** True if the pod has ended and will not restart. */
export const isFinished = (pod: Pod): boolean =>
  pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded'

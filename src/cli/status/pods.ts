import { isAtGate } from '../../api/gate.ts'
import { annotations, labels } from '../../api/labels.ts'
import { holdInitContainer, podConditions, servingReasons } from '../../api/pod-contract.ts'
import { kindLabelOf } from '../../api/pod-kind.ts'
import type { Pod } from '../../kube/resources.ts'

/** The facts about a pod of a set that a user needs. */
export interface PodFacts {
  readonly name: string
  /** primary, hotbackup, coldbackup or retired. */
  readonly kind: string
  readonly slot?: number
  readonly epoch?: number
  readonly node?: string
  /** `Ready`, `Frozen`, `Staged`, `AtGate`, or the state that it has instead. */
  readonly state: string
  /** The pod can do the task of its kind. */
  readonly inPlace: boolean
  /** Why it is not in place. */
  readonly note?: string
  readonly restarts: number
  /** RFC 3339. */
  readonly createdAt: string
}

const ranks = ['primary', 'hotbackup', 'coldbackup']
const rankOf = (kind: string): number => (ranks.includes(kind) ? ranks.indexOf(kind) : ranks.length)

/** Sorts primaries by slot, then hot backups, cold backups and retired pods. */
export function podFacts(pods: readonly Pod[]): readonly PodFacts[] {
  return pods
    .map(factsOf)
    .sort(
      (a, b) =>
        rankOf(a.kind) - rankOf(b.kind) || (a.slot ?? 0) - (b.slot ?? 0) || (a.name < b.name ? -1 : 1),
    )
}

function factsOf(pod: Pod): PodFacts {
  const { name, creationTimestamp = '' } = pod.metadata
  const slot = numberIn(pod.metadata.labels?.[labels.slot])
  const epoch = numberIn(pod.metadata.annotations?.[annotations.epoch])
  const node = pod.spec?.nodeName
  return {
    name,
    kind: kindLabelOf(pod) ?? '',
    ...(slot === undefined ? {} : { slot }),
    ...(epoch === undefined ? {} : { epoch }),
    ...(node === undefined ? {} : { node }),
    ...stateOf(pod),
    restarts: (pod.status?.containerStatuses ?? []).reduce((sum, it) => sum + it.restartCount, 0),
    createdAt: creationTimestamp,
  }
}

const numberIn = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined

type State = Pick<PodFacts, 'state' | 'inPlace' | 'note'>

const not = (state: string, note: string | undefined): State => ({
  state,
  inPlace: false,
  ...(note ? { note } : {}),
})

function stateOf(pod: Pod): State {
  const { status, metadata } = pod
  const kind = kindLabelOf(pod)
  const condition = (type: string) => status?.conditions?.find(it => it.type === type)
  if (metadata.deletionTimestamp !== undefined) return { state: 'Terminating', inPlace: true }
  if (status?.phase === 'Failed' || status?.phase === 'Succeeded') return not(status.phase, status.message)
  const scheduled = condition('PodScheduled')
  if (scheduled?.status === 'False') return not(scheduled.reason ?? 'Unschedulable', scheduled.message)
  const waiting = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]
    .map(it => it.state?.waiting)
    .find(it => it?.reason !== undefined && !ordinary.includes(it.reason))
  if (waiting?.reason !== undefined) return not(waiting.reason, waiting.message)
  if (kind === 'coldbackup') {
    return isAtGate(pod) ? { state: 'AtGate', inPlace: true } : not('Starting', undefined)
  }
  if (kind === 'hotbackup' && pod.spec?.initContainers?.some(it => it.name === holdInitContainer)) {
    const understudy = condition(podConditions.understudy)
    if (understudy === undefined) return not('Starting', undefined)
    const { reason = 'Unknown', message } = understudy
    return understudy.status === 'True' ? { state: reason, inPlace: true } : not(reason, message)
  }
  const ready = condition('Ready')
  const serving = condition(podConditions.serving)
  // Its heir answers its connections, so the pod is still ready.
  if (serving?.reason === servingReasons.died) return not(serving.reason, serving.message)
  if (ready?.status === 'True') return { state: 'Ready', inPlace: true }
  if (serving?.status === 'False' && kind === 'primary')
    return not(serving.reason ?? 'NotReady', serving.message)
  return not('NotReady', ready?.message)
}

/** Reasons for waiting that occur in every start. */
const ordinary = ['PodInitializing', 'ContainerCreating']

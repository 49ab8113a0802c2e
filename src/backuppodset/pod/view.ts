import { annotations, deletionCostAnnotation, labels } from '../../api/labels.ts'
import type { Pod } from '../../kube/resources.ts'
import { candidateOf, type Wakening } from '../../slot/observe/candidate.ts'
import { endUntoldMs } from '../completion.ts'
import type { PodView } from '../snapshot.ts'

/**
 * Returns the pod as the rules of sets see it, or undefined if its labels name no kind.
 * Never throws: any client may edit labels and annotations, and unreadable ones count as absent.
 */
export function viewOf(pod: Pod, wakening: Wakening | undefined): PodView | undefined {
  const candidate = candidateOf(pod, wakening)
  if (candidate === undefined) return undefined
  const lastEnd = lastEndOf(pod)
  const preference = preferenceOf(pod)
  const stuck = stuckBy(pod)
  const endUntold = endUntoldMs(pod)
  return {
    ...candidate,
    crashLooping: [
      ...(pod.status?.containerStatuses ?? []),
      ...(pod.status?.initContainerStatuses ?? []),
    ].some(({ state }) => state?.waiting?.reason === 'CrashLoopBackOff'),
    ...(!candidate.ready && lastEnd !== undefined && { lastEnd }),
    ...(!candidate.ready && stuck !== undefined && { stuck }),
    ...(endUntold !== undefined && { endUntold }),
    templateHash: pod.metadata.labels?.[labels.templateHash],
    ...deletionCostOf(pod),
    ...(preference === undefined ? {} : { preference }),
  }
}

/** Reasons of the kubelet for which a container cannot start until a user fixes something. */
const hindrances: ReadonlySet<string | undefined> = new Set([
  ...['ImagePullBackOff', 'ErrImagePull', 'ErrImageNeverPull', 'InvalidImageName', 'ImageInspectError'],
  ...['CreateContainerConfigError', 'CreateContainerError', 'RunContainerError'],
])

function stuckBy({ status }: Pod): string | undefined {
  const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled')
  const waiting = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]
    .map(({ state }) => state?.waiting)
    .find(state => hindrances.has(state?.reason))
  const { reason, message } = waiting ?? (scheduled?.status === 'False' ? scheduled : {})
  if (reason === undefined) return undefined
  return message === undefined ? reason : `${reason}: ${message.slice(0, 500)}`
}

/** Describes how the last container that restarted or will restart ended; without the app's own termination message. */
function lastEndOf({ status }: Pod): string | undefined {
  const [last] = (status?.containerStatuses ?? [])
    .flatMap(({ name, state, lastState }) => {
      const ended = state?.terminated ?? lastState?.terminated
      return ended === undefined ? [] : [{ name, ended }]
    })
    .sort((a, b) => ((a.ended.finishedAt ?? '') < (b.ended.finishedAt ?? '') ? 1 : -1))
  if (last === undefined) return undefined
  const { exitCode, signal, reason } = last.ended
  return `container ${last.name} ended with ${signal ? `signal ${signal}` : `code ${exitCode}`}${reason === undefined || reason === 'Error' ? '' : `, ${reason}`}`
}

/** As Kubernetes reads it: a 32-bit integer. Kubernetes rejects other values; here they count as absent. */
function deletionCostOf({ metadata }: Pod): Pick<PodView, 'deletionCost'> {
  const text = metadata.annotations?.[deletionCostAnnotation]
  if (text === undefined || !/^(0|-?[1-9]\d{0,9})$/.test(text)) return {}
  const deletionCost = Number(text)
  return deletionCost === (deletionCost | 0) ? { deletionCost } : {}
}

/** Values that are no integer of up to nine digits count as absent. */
function preferenceOf({ metadata }: Pod): number | undefined {
  const text = metadata.annotations?.[annotations.preferenceRequested]
  return text !== undefined && /^-?\d{1,9}$/.test(text) ? Number(text) : undefined
}

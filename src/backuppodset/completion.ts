/** A primary that has ended with success: its work is done, and no other pod continues with its memory. */
import type { BackupPodSetStatus, Completion } from '../api/backuppodset.ts'
import type { ParsedSet } from '../api/parse.ts'
import { kindLabelOf } from '../api/pod-kind.ts'
import type { Pod } from '../kube/resources.ts'
import type { MemoryView } from '../slot/decide/memory-view.ts'
import { slotOf } from '../slot/observe/candidate.ts'
import { servingOf, stageOf } from '../slot/observe/stage.ts'

/** True for a set whose pods may end with success: the kubelet does not restart these. */
export const mayComplete = ({ template }: Pick<ParsedSet, 'template'>): boolean =>
  template.spec.restartPolicy === 'OnFailure'

/**
 * Returns when the set's work was done, and by which pod; undefined: it is not done. The status remembers it, because the pod may be
 * deleted later.
 */
export function completionIn(
  set: Pick<ParsedSet, 'template'>,
  status: BackupPodSetStatus | undefined,
  pods: Iterable<Pod>,
  memory: MemoryView | undefined,
): Completion | undefined {
  if (!mayComplete(set)) return undefined
  if (status?.completion !== undefined) return status.completion
  for (const pod of pods) {
    const at = hasSlot(pod, memory) ? endedWellAt(pod) : undefined
    if (at !== undefined) return { pod: pod.metadata.name, at }
  }
  return undefined
}

/**
 * True for the pod that has the slot, also before it has answered. A pod that was left does not count, nor does an app that the
 * kubelet has started in the place of a dead one: another pod continues with that one's memory.
 */
function hasSlot(pod: Pod, memory: MemoryView | undefined): boolean {
  const slots = [...(memory?.slots.values() ?? [])]
  const own = slots.find(({ lease }) => lease.holder.uid === pod.metadata.uid)
  if (own !== undefined) return stageOf(pod).restarts <= (own.restarts ?? 0)
  return kindLabelOf(pod) === 'primary' && slots.every(({ lease }) => lease.slot !== slotOf(pod))
}

/**
 * Returns when all containers of the pod had ended with success; a pod that is being deleted does not count. Neither does one that its
 * kubelet has evicted or shut down: its phase is Failed, whatever code its app has ended with.
 */
function endedWellAt(pod: Pod): string | undefined {
  if (pod.metadata.deletionTimestamp !== undefined || pod.status?.phase !== 'Succeeded') return undefined
  const ends = successesOf(pod)
  if (ends === undefined || ends.length === 0) return undefined
  // The runtime may have forgotten the time.
  const known = ends.filter(at => !Number.isNaN(Date.parse(at)))
  return known.sort((a, b) => Date.parse(b) - Date.parse(a))[0] ?? pod.metadata.creationTimestamp
}

/** Returns when each container of the pod has ended with success; undefined: not all have. */
function successesOf({ spec, status }: Pod): readonly string[] | undefined {
  const ends = (spec?.containers ?? []).map(
    ({ name }) => status?.containerStatuses?.find(each => each.name === name)?.state?.terminated,
  )
  return ends.every(end => end?.exitCode === 0) ? ends.map(end => end?.finishedAt ?? '') : undefined
}

/**
 * True for a death that the agent has reported and the kubelet has not: only the kubelet knows whether the app has ended with success.
 * The agent names the container that ended. Sidecars end after the app, and the phase says only then that all is well.
 */
export function isEndUntold(pod: Pod): boolean {
  const { death } = servingOf(pod)
  if (death === undefined) return false
  const { containerStatuses = [], phase } = pod.status ?? {}
  const isRunning = containerStatuses.some(
    ({ containerID, state }) => state?.running !== undefined && containerID && death.includes(containerID),
  )
  return isRunning || (phase === 'Running' && (successesOf(pod)?.length ?? 0) > 0)
}

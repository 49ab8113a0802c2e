/** A primary that has ended with success: its work is done, and no other pod continues with its memory. */
import type { BackupPodSetStatus, Completion } from '../api/backuppodset.ts'
import type { ParsedSet } from '../api/parse.ts'
import { isUnderstudy } from '../api/pod-contract.ts'
import { kindLabelOf } from '../api/pod-kind.ts'
import { servingRecordOf } from '../api/serving-record.ts'
import { controllerOf } from '../kube/owner.ts'
import type { Pod } from '../kube/resources.ts'
import type { MemoryView, SlotMemory } from '../slot/decide/memory-view.ts'
import { slotOf } from '../slot/observe/candidate.ts'
import { servingOf, stageOf } from '../slot/observe/stage.ts'

/** True for a set whose pods may end with success: the kubelet does not restart these. */
export const mayComplete = ({ template }: Pick<ParsedSet, 'template'>): boolean =>
  template.spec.restartPolicy === 'OnFailure'

/** The end of a set's work, as far as it is known. */
export interface Completing {
  /** Absent: the work is not done, or not known to be. */
  readonly completed?: Completion
  /** The status does not say so yet, or it is not known: until then nothing may be deleted or made. */
  readonly isHeld?: true
}

/**
 * Returns whether the set's work is done, and by which pod. Once the status says so, that is for good: the pod may be deleted, and
 * the template may change.
 */
export function completingIn(
  set: Pick<ParsedSet, 'template' | 'uid'>,
  status: BackupPodSetStatus | undefined,
  pods: Iterable<Pod>,
  memory: MemoryView | undefined,
): Completing {
  if (status?.completion !== undefined) return { completed: status.completion }
  if (!mayComplete(set)) return {}
  const found = [...pods].flatMap(pod => {
    // The labels of a pod of an earlier set of this name are the same.
    const at = controllerOf(pod)?.uid === set.uid ? endedWellAt(pod) : undefined
    return at === undefined ? [] : [{ pod, at, hasSlot: hasSlot(pod, memory) }]
  })
  const done = found.find(each => each.hasSlot === true)
  if (done !== undefined) return { completed: { pod: done.pod.metadata.name, at: done.at }, isHeld: true }
  return found.some(each => each.hasSlot === undefined) ? { isHeld: true } : {}
}

/** True for the pod that has the slot, also before it has answered; undefined: that is not known. A pod that was left does not count. */
function hasSlot(pod: Pod, memory: MemoryView | undefined): boolean | undefined {
  if (memory === undefined) return undefined
  const own = [...memory.slots.values()].find(({ lease }) => lease.holder.uid === pod.metadata.uid)
  if (own !== undefined) return !isAnother(pod, own)
  const slot = slotOf(pod)
  if (kindLabelOf(pod) !== 'primary' || slot === undefined || memory.slots.has(slot)) return false
  return memory.foreign?.has(slot) === true ? undefined : true
}

/**
 * True if the kubelet has started the app that has ended in the place of a dead one: another pod continues with the memory of that
 * one. The containers of an understudy are older than the apps in them, so their restarts say nothing.
 */
function isAnother(pod: Pod, { restarts = 0 }: SlotMemory): boolean {
  if (!isUnderstudy(pod)) return stageOf(pod).restarts > restarts
  const onStage = servingOf(pod).death ?? Object.values(servingRecordOf(pod).containers ?? {}).join()
  const ids = (pod.status?.containerStatuses ?? []).flatMap(({ containerID }) => containerID ?? [])
  return onStage !== '' && !ids.some(id => onStage.includes(id))
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

/** How long to wait for the kubelet to tell how a container has ended, ms. It takes a second or so. */
const tellingMs = 15_000

/** How long the kubelet may take for what is left after the grace period of sidecars, ms. */
const stoppingMs = 30_000

/** The grace period of a pod that names none, seconds. */
const usualGrace = 30

/**
 * Returns for how long after a death that the agent has reported the kubelet may still tell that the app has ended with success, ms;
 * undefined: it has told how, or nothing has died. The agent names the container that ended. Sidecars end after the app, within the
 * grace period of the pod, and only then the phase says that all is well.
 */
export function endUntoldMs(pod: Pod): number | undefined {
  const { death } = servingOf(pod)
  if (death === undefined) return undefined
  const { containerStatuses = [], phase } = pod.status ?? {}
  const isRunning = containerStatuses.some(
    ({ containerID, state }) => state?.running !== undefined && containerID && death.includes(containerID),
  )
  if (isRunning) return tellingMs
  if (phase !== 'Running' || !successesOf(pod)?.length) return undefined
  return (pod.spec?.terminationGracePeriodSeconds ?? usualGrace) * 1000 + stoppingMs
}

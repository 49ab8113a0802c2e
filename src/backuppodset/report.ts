import { produce } from 'immer'
import { type BackupPodSet, type BackupPodSetStatus, backupPodSets } from '../api/backuppodset.ts'
import type { Api } from '../kube/api.ts'
import type { Clock } from '../kube/clock.ts'
import { isEqual } from '../kube/equal.ts'

/** How long a change that only counts pods may wait for the next one. */
const softIntervalMs = 3_000
/**
 * How long news of generations may wait: every interval of every primary has some, and each write goes to every agent.
 * Nothing waits that is the first of a primary, or that changes how its slot is protected.
 */
const progressIntervalMs = 60_000

export interface Report {
  /** The set as written, or undefined when nothing had to be written now. */
  readonly written: BackupPodSet | undefined
  /** Come back after so many ms to write what was held back. */
  readonly againAfterMs: number | undefined
}

export interface Reporter {
  report(current: BackupPodSet, next: BackupPodSetStatus, signal: AbortSignal): Promise<Report>
  forget(uid: string): void
}

/**
 * Writes a set's status, once a pass and only when it says something new. Which pods exist, their kinds and conditions
 * are written at once; progress of pods on their way to Ready is collected, or the start of 300 pods would be 300 writes.
 */
export function createReporter(api: Api, clock: Clock): Reporter {
  const lastWrite = new Map<string, number>()
  return {
    async report(current, next, signal) {
      const { uid, name, namespace = '' } = current.metadata
      const before = current.status ?? {}
      const keys = new Set([...Object.keys(before), ...Object.keys(next)]) as Set<keyof BackupPodSetStatus>
      const changed = [...keys].filter(key => !isEqual(before[key], next[key]))
      if (changed.length === 0 && current.status !== undefined)
        return { written: undefined, againAfterMs: undefined }
      // Fields that did not change keep their reference.
      const status = produce(before, draft => {
        for (const key of changed)
          if (next[key] === undefined) delete draft[key]
          else Object.assign(draft, { [key]: next[key] })
      })
      const sinceLast = clock.monotonic() - (lastWrite.get(uid) ?? Number.NEGATIVE_INFINITY)
      const mayWaitMs = !isEqual(hard(before), hard(status))
        ? 0
        : isEqual(withoutProgress(before), withoutProgress(status))
          ? progressIntervalMs
          : softIntervalMs
      if (sinceLast < mayWaitMs) return { written: undefined, againAfterMs: mayWaitMs - sinceLast }
      // PUT with the version we decided from: a status that somebody has written since is looked at before it goes.
      const written = await api.replace(
        backupPodSets,
        { namespace, name },
        { ...current, apiVersion: 'backup.example.com/v1alpha1', kind: backupPodSets.kind, status },
        { subresource: 'status', signal },
      )
      lastWrite.set(uid, clock.monotonic())
      return { written, againAfterMs: undefined }
    },
    forget: uid => lastWrite.delete(uid),
  }
}

/** The part of a status that must not wait. */
const hard = ({
  readyReplicas: _r,
  readyHotbackups: _h,
  gatedColdbackups: _g,
  slots,
  conditions,
  ...rest
}: BackupPodSetStatus) => ({
  ...rest,
  slots: slots?.map(({ slot, pod, epoch }) => ({ slot, pod, epoch })),
  conditions: conditions?.map(({ message: _, reason: __, ...condition }) => condition),
})

const withoutProgress = ({ slots, ...rest }: BackupPodSetStatus) => ({
  ...rest,
  slots: slots?.map(
    ({
      generation = 0,
      savedAt: _,
      intervalSeconds: __,
      intervalReason: ___,
      pipelineSeconds: ____,
      ...slot
    }) => ({
      ...slot,
      isSaved: generation > 0,
    }),
  ),
})

import { produce } from 'immer'
import { type BackupPodSet, type BackupPodSetStatus, backupPodSets } from '../api/backuppodset.ts'
import { conditionTypes } from '../api/reasons.ts'
import type { Api } from '../kube/api.ts'
import type { Clock } from '../kube/clock.ts'
import { isEqual } from '../kube/equal.ts'

/** How long to hold back a change that only updates counts of pods. */
const softIntervalMs = 3_000
/**
 * How long to hold back news of generations: each primary has some in every interval, and each write goes to every
 * agent. A primary's first generation and any change of its slot's protection are written at once.
 */
const progressIntervalMs = 60_000

export interface Report {
  /** The set as written; undefined if nothing was written now. */
  readonly written: BackupPodSet | undefined
  /** Requeue after this many ms to write the held-back change. */
  readonly againAfterMs: number | undefined
}

export interface Reporter {
  report(current: BackupPodSet, next: BackupPodSetStatus, signal: AbortSignal): Promise<Report>
}

/**
 * Writes the status of one set at most once a pass, and only if it changed. Changes of pods, their kinds and conditions are
 * written at once. Progress of pods on their way to Ready is batched: otherwise the start of 300 pods would cause 300
 * writes.
 */
export function createReporter(api: Pick<Api, 'replace'>, clock: Clock): Reporter {
  let lastWrite = Number.NEGATIVE_INFINITY
  return {
    async report(current, next, signal) {
      const { name, namespace = '' } = current.metadata
      const before = current.status ?? {}
      const keys = new Set([...Object.keys(before), ...Object.keys(next)]) as Set<keyof BackupPodSetStatus>
      const changed = [...keys].filter(key => !isEqual(before[key], next[key]))
      if (changed.length === 0 && current.status !== undefined)
        return { written: undefined, againAfterMs: undefined }
      // Unchanged fields keep their reference.
      const status = produce(before, draft => {
        for (const key of changed)
          if (next[key] === undefined) delete draft[key]
          else Object.assign(draft, { [key]: next[key] })
      })
      const sinceLast = clock.monotonic() - lastWrite
      const mayWaitMs = !isEqual(hard(before), hard(status))
        ? 0
        : isEqual(withoutProgress(before), withoutProgress(status))
          ? progressIntervalMs
          : softIntervalMs
      if (sinceLast < mayWaitMs) return { written: undefined, againAfterMs: mayWaitMs - sinceLast }
      // PUT with the version that we decided from: if another client has written the status since, the next pass reads
      // that first.
      const written = await api.replace(
        backupPodSets,
        { namespace, name },
        { ...current, apiVersion: 'backup.example.com/v1alpha1', kind: backupPodSets.kind, status },
        { subresource: 'status', signal },
      )
      lastWrite = clock.monotonic()
      return { written, againAfterMs: undefined }
    },
  }
}

/** The part of a status that must not wait. */
const hard = ({
  readyReplicas: _r,
  readyHotbackups: _h,
  gatedColdbackups: _g,
  summary,
  slots,
  conditions,
  ...rest
}: BackupPodSetStatus) => ({
  ...rest,
  summary: summary && [summary.replicas, summary.hotbackups, summary.coldbackups],
  slots: slots?.map(({ slot, pod, epoch }) => ({ slot, pod, epoch })),
  // `Available` follows the numbers of ready pods.
  conditions: conditions
    ?.filter(({ type }) => type !== conditionTypes.available)
    .map(({ message: _, reason: __, ...condition }) => condition),
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

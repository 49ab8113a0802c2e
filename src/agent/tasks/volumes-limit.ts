/** `checkpoint.volumes.maxSize`: limit of a pod's layers, emptyDirs and /dev/shm together in one generation. */

import { AgentError } from '../../api/agent-errors.ts'
import type { LocatedPod } from '../criu/memory-driver.ts'

/** Returns the size of the volumes of a pod, bytes, counted up to a limit. */
export type MeasureVolumes = (pod: LocatedPod, upTo: number, signal: AbortSignal) => Promise<number>

export const volumesTooLarge = (bytes: number, limit: number): AgentError =>
  new AgentError('VolumesTooLarge', `at least ${bytes} bytes, ${limit} allowed`)

/**
 * Measures all files before the pod is stopped: the first time, and again after they were too large. In between the
 * archives show the size, and a look at all files would cost more than it tells.
 *
 * @returns the bytes found; undefined: it did not measure.
 * @throws AgentError VolumesTooLarge
 */
export async function assertVolumesFit(
  work: { readonly measureVolumes?: MeasureVolumes },
  pod: LocatedPod,
  { limit, known, signal }: { readonly limit: number; readonly known: boolean; readonly signal: AbortSignal },
): Promise<number | undefined> {
  if (known || work.measureVolumes === undefined) return undefined
  const bytes = await work.measureVolumes(pod, limit, signal)
  if (bytes > limit) throw volumesTooLarge(bytes, limit)
  return bytes
}

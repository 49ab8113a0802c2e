/** `checkpoint.volumes.maxSize`: what layers, emptyDirs and /dev/shm of a pod may have together in one generation. */
import type { LocatedPod } from '../driver/memory-driver.ts'
import { AgentError } from '../errors.ts'
import type { Work } from './work.ts'

export const volumesTooLarge = (bytes: number, limit: number): AgentError =>
  new AgentError('VolumesTooLarge', `${bytes} bytes or more, ${limit} allowed`)

/**
 * Looks before the pod is stopped: at all files once, and again after it was too much. In between the archives tell, and
 * a look at all files would cost more than it says.
 *
 * @returns what was found, bytes; undefined: it did not look.
 * @throws AgentError VolumesTooLarge
 */
export async function assertVolumesFit(
  work: Pick<Work, 'measureVolumes'>,
  pod: LocatedPod,
  { limit, known, signal }: { readonly limit: number; readonly known: boolean; readonly signal: AbortSignal },
): Promise<number | undefined> {
  if (known || work.measureVolumes === undefined) return undefined
  const bytes = await work.measureVolumes(pod, limit, signal)
  if (bytes > limit) throw volumesTooLarge(bytes, limit)
  return bytes
}

/** `checkpoint.volumes.maxSize`: what layers, emptyDirs and /dev/shm of a pod may have together in one generation. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../kube/clock.ts'
import { listIfThere, unlessGone } from '../discover/process.ts'
import type { LocatedPod } from '../driver/memory-driver.ts'
import { AgentError } from '../errors.ts'
import type { Work } from './work.ts'

/** Between two looks at what has been written, ms: a second of writing more is what a look that is late may cost. */
const lookMs = 50

const tooLarge = (bytes: number, limit: number) =>
  new AgentError('VolumesTooLarge', `${bytes} bytes or more, ${limit} allowed`)

/**
 * Looks before the pod is stopped: at all files once, and again after it was too much. In between the archives tell, and
 * a look at all files would cost more than it says.
 *
 * @throws AgentError VolumesTooLarge
 */
export async function assertVolumesFit(
  work: Pick<Work, 'measureVolumes'>,
  pod: LocatedPod,
  { limit, known, signal }: { readonly limit: number; readonly known: boolean; readonly signal: AbortSignal },
): Promise<void> {
  if (known || work.measureVolumes === undefined) return
  const bytes = await work.measureVolumes(pod, limit, signal)
  if (bytes > limit) throw tooLarge(bytes, limit)
}

/**
 * Runs a dump into a directory and ends it when its archives become more than the limit.
 *
 * @throws AgentError VolumesTooLarge; what the dump throws.
 */
export async function withinVolumesLimit<T>(
  directory: string,
  limit: number,
  clock: Clock,
  signal: AbortSignal,
  dump: (signal: AbortSignal) => Promise<T>,
  measure: (directory: string) => Promise<number> = archivedBytes,
): Promise<T> {
  const exceeded = new AbortController()
  const over = new AbortController()
  const stop = AbortSignal.any([signal, exceeded.signal])
  const watching = (async () => {
    for (;;) {
      await clock.sleep(lookMs, AbortSignal.any([stop, over.signal]))
      const bytes = await measure(directory)
      if (bytes > limit) exceeded.abort(tooLarge(bytes, limit))
    }
  })().catch(() => undefined)
  try {
    const result = await dump(stop)
    const bytes = await measure(directory)
    if (bytes > limit) throw tooLarge(bytes, limit)
    return result
  } catch (error) {
    if (exceeded.signal.aborted && !signal.aborted) throw exceeded.signal.reason
    throw error
  } finally {
    over.abort()
    await watching
  }
}

/** An archive of nothing; see the driver's files. */
const emptyBytes = 10_240

/** What layers and volumes take up in a draft so far. */
export async function archivedBytes(directory: string): Promise<number> {
  let bytes = 0
  for (const path of await archivesIn(directory)) {
    const size = (await unlessGone(stat(path)))?.size ?? 0
    if (size > emptyBytes) bytes += size
  }
  return bytes
}

async function archivesIn(directory: string): Promise<string[]> {
  const list = (below: string) => listIfThere(join(directory, below))
  const layers = (await list('containers')).map(name => join('containers', name, 'layer.tar'))
  const volumes = (await list('volumes'))
    .filter(name => name.endsWith('.tar'))
    .map(name => join('volumes', name))
  return [...layers, ...volumes, 'shm.tar'].map(path => join(directory, path))
}

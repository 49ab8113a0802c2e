import { type ProcFs, statusOf, treeOf } from './discover/process.ts'
import type { LocatedPod } from './driver/memory-driver.ts'

/**
 * About what the memory of a pod's saved processes takes up in a dump, bytes. Pages that processes share since a fork are
 * dumped with each of them, shared memory once. They go on meanwhile, so it is a moment's estimate.
 *
 * @throws the signal's reason.
 */
export async function sizeOfMemory(fs: ProcFs, pod: LocatedPod, signal: AbortSignal): Promise<number> {
  let own = 0
  let shared = 0
  for (const { app } of pod.containers) {
    if (app === undefined) continue
    for (const pid of await treeOf(fs, app.pid)) {
      signal.throwIfAborted()
      const fields = (await statusOf(fs, pid))?.fields
      own += bytesOf(fields?.get('RssAnon')) + bytesOf(fields?.get('VmSwap'))
      shared = Math.max(shared, bytesOf(fields?.get('RssShmem')))
    }
  }
  return own + shared
}

const bytesOf = (field: string | undefined): number => Number(/^(\d+) kB$/.exec(field ?? '')?.[1] ?? 0) * 1024

import { type ProcFs, statusOf, treeOf } from '../container/process.ts'
import type { LocatedAppContainer } from './memory-driver.ts'

/**
 * Estimates the bytes that the memory of a pod's saved processes takes up in a dump. CRIU dumps pages that processes
 * share since a fork with each of them, and shared memory once. The processes run meanwhile, so the estimate is of one
 * moment.
 *
 * @throws the signal's reason.
 */
export async function sizeOfMemory(
  fs: ProcFs,
  pod: { readonly containers: readonly Pick<LocatedAppContainer, 'app'>[] },
  signal: AbortSignal,
): Promise<number> {
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

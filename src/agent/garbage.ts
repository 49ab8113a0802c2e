import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Bytes of buffers after which those that nobody has any more are let go. */
const often = 32e6

/**
 * Generations pass through this process in buffers, which V8 counts apart from its heap: beside a heap as small as this
 * one it collects all garbage whenever some ten megabytes of them were made, and half of what a refresh costs is that. So
 * they are counted together with the heap, all garbage is collected when this has become two and a half times as much, and
 * young garbage, which is nearly all of it and cheap to find, whenever so many bytes of buffers have passed. See
 * docs/adr/0072, where it is measured. An update of Node.js may drop a flag; setting an unknown one does no harm.
 *
 * @returns to be told of the bytes of each buffer that is garbage soon.
 */
export function collectBuffers(): (bytes: number) => void {
  setFlagsFromString('--external-memory-accounted-in-global-limit')
  setFlagsFromString('--heap-growing-percent=150')
  setFlagsFromString('--expose-gc')
  // This context was made before the flag was set, and has no such function.
  const collect: unknown = runInNewContext('globalThis.gc')
  let bytes = 0
  return more => {
    bytes += more
    if (bytes < often) return
    bytes = 0
    if (typeof collect === 'function') collect({ type: 'minor', execution: 'sync' })
  }
}

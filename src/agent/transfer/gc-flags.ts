import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Bytes of new buffers after which young garbage is collected. */
const often = 32e6
/** All garbage is collected once after so long without new buffers, ms: longer than usual intervals of checkpoints. */
const usualRestMs = 30_000

/** Options of V8's `gc` function. */
interface GcOptions {
  readonly type: 'minor' | 'major'
  readonly execution: 'sync' | 'async'
  readonly flavor?: 'last-resort'
}

/**
 * Makes V8 collect less garbage while generations pass through this process in buffers. V8 counts buffers apart from
 * its heap: with a heap as small as this one it collects all garbage after every ten megabytes or so of new buffers,
 * which is half the cost of a refresh. With these flags it counts buffers together with the heap, and collects all
 * garbage when both have grown to two and a half times their size. Young garbage, which is nearly all of it and cheap
 * to find, is collected after every `often` bytes of buffers. docs/adr/0072 has the measurements. An update of Node.js
 * may drop a flag; an unknown flag does no harm.
 *
 * At rest nothing would ever be collected, and after a burst the process would keep two and a half times what it needs. So
 * all garbage is collected once when no buffers have come for a while.
 *
 * @returns a function to call with the bytes of each buffer that is soon garbage.
 */
export function collectBuffers(restMs = usualRestMs): (bytes: number) => void {
  setFlagsFromString('--external-memory-accounted-in-global-limit')
  setFlagsFromString('--heap-growing-percent=150')
  setFlagsFromString('--expose-gc')
  // This context was made before the flag was set, and has no such function.
  const collect: unknown = runInNewContext('globalThis.gc')
  const gc = (options: GcOptions) => {
    if (typeof collect === 'function') collect(options)
  }
  let young = 0
  let all = 0
  const rest = setTimeout(() => {
    // Any other flavor keeps the emptied pages: 150 MB of heap for 9 MB of objects.
    if (all >= often) gc({ type: 'major', execution: 'async', flavor: 'last-resort' })
    all = 0
  }, restMs).unref()
  return more => {
    young += more
    all += more
    rest.refresh()
    if (young < often) return
    young = 0
    gc({ type: 'minor', execution: 'sync' })
  }
}

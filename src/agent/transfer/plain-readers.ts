/**
 * Whether agents of the version before read from this node. They cannot check files with digests by page, so this node
 * makes none meanwhile: an upgrade replaces one agent after the other.
 */
import type { Clock } from '../../kube/clock.ts'

export interface PlainReaders {
  /** Call it for each of their requests. A reader that waits for a generation asks again twice a minute. */
  note(): void
  readonly any: boolean
}

const forgottenAfterMs = 5 * 60_000

export function createPlainReaders(clock: Pick<Clock, 'monotonic'>): PlainReaders {
  let last: number | undefined
  return {
    note() {
      last = clock.monotonic()
    },
    get any() {
      return last !== undefined && clock.monotonic() - last < forgottenAfterMs
    },
  }
}

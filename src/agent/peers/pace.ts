import type { Clock } from '../../kube/clock.ts'

export interface Pace {
  /**
   * Resolves when so many more bytes may go.
   * @throws the signal's reason
   */
  take(bytes: number, signal: AbortSignal): Promise<void>
}

/**
 * A token bucket: after a pause a tenth of a second's worth may go at once, after that no more than `bytesPerSecond` on
 * average, for all callers together and in their order.
 */
export function createPace(bytesPerSecond: number, clock: Clock): Pace {
  const depthMs = 100
  /** When all that was let through so far has had its time. */
  let paidUntil = clock.monotonic() - depthMs
  return {
    async take(bytes, signal) {
      const now = clock.monotonic()
      paidUntil = Math.max(paidUntil, now - depthMs) + (bytes / bytesPerSecond) * 1000
      if (paidUntil > now) await clock.sleep(paidUntil - now, signal)
      else signal.throwIfAborted()
    },
  }
}

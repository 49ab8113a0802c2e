import type { Clock } from '../../kube/clock.ts'

export interface ByteRate {
  /**
   * Resolves when the caller may send so many more bytes.
   * @throws the signal's reason
   */
  take(bytes: number, signal: AbortSignal): Promise<void>
}

/**
 * Creates a token bucket: after a pause, a tenth of a second's worth of bytes may pass at once; then at most
 * `bytesPerSecond` on average, for all callers together and in their order.
 */
export function createByteRate(bytesPerSecond: number, clock: Clock): ByteRate {
  const depthMs = 100
  /** Time at which all bytes granted so far fit the rate. */
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

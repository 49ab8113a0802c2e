/** The urgency of a stop, given by the reason of an AbortSignal. */

/** A signal with this reason forbids any further write. With any other reason, work in progress may be finished. */
export class StopNow extends Error {
  override readonly name: string = 'StopNow'
}

/** Returns true if a signal with this reason forbids any further write. */
export function mustStopNow(reason: unknown): boolean {
  return reason instanceof StopNow
}

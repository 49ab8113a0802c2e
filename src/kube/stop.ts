/** How urgent the end is, told by the reason of an AbortSignal. */

/** A signal with this reason means: not one write more. Without it, work in progress may be finished. */
export class StopNow extends Error {
  override readonly name: string = 'StopNow'
}

export function mustStopNow(reason: unknown): boolean {
  return reason instanceof StopNow
}

/** How long work on memory may take: it grows with the memory. Slow beyond this means stuck. */

const bytesPerMs = 100_000
const unknownBytes = 1_000_000_000

/** Milliseconds from the stop of a pod to the end of its dump. */
export const dumpDeadlineMs = (lastBytes: number | undefined): number =>
  3_000 + Math.ceil((lastBytes ?? unknownBytes) / bytesPerMs)

export const restoreDeadlineMs = (bytes: number): number => 5_000 + Math.ceil((2 * bytes) / bytesPerMs)

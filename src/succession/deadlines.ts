/** How long work on memory may take: it grows with the memory. Slow beyond this means stuck. */

const bytesPerMs = 100_000
const unknownBytes = 1_000_000_000

/** Milliseconds from the stop of a pod to the end of its dump. */
export const dumpDeadlineMs = (lastBytes: number | undefined): number =>
  3_000 + Math.ceil((lastBytes ?? unknownBytes) / bytesPerMs)

export const restoreDeadlineMs = (bytes: number): number => 5_000 + Math.ceil((2 * bytes) / bytesPerMs)

/** Between the end of the restore and the swap of the Lease: reports, and a pass of the operator. */
const switchMs = 5_000

/** So long a primary stands still for its successor: it is saved once more, brought there, and the slot changes hands. */
export const handoverDeadlineMs = (bytes: number | undefined): number =>
  dumpDeadlineMs(bytes) + restoreDeadlineMs(bytes ?? 0) + switchMs

/** What stands still for a handover that has come to nothing goes on within so long, ms. */
export const handoverSlackMs = 5_000

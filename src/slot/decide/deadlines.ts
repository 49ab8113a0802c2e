/** Limits for work on memory; they grow with its size. Work that takes longer is stuck. */

const bytesPerMs = 100_000
const unknownBytes = 1_000_000_000

/** Returns the milliseconds from the stop of a pod to the end of its dump. */
export const dumpDeadlineMs = (lastBytes: number | undefined): number =>
  3_000 + Math.ceil((lastBytes ?? unknownBytes) / bytesPerMs)

export const restoreDeadlineMs = (bytes: number): number => 5_000 + Math.ceil((2 * bytes) / bytesPerMs)

/** Time between the end of the restore and the swap of the Lease, ms: reports, and a pass of the operator. */
const switchMs = 5_000

/**
 * Returns how long a primary stays stopped for its successor, ms: it is saved once more, the generation is transferred
 * and restored, and the slot changes hands.
 */
export const handoverDeadlineMs = (bytes: number | undefined): number =>
  dumpDeadlineMs(bytes) + restoreDeadlineMs(bytes ?? 0) + switchMs

/** A primary that is stopped for a handover is resumed within this time after the handover has failed, ms. */
export const handoverSlackMs = 5_000

/**
 * An agent writes at least every ten seconds. An agent that has not written for this long could not have withdrawn its
 * report, and may not be able to stop a primary, ms.
 */
export const timelyMs = 12_000

/** How old the news may be that an agent has when it writes, ms: its watches may lag. */
export const watchLagMs = 5_000

/** How long a pod that resumes may take to answer, ms. After that its agent tells that it does not, and waits on. */
export const answersMs = 10_000

/**
 * An agent that is waited for longer than this has seen what the wait is for and written since, or its voters decide about its
 * primary, ms. Longer than `timelyMs`, because its last report may be from before it saw that.
 */
export const outOfReachMs = timelyMs + watchLagMs + 1_000

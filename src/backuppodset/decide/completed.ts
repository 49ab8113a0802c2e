import type { Snapshot } from '../snapshot.ts'

/**
 * Returns the snapshot of a set whose work is done: no pod is to run any more. The pod that has completed is in no list of the
 * snapshot, so it stays for its logs.
 */
export const withCompletion = (s: Snapshot): Snapshot =>
  s.completed === undefined
    ? s
    : { ...s, set: { ...s.set, suspended: false, replicas: 0, hotBackups: 0, coldBackups: 0 } }

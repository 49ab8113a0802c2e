/** The side of the primary: until when it may serve. Its sentinel stops it then, and the kernel drops its packets. */
import type { Electorate, Voter } from '../../../api/fence.ts'
import { setsAsked } from './electorate.ts'
import { answersNeeded } from './quorum.ts'

/**
 * An answer counts for this part of the time-out, from the sending of the heartbeat. The voter waits for the whole time-out
 * from its receipt, so that clocks may differ in rate by up to a fifth.
 */
const answerCountsFor = 2 / 3

/**
 * Returns until when a primary may serve, ms on its own monotonic clock. A primary that is stopped runs again by the same
 * rule, so that a false alarm costs a pause.
 *
 * @param electorate the latest that this primary has read.
 * @param sentAt by voter, when the primary sent the latest heartbeat of this epoch that the voter has answered.
 */
export function servesUntil(
  electorate: Electorate,
  sentAt: ReadonlyMap<Voter, number>,
  nodeTimeoutMs: number,
): number {
  const ends = setsAsked(electorate).map(voters => {
    const times = voters.map(voter => sentAt.get(voter) ?? Number.NEGATIVE_INFINITY)
    const decisive = times.sort((a, b) => b - a)[answersNeeded(voters.length) - 1]
    return decisive ?? Number.NEGATIVE_INFINITY
  })
  return Math.min(...ends) + nodeTimeoutMs * answerCountsFor
}

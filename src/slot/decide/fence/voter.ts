/**
 * The side of a voter: it answers the heartbeats of an epoch, or states that the primary of this epoch is silent. The
 * statement is a promise: the voter does not answer this epoch any more. So it keeps the statement before it tells it, as
 * long as its run lasts, and another run is another voter.
 *
 * The search and the simulation run this code. The sentinel has the same rule in native/sentinel/votes.c.
 */

/** @param stated the latest epoch of the slot for which this voter has stated silence. */
export const mayAnswer = (epoch: number, stated: number | undefined): boolean =>
  stated === undefined || epoch > stated

/**
 * True if the primary has been silent for long enough.
 *
 * @param heardAt when the latest heartbeat came; before the first one, from when on silence counts; ms on its own monotonic clock.
 */
export const mayState = (heardAt: number, now: number, nodeTimeoutMs: number): boolean =>
  now - heardAt >= nodeTimeoutMs

/** A voter tells a suspicion this part of the time-out before its statement, unless it hears a heartbeat. */
export const suspicionShare = 1 / 6

/**
 * The node of a primary may need so long for the first heartbeat of an epoch, ms. Its voters may have heard of the epoch earlier,
 * and their statements would end an epoch in which nothing is wrong. Their silence counts from then on.
 */
export const firstHeartbeatMs = 2_000

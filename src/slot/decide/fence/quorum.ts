/**
 * How many voters decide. Any set of voters that lets a primary serve, and any set that lets another pod take over, have
 * one voter in common, and a voter does only one of the two in an epoch.
 */

/** Name of a voter: a holder's node with the run of its sentinel, or `apiServer`. */
export type Voter = string

/** The voter that is not a holder. It answers by accepting a write, for a server that is cut off still answers reads. */
export const apiServer: Voter = 'api-server'

/**
 * Returns how many of n voters must answer a primary. With two voters, one is enough: a primary serves on without the API
 * server, or without its only holder.
 */
export const answersNeeded = (n: number): number => Math.ceil(n / 2)

/** Returns how many of n voters must state that the primary is silent, before another pod may take over. */
export const statementsNeeded = (n: number): number => n - answersNeeded(n) + 1

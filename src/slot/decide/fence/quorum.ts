/**
 * How many voters decide. Any set of voters that lets a primary serve, and any set that lets another pod take over, have
 * one voter in common, and a voter does only one of the two in an epoch.
 */

/**
 * Returns how many of n voters must answer a primary. With two voters, one is enough: a primary serves on without the API
 * server, or without its only holder.
 */
export const answersNeeded = (n: number): number => Math.ceil(n / 2)

/** Returns how many of n voters must state that the primary is silent, before another pod may take over. */
export const statementsNeeded = (n: number): number => n - answersNeeded(n) + 1

/** Drains of nodes: how a node shows one, and the Migrations that the operator makes for its primaries. */
import { annotations } from './labels.ts'
import type { Migration } from './migration.ts'

/** The condition of a node that is drained, as KEP-5683 proposes it. Any client may write it. */
export const drainCondition = 'DrainInProgress'

/** Tries begin at 1 again after this number: a user who forges a name must not bring them to their end. */
export const mostTries = 999

/** The name has the number of the try, so that two operators, or one that ended in between, make one Migration. */
export const drainMigrationName = (pod: string, number: number): string => `${pod}-drain-${number}`

/** Returns the number of the try in a name; undefined: it is not the name of a Migration of this pod. */
export function drainNumberIn(name: string, pod: string): number | undefined {
  const text = name.startsWith(`${pod}-drain-`) ? name.slice(`${pod}-drain-`.length) : ''
  return /^[1-9]\d{0,2}$/.test(text) ? Number(text) : undefined
}

/** Returns the node that the Migration empties; undefined: a user has made it for another purpose. */
export const drainedNodeOf = ({ metadata }: Pick<Migration, 'metadata'>): string | undefined =>
  metadata.annotations?.[annotations.drainedNode]

/** The name of the disruption budget that the operator makes for the primaries of a set. */
export const budgetName = (set: string): string => `${set}-primaries`

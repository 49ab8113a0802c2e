import type { Electorate, Voter } from '../../../api/fence.ts'
import { statementsNeeded } from './quorum.ts'

/**
 * True if the primary of this epoch does not serve any more, and never will again in this epoch.
 *
 * @param electorate the latest of this epoch. The swap of the slot's Lease is a compare-and-swap on it.
 * @param silent the voters that have stated silence in this epoch, at any time.
 */
export const isFenced = ({ voters }: Pick<Electorate, 'voters'>, silent: ReadonlySet<Voter>): boolean =>
  voters.filter(voter => silent.has(voter)).length >= statementsNeeded(voters.length)

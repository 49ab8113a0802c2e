/**
 * The voters of an epoch, and how they change. A change has two steps, as in the joint consensus of Raft (Ongaro 2014,
 * section 4.3): between them the primary needs both sets, so that no set that a takeover asks is one which the primary
 * does not ask any more.
 */
import type { Electorate, Voter } from '../../../api/fence.ts'

/** Returns the sets of voters of which a primary needs answers. */
export const setsAsked = ({ voters, next }: Electorate): readonly (readonly Voter[])[] =>
  next === undefined ? [voters] : [voters, next]

/**
 * Returns the next step towards the wanted voters, or the same electorate if there is none now.
 *
 * @param acknowledged the latest version that the primary has acknowledged. From then on it asks by that version, or a
 *   later one, also after a restart of its sentinel.
 */
export function stepTowards(
  now: Electorate,
  wanted: readonly Voter[],
  acknowledged: number | undefined,
): Electorate {
  const { version, voters, next } = now
  if (next === undefined)
    return isSame(voters, wanted) ? now : { version: version + 1, voters, next: [...wanted].sort() }
  if (acknowledged === undefined || acknowledged < version) return now
  return { version: version + 1, voters: next }
}

const isSame = (a: readonly Voter[], b: readonly Voter[]): boolean =>
  a.length === b.length && a.every(voter => b.includes(voter))

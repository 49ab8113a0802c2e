/**
 * The fence of a slot as its Lease should have it: who votes, and when a new term begins. The Lease of every primary on
 * stage has a fence if other nodes keep its memory and can hear it.
 */
import {
  apiServerVoter,
  type Fence,
  mostVoters,
  nodeVoter,
  type Voter,
  withoutVoters,
} from '../../../api/fence.ts'
import type { SlotReport } from '../../../api/node-report.ts'
import type { NodeView } from '../memory-view.ts'
import { stepTowards } from './electorate.ts'

/** Between two steps the Lease has two sets of voters, and one of each is the API server. */
const mostHolders = mostVoters / 2 - 1

/**
 * Returns the voters for a primary on this node; empty: it has no fence. Without a holder that votes no other pod could
 * have its memory.
 *
 * @param holders nodes that the Lease names, the heir's first.
 * @param now the present voters: the sentinel of an agent that starts, or whose checks fail, votes on.
 */
export function wantedVoters(
  nodes: ReadonlyMap<string, Pick<NodeView, 'ready' | 'silent' | 'vote'>>,
  source: string | undefined,
  holders: readonly string[],
  now: readonly Voter[] = [],
): readonly Voter[] {
  const vote = nodes.get(source ?? '')?.vote
  if (vote?.run === undefined) return []
  const voting = holders.flatMap(name => {
    const { ready, silent, vote: { run } = {} } = nodes.get(name) ?? {}
    if (run === undefined || name === source) return []
    const voter = nodeVoter(name, run)
    return ready || (!silent && now.includes(voter)) ? [voter] : []
  })
  return voting.length === 0 ? [] : [apiServerVoter(vote), ...voting.slice(0, mostHolders)].sort()
}

export interface Wanted {
  readonly voters: readonly Voter[]
  /** The `nodeTimeout` of the owner, ms; undefined: it wants no fences. */
  readonly timeoutMs: number | undefined
  /** The word of the primary's sentinel. */
  readonly acknowledged: SlotReport['acknowledged']
  /** Another pod is to have the slot, and the agent of the primary cannot be reached. */
  readonly isUnwanted: boolean
  /** The agent of the primary writes: it can tell its sentinel of other voters, and acknowledge them. */
  readonly isReachable: boolean
  /** The voters have stated that the primary is silent, and it serves on: a statement counts for its term for ever. */
  readonly isRecovered: boolean
}

/**
 * Returns the fence of the same primary after this pass.
 *
 * @param now the fence in its Lease.
 */
export function nextFence(now: Fence | undefined, wanted: Wanted): Fence | undefined {
  const { voters, timeoutMs, acknowledged, isRecovered, isUnwanted, isReachable } = wanted
  // Its voters decide about a primary that is cut off. Without them, nothing would stop it.
  if (now?.isArmed && !isReachable) return { ...now, isRevoked: now.isRevoked || isUnwanted }
  if (timeoutMs === undefined || voters.length === 0)
    return now === undefined || now.version === 0 ? now : withoutVoters(now)
  if (now === undefined) return firstOf(1, voters, timeoutMs)
  if (now.version === 0) return firstOf(now.term, voters, timeoutMs)
  if (now.timeoutMs !== timeoutMs || isRecovered) return firstOf(now.term + 1, voters, timeoutMs)
  const version = acknowledged?.term === now.term ? acknowledged.version : undefined
  const { term, isArmed, isRevoked } = now
  return {
    ...{ term, timeoutMs, isArmed: isArmed || (version ?? 0) > 0, isRevoked: isRevoked || isUnwanted },
    ...stepTowards({ version: now.version, voters: now.voters, ...nextOf(now) }, voters, version),
  }
}

/** Returns the fence with which another pod, or another incarnation, gets the slot. */
export const fenceOfSuccessor = (fence: Fence | undefined): Fence | undefined => fence && withoutVoters(fence)

const firstOf = (term: number, voters: readonly Voter[], timeoutMs: number): Fence => ({
  ...{ term, version: 1, voters, timeoutMs, isArmed: false, isRevoked: false },
})

const nextOf = ({ next }: Fence) => (next === undefined ? {} : { next })

/** Slots whose primaries have voters. */
import { apiServerVoter, type Fence, nodeVoter } from '../../api/fence.ts'
import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import type { NodeVote, Votes } from '../decide/memory-view.ts'

/** The sentinel and the report of a node. */
export const voteOf = (node: string): NodeVote & { readonly run: string } => ({
  run: Buffer.from(node.padEnd(8).slice(0, 8)).toString('hex'),
  ...{ uid: `uid-${node}`, resourceVersion: '7', silences: 0 },
})

/** The API server and the holders vote on the primary of this Lease. */
export const votersOf = ({ node = '', holders }: Pick<NumberedSlotLease, 'node' | 'holders'>) => ({
  api: apiServerVoter(voteOf(node)),
  nodes: holders.map(name => nodeVoter(name, voteOf(name).run)),
})

export const makeFence = (
  lease: Pick<NumberedSlotLease, 'node' | 'holders'>,
  over: Partial<Fence> = {},
): Fence => {
  const { api, nodes } = votersOf(lease)
  return {
    term: 1,
    version: 1,
    voters: [api, ...nodes].sort(),
    timeoutMs: 3_000,
    isArmed: true,
    isRevoked: false,
    ...over,
  }
}

/** All holders have stated that the primary is silent, and its agent has been silent for longer. */
export const makeVotes = (
  lease: Pick<NumberedSlotLease, 'node' | 'holders'>,
  over: Partial<Votes> = {},
): Votes => ({
  silent: new Set(votersOf(lease).nodes),
  ...{ termSeenAt: 0, statedAt: 0, suspectedAt: 0, isHeard: false, unheardMs: 4_000, isReachable: true },
  ...over,
})

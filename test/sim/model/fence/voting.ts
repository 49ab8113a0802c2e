/** The knowledge of a machine's sentinels of primaries and votes. It outlives a sentinel, and ends with the boot. */
import { createHash } from 'node:crypto'
import type { HeartbeatPeer, VoteRequest, VotingNews } from '../../../../src/agent/sentinel/client.ts'
import type { Electorate, Voter } from '../../../../src/api/fence.ts'
import { mayAnswer } from '../../../../src/slot/decide/fence/voter.ts'

/** The beats of one primary to one voter, and the way back. */
export interface Exchange {
  /** The voter receives beats, and counts them. */
  hears: boolean
  /** Its answers arrive. */
  answers: boolean
  /** When the first beat comes through, true time, ms; undefined: none does. */
  beginsAt: number | undefined
}

/** The epoch of a slot that a sentinel claims for a pod. */
export interface Claim {
  readonly slot: string
  readonly term: number
  readonly timeoutMs: number
  /** When the latest beat was sent that this voter has answered, true time, ms. */
  readonly sentAt: Map<Voter, number>
  /** Voters that have stated that its primary is silent. */
  readonly refused: Set<Voter>
  readonly exchanges: Map<Voter, Exchange>
}

export interface Asked {
  readonly claim: Claim
  readonly electorate: Electorate
}

/** A pod that has a slot. */
export interface Primary {
  readonly uid: string
  readonly slot: string
  /** The voters that the sentinel has acknowledged; undefined: none yet. */
  current: Asked | undefined
  /** Voters that have not answered yet. */
  pending:
    | (Asked & { readonly until: number; readonly end: (refusal: string | undefined) => void })
    | undefined
  serves: boolean
  /** When the sentinel last told that an answer of the API server is wanted. */
  toldAloneAt: number
}

export interface Vote extends VoteRequest {
  /** False: this node is no voter any more, and keeps only its statement. */
  isOpen: boolean
  stated: number | undefined
  /** Its listeners know that it will state the silence soon. */
  isSuspect: boolean
  /** When the latest beat came, or since when the sentinel listens; true time, ms. */
  heardAt: number
}

export interface Voting {
  readonly run: string
  /** The process of the sentinel runs. */
  isUp: boolean
  /** How many processes it has had before. */
  restarts: number
  port: number | undefined
  readonly peers: Map<string, HeartbeatPeer>
  /** By pod. */
  readonly primaries: Map<string, Primary>
  /** The latest version that was acknowledged, by slot. */
  readonly acknowledged: Map<
    string,
    { readonly uid: string; readonly term: number; readonly version: number }
  >
  /** By slot. */
  readonly votes: Map<string, Vote>
  readonly listeners: Set<(news: VotingNews) => void>
}

/** @param boot another boot is another voter */
export const createVoting = (machine: string, boot: number): Voting => ({
  run: createHash('sha256').update(`${machine} ${boot}`).digest('hex').slice(0, 16),
  isUp: true,
  restarts: 0,
  port: undefined,
  peers: new Map(),
  primaries: new Map(),
  acknowledged: new Map(),
  votes: new Map(),
  listeners: new Set(),
})

export const askedBy = ({ current, pending }: Primary): readonly Asked[] =>
  [current, pending].filter(each => each !== undefined)

export type Verdict = 'Answered' | 'Refused' | 'Unknown'

/** Answers a claim like the sentinel: only one that it would also state to be silent. */
export function judge(
  { votes }: Voting,
  { slot, term, timeoutMs }: Claim,
  from: { readonly name: string; readonly run: string },
): Verdict {
  const vote = votes.get(slot)
  if (vote === undefined) return 'Unknown'
  if (term < vote.term || !mayAnswer(term, vote.stated)) return 'Refused'
  const isKnown = vote.isOpen && vote.node === from.name && vote.run === from.run
  if (!isKnown || term !== vote.term || timeoutMs > vote.timeoutMs) return 'Unknown'
  return vote.isDenied ? 'Refused' : 'Answered'
}

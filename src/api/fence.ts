/**
 * The voters of a slot, in its Lease: they decide whether its primary still serves. The rule is in
 * `src/slot/decide/fence`; docs/adr/0128-fencing.md has its reasons.
 */
import { createHash } from 'node:crypto'
import { readAnnotation } from './json-annotation.ts'

/** Name of a voter: see `nodeVoter` and `apiServerVoter`. */
export type Voter = string

export interface Electorate {
  /** Increases with each step. 0: a term begins, without voters. */
  readonly version: number
  readonly voters: readonly Voter[]
  /** The voters from the next step on. */
  readonly next?: readonly Voter[] | undefined
}

export interface Fence extends Electorate {
  /**
   * Increases with each primary of the slot, and when its voters have stated that a primary is silent which serves on:
   * what a voter has stated counts for its term. The rule and the sentinel call it the epoch.
   */
  readonly term: number
  /** For so long a voter hears nothing before it states that the primary is silent, ms. The same for the whole term. */
  readonly timeoutMs: number
  /** The sentinel of the primary has acknowledged a version of this term: from then on it stops without answers. */
  readonly isArmed: boolean
  /**
   * The operator wants another pod in its place, and cannot reach its agent: voters answer it no more in this term, and
   * state that it is silent once its answers have ended.
   */
  readonly isRevoked: boolean
}

/** The sentinel on a node, in one of its runs: a sentinel that has lost its promises is another voter. */
export const nodeVoter = (node: string, run: string): Voter => `${node}/${run}`

/** No node has this name. */
const apiServer = 'API'

/**
 * The API server, for the primaries of one node. It answers when it takes a write of the node's report, and states that
 * the node is silent by the annotation `silencesAnnotation`, which makes it another voter.
 *
 * @param uid that of the report.
 */
export const apiServerVoter = ({
  uid,
  silences,
}: {
  readonly uid: string
  readonly silences: number
}): Voter =>
  nodeVoter(apiServer, createHash('sha256').update(`${uid}/${silences}`).digest('hex').slice(0, 16))

export const isApiServer = (voter: Voter): boolean => voter.startsWith(`${apiServer}/`)

/** Returns the node and the run in the name of a voter. */
export function partsOf(voter: Voter): { readonly node: string; readonly run: string } {
  const at = voter.lastIndexOf('/')
  return { node: voter.slice(0, at), run: voter.slice(at + 1) }
}

/** As many as the sentinel takes for both steps together (native/sentinel/quorum.h). */
export const mostVoters = 16

const format = 1

/** Characters. Agents parse it at each change of its Lease. */
const longest = 8_192

/** The next term begins without voters. That of the Lease stays, so that voters answer no primary of an earlier one. */
export const withoutVoters = ({ term, timeoutMs }: Pick<Fence, 'term' | 'timeoutMs'>): Fence => ({
  ...{ term: term + 1, version: 0, voters: [], timeoutMs, isArmed: false, isRevoked: false },
})

/** The primary that a fence is about. */
export interface FenceOwner {
  readonly incarnation: string
  readonly epoch: number
}

/** Returns the text by which an annotation of the Lease names the primary that it is about. */
export const formatFenceOwner = ({ incarnation, epoch }: FenceOwner): string => `${incarnation}/${epoch}`

export const formatFence = (fence: Fence, of: FenceOwner): string =>
  JSON.stringify({ v: format, of: formatFenceOwner(of), ...fence })

/**
 * Parses the annotation; undefined if it is absent, of another format, or no fence. An operator of a version before
 * fences leaves the annotation of an earlier primary in the Lease: then only its term counts.
 */
export function parseFence(text: string | undefined, of: FenceOwner): Fence | undefined {
  const given = readAnnotation(text, longest)
  if (given?.['v'] !== format) return undefined
  const { term, version, timeoutMs, voters, next, isArmed, isRevoked } = given
  if (!isCount(term) || !isCount(version) || !isCount(timeoutMs)) return undefined
  if (!areVoters(voters) || (next !== undefined && !areVoters(next))) return undefined
  // Without voters no primary may serve, so agents must not take this for an electorate.
  if ((version === 0) !== (voters.length === 0) || next?.length === 0) return undefined
  if (new Set([...voters, ...(next ?? [])]).size > mostVoters) return undefined
  if (typeof isArmed !== 'boolean' || typeof isRevoked !== 'boolean') return undefined
  if (given['of'] !== formatFenceOwner(of)) return withoutVoters({ term, timeoutMs })
  return { term, version, timeoutMs, voters, ...(next !== undefined && { next }), isArmed, isRevoked }
}

/** The sentinel takes no larger number (native/sentinel/number.h). */
const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff

const areVoters = (given: unknown): given is readonly Voter[] =>
  Array.isArray(given) &&
  given.every(
    voter => typeof voter === 'string' && /^[A-Za-z0-9][-A-Za-z0-9.]{0,252}\/[0-9a-f]{16}$/.test(voter),
  )

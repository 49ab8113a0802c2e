/** The statements about the primary of one slot, from the reports of its voters. */
import { apiServerVoter, isApiServer, nodeVoter, partsOf, type Voter } from '../../api/fence.ts'
import type { SlotReport } from '../../api/node-report.ts'
import { isSameSlot } from '../../api/slot-key.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { Clock } from '../../kube/clock.ts'
import { timelyMs } from '../decide/deadlines.ts'
import { setsAsked } from '../decide/fence/electorate.ts'
import type { NodeVote, Votes } from '../decide/memory-view.ts'
import type { Reports } from './reports.ts'
import type { Since } from './since.ts'

interface VotesDeps {
  readonly reports: Pick<Reports, 'voteOf' | 'unheardFor' | 'hasWrittenSince'>
  readonly clock: Pick<Clock, 'monotonic'>
}

/** @param told what all nodes report about slots of the owner. */
export function votesOf(
  lease: SlotLease,
  told: readonly { readonly node: string; readonly slot: SlotReport }[],
  { reports, clock }: VotesDeps,
  since: ReturnType<Since['pass']>,
): Votes | undefined {
  const { fence, node = '' } = lease
  if (fence === undefined || fence.version === 0) return undefined
  const term = `${lease.namespace}/${lease.name}/${lease.incarnation}/${fence.term}`
  const said = told.flatMap(({ node: name, slot }) => {
    const run = reports.voteOf(name)?.run
    if (run === undefined || !isSameSlot(slot, lease)) return []
    const isStated = (slot.silentTerm ?? 0) >= fence.term
    const suspectedAt = since(`suspected/${term}/${name}`, isStated || (slot.suspectTerm ?? 0) >= fence.term)
    return isStated ? [{ voter: nodeVoter(name, run), suspectedAt }] : []
  })
  const nodes = said.map(({ voter }) => voter)
  const unheardMs = reports.unheardFor(node)
  const report = reports.voteOf(node)
  const api = fence.voters.filter(voter => isApiServer(voter) && apiServerAs(voter, report) === 'Stated')
  const now = clock.monotonic()
  const ends = [...new Set(setsAsked(fence).flat())].flatMap(voter => {
    const overSince = since(`over/${voter}`, isOver(voter, reports, report))
    return overSince === undefined ? [] : [{ voter, at: overSince + fence.timeoutMs }]
  })
  const over = ends.flatMap(({ voter, at }) => (at <= now ? [voter] : []))
  const toCome = ends.flatMap(({ at }) => (at > now ? [at] : []))
  // A holder that was restarted says nothing about the primary. But if another pod is to have the slot, it counts.
  const isStated = fence.voters.some(
    voter => !isApiServer(voter) && (nodes.includes(voter) || (fence.isRevoked && over.includes(voter))),
  )
  const statedAt = since(`stated/${term}`, isStated)
  // Where no holder states anything, no takeover follows. The term still needs the API server as another voter: a statement
  // about the node ends its answers for all primaries there, and an agent that writes again does not bring them back.
  const isSilent = unheardMs >= fence.timeoutMs || !isStated
  const silent = new Set([...nodes, ...over, ...(isSilent ? api : [])])
  return {
    silent,
    overAt: earliest(toCome),
    termSeenAt: since(`term/${term}`, true) ?? now,
    statedAt,
    suspectedAt: earliest(
      said.flatMap(({ voter, suspectedAt }) =>
        suspectedAt !== undefined && fence.voters.includes(voter) ? [suspectedAt] : [],
      ),
    ),
    isHeard: statedAt !== undefined && reports.hasWrittenSince(node, statedAt + fence.timeoutMs),
    unheardMs,
    isReachable: reports.hasWrittenSince(node, now - timelyMs),
  }
}

const earliest = (times: readonly number[]): number | undefined =>
  times.length === 0 ? undefined : Math.min(...times)

/**
 * A voter whose run is over answers no more, and keeps no promises: once its last answer has ended, it is silent.
 *
 * @param report that of the primary's node, by which the API server votes.
 */
function isOver(voter: Voter, reports: Pick<Reports, 'voteOf'>, report: NodeVote | undefined): boolean {
  if (isApiServer(voter)) return apiServerAs(voter, report) === 'Over'
  const { node, run } = partsOf(voter)
  const present = reports.voteOf(node)?.run
  return present !== undefined && present !== run
}

/** The API server makes few statements about a node before all its primaries have other voters. */
const mostStatements = 32

/**
 * Returns what has become of the API server as this voter. `Stated`: the report has a higher number of statements.
 * `Over`: no write can be an answer, because the report by which it answered is gone, or another report is in its place.
 */
function apiServerAs(voter: Voter, report: NodeVote | undefined): 'Present' | 'Stated' | 'Over' {
  if (report === undefined) return 'Over'
  if (voter === apiServerVoter(report)) return 'Present'
  const { uid, silences } = report
  const earlier = Array.from({ length: Math.min(silences, mostStatements) }, (_, back) => silences - 1 - back)
  return earlier.some(each => voter === apiServerVoter({ uid, silences: each })) ? 'Stated' : 'Over'
}

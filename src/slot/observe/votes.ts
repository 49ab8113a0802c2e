/** The statements about the primary of one slot, from the reports of its voters. */
import { apiServerVoter, isApiServer, nodeVoter, partsOf, type Voter } from '../../api/fence.ts'
import type { SlotReport } from '../../api/node-report.ts'
import { isSameSlot } from '../../api/slot-key.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import type { Clock } from '../../kube/clock.ts'
import type { NodeVote, Votes } from '../decide/memory-view.ts'
import { type Reports, timelyMs } from './reports.ts'
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
  const nodes = told.flatMap(({ node: name, slot }) => {
    const run = reports.voteOf(name)?.run
    const isStated = isSameSlot(slot, lease) && (slot.silentTerm ?? 0) >= fence.term
    return isStated && run !== undefined ? [nodeVoter(name, run)] : []
  })
  const unheardMs = reports.unheardFor(node)
  const api = statedByApiServer(fence.voters, reports.voteOf(node))
  const term = `${lease.namespace}/${lease.name}/${lease.incarnation}/${fence.term}`
  const isLongOver = (voter: Voter) => {
    const at = since(`over/${voter}`, isOver(voter, reports, node))
    return at !== undefined && clock.monotonic() - at >= fence.timeoutMs
  }
  const over = fence.voters.filter(isLongOver)
  const silent = new Set([...nodes, ...over, ...(unheardMs >= fence.timeoutMs ? api : [])])
  // A holder that was restarted says nothing about the primary. But if another pod is to have the slot, it counts.
  const isStated = fence.voters.some(
    voter => !isApiServer(voter) && (nodes.includes(voter) || (fence.isRevoked && over.includes(voter))),
  )
  const statedAt = since(`stated/${term}`, isStated)
  return {
    silent,
    termSeenAt: since(`term/${term}`, true) ?? clock.monotonic(),
    statedAt,
    isHeard: statedAt !== undefined && reports.hasWrittenSince(node, statedAt + fence.timeoutMs),
    unheardMs,
    isReachable: reports.hasWrittenSince(node, clock.monotonic() - timelyMs),
  }
}

/** A voter whose run is over answers no more, and keeps no promises: once its last answer has ended, it is silent. */
function isOver(voter: Voter, reports: Pick<Reports, 'voteOf'>, node: string): boolean {
  // Without this report of the node, no write to it can be an answer. Another one may be in its place.
  if (isApiServer(voter)) {
    const report = reports.voteOf(node)
    return report === undefined || (voter !== apiServerVoter(report) && !isEarlier(voter, report))
  }
  const { node: name, run } = partsOf(voter)
  const present = reports.voteOf(name)?.run
  return present !== undefined && present !== run
}

/** The API server makes few statements about a node before all its primaries have other voters. */
const mostStatements = 32

/** Returns the voters for which the API server has made its statement: the report has a higher number of statements. */
const statedByApiServer = (voters: readonly Voter[], report: NodeVote | undefined): readonly Voter[] =>
  report === undefined ? [] : voters.filter(voter => isApiServer(voter) && isEarlier(voter, report))

const isEarlier = (voter: Voter, { uid, silences }: NodeVote): boolean =>
  Array.from({ length: Math.min(silences, mostStatements) }, (_, back) => silences - 1 - back).some(
    earlier => voter === apiServerVoter({ uid, silences: earlier }),
  )

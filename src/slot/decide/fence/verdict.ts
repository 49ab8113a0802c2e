/** The operator's decision about a primary whose voters have stated that it is silent. */
import { apiServerVoter, type Fence, isApiServer } from '../../../api/fence.ts'
import type { SlotActionOf } from '../actions.ts'
import { timelyMs } from '../deadlines.ts'
import { usableOf } from '../knowledge.ts'
import type { SlotMemory, Votes } from '../memory-view.ts'
import type { SlotSnapshot } from '../snapshot.ts'
import { setsAsked } from './electorate.ts'
import { isFenced } from './fenced.ts'
import { suspicionShare } from './voter.ts'

export type Verdict =
  /** No voter states anything about it, or it has no fence. */
  | { readonly type: 'Serves'; readonly lookAgainMs?: number }
  /** It does not serve any more, and never will again in this term, or its node is out of service: another pod takes over. */
  | { readonly type: 'Promote' }
  /** Only the API server's statement is missing, and the operator may make it. */
  | {
      readonly type: 'FenceThenPromote'
      readonly statement: SlotActionOf<'stateSilence'>
      readonly lookAgainMs: number
    }
  /** Statements are missing. */
  | { readonly type: 'WaitForFence'; readonly lookAgainMs: number }
  /** Its node is there again: it needs a new term, because its voters answer it no more in this one. */
  | { readonly type: 'RecoverInPlace' }
  /** No other pod could continue with its memory, so it may as well come back. */
  | { readonly type: 'NothingUsable'; readonly lookAgainMs?: number }
  /** Most nodes are silent at once. */
  | { readonly type: 'OperatorBlind'; readonly lookAgainMs: number }

/** The shortest time from one term of a primary to the next, ms: while its voters cannot hear it, each one ends. */
const recoveryMs = 10_000

/** The agent of a primary that asks for answers of the API server writes once in this part of the time-out. */
const writesEvery = 1 / 6

/**
 * A verdict names the time after which the operator looks again wherever time alone may change it, or a write of the
 * primary's agent: a write that changes nothing in a report but its time begins no pass.
 */
export function verdictOf(
  s: Pick<SlotSnapshot, 'memory' | 'monotonicNow'>,
  slot: Pick<SlotMemory, 'lease' | 'copies' | 'votes'>,
): Verdict {
  const { votes, lease } = slot
  // The word of who can know outweighs all votes, and needs none.
  if (s.memory?.nodes.get(lease.node ?? '')?.outOfService)
    return { type: isUsable(slot) ? 'Promote' : 'NothingUsable' }
  const { fence } = lease
  if (fence === undefined || votes === undefined) return { type: 'Serves' }
  if (votes.statedAt === undefined) {
    // An agent that writes again can stop its primary itself, if it has to. And voters that were restarted do not state
    // anything, but answer no more.
    const isStuck = fence.isRevoked || setsAsked(fence).some(voters => isFenced({ voters }, votes.silent))
    if (!isStuck) return serves(votes, s.monotonicNow)
    return votes.isReachable
      ? recovery(votes, s.monotonicNow)
      : { type: 'WaitForFence', lookAgainMs: fence.timeoutMs }
  }
  const heldMs = s.memory?.heldMs ?? 0
  // Statements of a disturbance that concerns many nodes come one after the other. The operator waits for more of them.
  const settlesMs = (votes.suspectedAt ?? votes.statedAt) + fence.timeoutMs * suspicionShare - s.monotonicNow
  const mayPromote = heldMs === 0 && settlesMs <= 0 && fence.isArmed && isUsable(slot)
  if (mayPromote && isFenced(fence, votes.silent)) return { type: 'Promote' }
  const unheardMs = fence.timeoutMs - votes.unheardMs
  // After a silence of its agent, its sentinel may never acknowledge a new term. And its node may be lost while it waits for one.
  if (votes.isHeard && unheardMs > 0) return recovery(votes, s.monotonicNow, unheardMs)
  if (heldMs > 0) return { type: 'OperatorBlind', lookAgainMs: heldMs }
  if (settlesMs > 0) return { type: 'WaitForFence', lookAgainMs: settlesMs }
  if (!fence.isArmed) return { type: 'WaitForFence', lookAgainMs: fence.timeoutMs }
  if (!isUsable(slot))
    return { type: 'NothingUsable', lookAgainMs: untilHeard(votes.statedAt, votes, fence, s.monotonicNow) }
  if (unheardMs > 0) return { type: 'WaitForFence', lookAgainMs: unheardMs }
  const statement = statementFor(s, slot)
  return statement === undefined
    ? { type: 'WaitForFence', lookAgainMs: fence.timeoutMs }
    : // If the agent has written meanwhile, the API server makes no statement.
      { type: 'FenceThenPromote', statement, lookAgainMs: fence.timeoutMs }
}

const serves = ({ overAt }: Votes, now: number): Verdict =>
  overAt === undefined ? { type: 'Serves' } : { type: 'Serves', lookAgainMs: Math.max(0, overAt - now) }

/**
 * Returns the ms until the primary may be recovered. If its agent writes, its sentinel may keep it stopped until the next
 * term, and that term may begin with the first write which is a time-out after the first statement.
 */
function untilHeard(statedAt: number, { unheardMs }: Votes, { timeoutMs }: Fence, now: number): number {
  // The node may be away for long.
  if (unheardMs >= timeoutMs) return timeoutMs
  return Math.max(0, statedAt + timeoutMs - now) + timeoutMs * writesEvery
}

function recovery({ termSeenAt }: Votes, now: number, atMostMs = Number.POSITIVE_INFINITY): Verdict {
  const leftMs = termSeenAt + recoveryMs - now
  return leftMs > 0
    ? { type: 'WaitForFence', lookAgainMs: Math.min(leftMs, atMostMs) }
    : { type: 'RecoverInPlace' }
}

/**
 * True if nothing shows that the primary of the slot has stopped, or that its agent can stop it: no other pod may have the
 * slot before its voters have made sure.
 */
export function isOutOfReach(s: SlotSnapshot, slot: SlotMemory | undefined): boolean {
  const { votes, lease } = slot ?? {}
  if (slot === undefined || votes === undefined || lease?.fence === undefined || votes.isReachable)
    return false
  const { isArmed, voters } = lease.fence
  // Its sentinel may have acknowledged the term, and its node lost the API server before that was in a report. Then its
  // voters hear it. Its agent has not written for long, so the answers of the API server are over.
  if (!isArmed) return !isFenced({ voters }, new Set([...votes.silent, ...voters.filter(isApiServer)]))
  return !isFencedOff(s, slot)
}

/** True if that has lasted since this process began to look. A process that has just started must not revoke a term for that. */
export const isLongOutOfReach = (s: SlotSnapshot, slot: SlotMemory | undefined): boolean =>
  isOutOfReach(s, slot) && (slot?.votes?.unheardMs ?? 0) >= timelyMs

/** True if the node of another pod could restore this memory now. */
const isUsable = (slot: Pick<SlotMemory, 'lease' | 'copies'>): boolean =>
  usableOf(slot).some(copy => copy.node !== slot.lease.node && !copy.stale)

/** Returns the statement of the API server; undefined if a takeover needs other statements too. */
function statementFor(
  { memory }: Pick<SlotSnapshot, 'memory'>,
  { lease: { fence, node = '' }, votes }: Pick<SlotMemory, 'lease' | 'votes'>,
): SlotActionOf<'stateSilence'> | undefined {
  const report = memory?.nodes.get(node)?.vote
  if (fence === undefined || report === undefined) return undefined
  const silent = new Set([...(votes?.silent ?? []), apiServerVoter(report)])
  if (!isFenced(fence, silent)) return undefined
  const { uid, resourceVersion, silences } = report
  return { type: 'stateSilence', node, report: { uid, resourceVersion }, silences: silences + 1 }
}

/** True if the slot's primary does not serve any more, by its voters or because its node is out of service. */
export const isFencedOff = (s: SlotSnapshot, slot: SlotMemory | undefined): boolean =>
  slot !== undefined && verdictOf(s, slot).type === 'Promote'

/** Returns the API server's statements that are due. One about a node counts for all its primaries. */
export function dueStatements(s: SlotSnapshot): readonly SlotActionOf<'stateSilence'>[] {
  const byNode = new Map<string, SlotActionOf<'stateSilence'>>()
  for (const slot of s.memory?.slots.values() ?? []) {
    if (slot.lease.retainedSince !== undefined) continue
    const verdict = verdictOf(s, slot)
    if (verdict.type === 'FenceThenPromote') byNode.set(verdict.statement.node, verdict.statement)
  }
  return [...byNode.values()]
}

/** Returns the slots for which no pod takes over, although voters state that their primaries are silent. */
export const heldSlots = (s: Pick<SlotSnapshot, 'memory' | 'monotonicNow'>): readonly number[] =>
  [...(s.memory?.slots.values() ?? [])]
    .filter(slot => verdictOf(s, slot).type === 'OperatorBlind')
    .map(({ lease }) => lease.slot)

/** Returns the ms until a verdict may change with time alone; undefined if none does. */
export const untilVerdict = (s: SlotSnapshot): number | undefined =>
  untilVerdictOn(
    s,
    // The primary of a retained slot has ended, and no pod takes over.
    [...(s.memory?.slots.values() ?? [])].filter(({ lease }) => lease.retainedSince === undefined),
  )

/** The same for these slots only. */
export function untilVerdictOn(s: SlotSnapshot, slots: readonly SlotMemory[]): number | undefined {
  const left = slots.flatMap(slot => {
    const verdict = verdictOf(s, slot)
    return 'lookAgainMs' in verdict ? (verdict.lookAgainMs ?? []) : []
  })
  return left.length === 0 ? undefined : Math.min(...left)
}

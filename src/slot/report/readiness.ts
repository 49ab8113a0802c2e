/** The condition CheckpointReady of a set that keeps memory. */

import { isCloning } from '../../api/clone-of.ts'
import { reasons } from '../../api/reasons.ts'
import type { SlotStatus } from '../../api/slot-status.ts'
import { isGone, usableOf } from '../decide/knowledge.ts'
import type { MemoryView, NodeView, Word } from '../decide/memory-view.ts'
import type { Candidate } from '../decide/snapshot.ts'

export interface Readiness {
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

interface Times {
  readonly monotonicNow: number
  /** The interval that the set asks for. */
  readonly intervalMs: number
  readonly isPaused?: boolean
}

/**
 * Returns whether every primary's memory could be taken over, and is still being saved; if not, the first problem.
 */
export function checkpointReadiness(
  memory: MemoryView,
  pods: readonly Candidate[],
  slots: readonly SlotStatus[],
  times: Times,
): Readiness {
  const { refused, caveats = [] } = memory
  const problem =
    refused ??
    nodesProblem(memory) ??
    waitingSlot(memory) ??
    vacantSlot(memory, pods, times) ??
    firstOf(slots, slot => unprotectedSlot(memory, pods, slot)) ??
    firstOf(slots, slot => staleSlot(memory, pods, slot, times))
  const withCaveats = (message: string) => [message, ...caveats.map(caveat => caveat.message)].join('; ')
  if (problem !== undefined)
    return { status: 'False', reason: problem.reason, message: withCaveats(problem.message) }
  const cold = slots.filter(({ protection }) => protection === 'Cold').length
  const told =
    `successors could take over the memory of ${slots.length} primaries` +
    (cold === 0 ? '' : `, ${cold} of them after a pod is woken or created`)
  return {
    status: 'True',
    reason: caveats[0]?.reason ?? reasons.allProtected,
    message: withCaveats(told),
  }
}

function firstOf<T>(items: readonly T[], problemOf: (item: T) => Word | undefined): Word | undefined {
  for (const item of items) {
    const problem = problemOf(item)
    if (problem !== undefined) return problem
  }
  return undefined
}

function nodesProblem(memory: MemoryView): Word | undefined {
  const nodes = [...memory.nodes.values()]
  const [first] = nodes
  if (first === undefined) {
    const message =
      'no node reports: install the agent (DaemonSet understudy-agent), or see the logs of its pods'
    return { reason: reasons.noAgents, message }
  }
  if (nodes.some(node => node.ready)) return undefined
  const message = `no node can keep memory; ${first.name}: ${first.problem ?? 'not ready'}`
  return { reason: reasons.noNodeReady, message }
}

/**
 * Names the first slot that has no primary and whose memory is kept, but can be restored nowhere now: which nodes keep it,
 * and why they cannot restore it.
 */
function waitingSlot({ slots, giveUpAfterMs }: MemoryView): Word | undefined {
  const slot = [...slots.values()].find(
    each => each.vacantSince !== undefined && !isGone(each) && usableOf(each).length === 0,
  )
  if (slot === undefined) return undefined
  if (isCloning(slot.lease)) {
    const message = `slot ${slot.lease.slot} has no memory yet: the condition Cloned says how far its copy of the memory of ${slot.lease.holder.name} is`
    return { reason: reasons.cloning, message }
  }
  const how = slot.lease.cloneOf === undefined ? 'empty' : 'with the memory of its source again'
  const after =
    giveUpAfterMs === undefined
      ? `it starts ${how} only if checkpoint.giveUpAfterSeconds is set`
      : `it starts ${how} after ${giveUpAfterMs / 1000} s`
  const where = [
    ...slot.copies.map(
      ({ node, stale, report }) =>
        `${node} (${stale ? 'its agent is silent or starting' : (report.message ?? report.reason ?? 'not usable yet')})`,
    ),
    ...slot.unasked.map(({ node, why }) => `${node} (${why})`),
  ]
  const message = `slot ${slot.lease.slot} waits for its memory, which may be on ${where.join(', ')}; ${after}`
  return { reason: reasons.memoryWaits, message }
}

/** A failover takes less than this, so that it does not change the condition, ms. */
const vacantMs = 10_000

/**
 * Names the first slot that has had no primary for long, although its memory could be restored, and for which no pod is on its
 * way: in which pods that failed.
 */
function vacantSlot(
  { slots }: MemoryView,
  pods: readonly Candidate[],
  { monotonicNow, isPaused }: Pick<Times, 'monotonicNow' | 'isPaused'>,
): Word | undefined {
  const slot = [...slots.values()].find(
    each =>
      each.endedSince !== undefined &&
      monotonicNow - each.endedSince >= vacantMs &&
      each.calledSince === undefined &&
      usableOf(each).length > 0,
  )
  if (slot === undefined) return undefined
  const { slot: number, holder, heir } = slot.lease
  const failed = pods.flatMap(({ name, uid, stage }) => {
    const isOfSlot = uid === holder.uid || uid === heir?.uid || stage?.successorOf === number
    return isOfSlot && stage?.failed !== undefined ? [`${name} (${stage.failed})`] : []
  })
  const failures =
    failed.length === 0 ? 'no pod has taken it yet' : `it could not be restored in ${failed.join(', ')}`
  const granted = slot.grants?.outstanding?.heir
  const waits =
    granted === undefined
      ? failures
      : `${pods.find(({ uid }) => uid === granted.uid)?.name ?? 'a pod that is gone'} on ${granted.node} may have it by its grant; the slot waits for a word of the agent of ${slot.lease.node ?? 'its last node'} or ${granted.node}`
  const why = isPaused ? 'no pod is called while spec.paused is true' : waits
  const where = usableOf(slot).map(({ node }) => node)
  const message = `slot ${number} has no primary, although its memory could be restored on ${where.join(', ')}: ${why}`
  return { reason: reasons.noPrimary, message }
}

/** Returns why no successor could continue with the memory of a slot. */
function unprotectedSlot(
  memory: MemoryView,
  pods: readonly Candidate[],
  { pod, slot, protection }: SlotStatus,
): Word | undefined {
  if (protection !== undefined && protection !== 'None') return undefined
  const primary = pods.find(({ name }) => name === pod)
  const facts = memory.slots.get(slot)
  const node = primary?.node === undefined ? undefined : memory.nodes.get(primary.node)
  const because = (reason: string, message: string) => ({
    reason,
    message: `slot ${slot} (${pod}): ${message}`,
  })
  if (primary?.node !== undefined && node?.ready !== true)
    return because(reasons.nodeNotReady, `node ${primary.node} cannot save memory: ${whyNotReady(node)}`)
  if (facts?.source?.reason !== undefined)
    return because(facts.source.reason, facts.source.message ?? 'its memory is not saved')
  const refused = facts?.copies.find(({ report }) => report.reason !== undefined)?.report
  if (refused?.reason !== undefined)
    return because(refused.reason, refused.message ?? 'its memory is not usable')
  if (facts?.lease.heir === undefined)
    return because(
      reasons.noUnderstudy,
      'it has no hot backup on another node; raise hotBackups, or let pods run on more nodes',
    )
  if ((facts.source?.generation ?? 0) === 0 && facts.copies.length === 0)
    return because(reasons.notSaved, 'no generation is complete yet')
  return because(reasons.notStaged, 'no node of a hot backup has a usable generation yet')
}

/**
 * Memory is stale if it is older than this many intervals, and than `staleMs`: a user who relies on the interval cannot
 * use it.
 */
const staleIntervals = 5
const staleMs = 30_000

/** Returns why no newer memory of a slot arrives. */
function staleSlot(
  memory: MemoryView,
  pods: readonly Candidate[],
  { pod, slot, savedAt, intervalSeconds = 0 }: SlotStatus,
  { monotonicNow, intervalMs }: Times,
): Word | undefined {
  const interval = Math.max(intervalMs, intervalSeconds * 1000)
  // The age counts from when this process heard of the copy: clocks jump, and the clocks of nodes differ.
  const heardAt = Math.max(...(memory.slots.get(slot)?.copies ?? []).map(({ seenAt }) => seenAt))
  if (!(monotonicNow - heardAt > Math.max(staleMs, staleIntervals * interval))) return undefined
  const node = memory.nodes.get(pods.find(({ name }) => name === pod)?.node ?? '')
  const source = memory.slots.get(slot)?.source
  const where = `slot ${slot} (${pod}): its newest usable memory is from ${savedAt}`
  if (node?.ready !== true)
    return {
      reason: reasons.nodeNotReady,
      message: `${where}, and its node cannot save memory: ${whyNotReady(node)}`,
    }
  return {
    reason: source?.reason ?? reasons.notSaved,
    message: `${where}; ${source?.message ?? 'its memory is not saved'}`,
  }
}

const whyNotReady = (node: NodeView | undefined): string =>
  node?.problem ?? 'no agent reports from it; let the agent run there'

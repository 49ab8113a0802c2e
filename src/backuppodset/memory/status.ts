import {
  type BackupPodSetStatus,
  limits,
  type RetainedSlot,
  type SlotStatus,
} from '../../api/backuppodset.ts'
import { reasons } from '../../api/reasons.ts'
import { fitsMemory } from '../../succession/kinds.ts'
import type { PodView } from '../snapshot.ts'
import { newestOf, savedAt } from './age.ts'
import { isGone, usableOf } from './knowledge.ts'
import type { MemoryView, SlotMemory } from './view.ts'

interface Times {
  readonly now: number
  readonly monotonicNow: number
}

type SlotFacts = Required<Pick<SlotStatus, 'generation' | 'usableOn' | 'protection'>> &
  Pick<SlotStatus, 'usableOnCount' | 'savedAt' | 'intervalSeconds' | 'intervalReason' | 'pipelineSeconds'>

/** Returns what the status says about a slot's memory: how new it is, and which pods could continue with it. */
export function slotFacts(
  slot: SlotMemory | undefined,
  primary: PodView,
  pods: readonly PodView[],
  times: Times,
): SlotFacts {
  const copies = slot?.lease.holder.uid === primary.uid ? slot.copies : []
  const usable = copies.filter(({ node, report }) => report.usable !== undefined && node !== primary.node)
  const able = pods.filter(
    pod =>
      pod.kind === 'hotbackup' &&
      pod.ready &&
      pod.stage?.understudy &&
      pod.stage.failed === undefined &&
      fitsMemory(pod.stage.restoreHash, slot?.lease.restoreHash),
  )
  const withPod = usable.filter(
    ({ node, report }) => report.usable !== 'Cold' && able.some(pod => pod.node === node),
  )
  const isFrozen = withPod.some(
    ({ report }) => report.usable === 'Frozen' && able.some(pod => pod.uid === report.understudyUid),
  )
  const [best] = [...(withPod.length > 0 ? withPod : usable.length > 0 ? usable : copies)].sort(
    newestOf({ epoch: slot?.lease.epoch ?? 0 }),
  )
  const { intervalSeconds, intervalReason } = slot?.source ?? {}
  const pipelineSeconds = best?.report.pipelineSeconds
  return {
    generation: best?.report.generation ?? 0,
    ...(best && { savedAt: savedAt(best, times) }),
    ...(intervalSeconds !== undefined && { intervalSeconds }),
    ...(intervalReason !== undefined && { intervalReason }),
    ...(pipelineSeconds !== undefined && { pipelineSeconds }),
    usableOn: usable.map(({ node }) => node).slice(0, limits.usableOn),
    ...(usable.length > limits.usableOn && { usableOnCount: usable.length }),
    protection: isFrozen ? 'Frozen' : withPod.length > 0 ? 'Staged' : usable.length > 0 ? 'Cold' : 'None',
  }
}

/** Returns the slots that the set has no place for and whose memory is kept. */
export function retainedSlots({
  slots,
  retainMs = 0,
}: MemoryView): Pick<BackupPodSetStatus, 'retainedSlots' | 'retainedSlotCount'> {
  const retained = [...slots.values()].flatMap(({ lease, copies, unasked }): RetainedSlot[] => {
    const since = Date.parse(lease.retainedSince ?? '')
    if (Number.isNaN(since)) return []
    const nodes = [...copies, ...unasked].map(({ node }) => node).sort()
    return [
      {
        slot: lease.slot,
        pod: lease.holder.name,
        since: rfc3339(since),
        until: rfc3339(since + retainMs),
        generation: Math.max(0, ...copies.map(({ report }) => report.generation)),
        keptOn: nodes.slice(0, limits.usableOn),
        ...(nodes.length > limits.usableOn && { keptOnCount: nodes.length }),
      },
    ]
  })
  if (retained.length === 0) return {}
  return {
    retainedSlots: retained.sort((a, b) => a.slot - b.slot).slice(0, limits.listed),
    ...(retained.length > limits.listed && { retainedSlotCount: retained.length }),
  }
}

const rfc3339 = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')

/**
 * Returns a text for each slot that has no primary and whose memory is kept, but can be restored nowhere now: which
 * nodes keep it, and why they cannot restore it.
 */
function waitingWords({ slots, giveUpAfterMs }: MemoryView): readonly string[] {
  const after =
    giveUpAfterMs === undefined
      ? 'it starts empty only if checkpoint.giveUpAfterSeconds is set'
      : `it starts empty after ${giveUpAfterMs / 1000} s`
  return [...slots.values()].flatMap(slot => {
    if (slot.vacantSince === undefined || isGone(slot) || usableOf(slot).length > 0) return []
    const where = [
      ...slot.copies.map(
        ({ node, stale, report }) =>
          `${node} (${stale ? 'its agent is silent or starting' : (report.message ?? report.reason ?? 'not usable yet')})`,
      ),
      ...slot.unasked.map(({ node, why }) => `${node} (${why})`),
    ]
    return [`slot ${slot.lease.slot} waits for its memory, which may be on ${where.join(', ')}; ${after}`]
  })
}

export interface Readiness {
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

/**
 * Memory is stale if it is older than this many intervals, and than `staleMs`: a user who relies on the interval cannot
 * use it.
 */
const staleIntervals = 5
const staleMs = 30_000

/**
 * Returns whether every primary's memory could be taken over, and is still being saved; if not, the first obstacle,
 * with its cure.
 *
 * @param intervalMs the interval that the set asks for.
 */
export function checkpointReadiness(
  memory: MemoryView,
  pods: readonly PodView[],
  slots: readonly SlotStatus[],
  { monotonicNow, intervalMs }: { readonly monotonicNow: number; readonly intervalMs: number },
): Readiness {
  const { refused, caveats = [] } = memory
  const not = (reason: string, message: string): Readiness => ({
    status: 'False',
    reason,
    message: [message, ...caveats.map(caveat => caveat.message)].join('; '),
  })
  if (refused !== undefined) return not(refused.reason, refused.message)
  const nodes = [...memory.nodes.values()]
  if (nodes.length === 0)
    return not(
      reasons.noAgents,
      'no node reports: install the agent (DaemonSet understudy-agent), or see the logs of its pods',
    )
  if (nodes.every(node => !node.ready)) {
    const [first] = nodes
    return not(
      reasons.noNodeReady,
      `no node can keep memory; ${first?.name}: ${first?.problem ?? 'not ready'}`,
    )
  }
  const [waiting] = waitingWords(memory)
  if (waiting !== undefined) return not(reasons.memoryWaits, waiting)
  for (const { pod, slot, protection } of slots) {
    if (protection !== undefined && protection !== 'None') continue
    const primary = pods.find(({ name }) => name === pod)
    const facts = memory.slots.get(slot)
    const node = primary?.node === undefined ? undefined : memory.nodes.get(primary.node)
    const where = `slot ${slot} (${pod})`
    if (primary?.node !== undefined && node?.ready !== true)
      return not(
        reasons.nodeNotReady,
        `${where}: node ${primary.node} cannot save memory: ${node?.problem ?? 'no agent reports from it; let the agent run there'}`,
      )
    if (facts?.source?.reason !== undefined)
      return not(facts.source.reason, `${where}: ${facts.source.message ?? 'its memory is not saved'}`)
    const refused = facts?.copies.find(({ report }) => report.reason !== undefined)?.report
    if (refused?.reason !== undefined)
      return not(refused.reason, `${where}: ${refused.message ?? 'its memory is not usable'}`)
    if (facts?.lease.heir === undefined)
      return not(
        reasons.noUnderstudy,
        `${where}: it has no hot backup on another node; raise hotBackups, or let pods run on more nodes`,
      )
    if ((facts.source?.generation ?? 0) === 0 && facts.copies.length === 0)
      return not(reasons.notSaved, `${where}: no generation is complete yet`)
    return not(reasons.notStaged, `${where}: no node of a hot backup has a usable generation yet`)
  }
  for (const { pod, slot, savedAt, intervalSeconds = 0 } of slots) {
    const interval = Math.max(intervalMs, intervalSeconds * 1000)
    // The age counts from when this process heard of the copy: clocks jump, and the clocks of nodes differ.
    const heardAt = Math.max(...(memory.slots.get(slot)?.copies ?? []).map(({ seenAt }) => seenAt))
    if (!(monotonicNow - heardAt > Math.max(staleMs, staleIntervals * interval))) continue
    const node = memory.nodes.get(pods.find(({ name }) => name === pod)?.node ?? '')
    const source = memory.slots.get(slot)?.source
    const where = `slot ${slot} (${pod}): its newest usable memory is from ${savedAt}`
    if (node?.ready !== true)
      return not(
        reasons.nodeNotReady,
        `${where}, and its node cannot save memory: ${node?.problem ?? 'no agent reports from it; let the agent run there'}`,
      )
    return not(
      source?.reason ?? reasons.notSaved,
      `${where}; ${source?.message ?? 'its memory is not saved'}`,
    )
  }
  const cold = slots.filter(({ protection }) => protection === 'Cold').length
  const told =
    `successors could take over the memory of ${slots.length} primaries` +
    (cold === 0 ? '' : `, ${cold} of them after a pod is woken or created`)
  return {
    status: 'True',
    reason: caveats[0]?.reason ?? reasons.allProtected,
    message: [told, ...caveats.map(caveat => caveat.message)].join('; '),
  }
}

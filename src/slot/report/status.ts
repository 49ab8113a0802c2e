import { type RetainedSlot, type RetainedSlots, type SlotStatus, slotLimits } from '../../api/slot-status.ts'
import { newestOf, savedAt } from '../decide/copy-age.ts'
import { fitsMemory } from '../decide/kinds.ts'
import type { MemoryView, SlotMemory } from '../decide/memory-view.ts'
import type { Candidate } from '../decide/snapshot.ts'

interface Times {
  readonly now: number
  readonly monotonicNow: number
}

type SlotFacts = Required<Pick<SlotStatus, 'generation' | 'usableOn' | 'protection'>> &
  Pick<
    SlotStatus,
    'usableOnCount' | 'savedAt' | 'intervalSeconds' | 'intervalReason' | 'pipelineSeconds' | 'grantedTo'
  >

/** Returns what the status says about a slot's memory: how new it is, and which pods could continue with it. */
export function slotFacts(
  slot: SlotMemory | undefined,
  primary: Candidate,
  pods: readonly Candidate[],
  times: Times,
): SlotFacts {
  const isIts = slot?.lease.holder.uid === primary.uid
  const copies = isIts ? slot.copies : []
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
  const grant = isIts ? slot.lease.grant : undefined
  const granted = pods.find(({ uid }) => grant?.isRevoked === false && uid === grant.heir?.uid)
  return {
    generation: best?.report.generation ?? 0,
    ...(best && { savedAt: savedAt(best, times) }),
    ...(intervalSeconds !== undefined && { intervalSeconds }),
    ...(intervalReason !== undefined && { intervalReason }),
    ...(pipelineSeconds !== undefined && { pipelineSeconds }),
    usableOn: usable.map(({ node }) => node).slice(0, slotLimits.usableOn),
    ...(usable.length > slotLimits.usableOn && { usableOnCount: usable.length }),
    ...(granted && { grantedTo: granted.name }),
    protection: isFrozen ? 'Frozen' : withPod.length > 0 ? 'Staged' : usable.length > 0 ? 'Cold' : 'None',
  }
}

/** Returns the slots that the set has no place for and whose memory is kept. */
export function retainedSlots({ slots, retainMs = 0 }: MemoryView): RetainedSlots {
  const retained = [...slots.values()].flatMap(slot => retainedSlot(slot, retainMs) ?? [])
  if (retained.length === 0) return {}
  return {
    retainedSlots: retained.sort((a, b) => a.slot - b.slot).slice(0, slotLimits.listed),
    ...(retained.length > slotLimits.listed && { retainedSlotCount: retained.length }),
  }
}

function retainedSlot({ lease, copies, unasked }: SlotMemory, retainMs: number): RetainedSlot | undefined {
  const since = Date.parse(lease.retainedSince ?? '')
  if (Number.isNaN(since)) return undefined
  const nodes = [...copies, ...unasked].map(({ node }) => node).sort()
  const unsure = [...copies.filter(({ stale }) => stale), ...unasked].map(({ node }) => node).sort()
  const [newest] = [...copies].sort(newestOf(lease))
  const bytes = newest?.report.bytes
  return {
    slot: lease.slot,
    pod: lease.holder.name,
    since: rfc3339(since),
    ...(!lease.suspended && { until: rfc3339(since + retainMs) }),
    generation: newest?.report.generation ?? 0,
    ...(newest?.report.takenAt !== undefined && { savedAt: newest.report.takenAt }),
    ...(bytes !== undefined && { bytes }),
    keptOn: nodes.slice(0, slotLimits.usableOn),
    ...(nodes.length > slotLimits.usableOn && { keptOnCount: nodes.length }),
    ...(lease.suspended && unsure.length > 0 && { unsureOn: unsure.slice(0, slotLimits.usableOn) }),
  }
}

const rfc3339 = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')

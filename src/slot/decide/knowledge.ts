/**
 * The operator's knowledge of a slot's memory. *Kept*: a node has reported that it has memory of the slot, and has not
 * reported since that it has none. *Usable*: a node reports that the memory could be restored now. *Gone*: every node
 * that could have memory of the slot has reported, and still reports, that it has none. A silent agent, or an agent
 * that has only just started, means none of these: the operator waits.
 */
import { isCloning } from '../../api/clone-of.ts'
import type { NodeReportStatus, SlotReport } from '../../api/node-report.ts'
import type { NumberedSlotLease } from '../../api/numbered-slot.ts'
import { isSameSlot, type SlotKey } from '../../api/slot-key.ts'
import type { SlotLease } from '../../api/slot-lease.ts'
import { type Completeness, hasNothing, isKept, mayKeep } from './kept.ts'
import type { Copy, MemoryView, SlotMemory, Unasked } from './memory-view.ts'

/** The report of one node on one slot. */
export interface Answer {
  readonly node: string
  readonly status: Completeness | undefined
  readonly report: SlotReport | undefined
  /** The agent has written recently, and since the slot lost its primary. */
  readonly fresh: boolean
}

/** Returns the copies that could be restored, on their own node or on a node that fetches them. */
export const usableOf = (slot: Pick<SlotMemory, 'copies'> | undefined): readonly Copy[] =>
  slot?.copies.filter(({ report }) => report.usable !== undefined) ?? []

/** True if no node has memory of the slot, and no node is left to ask. No other cause ends a incarnation by itself. */
export const isGone = (slot: SlotMemory | undefined): boolean =>
  slot === undefined || (slot.copies.length === 0 && slot.unasked.length === 0)

/**
 * Returns the incarnation that ends where a slot begins a new one because its memory is gone. Names none if memory must not be
 * kept any more.
 */
export const endOf = (
  memory: Pick<MemoryView, 'refusedForLong'> | undefined,
  slot: SlotMemory | undefined,
): { readonly ends?: NumberedSlotLease } =>
  slot !== undefined && isGone(slot) && memory?.refusedForLong !== true ? { ends: slot.lease } : {}

export interface Vacancy {
  /** No pod is on stage with this memory: the last primary's node counts like any other. */
  readonly isVacant: boolean
  /**
   * The agent has reported the death of the app. It does so only where a node keeps memory, and the node's report on
   * its copies may come later.
   */
  readonly isDeath: boolean
  /** The slot has been vacant for so long that holders which never reported a copy do not count any more. */
  readonly isLong: boolean
}

/**
 * Returns the nodes that may have memory of a slot, and have neither shown a copy nor reported that they have none.
 * Once any node may have had memory, all holders count: a holder may have fetched it since, without a chance to report
 * it.
 */
export function unaskedOf(
  lease: SlotLease,
  answers: readonly Answer[],
  { isVacant, isDeath, isLong }: Vacancy,
): readonly Unasked[] {
  const { node: source } = lease
  // No report can say yet that there is none: the node may not have read the Lease.
  if (isCloning(lease) && answers.every(({ report }) => report === undefined || !isKept(report)))
    return [{ node: lease.cloneOf.node, why: 'copies the memory of another slot' }]
  // The primary has saved what another node has of its epoch, although its own node may have had no chance to report it.
  const isSaved = isDeath || isSavedElsewhere(lease, answers)
  const keepers = [...mayKeep(lease), ...(isSaved && source !== undefined ? [source] : [])]
  const others = isLong ? [] : lease.holders
  const nodes = isVacant && keepers.length > 0 ? [...new Set([...keepers, ...others])] : mayKeep(lease)
  return nodes.flatMap((node): Unasked[] => {
    if (node === source && !isVacant) return []
    const answer = answers.find(each => each.node === node)
    if (answer?.report !== undefined && isKept(answer.report)) return []
    if (answer?.fresh && hasNothing(answer.status, answer.report)) return []
    return [{ node, why: whyUnasked(answer), ...(!keepers.includes(node) && { isGuess: true }) }]
  })
}

/** True if another node than the primary's has memory that the primary has saved. */
export const isSavedElsewhere = (
  { node: source, epoch }: SlotLease,
  answers: readonly Pick<Answer, 'node' | 'report'>[],
): boolean =>
  answers.some(
    ({ node, report }) => node !== source && report !== undefined && isKept(report) && report.epoch === epoch,
  )

/** Returns a node's report on a slot in this incarnation. */
export const reportOf = (
  status: Pick<NodeReportStatus, 'slots'> | undefined,
  slot: SlotKey,
): SlotReport | undefined => status?.slots.find(each => isSameSlot(each, slot))

/**
 * True if the primary's node has memory of this incarnation: it has reported so, or is named or proven to have saved, and has not
 * reported since that it has none.
 * @param isSaved another node has memory of the Lease's epoch: the primary has saved that.
 */
export function keepsAtSource(lease: SlotLease, answer: Answer | undefined, isSaved: boolean): boolean {
  if (answer?.report !== undefined && isKept(answer.report)) return true
  const { node, kept = [] } = lease
  if (node === undefined || !(isSaved || kept.includes(node))) return false
  return !(answer?.fresh && hasNothing(answer.status, answer.report))
}

/**
 * Returns whether any node has, or may have, memory of an epoch of the slot: the Lease then has to remember whose key
 * signed that epoch.
 */
export function isKeptOf({ copies, source, unasked }: SlotMemory): (epoch: number) => boolean {
  const reports = [...copies.map(({ report }) => report), ...(source === undefined ? [] : [source])]
  const epochs = new Set(reports.map(({ epoch }) => epoch))
  // A silent node may have memory of any epoch. So may a node whose report has no epoch, or whose memory is only on
  // disk.
  const isUnknown = unasked.length > 0 || reports.some(each => isKept(each) && each.epoch === undefined)
  return epoch => isUnknown || epochs.has(epoch)
}

const isKnownAtSource = ({ source, sourceSeenAt }: SlotMemory): boolean =>
  source !== undefined && isKept(source) && sourceSeenAt !== undefined

/**
 * Returns the nodes that the Lease of a slot is to name as keeping memory when the slot has lost its primary, or is about to lose it;
 * undefined: an earlier version has written the Lease. An agent may be gone before it has reported its copies, and the record of a
 * death goes with the pod. A report on a first copy may come in the moment of the death. So whatever is written into the Lease of
 * such a slot, these nodes go with it.
 */
export function keepersOf({
  lease: { kept, node },
  copies,
  unasked,
  sourceKeeps,
}: SlotMemory): readonly string[] | undefined {
  const nodes = [...copies, ...unasked.filter(({ isGuess }) => !isGuess)].map(each => each.node)
  return kept && [...new Set([...kept, ...nodes, ...(sourceKeeps && node !== undefined ? [node] : [])])]
}

function whyUnasked(answer: Answer | undefined): string {
  if (answer === undefined) return 'no agent reports from it'
  return answer.fresh ? 'its agent has not reported its copies yet' : 'its agent is silent'
}

/**
 * Returns the nodes that the Lease of a primary on this node should name as keeping memory of this incarnation. A former
 * holder keeps its copy for a while. It stays named as long as its agent reports, because the other copies may be lost
 * in the moment in which it is released. If its agent is silent, it stays named until another agent reports memory: a
 * report from before a node lost its power is no such news.
 * @param holders `nobody`: no memory is to be kept.
 */
export function keptNow(
  slot: SlotMemory,
  holders: readonly string[] | 'nobody',
  node: string | undefined,
): readonly string[] {
  const shown = new Set(slot.copies.map(copy => copy.node))
  // A holder that never reported a copy is waited for, but not for ever: the Lease does not name it.
  const open = new Set(slot.unasked.flatMap(each => (each.isGuess ? [] : [each.node])))
  if (holders === 'nobody')
    return node !== undefined && node === slot.lease.node && slot.sourceKeeps ? [node] : []
  const isKnown = slot.copies.some(({ timely }) => timely) || isKnownAtSource(slot)
  const former = slot.copies.flatMap(copy =>
    (copy.silent && isKnown) || holders.includes(copy.node) || copy.node === node ? [] : [copy.node],
  )
  const unheard = isKnown ? [] : [...open].filter(each => !holders.includes(each) && each !== node)
  // A fetch may end after the last report of a node that is let go in this moment.
  const fetching = (slot.fetching ?? []).filter(each => !holders.includes(each) && each !== node)
  // While such a holder is waited for, the Lease does not forget that there was memory.
  const before = slot.unasked.some(({ isGuess }) => isGuess) ? mayKeep(slot.lease) : []
  const named = [
    ...holders.filter(holder => shown.has(holder) || open.has(holder)),
    ...former,
    ...unheard,
    ...fetching,
  ]
  const kept = [...new Set([...named, ...before.filter(each => each !== node)])]
  const isSource = node !== undefined && node === slot.lease.node
  return isSource && (slot.sourceKeeps || before.includes(node)) ? [...kept, node] : kept
}

/**
 * What is known of a slot's memory. *Kept*: a node has said that it has something of it, and has not said since that it has
 * nothing. *Usable*: it says that it could be brought back now. *Gone*: every node that could have something has said, and
 * does say, that it has nothing. Silence, and an agent that has only just started, are none of these: they mean wait.
 */
import type { NodeReportStatus, SlotReport } from '../../api/node-report.ts'
import type { SlotKey, SlotLease } from '../../api/slot-lease.ts'
import { type Completeness, hasNothing, isKept, mayKeep } from '../../succession/kept.ts'
import type { Copy, MemoryView, SlotMemory, Unasked } from './view.ts'

/** What is said of one slot by one node. */
export interface Answer {
  readonly node: string
  readonly status: Completeness | undefined
  readonly report: SlotReport | undefined
  /** The agent has written lately, and since the slot lost its primary. */
  readonly fresh: boolean
}

/** Copies that could be brought back, where they lie or by whoever fetches them. */
export const usableOf = (slot: SlotMemory | undefined): readonly Copy[] =>
  slot?.copies.filter(({ report }) => report.usable !== undefined) ?? []

/** Nobody has anything of it, and nobody is left to ask. The only thing that ends a life by itself. */
export const isGone = (slot: SlotMemory | undefined): boolean =>
  slot === undefined || (slot.copies.length === 0 && slot.unasked.length === 0)

/** The life that ends where a slot begins anew because its memory is gone. What must not be kept any more is not asked for. */
export const endOf = (
  memory: Pick<MemoryView, 'refusedForLong'> | undefined,
  slot: SlotMemory | undefined,
): { readonly ends?: SlotLease } =>
  slot !== undefined && isGone(slot) && memory?.refusedForLong !== true ? { ends: slot.lease } : {}

export interface Vacancy {
  /** Nobody is on stage with this memory: the node of who was is asked like any other. */
  readonly isVacant: boolean
  /** Its agent has told a death. It tells none where nobody keeps anything, and its report may come after that word. */
  readonly isDeath: boolean
}

/**
 * Of the nodes that may have something of a slot, those that have neither shown a copy nor said that they have none. Once
 * anybody has had something of it that is every holder: one may have fetched it since, and have no way to say so.
 */
export function unaskedOf(
  lease: SlotLease,
  answers: readonly Answer[],
  { isVacant, isDeath }: Vacancy,
): readonly Unasked[] {
  const { node: source } = lease
  const keepers = [...mayKeep(lease), ...(isDeath && source !== undefined ? [source] : [])]
  const nodes = isVacant && keepers.length > 0 ? [...new Set([...keepers, ...lease.holders])] : mayKeep(lease)
  return nodes.flatMap((node): Unasked[] => {
    if (node === source && !isVacant) return []
    const answer = answers.find(each => each.node === node)
    if (answer?.report !== undefined && isKept(answer.report)) return []
    if (answer?.fresh && hasNothing(answer.status, answer.report)) return []
    return [{ node, why: whyUnasked(answer) }]
  })
}

/** What a node says of a slot in this life. */
export const reportOf = (
  status: Pick<NodeReportStatus, 'slots'> | undefined,
  { namespace, set, slot, life }: SlotKey,
): SlotReport | undefined =>
  status?.slots.find(
    each => each.namespace === namespace && each.set === set && each.slot === slot && each.life === life,
  )

/** Whether the node of the primary has something of this life: it has said so, and has not said since that it has nothing. */
export function keepsAtSource(lease: SlotLease, answer: Answer | undefined): boolean {
  if (answer?.report !== undefined && isKept(answer.report)) return true
  const { node, kept = [] } = lease
  if (node === undefined || !kept.includes(node)) return false
  return !(answer?.fresh && hasNothing(answer.status, answer.report))
}

/** Whether somebody has memory of this epoch of the slot, or may have: then it has to be known who has signed that. */
export function isKeptOf({ copies, source, unasked }: SlotMemory): (epoch: number) => boolean {
  const reports = [...copies.map(({ report }) => report), ...(source === undefined ? [] : [source])]
  const epochs = new Set(reports.map(({ epoch }) => epoch))
  // Who is silent may have any. So may who tells no epoch, and what is on a disk only.
  const isUnknown = unasked.length > 0 || reports.some(each => isKept(each) && each.epoch === undefined)
  return epoch => isUnknown || epochs.has(epoch)
}

function whyUnasked(answer: Answer | undefined): string {
  if (answer === undefined) return 'no agent reports from it'
  return answer.fresh ? 'its agent has not said yet what it keeps' : 'its agent is silent'
}

/**
 * What the Lease of a primary on this node should say of who keeps something of this life. Who is no holder any more keeps
 * it for a while: it is asked as long as it is heard, for the others may be lost in the moment in which it was let go.
 * @param holders `nobody`: no memory is to be kept.
 */
export function keptNow(
  slot: SlotMemory,
  holders: readonly string[] | 'nobody',
  node: string | undefined,
): readonly string[] {
  const shown = new Set(slot.copies.map(copy => copy.node))
  const open = new Set(slot.unasked.map(each => each.node))
  if (holders === 'nobody')
    return node !== undefined && node === slot.lease.node && slot.sourceKeeps ? [node] : []
  const former = slot.copies.flatMap(copy =>
    copy.stale || holders.includes(copy.node) || copy.node === node ? [] : [copy.node],
  )
  // A fetch may end after the last report of a node that is let go in this moment.
  const fetching = (slot.fetching ?? []).filter(each => !holders.includes(each) && each !== node)
  const kept = [...holders.filter(holder => shown.has(holder) || open.has(holder)), ...former, ...fetching]
  return node !== undefined && node === slot.lease.node && slot.sourceKeeps ? [...kept, node] : kept
}

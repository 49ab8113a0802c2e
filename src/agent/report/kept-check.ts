import type { NodeCheck, SlotReport } from '../../api/node-report.ts'
import type { Check } from '../../kube/health.ts'
import { isKept } from '../../slot/decide/kept.ts'

export interface KeptFacts {
  /** Slots with memory on this node; undefined while these are not known. */
  readonly slots: readonly SlotReport[] | undefined
  /** Slots in the last report of the agent before this one; undefined: there is none. */
  readonly before: readonly SlotReport[] | undefined
  readonly checks: readonly NodeCheck[]
  /** The API server has this agent's slots. */
  readonly told: boolean
}

/**
 * Fails while this node keeps memory that could not be restored here. An update of the agents waits for this check: the
 * next node is not updated before this node's copies are usable again. A node without copies delays no update.
 */
export const keptCheck =
  (facts: () => KeptFacts): Check =>
  () => {
    const { slots, before, checks, told } = facts()
    const said = slots ?? before
    const keeps = said?.some(slot => slot.role === 'holder' && isKept(slot)) ?? false
    if (said !== undefined && !keeps) return undefined
    if (slots === undefined) return said === undefined ? undefined : 'the agent does not know its copies yet'
    const failing = checks.find(({ ok }) => !ok)
    if (failing !== undefined)
      return `this node cannot restore its copies: ${failing.name}: ${failing.message}`
    return told ? undefined : 'the agent has not reported its copies yet'
  }

import type { NodeCheck, SlotReport } from '../api/node-report.ts'
import type { Check } from '../kube/health.ts'
import { isKept } from '../succession/kept.ts'

export interface KeptFacts {
  /** What is kept here; undefined while that is not known. */
  readonly slots: readonly SlotReport[] | undefined
  /** What the agent before this one has said last; undefined where it said nothing. */
  readonly before: readonly SlotReport[] | undefined
  readonly checks: readonly NodeCheck[]
  /** The API server has been told. */
  readonly told: boolean
}

/**
 * Fails while memory is kept here that could not go on from here. An update of the agents goes from node to node by this:
 * the next one does not go before what this one keeps can be used again. Where nothing is kept nobody has to wait.
 */
export const keptCheck =
  (facts: () => KeptFacts): Check =>
  () => {
    const { slots, before, checks, told } = facts()
    const said = slots ?? before
    const keeps = said?.some(slot => slot.role === 'holder' && isKept(slot)) ?? false
    if (said !== undefined && !keeps) return undefined
    if (slots === undefined) return said === undefined ? undefined : 'what is kept here is not known yet'
    const failing = checks.find(({ ok }) => !ok)
    if (failing !== undefined)
      return `what is kept here cannot be brought back: ${failing.name}: ${failing.message}`
    return told ? undefined : 'what is kept here was not reported yet'
  }

import { legacyDeath } from '../../api/legacy-serving.ts'
import { type LeftMemory, podConditions, servingReasons } from '../../api/pod-contract.ts'
import type { PodView } from '../observe/snapshot.ts'
import type { PodCondition } from '../report/conditions.ts'

interface DeathFacts {
  readonly container: string
  readonly what: string
  readonly slot: string
  readonly byItself: boolean
  /** Connections to the pod lead to its heir. */
  readonly heirAnswers: boolean
  /**
   * The memory that this node could restore: the operator need not wait for the report of this node to call a successor for the
   * newest memory.
   */
  readonly left: Omit<LeftMemory, 'at'> | undefined
  /** Wall clock, ms. */
  readonly at: number
}

/** Returns the condition that declares a death. An agent before this one may have told it already: then in the same words. */
export function deathCondition(
  { serving, containers }: Pick<PodView, 'serving' | 'containers'>,
  { container, what, slot, byItself, heirAnswers, left, at }: DeathFacts,
): PodCondition {
  const containerId = containers.find(({ name }) => name === container)?.containerId ?? ''
  const isTold = serving?.reason === servingReasons.died && serving.record.diedWith === slot
  const message = `container ${container} (${containerId}) ${what}${legacyDeath(slot)}`
  // Told before, and out of its Services: it does not come back into them.
  const mayStay = isTold ? serving.heirAnswers === true : heirAnswers
  return {
    type: podConditions.serving,
    status: mayStay ? 'True' : 'False',
    reason: servingReasons.died,
    message: isTold ? serving.message : message,
    record: {
      diedWith: slot,
      ...(!(isTold ? serving.record.byItself !== false : byItself) && { byItself: false as const }),
      ...(left && { left: { ...left, at } }),
    },
  }
}

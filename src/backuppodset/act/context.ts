import type { ParsedSet } from '../../api/parse.ts'
import type { SlotContext } from '../../slot/act/context.ts'
import type { Action } from '../plan.ts'
import type { PodSettings } from '../pod/render.ts'

/** Dependencies of all executors, for one pass over one set. */
export interface ActContext extends SlotContext<Action> {
  readonly set: ParsedSet
  readonly settings: PodSettings
  /** Wall clock, ms. */
  readonly now: () => number
  /** Name of this process, for events. */
  readonly instance: string
  /** Asks the API server whether the set's namespace is being deleted. */
  readonly isNamespaceTerminating: () => Promise<boolean>
  /**
   * Returns true while this process is the leader, by its own clock. Checked before each batch; the client guards each
   * single write.
   */
  readonly mayWrite: () => boolean
  /** True if this pass should end after the current batch. */
  readonly mustYield: () => boolean
  /** Call when the plan has been performed; wake-ups may continue. */
  readonly ended: () => void
}

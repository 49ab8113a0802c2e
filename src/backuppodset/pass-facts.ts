import type { Completion, LastTransition } from '../api/backuppodset.ts'
import type { LastFailover } from '../api/slot-status.ts'
import type { MemoryView } from '../slot/decide/memory-view.ts'
import type { PulledFacts } from '../slot/http-state/status.ts'
import type { Suspension } from './decide/suspension.ts'
import type { RefusedSpec } from './in-force.ts'
import type { PodView } from './snapshot.ts'

/** The facts that a pass knows at its end. */
export interface PassFacts {
  /** Live pods as they are after the writes of the pass. */
  readonly pods: readonly PodView[]
  /** Pods that are being deleted, and whose apps may still run; absent: none. */
  readonly ending?: number
  readonly templateHash: string
  readonly restoreHash?: string | undefined
  /** Why an action failed, for display; undefined if none did. */
  readonly failure: string | undefined
  /** Problems with gates of cold backups, for display. */
  readonly gates?: readonly string[]
  /** The work of the set is done. */
  readonly completed?: Completion
  readonly lastTransition: LastTransition | undefined
  readonly lastFailover: LastFailover | undefined
  /** All known failovers, newest first. */
  readonly failovers?: readonly LastFailover[]
  /** Wall clock, ms. */
  readonly now: number
  /** For sets that keep memory. */
  readonly memory?: MemoryView
  /** For sets with memory that are to be suspended. */
  readonly suspension?: Suspension
  /** Monotonic clock, ms; with `memory`. */
  readonly monotonicNow?: number
  /** For sets whose state is pulled. */
  readonly pulled?: PulledFacts
  /** The spec is refused: the facts describe the spec in force instead. */
  readonly refusal?: RefusedSpec
  /** Slots of a set with pulled state whose primary was lost and has no successor yet. */
  readonly vacant?: ReadonlySet<number>
}

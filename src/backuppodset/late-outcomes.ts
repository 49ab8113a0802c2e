import type { Outcome } from './plan.ts'

/**
 * Remembers the takeovers of one set that ended while a pass was under way which had not waited for them. The pods that
 * the pass observed do not show them, and its status must: otherwise it names a failover whose successor it still counts
 * as a backup.
 */
export interface LateOutcomes {
  note(outcome: Outcome): void
  /** Call when a pass begins to observe: its caches contain all writes until then. */
  observed(): void
  /** The takeovers that ended since the last observation. */
  of(): readonly Outcome[]
}

export function createLateOutcomes(): LateOutcomes {
  let outcomes: readonly Outcome[] = []
  return {
    note(outcome) {
      outcomes = [...outcomes, outcome]
    },
    observed() {
      outcomes = []
    },
    of: () => outcomes,
  }
}

import type { Scenario } from '../model/round.ts'

/** One place in the source that reads otherwise. */
export interface Mutation {
  /** From the top of the repository. */
  readonly file: string
  /** Stands there exactly once. */
  readonly find: string
  readonly replace: string
}

export interface Mutant {
  /** As docs/adr/0112-findings-of-three-reviews.md names it. */
  readonly finding: string
  readonly name: string
  /** What the code does without the fix. */
  readonly what: string
  readonly mutations: readonly Mutation[]
  /** In which it shows. With the fix none of them has a violation. */
  readonly scenarios: readonly Scenario[]
}

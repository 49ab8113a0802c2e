import type { Scenario } from '../model/round.ts'

/** A changed place in the source. */
export interface Mutation {
  /** Path from the top of the repository. */
  readonly file: string
  /** Must occur exactly once in the file. */
  readonly find: string
  readonly replace: string
}

export interface Mutant {
  /** Name of the finding in docs/adr/0112-findings-of-three-reviews.md. */
  readonly finding: string
  readonly name: string
  /** Behaviour of the code without the fix. */
  readonly what: string
  readonly mutations: readonly Mutation[]
  /** Scenarios that expose it. With the fix, none of them has a violation. */
  readonly scenarios: readonly Scenario[]
}

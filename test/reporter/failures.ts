import type { ProjectResult, TestResult } from './results.ts'

export interface Failure extends TestResult {
  readonly project: string
}

/** Returns all failures, the earliest one last: it may be the cause of the others, and the end of a long output is read first. */
export const failuresOf = (projects: readonly ProjectResult[]): readonly Failure[] =>
  projects
    .flatMap(({ name, tests }) =>
      tests.filter(({ state }) => state === 'failed').map(test => ({ ...test, project: name })),
    )
    .sort((a, b) => startOf(b) - startOf(a))

/** A failure outside of any test, as in a hook, concerns many tests. */
const startOf = ({ startedMs = 0 }: TestResult): number => startedMs

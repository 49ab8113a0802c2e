import type { ProjectName, TestResult, TestRun } from '../reporter/results.ts'
import type { Feature } from './feature.ts'

export interface NamedTest extends TestResult {
  readonly project: ProjectName
}

export type Verdict =
  | { readonly type: 'proven' }
  /** No test names it, or no test of a kind that could prove it. */
  | { readonly type: 'missing'; readonly why: string }
  | { readonly type: 'failed' }
  /** Its tests were skipped, so the result is unknown. */
  | { readonly type: 'skipped' }

export interface Coverage {
  readonly feature: Feature
  readonly tests: readonly NamedTest[]
  readonly verdict: Verdict
}

/**
 * Returns the ids that a title names, in order and once each. `F15-F17` names all three; `D7.wake-once` is a single id.
 * `R21` is a finding of a review, which is cited and not promised.
 */
export function idsIn(title: string): string[] {
  const ids: string[] = title.match(/(?<![A-Za-z0-9])D\d+\.[a-z]+(?:-[a-z]+)*/g) ?? []
  for (const [, letters = '', from = '', upTo] of title.matchAll(
    /(?<![A-Za-z0-9])(?!R\d)([A-Z]{1,3})(\d{2,3})(?:\s*[-–]\s*\1(\d{2,3}))?(?![A-Za-z0-9]|\.[a-z])/g,
  )) {
    const last = Number(upTo ?? from)
    for (let number = Number(from); number <= last; number += 1)
      ids.push(`${letters}${String(number).padStart(from.length, '0')}`)
  }
  for (const [id] of title.matchAll(/(?<![A-Za-z0-9])MP-\d{2}(?!\d)/g)) ids.push(id)
  return [...new Set(ids)]
}

/** Returns ids that tests name but no feature has: typing errors, or promises that are not written down. */
export function strayIds(features: readonly Feature[], run: TestRun): string[] {
  const known = new Set(features.map(({ id }) => id))
  const named = run.projects.flatMap(({ tests }) => tests.flatMap(({ name }) => idsIn(name)))
  return [...new Set(named)].filter(id => !known.has(id)).sort()
}

/** Returns each feature's result in the run. */
export function coverageOf(features: readonly Feature[], run: TestRun): Coverage[] {
  const byId = new Map<string, NamedTest[]>()
  for (const { name: project, tests } of run.projects)
    for (const test of tests)
      for (const id of idsIn(test.name)) {
        const named = byId.get(id) ?? []
        byId.set(id, named)
        named.push({ ...test, project })
      }
  return features.map(feature => {
    const tests = byId.get(feature.id) ?? []
    return { feature, tests, verdict: verdictOn(feature, tests) }
  })
}

function verdictOn({ provenBy }: Feature, tests: readonly NamedTest[]): Verdict {
  if (tests.some(({ state }) => state === 'failed')) return { type: 'failed' }
  if (tests.length === 0) return { type: 'missing', why: 'no test names it' }
  // An end-to-end test proves everything that a smaller one could.
  const proofs = tests.filter(({ project }) => reach(project) >= reach(provenBy))
  if (proofs.length === 0) return { type: 'missing', why: `no test of project ${provenBy} names it` }
  return proofs.some(({ state }) => state === 'passed') ? { type: 'proven' } : { type: 'skipped' }
}

const reach = (project: ProjectName): number => ({ unit: 0, apiserver: 1, e2e: 2 })[project]

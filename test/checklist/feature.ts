import type { ProjectName } from '../reporter/results.ts'

/** A promise of the project that tests have to name in their titles. */
export interface Feature {
  readonly id: string
  readonly title: string
  /** The kind of test that can prove it: a unit test alone proves no promise about pods on nodes. */
  readonly provenBy: ProjectName
}

/** Features that belong together; `npm run checklist` prints one count for each group. */
export interface FeatureGroup {
  readonly name: string
  readonly features: readonly Feature[]
}

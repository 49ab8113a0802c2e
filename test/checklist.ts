/** `npm run checklist`: lists every feature with the tests that name it and their results in the last test run. */
import { styleText } from 'node:util'
import { type Coverage, coverageOf, strayIds } from './checklist/coverage.ts'
import type { FeatureGroup } from './checklist/feature.ts'
import { groups } from './checklist/features.ts'
import { readTestRun, type TestResult, type TestRun } from './reporter/results.ts'

const mark: Record<TestResult['state'], string> = {
  passed: styleText('green', 'pass'),
  failed: styleText('red', 'FAIL'),
  skipped: styleText('yellow', 'skip'),
}

function print(group: FeatureGroup, run: TestRun): boolean {
  console.log(styleText('bold', group.name))
  const coverage = coverageOf(group.features, run)
  for (const item of coverage) printFeature(item)
  const proven = coverage.filter(({ verdict }) => verdict.type === 'proven').length
  console.log(`${proven}/${group.features.length}`)
  return proven === group.features.length
}

function printFeature({ feature, tests, verdict }: Coverage): void {
  console.log(`${styleText('bold', feature.id)} ${feature.title}  ${words(verdict)}`)
  for (const { project, file, name, state } of tests)
    console.log(`    ${mark[state]} ${project} ${file}: ${name}`)
}

function words(verdict: Coverage['verdict']): string {
  switch (verdict.type) {
    case 'proven':
      return styleText('green', 'proven')
    case 'missing':
      return styleText('red', `MISSING: ${verdict.why}`)
    case 'failed':
      return styleText('red', 'FAILED')
    case 'skipped':
      return styleText('yellow', 'SKIPPED: nothing is known')
    default:
      return verdict satisfies never
  }
}

try {
  const run = await readTestRun()
  console.log(`Test run of ${run.startedAt}, projects: ${run.projects.map(({ name }) => name).join(', ')}\n`)
  const complete = groups.map(group => print(group, run)).every(Boolean)
  const strays = strayIds(
    groups.flatMap(({ features }) => features),
    run,
  )
  if (strays.length > 0) console.log(styleText('red', `Tests name what is not listed: ${strays.join(', ')}`))
  process.exitCode = complete && strays.length === 0 ? 0 : 1
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 2
}

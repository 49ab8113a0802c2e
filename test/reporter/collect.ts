import type { SerializedError } from 'vitest'
import type { Reporter, TestModule, Vitest } from 'vitest/node'
import { problem, type TestResult } from './results.ts'

export interface Collector extends Reporter {
  /** All finished tests, and failures outside of tests. */
  results(): readonly TestResult[]
}

/** Creates a vitest reporter that keeps results and prints nothing. */
export function createCollector(onInit: (vitest: Vitest) => void): Collector {
  let results: TestResult[] = []
  return {
    onInit,
    onTestRunEnd(modules, unhandled) {
      results = [...modules.flatMap(resultsOf), ...unhandled.map(unhandledError)]
    },
    results: () => results,
  }
}

function resultsOf(module: TestModule): TestResult[] {
  const file = module.relativeModuleId
  const results = [...module.children.allTests()].map((test): TestResult => {
    const result = test.result()
    const { duration = 0, startTime } = test.diagnostic() ?? {}
    const base = { file, name: test.fullName, durationMs: Math.round(duration), startedMs: startTime }
    switch (result.state) {
      case 'passed':
        return { ...base, state: 'passed' }
      case 'skipped':
        return { ...base, state: 'skipped', reason: result.note }
      case 'failed':
        return { ...base, state: 'failed', reason: result.errors[0]?.message, story: test.meta().story }
      case 'pending':
        return { ...base, state: 'failed', reason: 'did not end' }
      default:
        return result satisfies never
    }
  })
  // A failed hook leaves its tests skipped, so it needs an entry of its own to be visible.
  const suites = [...module.children.allSuites()].flatMap(suite =>
    suite.errors().map(error => problem(file, `(hook) ${suite.fullName}`, error.message)),
  )
  const load = module.errors().map(error => problem(file, '(file)', error.message))
  return [...results, ...suites, ...load]
}

const unhandledError = (error: SerializedError): TestResult =>
  problem('', '(unhandled error)', String(error['message'] ?? error))

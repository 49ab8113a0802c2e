import { expect, test } from 'vitest'
import { failuresOf } from './failures.ts'
import { problem, type TestResult } from './results.ts'

const failed = (name: string, startedMs: number): TestResult => ({
  ...problem('file', name, 'why'),
  startedMs,
})

test('the first failure of all projects comes last, and after it what failed outside of tests', () => {
  const unit = [failed('second', 2_000), problem('file', '(hook)', 'why'), failed('fourth', 4_000)]
  const passed: TestResult = { file: 'file', name: 'passed', state: 'passed', durationMs: 1, startedMs: 500 }
  const e2e = [failed('first', 1_000), passed, failed('third', 3_000)]
  const found = failuresOf([
    { name: 'unit', durationMs: 1, tests: unit },
    { name: 'e2e', durationMs: 1, tests: e2e },
  ])
  expect(found.map(({ project, name }) => `${project} ${name}`)).toEqual([
    'unit fourth',
    'e2e third',
    'unit second',
    'e2e first',
    'unit (hook)',
  ])
})

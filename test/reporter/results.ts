/** The result of a test run, in out/test-results.json, for the checklist and for other programs. */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

export const projectNames = ['unit', 'apiserver', 'e2e'] as const
export type ProjectName = (typeof projectNames)[number]

export interface TestResult {
  readonly file: string
  /** Titles of the enclosing suites and of the test, joined by ` > `. */
  readonly name: string
  readonly state: 'passed' | 'failed' | 'skipped'
  readonly durationMs: number
  /** Milliseconds since the epoch; absent: it did not start, or its start is not known. */
  readonly startedMs?: number | undefined
  /** Why it was skipped, or the first error. */
  readonly reason?: string | undefined
  /** Facts about its cluster beside a failure, a line each. */
  readonly story?: readonly string[] | undefined
}

export interface ProjectResult {
  readonly name: ProjectName
  readonly durationMs: number
  /** A failure outside of any test (in a setup, or a file that could not be loaded) is included as a failed entry. */
  readonly tests: readonly TestResult[]
}

export interface TestRun {
  /** RFC 3339. */
  readonly startedAt: string
  readonly projects: readonly ProjectResult[]
}

export interface Totals {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

export const resultsFile = new URL('../../out/test-results.json', import.meta.url).pathname

export function totalsOf(projects: readonly ProjectResult[]): Totals {
  const tests = projects.flatMap(project => project.tests)
  const count = (state: TestResult['state']) => tests.filter(test => test.state === state).length
  return { passed: count('passed'), failed: count('failed'), skipped: count('skipped') }
}

/** Returns the last line of every test run: `N passed, N failed, N skipped`. */
export function summaryLine({ passed, failed, skipped }: Totals): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`
}

/** Returns a failed entry for a failure outside of tests, so that no sum can hide it. */
export function problem(file: string, name: string, reason: string): TestResult {
  return { file, name, state: 'failed', durationMs: 0, reason }
}

/** Writes to another name and renames, so that a reader never sees half a file. */
export async function writeJson(path: string, value: unknown): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  const part = `${path}.${process.pid}.part`
  await writeFile(part, `${JSON.stringify(value, null, 1)}\n`)
  await rename(part, path)
}

/** @throws Error with advice if the result is missing or has another format */
export async function readTestRun(path: string = resultsFile): Promise<TestRun> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw new Error(`no test run yet (${path}): run npm test first`)
    throw error
  })
  const run = JSON.parse(text) as Partial<TestRun>
  if (!Array.isArray(run.projects)) throw new Error(`${path} is no test run: run npm test again`)
  return run as TestRun
}

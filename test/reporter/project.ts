/**
 * Runs one vitest project in this process: `node test/reporter/project.ts JOB`, where JOB is a `Job` as JSON. SIGINT,
 * SIGTERM and the death of the parent end the run in order: the project's teardown always runs.
 */
import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { createVitest, type Vitest } from 'vitest/node'
import { type Collector, createCollector } from './collect.ts'
import { type ProjectName, type ProjectResult, problem, type TestResult, writeJson } from './results.ts'

export interface Job {
  /** Directory of vitest.config.ts. */
  readonly root: string
  readonly project: ProjectName
  readonly filters: readonly string[]
  /** Only tests whose full name matches. */
  readonly pattern: string | undefined
  /** Runs nothing; lists the tests found in the files as skipped for this reason. */
  readonly skip: string | undefined
  /** Path of the ProjectResult. */
  readonly output: string
}

/** How long a running test may continue after an interrupt. */
const patienceMs = 5_000

async function main(job: Job): Promise<void> {
  const started = performance.now()
  let running: Vitest | undefined
  let interrupted = false
  const collector = createCollector(vitest => {
    running = vitest
  })
  const interrupt = () => {
    if (interrupted) return
    interrupted = true
    if (running !== undefined) void stop(running)
  }
  const vitest = await createVitest({
    root: job.root,
    project: [job.project],
    watch: false,
    // Tests on a cluster take long, so each one is printed as it ends.
    reporters: [job.project === 'e2e' ? 'verbose' : 'default', collector],
    ...(job.pattern !== undefined && { testNamePattern: job.pattern }),
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    // Vitest's own listeners would exit at once, without the teardown.
    process.removeAllListeners(signal)
    process.on(signal, interrupt)
  }
  process.on('disconnect', interrupt)

  let tests: readonly TestResult[] = []
  try {
    tests = await testsOf(vitest, job, collector)
  } catch (error) {
    tests = [...collector.results(), problem('', '(project)', messageOf(error))]
    vitest.logger.printError(error, { type: `the project ${job.project} did not start` })
  }
  // From here on the exit code tells whether the teardown succeeded.
  process.exitCode = 0
  await vitest.close()
  if (process.exitCode !== 0) tests = [...tests, problem('', '(teardown)', 'the teardown failed, see above')]
  if (interrupted) tests = [...tests, problem('', '(run)', 'interrupted')]
  const result: ProjectResult = {
    name: job.project,
    durationMs: Math.round(performance.now() - started),
    tests,
  }
  await writeJson(job.output, result)
  process.exitCode = tests.some(test => test.state === 'failed') ? 1 : 0
  process.disconnect?.()
}

async function testsOf(vitest: Vitest, job: Job, collector: Collector): Promise<readonly TestResult[]> {
  const files = await vitest.getRelevantTestSpecifications([...job.filters])
  // A filter that matches files of only one project is no mistake in the others; the sum over all projects shows if
  // none matched.
  if (files.length === 0 && job.filters.length > 0) return []
  if (job.skip !== undefined) return listed(vitest, job.filters, job.skip)
  await vitest.start([...job.filters])
  return collector.results()
}

async function listed(vitest: Vitest, filters: readonly string[], reason: string): Promise<TestResult[]> {
  const { testModules } = await vitest.collect([...filters], { staticParse: true })
  return testModules.flatMap(module =>
    [...module.children.allTests()].map(test => ({
      file: module.relativeModuleId,
      name: test.fullName,
      state: 'skipped' as const,
      durationMs: 0,
      reason,
    })),
  )
}

async function stop(vitest: Vitest): Promise<void> {
  const cancelled = vitest.cancelCurrentRun('keyboard-input').catch(() => {
    // The run itself throws the same error to `main`.
  })
  const patience = new AbortController()
  const ended = await Promise.race([
    cancelled.then(() => true),
    sleep(patienceMs, false, { signal: patience.signal }).catch(() => true),
  ])
  patience.abort()
  // A test that does not end would keep its cluster up: kill its worker, then the teardown still runs.
  if (!ended) for (const pid of await workers()) process.kill(pid, 'SIGKILL')
}

/** Returns the pids of this process's vitest workers. */
async function workers(): Promise<number[]> {
  const self = `/proc/${process.pid}/task`
  const children = await Promise.all(
    (await readdir(self)).map(thread => readFile(`${self}/${thread}/children`, 'utf8')),
  )
  const pids = children.join(' ').split(/\s+/).filter(Boolean).map(Number)
  const lines = await Promise.all(pids.map(pid => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return pids.filter((_, i) => lines[i]?.includes('vitest/dist/workers'))
}

/** Returns the message, and the advice if the error has one. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { advice } = error as { advice?: unknown }
  return typeof advice === 'string' ? `${error.message}; what to do: ${advice}` : error.message
}

await main(JSON.parse(process.argv[2] ?? '') as Job)

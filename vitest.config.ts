import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/reporter/longest-first.ts'
import { waitLimitMs } from './test/support/wait-limit.ts'

/** The limits are against what hangs. How fast something is says nothing on a machine that others use, too. */
const patient = {
  setupFiles: ['test/support/patience.ts'],
  expect: { poll: { timeout: waitLimitMs } },
  testTimeout: 300_000,
  hookTimeout: 300_000,
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: 'unit',
          ...patient,
          include: [
            '{src,crds,playground,portability,build,images,plugin,bench,demo,drill,init-waker,kit,native,lint,release,site,first-day}/**/*.test.ts',
            'test/{unit,reporter,checklist,sim,model}/**/*.test.ts',
          ],
          // One more than the default of a machine with two processors: most of them wait for processes.
          maxWorkers: 2,
        },
      },
      {
        test: {
          name: 'apiserver',
          ...patient,
          include: ['test/apiserver/**/*.test.ts'],
          globalSetup: ['test/apiserver/setup.ts'],
          // Each with a server of its own: an operator sees all namespaces, and two of them would fight over each other's sets.
          maxWorkers: 2,
        },
      },
      {
        test: {
          name: 'e2e',
          ...patient,
          include: ['test/e2e/**/*.test.ts'],
          globalSetup: ['test/e2e/setup.ts'],
          // Real kubelets on a small machine: files share one cluster and run one after the other.
          fileParallelism: false,
        },
      },
    ],
  },
})

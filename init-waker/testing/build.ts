import { join } from 'node:path'
import { sanitizers, testProgram } from '../../build/testing/program.ts'
import { common } from '../../native/common/directory.ts'
import { program } from '../build.ts'

const here = import.meta.dirname

/**
 * Builds `waker` or the harness with glibc and gcc's address and undefined behaviour sanitizers, unlike the
 * release.
 */
export function buildSanitized(name: 'waker' | 'harness'): Promise<string> {
  return name === 'waker'
    ? testProgram({ ...program, name: 'waker-sanitized' }, { options: sanitizers })
    : testProgram(
        {
          ...{ ...program, name: 'waker-harness', directory: here },
          shared: [program.directory, common, join(common, 'testing')],
        },
        { options: sanitizers, without: ['app.c', '../main.c'] },
      )
}

/** Builds the app that the tests run under the waker; see app.c for its modes. */
export function buildApp(): Promise<string> {
  return testProgram({ name: 'waker-app', directory: here }, { options: [], without: ['harness.c'] })
}

import { join } from 'node:path'
import { sanitizers, testProgram } from '../../../build/testing/program.ts'
import { common } from '../../common/directory.ts'

const here = import.meta.dirname
const sentinel = join(here, '..')

/**
 * Builds the sentinel or the harness with glibc and gcc's address and undefined behaviour sanitizers, unlike
 * the release.
 */
export function buildSanitized(name: 'sentinel' | 'harness'): Promise<string> {
  return name === 'sentinel'
    ? testProgram(
        { name: 'sentinel-sanitized', directory: sentinel, shared: [common], libraries: ['libmd'] },
        { options: sanitizers },
      )
    : testProgram(
        {
          name: 'sentinel-harness',
          directory: here,
          shared: [sentinel, common, join(common, 'testing')],
          libraries: ['libmd'],
        },
        { options: sanitizers, without: ['app.c', '../main.c'] },
      )
}

/**
 * Builds the program that the tests run below the sentinel; see app.c. Static, so that it runs in any mount
 * namespace.
 */
export function buildApp(): Promise<string> {
  return testProgram(
    { name: 'sentinel-app', directory: here },
    { options: ['-static'], without: ['harness.c'] },
  )
}

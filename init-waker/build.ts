import type { DebianOptions } from '../build/debian.ts'
import { type Program, staticProgram } from '../build/static-program.ts'
import { common } from '../native/common/directory.ts'

export const program: Program = {
  name: 'waker',
  directory: import.meta.dirname,
  shared: [common],
  libraries: ['libmd'],
}

/**
 * Builds the static program `waker` against musl and returns its path in the cache.
 *
 * @throws as `staticProgram` does
 */
export function buildWaker(options: DebianOptions = {}): Promise<string> {
  return staticProgram(program, options)
}

if (import.meta.main) {
  console.log(await buildWaker({ progress: message => console.error(message) }))
}

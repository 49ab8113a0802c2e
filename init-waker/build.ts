import type { DebianOptions } from '../build/debian.ts'
import { staticProgram } from '../build/static-program.ts'
import { common } from '../native/common/directory.ts'

/**
 * Builds the static program `waker` against musl and returns its path in the cache.
 *
 * @throws as `staticProgram` does
 */
export function buildWaker(options: DebianOptions = {}): Promise<string> {
  return staticProgram({ name: 'waker', directory: import.meta.dirname, shared: [common] }, options)
}

if (import.meta.main) {
  console.log(await buildWaker({ progress: message => console.error(message) }))
}

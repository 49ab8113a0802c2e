import { join } from 'node:path'
import { cachedDirectory, cacheRoot, keyOf } from '../../../build/cache.ts'
import { findCompiler } from '../../../build/compile.ts'
import { run } from '../../../build/run.ts'
import { textsOf } from '../../../build/static-program.ts'

/**
 * Builds a program that queries the kernel as CRIU does; see asks.c, options.c and waits.c. Not static, so that it can
 * preload a library.
 */
export async function buildAsks(name: 'asks' | 'options' | 'waits' = 'asks'): Promise<string> {
  const compiler = await findCompiler({})
  const flags = ['-std=gnu17', '-D_GNU_SOURCE', '-O1', '-Wall', '-Wextra']
  const key = keyOf({
    sources: await textsOf(import.meta.dirname, /\.c$/),
    compiler: await run(compiler, ['--version']),
    flags,
  })
  const directory = await cachedDirectory(join(cacheRoot(), 'native', `${name}-${key}`), async scratch => {
    await run(compiler, [...flags, '-o', join(scratch, name), `${name}.c`], { cwd: import.meta.dirname })
  })
  return join(directory, name)
}

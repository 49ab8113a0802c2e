import { join } from 'node:path'
import { cachedDirectory, cacheRoot, keyOf } from '../build/cache.ts'
import { findCompiler } from '../build/compile.ts'
import type { DebianOptions } from '../build/debian.ts'
import { run } from '../build/run.ts'
import { includesOf, isUnit, sourcesOf } from '../build/static-program.ts'
import { common } from './common/directory.ts'

const program = { name: 'criu-shim', directory: join(import.meta.dirname, 'criu-shim'), shared: [common] }

/**
 * Builds the shared library that is loaded into CRIU and returns its path in the cache. It links to nothing,
 * so it works with any C library at run time.
 */
export async function criuShim(
  options: DebianOptions = {},
  limits: Readonly<Record<string, number>> = {},
): Promise<string> {
  const { signal } = options
  const withSignal = signal === undefined ? {} : { signal }
  const compiler = await findCompiler(options)
  const flags = [
    ...['-std=gnu17', '-O2', '-Wall', '-Wextra', '-Werror', '-ffreestanding', '-fno-builtin', '-fPIC'],
    ...['-fno-stack-protector', '-fno-asynchronous-unwind-tables', '-shared', '-nostdlib', '-s'],
    ...[
      '-Wl,--build-id=none',
      '-Wl,-z,relro',
      '-Wl,-z,now',
      '-Wl,-z,noexecstack',
      '-Wl,-soname,criu-shim.so',
    ],
    ...Object.entries(limits).map(([macro, figure]) => `-D${macro}=${figure}`),
  ]
  const inputs = {
    compiler: await run(compiler, ['--version'], withSignal),
    sources: await sourcesOf(program),
    flags,
  }
  const target = join(options.cacheDir ?? cacheRoot(), 'native', `criu-shim-${keyOf(inputs)}`)
  await cachedDirectory(target, async scratch => {
    options.progress?.('compile criu-shim.so')
    // It links to nothing, so it uses only the headers of what programs share.
    const units = Object.keys(inputs.sources).filter(path => isUnit(path) && !path.startsWith('../'))
    await run(compiler, [...flags, ...includesOf(program), '-o', join(scratch, 'criu-shim.so'), ...units], {
      ...withSignal,
      cwd: program.directory,
    })
  })
  return join(target, 'criu-shim.so')
}

import { join } from 'node:path'
import { cachedDirectory, cacheRoot, keyOf } from '../cache.ts'
import { findCompiler } from '../compile.ts'
import { projectVersion } from '../project-version.ts'
import { run } from '../run.ts'
import { flagsOf, includesOf, isUnit, librariesOf, type Program, sourcesOf } from '../static-program.ts'

/** gcc's address and undefined behaviour sanitizers. */
export const sanitizers: readonly string[] = [
  ...['-g', '-O1', '-fsanitize=address,undefined', '-fno-sanitize-recover=all', '-fno-omit-frame-pointer'],
]

/**
 * Builds a program for tests with glibc, unlike the release, and returns its path in the cache. `without` are C files
 * that do not belong to it, as paths from its directory.
 */
export async function testProgram(
  program: Program,
  { options, without = [] }: { readonly options: readonly string[]; readonly without?: readonly string[] },
): Promise<string> {
  const { name, directory } = program
  const compiler = await findCompiler({})
  const sources = await sourcesOf(program)
  const version = await projectVersion()
  const flags = (await flagsOf('cflags')).filter(flag => flag !== '-Werror')
  const units = Object.keys(sources).filter(source => isUnit(source) && !without.includes(source))
  const libraries = await librariesOf(program)
  const compilerVersion = await run(compiler, ['--version'])
  const key = keyOf({
    name,
    options,
    version,
    flags,
    sources,
    units,
    packages: libraries.packages,
    compilerVersion,
  })
  const target = await cachedDirectory(join(cacheRoot(), 'native', `${name}-${key}`), async scratch => {
    await run(
      compiler,
      [
        ...[...flags, ...options, `-DUNDERSTUDY_VERSION="${version}"`],
        ...[...includesOf(program), ...libraries.includes, '-o', join(scratch, name)],
        ...[...units, ...libraries.archives],
      ],
      { cwd: directory },
    )
  })
  return join(target, name)
}

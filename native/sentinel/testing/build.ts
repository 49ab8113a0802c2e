import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cachedDirectory, cacheRoot, keyOf } from '../../../build/cache.ts'
import { findCompiler } from '../../../build/compile.ts'
import { projectVersion } from '../../../build/project-version.ts'
import { run } from '../../../build/run.ts'
import { textsOf } from '../../../build/static-program.ts'

const here = import.meta.dirname
const sources = join(here, '..')

/**
 * Builds the sentinel or the harness with glibc and gcc's address and undefined behaviour sanitizers, unlike
 * the release.
 */
export function buildSanitized(name: 'sentinel' | 'harness'): Promise<string> {
  const sanitize = [
    ...['-g', '-O1', '-fsanitize=address,undefined', '-fno-sanitize-recover=all'],
    '-fno-omit-frame-pointer',
  ]
  return name === 'sentinel'
    ? compile('sentinel-sanitized', sanitize, units => units)
    : compile('sentinel-harness', sanitize, units => [
        ...units.filter(unit => unit !== 'main.c'),
        join(here, 'harness.c'),
      ])
}

/**
 * Builds the program that the tests run below the sentinel; see app.c. Static, so that it runs in any mount
 * namespace.
 */
export function buildApp(): Promise<string> {
  return compile('sentinel-app', ['-static'], () => [join(here, 'app.c')])
}

async function compile(
  name: string,
  options: readonly string[],
  choose: (units: readonly string[]) => readonly string[],
): Promise<string> {
  const compiler = await findCompiler({})
  const texts = await textsOf(sources, /\.[ch]$/)
  const version = await projectVersion()
  const cflags = await readFile(join(here, '../../../build/cflags'), 'utf8')
  const flags = cflags.split('\n').filter(flag => flag !== '' && flag !== '-Werror')
  const key = keyOf({
    ...{ texts, name, options, version, flags },
    compiler: await run(compiler, ['--version']),
    testing: await textsOf(here, /\.c$/),
  })
  const directory = await cachedDirectory(join(cacheRoot(), 'native', `${name}-${key}`), async scratch => {
    await run(
      compiler,
      [
        ...flags,
        ...options,
        `-DUNDERSTUDY_VERSION="${version}"`,
        ...['-I.', '-o', join(scratch, name)],
        ...choose(Object.keys(texts).filter(file => file.endsWith('.c'))),
      ],
      { cwd: sources },
    )
  })
  return join(directory, name)
}

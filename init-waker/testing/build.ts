import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { cachedDirectory, cacheRoot, keyOf } from '../../build/cache.ts'
import { findCompiler } from '../../build/compile.ts'
import { run } from '../../build/run.ts'
import { flags, isUnit, sourceInputs } from '../build.ts'

const here = import.meta.dirname

/**
 * Builds `waker` or the harness with glibc and gcc's address and undefined behaviour sanitizers, unlike the
 * release.
 */
export function buildSanitized(name: 'waker' | 'harness'): Promise<string> {
  const sanitize = [
    ...['-g', '-O1', '-fsanitize=address,undefined', '-fno-sanitize-recover=all'],
    '-fno-omit-frame-pointer',
  ]
  return name === 'waker'
    ? compile('waker-sanitized', sanitize, units => units)
    : compile('harness', sanitize, units => [
        ...units.filter(unit => unit !== 'main.c'),
        join(here, 'harness.c'),
      ])
}

/** Builds the app that the tests run under the waker; see app.c for its modes. */
export function buildApp(): Promise<string> {
  return compile('app', [], () => [join(here, 'app.c')])
}

async function compile(
  name: string,
  options: readonly string[],
  choose: (units: readonly string[]) => readonly string[],
): Promise<string> {
  const compiler = await findCompiler({})
  const { sources, version } = await sourceInputs(compiler)
  const cflags = (await flags('cflags')).filter(flag => flag !== '-Werror')
  const key = keyOf({
    sources,
    ...{ name, options, version, cflags },
    compiler: await run(compiler, ['--version']),
    extra: await Promise.all(['harness.c', 'app.c'].map(file => readFile(join(here, file), 'utf8'))),
  })
  const directory = await cachedDirectory(join(cacheRoot(), 'native', `${name}-${key}`), async scratch => {
    await run(
      compiler,
      [
        ...cflags,
        ...options,
        `-DWAKER_VERSION="${version}"`,
        ...['-I.', '-o', join(scratch, name)],
        ...choose(Object.keys(sources).filter(isUnit)),
      ],
      { cwd: dirname(here) },
    )
  })
  return join(directory, name)
}

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cachedDirectory, cacheRoot, keyOf } from '../build/cache.ts'
import { findCompiler } from '../build/compile.ts'
import { type DebianOptions, lockedPackages } from '../build/debian.ts'
import { projectVersion } from '../build/project-version.ts'
import { run } from '../build/run.ts'

const directory = import.meta.dirname

/**
 * Builds the static program `waker` against musl and returns its path in the cache. The same sources,
 * compiler and musl give the same bytes. musl comes from Debian as plain files; only a missing gcc is
 * installed.
 *
 * @throws if a tool is missing and cannot be installed, with the compiler's messages if it fails, and with
 * the signal's reason.
 */
export async function buildWaker(options: DebianOptions = {}): Promise<string> {
  const { signal } = options
  const compiler = await findCompiler(options)
  const musl = await lockedPackages('musl', options)
  const inputs = {
    ...(await sourceInputs(compiler, signal)),
    cflags: await flags('cflags'),
    ldflags: await flags('ldflags'),
    musl: musl.packages,
    recipe: 1,
  }
  const target = join(options.cacheDir ?? cacheRoot(), 'native', `waker-${keyOf(inputs)}`)
  await cachedDirectory(target, async scratch => {
    options.progress?.('compile waker')
    const ask = async (question: string) => (await run(compiler, [question], withSignal(signal))).trim()
    const triple = (await ask('-dumpmachine')).replace('-gnu', '-musl')
    const lib = join(musl.root, 'usr/lib', triple)
    await run(
      compiler,
      [
        ...['-nostdinc', '-isystem', join(musl.root, 'usr/include', triple)],
        ...['-isystem', await ask('-print-file-name=include')],
        ...inputs.cflags,
        `-DWAKER_VERSION="${inputs.version}"`,
        ...['-nostdlib', '-nostartfiles', `-L${lib}`, '-o', join(scratch, 'waker')],
        ...[join(lib, 'rcrt1.o'), join(lib, 'crti.o'), ...Object.keys(inputs.sources).filter(isUnit)],
        ...inputs.ldflags,
        ...['-Wl,--start-group', '-lc', '-lgcc', '-Wl,--end-group', join(lib, 'crtn.o')],
      ],
      // Relative names: the path of the checkout must not reach the binary.
      { ...withSignal(signal), cwd: directory },
    )
  })
  return join(target, 'waker')
}

export interface SourceInputs {
  readonly compiler: string
  readonly version: string
  /** Text of every C file here, by name, sorted. */
  readonly sources: Readonly<Record<string, string>>
}

/** Reads the inputs that every build of these sources depends on. */
export async function sourceInputs(compiler: string, signal?: AbortSignal): Promise<SourceInputs> {
  const names = (await readdir(directory)).filter(name => /\.[ch]$/.test(name)).sort()
  const texts = await Promise.all(names.map(name => readFile(join(directory, name), 'utf8')))
  return {
    compiler: await run(compiler, ['--version'], withSignal(signal)),
    version: await projectVersion(),
    sources: Object.fromEntries(names.map((name, index) => [name, texts[index] ?? ''])),
  }
}

/** Reads compiler flags from one of the flag files, which the Makefile reads too. */
export async function flags(name: 'cflags' | 'ldflags'): Promise<readonly string[]> {
  return (await readFile(join(directory, name), 'utf8')).split('\n').filter(line => line !== '')
}

export function isUnit(name: string): boolean {
  return name.endsWith('.c')
}

function withSignal(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal }
}

if (import.meta.main) {
  console.log(await buildWaker({ progress: message => console.error(message) }))
}

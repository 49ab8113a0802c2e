import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cachedDirectory, cacheRoot, keyOf } from './cache.ts'
import { findCompiler } from './compile.ts'
import { type DebianOptions, lockedPackages } from './debian.ts'
import { run } from './run.ts'

/**
 * Builds the C files of `directory` as a static executable `name` against musl, and returns its path in the
 * cache. The flags come from the files `cflags` and `ldflags` there, or else from those here. The same
 * sources, compiler and packages give the same bytes; musl and the kernel's headers come from Debian as plain
 * files.
 *
 * @throws with the compiler's messages, and with the signal's reason.
 */
export async function staticProgram(
  {
    name,
    directory,
    version,
    limits = {},
  }: {
    readonly name: string
    readonly directory: string
    readonly version: string
    /** Other values for macros of its sources, so that tests can reach a lower bound. */
    readonly limits?: Readonly<Record<string, number>>
  },
  options: DebianOptions = {},
): Promise<string> {
  const { signal } = options
  const withSignal = signal === undefined ? {} : { signal }
  const compiler = await findCompiler(options)
  const libc = await lockedPackages('musl-linux', options)
  const inputs = {
    compiler: await run(compiler, ['--version'], withSignal),
    version,
    sources: await textsOf(directory, /\.[ch]$/),
    cflags: [
      ...(await cFlags(directory)),
      ...Object.entries(limits).map(([macro, figure]) => `-D${macro}=${figure}`),
    ],
    ldflags: await flags(directory, 'ldflags'),
    packages: libc.packages,
    recipe: 1,
  }
  const target = join(options.cacheDir ?? cacheRoot(), 'native', `${name}-${keyOf(inputs)}`)
  await cachedDirectory(target, async scratch => {
    options.progress?.(`compile ${name}`)
    const ask = async (question: string) => (await run(compiler, [question], withSignal)).trim()
    const gnu = await ask('-dumpmachine')
    const triple = gnu.replace('-gnu', '-musl')
    const lib = join(libc.root, 'usr/lib', triple)
    await run(
      compiler,
      [
        ...['-nostdinc', '-isystem', join(libc.root, 'usr/include', triple)],
        ...['-isystem', await ask('-print-file-name=include')],
        // After the C library's own: the kernel's headers only add missing ones.
        ...['-idirafter', join(libc.root, 'usr/include'), '-idirafter', join(libc.root, 'usr/include', gnu)],
        ...inputs.cflags,
        `-DUNDERSTUDY_VERSION="${version}"`,
        ...['-nostdlib', '-nostartfiles', `-L${lib}`, '-o', join(scratch, name)],
        ...[join(lib, 'rcrt1.o'), join(lib, 'crti.o')],
        ...Object.keys(inputs.sources).filter(file => file.endsWith('.c')),
        ...inputs.ldflags,
        ...['-Wl,--start-group', '-lc', '-lgcc', '-Wl,--end-group', join(lib, 'crtn.o')],
      ],
      // Relative names: the path of the checkout must not reach the binary.
      { ...withSignal, cwd: directory },
    )
  })
  return join(target, name)
}

/** Reads the files of a directory; returns their texts by name, sorted. */
export async function textsOf(directory: string, pattern: RegExp): Promise<Readonly<Record<string, string>>> {
  const names = (await readdir(directory)).filter(name => pattern.test(name)).sort()
  const texts = await Promise.all(names.map(name => readFile(join(directory, name), 'utf8')))
  return Object.fromEntries(names.map((name, index) => [name, texts[index] ?? '']))
}

/** Reads the compiler flags for the C files of a directory. */
export function cFlags(directory: string): Promise<readonly string[]> {
  return flags(directory, 'cflags')
}

async function flags(directory: string, name: 'cflags' | 'ldflags'): Promise<readonly string[]> {
  const own = (await readdir(directory)).includes(name)
  const text = await readFile(join(own ? directory : import.meta.dirname, name), 'utf8')
  return text.split('\n').filter(line => line !== '')
}

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cachedDirectory, cacheRoot, keyOf } from '../images/cache.ts'
import { findCompiler } from '../images/compile.ts'
import { type DebianOptions, lockedPackages } from '../images/debian.ts'
import { run } from '../images/run.ts'

/**
 * Builds the program whose C files are those of `directory` as a static executable `name` against musl, and returns
 * its path in the cache. Flags are those of the files `cflags` and `ldflags` there, or of the ones here. The same
 * sources, compiler and packages give the same bytes; musl and the kernel's headers come from Debian as files only.
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
    /** Other figures for macros of its sources: bounds that no test can reach are lower in its program. */
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
        // Behind the C library's own: the kernel's headers only add what it has not.
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

/** Texts of the files of a directory by name, sorted. */
export async function textsOf(directory: string, pattern: RegExp): Promise<Readonly<Record<string, string>>> {
  const names = (await readdir(directory)).filter(name => pattern.test(name)).sort()
  const texts = await Promise.all(names.map(name => readFile(join(directory, name), 'utf8')))
  return Object.fromEntries(names.map((name, index) => [name, texts[index] ?? '']))
}

/** What the C files of a directory are compiled with. */
export function cFlags(directory: string): Promise<readonly string[]> {
  return flags(directory, 'cflags')
}

async function flags(directory: string, name: 'cflags' | 'ldflags'): Promise<readonly string[]> {
  const own = (await readdir(directory)).includes(name)
  const text = await readFile(join(own ? directory : import.meta.dirname, name), 'utf8')
  return text.split('\n').filter(line => line !== '')
}

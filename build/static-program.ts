import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { cachedDirectory, cacheRoot, keyOf } from './cache.ts'
import { findCompiler } from './compile.ts'
import { type DebianOptions, lockedPackages } from './debian.ts'
import type { SetName } from './package-sets.ts'
import { projectVersion } from './project-version.ts'
import { run } from './run.ts'

export interface Program {
  readonly name: string
  /** All its C files are compiled. */
  readonly directory: string
  /** Directories with C files and headers that it shares with other programs. */
  readonly shared?: readonly string[]
  /** Shared C files that are left out, as the program has its own: `main.c` of the program that it tests. */
  readonly replaces?: readonly string[]
  /** Locked sets of packages, each with a static library of the same name. The linker takes from it what is needed. */
  readonly libraries?: readonly SetName[]
}

/**
 * Builds a static executable against musl with the flags in `cflags` and `ldflags`, and returns its path in the cache.
 * The same sources, compiler and packages give the same bytes; musl and the kernel's headers come from Debian as plain
 * files. The linker drops shared functions that the program does not call.
 *
 * @param limits other values for macros of its sources, so that tests can reach a lower bound
 * @throws with the compiler's messages, and with the signal's reason.
 */
export async function staticProgram(
  program: Program,
  options: DebianOptions = {},
  limits: Readonly<Record<string, number>> = {},
): Promise<string> {
  const { name, directory } = program
  const { signal } = options
  const withSignal = signal === undefined ? {} : { signal }
  const compiler = await findCompiler(options)
  const libc = await lockedPackages('musl-linux', options)
  const libraries = await librariesOf(program, options)
  const inputs = {
    compiler: await run(compiler, ['--version'], withSignal),
    version: await projectVersion(),
    sources: await sourcesOf(program),
    cflags: [
      ...(await flagsOf('cflags')),
      ...Object.entries(limits).map(([macro, figure]) => `-D${macro}=${figure}`),
    ],
    ldflags: await flagsOf('ldflags'),
    packages: [...libc.packages, ...libraries.packages],
    recipe: 2,
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
        ...includesOf(program),
        ...libraries.includes,
        `-DUNDERSTUDY_VERSION="${inputs.version}"`,
        ...['-nostdlib', '-nostartfiles', `-L${lib}`, '-o', join(scratch, name)],
        ...[join(lib, 'rcrt1.o'), join(lib, 'crti.o')],
        ...Object.keys(inputs.sources).filter(isUnit),
        ...libraries.archives,
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

/** Reads the C files and headers of a program, the shared ones included; returns their texts by path from its directory. */
export async function sourcesOf({
  directory,
  shared = [],
  replaces = [],
}: Program): Promise<Readonly<Record<string, string>>> {
  const texts = await Promise.all(
    [directory, ...shared].map(async from =>
      Object.entries(await textsOf(from, /\.[ch]$/))
        .filter(([name]) => from === directory || !replaces.includes(name))
        .map(([name, text]) => [relative(directory, join(from, name)), text] as const),
    ),
  )
  return Object.fromEntries(texts.flat())
}

/** Returns the options with which the compiler finds shared headers. */
export const includesOf = ({ directory, shared = [] }: Program): readonly string[] =>
  shared.map(from => `-I${relative(directory, from)}`)

export interface Libraries {
  readonly packages: readonly string[]
  /** Options of the compiler. */
  readonly includes: readonly string[]
  readonly archives: readonly string[]
}

/** Returns what the compiler needs of a program's libraries. */
export async function librariesOf(
  { libraries = [] }: Program,
  options: DebianOptions = {},
): Promise<Libraries> {
  const trees = await Promise.all(
    libraries.map(async name => ({ name, ...(await lockedPackages(name, options)) })),
  )
  const archives = trees.map(async ({ name, root }) => {
    const lib = join(root, 'usr/lib')
    const [directory = ''] = (await readdir(lib)).filter(it => it.endsWith('-linux-gnu'))
    return join(lib, directory, `${name}.a`)
  })
  return {
    packages: trees.flatMap(({ packages }) => packages),
    // After the C library's own headers.
    includes: trees.flatMap(({ root }) => ['-idirafter', join(root, 'usr/include')]),
    archives: await Promise.all(archives),
  }
}

export const isUnit = (name: string): boolean => name.endsWith('.c')

/** Reads the flags of all static programs. The Makefiles read the same files. */
export async function flagsOf(name: 'cflags' | 'ldflags'): Promise<readonly string[]> {
  const text = await readFile(join(import.meta.dirname, name), 'utf8')
  return text.split('\n').filter(line => line !== '')
}

import { chmod, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { cachedDirectory, cacheRoot, keyOf } from '../images/cache.ts'
import { type DebianOptions, debianPackages, type PackageTree, type Suite } from '../images/debian.ts'
import { elfNeeds } from '../images/elf.ts'
import { withLibraries } from '../images/tree.ts'
import { preloadLibrary } from './preload-library.ts'

/**
 * A directory with programs and all that they need, usable wherever it lies and through whatever name it is reached:
 * `DIR/ld.so --library-path DIR/lib DIR/PROGRAM ARGUMENT...`.
 */
export interface Bundle {
  readonly directory: string
  /** Debian's version of each program. */
  readonly versions: Readonly<Record<string, string>>
  /** `name_version_arch` of the packages that it was taken from, sorted. */
  readonly packages: readonly string[]
}

/**
 * `criu/`: criu, tar, ld.so, lib/ and our preload.so. From Debian's testing release: no CRIU before
 * 4.2 can dump TCP sockets on kernels since 6.15, and images of another one must not be expected to be the same inside.
 */
export async function criuBundle(options: DebianOptions = {}): Promise<Bundle> {
  const bundle = await makeBundle(
    {
      name: 'criu',
      suite: 'forky',
      packages: ['criu', 'tar'],
      programs: { criu: '/usr/sbin/criu', tar: '/usr/bin/tar' },
      own: [await preloadLibrary(options)],
    },
    options,
  )
  const criu = bundle.versions['criu'] ?? ''
  if (!/^4\.[2-9]/.test(criu)) {
    throw new Error(`Debian's testing release has CRIU ${criu}; 4.2 or later of version 4 is needed`)
  }
  return bundle
}

/** `nft/`: nft, ld.so and lib/. */
export function nftBundle(options: DebianOptions = {}): Promise<Bundle> {
  return makeBundle(
    { name: 'nft', suite: 'trixie', packages: ['nftables'], programs: { nft: '/usr/sbin/nft' }, own: [] },
    options,
  )
}

interface Contents {
  readonly name: string
  readonly suite: Suite
  readonly packages: readonly string[]
  /** Path in the package tree of each program. */
  readonly programs: Readonly<Record<string, string>>
  /** Files of this machine to put beside them. */
  readonly own: readonly string[]
}

async function makeBundle(contents: Contents, options: DebianOptions): Promise<Bundle> {
  const { name, suite, programs, own } = contents
  const tree = await debianPackages(contents.packages, { ...options, suite })
  // What is our own lies in the cache under a key of its inputs, so its path says what it is.
  const key = keyOf({ packages: tree.packages, programs, own, recipe: 1 })
  const directory = join(options.cacheDir ?? cacheRoot(), 'bundles', `${name}-${key}`)
  await cachedDirectory(directory, async scratch => {
    options.progress?.(`bundle ${name}`)
    await fill(scratch, tree, contents)
    await writeFile(join(scratch, 'packages'), `${tree.packages.join('\n')}\n`)
    for (const path of own) await copyFile(path, join(scratch, basename(path)))
  })
  const versions = Object.keys(programs).map(program => [program, versionOf(tree, packageOf(program))])
  return { directory, packages: tree.packages, versions: Object.fromEntries(versions) }
}

async function fill(scratch: string, tree: PackageTree, { programs }: Contents): Promise<void> {
  await mkdir(join(scratch, 'lib'))
  const paths = Object.entries(programs).map(([program, path]) => ({ program, path }))
  const loaders = new Set<string>()
  for (const entry of await withLibraries(
    tree,
    paths.map(({ path }) => ({ path })),
  )) {
    if (entry.type !== 'file' || entry.content instanceof Uint8Array) continue
    const { source } = entry.content
    const program = paths.find(({ path }) => path === entry.path)?.program
    const { interpreter } = elfNeeds(await readFile(source))
    if (program !== undefined && interpreter !== undefined) loaders.add(basename(interpreter))
    const target = program ?? (loaders.has(basename(entry.path)) ? 'ld.so' : `lib/${basename(entry.path)}`)
    await copyFile(source, join(scratch, target))
    await chmod(join(scratch, target), 0o755)
  }
}

function packageOf(program: string): string {
  return program === 'nft' ? 'nftables' : program
}

function versionOf(tree: PackageTree, name: string): string {
  const found = tree.packages.find(it => it.startsWith(`${name}_`))
  if (found === undefined) throw new Error(`no package ${name} among ${tree.packages.join(' ')}`)
  return found.split('_')[1] ?? ''
}

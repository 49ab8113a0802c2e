import { chmod, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { cachedDirectory, cacheRoot, keyOf } from '../build/cache.ts'
import { type DebianOptions, lockedPackages, type PackageTree } from '../build/debian.ts'
import { elfNeeds } from '../build/elf.ts'
import { withLibraries } from '../build/tree.ts'
import { criuShim } from './criu-shim.ts'

/**
 * A directory with programs and all their dependencies, usable from any place and through any name:
 * `DIR/ld.so --library-path DIR/lib DIR/PROGRAM ARGUMENT...`.
 */
export interface Bundle {
  readonly directory: string
  /** Debian's version of each program. */
  readonly versions: Readonly<Record<string, string>>
  /** `name_version_arch` of the source packages, sorted. */
  readonly packages: readonly string[]
}

/** Paths in the tree of the packages of the same names. */
const programs = { criu: '/usr/sbin/criu', tar: '/usr/bin/tar' } as const

/** CRIU's directory for plugins. It is empty, but CRIU does not start without it. */
const plugins = 'plugins'

/**
 * The loader preloads the libraries in this file into every program, whatever its command line. In a
 * container the file is the application's, so the bundle's loader has no name for it.
 */
const preloadFile = '/etc/ld.so.preload'

/**
 * Builds a bundle of criu, tar, ld.so, lib/ and our criu-shim.so. Images of another CRIU version may be
 * incompatible.
 */
export async function criuBundle(options: DebianOptions = {}): Promise<Bundle> {
  const tree = await lockedPackages('criu', options)
  const versions = Object.fromEntries(Object.keys(programs).map(name => [name, versionOf(tree, name)]))
  if (!/^4\.[2-9]/.test(versions['criu'] ?? ''))
    throw new Error(
      `Debian's testing release has CRIU ${versions['criu']}; 4.2 or later of version 4 is needed`,
    )
  const shim = await criuShim(options)
  // The path of our own library in the cache contains a key of its inputs, so it identifies the library.
  const key = keyOf({ packages: tree.packages, programs, shim, recipe: 3 })
  const directory = join(options.cacheDir ?? cacheRoot(), 'bundles', `criu-${key}`)
  await cachedDirectory(directory, async scratch => {
    options.progress?.('bundle criu')
    await fill(scratch, tree)
    await mkdir(join(scratch, plugins))
    // Copies of the bundle have only files, so an empty directory would get lost.
    await writeFile(join(scratch, plugins, 'none'), '')
    await writeFile(join(scratch, 'packages'), `${tree.packages.join('\n')}\n`)
    await copyFile(shim, join(scratch, basename(shim)))
  })
  return { directory, packages: tree.packages, versions }
}

async function fill(scratch: string, tree: PackageTree): Promise<void> {
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
    if (target === 'ld.so') await writeFile(join(scratch, target), withoutPreloadFile(await readFile(source)))
    else await copyFile(source, join(scratch, target))
    await chmod(join(scratch, target), 0o755)
  }
}

/**
 * Returns the loader with an empty string in place of the file's name: no file has that name.
 *
 * @throws if the name does not occur exactly once: then it is unknown which file this loader reads.
 */
export function withoutPreloadFile(loader: Buffer): Buffer {
  const name = Buffer.from(`${preloadFile}\0`)
  const at = loader.indexOf(name)
  if (at < 0 || loader.indexOf(preloadFile, at + 1) >= 0 || loader.indexOf(preloadFile) !== at)
    throw new Error(`the loader of the bundle does not name ${preloadFile} exactly once`)
  return Buffer.from(loader).fill(0, at, at + name.length)
}

function versionOf(tree: PackageTree, name: string): string {
  const found = tree.packages.find(it => it.startsWith(`${name}_`))
  if (found === undefined) throw new Error(`no package ${name} among ${tree.packages.join(' ')}`)
  return found.split('_')[1] ?? ''
}

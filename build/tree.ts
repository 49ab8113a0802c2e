import { lstat, readdir, readFile, readlink, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { exists } from './cache.ts'
import type { PackageTree } from './debian.ts'
import { elfNeeds } from './elf.ts'
import type { Entry } from './entry.ts'

/** The symlinks of a merged /usr; Debian's paths go through them. */
export const mergedUsr: readonly Entry[] = ['bin', 'sbin', 'lib', 'lib64'].map(name => ({
  type: 'symlink',
  path: `/${name}`,
  target: `usr/${name}`,
}))

/** Returns a directory of the package tree with all its contents, unchanged; root owns everything. */
export async function takeTree(tree: PackageTree, path: string): Promise<Entry[]> {
  const entries: Entry[] = []
  const visit = async (at: string): Promise<void> => {
    const source = join(tree.root, at)
    const stat = await lstat(source)
    if (stat.isSymbolicLink()) entries.push({ type: 'symlink', path: at, target: await readlink(source) })
    else if (stat.isFile())
      entries.push({ type: 'file', path: at, mode: stat.mode & 0o777, content: { source } })
    else if (stat.isDirectory()) {
      entries.push({ type: 'directory', path: at, mode: 0o755 })
      for (const name of await readdir(source)) await visit(`${at}/${name}`)
    }
  }
  await visit(path)
  return entries
}

export interface Executable {
  /** Path in the image. */
  readonly path: string
  /** Path on this machine; default: the same path in the tree. */
  readonly source?: string
}

/**
 * Returns the executables with the dynamic loader and every library that they need, directly or not, from the tree: the
 * smallest file system in which they start. Libraries lie under their sonames, so no loader cache is needed.
 * @param provided names of libraries that the executables find by themselves
 * @throws if the tree lacks a library
 */
export async function withLibraries(
  tree: PackageTree,
  executables: readonly Executable[],
  provided: ReadonlySet<string> = new Set(),
): Promise<Entry[]> {
  const directories = await libraryDirectories(tree)
  const found = new Map<string, Entry>()
  const add = async (path: string, source: string): Promise<void> => {
    if (found.has(path)) return
    found.set(path, { type: 'file', path, mode: 0o755, content: { source } })
    const { interpreter, libraries } = elfNeeds(await readFile(source))
    if (interpreter !== undefined) await addLoader(interpreter)
    for (const library of libraries) await addLibrary(library, path)
  }
  const addLoader = async (interpreter: string): Promise<void> => {
    // The image reaches it through /lib64 -> usr/lib64; the tree has the same link.
    const path = interpreter.replace(/^\/lib/, '/usr/lib')
    if (!found.has(path)) {
      const source = await inTree(tree, path)
      found.set(path, { type: 'file', path, mode: 0o755, content: { source } })
    }
  }
  const addLibrary = async (library: string, wantedBy: string): Promise<void> => {
    if (library.startsWith('ld-linux') || provided.has(library)) return
    for (const directory of directories) {
      if (await exists(join(tree.root, directory, library))) {
        await add(`${directory}/${library}`, await inTree(tree, `${directory}/${library}`))
        return
      }
    }
    throw new Error(`${wantedBy} needs ${library}, which is in none of: ${tree.packages.join(', ')}`)
  }
  for (const { path, source } of executables) await add(path, source ?? (await inTree(tree, path)))
  return [...found.values()]
}

async function libraryDirectories(tree: PackageTree): Promise<string[]> {
  const names = await readdir(join(tree.root, 'usr/lib'))
  return [...names.filter(name => /-linux-gnu$/.test(name)).map(name => `/usr/lib/${name}`), '/usr/lib']
}

/** Returns the regular file behind a path of the tree; refuses links that lead out of it. */
async function inTree(tree: PackageTree, path: string): Promise<string> {
  const root = await realpath(tree.root)
  const source = await realpath(join(root, path))
  if (!source.startsWith(`${root}/`)) throw new Error(`${path} leads out of the package tree to ${source}`)
  return source
}

/** Returns /etc/passwd and /etc/group with root and one user of the given name and id. */
export function users(name: string, id: number): Entry[] {
  const text = (path: string, content: string): Entry => ({
    type: 'file',
    path,
    mode: 0o644,
    content: new TextEncoder().encode(content),
  })
  return [
    text(
      '/etc/passwd',
      `root:x:0:0:root:/root:/sbin/nologin\n${name}:x:${id}:${id}:${name}:/:/sbin/nologin\n`,
    ),
    text('/etc/group', `root:x:0:\n${name}:x:${id}:\n`),
  ]
}

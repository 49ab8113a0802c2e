/** Installs the packed kit as its users do: from its archive, in a directory that knows nothing of this repository. */
import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { packageName, packKit } from '../../../kit/build.ts'
import project from '../../../package.json' with { type: 'json' }

const run = promisify(execFile)
const root = new URL('../../../', import.meta.url)

interface Locked {
  readonly dependencies?: Readonly<Record<string, string>>
}

/**
 * Packs the kit, and installs it and `others` in a new directory.
 *
 * npm gets a lockfile with the versions and digests that this repository pins. So the packages come from npm's cache
 * where `npm ci` has left them, and a package that the kit needs and does not name is missing.
 *
 * @returns the directory.
 */
export async function installKit(below: string, others: readonly (keyof typeof pinned)[]): Promise<string> {
  const directory = join(below, 'operator')
  await mkdir(directory, { recursive: true })
  const archive = await packKit(join(below, 'kit'))
  const { dependencies }: Locked = JSON.parse(await readFile(join(below, 'kit/package/package.json'), 'utf8'))
  const manifest = {
    name: 'operator',
    private: true,
    type: 'module',
    dependencies: {
      [packageName]: `file:${relative(directory, archive)}`,
      ...Object.fromEntries(others.map(name => [name, pinned[name]])),
    },
  }
  const kit = { version: project.version, resolved: manifest.dependencies[packageName], dependencies }
  const lock = {
    ...{ name: manifest.name, lockfileVersion: 3, requires: true },
    packages: {
      '': manifest,
      [`node_modules/${packageName}`]: kit,
      ...(await lockedClosure([...Object.keys(dependencies ?? {}), ...others])),
    },
  }
  await writeFile(join(directory, 'package.json'), JSON.stringify(manifest))
  await writeFile(join(directory, 'package-lock.json'), JSON.stringify(lock))
  await run('npm', ['ci', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: directory,
  })
  return directory
}

const pinned = { ...project.dependencies, ...project.devDependencies }

/** Returns the entries of this repository's lockfile for these packages, and for all that they depend on. */
async function lockedClosure(names: readonly string[]): Promise<Readonly<Record<string, Locked>>> {
  const { packages }: { readonly packages: Readonly<Record<string, Locked>> } = JSON.parse(
    await readFile(new URL('package-lock.json', root), 'utf8'),
  )
  const found: Record<string, Locked> = {}
  /** As Node does: the nearest node_modules, from the package that imports outwards. */
  const pathOf = (name: string, from: string): string => {
    const path = `${from === '' ? '' : `${from}/`}node_modules/${name}`
    if (packages[path] !== undefined) return path
    if (from === '') throw new Error(`package-lock.json has no ${name}`)
    return pathOf(name, from.slice(0, Math.max(0, from.lastIndexOf('/node_modules/'))))
  }
  const add = (name: string, from: string) => {
    const path = pathOf(name, from)
    if (found[path] !== undefined) return
    const { dev: _, ...entry } = packages[path] as Locked & { readonly dev?: boolean }
    found[path] = entry
    for (const next of Object.keys(entry.dependencies ?? {})) add(next, path)
  }
  for (const name of names) add(name, '')
  return found
}

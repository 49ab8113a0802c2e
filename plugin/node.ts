/** Node for every platform of the plugin: from the npm registry, and only with the digest in node.lock.json. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { cachedDirectory, cacheRoot, keyOf } from '../build/cache.ts'
import { run } from '../build/run.ts'
import type { Platform } from './platform.ts'

interface LockedPackage {
  readonly name: string
  /** Path of the program in the package. */
  readonly binary: string
  /** SHA-512 of the package, in the form of package-lock.json. */
  readonly integrity: string
}

export interface NodeLock {
  readonly version: string
  readonly packages: Readonly<Record<Platform, LockedPackage>>
}

export const readNodeLock = async (): Promise<NodeLock> =>
  JSON.parse(await readFile(new URL('node.lock.json', import.meta.url), 'utf8')) as NodeLock

export interface NodeOptions {
  readonly cacheDir?: string
  readonly signal?: AbortSignal
  readonly progress?: (text: string) => void
}

/** Returns the directory of Node for a platform, unpacked. @throws for a package other than the locked one. */
export async function nodePackage(
  platform: Platform,
  { version, packages }: NodeLock,
  { cacheDir = cacheRoot(), signal, progress }: NodeOptions = {},
): Promise<{ readonly directory: string; readonly binary: string }> {
  const { name, binary, integrity } = packages[platform]
  const target = join(cacheDir, 'plugin', `${name}-${version}-${keyOf({ integrity, recipe: 1 })}`)
  await cachedDirectory(target, async scratch => {
    progress?.(`fetch ${name} ${version}`)
    const within = { ...(signal && { signal }) }
    await run('npm', ['pack', '--silent', '--pack-destination', scratch, `${name}@${version}`], within)
    const archive = join(scratch, `${name}-${version}.tgz`)
    await verify(archive, integrity)
    await run('tar', ['-xzf', archive, '-C', scratch], within)
  })
  const directory = join(target, 'package')
  return { directory, binary: join(directory, binary) }
}

/** @throws if the file is not the one with this digest */
export async function verify(path: string, integrity: string): Promise<void> {
  const hash = createHash('sha512')
  await pipeline(createReadStream(path), hash)
  const found = `sha512-${hash.digest('base64')}`
  if (found !== integrity)
    throw new Error(`${path} has the digest ${found}, not ${integrity} of plugin/node.lock.json: refused`)
}

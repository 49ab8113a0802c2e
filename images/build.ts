import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Architecture, imageArchitecture } from '../build/architecture.ts'
import { cachedDirectory, cacheRoot, keyOf } from '../build/cache.ts'
import { projectVersion } from '../build/project-version.ts'
import { type ImageSource, type PackedImage, packImage } from './archive.ts'
import { layerKey } from './layer.ts'
import { agent } from './recipes/agent.ts'
import { counter } from './recipes/counter.ts'
import { nginx } from './recipes/nginx.ts'
import { operator } from './recipes/operator.ts'
import { pause } from './recipes/pause.ts'
import type { Recipe } from './recipes/recipe.ts'
import { redis } from './recipes/redis.ts'
import { waker } from './recipes/waker.ts'
import { zoo } from './recipes/zoo.ts'
import { zooJava } from './recipes/zoo-java.ts'

export type { Entry } from '../build/entry.ts'
export { projectVersion } from '../build/project-version.ts'
export { type ImageConfig, type ImageSource, type PackedImage, packImage } from './archive.ts'

const usual = { operator, agent, waker, pause, counter, nginx, redis, zoo } satisfies Record<string, Recipe>
/** Large images, built only when requested by name. */
const large = { 'zoo-java': zooJava } satisfies Record<string, Recipe>
const recipes = { ...usual, ...large }

export type ImageName = keyof typeof recipes

/** The images that a playground gets. */
export const imageNames = Object.keys(usual) as readonly (keyof typeof usual)[]
export const allImageNames = Object.keys(recipes) as readonly ImageName[]

export interface BuildOptions {
  /** Default: this machine's. */
  readonly architecture?: Architecture
  /** Called before each step that the cache does not answer, with a message about it. */
  readonly progress?: (message: string) => void
  readonly signal?: AbortSignal
  readonly cacheDir?: string
  /** True to fail if Debian's archive has dropped a file of the lock. */
  readonly locked?: boolean
}

/**
 * Returns the given images as archives on this machine and builds those that the cache lacks for the present inputs. It
 * builds one at a time, because the slow steps use all processors by themselves.
 */
export async function ensureImages<N extends ImageName>(
  names: readonly N[],
  options: BuildOptions = {},
): Promise<Record<N, PackedImage>> {
  const built = new Map<N, PackedImage>()
  for (const name of new Set(names)) built.set(name, await ensureImage(name, options))
  return Object.fromEntries(built) as Record<N, PackedImage>
}

async function ensureImage(name: ImageName, options: BuildOptions): Promise<PackedImage> {
  const cacheDir = options.cacheDir ?? cacheRoot()
  const source = await recipes[name]({ ...options, cacheDir, version: await projectVersion() })
  return cachedImage(name, source, options)
}

/**
 * Like `packImage`, but into the cache: packs only if the cache has no archive of the same source. `name` is the file
 * name.
 */
export async function cachedImage(
  name: string,
  source: ImageSource,
  options: BuildOptions = {},
): Promise<PackedImage> {
  const { progress, cacheDir = cacheRoot(), architecture = imageArchitecture() } = options
  const key = keyOf({
    architecture,
    code: await readFile(new URL('./archive.ts', import.meta.url), 'utf8'),
    ref: source.ref,
    config: source.config,
    layers: await Promise.all(source.layers.map(layer => layerKey(layer.files, cacheDir))),
  })
  const target = join(cacheDir, 'images', `${name}-${key}`)
  const archive = `${name}.tar`
  await cachedDirectory(target, async scratch => {
    progress?.(`pack ${source.ref}`)
    const { ref, digest, size } = await packImage(join(scratch, archive), source, { ...options, cacheDir })
    await writeFile(join(scratch, 'image.json'), JSON.stringify({ ref, digest, size }))
    await forgetOldest(join(cacheDir, 'images'), name)
  })
  const known = JSON.parse(await readFile(join(target, 'image.json'), 'utf8')) as Omit<PackedImage, 'path'>
  return { ...known, path: join(target, archive) }
}

// Each change of a source makes a new archive of up to 45 MB. A few are kept for other branches and checkouts.
const KEPT = 8

async function forgetOldest(directory: string, name: string): Promise<void> {
  const all = (await readdir(directory)).filter(it => new RegExp(`^${name}-[0-9a-f]{24}$`).test(it))
  const dated = await Promise.all(
    all.map(async it => {
      // Another build may have removed it in the meantime.
      const known = await stat(join(directory, it)).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error
      })
      return { it, built: known?.mtimeMs ?? 0 }
    }),
  )
  for (const { it } of dated.sort((a, b) => b.built - a.built).slice(KEPT)) {
    await rm(join(directory, it), { recursive: true, force: true })
  }
}

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { imageArchitecture, type PackedImage, packImage } from './archive.ts'
import { cachedDirectory, cacheRoot, keyOf } from './cache.ts'
import { layerKey } from './layer.ts'
import { counter } from './recipes/counter.ts'
import { nginx } from './recipes/nginx.ts'
import { operator } from './recipes/operator.ts'
import { pause } from './recipes/pause.ts'
import type { Recipe } from './recipes/recipe.ts'
import { redis } from './recipes/redis.ts'
import { waker } from './recipes/waker.ts'

export { type ImageConfig, type ImageSource, type PackedImage, packImage } from './archive.ts'
export type { Entry } from './entry.ts'

const recipes = { operator, waker, pause, counter, nginx, redis } satisfies Record<string, Recipe>

export type ImageName = keyof typeof recipes

export const imageNames = Object.keys(recipes) as readonly ImageName[]

export interface BuildOptions {
  /** Told what is about to be done, only for steps that the cache does not answer. */
  readonly progress?: (message: string) => void
  readonly signal?: AbortSignal
  readonly cacheDir?: string
}

/**
 * The given images as archives on this machine, built where the cache has none for the present inputs. One after
 * the other: the slow steps use all processors by themselves.
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
  const key = keyOf({
    architecture: imageArchitecture(),
    code: await readFile(new URL('./archive.ts', import.meta.url), 'utf8'),
    ref: source.ref,
    config: source.config,
    layers: await Promise.all(source.layers.map(layer => layerKey(layer.files, cacheDir))),
  })
  const target = join(cacheDir, 'images', `${name}-${key}`)
  const archive = `${name}.tar`
  await cachedDirectory(target, async scratch => {
    options.progress?.(`pack ${source.ref}`)
    const { ref, digest, size } = await packImage(join(scratch, archive), source, { ...options, cacheDir })
    await writeFile(join(scratch, 'image.json'), JSON.stringify({ ref, digest, size }))
  })
  const known = JSON.parse(await readFile(join(target, 'image.json'), 'utf8')) as Omit<PackedImage, 'path'>
  return { ...known, path: join(target, archive) }
}

/** Version in package.json, which is the tag of our own images. */
export async function projectVersion(): Promise<string> {
  const text = await readFile(new URL('../package.json', import.meta.url), 'utf8')
  const { version } = JSON.parse(text) as { version: string }
  return version
}

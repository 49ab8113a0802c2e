import { readdir, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { cachedDirectory, cacheRoot, exists, keyOf } from '../../build/cache.ts'
import { type Progress, silent } from '../../src/terminal/progress.ts'
import { withLock } from '../lock.ts'
import { type ArtifactName, recipes } from './recipes.ts'

export type { ArtifactName } from './recipes.ts'
export const artifactNames = Object.keys(recipes) as readonly ArtifactName[]

export interface ArtifactOptions {
  readonly progress?: Progress | undefined
  readonly signal?: AbortSignal | undefined
  readonly cacheDir?: string
}

/**
 * Returns the directories of the given artifacts and builds those that the cache lacks for the present inputs. If two
 * processes want the same artifact, one of them builds it. Only two builds run at a time, because compilers use all
 * processors by themselves: one downloads while the other compiles.
 */
export async function ensureArtifacts<N extends ArtifactName>(
  names: readonly N[],
  options: ArtifactOptions = {},
): Promise<Record<N, string>> {
  const wanted = [...new Set(names)]
  const paths = new Map<N, string>()
  const waiting = [...wanted]
  const worker = async (): Promise<void> => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      paths.set(name, await ensureArtifact(name, options))
    }
  }
  await Promise.all([worker(), worker()])
  return Object.fromEntries(paths) as Record<N, string>
}

async function ensureArtifact(name: ArtifactName, options: ArtifactOptions): Promise<string> {
  const recipe = recipes[name]
  const { root, target } = await locate(name, options.cacheDir)
  if (await exists(target)) return target
  const logFile = `${target}.log`
  return (options.progress ?? silent).step(recipe.title, step =>
    withLock(
      `${target}.lock`,
      async () => {
        if (await exists(target)) return target
        await sweep(root, `${basename(target)}.work-`)
        await writeFile(logFile, '')
        await cachedDirectory(target, scratch =>
          recipe.build(scratch, { signal: options.signal, logFile, detail: step.detail }),
        )
        step.detail('')
        return target
      },
      {
        signal: options.signal,
        onWait: pid => step.detail(`waiting for process ${pid}, which builds it`),
      },
    ),
  )
}

async function locate(name: ArtifactName, cacheDir?: string): Promise<{ root: string; target: string }> {
  const root = join(cacheDir ?? cacheRoot(), 'artifacts')
  const key = keyOf({ architecture: process.arch, inputs: await recipes[name].inputs() })
  return { root, target: join(root, `${name}-${key}`) }
}

/** Removes scratch directories of builds that were killed. The caller holds the lock, so no process uses them. */
async function sweep(root: string, prefix: string): Promise<void> {
  for (const name of await readdir(root)) {
    if (name.startsWith(prefix)) await rm(join(root, name), { recursive: true, force: true })
  }
}

/** Returns the artifacts that would have to be built. */
export async function missingArtifacts<N extends ArtifactName>(
  names: readonly N[],
  cacheDir?: string,
): Promise<N[]> {
  const missing: N[] = []
  for (const name of names) if (!(await exists((await locate(name, cacheDir)).target))) missing.push(name)
  return missing
}

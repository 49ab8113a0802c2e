import { copyFile, cp } from 'node:fs/promises'
import { join } from 'node:path'
import { cachedDirectory, cacheRoot, keyOf } from '../images/cache.ts'
import type { DebianOptions } from '../images/debian.ts'
import { projectVersion } from '../images/project-version.ts'
import { buildWaker } from '../init-waker/build.ts'
import { type Bundle, criuBundle, nftBundle } from './bundles.ts'
import { staticProgram } from './static-program.ts'

/** The static programs of a node, by the directory they are in. */
export const programNames = ['cell', 'enter', 'layer', 'look', 'sentinel'] as const

export type ProgramName = (typeof programNames)[number]

/** Builds one of the static programs and returns its path in the cache. */
export async function buildProgram(name: ProgramName, options: DebianOptions = {}): Promise<string> {
  const directory = join(import.meta.dirname, name)
  return staticProgram({ name, directory, version: await projectVersion() }, options)
}

/** Everything native that an agent puts on its node. */
export interface NodeTools {
  /** In the cache: `cell`, `enter`, `layer`, `look`, `sentinel`, `waker`, `criu/` and `nft/`. */
  readonly directory: string
  readonly criu: Bundle
  readonly nft: Bundle
}

export async function buildNodeTools(options: DebianOptions = {}): Promise<NodeTools> {
  const programs: [name: string, path: string][] = [['waker', await buildWaker(options)]]
  for (const name of programNames) programs.push([name, await buildProgram(name, options)])
  const [criu, nft] = [await criuBundle(options), await nftBundle(options)]
  const bundles = [
    ['criu', criu.directory],
    ['nft', nft.directory],
  ] as const
  // All of these lie under keys of their inputs.
  const key = keyOf({ programs, bundles, recipe: 1 })
  const directory = join(options.cacheDir ?? cacheRoot(), 'native', `node-${key}`)
  await cachedDirectory(directory, async scratch => {
    for (const [name, path] of programs) await copyFile(path, join(scratch, name))
    for (const [name, path] of bundles) await cp(path, join(scratch, name), { recursive: true })
  })
  return { directory, criu, nft }
}

if (import.meta.main) {
  const tools = await buildNodeTools({ progress: message => console.error(message) })
  console.log(tools.directory)
  for (const [name, version] of Object.entries({ ...tools.criu.versions, ...tools.nft.versions })) {
    console.log(`${name} ${version}`)
  }
}

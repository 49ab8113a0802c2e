import { copyFile, cp } from 'node:fs/promises'
import { join } from 'node:path'
import { cachedDirectory, cacheRoot, keyOf } from '../build/cache.ts'
import type { DebianOptions } from '../build/debian.ts'
import { staticProgram } from '../build/static-program.ts'
import { buildWaker } from '../init-waker/build.ts'
import { common } from './common/directory.ts'
import { type Bundle, criuBundle } from './criu-bundle.ts'

/** The static programs of a node, named like their directories. */
export const programNames = [
  'inspect',
  'keep-listening',
  'nsrun',
  'pages',
  'rootfs',
  'sentinel',
  'sever',
  'test-container',
  'tracker',
] as const

export type ProgramName = (typeof programNames)[number]

/** Builds one of the static programs and returns its path in the cache. */
export function buildProgram(
  name: ProgramName,
  options: DebianOptions = {},
  limits: Readonly<Record<string, number>> = {},
): Promise<string> {
  const libraries = name === 'sentinel' ? (['libmd'] as const) : []
  return staticProgram(
    { name, directory: join(import.meta.dirname, name), shared: [common], libraries },
    options,
    limits,
  )
}

/** Everything native that an agent installs on its node. */
export interface NodeTools {
  /** In the cache: the programs of `programNames`, `waker` and `criu/`. */
  readonly directory: string
  readonly criu: Bundle
}

export async function buildNodeTools(options: DebianOptions = {}): Promise<NodeTools> {
  const programs: [name: string, path: string][] = [['waker', await buildWaker(options)]]
  for (const name of programNames) programs.push([name, await buildProgram(name, options)])
  const criu = await criuBundle(options)
  // The paths of these contain the keys of their inputs.
  const key = keyOf({ programs, criu: criu.directory, recipe: 2 })
  const directory = join(options.cacheDir ?? cacheRoot(), 'native', `node-${key}`)
  await cachedDirectory(directory, async scratch => {
    for (const [name, path] of programs) await copyFile(path, join(scratch, name))
    await cp(criu.directory, join(scratch, 'criu'), { recursive: true })
  })
  return { directory, criu }
}

if (import.meta.main) {
  const tools = await buildNodeTools({ progress: message => console.error(message) })
  console.log(tools.directory)
  for (const [name, version] of Object.entries(tools.criu.versions)) {
    console.log(`${name} ${version}`)
  }
}

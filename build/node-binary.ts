import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { cachedDirectory, cacheRoot, keyOf } from './cache.ts'
import { findCompiler } from './compile.ts'
import type { DebianOptions } from './debian.ts'
import { readNodeLock, verifiedNode } from './node-lock.ts'
import { run } from './run.ts'

/**
 * Strips the symbols from the Node binary of the development dependency `node` (a sixth of its size). Returns its path
 * in the cache.
 *
 * @throws for a binary other than the locked one
 */
export async function strippedNode(options: DebianOptions = {}): Promise<string> {
  const { signal, progress, cacheDir = cacheRoot() } = options
  const require = createRequire(import.meta.url)
  const manifest = require.resolve('node/package.json')
  const { version } = require(manifest) as { version: string }
  const binary = join(dirname(manifest), 'bin/node')
  const sha256 = await verifiedNode(binary, version, { lock: await readNodeLock() })
  // strip comes with the compiler.
  await findCompiler(options)
  const strip = await run('strip', ['--version'])
  const target = join(cacheDir, 'native', `node-${keyOf({ version, sha256, strip, recipe: 1 })}`)
  await cachedDirectory(target, async scratch => {
    progress?.(`strip node ${version}`)
    await run('strip', ['--strip-all', '-o', join(scratch, 'node'), binary], { ...(signal && { signal }) })
  })
  return join(target, 'node')
}

import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { type Architecture, imageArchitecture, toolchainFor } from './architecture.ts'
import { cachedDirectory, cacheRoot, keyOf } from './cache.ts'
import { findCompiler } from './compile.ts'
import type { DebianOptions } from './debian.ts'
import { readNodeLock, verifiedNode } from './node-lock.ts'
import { run } from './run.ts'

/** Node's names of the architectures. */
const namesOfNode: Readonly<Record<Architecture, string>> = { amd64: 'x64', arm64: 'arm64' }

/**
 * Strips the symbols from the Node binary of the development dependency `node` (a sixth of its size), or from that of
 * another architecture in the same version. Returns its path in the cache.
 *
 * @throws for a binary other than the locked one
 */
export async function strippedNode(options: DebianOptions = {}): Promise<string> {
  const { signal, progress, cacheDir = cacheRoot(), architecture = imageArchitecture() } = options
  const { version, binary } = await nodeBinary(architecture, options)
  const sha256 = await verifiedNode(binary, version, {
    lock: await readNodeLock(),
    architecture: namesOfNode[architecture],
  })
  // strip comes with the compiler.
  await findCompiler(options)
  const program = toolchainFor(architecture).strip
  const strip = await run(program, ['--version'])
  const target = join(cacheDir, 'native', `node-${keyOf({ version, sha256, strip, recipe: 1 })}`)
  await cachedDirectory(target, async scratch => {
    progress?.(`strip node ${version} for ${architecture}`)
    await run(program, ['--strip-all', '-o', join(scratch, 'node'), binary], { ...(signal && { signal }) })
  })
  return join(target, 'node')
}

/** Returns the version of the development dependency `node`. */
export function nodeVersion(): string {
  return ownNode().version
}

function ownNode(): { readonly version: string; readonly binary: string } {
  const require = createRequire(import.meta.url)
  const manifest = require.resolve('node/package.json')
  const { version } = require(manifest) as { version: string }
  return { version, binary: join(dirname(manifest), 'bin/node') }
}

/** The caller verifies the binary: the cache and the registry are not trusted here. */
async function nodeBinary(
  architecture: Architecture,
  { signal, progress, cacheDir = cacheRoot() }: DebianOptions,
): Promise<{ readonly version: string; readonly binary: string }> {
  const own = ownNode()
  if (architecture === imageArchitecture()) return own
  const { version } = own
  const name = `node-linux-${namesOfNode[architecture]}`
  const target = join(cacheDir, 'node', `${name}-${version}`)
  await cachedDirectory(target, async scratch => {
    progress?.(`fetch ${name} ${version}`)
    const within = { ...(signal && { signal }) }
    await run('npm', ['pack', '--silent', '--pack-destination', scratch, `${name}@${version}`], within)
    await run('tar', ['-xzf', join(scratch, `${name}-${version}.tgz`), '-C', scratch], within)
  })
  return { version, binary: join(target, 'package/bin/node') }
}

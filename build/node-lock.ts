import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'

/**
 * Digests of the Node binary: its package downloads it in an install script, which package-lock.json does not cover.
 */
export interface NodeLock {
  readonly version: string
  /** By Node's name of the architecture. */
  readonly sha256: Readonly<Record<string, string>>
}

export const nodeLockPath = fileURLToPath(new URL('node.lock.json', import.meta.url))

export async function readNodeLock(): Promise<NodeLock> {
  return JSON.parse(await readFile(nodeLockPath, 'utf8')) as NodeLock
}

/**
 * Verifies that a binary is the locked one and returns its digest.
 *
 * @param architecture Node's name of it
 * @throws for any other binary, version or architecture
 */
export async function verifiedNode(
  binary: string,
  version: string,
  { lock, architecture = process.arch }: { readonly lock: NodeLock; readonly architecture?: string },
): Promise<string> {
  const expected = lock.version === version ? lock.sha256[architecture] : undefined
  if (expected === undefined)
    throw new Error(
      `${nodeLockPath} has no digest of Node ${version} for ${architecture}: see CONTRIBUTING.md for how to add one`,
    )
  const hash = createHash('sha256')
  await pipeline(createReadStream(binary), hash)
  const found = hash.digest('hex')
  if (found !== expected)
    throw new Error(
      `${binary} is not Node ${version} with SHA-256 ${expected}, but has ${found}: refused. ` +
        'Remove node_modules and run `npm ci`; if this repeats, the file was exchanged at its source',
    )
  return found
}

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'

/** The Node binary by digest: its package downloads it in a script of its own, past what package-lock.json has. */
export interface NodeLock {
  readonly version: string
  /** By the architecture's name in Node. */
  readonly sha256: Readonly<Record<string, string>>
}

export const nodeLockPath = fileURLToPath(new URL('node.lock.json', import.meta.url))

export async function readNodeLock(): Promise<NodeLock> {
  return JSON.parse(await readFile(nodeLockPath, 'utf8')) as NodeLock
}

/**
 * Returns the digest of a binary that is the locked one.
 *
 * @param architecture as Node names it.
 * @throws for any other binary, version or architecture.
 */
export async function verifiedNode(
  binary: string,
  version: string,
  { lock, architecture = process.arch }: { readonly lock: NodeLock; readonly architecture?: string },
): Promise<string> {
  const expected = lock.version === version ? lock.sha256[architecture] : undefined
  if (expected === undefined)
    throw new Error(
      `${nodeLockPath} has no digest of Node ${version} for ${architecture}: CONTRIBUTING.md says how to add one`,
    )
  const hash = createHash('sha256')
  await pipeline(createReadStream(binary), hash)
  const found = hash.digest('hex')
  if (found !== expected)
    throw new Error(
      `${binary} is not Node ${version} with SHA-256 ${expected}, but a file with ${found}: it is refused. ` +
        'Remove node_modules and run `npm ci`; if it stays, somebody has exchanged it where it is downloaded from',
    )
  return found
}

/** Files of generations. They contain the memory of applications, so only root may read them. */
import { createHash } from 'node:crypto'
import { chmod, type FileHandle, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { CheckpointError } from './errors.ts'

/**
 * Bytes read and hashed at once: well under a millisecond of this thread, and large enough that the round trip to the
 * thread pool does not matter.
 */
export const chunkBytes = 512 * 1024

export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

export async function writeDurably(path: string, content: string | Iterable<Uint8Array>): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** @throws the signal's reason. */
export async function hashAndSync(
  path: string,
  signal?: AbortSignal,
): Promise<{ size: number; sha256: string }> {
  const file = await open(path, 'r')
  try {
    const hash = createHash('sha256')
    let size = 0
    for await (const chunk of chunksOf(file)) {
      signal?.throwIfAborted()
      hash.update(chunk)
      size += chunk.length
    }
    await file.sync()
    return { size, sha256: hash.digest('hex') }
  } finally {
    await file.close()
  }
}

/**
 * Yields the content of a file from its start, and reads one chunk ahead. A chunk is valid only until the next one is
 * requested.
 */
export async function* chunksOf(file: FileHandle): AsyncGenerator<Buffer> {
  const buffers = [Buffer.allocUnsafe(chunkBytes), Buffer.allocUnsafe(chunkBytes)] as const
  const read = (target: Buffer, at: number) => {
    const reading = file.read(target, 0, target.length, at)
    // The next `await` reports a failure. Without this, Node would also report an unhandled rejection.
    reading.catch(() => undefined)
    return reading
  }
  let [present, next] = buffers
  let coming = read(present, 0)
  try {
    for (let at = 0; ; ) {
      const { bytesRead } = await coming
      if (bytesRead === 0) return
      at += bytesRead
      coming = read(next, at)
      yield present.subarray(0, bytesRead)
      ;[present, next] = [next, present]
    }
  } finally {
    // The buffer belongs to the kernel until then, and the caller closes the file.
    await coming.catch(() => undefined)
  }
}

export interface Tree {
  /** Paths below the root, sorted. */
  readonly files: readonly string[]
  /** Paths below the root, parents first; '' is the root. */
  readonly directories: readonly string[]
}

/**
 * Lists everything below a directory and makes it private: 0600 and 0700.
 * @throws CheckpointError BadDraft when an entry is neither a plain file nor a directory.
 */
export async function privateTree(root: string): Promise<Tree> {
  const files: string[] = []
  const directories: string[] = []
  const walk = async (below: string): Promise<void> => {
    directories.push(below)
    await chmod(join(root, below), 0o700)
    for (const entry of await readdir(join(root, below), { withFileTypes: true })) {
      const path = below === '' ? entry.name : `${below}/${entry.name}`
      if (entry.isDirectory()) await walk(path)
      else if (entry.isFile()) {
        await chmod(join(root, path), 0o600)
        files.push(path)
      } else throw new CheckpointError('BadDraft', `${path} is neither a plain file nor a directory`)
    }
  }
  await walk('')
  return { files: files.sort(), directories }
}

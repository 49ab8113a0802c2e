import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { type Pack, pack } from 'tar-stream'
import { cachedDirectory, cacheRoot, keyOf } from '../build/cache.ts'
import { type Entry, orderEntries } from '../build/entry.ts'

/** A layer on disk: a gzip-compressed tar, with the two digests by which an image names it. */
export interface Layer {
  readonly path: string
  /** sha256 of the compressed bytes, hex: the blob's name. */
  readonly digest: string
  /** sha256 of the tar inside, hex: the "diff id" of the image's configuration. */
  readonly diffId: string
  /** Compressed size in bytes. */
  readonly size: number
}

// The same fixed time for all entries: an image's digest, not its clock, tells when its inputs changed.
export const EPOCH = new Date(0)

/**
 * Writes the entries as one layer to `path`. The same entries give the same bytes (same Node version and processor
 * architecture): sorted, time zero, numeric owners.
 */
export async function writeLayer(
  path: string,
  entries: readonly Entry[],
  signal?: AbortSignal,
): Promise<Layer> {
  signal?.throwIfAborted()
  const tar = pack()
  // The pipeline reports errors. Without this handler, an error on a stream that the pipeline has released would end
  // the process.
  tar.on('error', () => {})
  const uncompressed = hasher()
  const compressed = hasher()
  const written = pipeline(
    tar,
    uncompressed.through,
    createGzip({ level: 6 }),
    compressed.through,
    createWriteStream(path),
    { ...(signal && { signal }) },
  )
  // An unreadable entry must fail the pipeline, and a failed pipeline must end the wait for an entry.
  const filled = fill(tar, entries).catch((error: Error) => tar.destroy(error))
  await Promise.all([written, filled])
  const { digest, size } = compressed.result()
  return { path, digest, diffId: uncompressed.result().digest, size }
}

export interface LayerOptions {
  readonly cacheDir?: string
  readonly signal?: AbortSignal
}

/** Like `writeLayer`, but cached: compressing a Node binary takes seconds and its content seldom changes. */
export async function cachedLayer(entries: readonly Entry[], options: LayerOptions = {}): Promise<Layer> {
  const cacheDir = options.cacheDir ?? cacheRoot()
  const target = join(cacheDir, 'layers', await layerKey(entries, cacheDir))
  await cachedDirectory(target, async scratch => {
    const { digest, diffId, size } = await writeLayer(join(scratch, 'layer.tar.gz'), entries, options.signal)
    await writeFile(join(scratch, 'layer.json'), JSON.stringify({ digest, diffId, size }))
  })
  const known = JSON.parse(await readFile(join(target, 'layer.json'), 'utf8')) as Omit<Layer, 'path'>
  return { ...known, path: join(target, 'layer.tar.gz') }
}

/**
 * Returns the key of everything that a layer's bytes depend on, including this code and the compressor (Node's zlib).
 */
export async function layerKey(entries: readonly Entry[], cacheDir: string): Promise<string> {
  const code = await Promise.all(
    ['./layer.ts', '../build/entry.ts'].map(it => readFile(new URL(it, import.meta.url), 'utf8')),
  )
  const described = await Promise.all(orderEntries(entries).map(entry => describe(entry, cacheDir)))
  return keyOf({ code, node: process.version, described })
}

async function describe(entry: Entry, cacheDir: string): Promise<unknown> {
  if (entry.type !== 'file') return entry
  if (entry.content instanceof Uint8Array) {
    return { ...entry, content: createHash('sha256').update(entry.content).digest('hex') }
  }
  const inCache = relative(cacheDir, entry.content.source)
  // A file in the cache has its key in its path and never changes; for other files, size and mtime count.
  if (!inCache.startsWith('..')) return { ...entry, content: inCache }
  const { size, mtimeMs } = await stat(entry.content.source)
  return { ...entry, content: { ...entry.content, size, mtimeMs } }
}

async function fill(tar: Pack, entries: readonly Entry[]): Promise<void> {
  for (const entry of orderEntries(entries)) await add(tar, entry)
  tar.finalize()
}

async function add(tar: Pack, entry: Entry): Promise<void> {
  const name = entry.path.slice(1)
  switch (entry.type) {
    case 'directory':
      tar.entry({ name: `${name}/`, type: 'directory', mode: entry.mode, ...ownerOf(entry), mtime: EPOCH })
      return
    case 'symlink':
      tar.entry({ name, type: 'symlink', linkname: entry.target, mode: 0o777, uid: 0, gid: 0, mtime: EPOCH })
      return
    case 'file': {
      const header = { name, type: 'file' as const, mode: entry.mode, ...ownerOf(entry), mtime: EPOCH }
      if (entry.content instanceof Uint8Array) {
        tar.entry(header, Buffer.from(entry.content))
        return
      }
      const { size } = await stat(entry.content.source)
      const sink = tar.entry({ ...header, size })
      await pipeline(createReadStream(entry.content.source), sink)
    }
  }
}

function ownerOf(entry: { readonly uid?: number; readonly gid?: number }): { uid: number; gid: number } {
  return { uid: entry.uid ?? 0, gid: entry.gid ?? 0 }
}

/** Creates a pass-through stream that computes the sha256 and the length of its data. */
export function hasher(): { through: Transform; result(): { digest: string; size: number } } {
  const hash = createHash('sha256')
  let size = 0
  const through = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk)
      size += chunk.length
      done(null, chunk)
    },
  })
  let digest: string | undefined
  return {
    through,
    result() {
      digest ??= hash.digest('hex')
      return { digest, size }
    },
  }
}

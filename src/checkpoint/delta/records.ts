/**
 * Format of a delta before compression: a magic line, a header (4-byte length and JSON), then for each file of the
 * manifest, in its order, the records that give its content from start to end. Integers are little-endian.
 *
 * | record | fields |
 * |---|---|
 * | copy | 1; u32 index of a file of the base's manifest; u48 offset; u48 length |
 * | literal | 2; u32 length; the bytes |
 * | end of the file | 3 |
 * | end of the delta | 4, after the last file |
 */
import { createHash } from 'node:crypto'
import { CheckpointError } from '../errors.ts'
import { fieldsOf, type Manifest, parseManifest } from '../manifest.ts'

export const magic = Buffer.from('understudy-delta/1\n')

export const kinds = { copy: 1, literal: 2, endOfFile: 3, end: 4 } as const

export const copyBytes = 1 + 4 + 6 + 6
export const literalHeadBytes = 1 + 4

/** Most bytes of one literal: a receiver holds that many at once. */
export const longestLiteral = 512 * 1024

/** A header is little more than a manifest: a few hundred bytes for each thread and file. */
export const longestHeader = 8 * 1024 * 1024

export interface Header {
  /** The generation that copies refer to. Absent: the delta has no copies. */
  readonly base?: { readonly epoch: number; readonly generation: number; readonly digest: string }
  readonly manifest: Manifest
}

/** Identifies the content of a generation: a hash of paths, sizes and digests of all its files. */
export function contentDigest({ files }: Manifest): string {
  const hash = createHash('sha256')
  for (const { path, size, sha256 } of files) hash.update(`${sha256} ${size} ${path}\n`)
  return hash.digest('hex')
}

export function formatHeader(header: Header): Buffer {
  const json = Buffer.from(JSON.stringify({ ...header, manifest: fieldsOf(header.manifest) }))
  const bytes = Buffer.alloc(magic.length + 4 + json.length)
  magic.copy(bytes)
  bytes.writeUInt32LE(json.length, magic.length)
  json.copy(bytes, magic.length + 4)
  return bytes
}

/** @throws CheckpointError Corrupt, BadManifest */
export function parseHeader(json: string): Header {
  let header: Record<string, unknown>
  try {
    header = Object(JSON.parse(json))
  } catch (error) {
    throw new CheckpointError('Corrupt', 'the header of the delta is not JSON', error)
  }
  const manifest = parseManifest(JSON.stringify(header['manifest'] ?? null))
  if (header['base'] === undefined) return { manifest }
  const { epoch, generation, digest } = Object(header['base'])
  if (!Number.isSafeInteger(epoch) || !Number.isSafeInteger(generation) || typeof digest !== 'string')
    throw new CheckpointError('Corrupt', 'the header of the delta names no base')
  return { manifest, base: { epoch, generation, digest } }
}

/** Gathers records into pieces large enough for the compressor. A piece is never written to again. */
export function createRecordWriter(pieceBytes = 256 * 1024) {
  let piece = Buffer.allocUnsafe(pieceBytes)
  let used = 0
  const full: Buffer[] = []
  let copy: { readonly file: number; readonly offset: number; length: number } | undefined

  function room(bytes: number): Buffer {
    if (used + bytes > piece.length) {
      full.push(piece.subarray(0, used))
      piece = Buffer.allocUnsafe(Math.max(pieceBytes, bytes))
      used = 0
    }
    used += bytes
    return piece
  }

  function endCopy() {
    if (copy === undefined) return
    const { file, offset, length } = copy
    copy = undefined
    const target = room(copyBytes)
    let at = used - copyBytes
    at = target.writeUInt8(kinds.copy, at)
    at = target.writeUInt32LE(file, at)
    at = target.writeUIntLE(offset, at, 6)
    target.writeUIntLE(length, at, 6)
  }

  return {
    /** Merges copies that are adjacent in the base into one record. */
    copy(file: number, offset: number, length: number) {
      if (copy !== undefined && copy.file === file && copy.offset + copy.length === offset) {
        copy.length += length
        return
      }
      endCopy()
      copy = { file, offset, length }
    },
    /** Copies the bytes. */
    literal(bytes: Buffer) {
      endCopy()
      for (let from = 0; from < bytes.length; from += longestLiteral) {
        const part = bytes.subarray(from, from + longestLiteral)
        const target = room(literalHeadBytes + part.length)
        const at = target.writeUInt32LE(
          part.length,
          target.writeUInt8(kinds.literal, used - literalHeadBytes - part.length),
        )
        part.copy(target, at)
      }
    },
    mark(kind: typeof kinds.endOfFile | typeof kinds.end) {
      endCopy()
      room(1).writeUInt8(kind, used - 1)
    },
    /** Returns the complete pieces; with `all`, also the unfinished one. */
    take(all = false): Buffer[] {
      if (all && used > 0) {
        endCopy()
        full.push(piece.subarray(0, used))
        piece = Buffer.allocUnsafe(pieceBytes)
        used = 0
      }
      return full.splice(0)
    },
  }
}

export type RecordWriter = ReturnType<typeof createRecordWriter>

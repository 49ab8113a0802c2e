/**
 * Encryption of a stream in a file, AES-256-GCM in chunks. Each file has its own key, derived from the slot's key and
 * 16 random bytes. The nonce of a chunk is its number and whether it is the last one. So decryption fails at a chunk
 * that is changed, moved, left out, from another file, or missing at the end, before it hands out a byte of that chunk.
 *
 *     magic (8) | salt (16) | chunk 0 | ... | chunk n        chunk: ciphertext (256 KiB, the last one less) | tag (16)
 */
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { CheckpointError } from '../errors.ts'

const magic = Buffer.from('USTDGEN1')
const saltLength = 16
const tagLength = 16
export const headerLength = magic.length + saltLength
/** Plaintext bytes of a chunk. */
export const chunkLength = 256 * 1024
const sealedChunkLength = chunkLength + tagLength
const cipher = 'aes-256-gcm'

const fileKey = (secret: Uint8Array, salt: Uint8Array) =>
  Buffer.from(hkdfSync('sha256', secret, salt, 'understudy/1 file', 32))

function nonce(chunk: number, last: boolean): Buffer {
  const bytes = Buffer.alloc(12)
  bytes.writeUIntBE(chunk, 5, 6)
  bytes.writeUInt8(last ? 1 : 0, 11)
  return bytes
}

/** @param salt 16 random bytes, never used twice with the same secret. */
export async function* seal(
  source: AsyncIterable<Buffer>,
  secret: Uint8Array,
  salt: Uint8Array,
): AsyncGenerator<Buffer> {
  if (salt.length !== saltLength) throw new RangeError(`a salt needs ${saltLength} bytes`)
  const key = fileKey(secret, salt)
  yield Buffer.concat([magic, salt])
  let number = 0
  let held: Buffer[] = []
  let length = 0
  const sealed = (plain: Buffer, last: boolean) => {
    const gcm = createCipheriv(cipher, key, nonce(number, last))
    number += 1
    const body = gcm.update(plain)
    gcm.final()
    return Buffer.concat([body, gcm.getAuthTag()])
  }
  for await (const piece of source) {
    // Copied, because the source may reuse its buffer.
    held.push(Buffer.from(piece))
    length += piece.length
    // `>`, not `>=`: a chunk sealed here must not be the last one.
    while (length > chunkLength) {
      const all = Buffer.concat(held)
      yield sealed(all.subarray(0, chunkLength), false)
      held = [all.subarray(chunkLength)]
      length -= chunkLength
    }
  }
  yield sealed(Buffer.concat(held), true)
}

/**
 * Decrypts a file of `seal`.
 * @throws CheckpointError Corrupt at the first chunk that was changed, or was sealed with another key.
 */
export async function* unseal(file: FileHandle, secret: Uint8Array): AsyncGenerator<Buffer> {
  const { size } = await file.stat()
  const header = Buffer.alloc(headerLength)
  await readFully(file, header, 0)
  if (!header.subarray(0, magic.length).equals(magic)) throw corrupt('it has a wrong magic number')
  const key = fileKey(secret, header.subarray(magic.length))
  const sealed = Buffer.allocUnsafe(sealedChunkLength)
  for (let at = headerLength, number = 0; ; number += 1) {
    const length = Math.min(sealedChunkLength, size - at)
    const last = at + length === size
    if (length < tagLength) throw corrupt('it is truncated')
    await readFully(file, sealed.subarray(0, length), at)
    const gcm = createDecipheriv(cipher, key, nonce(number, last), { authTagLength: tagLength })
    gcm.setAuthTag(sealed.subarray(length - tagLength, length))
    const plain = gcm.update(sealed.subarray(0, length - tagLength))
    try {
      gcm.final()
    } catch (error) {
      throw corrupt(`chunk ${number} was changed, or sealed with another key`, error)
    }
    if (plain.length > 0) yield plain
    at += length
    if (last) return
  }
}

async function readFully(file: FileHandle, into: Buffer, at: number): Promise<void> {
  for (let done = 0; done < into.length; ) {
    const { bytesRead } = await file.read(into, done, into.length - done, at + done)
    if (bytesRead === 0) throw corrupt('it is truncated')
    done += bytesRead
  }
}

const corrupt = (what: string, cause?: unknown) =>
  new CheckpointError('Corrupt', `a generation on the disk cannot be read: ${what}`, cause)

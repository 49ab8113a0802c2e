import { randomBytes } from 'node:crypto'
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { slotKey } from '../testing/generation.ts'
import { deriveKey } from './generation-key.ts'
import { chunkLength, headerLength, seal, unseal } from './seal.ts'

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'seal-'))
})
afterEach(() => rm(dir, { recursive: true }))

const secret = Buffer.alloc(32, 7)
const sealedChunk = chunkLength + 16

async function* pieces(content: Buffer, length: number) {
  // One buffer that is reused, as when files are read.
  const buffer = Buffer.alloc(length)
  for (let at = 0; at < content.length; at += length) {
    const part = content.subarray(at, at + length)
    part.copy(buffer)
    yield buffer.subarray(0, part.length)
  }
}

async function sealed(content: Buffer, key: Uint8Array = secret, salt = randomBytes(16)): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of seal(pieces(content, 100_000), key, salt)) parts.push(part)
  return Buffer.concat(parts)
}

async function opened(bytes: Buffer, key: Uint8Array = secret): Promise<Buffer> {
  const path = join(dir, randomBytes(8).toString('hex'))
  await writeFile(path, bytes)
  const file = await open(path)
  const parts: Buffer[] = []
  try {
    for await (const part of unseal(file, key)) parts.push(part)
  } finally {
    await file.close()
  }
  return Buffer.concat(parts)
}

const chunksOf = (bytes: Buffer) =>
  Array.from({ length: Math.ceil((bytes.length - headerLength) / sealedChunk) }, (_, index) =>
    bytes.subarray(headerLength + index * sealedChunk, headerLength + (index + 1) * sealedChunk),
  )
const headOf = (bytes: Buffer) => bytes.subarray(0, headerLength)
const refused = { code: 'Corrupt' }

describe('a sealed file', () => {
  it.each([0, 1, chunkLength - 1, chunkLength, chunkLength + 1, 3 * chunkLength])(
    'of %i bytes gives them back',
    async length => {
      const content = randomBytes(length)
      expect((await opened(await sealed(content))).equals(content)).toBe(true)
    },
  )

  it('D9.sealed: holds nothing of what was sealed, and never the same twice', async () => {
    const content = Buffer.from('the memory of an application '.repeat(20_000))
    const [one, other] = [await sealed(content), await sealed(content)]
    for (let at = 0; at + 16 <= content.length; at += 4096)
      expect(one.includes(content.subarray(at, at + 16))).toBe(false)
    expect(one.subarray(headerLength).equals(other.subarray(headerLength))).toBe(false)
  })

  it('is opened by its key alone', async () => {
    const bytes = await sealed(Buffer.from('secret'))
    await expect(opened(bytes, Buffer.alloc(32, 8))).rejects.toMatchObject(refused)
  })

  it('a bit that is changed anywhere is noticed', async () => {
    const bytes = await sealed(randomBytes(2 * chunkLength + 500))
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.nat(7), async (at, bit) => {
        const changed = Buffer.from(bytes)
        changed.writeUInt8(changed.readUInt8(at) ^ (1 << bit), at)
        await expect(opened(changed)).rejects.toMatchObject(refused)
      }),
      { numRuns: 60 },
    )
  })

  it('a file that is cut off anywhere is noticed, at the end of a chunk, too', async () => {
    const bytes = await sealed(randomBytes(3 * chunkLength))
    const ends = [0, 1, 2, 3]
      .map(chunks => headerLength + chunks * sealedChunk)
      .filter(end => end < bytes.length)
    for (const end of [...ends, 0, 5, headerLength + 10, bytes.length - 1])
      await expect(opened(bytes.subarray(0, end)), `${end}`).rejects.toMatchObject(refused)
  })

  it('chunks that are swapped, doubled, left out, added or of another file are noticed', async () => {
    const content = randomBytes(3 * chunkLength + 77)
    const bytes = await sealed(content)
    const [a, b, c, d] = chunksOf(bytes) as [Buffer, Buffer, Buffer, Buffer]
    const [foreign] = chunksOf(await sealed(content)) as [Buffer]
    const head = headOf(bytes)
    for (const chunks of [
      [b, a, c, d],
      [a, a, c, d],
      [a, c, d],
      [a, b, c, d, d],
      [a, b, c, d, Buffer.alloc(sealedChunk)],
      [foreign, b, c, d],
      [a, b, c],
    ])
      await expect(opened(Buffer.concat([head, ...chunks]))).rejects.toMatchObject(refused)
    expect((await opened(Buffer.concat([head, a, b, c, d]))).equals(content)).toBe(true)
  })
})

describe('the key of a slot', () => {
  const parts = { agents: Buffer.alloc(32, 1), node: Buffer.alloc(32, 9) }
  const mark = '02'.repeat(32)

  it('D9.halves: is another one if any part, or the slot, is another', () => {
    const key = deriveKey(parts, mark, slotKey)
    expect(deriveKey({ ...parts, agents: Buffer.alloc(32, 1) }, mark, { ...slotKey })).toEqual(key)
    for (const other of [
      deriveKey({ ...parts, agents: Buffer.alloc(32, 3) }, mark, slotKey),
      deriveKey({ ...parts, node: Buffer.alloc(32, 3) }, mark, slotKey),
      deriveKey({ ...parts, node: undefined }, mark, slotKey),
      deriveKey(parts, '03'.repeat(32), slotKey),
      deriveKey(parts, mark, { ...slotKey, incarnation: 'ffffffff' }),
      deriveKey(parts, mark, { ...slotKey, name: 'other-0' }),
    ]) {
      expect(other.secret.equals(key.secret)).toBe(false)
      expect(other.tag).not.toBe(key.tag)
    }
    expect(key.tag).toMatch(/^[0-9a-f]{32}$/)
    expect(key.secret.toString('hex')).not.toContain(key.tag)
  })

  it('takes parts of their full length only', () => {
    expect(() => deriveKey({ ...parts, agents: Buffer.alloc(31) }, mark, slotKey)).toThrow('32 bytes')
    expect(() => deriveKey({ ...parts, node: Buffer.alloc(31) }, mark, slotKey)).toThrow('32 bytes')
    expect(() => deriveKey(parts, '02', slotKey)).toThrow('32 bytes')
  })
})

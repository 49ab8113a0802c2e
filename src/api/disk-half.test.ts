import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { areDiskHalvesFor, deriveDiskHalf, diskKeyOf, sealDiskHalf } from './disk-half.ts'

const keyId = '0a1b2c3d'
const operatorKey = Buffer.alloc(32, 7)

describe('the half of a node', () => {
  it('D10.disk-half: opens with the key in the memory of its node alone, and under its name alone', async () => {
    const ours = await diskKeyOf(randomBytes(32))
    const theirs = await diskKeyOf(randomBytes(32))
    const half = deriveDiskHalf(operatorKey, 'n1')
    const sealed = (await sealDiskHalf(half, { node: 'n1', keyId, publicKey: ours.publicKey })) ?? ''
    expect(await ours.open(sealed, 'n1')).toEqual([new Uint8Array(half)])
    expect(await theirs.open(sealed, 'n1')).toBeUndefined()
    expect(await ours.open(sealed, 'n2')).toBeUndefined()
    // A node tries an annotation that names it as the recipient, and it still does not open.
    const renamed = sealed.replace(ours.publicKey, theirs.publicKey)
    expect(await theirs.open(renamed, 'n1')).toBeUndefined()
    expect(sealed).not.toContain(half.toString('base64url'))
  })

  it('is the same for a node that has lost its key, and another one for each node and each key of the operator', async () => {
    const half = deriveDiskHalf(operatorKey, 'n1')
    const open = async (seed: number) => {
      const key = await diskKeyOf(Buffer.alloc(32, seed))
      const text = await sealDiskHalf(deriveDiskHalf(operatorKey, 'n1'), {
        ...{ node: 'n1', keyId },
        publicKey: key.publicKey,
      })
      return key.open(text ?? '', 'n1')
    }
    expect(await open(1)).toEqual([new Uint8Array(half)])
    expect(await open(2)).toEqual([new Uint8Array(half)])
    expect(deriveDiskHalf(operatorKey, 'n2')).not.toEqual(half)
    expect(deriveDiskHalf(Buffer.alloc(32, 8), 'n1')).not.toEqual(half)
  })

  it('is written again for another key of the node or of the operator, and after it was removed or garbled', async () => {
    const { publicKey } = await diskKeyOf(Buffer.alloc(32, 1))
    const other = (await diskKeyOf(Buffer.alloc(32, 2))).publicKey
    const sealed = await sealDiskHalf(Buffer.alloc(32), { node: 'n1', keyId, publicKey })
    expect(areDiskHalvesFor(sealed, [keyId], publicKey)).toBe(true)
    expect(areDiskHalvesFor(sealed, [keyId], other)).toBe(false)
    expect(areDiskHalvesFor(sealed, ['ffffffff'], publicKey)).toBe(false)
    expect(areDiskHalvesFor(undefined, [keyId], publicKey)).toBe(false)
    expect(areDiskHalvesFor(`${keyId}.${publicKey}.`, [keyId], publicKey)).toBe(false)
  })

  it('has that of an earlier key of the operator beside it', async () => {
    const key = await diskKeyOf(Buffer.alloc(32, 1))
    const halves = [7, 8].map(seed => deriveDiskHalf(Buffer.alloc(32, seed), 'n1'))
    const ids = ['0a1b2c3d', 'ffffffff']
    const texts: string[] = []
    for (const [i, half] of halves.entries())
      texts.push(
        (await sealDiskHalf(half, { node: 'n1', keyId: ids[i] ?? '', publicKey: key.publicKey })) ?? '',
      )
    const text = texts.join(',')
    expect(await key.open(text, 'n1')).toEqual(halves.map(half => new Uint8Array(half)))
    expect(areDiskHalvesFor(text, ids, key.publicKey)).toBe(true)
    expect(areDiskHalvesFor(text, ids.slice(0, 1), key.publicKey)).toBe(false)
    expect(areDiskHalvesFor(text, ids.toReversed(), key.publicKey)).toBe(false)
    // Every half has to open, and an agent tries two at most.
    expect(await key.open(`${text},${texts[0]}`, 'n1')).toBeUndefined()
    expect(await key.open(`${texts[0]},forged`, 'n1')).toBeUndefined()
  })

  it('D10.disk-half: a forged key or annotation is none, and throws nothing', async () => {
    const key = await diskKeyOf(Buffer.alloc(32, 1))
    const at = { node: 'n1', keyId }
    // The point 0 has low order: everybody could compute what it shares with any key.
    for (const publicKey of ['', 'x', 'A'.repeat(43), `${key.publicKey}.`, 'ä'.repeat(43)])
      expect(await sealDiskHalf(Buffer.alloc(32), { ...at, publicKey })).toBeUndefined()
    const sealed = (await sealDiskHalf(Buffer.alloc(32), { ...at, publicKey: key.publicKey })) ?? ''
    const changed = [0, 1].map(byte => {
      const [id, to, enc = '', text = ''] = sealed.split('.')
      const parts = [enc, text].map((part, at) => {
        const bytes = Buffer.from(part, 'base64url')
        if (at === byte) bytes[5] = (bytes[5] ?? 0) ^ 1
        return bytes.toString('base64url')
      })
      return [id, to, ...parts].join('.')
    })
    const zero = sealed.split('.').with(2, 'A'.repeat(43)).join('.')
    for (const text of ['', 'x', sealed.slice(0, -1), `${sealed}A`, zero, ...changed])
      expect(await key.open(text, 'n1')).toBeUndefined()
  })
})

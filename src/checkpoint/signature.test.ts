import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { formatManifest, type Manifest, parseManifest } from './manifest.ts'
import { createSigner, signerOf } from './signature.ts'
import { manifestOf, slotKey } from './testing/generation.ts'

const keyOf = (namedCurve: string) =>
  generateKeyPairSync('ec', { namedCurve }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const manifest: Manifest = {
  ...manifestOf(7),
  files: [{ path: 'app/pages-1.img', size: 4096, sha256: '0'.repeat(64) }],
  bytes: 4096,
}
const signed = createSigner(keyOf('P-256'))(manifest)
const sent = (it: object): Manifest => parseManifest(JSON.stringify(it))

describe('the signature of a manifest', () => {
  it('holds on every way that it goes, and names its key', () => {
    const fingerprint = signerOf(signed)
    expect(fingerprint).toMatch(/^[0-9a-f]{64}$/)
    expect(signerOf(sent(sent(signed)))).toBe(fingerprint)
    expect(signerOf(createSigner(keyOf('P-256'))(manifest))).not.toBe(fingerprint)
    expect(signerOf(manifest)).toBeUndefined()
  })

  it('holds where a field is not known that its source has written', () => {
    const key = keyOf('P-256')
    const ofLater = createSigner(key)({ ...manifest, weather: 'fine' } as Manifest)
    expect(ofLater.signed?.text).toContain('weather')
    expect(sent(ofLater)).not.toHaveProperty('weather')
    expect(signerOf(sent(ofLater))).toBe(signerOf(createSigner(key)(manifest)))
  })

  it.each<[string, Partial<Manifest>]>([
    ['slot', { slot: { ...slotKey, name: 'carts-1' } }],
    ['namespace', { slot: { ...slotKey, namespace: 'bank' } }],
    ['incarnation', { slot: { ...slotKey, incarnation: 'ffffffff' } }],
    ['epoch', { epoch: 2 }],
    ['generation', { generation: 8 }],
    ['pod', { source: { ...manifest.source, podUid: 'another' } }],
    ['template', { restoreHash: 'ffffffffffffffff' }],
    ['files', { files: [{ path: 'app/pages-1.img', size: 4096, sha256: '1'.repeat(64) }] }],
    ['credentials', { containers: [] }],
  ])('is of this %s and no other', (_, over) => {
    expect(() => signerOf({ ...signed, ...over })).toThrow(/differs from its signed text/)
  })

  it.each<[string, Partial<NonNullable<Manifest['signed']>>]>([
    ['another text', { text: formatManifest({ ...manifest, epoch: 9 }) }],
    ['the key of another', { key: createSigner(keyOf('P-256'))(manifest).signed?.key ?? '' }],
    ['a key that is none', { key: 'AAAA' }],
    ['a key of another curve', { key: createSigner(keyOf('P-384'))(manifest).signed?.key ?? '' }],
    ['no value', { value: '' }],
  ])('does not hold with %s', (_, over) => {
    const { text = '', key = '', value = '' } = signed.signed ?? {}
    expect(() => signerOf({ ...signed, signed: { text, key, value, ...over } })).toThrow(/is invalid/)
  })
})

/**
 * Makes the certificates that carry public keys in TLS. Peers identify each other by their keys alone and ignore the
 * rest of a certificate, so its issuer, names and dates mean nothing.
 */
import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto'

/** DER tags (X.690). */
const tag = {
  integer: 0x02,
  bitString: 0x03,
  oid: 0x06,
  utf8String: 0x0c,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
  version: 0xa0,
} as const

/** 1.2.840.10045.4.3.2 */
const ecdsaWithSha256 = Buffer.from([0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02])
/** 2.5.4.3 */
const commonName = Buffer.from([0x55, 0x04, 0x03])

/** Returns the SHA-256 of the public key as SubjectPublicKeyInfo (DER), 64 hex digits. Accepts a private key, too. */
export function fingerprintOf(key: KeyObject): string {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key
  return createHash('sha256').update(spkiOf(publicKey)).digest('hex')
}

/**
 * Returns a self-signed X.509 certificate (PEM) of the public half of `key`.
 * @param key a private key on the curve P-256
 */
export function certificateFor(key: KeyObject): string {
  const spki = spkiOf(createPublicKey(key))
  const algorithm = der(tag.sequence, der(tag.oid, ecdsaWithSha256))
  const name = der(
    tag.sequence,
    der(
      tag.set,
      der(tag.sequence, der(tag.oid, commonName), der(tag.utf8String, Buffer.from('understudy agent'))),
    ),
  )
  // The leading 0x01 makes the integer positive and minimal, whatever the digest begins with.
  const serial = Buffer.concat([
    Buffer.from([0x01]),
    createHash('sha256').update(spki).digest().subarray(0, 15),
  ])
  const content = der(
    tag.sequence,
    der(tag.version, der(tag.integer, Buffer.from([2]))),
    der(tag.integer, serial),
    algorithm,
    name,
    // A wrong clock of a node must not make peers distrust it. The second date is RFC 5280's "no end".
    der(tag.sequence, time('20000101000000Z'), time('99991231235959Z')),
    name,
    spki,
  )
  const signature = der(tag.bitString, Buffer.from([0]), sign('sha256', content, key))
  const lines = der(tag.sequence, content, algorithm, signature)
    .toString('base64')
    .match(/.{1,64}/g)
  return `-----BEGIN CERTIFICATE-----\n${lines?.join('\n')}\n-----END CERTIFICATE-----\n`
}

const spkiOf = (publicKey: KeyObject): Buffer => publicKey.export({ type: 'spki', format: 'der' })

const time = (value: string): Buffer => der(tag.generalizedTime, Buffer.from(value, 'ascii'))

function der(type: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const header =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([type, ...header]), content])
}

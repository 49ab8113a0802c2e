/**
 * The node's half of the keys for generations on its disk. The operator derives it for each node, and writes it to the NodeReport,
 * encrypted for a key that exists only in the memory of that node. So the token of one agent opens no disk of another node.
 * The encryption is HPKE (RFC 9180).
 */
import { hkdfSync } from 'node:crypto'
import { Aes256Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from '@hpke/core'
import { prefix } from './labels.ts'

/** Annotation of a report, see `sealDiskHalf`. Only the operator writes it. */
export const diskHalfAnnotation = `${prefix}disk-half`

/** Bytes of the half, and of the seed of a node's key. */
export const diskHalfLength = 32

/** The operator has two keys at most. */
const mostHalves = 2
/** `diskKey` of a report: a raw X25519 key, base64url. */
const publicKeyPattern = /^[\w-]{43}$/
/** One half: id of the operator's key, `diskKey` of the node, and the two parts of the ciphertext. */
const sealedPattern = /^[0-9a-f]{8}\.([\w-]{43})\.([\w-]{43})\.([\w-]{64})$/

/** The half for new files, and those of earlier keys of the operator, for files that were written with them. */
export type Halves = readonly [current: Uint8Array, ...before: readonly Uint8Array[]]

export interface DiskKey {
  /** For `diskKey` of the node's report. */
  readonly publicKey: string
  /**
   * Decrypts the annotation of the node's report: the half for new files first.
   * @returns undefined if it is none, is for another key or another node, or was changed.
   */
  open(annotation: string, node: string): Promise<Halves | undefined>
}

const createSuite = () =>
  new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes256Gcm() })

const purposeOf = (node: string): string => `understudy/1 disk half ${node}`
/** A ciphertext that is copied to the report of another node does not open there. */
const infoOf = (node: string): Buffer => Buffer.from(purposeOf(node))

/** Derives the half of a node: a node that has lost its memory gets the same one again. */
export const deriveDiskHalf = (operatorKey: Uint8Array, node: string): Buffer =>
  Buffer.from(hkdfSync('sha256', operatorKey, '', purposeOf(node), diskHalfLength))

/** Derives the key of a node from a secret seed. */
export async function diskKeyOf(seed: Uint8Array): Promise<DiskKey> {
  const suite = createSuite()
  const pair = await suite.kem.deriveKeyPair(seed)
  const publicKey = textOf(await suite.kem.serializePublicKey(pair.publicKey))
  return {
    publicKey,
    async open(annotation, node) {
      const texts = annotation.split(',')
      if (texts.length > mostHalves) return undefined
      const halves: Uint8Array[] = []
      for (const text of texts) {
        const [, recipient, enc, ciphertext] = sealedPattern.exec(text) ?? []
        if (recipient !== publicKey || enc === undefined || ciphertext === undefined) return undefined
        try {
          const params = { recipientKey: pair, enc: bytesOf(enc), info: infoOf(node) }
          halves.push(new Uint8Array(await suite.open(params, bytesOf(ciphertext))))
        } catch {
          // Made for another node, or changed.
          return undefined
        }
      }
      const [current, ...before] = halves
      return current && [current, ...before]
    },
  }
}

/** True if the annotation is for this key of the node, by these keys of the operator. */
export function areDiskHalvesFor(
  annotation: string | undefined,
  keyIds: readonly string[],
  publicKey: string,
): boolean {
  const texts = annotation?.split(',') ?? []
  return (
    texts.length === keyIds.length &&
    texts.every((text, i) => text.startsWith(`${keyIds[i]}.${publicKey}.`) && sealedPattern.test(text))
  )
}

/**
 * Encrypts the half of a node for the key in its report.
 * @param keyId identifies the operator's key from which the half is derived: 8 hex digits.
 * @returns one part of the annotation, whose parts are separated by commas; undefined if the report has no such key.
 */
export async function sealDiskHalf(
  half: Uint8Array,
  { node, keyId, publicKey }: { readonly node: string; readonly keyId: string; readonly publicKey: string },
): Promise<string | undefined> {
  if (!publicKeyPattern.test(publicKey)) return undefined
  const suite = createSuite()
  try {
    const recipientPublicKey = await suite.kem.deserializePublicKey(bytesOf(publicKey))
    const { enc, ct } = await suite.seal({ recipientPublicKey, info: infoOf(node) }, half)
    return [keyId, publicKey, textOf(enc), textOf(ct)].join('.')
  } catch {
    // A point of low order is the public key of no node.
    return undefined
  }
}

const textOf = (bytes: ArrayBuffer): string => Buffer.from(bytes).toString('base64url')
const bytesOf = (text: string): Buffer => Buffer.from(text, 'base64url')

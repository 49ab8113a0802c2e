/**
 * Signatures with ECDSA P-256 over SHA-256, in the forms that cosign and openssl verify: DER, in base64. They are not
 * reproducible, because each contains a random number.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'

/** @throws with the cure, for anything but a private key of that curve without a passphrase */
export function parsePrivateKey(pem: string): KeyObject {
  const cure =
    'make one with `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out release.key`'
  const key = ((): KeyObject => {
    try {
      return createPrivateKey(pem)
    } catch (error) {
      throw new Error(`not a private key in PEM without a passphrase: ${cure}`, { cause: error })
    }
  })()
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    throw new Error(`not a key of the curve P-256: ${cure}`)
  return key
}

/** Returns a key that is kept nowhere: it shows that files belong together, not who made them. */
export const throwAwayKey = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey

export const publicPem = (key: KeyObject): string =>
  createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString()

/** Returns the SHA-256 of a public key in DER, hex. */
export const keyIdOf = (publicKey: KeyObject): string =>
  createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')

/** @returns base64 */
export const signed = (content: string | Buffer, key: KeyObject): string =>
  sign('sha256', Buffer.from(content), key).toString('base64')

/** @param signature base64 */
export const isSigned = (content: string | Buffer, signature: string, publicKey: KeyObject): boolean =>
  verify('sha256', Buffer.from(content), publicKey, Buffer.from(signature, 'base64'))

/** A DSSE envelope: a signed document together with its type. */
export interface Envelope {
  readonly payloadType: string
  /** Base64. */
  readonly payload: string
  readonly signatures: readonly { readonly keyid: string; readonly sig: string }[]
}

/** Returns the bytes that DSSE signs: the lengths keep type and content apart. */
const preAuthentication = (type: string, payload: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`DSSEv1 ${Buffer.byteLength(type)} ${type} ${payload.length} `), payload])

export function envelopeOf(payloadType: string, content: string, key: KeyObject): Envelope {
  const payload = Buffer.from(content)
  const sig = signed(preAuthentication(payloadType, payload), key)
  return {
    payloadType,
    payload: payload.toString('base64'),
    signatures: [{ keyid: keyIdOf(createPublicKey(key)), sig }],
  }
}

/** Returns the content of an envelope. @throws if the key has not signed it */
export function openEnvelope({ payloadType, payload, signatures }: Envelope, publicKey: KeyObject): string {
  const content = Buffer.from(payload, 'base64')
  const signedContent = preAuthentication(payloadType, content)
  if (!signatures.some(({ sig }) => isSigned(signedContent, sig, publicKey)))
    throw new Error('the envelope is not signed by this key')
  return content.toString()
}

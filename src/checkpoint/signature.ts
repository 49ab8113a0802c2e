/**
 * Signatures that prove which node saved a generation. The source signs the manifest, with the digests of all files,
 * with the key that its peers know. So a peer can verify the source of a generation that it gets from a third node.
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { CheckpointError } from './errors.ts'
import { formatManifest, type Manifest, parseManifest } from './manifest.ts'

/** Domain separation: handshakes use the same key, and a signature made here must mean nothing in them. */
const purpose = 'understudy generation/1\n'

/**
 * Returns a function that signs manifests with this key.
 * @param key private, on the curve P-256, PEM
 */
export function createSigner(key: string): (manifest: Manifest) => Manifest {
  const privateKey = createPrivateKey(key)
  const publicKey = createPublicKey(privateKey).export({ type: 'spki', format: 'der' }).toString('base64')
  return manifest => {
    const text = formatManifest(unsigned(manifest))
    const value = sign('sha256', Buffer.from(purpose + text), privateKey).toString('base64')
    return { ...manifest, signed: { text, key: publicKey, value } }
  }
}

/**
 * Returns the fingerprint of the key that signed this manifest; undefined if it is unsigned (from an agent of an
 * earlier version).
 *
 * The manifest carries the signed text verbatim, because a node of another version may know more or fewer fields.
 * @throws CheckpointError BadManifest when the signature does not match this manifest.
 */
export function signerOf(manifest: Manifest): string | undefined {
  const { signed } = manifest
  if (signed === undefined) return undefined
  const key = publicKeyOf(signed.key)
  if (
    key === undefined ||
    !verify('sha256', Buffer.from(purpose + signed.text), key, Buffer.from(signed.value, 'base64'))
  )
    throw new CheckpointError('BadManifest', 'its signature is invalid')
  if (canonical(parseManifest(signed.text)) !== canonical(unsigned(manifest)))
    throw new CheckpointError('BadManifest', 'it differs from its signed text')
  return createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex')
}

/** Orders the fields as the parser does, and drops fields that this version does not know. */
const canonical = (manifest: Manifest): string => formatManifest(parseManifest(formatManifest(manifest)))

function unsigned({ signed: _, ...manifest }: Manifest): Manifest {
  return manifest
}

function publicKeyOf(base64: string): KeyObject | undefined {
  try {
    const key = createPublicKey({ key: Buffer.from(base64, 'base64'), format: 'der', type: 'spki' })
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : undefined
  } catch {
    // The bytes are not a key.
    return undefined
  }
}

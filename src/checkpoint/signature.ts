/**
 * Who saved a generation. Its source signs what the manifest says, digests of all files included, with the key that its
 * peers know it by; so memory that comes by way of another node is still that of its source.
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { CheckpointError } from './errors.ts'
import { formatManifest, type Manifest, parseManifest } from './manifest.ts'

/** The key proves itself in handshakes, too: what it signs here means nothing there. */
const purpose = 'understudy generation/1\n'

/**
 * Signs manifests with this key.
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
 * The fingerprint of the key that has signed this manifest; undefined: nobody has, as an agent of an earlier version.
 *
 * The signed text is carried along as it is: a node of another version may know more fields than ours, or fewer.
 * @throws CheckpointError BadManifest when the signature is not of this manifest.
 */
export function signerOf(manifest: Manifest): string | undefined {
  const { signed } = manifest
  if (signed === undefined) return undefined
  const key = publicKeyOf(signed.key)
  if (
    key === undefined ||
    !verify('sha256', Buffer.from(purpose + signed.text), key, Buffer.from(signed.value, 'base64'))
  )
    throw new CheckpointError('BadManifest', 'its signature does not hold')
  if (canonical(parseManifest(signed.text)) !== canonical(unsigned(manifest)))
    throw new CheckpointError('BadManifest', 'it says something else than what was signed')
  return createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex')
}

/** Fields in the one order that reading gives them, and none that this version does not know. */
const canonical = (manifest: Manifest): string => formatManifest(parseManifest(formatManifest(manifest)))

function unsigned({ signed: _, ...manifest }: Manifest): Manifest {
  return manifest
}

function publicKeyOf(base64: string): KeyObject | undefined {
  try {
    const key = createPublicKey({ key: Buffer.from(base64, 'base64'), format: 'der', type: 'spki' })
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : undefined
  } catch {
    // Whatever it is, it is no key.
    return undefined
  }
}

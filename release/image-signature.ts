/** Signatures of images as cosign makes and reads them ("simple signing"). */
import { createHash, type KeyObject } from 'node:crypto'
import type { ImageRecord, ImageSignature } from './files.ts'
import { isSigned, signed } from './signature.ts'

const claimOf = ({ repository, digest }: ImageRecord): string =>
  JSON.stringify({
    critical: {
      identity: { 'docker-reference': repository },
      image: { 'docker-manifest-digest': digest },
      type: 'cosign container image signature',
    },
    optional: null,
  })

export function signImage(image: ImageRecord, key: KeyObject): ImageSignature {
  const claim = claimOf(image)
  return { payload: Buffer.from(claim).toString('base64'), signature: signed(claim, key) }
}

/** Returns whether the signature is this key's, for this image under this name. */
export function isSignedImage(image: ImageRecord, signature: ImageSignature, publicKey: KeyObject): boolean {
  const claim = Buffer.from(signature.payload, 'base64')
  return claim.toString() === claimOf(image) && isSigned(claim, signature.signature, publicKey)
}

/** The tag under which cosign looks for signatures of a digest. */
export const signatureTag = (digest: string): string => `${digest.replace(':', '-')}.sig`

/** Returns the files of an image layout whose only image carries the signature, by path. */
export function signatureLayout({ payload, signature }: ImageSignature): ReadonlyMap<string, Buffer> {
  const files = new Map<string, Buffer>()
  const blob = (content: Buffer, mediaType: string) => {
    const digest = createHash('sha256').update(content).digest('hex')
    files.set(`blobs/sha256/${digest}`, content)
    return { mediaType, size: content.length, digest: `sha256:${digest}` }
  }
  const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))
  const claim = blob(Buffer.from(payload, 'base64'), 'application/vnd.dev.cosign.simplesigning.v1+json')
  const config = {
    architecture: '',
    os: '',
    config: {},
    rootfs: { type: 'layers', diff_ids: [claim.digest] },
  }
  const manifest = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: blob(json(config), 'application/vnd.oci.image.config.v1+json'),
    layers: [{ ...claim, annotations: { 'dev.cosignproject.cosign/signature': signature } }],
  }
  const index = { schemaVersion: 2, manifests: [blob(json(manifest), manifest.mediaType)] }
  files.set('oci-layout', json({ imageLayoutVersion: '1.0.0' }))
  files.set('index.json', json(index))
  return files
}

/** The files of a release, all in one directory. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sha256Of } from './checksums.ts'
import type { Subject } from './provenance.ts'

export const names = {
  manifest: 'install.yaml',
  notes: 'NOTES.md',
  images: 'images.json',
  imageSignatures: 'images.sig.json',
  checksums: 'SHA256SUMS',
  checksumsSignature: 'SHA256SUMS.sig',
  provenance: 'provenance.intoto.jsonl',
  publicKey: 'release.pub',
} as const

export const chartOf = (version: string): string => `understudy-${version}.tgz`

export const archiveOf = (image: string): string => `${image}.oci.tar`

/** Signatures, which differ each time, and the files that contain them. Each proves itself, so no checksum covers them. */
const withoutChecksum: readonly string[] = [
  names.imageSignatures,
  names.checksums,
  names.checksumsSignature,
  names.provenance,
  names.publicKey,
]

/** An image of a release: the content of `images.json`, by name. */
export interface ImageRecord {
  /** `REGISTRY/NAME`. */
  readonly repository: string
  /** Digest of the index over all architectures. */
  readonly digest: string
  readonly platforms: Readonly<Record<string, string>>
}

export interface ImagesFile {
  readonly version: string
  readonly images: Readonly<Record<string, ImageRecord>>
}

/** The claim about an image that cosign signs, and its signature, both in base64. */
export interface ImageSignature {
  readonly payload: string
  readonly signature: string
}

export type ImageSignatures = Readonly<Record<string, ImageSignature>>

/** Returns the names of the files that checksums cover, sorted. */
export async function coveredFiles(directory: string): Promise<readonly string[]> {
  return (await readdir(directory)).filter(name => !withoutChecksum.includes(name)).sort()
}

export async function checksumsOf(directory: string): Promise<readonly Subject[]> {
  const files: Subject[] = []
  for (const name of await coveredFiles(directory))
    files.push({ name, sha256: await sha256Of(join(directory, name)) })
  return files
}

export async function readImages(directory: string): Promise<ImagesFile> {
  return JSON.parse(await readFile(join(directory, names.images), 'utf8')) as ImagesFile
}

export async function readImageSignatures(directory: string): Promise<ImageSignatures> {
  return JSON.parse(await readFile(join(directory, names.imageSignatures), 'utf8')) as ImageSignatures
}

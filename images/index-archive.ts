import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { type Pack, pack } from 'tar-stream'
import { EPOCH } from './layer.ts'
import { tagOf } from './reference.ts'
import { extractFiles } from './unpack.ts'

const INDEX = 'application/vnd.oci.image.index.v1+json'

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
  readonly platform?: { readonly architecture: string; readonly os: string }
}

/** One image for several platforms, as an archive on this machine. */
export interface PackedIndex {
  readonly path: string
  /** `sha256:<hex>` of the image index: the digest that manifests name, whatever the node's architecture. */
  readonly digest: string
  /** Digest of the image for each architecture. */
  readonly platforms: Readonly<Record<string, string>>
}

/**
 * Joins archives of one image for several platforms to an archive with an OCI image index over them: an image layout in
 * a tar (`ctr images import`, `podman load`, `skopeo copy --all`). The same archives give the same bytes, in any order.
 *
 * @param ref fully qualified reference
 * @throws if an archive is no image layout with one image
 */
export async function packIndex(
  path: string,
  ref: string,
  archives: readonly string[],
  signal?: AbortSignal,
): Promise<PackedIndex> {
  const work = await mkdtemp(`${path}.work-`)
  try {
    const manifests: Descriptor[] = []
    // Blobs of the same name have the same content, so the layouts are unpacked over each other.
    const layout = join(work, 'layout')
    for (const archive of archives) {
      await extractFiles(archive, layout)
      manifests.push(await onlyManifest(layout))
    }
    manifests.sort((a, b) => (architectureOf(a) < architectureOf(b) ? -1 : 1))
    const index = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests }))
    const digest = createHash('sha256').update(index).digest('hex')
    await writeFile(join(layout, 'blobs/sha256', digest), index)
    const whole = {
      schemaVersion: 2,
      mediaType: INDEX,
      manifests: [
        {
          mediaType: INDEX,
          digest: `sha256:${digest}`,
          size: index.length,
          annotations: { 'io.containerd.image.name': ref, 'org.opencontainers.image.ref.name': tagOf(ref) },
        },
      ],
    }
    await writeFile(join(layout, 'index.json'), JSON.stringify(whole))
    await packLayout(join(work, 'archive.tar'), layout, signal)
    await rename(join(work, 'archive.tar'), path)
    return {
      path,
      digest: `sha256:${digest}`,
      platforms: Object.fromEntries(manifests.map(it => [architectureOf(it), it.digest])),
    }
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

const architectureOf = ({ platform }: Descriptor): string => platform?.architecture ?? ''

async function onlyManifest(layout: string): Promise<Descriptor> {
  const index = JSON.parse(await readFile(join(layout, 'index.json'), 'utf8')) as { manifests: Descriptor[] }
  const [manifest] = index.manifests
  if (manifest === undefined || index.manifests.length !== 1) throw new Error('need exactly one manifest')
  const { mediaType, digest, size, platform } = manifest
  return { mediaType, digest, size, ...(platform && { platform }) }
}

async function packLayout(path: string, layout: string, signal?: AbortSignal): Promise<void> {
  const blobs = (await readdir(join(layout, 'blobs/sha256'))).sort()
  const tar = pack()
  // The pipeline reports errors.
  tar.on('error', () => {})
  const written = pipeline(tar, createWriteStream(path), { ...(signal && { signal }) })
  const fill = async (): Promise<void> => {
    for (const name of ['oci-layout', 'index.json', ...blobs.map(blob => `blobs/sha256/${blob}`)])
      await addFile(tar, name, join(layout, name))
    tar.finalize()
  }
  await Promise.all([written, fill().catch((error: Error) => tar.destroy(error))])
}

async function addFile(tar: Pack, name: string, source: string): Promise<void> {
  const { size } = await stat(source)
  const header = { name, type: 'file' as const, mode: 0o644, uid: 0, gid: 0, mtime: EPOCH, size }
  await pipeline(createReadStream(source), tar.entry(header))
}

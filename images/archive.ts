import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { type Pack, pack } from 'tar-stream'
import { type Architecture, imageArchitecture } from '../build/architecture.ts'
import type { Entry } from '../build/entry.ts'
import { cachedLayer, EPOCH, type Layer } from './layer.ts'
import { normaliseReference, tagOf } from './reference.ts'

/** Configuration for the runtime; the field names are those of the OCI image configuration. */
export interface ImageConfig {
  readonly entrypoint?: readonly string[]
  readonly cmd?: readonly string[]
  readonly env?: readonly string[]
  /** Numeric `uid` or `uid:gid`, so that the kubelet can check `runAsNonRoot` without reading the image. */
  readonly user?: string
  readonly workingDir?: string
  readonly exposedPorts?: readonly string[]
  /** Directories for each of which the runtime makes a volume of the container. */
  readonly volumes?: readonly string[]
  readonly stopSignal?: string
  readonly labels?: Readonly<Record<string, string>>
}

export interface ImageSource {
  /** Image reference; normalised as container runtimes do it. */
  readonly ref: string
  /**
   * Bottom first. Put layers that change often last: a runtime that has the lower layers does not unpack them again.
   */
  readonly layers: readonly { readonly files: readonly Entry[] }[]
  readonly config: ImageConfig
}

export interface PackedImage {
  /** The archive on this machine. */
  readonly path: string
  /** Fully qualified reference. */
  readonly ref: string
  /** `sha256:<hex>` of the manifest, as `crictl images --digests` and `imageID` show it. */
  readonly digest: string
  /** Size of the archive in bytes. */
  readonly size: number
}

interface Blob {
  readonly digest: string
  readonly size: number
  readonly content: Uint8Array | { readonly source: string }
}

export interface PackOptions {
  /** That of the programs in the image. Default: this machine's. */
  readonly architecture?: Architecture
  readonly signal?: AbortSignal
  /** Where compressed layers are kept for the next build. Default: UNDERSTUDY_CACHE. */
  readonly cacheDir?: string
}

/**
 * Writes one image as a tar that is an OCI image layout (`ctr images import`, `podman load`, `skopeo`) and also has the
 * `manifest.json` of `docker save` (`docker load`). The archive appears at `path` complete or not at all.
 *
 * The same source gives the same bytes: no clock, no host name, sorted entries.
 */
export async function packImage(
  path: string,
  source: ImageSource,
  options: PackOptions = {},
): Promise<PackedImage> {
  const ref = normaliseReference(source.ref)
  const { architecture = imageArchitecture() } = options
  await mkdir(dirname(path), { recursive: true })
  const work = await mkdtemp(`${path}.work-`)
  try {
    const layers: Layer[] = []
    for (const layer of source.layers) layers.push(await cachedLayer(layer.files, options))
    const config = jsonBlob(configuration(source.config, architecture, layers))
    const manifest = jsonBlob(imageManifest(config, layers))
    const archive = join(work, 'archive.tar')
    const size = await writeArchive(archive, { ref, architecture, config, manifest, layers }, options.signal)
    await rename(archive, path)
    return { path, ref, digest: `sha256:${manifest.digest}`, size }
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

function configuration(config: ImageConfig, architecture: Architecture, layers: readonly Layer[]): unknown {
  return {
    created: EPOCH.toISOString(),
    architecture,
    os: 'linux',
    config: {
      ...(config.user !== undefined && { User: config.user }),
      ...(config.exposedPorts && {
        ExposedPorts: Object.fromEntries(config.exposedPorts.map(port => [port, {}])),
      }),
      ...(config.volumes && { Volumes: Object.fromEntries(config.volumes.map(path => [path, {}])) }),
      Env: config.env ?? ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
      ...(config.entrypoint && { Entrypoint: config.entrypoint }),
      ...(config.cmd && { Cmd: config.cmd }),
      WorkingDir: config.workingDir ?? '/',
      ...(config.labels && { Labels: sorted(config.labels) }),
      ...(config.stopSignal !== undefined && { StopSignal: config.stopSignal }),
    },
    rootfs: { type: 'layers', diff_ids: layers.map(layer => `sha256:${layer.diffId}`) },
    history: layers.map(() => ({ created: EPOCH.toISOString(), created_by: 'understudy images/' })),
  }
}

function imageManifest(config: Blob, layers: readonly Layer[]): unknown {
  return {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: {
      mediaType: 'application/vnd.oci.image.config.v1+json',
      digest: `sha256:${config.digest}`,
      size: config.size,
    },
    layers: layers.map(layer => ({
      mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip',
      digest: `sha256:${layer.digest}`,
      size: layer.size,
    })),
  }
}

interface ArchiveParts {
  readonly ref: string
  readonly architecture: Architecture
  readonly config: Blob
  readonly manifest: Blob
  readonly layers: readonly Layer[]
}

async function writeArchive(path: string, parts: ArchiveParts, signal?: AbortSignal): Promise<number> {
  const { ref, architecture, config, manifest, layers } = parts
  const blobs = new Map<string, Blob>()
  for (const layer of layers) {
    blobs.set(layer.digest, { digest: layer.digest, size: layer.size, content: { source: layer.path } })
  }
  for (const blob of [config, manifest]) blobs.set(blob.digest, blob)

  const index = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [
      {
        mediaType: 'application/vnd.oci.image.manifest.v1+json',
        digest: `sha256:${manifest.digest}`,
        size: manifest.size,
        // containerd reads the whole name from its own annotation; other tools know only the tag.
        annotations: { 'io.containerd.image.name': ref, 'org.opencontainers.image.ref.name': tagOf(ref) },
        platform: { architecture, os: 'linux' },
      },
    ],
  }
  const dockerManifest = [
    {
      Config: `blobs/sha256/${config.digest}`,
      RepoTags: [ref],
      Layers: layers.map(layer => `blobs/sha256/${layer.digest}`),
    },
  ]

  signal?.throwIfAborted()
  const tar = pack()
  // As in layers: the pipeline reports errors.
  tar.on('error', () => {})
  const file = createWriteStream(path)
  const written = pipeline(tar, file, { ...(signal && { signal }) })
  const fill = async (): Promise<void> => {
    tar.entry(header('oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
    tar.entry(header('index.json'), JSON.stringify(index))
    tar.entry(header('manifest.json'), JSON.stringify(dockerManifest))
    tar.entry({ ...header('blobs/'), type: 'directory', mode: 0o755 })
    tar.entry({ ...header('blobs/sha256/'), type: 'directory', mode: 0o755 })
    for (const digest of [...blobs.keys()].sort()) await addBlob(tar, blobs.get(digest))
    tar.finalize()
  }
  await Promise.all([written, fill().catch((error: Error) => tar.destroy(error))])
  return file.bytesWritten
}

async function addBlob(tar: Pack, blob: Blob | undefined): Promise<void> {
  if (blob === undefined) return
  const name = `blobs/sha256/${blob.digest}`
  if (blob.content instanceof Uint8Array) {
    tar.entry(header(name), Buffer.from(blob.content))
    return
  }
  await pipeline(createReadStream(blob.content.source), tar.entry({ ...header(name), size: blob.size }))
}

function header(name: string) {
  return { name, type: 'file' as 'file' | 'directory', mode: 0o644, uid: 0, gid: 0, mtime: EPOCH }
}

function jsonBlob(value: unknown): Blob {
  const content = new TextEncoder().encode(JSON.stringify(value))
  return { digest: createHash('sha256').update(content).digest('hex'), size: content.length, content }
}

function sorted(record: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))
}

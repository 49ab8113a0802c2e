import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { extract } from 'tar-stream'
import { run } from '../build/run.ts'

/** The contents of an image archive whose digests have all been verified. */
export interface UnpackedImage {
  readonly ref: string
  readonly config: {
    readonly User?: string
    readonly Env?: readonly string[]
    readonly Entrypoint?: readonly string[]
    readonly Cmd?: readonly string[]
    readonly Labels?: Readonly<Record<string, string>>
  }
}

interface Descriptor {
  readonly digest: string
  readonly size: number
  readonly annotations?: Readonly<Record<string, string>>
}

/**
 * Reads an archive as a container runtime does (index, manifest, configuration, layers), verifies every size and digest
 * on the way, and unpacks its file system into the directory `root`. Needs GNU tar; keeps owners when run as root.
 */
export async function unpackImage(archive: string, root: string): Promise<UnpackedImage> {
  await mkdir(root, { recursive: true })
  const work = await mkdtemp(`${root}.blobs-`)
  try {
    await extractFiles(archive, work)
    const index = JSON.parse(await readFile(join(work, 'index.json'), 'utf8')) as { manifests: Descriptor[] }
    const [descriptor] = index.manifests
    if (descriptor === undefined || index.manifests.length !== 1) throw new Error('need exactly one manifest')
    const manifest = JSON.parse((await blob(work, descriptor)).toString()) as {
      config: Descriptor
      layers: Descriptor[]
    }
    const image = JSON.parse((await blob(work, manifest.config)).toString()) as {
      config: UnpackedImage['config']
      rootfs: { diff_ids: string[] }
    }
    for (const [position, layer] of manifest.layers.entries()) {
      await blob(work, layer)
      const tar = join(work, 'layer.tar')
      await run('sh', ['-c', 'gzip -dc "$1" > "$2"', 'sh', join(work, blobName(layer)), tar])
      const diffId = `sha256:${createHash('sha256')
        .update(await readFile(tar))
        .digest('hex')}`
      if (diffId !== image.rootfs.diff_ids[position])
        throw new Error(`layer ${position} does not match its diff id`)
      await run('tar', ['--extract', '--numeric-owner', '-p', '-C', root, '-f', tar])
    }
    return { ref: descriptor.annotations?.['io.containerd.image.name'] ?? '', config: image.config }
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** Unpacks a tar of plain files, such as an image layout. */
export async function extractFiles(archive: string, directory: string): Promise<void> {
  const entries = extract()
  const read = pipeline(createReadStream(archive), entries)
  for await (const entry of entries) {
    const path = join(directory, entry.header.name)
    await mkdir(entry.header.type === 'directory' ? path : dirname(path), { recursive: true })
    if (entry.header.type === 'directory') entry.resume()
    else await pipeline(entry, createWriteStream(path))
  }
  await read
}

async function blob(directory: string, descriptor: Descriptor): Promise<Buffer> {
  const content = await readFile(join(directory, blobName(descriptor)))
  const digest = `sha256:${createHash('sha256').update(content).digest('hex')}`
  if (digest !== descriptor.digest || content.length !== descriptor.size) {
    throw new Error(`blob is ${digest} with ${content.length} bytes, not ${descriptor.digest}`)
  }
  return content
}

function blobName({ digest }: Descriptor): string {
  return `blobs/${digest.replace(':', '/')}`
}

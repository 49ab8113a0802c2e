/** Makes a release: every file that users download, in one directory. */
import type { KeyObject } from 'node:crypto'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Architecture, toolchainFor } from '../build/architecture.ts'
import { buildCli } from '../build/cli.ts'
import type { DebianOptions } from '../build/debian.ts'
import { projectVersion } from '../build/project-version.ts'
import { run } from '../build/run.ts'
import { ensureImages } from '../images/build.ts'
import { packIndex } from '../images/index-archive.ts'
import { buildArchives } from '../plugin/main.ts'
import { readNodeLock } from '../plugin/node.ts'
import { platforms } from '../plugin/platform.ts'
import { addChart } from './chart.ts'
import { checksumsText, sha256Of } from './checksums.ts'
import { partsOfImage, partsOfProgram, project, type ReleasedImage, releasedImages } from './contents.ts'
import { archiveOf, checksumsOf, type ImageRecord, type ImagesFile, names } from './files.ts'
import { signImage } from './image-signature.ts'
import { installManifest } from './install-manifest.ts'
import { notesOf } from './notes.ts'
import { inPlaceAtOnce } from './place.ts'
import { provenanceOf, type Source, statementType } from './provenance.ts'
import { noRegistry } from './registry.ts'
import { sbomOf } from './sbom.ts'
import { envelopeOf, publicPem, signed } from './signature.ts'
import { addSite } from './site.ts'

export interface ReleaseOptions extends Omit<DebianOptions, 'architecture'> {
  readonly source: Source
  readonly architectures: readonly Architecture[]
  /** Where the images will be published. Default: nowhere, and `install.yaml` is refused until its user names one. */
  readonly registry?: string
  /** Where the archives of the program will be published, for krew. */
  readonly baseUrl: string
  readonly key: KeyObject
  /** Path of kubectl, which renders `deploy/`. */
  readonly kubectl: string
  /** False leaves out the programs for users: they take most of the time. */
  readonly programs: boolean
  /** URI of the machine or service that builds. */
  readonly builder: string
}

/**
 * Writes a release into a directory, which this function creates. The same commit, compilers and options give the same
 * bytes, except for the signatures.
 *
 * @throws if the directory exists
 */
export async function makeRelease(directory: string, options: ReleaseOptions): Promise<void> {
  await inPlaceAtOnce(directory, async work => {
    const version = await projectVersion()
    const changelog = await readFile(join(project, 'CHANGELOG.md'), 'utf8')
    await writeFile(join(work, names.notes), notesOf(changelog, version))
    const images = await writeImages(work, version, options)
    await writeManifest(work, version, images, options)
    if (options.programs) await writePrograms(work, version, options)
    await addChart(work, version, { ...options, digests: digestsOf(images) })
    await addSite(work, version, options.signal)
    await sign(work, version, images, options)
  })
}

type Images = Readonly<Record<ReleasedImage, ImageRecord>>

const digestsOf = (images: Images): Readonly<Record<string, string>> =>
  Object.fromEntries(releasedImages.map(name => [name, images[name].digest]))

async function writeImages(directory: string, version: string, options: ReleaseOptions): Promise<Images> {
  const { architectures, source, registry = noRegistry, signal } = options
  const archives: Record<ReleasedImage, string[]> = { operator: [], agent: [], waker: [] }
  const refs = new Map<ReleasedImage, string>()
  for (const architecture of architectures) {
    const within = { ...options, architecture }
    const built = await ensureImages(releasedImages, within)
    for (const name of releasedImages) {
      const { path, ref, digest } = built[name]
      archives[name].push(path)
      refs.set(name, ref)
      const whole = { type: 'image' as const, name, version, digest, architecture }
      const sbom = sbomOf(whole, await partsOfImage(name, within), source.time)
      await writeFile(join(directory, `${name}_${architecture}.cdx.json`), sbom)
    }
  }
  const record = async (name: ReleasedImage): Promise<ImageRecord> => {
    const path = join(directory, archiveOf(name))
    const { digest, platforms } = await packIndex(path, refs.get(name) ?? '', archives[name], signal)
    return { repository: `${registry}/${name}`, digest, platforms }
  }
  const images = {
    operator: await record('operator'),
    agent: await record('agent'),
    waker: await record('waker'),
  }
  const file: ImagesFile = { version, images }
  await writeFile(join(directory, names.images), `${JSON.stringify(file, undefined, 2)}\n`)
  return images
}

async function writeManifest(
  directory: string,
  version: string,
  images: Images,
  { kubectl, registry, signal }: ReleaseOptions,
): Promise<void> {
  const rendered = await run(kubectl, ['kustomize', join(project, 'deploy')], { ...(signal && { signal }) })
  const manifest = installManifest(rendered, version, digestsOf(images), registry)
  await writeFile(join(directory, names.manifest), manifest)
}

async function writePrograms(directory: string, version: string, options: ReleaseOptions): Promise<void> {
  const work = join(directory, '.programs')
  const { baseUrl, source, cacheDir, progress, signal } = options
  const within = { ...(cacheDir && { cacheDir }), ...(progress && { progress }), ...(signal && { signal }) }
  try {
    const archives = await buildArchives(work, platforms, baseUrl, within)
    for (const name of [...archives.map(it => it.name), 'understudy.yaml'])
      await rename(join(work, name), join(directory, name))
    const { inputs } = await buildCli(join(work, 'script'))
    const parts = await partsOfProgram(inputs, (await readNodeLock()).version)
    const whole = { type: 'program' as const, name: 'kubectl-understudy', version }
    await writeFile(join(directory, 'kubectl-understudy.cdx.json'), sbomOf(whole, parts, source.time))
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

const locks = ['package-lock.json', 'build/debian.lock.json', 'build/node.lock.json', 'plugin/node.lock.json']

async function sign(
  directory: string,
  version: string,
  images: Images,
  options: ReleaseOptions,
): Promise<void> {
  const { key, source, architectures, registry, builder } = options
  const files = await checksumsOf(directory)
  const sums = checksumsText(files)
  await writeFile(join(directory, names.checksums), sums)
  await writeFile(join(directory, names.checksumsSignature), `${signed(sums, key)}\n`)
  const signatures = Object.fromEntries(releasedImages.map(name => [name, signImage(images[name], key)]))
  await writeFile(join(directory, names.imageSignatures), `${JSON.stringify(signatures, undefined, 2)}\n`)
  const subjects = Object.values(images).map(({ repository, digest }) => ({
    name: repository,
    sha256: digest.replace('sha256:', ''),
  }))
  const lock = async (name: string) => ({ name, sha256: await sha256Of(join(project, name)) })
  const statement = provenanceOf(
    {
      ...{ source, version, architectures, builder },
      ...(registry !== undefined && { registry }),
      locks: await Promise.all(locks.map(lock)),
      tools: await toolsOf(architectures),
    },
    [...files, ...subjects],
  )
  const envelope = envelopeOf(statementType, JSON.stringify(statement), key)
  await writeFile(join(directory, names.provenance), `${JSON.stringify(envelope)}\n`)
  await writeFile(join(directory, names.publicKey), publicPem(key))
}

/** Returns the versions of the programs of this machine on which the bytes of a release depend. */
async function toolsOf(architectures: readonly Architecture[]): Promise<Readonly<Record<string, string>>> {
  const tools: Record<string, string> = { node: process.version }
  for (const architecture of architectures) {
    const { compiler } = toolchainFor(architecture)
    tools[compiler] = (await run(compiler, ['--version'])).split('\n')[0] ?? ''
  }
  return tools
}

/** Examines a release as its users can: only its files and the public key count. */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isMap, parse, parseAllDocuments } from 'yaml'
import { exists } from '../build/cache.ts'
import { run } from '../build/run.ts'
import { digestAnnotation } from '../deploy/chart/chart.ts'
import { extractFiles } from '../images/unpack.ts'
import { checksumDifferences, parseChecksums, sha256Of } from './checksums.ts'
import {
  archiveOf,
  chartOf,
  checksumsOf,
  type ImageRecord,
  type ImagesFile,
  names,
  readImageSignatures,
  readImages,
} from './files.ts'
import { isSignedImage } from './image-signature.ts'
import { imagesOf, withRegistry } from './install-manifest.ts'
import type { Statement, Subject } from './provenance.ts'
import { noRegistry } from './registry.ts'
import { sbomProblem } from './sbom.ts'
import { type Envelope, isSigned, openEnvelope } from './signature.ts'

/** A sentence about something that is wrong with a release. */
export type Problem = string

/** @param publicKey PEM, from a source that the caller trusts: the key in the release proves nothing by itself. */
export async function problemsOf(directory: string, publicKey: string): Promise<readonly Problem[]> {
  const key = createPublicKey(publicKey)
  const read = (name: string): Promise<string> => readFile(join(directory, name), 'utf8')
  const sums = await read(names.checksums)
  // Nothing else is read before the list of all files is known to be the signer's.
  if (!isSigned(sums, await read(names.checksumsSignature), key))
    return [`${names.checksums} is not signed by this key`]
  const listed = parseChecksums(sums)
  const changed = checksumDifferences(listed, await checksumsOf(directory))
  if (changed.length > 0) return changed
  const file = await readImages(directory)
  return [
    ...(await imageProblems(directory, file, key)),
    ...manifestProblems(await read(names.manifest), file),
    ...(await chartProblems(directory, file)),
    ...(await sbomProblems(directory, file)),
    ...provenanceProblems(JSON.parse(await read(names.provenance)) as Envelope, listed, file, key),
  ]
}

async function imageProblems(
  directory: string,
  { images }: ImagesFile,
  key: KeyObject,
): Promise<readonly Problem[]> {
  const signatures = await readImageSignatures(directory)
  const problems: Problem[] = []
  for (const [name, image] of Object.entries(images)) {
    const signature = signatures[name]
    if (signature === undefined || !isSignedImage(image, signature, key))
      problems.push(`the image ${name} is not signed by this key`)
    problems.push(...(await archiveProblems(join(directory, archiveOf(name)), name, image)))
  }
  return problems
}

interface Descriptor {
  readonly digest: string
  readonly platform?: { readonly architecture: string }
}

/** Reads an archive as a registry or a container runtime does: by digest, from the index down. */
async function archiveProblems(
  archive: string,
  name: string,
  { digest, platforms }: ImageRecord,
): Promise<readonly Problem[]> {
  const layout = await mkdtemp(join(tmpdir(), 'understudy-release-'))
  try {
    await extractFiles(archive, layout)
    const blobs = join(layout, 'blobs/sha256')
    const problems: Problem[] = []
    for (const blob of await readdir(blobs))
      if ((await sha256Of(join(blobs, blob))) !== blob) problems.push(`${name}: the blob ${blob} is damaged`)
    const manifestsIn = async (path: string): Promise<readonly Descriptor[]> =>
      (JSON.parse(await readFile(path, 'utf8')) as { manifests: Descriptor[] }).manifests
    const [top] = await manifestsIn(join(layout, 'index.json'))
    if (top?.digest !== digest)
      return [...problems, `${name}: the archive has ${top?.digest}, ${names.images} has ${digest}`]
    const found = await manifestsIn(join(blobs, digest.replace('sha256:', '')))
    for (const [architecture, expected] of Object.entries(platforms))
      if (found.find(it => it.platform?.architecture === architecture)?.digest !== expected)
        problems.push(`${name}: the archive has no ${expected} for ${architecture}`)
    return problems
  } finally {
    await rm(layout, { recursive: true, force: true })
  }
}

function manifestProblems(manifest: string, { images }: ImagesFile): readonly Problem[] {
  const known = Object.values(images).map(({ repository, digest }) => `${repository}@${digest}`)
  const named = imagesOf(manifest)
  const isBound = !known.some(image => image.startsWith(`${noRegistry}/`))
  const objects = parseAllDocuments(isBound ? manifest : withRegistry(manifest, noRegistry))
  const incomplete = objects.filter(
    ({ contents, errors }) =>
      errors.length > 0 ||
      !isMap(contents) ||
      !['apiVersion', 'kind', 'metadata'].every(field => contents.has(field)),
  )
  return [
    ...named
      .filter(image => !known.includes(image))
      .map(image => `${names.manifest} names ${image}, which is not an image of this release`),
    ...known.filter(image => !named.includes(image)).map(image => `${names.manifest} does not name ${image}`),
    ...(incomplete.length > 0
      ? [`${names.manifest} has ${incomplete.length} documents that are no objects`]
      : []),
  ]
}

/** The chart has to name the same images as `install.yaml`, by digest. */
async function chartProblems(
  directory: string,
  { version, images }: ImagesFile,
): Promise<readonly Problem[]> {
  const archive = chartOf(version)
  if (!(await exists(join(directory, archive)))) return [`${archive} is missing`]
  const text = await run('tar', ['-xzOf', join(directory, archive), 'understudy/Chart.yaml'])
  const { annotations = {} } = parse(text) as { readonly annotations?: Readonly<Record<string, string>> }
  return Object.entries(images)
    .filter(([name, { digest }]) => annotations[`${digestAnnotation}${name}`] !== digest)
    .map(([name, { digest }]) => `${archive} does not bind the image ${name} to ${digest}`)
}

async function sbomProblems(directory: string, { images }: ImagesFile): Promise<readonly Problem[]> {
  const files = (await readdir(directory)).filter(name => name.endsWith('.cdx.json'))
  const expected = Object.entries(images).flatMap(([name, { platforms }]) =>
    Object.keys(platforms).map(architecture => `${name}_${architecture}.cdx.json`),
  )
  const problems = expected.filter(name => !files.includes(name)).map(name => `${name} is missing`)
  for (const name of files) {
    const problem = await sbomProblem(await readFile(join(directory, name), 'utf8'))
    if (problem !== undefined) problems.push(`${name} is no valid bill of material: ${problem}`)
  }
  return problems
}

function provenanceProblems(
  envelope: Envelope,
  listed: readonly Subject[],
  { images }: ImagesFile,
  key: KeyObject,
): readonly Problem[] {
  const statement = ((): Statement | undefined => {
    try {
      return JSON.parse(openEnvelope(envelope, key)) as Statement
    } catch {
      return undefined
    }
  })()
  if (statement === undefined) return [`${names.provenance} is not signed by this key`]
  const ofImages = Object.values(images).map(({ repository, digest }) => ({
    name: repository,
    sha256: digest.replace('sha256:', ''),
  }))
  const subjects = statement.subject.map(({ name, digest }) => ({ name, sha256: digest.sha256 }))
  return checksumDifferences([...listed, ...ofImages], subjects).map(it => `${names.provenance}: ${it}`)
}

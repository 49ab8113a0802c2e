/** Copies the images of a release, with their signatures, to a registry. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { run } from '../build/run.ts'
import { extractFiles } from '../images/unpack.ts'
import { archiveOf, readImageSignatures, readImages } from './files.ts'
import { signatureLayout, signatureTag } from './image-signature.ts'

export interface PushOptions {
  /** Path of crane. It finds the registry's password as docker does. */
  readonly crane: string
  /** Default: where the release says that its images are. */
  readonly registry?: string
  readonly signal?: AbortSignal
}

/**
 * Copies the images by digest and tags them with the version.
 *
 * @returns the reference of each image there, by digest
 * @throws if the registry has other digests afterwards; with crane's messages
 */
export async function pushRelease(directory: string, options: PushOptions): Promise<readonly string[]> {
  const { crane, registry, signal } = options
  const { version, images } = await readImages(directory)
  const signatures = await readImageSignatures(directory)
  const within = { ...(signal && { signal }) }
  const pushed: string[] = []
  for (const [name, { repository, digest }] of Object.entries(images)) {
    const target = registry === undefined ? repository : `${registry}/${name}`
    const tagged = `${target}:${version}`
    await pushArchive(crane, join(directory, archiveOf(name)), tagged, within)
    const found = (await run(crane, ['digest', tagged], within)).trim()
    if (found !== digest) throw new Error(`${tagged} is ${found} in the registry, not ${digest}`)
    const signature = signatures[name]
    if (signature !== undefined)
      await pushLayout(crane, `${target}:${signatureTag(digest)}`, within, async layout => {
        for (const [path, content] of signatureLayout(signature)) {
          const file = join(layout, path)
          await mkdir(dirname(file), { recursive: true })
          await writeFile(file, content)
        }
      })
    pushed.push(`${target}@${digest}`)
  }
  return pushed
}

type Within = Pick<PushOptions, 'signal'>

/** Copies the image in an archive to a registry. @throws with crane's messages */
export const pushArchive = (
  crane: string,
  archive: string,
  target: string,
  within: Within = {},
): Promise<void> => pushLayout(crane, target, within, layout => extractFiles(archive, layout))

async function pushLayout(
  crane: string,
  target: string,
  within: Within,
  fill: (layout: string) => Promise<void>,
): Promise<void> {
  const layout = await mkdtemp(join(tmpdir(), 'understudy-push-'))
  try {
    await fill(layout)
    await run(crane, ['push', layout, target], within)
  } finally {
    await rm(layout, { recursive: true, force: true })
  }
}

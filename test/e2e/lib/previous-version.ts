/** The version before the present one, built from its own sources: what an upgrade starts from. */
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cachedDirectory, cacheRoot, keyOf } from '../../../build/cache.ts'
import { run } from '../../../playground/exec.ts'

/** The last commit at which agents read sets, and the number under which its images are built. */
const previous = { commit: '377380453138682d4d8d225009692b69453d3164', version: '0.0.9' } as const

export interface Version {
  /** Directory with its manifests, for `kubectl apply -k`. */
  readonly deploy: string
  /** Archives of its images. */
  readonly images: readonly string[]
}

const root = fileURLToPath(new URL('../../..', import.meta.url))
const images = ['operator', 'agent', 'waker'] as const

/**
 * Returns the manifests and images of the version before. The first call on a machine builds them by that version's own
 * programs, which takes a minute or two. Its images have a tag of their own, so that both versions are on a node at once.
 * @throws CommandError in a checkout without that commit, such as a shallow clone.
 */
export async function previousVersion(signal?: AbortSignal): Promise<Version> {
  const key = keyOf({ ...previous, images, architecture: process.arch, form: 1 })
  const directory = await cachedDirectory(join(cacheRoot(), 'versions', key), async scratch => {
    const checkout = join(scratch, 'checkout')
    await mkdir(checkout)
    await run(['git', 'archive', '--output', `${checkout}.tar`, previous.commit], { cwd: root, signal })
    await run(['tar', '-x', '-f', `${checkout}.tar`, '-C', checkout], { signal })
    const present = await renumber(join(checkout, 'package.json'))
    for (const path of ['operator/deployment.yaml', 'agent/daemonset.yaml'])
      await retag(join(checkout, 'deploy', path), present)
    await run(['npm', 'ci', '--no-audit', '--no-fund'], { cwd: checkout, signal })
    const built = await run([process.execPath, 'images/main.ts', '--json', ...images], {
      cwd: checkout,
      signal,
    })
    for (const [name, { path }] of Object.entries(JSON.parse(built) as Record<string, { path: string }>))
      await cp(path, join(scratch, `${name}.tar`))
    for (const name of ['deploy', 'crds'])
      await cp(join(checkout, name), join(scratch, name), { recursive: true })
    await rm(checkout, { recursive: true })
    await rm(`${checkout}.tar`)
  })
  return { deploy: join(directory, 'deploy'), images: images.map(name => join(directory, `${name}.tar`)) }
}

/** Gives a package the number of the version before. @returns its number until now */
async function renumber(path: string): Promise<string> {
  const manifest = JSON.parse(await readFile(path, 'utf8')) as { version: string }
  const { version } = manifest
  await writeFile(path, JSON.stringify({ ...manifest, version: previous.version }))
  return version
}

async function retag(path: string, version: string): Promise<void> {
  const text = await readFile(path, 'utf8')
  const retagged = text.replaceAll(
    /(understudy\.invalid\/(?:operator|agent|waker)):[\w.-]+/g,
    `$1:${previous.version}`,
  )
  if (!text.includes(`:${version}`)) throw new Error(`${path} names no image of version ${version}`)
  await writeFile(path, retagged)
}

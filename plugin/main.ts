/**
 * `npm run cli-build`: builds the kubectl plugin as one file that needs nothing else, for this machine or for all
 * platforms, with archives, checksums and a krew manifest.
 */
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { exists } from '../build/cache.ts'
import { buildCli } from '../build/cli.ts'
import { projectVersion } from '../build/project-version.ts'
import { writeLayer } from '../images/layer.ts'
import { buildExecutable } from './executable.ts'
import { type Archive, krewManifest, licences, noAddress } from './krew.ts'
import { type NodeOptions, nodePackage, readNodeLock } from './node.ts'
import { notices, packagesIn } from './notices.ts'
import { ownPlatform, type Platform, platforms, programNameOn } from './platform.ts'

const usage = `npm run cli-build -- [options]

Builds the kubectl plugin.

  (none)           out/kubectl-understudy: one executable for this machine
  --all            out/cli: an archive for each platform, SHA256SUMS, and understudy.yaml for krew
  --base-url URL   with --all: where the archives will be published, for understudy.yaml
  --script         out/kubectl-understudy as a script, which needs Node 24 where it runs`

const project = dirname(dirname(fileURLToPath(import.meta.url)))

/**
 * Builds the archives of platforms with their checksums and manifest into a directory.
 *
 * @returns the archives
 */
export async function buildArchives(
  directory: string,
  wanted: readonly Platform[],
  baseUrl: string,
  options: NodeOptions = {},
): Promise<readonly Archive[]> {
  const version = await projectVersion()
  const work = join(directory, '.work')
  await mkdir(work, { recursive: true })
  try {
    const { program, inputs } = await buildCli(work)
    const node = await nodePackage(ownPlatform(), await readNodeLock(), options)
    await copyFile(join(project, 'LICENSE'), join(work, 'LICENSE'))
    await writeFile(join(work, 'NOTICES'), await notices(project, packagesIn(inputs), node.directory))
    const archives: Archive[] = []
    for (const platform of wanted) {
      const executable = await buildExecutable(platform, program, join(work, platform), options)
      const name = `kubectl-understudy_v${version}_${platform.replace('-', '_')}.tar.gz`
      options.progress?.(`compress ${name}`)
      const { digest } = await writeLayer(
        join(directory, name),
        [
          { type: 'file', path: `/${programNameOn(platform)}`, mode: 0o755, content: { source: executable } },
          ...licences.map(each => ({
            ...{ type: 'file' as const, path: `/${each}`, mode: 0o644 },
            content: { source: join(work, each) },
          })),
        ],
        options.signal,
      )
      archives.push({ platform, name, sha256: digest })
      await rm(executable)
    }
    await writeFile(
      join(directory, 'SHA256SUMS'),
      archives.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join(''),
    )
    await writeFile(join(directory, 'understudy.yaml'), krewManifest(version, baseUrl, archives))
    return archives
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      all: { type: 'boolean', default: false },
      script: { type: 'boolean', default: false },
      'base-url': { type: 'string', default: noAddress },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    console.log(usage)
    return
  }
  const out = join(project, 'out')
  const progress = (text: string) => console.error(text)
  if (values.all) {
    const directory = join(out, 'cli')
    if (await exists(directory)) await rm(directory, { recursive: true })
    for (const { name } of await buildArchives(directory, platforms, values['base-url'], { progress }))
      console.log(join(directory, name))
    return
  }
  const { program } = await buildCli(values.script ? out : join(out, '.work'))
  if (values.script) {
    console.log(program)
    return
  }
  try {
    console.log(await buildExecutable(ownPlatform(), program, out, { progress }))
  } finally {
    await rm(dirname(program), { recursive: true })
  }
}

if (import.meta.main) await main(process.argv.slice(2))

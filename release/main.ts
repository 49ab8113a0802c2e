/** `npm run release`: makes a release, examines one, or copies its images to a registry. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { type Architecture, architectures, imageArchitecture } from '../build/architecture.ts'
import { exists } from '../build/cache.ts'
import { imageProblems, thisMachine } from '../build/machine.ts'
import { projectVersion } from '../build/project-version.ts'
import { run } from '../build/run.ts'
import { ensureArtifacts } from '../playground/artifacts/artifacts.ts'
import { noAddress } from '../plugin/krew.ts'
import { checksumDifferences, parseChecksums } from './checksums.ts'
import { project } from './contents.ts'
import { lookUnderEmulation } from './emulate.ts'
import { names } from './files.ts'
import { makeRelease, type ReleaseOptions } from './make.ts'
import type { Source } from './provenance.ts'
import { pushRelease } from './push.ts'
import { parseRegistry } from './registry.ts'
import { parsePrivateKey, throwAwayKey } from './signature.ts'
import { problemsOf } from './verify.ts'

interface MakeFlags {
  readonly registry?: string
  readonly key?: string
  readonly architectures: readonly Architecture[]
  readonly output?: string
  readonly baseUrl: string
  readonly builder: string
  readonly programs: boolean
  readonly twice?: true
}

const stopped = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => stopped.abort(new Error(`stopped by ${signal}`)))
const started = performance.now()
const progress = (message: string): void => {
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  process.stderr.write(`${seconds.padStart(6)} s  ${message}\n`)
}

const registryFlag = (text: string): string => {
  try {
    return parseRegistry(text)
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? error.message : String(error))
  }
}

const architecturesFlag = (text: string): readonly Architecture[] =>
  text.split(',').map(name => {
    const found = architectures.find(it => it === name)
    if (found === undefined) throw new InvalidArgumentError(`there are ${architectures.join(', ')}`)
    return found
  })

/** @throws if the sources are not those of a commit: then no statement about them could be checked */
async function sourceOf(): Promise<Source> {
  const git = async (...args: string[]) => (await run('git', ['-C', project, ...args])).trim()
  const changes = await git('status', '--porcelain')
  if (changes !== '')
    throw new Error(`a release is made from a commit, and these files differ from it:\n${changes}`)
  const [commit = '', seconds = ''] = (await git('log', '-1', '--format=%H %ct')).split(' ')
  return { commit, time: new Date(Number(seconds) * 1000) }
}

async function optionsOf(flags: MakeFlags): Promise<ReleaseOptions> {
  const problems = await imageProblems(await thisMachine())
  if (problems.length > 0) throw new Error(`this machine cannot build images yet:\n${problems.join('\n')}`)
  const { registry, key, architectures, baseUrl, builder, programs } = flags
  const source = await sourceOf()
  const signer = key === undefined ? throwAwayKey() : parsePrivateKey(await readFile(key, 'utf8'))
  progress('kubectl')
  const { kube } = await ensureArtifacts(['kube'], { signal: stopped.signal })
  return {
    ...{ architectures, baseUrl, builder, programs, progress, source, key: signer },
    ...(registry !== undefined && { registry }),
    kubectl: join(kube, 'kubectl'),
    locked: true,
    signal: stopped.signal,
  }
}

async function make(flags: MakeFlags): Promise<void> {
  const directory = resolve(flags.output ?? join(project, 'out/release', `v${await projectVersion()}`))
  if (await exists(directory))
    throw new Error(`${directory} exists: remove it, or name another with --output`)
  const options = await optionsOf(flags)
  await makeRelease(directory, options)
  for (const architecture of options.architectures) await look(architecture, options)
  if (flags.twice) await compareWithSecond(directory, options)
  await report(directory, join(directory, names.publicKey))
  if (options.registry === undefined)
    progress(`no registry was named: ${names.manifest} is refused until its user fills one in`)
  if (flags.key === undefined)
    progress('signed with a throw-away key: the signatures show that the files belong together, no more')
  console.log(directory)
}

async function look(architecture: Architecture, options: ReleaseOptions): Promise<void> {
  if (architecture === imageArchitecture()) return
  const programs = await lookUnderEmulation(architecture, options)
  progress(
    programs === undefined
      ? `the images for ${architecture} were not started: install qemu-user to start them under emulation`
      : `${programs} programs for ${architecture} start under emulation`,
  )
}

/** Builds everything again, with nothing of the first build but the same locked downloads. */
async function compareWithSecond(directory: string, options: ReleaseOptions): Promise<void> {
  const scratch = await mkdtemp(join(tmpdir(), 'understudy-twice-'))
  try {
    progress('the second time, with an empty cache')
    await makeRelease(join(scratch, 'release'), { ...options, cacheDir: join(scratch, 'cache') })
    const [first, second] = await Promise.all(
      [directory, join(scratch, 'release')].map(async it =>
        parseChecksums(await readFile(join(it, names.checksums), 'utf8')),
      ),
    )
    const changed = checksumDifferences(first ?? [], second ?? [])
    if (changed.length > 0) throw new Error(`the second build is another:\n${changed.join('\n')}`)
    progress(`the second build is the same: ${first?.length} files`)
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

async function report(directory: string, publicKey: string): Promise<void> {
  const problems = await problemsOf(directory, await readFile(publicKey, 'utf8'))
  if (problems.length > 0) throw new Error(`${directory} is not in order:\n${problems.join('\n')}`)
  progress(`verified: digests, ${names.manifest}, bills of material, provenance, signatures`)
}

const program = new Command('npm run release --').description('Makes and examines releases.')

program
  .command('make', { isDefault: true })
  .description('write every file of a release into one directory, and verify it')
  .option(
    '--registry <registry>',
    'where the images will be published, such as registry.example/understudy',
    registryFlag,
  )
  .option('--key <file>', 'private key (PEM, P-256) that signs; default: a key that is thrown away')
  .option('--architectures <names>', 'comma-separated', architecturesFlag, architectures)
  .option('--output <directory>', 'default: out/release/vVERSION')
  .option(
    '--base-url <url>',
    'where the archives of kubectl-understudy will be published, for krew',
    noAddress,
  )
  .option(
    '--builder <uri>',
    'who runs this build, for the provenance',
    'https://understudy.invalid/builder/local',
  )
  .option('--no-programs', 'leave out kubectl-understudy')
  .option('--twice', 'build again with an empty cache, and fail if a digest differs')
  .action(make)

program
  .command('verify')
  .description('examine a release: digests, install.yaml, bills of material, provenance, signatures')
  .argument('<directory>')
  .option(
    '--public-key <file>',
    'key of those who publish; default: the one in the release, which proves little',
  )
  .action((directory: string, { publicKey }: { readonly publicKey?: string }) =>
    report(directory, publicKey ?? join(directory, names.publicKey)),
  )

program
  .command('push')
  .description('copy the images of a release with their signatures to a registry')
  .argument('<directory>')
  .option('--registry <registry>', 'default: the one in the release', registryFlag)
  .action(async (directory: string, { registry }: { readonly registry?: string }) => {
    await report(directory, join(directory, names.publicKey))
    const { crane } = await ensureArtifacts(['crane'], { signal: stopped.signal })
    const target = { crane: join(crane, 'crane'), signal: stopped.signal }
    const images = await pushRelease(directory, { ...target, ...(registry !== undefined && { registry }) })
    console.log(images.join('\n'))
  })

try {
  await program.parseAsync()
} catch (error) {
  console.error(`release: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}

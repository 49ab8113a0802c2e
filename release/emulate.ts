/** Starts programs of images for another architecture under qemu: shows that they and their libraries fit together. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Architecture, imageArchitecture } from '../build/architecture.ts'
import { type DebianOptions, lockedPackages } from '../build/debian.ts'
import { nodeVersion } from '../build/node-binary.ts'
import { projectVersion } from '../build/project-version.ts'
import { run } from '../build/run.ts'
import { ensureImages } from '../images/build.ts'
import { unpackImage } from '../images/unpack.ts'
import type { ReleasedImage } from './contents.ts'

const emulators: Readonly<Record<Architecture, string>> = { amd64: 'qemu-x86_64', arm64: 'qemu-aarch64' }

interface Probe {
  readonly image: ReleasedImage
  /** Paths in the image, and arguments. */
  readonly command: readonly string[]
  readonly answers: string
}

const understudy = ['usr/bin/node', 'app/understudy.mjs', '--version']
const criu = 'opt/understudy/criu'

async function probesOf(options: DebianOptions): Promise<readonly Probe[]> {
  const version = await projectVersion()
  const { packages } = await lockedPackages('criu', options)
  const [, criuVersion = ''] = /^criu_([\d.]+)/.exec(packages.find(it => it.startsWith('criu_')) ?? '') ?? []
  return [
    { image: 'operator', command: ['usr/bin/node', '--version'], answers: `v${nodeVersion()}` },
    { image: 'operator', command: understudy, answers: version },
    { image: 'agent', command: understudy, answers: version },
    {
      image: 'agent',
      command: [`${criu}/ld.so`, '--library-path', `${criu}/lib`, `${criu}/criu`, '--version'],
      answers: `Version: ${criuVersion}`,
    },
    // Without arguments, our own programs explain themselves and fail.
    ...['inspect', 'nsrun', 'pages', 'rootfs', 'sever', 'tracker', 'waker'].map(name => ({
      image: 'agent' as const,
      command: [`opt/understudy/${name}`],
      answers: `usage: ${name}`,
    })),
    { image: 'waker', command: ['waker'], answers: 'usage: waker' },
  ]
}

/**
 * Starts programs of the images for an architecture.
 *
 * @returns the number of programs; undefined if qemu is missing, or the architecture is this machine's
 * @throws if a program answers something else
 */
export async function lookUnderEmulation(
  architecture: Architecture,
  options: DebianOptions,
): Promise<number | undefined> {
  const emulator = emulators[architecture]
  if (architecture === imageArchitecture()) return undefined
  const hasEmulator = await run(emulator, ['--version']).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false
      throw error
    },
  )
  if (!hasEmulator) return undefined
  const within = { ...options, architecture }
  const probes = await probesOf(within)
  const built = await ensureImages(
    probes.map(({ image }) => image),
    within,
  )
  const roots = await mkdtemp(join(tmpdir(), 'understudy-emulate-'))
  try {
    for (const image of new Set(probes.map(probe => probe.image)))
      await unpackImage(built[image].path, join(roots, image))
    for (const { image, command, answers } of probes) {
      const root = join(roots, image)
      const said = await run(emulator, ['-L', root, ...command], { cwd: root }).catch((error: unknown) =>
        String(error),
      )
      if (!said.includes(answers))
        throw new Error(
          `${command.join(' ')} of ${image} for ${architecture} does not say ${answers}: ${said}`,
        )
    }
    return probes.length
  } finally {
    await rm(roots, { recursive: true, force: true })
  }
}

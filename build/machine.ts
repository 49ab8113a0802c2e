/**
 * The needs of the images and of the playground: checked before anything is downloaded or compiled, so that a machine
 * which cannot do it says so at once, with everything that is missing.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { exists } from './cache.ts'
import { debianArchives, debianKeyring, namedArchive } from './sources.ts'

/** The facts of a machine that decide, for tests as arguments. */
export interface Machine {
  readonly platform: NodeJS.Platform
  /** Its configuration: `/etc`. */
  readonly etc: string
  /** Debian's keys. */
  readonly keyring: string
  /** The Debian archive that the user has named. */
  readonly archive: string | undefined
  readonly isRoot: boolean
  /** True if a program is installed. */
  readonly has: (program: string) => Promise<boolean>
  /** The first line of `/proc/version`. */
  readonly kernel: string
}

/** A problem, with its cure in the same sentence. */
export type Problem = string

/** Programs that are called, with the packages that contain them. */
export const programs: Readonly<
  Record<string, { readonly apt: readonly string[]; readonly dnf: readonly string[] }>
> = {
  bash: { apt: ['bash'], dnf: ['bash'] },
  'dpkg-deb': { apt: ['dpkg'], dnf: ['dpkg'] },
  gcc: { apt: ['gcc', 'libc6-dev'], dnf: ['gcc', 'glibc-devel'] },
  ip: { apt: ['iproute2'], dnf: ['iproute'] },
  mount: { apt: ['mount'], dnf: ['util-linux'] },
  nsenter: { apt: ['util-linux'], dnf: ['util-linux'] },
  openssl: { apt: ['openssl'], dnf: ['openssl'] },
  setpriv: { apt: ['util-linux'], dnf: ['util-linux'] },
  unshare: { apt: ['util-linux'], dnf: ['util-linux'] },
}

/** Programs that the recipes of the images call. */
const forImages = ['dpkg-deb', 'gcc'] as const

const elsewhere =
  'build them in a Debian or Ubuntu virtual machine (on Windows: WSL 2), or with docker: docs/try-on-kind.md'

/** Returns what prevents this machine from building images. */
export async function imageProblems(machine: Machine): Promise<readonly Problem[]> {
  const { platform, etc, keyring, archive: named, isRoot, has } = machine
  if (platform !== 'linux')
    return [`images are built on Linux, and this is ${nameOf(platform)}: ${elsewhere}`]
  if (!(await has('apt-get')))
    return [
      `images consist of Debian packages, and ${await distribution(etc)} has no apt to fetch them: ${elsewhere}`,
    ]
  const archive = await debianArchives(etc, keyring, named).then(
    () => [],
    (error: Error) => [error.message],
  )
  // With root, the compiler is installed when it is needed.
  const missing = isRoot ? [] : await missingOf(machine, forImages)
  return [...archive, ...missing]
}

/** Returns what prevents this machine from running a playground, except for what only a try can show. */
export async function clusterProblems({ platform, isRoot, kernel }: Machine): Promise<readonly Problem[]> {
  if (platform !== 'linux')
    return [
      `the playground needs Linux, and this is ${nameOf(platform)}: run it in a Linux virtual machine (on Windows: WSL 2), or use a cluster of your own with --use-current-cluster`,
    ]
  if (/microsoft/i.test(kernel) && !/WSL2|microsoft-standard/i.test(kernel))
    return ['the playground needs a Linux kernel, and WSL 1 has none: `wsl --set-version DISTRIBUTION 2`']
  if (!isRoot)
    return [
      'the playground creates namespaces, mounts and cgroups, and only root may: run the same command with sudo, or use a cluster of your own with --use-current-cluster',
    ]
  return []
}

/** Returns one problem that names all of these programs which are missing, and the command that installs them. */
export async function missingOf(machine: Machine, names: readonly string[]): Promise<readonly Problem[]> {
  const missing: string[] = []
  for (const name of names) if (!(await machine.has(name))) missing.push(name)
  if (missing.length === 0) return []
  return [`these programs are missing: ${missing.join(', ')}: ${await installCommand(machine, missing)}`]
}

/** Returns the packages of these programs, as apt names them. */
export const packagesOf = (names: readonly string[]): readonly string[] => [
  ...new Set(names.flatMap(name => programs[name]?.apt ?? [])),
]

async function installCommand({ has }: Machine, missing: readonly string[]): Promise<string> {
  if (await has('apt-get')) return `sudo apt-get install ${packagesOf(missing).join(' ')}`
  const ofFedora = [...new Set(missing.flatMap(name => programs[name]?.dnf ?? []))]
  if (await has('dnf')) return `sudo dnf install ${ofFedora.join(' ')}`
  return `install them with your package manager (Debian calls the packages ${packagesOf(missing).join(', ')})`
}

const nameOf = (platform: NodeJS.Platform): string =>
  (({ darwin: 'macOS', win32: 'Windows' }) as Readonly<Record<string, string>>)[platform] ?? platform

async function distribution(etc: string): Promise<string> {
  const release = await readFile(join(etc, 'os-release'), 'utf8').catch(() => '')
  return /^NAME="?([^"\n]+)"?$/m.exec(release)?.[1] ?? 'this system'
}

async function findProgram(name: string): Promise<boolean> {
  const directories = `${process.env['PATH'] ?? ''}:/usr/local/sbin:/usr/sbin:/sbin`.split(':')
  for (const directory of directories)
    if (directory !== '' && (await exists(`${directory}/${name}`))) return true
  return false
}

/** The machine that this runs on. */
export const thisMachine = async (): Promise<Machine> => ({
  platform: process.platform,
  etc: '/etc',
  keyring: debianKeyring,
  archive: namedArchive(),
  isRoot: process.getuid?.() === 0,
  has: findProgram,
  kernel: await readFile('/proc/version', 'utf8').catch(() => ''),
})

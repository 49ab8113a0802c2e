/**
 * CRIU's command lines. It runs inside all namespaces of its target, at the dump and at the restore, so that it sees
 * no foreign one; what it needs of the node comes as open directories.
 */
import { join } from 'node:path'
import type { SpawnRequest } from '../sentinel.ts'

/** Numbers of the directories that CRIU finds open. */
const descriptors = { programs: 200, images: 201, work: 202 } as const
export const programsDescriptor = descriptors.programs
const firstPipe = 210
const at = (fd: number) => `/proc/self/fd/${fd}`
const bundle = `${at(descriptors.programs)}/criu`

export interface Directories {
  /** With `criu/` (and in it `criu`, `ld.so`, `lib/`, `preload.so`), `enter` and `layer`. */
  readonly programs: string
  readonly images: string
  /** For its log, its figures and pid file: these are not part of a generation. */
  readonly work: string
}

/** Where CRIU's images of a container lie, below the directory of a generation. */
export const imagesOf = (container: { readonly name: string }): string =>
  join('containers', container.name, 'criu')

export function directoryFiles({ programs, images, work }: Directories): SpawnRequest['files'] {
  return [
    { fd: descriptors.programs, path: programs, mode: 'd' },
    { fd: descriptors.images, path: images, mode: 'd' },
    { fd: descriptors.work, path: work, mode: 'd' },
  ]
}

/** With the installed programs open as `programsDescriptor`. */
export const criuProgram: readonly string[] = [
  `${bundle}/ld.so`,
  // Nor is the container's cache of libraries asked; its list of those to preload is unknown to this loader.
  ...['--inhibit-cache', '--library-path', `${bundle}/lib`],
  // Answers for the limits of another user's process where this node's root may not ask for them.
  ...['--preload', `${bundle}/preload.so`],
  `${bundle}/criu`,
]

/**
 * In front of what CRIU is told to do. Where it runs, the files of these names are the container's, and may say that CRIU
 * is to run programs: its configuration, and its plugins, of which the bundle has a directory without any.
 */
export const criuOptions: readonly string[] = ['--no-default-config', '--libdir', `${bundle}/plugins`]

/** A library that CRIU is linked to, and does not use, would read its configuration in the container as soon as it is loaded. */
const nothingRead = ['GNUTLS_NO_IMPLICIT_INIT=1']

/** For all that is run as `criuProgram`. */
export const criuEnvironment: readonly string[] = nothingRead

/** What CRIU calls is looked up when it starts, not one by one while the pod stands still. */
export const dumpEnvironment: readonly string[] = [...criuEnvironment, 'LD_BIND_NOW=1']

/** Where its log has room in any case, bytes. */
const leastRoom = 64 * 1024

/** A tenant that asks for memory while it is dumped fills no more of the tmpfs than it may have: see native/enter/enter.c. */
export const roomEnvironment = (bytes: number | undefined): readonly string[] =>
  bytes === undefined ? [] : [`UNDERSTUDY_ROOM=${Math.max(bytes, leastRoom)}`]

const common = [
  ...criuOptions,
  ...['-D', at(descriptors.images), '-W', at(descriptors.work)],
  '-v1',
  // Tasks stay in the cgroups of whoever restores them, not in those of the primary.
  '--manage-cgroups=ignore',
  ...['--file-locks', '--link-remap', '--ghost-limit', String(64 * 1024 * 1024), '--ext-unix-sk'],
  // Connections cannot come along; the primary's own live on, as nothing touches the network.
  '--tcp-close',
]

/**
 * CRIU closes what it inherited in the children that run scripts: the script is named by the table of a process that
 * keeps these descriptors open. It gives restored processes a /proc of their own.
 */
const actionScript = ['--action-script', `/proc/@KEEPER@/fd/${descriptors.programs}/enter`]

/** Root of what is dumped, in its own pid namespace. */
export const rootPid = 1

/**
 * @param watched paths, in the container, of what is watched by inotify: CRIU knows of these only numbers, and an overlay
 *   does not lead from them to a name.
 */
export function dumpArguments(watched: readonly string[]): string[] {
  return [
    ...[...criuProgram, 'dump', '-t', String(rootPid), '-o', 'dump.log', ...common],
    // A busy listener has connections that nobody has accepted yet; without this it could not be dumped.
    ...['--skip-in-flight', '--network-lock', 'skip', '--leave-running'],
    ...(watched.length > 0 ? ['--force-irmap'] : []),
    ...watched.flatMap(path => ['--irmap-scan-path', path]),
  ]
}

export interface InheritedPipe {
  readonly fd: number
  /** As the dumped process had it: `pipe:[123]`. */
  readonly name: string
}

/** @param lazily without the pages that can come later: those are brought by who runs with `lazyPagesArguments`. */
export function restoreArguments(pipes: readonly InheritedPipe[], lazily = false): string[] {
  return [
    ...[...criuProgram, 'restore', '-o', 'restore.log', ...common],
    ...['--restore-detached', '--leave-stopped', '--pidfile', `${at(descriptors.work)}/pid`],
    ...(lazily ? ['--lazy-pages'] : []),
    ...actionScript,
    ...pipes.flatMap(({ fd, name }) => ['--inherit-fd', `fd[${fd}]:${name}`]),
  ]
}

/** Made in the work directory, which both have, when pages can be asked for. */
export const lazyPagesSocket = 'lazy-pages.socket'

/** Also there, written when the restore is over: the pid, on the node, of who is not to go on without its pages. */
export const lazyPagesApp = 'app'

export const lazyPagesArguments: readonly string[] = [
  ...[...criuProgram, 'lazy-pages', '-o', 'pages.log'],
  ...[...criuOptions, '-D', at(descriptors.images), '-W', at(descriptors.work), '-v1'],
]

/** Has what is loaded into CRIU guard the application that waits for the pages: see native/preload/pages.c. */
export const lazyPagesEnvironment = (deadlineMs: number): readonly string[] => [
  ...criuEnvironment,
  `UNDERSTUDY_PAGES=${deadlineMs}`,
]

/**
 * The pipes that a runtime gave the dumped process become those of the container it is restored in: its log goes
 * there. One pipe for two descriptors is passed once.
 */
export function inheritPipes(
  stdio: Readonly<Record<string, string>>,
  holdPid: number,
): { readonly pipes: readonly InheritedPipe[]; readonly files: SpawnRequest['files'] } {
  const names = [...new Set(Object.values(stdio))].filter(name => /^pipe:\[\d+\]$/.test(name))
  const pipes = names.map((name, index) => ({ fd: firstPipe + index, name }))
  const files = pipes.map(({ fd, name }) => {
    const original = Object.keys(stdio).find(key => stdio[key] === name)
    const mode = original === '0' ? ('r' as const) : ('w' as const)
    return { fd, path: `/proc/${holdPid}/fd/${original}`, mode }
  })
  return { pipes, files }
}

/** Lines of CRIU's log that say what went wrong: at most a few, none of which shows anything of the memory. */
export function complaints(log: string): string {
  const ignored = /RLIMIT_NOFILE|kdat|tun/
  const lines = log.split('\n').filter(line => /Error|Warn/.test(line) && !ignored.test(line))
  return lines
    .slice(-6)
    .map(line => line.replace(/^\([\d.]+\)\s*/, '').slice(0, 200))
    .join('; ')
}

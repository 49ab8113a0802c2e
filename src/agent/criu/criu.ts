/**
 * CRIU's command lines. At dump and at restore, CRIU runs inside all namespaces of its target, so that it sees no
 * foreign namespace. It gets the node's files that it needs as open directories.
 */
import { join } from 'node:path'
import { descriptors } from '../container/descriptors.ts'
import type { SpawnRequest } from '../sentinel/client.ts'

const firstPipe = 210
const at = (fd: number) => `/proc/self/fd/${fd}`
const bundle = `${at(descriptors.programs)}/criu`

export interface Directories {
  /** Contains `criu/` (with `criu`, `ld.so`, `lib/`, `criu-shim.so`), `nsrun` and `rootfs`. */
  readonly programs: string
  readonly images: string
  /** For CRIU's log, its statistics and its pid file, which are not part of a generation. */
  readonly work: string
}

/** Returns the path of a container's CRIU images, relative to the directory of a generation. */
export const imagesOf = (container: { readonly name: string }): string =>
  join('containers', container.name, 'criu')

export function directoryFiles({ programs, images, work }: Directories): SpawnRequest['files'] {
  return [
    { fd: descriptors.programs, path: programs, mode: 'd' },
    { fd: descriptors.directory, path: images, mode: 'd' },
    { fd: descriptors.work, path: work, mode: 'd' },
  ]
}

/** CRIU's command; needs the installed programs open as `descriptors.programs`. */
export const criuProgram: readonly string[] = [
  `${bundle}/ld.so`,
  // Ignores the container's library cache. This loader does not know the container's list of libraries to preload.
  ...['--inhibit-cache', '--library-path', `${bundle}/lib`],
  // Reads the limits of other users' processes on nodes where root lacks the capability for that.
  ...['--preload', `${bundle}/criu-shim.so`],
  `${bundle}/criu`,
]

/**
 * Options before CRIU's command. CRIU runs in the container, where these files belong to the container and could make
 * CRIU run programs: its configuration, and its plugins. The bundle's plugin directory is empty.
 */
export const criuOptions: readonly string[] = ['--no-default-config', '--libdir', `${bundle}/plugins`]

/** CRIU is linked to GnuTLS but does not use it; when loaded, it would read its configuration from the container. */
const nothingRead = ['GNUTLS_NO_IMPLICIT_INIT=1']

/** Environment of every run of `criuProgram`. */
export const criuEnvironment: readonly string[] = nothingRead

/** Makes the loader resolve CRIU's symbols at start, not one by one while the pod is stopped. */
export const dumpEnvironment: readonly string[] = [...criuEnvironment, 'LD_BIND_NOW=1']

/** Lower bound of the limit, bytes: CRIU's log needs that much. */
const leastRoom = 64 * 1024

/**
 * Limits the file size, so that a pod that allocates memory during its dump cannot overfill the tmpfs: see
 * native/nsrun/nsrun.c.
 */
export const roomEnvironment = (bytes: number | undefined): readonly string[] =>
  bytes === undefined ? [] : [`UNDERSTUDY_ROOM=${Math.max(bytes, leastRoom)}`]

const common = [
  ...criuOptions,
  ...['-D', at(descriptors.directory), '-W', at(descriptors.work)],
  '-v1',
  // Restored tasks stay in the cgroups of the process that restores them, not in those of the primary.
  '--manage-cgroups=ignore',
  ...['--file-locks', '--link-remap', '--ghost-limit', String(64 * 1024 * 1024), '--ext-unix-sk'],
  // Connections cannot be restored elsewhere. Those of the primary survive the dump, as nothing touches the network.
  '--tcp-close',
]

/**
 * The action script gives restored processes a /proc of their own. CRIU closes inherited descriptors in the children
 * that run scripts, so the path goes through the descriptor table of a process that keeps them open.
 */
const actionScript = ['--action-script', `/proc/@KEEPER@/fd/${descriptors.programs}/nsrun`]

/** Pid of the dumped root process in its own pid namespace. */
export const rootPid = 1

/** Name in CRIU's work directory of the directory with the dump before. */
export const dumpBefore = 'before'

/** How a dump uses the kernel's record of written pages: see native/criu-shim/track.c. */
export type PageRecord = 'None' | 'Begin' | 'Since'

export const recordEnvironment = (record: PageRecord): readonly string[] =>
  record === 'None' ? [] : ['UNDERSTUDY_TRACK=1']

/**
 * @param watched paths, in the container, of the files that inotify watches. CRIU knows only their inode numbers, and
 *   an overlay cannot resolve these to a name.
 */
export function dumpArguments(watched: readonly string[], record: PageRecord = 'None'): string[] {
  return [
    ...[...criuProgram, 'dump', '-t', String(rootPid), '-o', 'dump.log', ...common],
    // A busy listener has connections that the app has not accepted yet; without this option, CRIU would refuse the
    // dump.
    ...['--skip-in-flight', '--network-lock', 'skip', '--leave-running'],
    ...(watched.length > 0 ? ['--force-irmap'] : []),
    ...watched.flatMap(path => ['--irmap-scan-path', path]),
    ...(record === 'None' ? [] : ['--track-mem']),
    ...(record === 'Since' ? ['--prev-images-dir', `${at(descriptors.work)}/${dumpBefore}`] : []),
  ]
}

export interface InheritedPipe {
  readonly fd: number
  /** Name in the dumped process: `pipe:[123]`. */
  readonly name: string
}

/** @param lazily omits the pages that can arrive later; a process with `lazyPagesArguments` delivers them. */
export function restoreArguments(pipes: readonly InheritedPipe[], lazily = false): string[] {
  return [
    ...[...criuProgram, 'restore', '-o', 'restore.log', ...common],
    ...['--restore-detached', '--leave-stopped', '--pidfile', `${at(descriptors.work)}/pid`],
    ...(lazily ? ['--lazy-pages'] : []),
    ...actionScript,
    ...pipes.flatMap(({ fd, name }) => ['--inherit-fd', `fd[${fd}]:${name}`]),
  ]
}

/** Socket in the shared work directory; the page server creates it when it can serve pages. */
export const lazyPagesSocket = 'lazy-pages.socket'

/**
 * File in the same directory, written after the restore: the pid, on the node, of the app that must not run without its
 * pages.
 */
export const lazyPagesApp = 'app'

export const lazyPagesArguments: readonly string[] = [
  ...[...criuProgram, 'lazy-pages', '-o', 'pages.log'],
  ...[...criuOptions, '-D', at(descriptors.directory), '-W', at(descriptors.work), '-v1'],
]

/** Makes the CRIU shim guard the application that waits for pages: see native/criu-shim/pages.c. */
export const lazyPagesEnvironment = (deadlineMs: number): readonly string[] => [
  ...criuEnvironment,
  `UNDERSTUDY_PAGES=${deadlineMs}`,
]

/**
 * Replaces the stdio pipes of the dumped process by those of the container that it is restored in, so that its log goes
 * there. Passes a pipe that has two descriptors once.
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

/** Returns the errors and warnings of CRIU's log: a few lines at most, without any contents of the memory. */
export function complaints(log: string): string {
  const ignored = /RLIMIT_NOFILE|kdat|tun/
  const lines = log.split('\n').filter(line => /Error|Warn/.test(line) && !ignored.test(line))
  return lines
    .slice(-6)
    .map(line => line.replace(/^\([\d.]+\)\s*/, '').slice(0, 200))
    .join('; ')
}

/**
 * Everything besides the memory itself that a restore of these images would open and create. CRIU does that as root,
 * inside of the container, before the tasks get their own rights; and the images come from another node.
 */
import { readdir } from 'node:fs/promises'
import { CheckpointError } from '../errors.ts'
import { readFirst, readImage } from './image-file.ts'
import { textOf, type ValueOf } from './message.ts'
import { coreEntry, ghostFileEntry, inventoryEntry, openedFileEntry, taskKobjIds } from './messages.ts'
import { descriptorsInFlight } from './queues.ts'
import { tasksOf } from './tasks.ts'

/** Kinds of open files, by CRIU's numbers. */
export const fileKinds = [
  ...['none', 'regular', 'pipe', 'fifo', 'inet', 'unix', 'eventfd', 'eventpoll', 'inotify', 'signalfd'],
  ...['packet', 'tty', 'fanotify', 'netlink', 'namespace', 'tun', 'external', 'timerfd', 'memfd', 'bpf'],
  'pidfd',
] as const

export interface OpenedFile {
  /** The name of one of CRIU's kinds, or the number of an unknown one. */
  readonly kind: string
  /** The path that is opened; absent: the file has no name. */
  readonly name?: string
  /** As for `open`. */
  readonly flags?: number
  /** The path to which a socket is bound or connected, and the directory from which it is. */
  readonly addresses: readonly string[]
  /** Type of an inet socket: SOCK_STREAM and so on. */
  readonly socketType?: number
}

/** An open file that has been unlinked. */
export type GhostFile = Pick<ValueOf<typeof ghostFileEntry>, 'uid' | 'gid' | 'mode'>

export interface Reach {
  readonly files: readonly OpenedFile[]
  /** Namespaces that the tasks do not share with their container. Those of pids and of time do not count. */
  readonly ownNamespaces: readonly string[]
  /**
   * Unlinked files. CRIU recreates them from their images, with owner and mode, for as long as a task has them open.
   */
  readonly ghosts: readonly GhostFile[]
  /** Descriptors in messages that no process has received. Looking at the processes cannot show where they lead. */
  readonly inFlight: number
  /** Images in formats that CRIU has abandoned. CRIU would still read them, but no check here does. */
  readonly oldImages: readonly string[]
}

const oldNames =
  /^(reg-files|ext-files|ns-files|eventfd|eventpoll|inotify|signalfd|fanotify|pipes|fifo|unixsk|inetsk|packetsk|netlinksk|tunfile|tty|timerfd|bpfmap-file|pidfd|creds-\d+|vmas-\d+|itimers-\d+|rlimit-\d+|signal-[sp]-\d+|mountpoints(-\d+)?)\.img$/

/** @throws CheckpointError BadImage */
export async function reachOf(dir: string): Promise<Reach> {
  const files = (await readImage(dir, 'files.img', 'files', openedFileEntry)).map(openedFile)
  const ownNamespaces = await namespacesOf(dir)
  const oldImages = (await readdir(dir)).filter(name => oldNames.test(name))
  const ghosts = await ghostsOf(dir)
  return { files, ownNamespaces, ghosts, oldImages, inFlight: await descriptorsInFlight(dir) }
}

async function ghostsOf(dir: string): Promise<GhostFile[]> {
  const names = (await readdir(dir)).filter(name => name.startsWith('ghost-file-'))
  const found: GhostFile[] = []
  // Not in parallel: an app may have thousands of them.
  for (const name of names) found.push(await readFirst(dir, name, 'ghost', ghostFileEntry))
  return found
}

function openedFile({ type, reg, isk, usk }: ValueOf<typeof openedFileEntry>): OpenedFile {
  const kind = fileKinds[type] ?? String(type)
  // Ignores the declared kind: a restore may use anything that the entry contains.
  return {
    kind,
    addresses: usk === undefined ? [] : unixPaths(usk),
    ...(reg === undefined ? {} : { name: textOf(reg.name), flags: reg.flags }),
    ...(isk === undefined ? {} : { socketType: isk.type }),
  }
}

/** Names that begin with a zero byte (abstract sockets) are not in a filesystem. */
function unixPaths({ name, nameDir }: Readonly<Record<'name' | 'nameDir', Uint8Array>>): string[] {
  const path = textOf(name).replace(/\0+$/, '')
  const directory = textOf(nameDir)
  return [...(path === '' || name[0] === 0 ? [] : [path]), ...(directory === '' ? [] : [directory])]
}

// The time namespace is left out: CRIU makes one for every tree that it restores, so that clocks continue, and it
// confers no rights.
const shared = ['netNsId', 'ipcNsId', 'utsNsId', 'mntNsId', 'userNsId', 'cgroupNsId'] as const

/**
 * CRIU makes a namespace for tasks, with everything their images put into it, when its number is not that of CRIU's
 * own.
 */
async function namespacesOf(dir: string): Promise<string[]> {
  const [inventory] = await readImage(dir, 'inventory.img', 'inventory', inventoryEntry)
  const own = inventory?.rootIds
  if (own === undefined) throw new CheckpointError('BadImage', 'inventory.img does not name its namespaces')
  const names = new Set(await readdir(dir))
  const found = new Set<string>()
  const compare = (ids: ValueOf<typeof taskKobjIds>) => {
    for (const name of shared) if (ids[name] !== own[name]) found.add(name.replace('NsId', ''))
  }
  for (const { pid } of await tasksOf(dir)) {
    if (names.has(`ids-${pid}.img`))
      for (const ids of await readImage(dir, `ids-${pid}.img`, 'ids', taskKobjIds)) compare(ids)
    for (const { ids } of await readImage(dir, `core-${pid}.img`, 'core', coreEntry))
      if (ids !== undefined) compare(ids)
  }
  return [...found]
}

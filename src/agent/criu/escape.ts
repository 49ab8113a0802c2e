/** Checks that restored processes hold only objects of their own container. */
import { open, readFile } from 'node:fs/promises'
import { mountsOf } from '../container/container.ts'
import type { Mount } from '../container/mountinfo.ts'
import {
  inBatches,
  isGone,
  linkIfThere,
  listIfThere,
  type ProcFs,
  readIfThere,
  treeOf,
} from '../container/process.ts'

const O_PATH = 0o10000000
const sharedNamespaces = ['ipc', 'net', 'uts', 'user', 'cgroup'] as const

/**
 * Lists files, directories, mappings, mounts and namespaces of the tree that do not belong to the container whose first
 * process is `hold`. One line each, without any name; empty: none. The tree has to be stopped.
 */
export async function escapes(fs: ProcFs, app: number, hold: number): Promise<string[]> {
  const mounts = await ownMounts(fs, app)
  const found = new Set(await foreignMounts(fs, app, hold))
  for (const pid of await treeOf(fs, app))
    for (const each of [
      await foreignNamespaces(fs, pid, app, hold),
      await foreignFiles(fs, pid, mounts),
      await foreignMappings(fs, pid, mounts),
    ])
      for (const line of each) found.add(line)
  return [...found]
}

/**
 * Returns the ids of the mounts in its mount namespace, except for the container's /proc, which the tree's own /proc
 * covers. CRIU opens files through the covered one, and there the tree's pids mean other processes (`/proc/3/mem`).
 */
async function ownMounts(fs: ProcFs, pid: number): Promise<ReadonlySet<string>> {
  const mounts = await mountsOf(fs, pid)
  const own = mounts.findLast(isProc)
  const isOwn = ({ type, device }: Mount) => type !== 'proc' || device === own?.device
  return new Set(mounts.filter(isOwn).map(({ id }) => id))
}

const isProc = ({ mountPoint, type }: Mount) => mountPoint === '/proc' && type === 'proc'

/**
 * A restored tree has a copy of the container's mounts, with its own /proc over the old one. The restore repeats the
 * mounts that the runtime has made over parts of /proc (`/proc/sys`, read-only): the same parts, of the new /proc.
 */
async function foreignMounts(fs: ProcFs, app: number, hold: number): Promise<string[]> {
  const [ofHold, ofApp] = await Promise.all([mountsOf(fs, hold), mountsOf(fs, app)])
  const own = ofApp.findLast(isProc)
  const place = ({ root, mountPoint }: Mount) => `${root} ${mountPoint}`
  const known = new Set(ofHold.map(mount => `${mount.device} ${place(mount)}`))
  const parts = new Set(ofHold.filter(({ type }) => type === 'proc').map(place))
  const more = ofApp.filter(
    mount =>
      !isProc(mount) &&
      !known.has(`${mount.device} ${place(mount)}`) &&
      !(mount.type === 'proc' && mount.device === own?.device && parts.has(place(mount))),
  )
  return more.length === 0 ? [] : [`${more.length} mounts that the container does not have`]
}

async function foreignNamespaces(fs: ProcFs, pid: number, app: number, hold: number): Promise<string[]> {
  const of = (process: number, name: string) => linkIfThere(`${fs.proc}/${process}`, `ns/${name}`)
  const differs = async (name: string, other: number) =>
    (await of(pid, name)) === (await of(other, name)) ? [] : [`another ${name} namespace`]
  const all = [
    ...sharedNamespaces.map(name => differs(name, hold)),
    ...['mnt', 'pid'].map(name => differs(name, app)),
  ]
  return (await Promise.all(all)).flat()
}

async function foreignFiles(fs: ProcFs, pid: number, mounts: ReadonlySet<string>): Promise<string[]> {
  const base = `${fs.proc}/${pid}`
  const descriptors = await listIfThere(`${base}/fd`)
  const open = await inBatches(descriptors, async fd => {
    const link = await linkIfThere(base, `fd/${fd}`)
    if (link === undefined || isOfNoMount(link)) return []
    const mount = mountIn((await readIfThere(`${base}/fdinfo/${fd}`)) ?? '')
    return mount !== undefined && mounts.has(mount) ? [] : ['an open file that is not in the container']
  })
  const places = ['cwd', 'root', 'exe'].map(async name => {
    const mount = await mountOf(`${base}/${name}`)
    return mount === undefined || mounts.has(mount) ? [] : [`its ${name} is not in the container`]
  })
  return [...open, ...(await Promise.all(places))].flat()
}

async function foreignMappings(fs: ProcFs, pid: number, mounts: ReadonlySet<string>): Promise<string[]> {
  // One mapping of each file is enough: a thousand mappings are of a few files.
  const files = new Map<string, string>()
  for (const line of ((await readIfThere(`${fs.proc}/${pid}/maps`)) ?? '').split('\n')) {
    const [range, , , device = '', inode = '0', ...name] = line.split(/\s+/)
    if (range === undefined || inode === '0' || isOfNoMount(name.join(' '))) continue
    files.set(`${device} ${inode}`, range)
  }
  const found = await inBatches([...files.values()], async range => {
    const mount = await mountOf(`${fs.proc}/${pid}/map_files/${range.replace(/(^|-)0+(?=[0-9a-f])/g, '$1')}`)
    return mount === undefined || mounts.has(mount)
      ? []
      : ['a mapping of a file that is not in the container']
  })
  return found.flat()
}

/** Pipes, sockets and the like; memory that only looks like a file. */
const isOfNoMount = (link: string): boolean =>
  !link.startsWith('/') || /^\/(memfd:.*|dev\/zero|SYSV[0-9a-f]{8}) \(deleted\)$/.test(link)

/**
 * Returns the id of the mount that a link of /proc leads to, even if its name leads elsewhere in the agent's namespace.
 */
async function mountOf(path: string): Promise<string | undefined> {
  try {
    await using file = await open(path, O_PATH)
    return mountIn(await readFile(`/proc/self/fdinfo/${file.fd}`, 'utf8'))
  } catch (error) {
    // A zombie has none of these.
    if (isGone(error)) return undefined
    throw error
  }
}

const mountIn = (fdinfo: string): string | undefined => /^mnt_id:\s*(\d+)$/m.exec(fdinfo)?.[1]

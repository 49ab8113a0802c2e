import { lstat, open, opendir, readlink } from 'node:fs/promises'
import { mountsOf } from './container.ts'
import { inBatches, listIfThere, type ProcFs, treeOf, unlessGone } from './process.ts'

interface Watched {
  /** `major:minor` of the filesystem. */
  readonly device: string
  readonly inode: bigint
}

/** What is not among so many files of its filesystem is given up, and CRIU says that it cannot save it. */
const mostFiles = 20_000

/**
 * Paths, in the container of `root`, of what it and its descendants watch by inotify. The kernel tells inodes only; the
 * names are looked for from the roots of the mounts downwards, the shallowest first. Most programs watch nothing.
 */
export async function watchedPaths(fs: ProcFs, root: number): Promise<string[]> {
  const lists: Watched[][] = []
  for (const pid of await treeOf(fs, root)) lists.push(await watchesOf(fs, pid))
  const wanted = new Map(lists.flat().map(it => [`${it.device} ${it.inode}`, it]))
  if (wanted.size === 0) return []
  const mounts = await mountsOf(fs, root)
  const others = new Set(mounts.map(({ mountPoint }) => mountPoint))
  const found: string[] = []
  for (const { device, mountPoint } of mounts) {
    const inodes = new Set([...wanted.values()].filter(it => it.device === device).map(it => it.inode))
    for await (const { path, inode } of walk(`${fs.proc}/${root}/root`, mountPoint, others)) {
      if (inodes.size === 0) break
      if (!inodes.delete(inode)) continue
      wanted.delete(`${device} ${inode}`)
      found.push(path)
    }
  }
  return found.sort()
}

async function watchesOf(fs: ProcFs, pid: number): Promise<Watched[]> {
  const directory = `${fs.proc}/${pid}`
  const descriptors = await listIfThere(`${directory}/fd`)
  const links = await inBatches(descriptors, fd => unlessGone(readlink(`${directory}/fd/${fd}`)))
  const found: Watched[] = []
  // One after the other: each may be large.
  for (const [at, fd] of descriptors.entries())
    if (links[at] === 'anon_inode:inotify' && found.length < mostWatches)
      found.push(...parseWatches((await unlessGone(beginningOf(`${directory}/fdinfo/${fd}`))) ?? ''))
  return found
}

/** A user may have as many watches as memory allows; those that are not looked for CRIU does not find either, and says so. */
const mostWatches = 10_000

async function beginningOf(path: string): Promise<string> {
  await using file = await open(path)
  const buffer = Buffer.alloc(mostWatches * 128)
  let length = 0
  for (let got = 1; got > 0 && length < buffer.length; length += got)
    got = (await file.read(buffer, length, buffer.length - length)).bytesRead
  return buffer.toString('utf8', 0, length)
}

/** Of /proc/PID/fdinfo/FD: lines `inotify wd:1 ino:9e7e sdev:800013 ...`, all hexadecimal; 20 bits are the minor number. */
export function parseWatches(fdinfo: string): Watched[] {
  return [...fdinfo.matchAll(/^inotify wd:[0-9a-f]+ ino:([0-9a-f]+) sdev:([0-9a-f]+) /gm)].map(
    ([, inode = '', device = '']) => {
      const number = Number.parseInt(device, 16)
      return { device: `${number >>> 20}:${number & 0xfffff}`, inode: BigInt(`0x${inode}`) }
    },
  )
}

async function* walk(
  root: string,
  start: string,
  others: ReadonlySet<string>,
): AsyncGenerator<{ readonly path: string; readonly inode: bigint }> {
  const queue = [start]
  for (let seen = 0; queue.length > 0 && seen < mostFiles; seen += 1) {
    const path = queue.shift() ?? ''
    const about = await unlessReplaced(lstat(`${root}${path}`, { bigint: true }))
    if (about === undefined) continue
    yield { path, inode: about.ino }
    if (!about.isDirectory()) continue
    const directory = await unlessReplaced(opendir(`${root}${path}`))
    if (directory === undefined) continue
    for await (const { name } of directory) {
      const child = path === '/' ? `/${name}` : `${path}/${name}`
      if (!others.has(child)) queue.push(child)
      if (seen + queue.length > mostFiles) break
    }
  }
}

/** The app goes on meanwhile: what was a directory may be a file by now. */
const unlessReplaced = <T>(work: Promise<T>): Promise<T | undefined> =>
  unlessGone(work).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOTDIR') return undefined
    throw error
  })

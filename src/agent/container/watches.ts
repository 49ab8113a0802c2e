import { lstat, open } from 'node:fs/promises'
import { mountsOf } from './container.ts'
import { pathOf, placeInside } from './inside.ts'
import { answersByItself } from './mountinfo.ts'
import { inBatches, linkIfThere, listIfThere, namesIn, type ProcFs, treeOf, unlessGone } from './process.ts'

interface Watched {
  /** `major:minor` of the filesystem. */
  readonly device: string
  readonly inode: bigint
}

/**
 * The search in a filesystem ends after so many files. If a watched file is missing then, CRIU reports that it cannot
 * save it.
 */
const mostFiles = 20_000

/**
 * Returns paths, in the container of `root`, of the files that it and its descendants watch by inotify. The kernel
 * reports only inodes. The names are searched from the roots of the mounts downwards, breadth first. Most programs
 * watch nothing.
 */
export async function watchedPaths(fs: ProcFs, root: number): Promise<string[]> {
  const lists: Watched[][] = []
  for (const pid of await treeOf(fs, root)) lists.push(await watchesOf(fs, pid))
  const wanted = new Map(lists.flat().map(it => [`${it.device} ${it.inode}`, it]))
  if (wanted.size === 0) return []
  const mounts = await mountsOf(fs, root)
  const others = new Set(mounts.map(({ mountPoint }) => mountPoint))
  const found: string[] = []
  for (const { device, mountPoint, type } of mounts) {
    // A lookup never returns if the server, or the tenant's FUSE program, does not answer.
    if (!answersByItself(type)) continue
    const inodes = new Set([...wanted.values()].filter(it => it.device === device).map(it => it.inode))
    if (inodes.size === 0) continue
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
  const links = await inBatches(descriptors, fd => linkIfThere(directory, `fd/${fd}`))
  const found: Watched[] = []
  // One at a time: each may be large.
  for (const [at, fd] of descriptors.entries())
    if (links[at] === 'anon_inode:inotify' && found.length < mostWatches)
      found.push(...parseWatches((await unlessGone(beginningOf(`${directory}/fdinfo/${fd}`))) ?? ''))
  return found
}

/**
 * Memory limits a user's watches, and nothing else does. CRIU cannot find the watches beyond this number either, and
 * reports that.
 */
const mostWatches = 10_000

async function beginningOf(path: string): Promise<string> {
  await using file = await open(path)
  const buffer = Buffer.alloc(mostWatches * 128)
  let length = 0
  for (let got = 1; got > 0 && length < buffer.length; length += got)
    got = (await file.read(buffer, length, buffer.length - length)).bytesRead
  return buffer.toString('utf8', 0, length)
}

/**
 * Parses /proc/PID/fdinfo/FD: lines `inotify wd:1 ino:9e7e sdev:800013 ...`, all hexadecimal; 20 bits are the minor
 * number.
 */
export function parseWatches(fdinfo: string): Watched[] {
  return [...fdinfo.matchAll(/^inotify wd:[0-9a-f]+ ino:([0-9a-f]+) sdev:([0-9a-f]+) /gm)].map(
    ([, inode = '', device = '']) => {
      const number = Number.parseInt(device, 16)
      return { device: `${number >>> 20}:${number & 0xfffff}`, inode: BigInt(`0x${inode}`) }
    },
  )
}

/** Opens directories without following links, so that the app cannot redirect the walk by replacing one. */
async function* walk(
  root: string,
  start: string,
  others: ReadonlySet<string>,
): AsyncGenerator<{ readonly path: string; readonly inode: bigint }> {
  const queue: string[] = []
  let seen = 0
  const first = await unlessReplaced(placeInside(root, start))
  if (first === undefined) return
  await using _ = first
  const about = await first.stat({ bigint: true })
  yield { path: start, inode: about.ino }
  if (about.isDirectory()) queue.push(start)
  for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
    const place = await unlessReplaced(placeInside(root, path))
    if (place === undefined) continue
    await using __ = place
    for await (const name of namesIn(pathOf(place))) {
      const child = path === '/' ? `/${name}` : `${path}/${name}`
      if (others.has(child)) continue
      seen += 1
      if (seen > mostFiles) return
      const found = await unlessReplaced(lstat(`${pathOf(place)}/${name}`, { bigint: true }))
      if (found === undefined) continue
      yield { path: child, inode: found.ino }
      if (found.isDirectory()) queue.push(child)
    }
  }
}

/** The app runs meanwhile and may have replaced a directory by a file or a link. */
const unlessReplaced = <T>(work: Promise<T>): Promise<T | undefined> =>
  unlessGone(work).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOTDIR' || error.code === 'ELOOP') return undefined
    throw error
  })

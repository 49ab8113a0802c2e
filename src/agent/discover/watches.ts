import { lstat, open, readlink } from 'node:fs/promises'
import { pathOf, placeInside } from '../inside.ts'
import { mountsOf } from './container.ts'
import { answersByItself } from './mountinfo.ts'
import { inBatches, listIfThere, namesIn, type ProcFs, treeOf, unlessGone } from './process.ts'

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
  for (const { device, mountPoint, type } of mounts) {
    // The first look at a filesystem that does not answer, over a network or from a program of the tenant's, never ends.
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

/** Directories are opened without following links: what the app puts in the place of one leads nowhere. */
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

/** The app goes on meanwhile: what was a directory may be a file or a link by now. */
const unlessReplaced = <T>(work: Promise<T>): Promise<T | undefined> =>
  unlessGone(work).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOTDIR' || error.code === 'ELOOP') return undefined
    throw error
  })

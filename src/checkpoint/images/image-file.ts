/**
 * CRIU's image files: one or two 4-byte magic numbers, then entries, each a 4-byte length and a protobuf message.
 * Little-endian throughout.
 */
import { open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { CheckpointError } from '../errors.ts'
import { type Decoded, decode, encode, type Fields, type MessageType } from './message.ts'

/** Ordinary images begin with `common`, CRIU's statistics with `service`. A second number gives their kind. */
const common = 0x54564319
const service = 0x55105940

const magics = {
  // The inventory gives the version of the other images, so it has no common magic before its own.
  inventory: [0x58313116],
  pstree: [common, 0x50273030],
  core: [common, 0x55053847],
  ids: [common, 0x54432030],
  mm: [common, 0x57492820],
  files: [common, 0x56303138],
  pagemap: [common, 0x56084025],
  seccomp: [common, 0x64413049],
  packets: [common, 0x56264026],
  ghost: [common, 0x52583605],
  stats: [service, 0x57093306],
} as const

export type ImageKind = keyof typeof magics

/**
 * Yields the entries of an image in order, still encoded.
 * @param payload returns how many bytes of other data follow an entry.
 * @throws CheckpointError BadImage
 */
export function* eachEntry(
  kind: ImageKind,
  name: string,
  bytes: Buffer,
  payload: (entry: Buffer) => number = () => 0,
): Generator<Buffer, void> {
  const magic = magics[kind]
  if (bytes.length < magic.length * 4 || magic.some((word, index) => bytes.readUInt32LE(index * 4) !== word))
    throw new CheckpointError('BadImage', `${name} has no magic number of an image of kind ${kind}`)
  let at = magic.length * 4
  for (let count = 0; at < bytes.length; count++) {
    const length = bytes.length - at >= 4 ? bytes.readUInt32LE(at) : Number.POSITIVE_INFINITY
    if (length > bytes.length - at - 4)
      throw new CheckpointError('BadImage', `${name} is truncated in its entry ${count}`)
    const entry = bytes.subarray(at + 4, at + 4 + length)
    yield entry
    at += 4 + length + payload(entry)
  }
  if (at > bytes.length) throw new CheckpointError('BadImage', `${name} is truncated after its last entry`)
}

/** All entries of an image. @throws CheckpointError BadImage */
export const splitEntries = (...of: Parameters<typeof eachEntry>): Buffer[] => [...eachEntry(...of)]

/** Entries decoded before the event loop gets a turn: well under 10 ms. */
const batch = 8192

/**
 * Calls `meet` for each entry, and gives the event loop turns in between: an image may have more than a million.
 * @throws CheckpointError BadImage
 */
export async function forEachEntry(entries: Iterable<Buffer>, meet: (entry: Buffer) => void): Promise<void> {
  let count = 0
  for (const entry of entries) {
    if (++count % batch === 0) await setImmediate()
    meet(entry)
  }
}

export function joinEntries(kind: ImageKind, entries: readonly Uint8Array[]): Buffer {
  const words = (values: readonly number[]) => {
    const bytes = Buffer.alloc(values.length * 4)
    values.forEach((value, index) => {
      bytes.writeUInt32LE(value, index * 4)
    })
    return bytes
  }
  return Buffer.concat([words(magics[kind]), ...entries.flatMap(entry => [words([entry.length]), entry])])
}

/** @throws CheckpointError BadImage */
export function decodeEntry<F extends Fields>(
  name: string,
  type: MessageType<F>,
  bytes: Uint8Array,
): Decoded<F> {
  try {
    return decode(type, bytes)
  } catch (error) {
    throw new CheckpointError('BadImage', `${name} has an entry that is not a ${type.name}`, error)
  }
}

/**
 * Limit of an image that is read. The agent of a node reads images for all its tenants, and each tenant decides how
 * large its images get. Images of memory itself, and of files, are not read.
 */
export const mostImageBytes = 16 * 1024 * 1024

const readKinds = /^(inventory|pstree|files|sk-queues|seccomp|(core|ids|mm|pagemap|pagemap-shmem)-\d+)\.img$/

/** Names of the images that `readImageBytes` would refuse as too large. */
export async function largeImages(dir: string): Promise<string[]> {
  const found: string[] = []
  for (const name of await readdir(dir))
    if (readKinds.test(name) && (await stat(join(dir, name))).size > mostImageBytes) found.push(name)
  return found
}

/** @throws CheckpointError BadImage, also when the file does not exist */
export async function readImageBytes(dir: string, name: string): Promise<Buffer> {
  try {
    await using file = await open(join(dir, name))
    const { size } = await file.stat()
    if (size > mostImageBytes)
      throw new CheckpointError('BadImage', `${name} has ${size} bytes, too many to read`)
    return await file.readFile()
  } catch (error) {
    if (error instanceof CheckpointError) throw error
    throw new CheckpointError('BadImage', `${name} cannot be read`, error)
  }
}

/** All entries of an image whose entries are all of one type. @throws CheckpointError BadImage */
export async function readImage<F extends Fields>(
  dir: string,
  name: string,
  kind: ImageKind,
  type: MessageType<F>,
): Promise<Decoded<F>[]> {
  const bytes = await readImageBytes(dir, name)
  return splitEntries(kind, name, bytes).map(entry => decodeEntry(name, type, entry))
}

const firstRead = 64 * 1024

/** The first entry of an image in which other data, of any size, follows. @throws CheckpointError BadImage */
export async function readFirst<F extends Fields>(
  dir: string,
  name: string,
  kind: ImageKind,
  type: MessageType<F>,
): Promise<Decoded<F>> {
  await using file = await open(join(dir, name))
  const { buffer, bytesRead } = await file.read(Buffer.alloc(firstRead), 0, firstRead, 0)
  const bytes = buffer.subarray(0, bytesRead)
  // The data after the entry may be cut off here.
  const [entry] = splitEntries(kind, name, bytes, ({ length }) => bytes.length - headOf(kind) - length)
  if (entry === undefined) throw new CheckpointError('BadImage', `${name} has no entry`)
  return decodeEntry(name, type, entry)
}

/** Bytes before the content of the first entry. */
const headOf = (kind: ImageKind): number => (magics[kind].length + 1) * 4

/** The entry of an image that has exactly one. @throws CheckpointError BadImage */
export async function readSingle<F extends Fields>(
  dir: string,
  name: string,
  kind: ImageKind,
  type: MessageType<F>,
): Promise<Decoded<F>> {
  const [entry, ...more] = await readImage(dir, name, kind, type)
  if (entry === undefined || more.length > 0)
    throw new CheckpointError('BadImage', `${name} has ${entry === undefined ? 'no' : 'more than one'} entry`)
  return entry
}

/**
 * Rewrites the entries for which `edit` returns true. The others keep their exact bytes, and a file without changes is
 * not written at all.
 * @returns how many entries were changed.
 * @throws CheckpointError BadImage
 */
export async function editImage<F extends Fields>(
  dir: string,
  name: string,
  kind: ImageKind,
  type: MessageType<F>,
  edit: (entry: Decoded<F>) => boolean,
): Promise<number> {
  const entries = splitEntries(kind, name, await readImageBytes(dir, name))
  let edited = 0
  const result = entries.map(bytes => {
    const entry = decodeEntry(name, type, bytes)
    if (!edit(entry)) return bytes
    edited += 1
    return encode(type, entry)
  })
  if (edited > 0) await replaceFile(join(dir, name), joinEntries(kind, result))
  return edited
}

/** Atomic: a crash leaves the old file or the new one. */
async function replaceFile(path: string, content: Uint8Array): Promise<void> {
  const draft = `${path}.new`
  try {
    const file = await open(draft, 'w', 0o600)
    try {
      await file.writeFile(content)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

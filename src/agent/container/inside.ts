/**
 * Opens paths inside a container, through its mount namespace. Its processes may replace any name at any time. So each
 * step is opened without following links, and callers use the very file that was opened and checked.
 */
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'

/** Linux flag that Node.js lacks: a descriptor that refers to a place, and opens nothing there. */
const O_PATH = 0o10000000

/** A kernel link to the file that was opened, not to the file that has its name now. */
export const pathOf = (handle: FileHandle): string => `/proc/self/fd/${handle.fd}`

/**
 * Opens a descriptor that only refers to the place: it opens nothing there, be it a FIFO or a device.
 *
 * @param root of the container as seen from here: `/proc/PID/root`.
 * @throws the error of the step that does not exist, or is a link.
 */
export async function placeInside(root: string, path: string): Promise<FileHandle> {
  // The root itself is a link of the kernel, and may be followed.
  let handle = await open(root, O_PATH | constants.O_DIRECTORY)
  for (const name of path.split('/').filter(part => part !== '')) {
    const parent = handle
    try {
      handle = await open(`${pathOf(parent)}/${name}`, O_PATH | constants.O_NOFOLLOW)
    } finally {
      await parent.close()
    }
  }
  return handle
}

/** Reads a regular file of exactly that length; undefined: there is none. @throws any other error. */
export async function readInside(root: string, path: string, length: number): Promise<Buffer | undefined> {
  let place: FileHandle
  try {
    place = await placeInside(root, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    const found = await place.stat()
    if (!found.isFile() || found.size !== length) return undefined
    const file = await open(pathOf(place), constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, 0)
      return bytesRead === length ? buffer : undefined
    } finally {
      await file.close()
    }
  } finally {
    await place.close()
  }
}

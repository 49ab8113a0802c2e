/**
 * Places inside a container, opened through its mount namespace. Whatever runs there may exchange any name at any time, so
 * each step is opened without following links, and what is used is what was opened and looked at.
 */
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'

/** Of Linux, and missing in Node: a descriptor that stands for a place, and opens nothing there. */
const O_PATH = 0o10000000

/** A link of the kernel's, to what was opened and not to what has its name now. */
export const pathOf = (handle: FileHandle): string => `/proc/self/fd/${handle.fd}`

/**
 * A descriptor that only stands for the place: nothing there is opened by it, be it a FIFO or a device.
 *
 * @param root of the container as seen from here: `/proc/PID/root`.
 * @throws the error of the step that is not there, or is a link.
 */
export async function placeInside(root: string, path: string): Promise<FileHandle> {
  // The root itself is a link of the kernel's, and may be followed.
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

/** The bytes of a regular file of exactly that length; undefined: there is none. @throws what else is wrong. */
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

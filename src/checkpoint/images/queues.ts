/** Data that was sent to a socket and not yet received. */
import { readdir } from 'node:fs/promises'
import { decodeEntry, eachEntry, forEachEntry, readImageBytes } from './image-file.ts'
import { packetEntry } from './messages.ts'

const queues = 'sk-queues.img'

/** Counts the descriptors in messages that no process has received. @throws CheckpointError BadImage */
export async function descriptorsInFlight(dir: string): Promise<number> {
  if (!(await readdir(dir)).includes(queues)) return 0
  const bytes = await readImageBytes(dir, queues)
  let found = 0
  await forEachEntry(eachEntry('packets', queues, bytes, lengthOf), entry => {
    const { scm } = decodeEntry(queues, packetEntry, entry)
    found += scm.reduce((sum, { rights }) => sum + rights.length, 0)
  })
  return found
}

/** The message itself follows its entry. */
const lengthOf = (entry: Uint8Array): number => decodeEntry(queues, packetEntry, entry).length

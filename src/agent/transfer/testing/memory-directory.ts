import { existsSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Makes a new directory on a tmpfs, as for real generations: fsync does not wait for a disk there. */
export const memoryDirectory = (name: string): Promise<string> =>
  mkdtemp(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), `${name}-`))

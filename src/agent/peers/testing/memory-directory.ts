import { existsSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A new directory on a tmpfs, as generations are kept on one: what is synced there waits for no disk. */
export const memoryDirectory = (name: string): Promise<string> =>
  mkdtemp(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), `${name}-`))

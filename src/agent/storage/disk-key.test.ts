import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { systemRandom as random } from '../../kube/random.ts'
import { loadDiskKey } from './disk-key.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp('/dev/shm/understudy-disk-key-')
})
afterEach(() => rm(directory, { recursive: true }))

it('is the same for every agent of a boot, and for root alone', async () => {
  const path = join(directory, 'key')
  // An upgrade: two agents start at once.
  const keys = await Promise.all(Array.from({ length: 8 }, () => loadDiskKey(path, random)))
  expect(new Set(keys.map(({ publicKey }) => publicKey)).size).toBe(1)
  expect((await loadDiskKey(path, random)).publicKey).toBe(keys[0]?.publicKey)
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(await readdir(directory)).toEqual(['key'])
  const other = await loadDiskKey(join(directory, 'other'), random)
  expect(other.publicKey).not.toBe(keys[0]?.publicKey)
})

it('is refused if the file is no key', async () => {
  const path = join(directory, 'key')
  await writeFile(path, 'short')
  await expect(loadDiskKey(path, random)).rejects.toThrow(/must have 32 bytes/)
})

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { writeTar } from './tar.ts'

test('a file that exists already stays as it is, and nothing but the promise fails', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'understudy-tar-'))
  try {
    const path = join(directory, 'bundle.tar.gz')
    await writeFile(path, 'mine')
    const files = ['a', 'b', 'c'].map(name => ({ path: name, text: name.repeat(100_000) }))
    await expect(writeTar(path, files, new Date(0))).rejects.toMatchObject({ code: 'EEXIST' })
    // Errors that no one handles would come after the promise.
    await new Promise(resolve => setTimeout(resolve, 50))
    expect(await readFile(path, 'utf8')).toBe('mine')
    expect(await readdir(directory)).toEqual(['bundle.tar.gz'])
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { inPlaceAtOnce } from './place.ts'

test('D20.release: of two releases at once into one directory, one is there whole, and the other one fails', async () => {
  const scratch = await mkdtemp(join(tmpdir(), 'understudy-place-'))
  try {
    const directory = join(scratch, 'out', 'v1')
    const both = Promise.withResolvers<void>()
    let begun = 0
    const make = (name: string) =>
      inPlaceAtOnce(directory, async work => {
        await writeFile(join(work, 'first'), name)
        begun += 1
        if (begun === 2) both.resolve()
        await both.promise
        await writeFile(join(work, 'second'), name)
      })
    const ends = await Promise.allSettled([make('a'), make('b')])
    expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const winner = ends[0]?.status === 'fulfilled' ? 'a' : 'b'
    for (const file of ['first', 'second']) expect(await readFile(join(directory, file), 'utf8')).toBe(winner)
    expect(await readdir(join(scratch, 'out'))).toEqual(['v1'])
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
})

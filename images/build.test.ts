import { access, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { textFile } from '../build/entry.ts'
import { cachedImage, type PackedImage } from './build.ts'

let cacheDir = ''
beforeAll(async () => {
  cacheDir = await mkdtemp(join(tmpdir(), 'understudy-build-'))
})
afterAll(() => rm(cacheDir, { recursive: true, force: true }))

const image = (name: string, content: string): Promise<PackedImage> =>
  cachedImage(
    name,
    { ref: `x/${name}:1`, layers: [{ files: [textFile('/a', content)] }], config: {} },
    { cacheDir },
  )

test('old archives of a name make room for new ones, other names stay', async () => {
  const other = await image('b', 'b')
  const built: PackedImage[] = []
  for (let round = 0; round < 12; round++) built.push(await image('a', `${round}`))
  const kept = (await readdir(join(cacheDir, 'images'))).filter(name => name.startsWith('a-'))
  expect(kept).toHaveLength(9)
  await access(built.at(-1)?.path ?? '')
  await access(other.path)
})

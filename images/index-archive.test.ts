import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Architecture, architectures } from '../build/architecture.ts'
import { textFile } from '../build/entry.ts'
import { type PackedImage, packImage } from './archive.ts'
import { packIndex } from './index-archive.ts'
import { extractFiles } from './unpack.ts'

let scratch = ''
const images = new Map<Architecture, PackedImage>()
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'understudy-index-'))
  for (const architecture of architectures) {
    const source = {
      ref: 'understudy.invalid/a:1',
      layers: [{ files: [textFile('/both', 'same')] }, { files: [textFile('/own', architecture)] }],
      config: {},
    }
    const path = join(scratch, `${architecture}.tar`)
    images.set(
      architecture,
      await packImage(path, source, { architecture, cacheDir: join(scratch, 'cache') }),
    )
  }
})
afterAll(() => rm(scratch, { recursive: true, force: true }))

const archiveOf = (architecture: Architecture): string => images.get(architecture)?.path ?? ''

test('one digest stands for the images of all architectures, which keep their own', async () => {
  const path = join(scratch, 'index.tar')
  const { digest, platforms } = await packIndex(path, 'understudy.invalid/a:1', architectures.map(archiveOf))
  expect(platforms).toEqual({ amd64: images.get('amd64')?.digest, arm64: images.get('arm64')?.digest })
  expect(platforms['amd64']).not.toBe(platforms['arm64'])
  await extractFiles(path, join(scratch, 'layout'))
  const index: unknown = JSON.parse(
    await readFile(join(scratch, 'layout/blobs', digest.replace(':', '/')), 'utf8'),
  )
  expect(index).toMatchObject({
    manifests: architectures.map(architecture => ({
      digest: platforms[architecture],
      platform: { architecture, os: 'linux' },
    })),
  })
})

test('the order of the archives changes nothing', async () => {
  const orders = [architectures.map(archiveOf), architectures.map(archiveOf).reverse()]
  const bytes = await Promise.all(
    orders.map(async (archives, position) => {
      const path = join(scratch, `order-${position}.tar`)
      await packIndex(path, 'understudy.invalid/a:1', archives)
      return readFile(path)
    }),
  )
  expect(bytes[0]).toEqual(bytes[1])
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isCheckpointError } from './errors.ts'
import { formatManifest, isGenerationPath, type Manifest, parseManifest } from './manifest.ts'
import { manifestOf, slotKey } from './testing/generation.ts'

const manifest: Manifest = {
  ...manifestOf(3),
  files: [
    { path: 'containers/app/criu/core-1.img', size: 3, sha256: '0'.repeat(64) },
    { path: 'shm.tar', size: 4, sha256: 'f'.repeat(64) },
  ],
  bytes: 7,
}

test('what was written is read, without fields of later versions', () => {
  expect(parseManifest(formatManifest(manifest))).toEqual(manifest)
  expect(parseManifest(JSON.stringify({ ...manifest, later: 1 }))).toEqual(manifest)
})

test.each([
  ['no JSON', '{', 'the manifest is not JSON'],
  ['a list', '[]', 'the manifest is not an object'],
  ['another version', { version: 2 }, 'version is not 1'],
  ['no slot', { slot: undefined }, 'slot is not an object'],
  ['a name with a way up', { slot: { ...slotKey, name: '../x' } }, 'is not a name of a slot'],
  ['a name that is a path', { slot: { ...slotKey, name: 'a/b-0' } }, 'is not a name of a slot'],
  ['two slots', { slot: { ...slotKey, set: 'carts', slot: 1, life: '0a1b2c3d' } }, 'is not a name of a slot'],
  ['a slot that is a path', { slot: { ...slotKey, namespace: '../..' } }, 'is not a name of a slot'],
  ['a generation that is none', { generation: 0 }, 'generation is not at least 1'],
  ['a time that is none', { takenAt: 'yesterday' }, 'takenAt is not a time'],
  ['a wrong sum', { bytes: 8 }, 'bytes is not the sum of all sizes'],
  ['a size that is none', { files: [{ path: 'a', size: -1, sha256: '0'.repeat(64) }] }, 'files[0].size'],
  ['a digest that is none', { files: [{ path: 'a', size: 7, sha256: 'x' }] }, 'files[0].sha256'],
  ['a way out', { files: [{ path: '../a', size: 7, sha256: '0'.repeat(64) }] }, 'files[0].path'],
  ['a container without stdio', { containers: [{ name: 'app' }] }, 'containers[0].stdio'],
])('%s is refused with a word on why', (_, change, message) => {
  const text = typeof change === 'string' ? change : JSON.stringify({ ...manifest, ...change })
  expect(() => parseManifest(text)).toThrow(
    expect.objectContaining({ code: 'BadManifest', message: expect.stringContaining(message) }),
  )
})

test('files that are twice there, or directories of others, are refused', () => {
  const file = (path: string) => ({ path, size: 0, sha256: '0'.repeat(64) })
  for (const paths of [
    ['a', 'a'],
    ['a', 'a/b'],
    ['a/b', 'a/b/c'],
  ])
    expect(() => parseManifest(JSON.stringify({ ...manifest, files: paths.map(file), bytes: 0 }))).toThrow(
      expect.objectContaining({ code: 'BadManifest' }),
    )
})

test('paths never leave the generation, nor meet the files of the store', () => {
  for (const path of [
    '',
    '/',
    '/a',
    'a/',
    'a//b',
    '.',
    '..',
    'a/../b',
    './a',
    'a\0b',
    'a\\b',
    'manifest.json',
    'arrival.json',
  ])
    expect(isGenerationPath(path), path).toBe(false)
  for (const path of ['a', 'containers/app/criu/pages-1.img', 'volumes/a b.tar', '..a', 'a/manifest.json'])
    expect(isGenerationPath(path), path).toBe(true)
})

test('whatever is in a manifest, it is read or refused by name', () => {
  const paths = [
    'version',
    'slot',
    'epoch',
    'source',
    'containers',
    'files',
    'bytes',
    'volumes',
    'skewSeconds',
  ] as const
  fc.assert(
    fc.property(fc.constantFrom(...paths), fc.jsonValue(), (field, value) => {
      try {
        parseManifest(JSON.stringify({ ...manifest, [field]: value }))
      } catch (error) {
        expect(isCheckpointError(error, 'BadManifest'), String(error)).toBe(true)
      }
    }),
  )
})

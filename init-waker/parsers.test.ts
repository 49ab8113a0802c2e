import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { buildSanitized } from './testing/build.ts'

const corpus = join(import.meta.dirname, 'fuzz/corpus')

describe('pure parts, under the address and undefined behaviour sanitizers', () => {
  let harness: string
  beforeAll(async () => {
    harness = await buildSanitized('harness')
  })

  const sha256 = (input: string | Uint8Array) =>
    spawnSync(harness, ['sha256'], { input, encoding: 'utf8' }).stdout.trim()

  // FIPS 180-4's own examples, and the empty message and the million from the NIST test set.
  test.each([
    ['', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
    ['abc', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'],
    [
      'abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq',
      '248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1',
    ],
    [
      'abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu',
      'cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1',
    ],
    ['a'.repeat(1_000_000), 'cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0'],
  ])('SHA-256 of %.60s', (message, digest) => {
    expect(sha256(message)).toBe(digest)
  })

  test('SHA-256 of every length around the block size', () => {
    for (let length = 50; length < 132; length++) {
      const message = Uint8Array.from({ length }, (_, index) => index * 7)
      expect(sha256(message), String(length)).toBe(createHash('sha256').update(message).digest('hex'))
    }
  })

  test('a digest that differs in one bit is another digest', () => {
    expect(spawnSync(harness, ['match'], { encoding: 'utf8' }).stdout).toBe('1 0\n')
  })

  test('an ended child is known before and after it is reaped, as long as 64 others have not ended', () => {
    const { stdout } = spawnSync(harness, ['children'], { encoding: 'utf8' })
    expect(stdout.trim().split('\n')).toEqual([
      ...['alive -1', 'dead 137', 'reaped 1'],
      ...['unknown -1', 'dead 137', 'unknown -1'],
    ])
  })

  test('200 000 mutated requests and orders keep every rule', () => {
    const { status, stdout, stderr } = spawnSync(harness, ['fuzz', corpus, '200000', '1'], {
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([0, ''])
    const seen = JSON.parse(stdout) as { wake: number[]; order: number[] }
    expect(seen.wake.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(200_000)
    // Incomplete, malformed and complete: a run that misses one proves nothing.
    for (const count of [...seen.wake, ...seen.order]) expect(count).toBeGreaterThan(500)
  })

  test('the run is the same every time', () => {
    const run = (seed: string) =>
      spawnSync(harness, ['fuzz', corpus, '20000', seed], { encoding: 'utf8' }).stdout
    expect(run('7')).toBe(run('7'))
    expect(run('7')).not.toBe(run('8'))
  })
})

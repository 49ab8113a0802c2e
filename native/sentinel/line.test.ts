import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { buildSanitized } from './testing/build.ts'

const corpus = join(import.meta.dirname, 'fuzz/corpus')

describe('the parser of requests, under the address and undefined behaviour sanitizers', () => {
  let harness: string
  beforeAll(async () => {
    harness = await buildSanitized('harness')
  })

  const run = (inputs: number, seed: number) =>
    spawnSync(harness, ['fuzz', corpus, String(inputs), String(seed)], { encoding: 'utf8' })

  test('100 000 mutated lines keep every rule', () => {
    const { status, stdout, stderr } = run(100_000, 1)
    expect([status, stderr]).toEqual([0, ''])
    const seen = Object.values(JSON.parse(stdout) as Record<string, number>)
    expect(seen.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(100_000)
    // A run that misses one of them proves nothing.
    for (const count of seen) expect(count).toBeGreaterThan(500)
  })

  test('the run is the same every time', () => {
    expect(run(5000, 7).stdout).toBe(run(5000, 7).stdout)
    expect(run(5000, 7).stdout).not.toBe(run(5000, 8).stdout)
  })
})

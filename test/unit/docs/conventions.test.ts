/** The table of conventions is complete, and its tests exist. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = new URL('../../..', import.meta.url).pathname
const rows = readFileSync(join(root, 'docs/conventions.md'), 'utf8')
  .split('\n')
  .filter(line => /^\| \d/.test(line))
  .map(line => line.slice(2, -2).split(' | '))

test('each convention has its line, a state and a reason', () => {
  expect(rows.map(([number]) => number)).toEqual(Array.from({ length: 37 }, (_, at) => String(at + 1)))
  for (const row of rows) {
    expect(row).toHaveLength(5)
    expect(['yes', 'partly', 'no'], row[0]).toContain(row[2])
    expect(row[3], row[0]).not.toBe('')
  }
})

test('each names a test that exists', () => {
  const missing = rows.filter(
    ([, , , , proof = '']) =>
      !/^`[^`]+\.test\.ts`$/.test(proof) || !existsSync(join(root, proof.slice(1, -1))),
  )
  expect(missing.map(([number, , , , proof]) => `${number}: ${proof}`)).toEqual([])
})

import { spawnSync } from 'node:child_process'
import { beforeAll, expect, test } from 'vitest'
import { buildSanitized } from './testing/build.ts'

let harness: string
beforeAll(async () => {
  harness = await buildSanitized('harness')
})

/** A kernel says so that lets this process have no priority. */
const other = '0 0 0 0'

test('a thread comes first for a few milliseconds, however much work there is, and pays for what was more', ({
  skip,
}) => {
  const { status, stdout, stderr } = spawnSync(harness, ['haste'], { encoding: 'utf8' })
  expect([status, stderr]).toEqual([0, ''])
  const lines = stdout.trim().split('\n')
  if (lines.every(line => line === other)) skip('this kernel gives no priority here')
  // Policies while it waits, at the beginning, at the end, and after that: 1 is real time.
  expect(lines).toEqual(['1 1 1 0', '1 1 0 0', '1 1 1 0', other, '1 1 1 0'])
})

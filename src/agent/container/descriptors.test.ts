import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { descriptors } from './descriptors.ts'

it('the agent opens files where its programs look for them', async () => {
  const header = await readFile(new URL('../../../native/common/descriptors.h', import.meta.url), 'utf8')
  const expected = [...header.matchAll(/FD_([A-Z]+) = (\d+),/g)].map(([, name = '', fd]) => [
    name.toLowerCase(),
    Number(fd),
  ])
  // The sentinel opens `done` itself.
  expect({ ...descriptors, done: 199 }).toEqual(Object.fromEntries(expected))
})

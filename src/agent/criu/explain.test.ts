import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { complaintsOf } from './explain.ts'

let work = ''
beforeEach(async () => {
  work = await mkdtemp(join(tmpdir(), 'explain-'))
})
afterEach(() => rm(work, { recursive: true }))

const complaints = () => complaintsOf(work, ['dump.log', 'output'])

/** Sparse: the file occupies no room. */
async function fill(name: string, bytes: number, end: string) {
  await using file = await open(join(work, name), 'w')
  await file.truncate(bytes)
  await file.write(end, bytes)
}

test('what CRIU said last is found at the end of a log of 8 GiB, which nobody could read whole', async () => {
  await fill('dump.log', 2 ** 33, '\n(00.1) Error (criu/x.c:1): it did not work\n')
  await fill('output', 2 ** 33, '\nnot that\n')
  expect(await complaints()).toBe('Error (criu/x.c:1): it did not work')
})

test('without a complaint it is the end of the output, however long that is', async () => {
  await writeFile(join(work, 'dump.log'), 'all is well\n')
  await fill('output', 2 ** 33, '\none\ntwo\ngate: not all processes stopped\n')
  expect(await complaints()).toBe('one; two; gate: not all processes stopped')
})

test('of what is not there it says nothing', async () => {
  expect(await complaints()).toBe('')
})

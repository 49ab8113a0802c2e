import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createCloneRecords } from './clone-records.ts'
import type { Clone } from './memory-driver.ts'

let root: string
beforeEach(async () => {
  root = await mkdtemp('/dev/shm/understudy-records-')
})
afterEach(() => rm(root, { recursive: true }))

const clone: Clone = {
  podUid: 'p',
  slot: { namespace: 'shop', name: 'carts-0', incarnation: '0a1b2c3d' },
  generation: 3,
  epoch: 2,
  containers: [],
  stage: 'Frozen',
}

test('a clone is known to the next agent, also to one of the version before', async () => {
  const records = createCloneRecords(root)
  await records.save(clone)
  expect(await records.load('p')).toEqual(clone)
  expect(await readFile(join(root, 'p.json'), 'utf8')).toContain(
    '"slot":{"namespace":"shop","set":"carts","slot":0,"life":"0a1b2c3d",',
  )
})

test('a clone that an agent of the version before has made is known', async () => {
  const text = `{"podUid":"p","slot":{"namespace":"shop","set":"carts","slot":0,"life":"0a1b2c3d"},"generation":3,"epoch":2,"containers":[],"stage":"Frozen"}`
  await writeFile(join(root, 'p.json'), text)
  expect(await createCloneRecords(root).load('p')).toEqual(clone)
})

test.each([`{"podUid":"p"}`, `{"podUid":"p","slot":null}`, `{`, `{"slot":{"namespace":"..","name":"x"}}`])(
  'a record that names no slot is none: %s',
  async text => {
    await writeFile(join(root, 'p.json'), text)
    expect(await createCloneRecords(root).load('p')).toBeUndefined()
  },
)

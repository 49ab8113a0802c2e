import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { withLock } from './lock.ts'

let dir: string
let path: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'understudy-lock-'))
  path = join(dir, 'x.lock')
})
afterEach(() => rm(dir, { recursive: true }))

test('one at a time, and nothing is left', async () => {
  let inside = 0
  let most = 0
  const order: number[] = []
  const work = (id: number) =>
    withLock(path, async () => {
      inside += 1
      most = Math.max(most, inside)
      await new Promise(resolve => setImmediate(resolve))
      order.push(id)
      inside -= 1
    })
  await Promise.all([work(1), work(2), work(3)])
  expect(most).toBe(1)
  expect(order.toSorted()).toEqual([1, 2, 3])
  expect(await readdir(dir)).toEqual([])
})

test('the lock of a process that has ended is taken over', async () => {
  await writeFile(path, JSON.stringify({ pid: process.pid, startTime: '1', bootId: 'another' }))
  expect(await withLock(path, async () => 'done')).toBe('done')
  expect(await readdir(dir)).toEqual([])
})

test('waiting ends with the signal, and the holder keeps the lock', async () => {
  const { promise: over, resolve: release } = Promise.withResolvers<void>()
  const { promise: holds, resolve: announce } = Promise.withResolvers<void>()
  const held = withLock(path, () => {
    announce()
    return over
  })
  await holds
  const stop = new AbortController()
  const waiting = withLock(path, async () => 'never', { signal: stop.signal, onWait: () => stop.abort() })
  await expect(waiting).rejects.toThrow(/abort/i)
  expect(await readdir(dir)).toEqual(['x.lock'])
  release()
  await held
})

test('an error inside releases it', async () => {
  await expect(withLock(path, () => Promise.reject(new Error('inside')))).rejects.toThrow('inside')
  expect(await withLock(path, async () => 'free')).toBe('free')
})

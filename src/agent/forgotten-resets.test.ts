import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createForgottenResets } from './forgotten-resets.ts'

async function setUp(value?: string) {
  const directory = await mkdtemp(join(tmpdir(), 'resets-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const setting = join(directory, 'setting')
  const runDirectory = await mkdtemp(join(directory, 'run-'))
  if (value !== undefined) await writeFile(setting, value)
  return {
    setting,
    /** Those of an agent that has just started. */
    resets: () => createForgottenResets(runDirectory, setting),
    value: async () => (await readFile(setting, 'utf8')).trim(),
    left: () => readdir(runDirectory),
  }
}

test('a node forgets resets at once, and has its own time again when the agents leave', async () => {
  const { resets, value, left } = await setUp('10\n')
  await resets().begin()
  expect(await value()).toBe('0')
  // The next agent finds the value of the first one.
  await resets().begin()
  await resets().end()
  expect([await value(), await left()]).toEqual(['10', []])
  await resets().end()
  expect(await value()).toBe('10')
})

test('a node that forgets them by itself keeps its setting', async () => {
  const { resets, value, left } = await setUp('0\n')
  await resets().begin()
  await resets().end()
  expect([await value(), await left()]).toEqual(['0', []])
})

test('a value that another program has written since is the one that stays', async () => {
  const { setting, resets, value } = await setUp('10\n')
  await resets().begin()
  await writeFile(setting, '5\n')
  await resets().end()
  expect(await value()).toBe('5')
  await resets().begin()
  await writeFile(setting, '7\n')
  await resets().begin()
  expect(await value()).toBe('0')
  await resets().end()
  expect(await value()).toBe('7')
})

test('a node without connection tracking has nothing to forget', async () => {
  const { resets, left } = await setUp()
  await resets().begin()
  await resets().end()
  expect(await left()).toEqual([])
})

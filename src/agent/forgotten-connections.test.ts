import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createForgottenConnections, type SettingName } from './forgotten-connections.ts'

const both = new Set<SettingName>(['resets', 'unanswered'])
const none = new Set<SettingName>()

/** A node with these times, in the order of the names; undefined: it has no such setting. */
async function setUp(...times: readonly (string | undefined)[]) {
  const directory = await mkdtemp(join(tmpdir(), 'connections-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const paths = ['close', 'syn-sent'].map(name => join(directory, name))
  const runDirectory = await mkdtemp(join(directory, 'run-'))
  const write = async (now: readonly (string | undefined)[]) => {
    for (const [at, path] of paths.entries()) {
      const time = now[at]
      if (time !== undefined) await writeFile(path, `${time}\n`)
    }
  }
  await write(times)
  const [close = '', synSent = ''] = paths
  return {
    ...{ close, write, runDirectory },
    /** Those of an agent that has just started. */
    connections: (unanswered = '3') =>
      createForgottenConnections(runDirectory, [
        { name: 'resets', path: close, value: '0', record: 'conntrack-close' },
        { name: 'unanswered', path: synSent, value: unanswered, record: 'conntrack-syn-sent' },
      ]),
    values: () => Promise.all(paths.map(async path => (await readFile(path, 'utf8')).trim())),
    left: () => readdir(runDirectory),
  }
}

test('a node forgets both at once, and has its own times again when the agents leave', async () => {
  const { connections, values, left } = await setUp('10', '120')
  await connections().keep(both)
  expect(await values()).toEqual(['0', '3'])
  // The next agent finds the values of the first one.
  await connections().keep(both)
  await connections().keep(none)
  expect([await values(), await left()]).toEqual([['10', '120'], []])
  await connections().keep(none)
  expect(await values()).toEqual(['10', '120'])
})

test('each of the two can be left as it is, also by the next agent', async () => {
  const { connections, values, left } = await setUp('10', '120')
  await connections().keep(new Set<SettingName>(['unanswered']))
  expect(await values()).toEqual(['10', '3'])
  await connections().keep(new Set<SettingName>(['resets']))
  expect([await values(), await left()]).toEqual([['0', '120'], ['conntrack-close']])
})

test('a node that forgets them by itself keeps its settings', async () => {
  const { connections, values, left } = await setUp('0', '3')
  await connections().keep(both)
  await connections().keep(none)
  expect([await values(), await left()]).toEqual([['0', '3'], []])
})

test('a value that another program has written since is the one that stays', async () => {
  const { write, connections, values } = await setUp('10', '120')
  await connections().keep(both)
  await write(['5', '60'])
  await connections().keep(none)
  expect(await values()).toEqual(['5', '60'])
  await connections().keep(both)
  await write(['7', '30'])
  await connections().keep(both)
  expect(await values()).toEqual(['0', '3'])
  await connections().keep(none)
  expect(await values()).toEqual(['7', '30'])
})

test('the next version may have another value, and the first one wrote only that of the node', async () => {
  const { connections, values, runDirectory } = await setUp('0', '120')
  await writeFile(join(runDirectory, 'conntrack-close'), '10')
  await connections().keep(both)
  await connections('5').keep(both)
  expect(await values()).toEqual(['0', '5'])
  await connections('5').keep(none)
  expect(await values()).toEqual(['10', '120'])
})

test('a setting that cannot be written does not keep the other one from being set', async () => {
  const { close, connections, values } = await setUp(undefined, '120')
  await mkdir(close)
  await expect(connections().keep(both)).rejects.toThrow(AggregateError)
  await rm(close, { recursive: true })
  await writeFile(close, '10')
  expect(await values()).toEqual(['10', '3'])
})

test('a node without connection tracking has nothing to forget', async () => {
  const { connections, left } = await setUp()
  await connections().keep(both)
  await connections().keep(none)
  expect(await left()).toEqual([])
})

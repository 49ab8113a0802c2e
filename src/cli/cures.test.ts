import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { agentErrors } from '../api/agent-errors.ts'
import { reasons } from '../api/reasons.ts'
import { cureOf, isAsItShouldBe } from './cures.ts'

/** Reasons of conditions that are as they should be. */
const good: readonly string[] = [
  reasons.allInPlace,
  reasons.allServe,
  reasons.settled,
  reasons.running,
  reasons.asExpected,
  reasons.allProtected,
  reasons.cloned,
]

test.each(Object.values(reasons).filter(reason => !good.includes(reason)))(
  'there is a cure for %s',
  reason => {
    expect(cureOf({ reason, message: '' })).toMatch(/\w/)
  },
)

test('what an agent cannot do has the cure of its catalogue, and only once', () => {
  const { message, cure } = agentErrors.DumpFailed
  expect(cureOf({ reason: 'DumpFailed', message })).toBe(cure)
  expect(cureOf({ reason: 'DumpFailed', message: `slot 0 (a): ${message}; ${cure}` })).toBeUndefined()
})

test('a refusal is cured by what it says', () => {
  expect(cureOf({ reason: 'MemoryOnTerminal', message: 'remove tty' })).toBe(
    'change the set as the message says',
  )
})

test('conditions that mean trouble by being True, and those that mean it by being False', () => {
  const condition = (type: string, status: 'True' | 'False') => isAsItShouldBe({ type, status })
  expect(
    ['Ready', 'CheckpointReady'].map(type => [condition(type, 'True'), condition(type, 'False')]),
  ).toEqual([
    [true, false],
    [true, false],
  ])
  expect(
    ['Progressing', 'Degraded', 'Paused'].map(type => [condition(type, 'True'), condition(type, 'False')]),
  ).toEqual([
    [false, true],
    [false, true],
    [false, true],
  ])
  expect(condition('SomethingNew', 'False')).toBe(true)
})

test('§7.7: of a tmpfs that is full every page says the same: the limit, what is kept of a slot, the share of a namespace', () => {
  const page = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8')
  const [row = ''] = page('operate.md')
    .split('\n')
    .filter(line => line.startsWith('| `StoreFull`'))
  const [part = ''] = page('install.md')
    .split('\n\n')
    .filter(text => text.includes('say `StoreFull`'))
  for (const text of [row, part, cureOf({ reason: 'StoreFull', message: '' }) ?? ''])
    for (const word of [/limit/, /keep/, /--namespace-share/]) expect(text).toMatch(word)
})

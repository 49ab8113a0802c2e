import { spawnSync } from 'node:child_process'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { servesUntil } from '../../src/slot/decide/fence/primary.ts'
import { buildSanitized } from './testing/build.ts'

describe('the rule and the datagrams, under the address and undefined behaviour sanitizers', () => {
  let harness: string
  beforeAll(async () => {
    harness = await buildSanitized('harness')
  })

  test('D8.rule: the sentinel has the rule that is searched', () => {
    const times = fc.array(fc.option(fc.integer({ min: 0, max: 10_000 })), { minLength: 1, maxLength: 6 })
    const world = times.chain(sent =>
      fc.record({
        sent: fc.constant(sent),
        timeout: fc.integer({ min: 1, max: 4_000 }),
        sets: fc.array(fc.uniqueArray(fc.nat(sent.length - 1), { minLength: 1, maxLength: sent.length }), {
          minLength: 1,
          maxLength: 2,
        }),
      }),
    )
    const worlds = fc.sample(world, { numRuns: 2_000, seed: 1 })
    const lines = worlds.map(({ sent, timeout: ms, sets }) =>
      [
        ...[3 * ms, sent.length, ...sent.map(at => at ?? '-'), sets.length],
        ...sets.flatMap(set => [set.length, ...set]),
      ].join(' '),
    )
    const { stdout, stderr, status } = spawnSync(harness, ['serves'], {
      input: lines.join('\n'),
      encoding: 'utf8',
    })
    expect([status, stderr]).toEqual([0, ''])
    const name = (at: number) => `n${at}`
    const expected = worlds.map(({ sent, timeout: ms, sets: [voters = [], next] }) => {
      const sentAt = new Map(sent.flatMap((at, index) => (at === null ? [] : [[name(index), at] as const])))
      const electorate = { version: 1, voters: voters.map(name), next: next?.map(name) }
      const until = servesUntil(electorate, sentAt, 3 * ms)
      return Number.isFinite(until) ? String(until) : '-'
    })
    expect(stdout.trim().split('\n')).toEqual(expected)
  })

  test('D8.frames: datagrams with a right code and any other bytes are read or refused', () => {
    const { stdout, stderr, status } = spawnSync(harness, ['frames', '50000', '7'], { encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
    expect(Number(stdout)).toBeGreaterThan(10_000)
  })
})

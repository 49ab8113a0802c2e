import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { seededRandom } from '../src/kube/random.ts'
import { buildProgram } from './build.ts'

const page = 4096

describe('pages', () => {
  let program = ''
  let directory = ''
  beforeAll(async () => {
    program = await buildProgram('pages')
  })
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'pages-'))
  })
  afterEach(() => rmSync(directory, { recursive: true }))

  type Ranges = readonly (readonly bigint[])[]

  const run = (
    verb: string,
    [one, other]: readonly [Uint8Array, Uint8Array],
    ranges: Ranges,
    mode: string,
  ) => {
    const open = (name: string, content: Uint8Array, flags: string) => {
      writeFileSync(join(directory, name), content)
      return openSync(join(directory, name), flags)
    }
    const files = [open('one', one, 'r'), open('other', other, mode)] as const
    try {
      const { status, stdout, stderr } = spawnSync(program, [verb, '3', '4'], {
        stdio: ['pipe', 'pipe', 'pipe', ...files],
        input: Buffer.from(BigUint64Array.from(ranges.flat()).buffer),
      })
      return { status, same: [...stdout], error: stderr.toString() }
    } finally {
      for (const file of files) closeSync(file)
    }
  }
  const compare = (one: Uint8Array, other: Uint8Array, ranges: Ranges) =>
    run('compare', [one, other], ranges, 'r')
  /** Returns the other file after the copy. */
  const copy = (one: Uint8Array, other: Uint8Array, ranges: Ranges) => {
    const { status, same, error } = run('copy', [one, other], ranges, 'r+')
    const pages = ranges.reduce((sum, [, , length = 0n]) => sum + length / BigInt(page), 0n)
    expect([status, Buffer.from(same).readBigUInt64LE(), error]).toEqual([0, pages, ''])
    return readFileSync(join(directory, 'other'))
  }
  const random = seededRandom(3)
  const pages = (count: number) => Buffer.from(random.bytes(count * page))

  test('says of each page of the ranges whether it is the same', () => {
    const one = pages(6)
    const other = Buffer.concat([pages(1), one])
    for (const [at, byte] of [
      [1, 0],
      [3, page - 1],
      [5, 2049],
    ] as const)
      other.writeUInt8(other.readUInt8((at + 1) * page + byte) ^ 1, (at + 1) * page + byte)
    const told = (...numbers: readonly number[]) => numbers.map(number => BigInt(number * page))
    expect(compare(one, other, [told(0, 1, 6)]).same).toEqual([1, 0, 1, 0, 1, 0])
    expect(compare(one, other, [told(4, 5, 1), told(0, 0, 2), told(2, 3, 1)])).toEqual({
      ...{ status: 0, same: [1, 0, 0, 1], error: '' },
    })
  })

  test('says so of more pages and ranges than one of its threads takes', () => {
    const count = 5_000
    const one = pages(count)
    const other = Buffer.from(one)
    const changed = Array.from({ length: 40 }, (_, index) => (index * 2_741) % count)
    for (const at of changed) other.writeUInt8(other.readUInt8(at * page) ^ 1, at * page)
    const expected = Array.from({ length: count }, (_, at) => (changed.includes(at) ? 0 : 1))
    const whole = compare(one, other, [[0n, 0n, BigInt(count * page)]])
    const single = expected.map((_, at) => [BigInt(at * page), BigInt(at * page), BigInt(page)])
    expect([whole.same, compare(one, other, single).same]).toEqual([expected, expected])
  })

  test.each([
    ['ends behind the first file', [0n, 0n, 3n]],
    ['ends behind the second file', [0n, 1n, 2n]],
    ['begins behind a file', [9n, 0n, 1n]],
    ['is longer than a number', [1n, 0n, 2n ** 52n - 1n]],
  ])('refuses a range that %s', (_, range) => {
    const { status, same, error } = compare(pages(2), pages(2), [range.map(number => number * BigInt(page))])
    expect([status, same, error]).toEqual([1, [], 'pages: a range: Invalid argument\n'])
  })

  test('refuses a list that ends within a range', () => {
    expect(run('copy', [pages(2), pages(2)], [[0n, 0n, BigInt(page)], [0n]], 'r+').status).toBe(1)
  })

  test('refuses a range that is not of whole pages', () => {
    expect(compare(pages(2), pages(2), [[0n, 1n, BigInt(page)]]).status).toBe(1)
    expect(compare(pages(2), pages(2), [[0n, 0n, 1n]]).status).toBe(1)
  })

  test('has nothing to say of no ranges and of empty files', () => {
    expect(compare(Buffer.alloc(0), pages(1), [])).toEqual({ status: 0, same: [], error: '' })
    expect(compare(Buffer.alloc(0), pages(1), [[0n, 0n, BigInt(page)]]).status).toBe(1)
  })

  test('copies ranges, and leaves the rest of the other file as it is', () => {
    const [one, other] = [pages(5_000), pages(6_000)]
    const told = (...numbers: readonly number[]) => numbers.map(number => BigInt(number * page))
    // Longer than what one thread takes at a time, and across the end of such a block.
    const ranges = [
      [0, 10, 3_000],
      [4_999, 5_999, 1],
      [3_100, 3_050, 1_500],
    ]
    const expected = Buffer.from(other)
    for (const [first = 0, second = 0, count = 0] of ranges)
      one.copy(expected, second * page, first * page, (first + count) * page)
    const wanted = ranges.map(([first = 0, second = 0, count = 0]) => told(first, second, count))
    expect(copy(one, other, wanted).equals(expected)).toBe(true)
    expect(copy(one, other, []).equals(other)).toBe(true)
  })

  test('copies nothing behind the end of a file, and says so where it cannot write', () => {
    const range = [0n, BigInt(page), BigInt(page)]
    expect(run('copy', [pages(1), pages(1)], [range], 'r+')).toMatchObject({ status: 1 })
    expect(run('copy', [pages(2), pages(2)], [[0n, 0n, BigInt(page)]], 'r')).toEqual({
      ...{ status: 1, same: [], error: 'pages: a copy: Bad file descriptor\n' },
    })
  })

  test.each([[[]], [['copy', '3']], [['compare', '3', 'x']], [['3', '4', '5']], [['copy', '3', '4', '5']]])(
    'explains itself, given %j',
    args => {
      const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' })
      const usage = `usage: pages compare FIRST SECOND < RANGES > SAME
       pages copy FIRST SECOND < RANGES > COUNT
`
      expect([status, stderr]).toEqual([2, usage])
    },
  )
})

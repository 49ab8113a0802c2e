import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { isCheckpointError } from '../errors.ts'
import { assertAddressSpaces } from './address-space.ts'
import { joinEntries } from './image-file.ts'
import { encode, make } from './message.ts'
import { mmEntry, pagemapEntry, pagemapHead, pstreeEntry } from './messages.ts'

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'spaces-'))
})
afterEach(() => rm(dir, { recursive: true }))

interface Space {
  readonly areas: readonly (readonly [start: bigint, end: bigint, offset?: bigint])[]
  readonly pages: readonly (readonly [address: bigint, count: bigint])[]
  readonly auxiliary?: number
  /** Size of the pages image, bytes. Default: that of all `pages`. */
  readonly stored?: number
}

const vma = mmEntry.fields.vmas.type

async function put({ areas, pages, auxiliary = 40, stored }: Space): Promise<void> {
  const vmas = areas.map(([start, end, pgoff = 0n]) => make(vma, { start, end, pgoff }))
  const mm = make(mmEntry, { vmas, mmSavedAuxv: Array.from({ length: auxiliary }, (_, at) => BigInt(at)) })
  const entry = ([vaddr, nrPages]: readonly [bigint, bigint]) =>
    encode(pagemapEntry, make(pagemapEntry, { vaddr, nrPages, flags: 4 }))
  const total = pages.reduce((sum, [, count]) => sum + Number(count), 0)
  await Promise.all([
    writeFile(
      join(dir, 'pstree.img'),
      joinEntries('pstree', [encode(pstreeEntry, make(pstreeEntry, { pid: 1 }))]),
    ),
    writeFile(join(dir, 'mm-1.img'), joinEntries('mm', [encode(mmEntry, mm)])),
    writeFile(
      join(dir, 'pagemap-1.img'),
      joinEntries('pagemap', [encode(pagemapHead, make(pagemapHead, { pagesId: 1 })), ...pages.map(entry)]),
    ),
    writeFile(join(dir, 'pages-1.img'), '').then(() =>
      truncate(join(dir, 'pages-1.img'), Math.min(stored ?? total * 4096, 2 ** 40)),
    ),
  ])
}

const outcome = async (space: Space): Promise<string> => {
  await put(space)
  try {
    await assertAddressSpaces(dir, 4096)
    return 'fine'
  } catch (error) {
    if (!isCheckpointError(error, 'BadImage')) throw error
    return error.message
  }
}

const at = (page: number) => BigInt(page) * 4096n

describe('D10.forged: address spaces that no process can have', () => {
  const one: Space = { areas: [[at(1), at(9)]], pages: [[at(2), 3n]] }

  test.each<[string, Space]>([
    ['one area with pages', one],
    ['none', { areas: [], pages: [] }],
    [
      'pages over two areas that touch',
      {
        areas: [
          [at(1), at(2)],
          [at(2), at(4)],
        ],
        pages: [[at(1), 3n]],
      },
    ],
    ['the page that old programs call', { areas: [[0xffffffffff600000n, 0xffffffffff601000n]], pages: [] }],
  ])('fine: %s', async (_, space) => {
    expect(await outcome(space)).toBe('fine')
  })

  test.each<[string, Space, RegExp]>([
    [
      'over one another',
      {
        ...one,
        areas: [
          [at(1), at(9)],
          [at(8), at(10)],
        ],
      },
      /overlapping/,
    ],
    [
      'in no order',
      {
        ...one,
        areas: [
          [at(20), at(21)],
          [at(1), at(9)],
        ],
      },
      /unsorted/,
    ],
    ['within a page', { ...one, areas: [[at(1), at(9) + 1n]] }, /not aligned/],
    ['at a part of a page of its file', { ...one, areas: [[at(1), at(9), 8n]] }, /not aligned/],
    ['that ends before it begins', { ...one, areas: [[at(9), at(1)]] }, /ends before/],
    [
      'of the kernel',
      {
        ...one,
        areas: [
          [at(1), at(9)],
          [1n << 63n, (1n << 63n) + 4096n],
        ],
      },
      /beyond user space/,
    ],
    [
      'that wraps around',
      {
        ...one,
        areas: [
          [at(1), at(9)],
          [1n << 50n, (1n << 64n) - 4096n],
        ],
      },
      /beyond user space/,
    ],
    ['an auxiliary vector too long', { ...one, auxiliary: 129 }, /129 words/],
    ['pages behind an area', { ...one, pages: [[at(8), 2n]] }, /outside of all areas/],
    ['pages before it', { ...one, pages: [[at(0), 2n]] }, /outside of all areas/],
    [
      'pages twice',
      {
        ...one,
        pages: [
          [at(2), 2n],
          [at(3), 1n],
        ],
      },
      /overlapping/,
    ],
    [
      'pages in no order',
      {
        ...one,
        pages: [
          [at(5), 1n],
          [at(2), 1n],
        ],
      },
      /unsorted/,
    ],
    ['a part of a page', { ...one, pages: [[at(2) + 8n, 1n]] }, /impossible address/],
    ['more pages than there can be', { ...one, pages: [[at(2), 1n << 60n]] }, /impossible address/],
    ['fewer pages than they say', { ...one, stored: 4096 }, /lacks pages/],
  ])('refused: %s', async (_, space, reason) => {
    expect(await outcome(space)).toMatch(reason)
  })

  test('whatever they say: fine only what is sorted, of pages, within bounds and covered', async () => {
    const address = fc.oneof(
      fc.nat(64).map(at),
      fc.bigInt(0n, (1n << 64n) - 1n),
      fc.constantFrom(0n, (1n << 56n) - 4096n, 1n << 56n, 0xffffffffff600000n),
    )
    const space = fc.record({
      areas: fc.array(fc.tuple(address, address, fc.constantFrom(0n, 4096n, 1n)), { maxLength: 4 }),
      pages: fc.array(fc.tuple(address, fc.oneof(fc.bigInt(1n, 8n), fc.bigInt(0n, (1n << 64n) - 1n))), {
        maxLength: 3,
      }),
    })
    await fc.assert(
      fc.asyncProperty(space, async it => {
        if ((await outcome(it)) !== 'fine') return
        let last = 0n
        for (const [start, end, offset = 0n] of it.areas) {
          expect([start % 4096n, end % 4096n, offset % 4096n]).toEqual([0n, 0n, 0n])
          expect(start >= last && end > start).toBe(true)
          expect(end <= 1n << 56n || start === 0xffffffffff600000n).toBe(true)
          last = end
        }
        for (const [start, count] of it.pages)
          for (let page = 0n; page < count; page++)
            expect(
              it.areas.some(([from, to]) => start + page * 4096n >= from && start + page * 4096n < to),
            ).toBe(true)
      }),
      { numRuns: 300 },
    )
  })

  test('bytes that are anything end in a refusal', async () => {
    await put(one)
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('mm-1.img', 'pagemap-1.img', 'pstree.img'),
        fc.uint8Array({ maxLength: 64 }),
        fc.boolean(),
        async (name, bytes, isFramed) => {
          await put(one)
          const kind = name === 'mm-1.img' ? 'mm' : name === 'pstree.img' ? 'pstree' : 'pagemap'
          await writeFile(join(dir, name), isFramed ? joinEntries(kind, [bytes]) : bytes)
          await assertAddressSpaces(dir, 4096).catch((error: unknown) => {
            if (!isCheckpointError(error, 'BadImage')) throw error
          })
        },
      ),
      { numRuns: 300 },
    )
  })
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonLines } from './json-lines.ts'
import { collect } from './testing/collect.ts'

async function* chunksOf(bytes: Buffer, cuts: readonly number[]): AsyncGenerator<Buffer> {
  let start = 0
  for (const cut of [...cuts, bytes.length].sort((a, b) => a - b)) {
    yield bytes.subarray(start, cut)
    start = cut
  }
}

test('lines come out whole wherever the chunks break', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ text: fc.string({ unit: 'grapheme' }) })),
      fc.array(fc.nat({ max: 10_000 })),
      async (values, cuts) => {
        const bytes = Buffer.from(values.map(value => `${JSON.stringify(value)}\n`).join(''))
        const within = cuts.map(cut => Math.min(cut, bytes.length))
        expect(await collect(jsonLines(chunksOf(bytes, within)))).toEqual(values)
      },
    ),
  )
})

test('a character of four bytes survives being cut after each of them', async () => {
  const bytes = Buffer.from('{"name":"🎭"}\n')
  const at = bytes.indexOf(0xf0)
  for (const cut of [at + 1, at + 2, at + 3]) {
    expect(await collect(jsonLines(chunksOf(bytes, [cut])))).toEqual([{ name: '🎭' }])
  }
})

test('a line of 5 MB in small chunks', async () => {
  const value = { blob: 'x'.repeat(5_000_000) }
  const bytes = Buffer.from(`${JSON.stringify(value)}\n`)
  const cuts = Array.from({ length: Math.floor(bytes.length / 16_384) }, (_, i) => (i + 1) * 16_384)
  expect(await collect(jsonLines(chunksOf(bytes, cuts)))).toEqual([value])
})

test('a stream that ends inside a line is an error, after the complete lines', async () => {
  const seen: unknown[] = []
  const reading = (async () => {
    for await (const line of jsonLines(chunksOf(Buffer.from('{"a":1}\n{"b":'), []))) seen.push(line)
  })()
  await expect(reading).rejects.toThrow(SyntaxError)
  expect(seen).toEqual([{ a: 1 }])
})

test('a line that is not JSON is an error, not a gap', async () => {
  await expect(collect(jsonLines(chunksOf(Buffer.from('{"a":1}\nnonsense\n{"c":3}\n'), [])))).rejects.toThrow(
    SyntaxError,
  )
})

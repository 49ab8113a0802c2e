import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { encodeLine, type Field, longestLine, parseLine } from './line.ts'

const identifier = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_-]{0,20}$/)
// Lone surrogates are not text, and no value that is sent contains them.
const value = fc.string({ unit: 'grapheme', maxLength: 60 }).filter(text => text.isWellFormed())
const fields = fc.array(fc.tuple(identifier, value), { maxLength: 12 })

describe('lines of the sentinel', () => {
  test('what is written is read, whatever the values are', () => {
    fc.assert(
      fc.property(fc.nat(), identifier, fields, (id, word, given) => {
        const line = encodeLine(id, word, given)
        expect(line).toMatch(/^[\x21-\x7e ]*\n$/)
        expect(parseLine(line.slice(0, -1))).toEqual({ id, word, fields: given })
      }),
    )
  })

  test('whatever comes is a line or is not, and never an exception', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), text => {
        const line = parseLine(text)
        if (line !== undefined) expect(line.word).toMatch(/^[A-Za-z]/)
      }),
    )
  })

  test('a line that was damaged is not read as another one with more fields', () => {
    fc.assert(
      fc.property(fields, fc.nat(), fc.integer({ min: 0x20, max: 0x7e }), (given, at, code) => {
        const line = encodeLine(7, 'word', given).slice(0, -1)
        const place = at % line.length
        const damaged = line.slice(0, place) + String.fromCharCode(code) + line.slice(place + 1)
        expect(parseLine(damaged)?.fields.length ?? 0).toBeLessThanOrEqual(given.length + 1)
      }),
    )
  })

  test.each([
    ['', undefined],
    ['1', undefined],
    ['01 ok', undefined],
    ['1  ok', undefined],
    ['1 ok ', undefined],
    ['1 ok =x', undefined],
    ['1 ok a', undefined],
    ['1 ok a=%', undefined],
    ['1 ok a=%ff', undefined],
    ['1 ok a=%00', { id: 1, word: 'ok', fields: [['a', '\0']] }],
    ['- died name=a%20b', { id: undefined, word: 'died', fields: [['name', 'a b']] }],
    [
      '3 x a=1 a=2 b==',
      {
        id: 3,
        word: 'x',
        fields: [
          ['a', '1'],
          ['a', '2'],
          ['b', '='],
        ],
      },
    ],
  ])('%j', (text, expected) => {
    expect(parseLine(text)).toEqual(expected)
  })

  test('what the other side would not read is not sent', () => {
    const long: Field[] = [['a', 'x'.repeat(longestLine)]]
    expect(() => encodeLine(1, 'spawn', long)).toThrow(RangeError)
    expect(() => encodeLine(1, 'two words', [])).toThrow(RangeError)
    expect(() => encodeLine(1, 'word', [['a=b', '']])).toThrow(RangeError)
  })
})

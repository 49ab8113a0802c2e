import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeHealthResponse, encodeHealthRequest } from './grpc-frame.ts'

const frame = (...message: number[]) => Buffer.from([0, 0, 0, 0, message.length, ...message])

describe('health messages of gRPC', () => {
  test('a request as grpc-go writes it', () => {
    expect(encodeHealthRequest('').toString('hex')).toBe('0000000000')
    expect(encodeHealthRequest('ab').toString('hex')).toBe('00000000040a026162')
    expect(encodeHealthRequest('x'.repeat(300)).subarray(0, 8).toString('hex')).toBe('000000012f0aac02')
    expect(encodeHealthRequest('\u00e9').toString('hex')).toBe('00000000040a02c3a9')
  })

  test.each([
    ['an empty message is the default', frame(), 'UNKNOWN'],
    ['serving', frame(0x08, 1), 'SERVING'],
    ['not serving', frame(0x08, 2), 'NOT_SERVING'],
    ['unknown fields are passed over', frame(0x12, 2, 9, 9, 0x1d, 1, 2, 3, 4, 0x08, 1), 'SERVING'],
    ['the last value of a field counts', frame(0x08, 1, 0x08, 2), 'NOT_SERVING'],
    ['a status nobody knows', frame(0x08, 9), undefined],
    ['compressed', Buffer.from([1, 0, 0, 0, 2, 8, 1]), undefined],
    ['cut off', Buffer.from([0, 0, 0, 0, 2, 8]), undefined],
    ['more than it says', Buffer.from([0, 0, 0, 0, 1, 8, 1]), undefined],
    ['a length beyond the end', frame(0x12, 5, 1), undefined],
    ['a group without an end', frame(0x0b), undefined],
    ['a group is passed over like every unknown field', frame(0x0b, 0x08, 2, 0x0c, 0x08, 1), 'SERVING'],
    ['an end without a group', frame(0x0c), undefined],
    ['a field with the number zero', frame(0x00, 1), undefined],
    ['a status of another type is no status', frame(0x0a, 1, 1), 'UNKNOWN'],
    ['a negative status', frame(0x08, ...Array<number>(9).fill(0xff), 1), undefined],
    ['no end of a number', frame(0x08, ...Array<number>(11).fill(0x80)), undefined],
  ])('%s', (_, bytes, expected) => {
    expect(decodeHealthResponse(bytes)).toBe(expected)
  })

  test('any bytes are a status or nothing', () => {
    const known = [undefined, 'UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN']
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), bytes => {
        expect(known).toContain(decodeHealthResponse(frame(...bytes)))
        expect(known).toContain(decodeHealthResponse(Buffer.from(bytes)))
      }),
    )
  })
})

import { describe, expect, it } from 'vitest'
import { createReplies } from './replies.ts'

const stream = Buffer.from('+OK\r\n$5\r\n\r\n+\r\n\r\n:7\r\n$-1\r\n$0\r\n\r\n', 'latin1')

describe("Redis' replies", () => {
  it('are counted wherever they are cut', () => {
    for (let size = 1; size <= stream.length; size += 1) {
      let count = 0
      const take = createReplies(() => {
        count += 1
      })
      for (let at = 0; at < stream.length; at += size) take(stream.subarray(at, at + size))
      expect(count).toBe(5)
    }
  })

  it('that are errors are no answers', () => {
    expect(() => createReplies(() => undefined)(Buffer.from('-OOM no room\r\n'))).toThrow('OOM no room')
  })
})

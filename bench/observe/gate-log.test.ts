import { describe, expect, it } from 'vitest'
import { wokenAt } from './gate-log.ts'

describe('the log of a gate', () => {
  it('tells when it was woken', () => {
    const log =
      '{"level":"info","time":1,"msg":"waiting","port":20000}\n' +
      '{"level":"info","time":2,"msg":"woken","kind":"hotbackup","at":"1700000000123456789","refused":0}\n'
    expect(wokenAt(log)).toBeCloseTo(1_700_000_000_123.456, 3)
    expect(wokenAt('')).toBeUndefined()
  })
})

import { describe, expect, it } from 'vitest'
import { wokenAt } from './gate-log.ts'
import { parsePlegLine } from './kubelet-log.ts'

const line =
  'I0304 05:06:07.123456      42 kubelet.go:2556] "SyncLoop (PLEG): event for pod" pod="bench/web-1" ' +
  'event={"ID":"6f1d","Type":"ContainerDied","Data":"abc"}'

describe('the kubelet log', () => {
  it('tells when the relist reported a container, to the µs', () => {
    const now = new Date(2026, 2, 4, 6).getTime()
    expect(parsePlegLine(line, now)).toEqual({
      at: new Date(2026, 2, 4, 5, 6, 7).getTime() + 123.456,
      podUid: '6f1d',
      type: 'ContainerDied',
      containerId: 'abc',
    })
  })

  it('takes the last year for a line that would lie ahead', () => {
    const now = new Date(2026, 0, 1, 1).getTime()
    const event = parsePlegLine(line.replace('I0304', 'I1231'), now)
    expect(new Date(event?.at ?? 0).getFullYear()).toBe(2025)
  })

  it('passes over all other lines', () => {
    expect(parsePlegLine('I0304 05:06:07.123456 42 kubelet.go:1] "SyncLoop ADD"', 0)).toBeUndefined()
  })
})

describe('the log of a gate', () => {
  it('tells when it was woken', () => {
    const log =
      '{"level":"info","time":1,"msg":"waiting","port":20000}\n' +
      '{"level":"info","time":2,"msg":"woken","kind":"hotbackup","at":"1700000000123456789","refused":0}\n'
    expect(wokenAt(log)).toBeCloseTo(1_700_000_000_123.456, 3)
    expect(wokenAt('')).toBeUndefined()
  })
})

import { describe, expect, it } from 'vitest'
import type { AuditEvent } from '../observe/audit.ts'
import { podOf } from '../observe/testing/pods.ts'
import { timingOf } from './timing.ts'

const passes = [
  { at: 900, reconcileId: 'before' },
  { at: 1004, reconcileId: 'first' },
  { at: 1200, reconcileId: 'later' },
]
const write = (at: number) => ({ type: 'created', at, pod: podOf(`p${at}`, 'primary', {}) }) as const
const answered = (name: string, at: number, verb = 'create', code = 201): AuditEvent => ({
  received: at - 2,
  answered: at,
  user: 'operator',
  verb,
  resource: 'pods',
  namespace: 'bench',
  name,
  code,
})

describe('controller time', () => {
  it('runs from the first pass after the request to the last pod write', () => {
    const timing = timingOf({
      requested: 1000.4,
      passes,
      writes: [write(1010.5), write(1033.25)],
      audit: [
        answered('p1010.5', 1009),
        answered('p1033.25', 1031.5),
        answered('p1033.25', 1040, 'patch', 409),
        answered('p1033.25', 1050, 'get', 200),
        // An annotation does not count as a write by this definition.
        answered('p1033.25', 1060, 'patch', 200),
      ],
    })
    const server = { lastAnswer: 1031.5, busyMs: 4 }
    expect(timing).toEqual({ passBegan: 1004, lastWrite: 1033.25, server, podWrites: 2 })
  })

  it('tells how long the API server was busy with it: writes at the same time count once', () => {
    const request = (name: string, received: number, end: number) => ({ ...answered(name, end), received })
    const { server } = timingOf({
      requested: 1000,
      passes,
      writes: [write(1010), write(1020), write(1030), write(1040)],
      audit: [
        request('p1010', 1006, 1009),
        request('p1020', 1012, 1019),
        request('p1030', 1013, 1015),
        request('p1040', 1018, 1024),
      ],
    })
    expect(server).toEqual({ lastAnswer: 1024, busyMs: 3 + 12 })
  })

  it('is no figure when the log, the watch or the audit log does not show it', () => {
    const evidence = { requested: 1000, passes, writes: [write(1010)], audit: undefined }
    expect(timingOf(evidence).server).toBeUndefined()
    expect(() => timingOf({ ...evidence, passes: passes.slice(0, 1) })).toThrow('no pass after')
    expect(() => timingOf({ ...evidence, writes: [write(999)] })).toThrow('no pod was written')
    expect(() => timingOf({ ...evidence, audit: [] })).toThrow('the audit log shows no pod write')
  })
})

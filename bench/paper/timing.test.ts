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
const answered = (at: number, verb = 'create', code = 201): AuditEvent => ({
  received: at - 2,
  answered: at,
  user: 'operator',
  verb,
  resource: 'pods',
  namespace: 'bench',
  name: 'p',
  code,
})

describe('controller time', () => {
  it('runs from the first pass after the request to the last pod write', () => {
    const timing = timingOf({
      requested: 1000.4,
      passes,
      writes: [write(1010.5), write(1033.25)],
      audit: [answered(1009), answered(1031.5), answered(1040, 'patch', 409), answered(1050, 'get', 200)],
    })
    expect(timing).toEqual({ passBegan: 1004, lastWrite: 1033.25, lastAnswer: 1031.5, podWrites: 2 })
  })

  it('is no figure when the log, the watch or the audit log does not show it', () => {
    const evidence = { requested: 1000, passes, writes: [write(1010)], audit: undefined }
    expect(timingOf(evidence).lastAnswer).toBeUndefined()
    expect(() => timingOf({ ...evidence, passes: passes.slice(0, 1) })).toThrow('no pass after')
    expect(() => timingOf({ ...evidence, writes: [write(999)] })).toThrow('no pod was written')
    expect(() => timingOf({ ...evidence, audit: [] })).toThrow('the audit log shows no pod write')
  })
})

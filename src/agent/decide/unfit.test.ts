import { describe, expect, it } from 'vitest'
import type { Machine } from '../../slot/decide/machine-fit.ts'
import type { Kept, Snapshot } from '../observe/snapshot.ts'
import { container, kept, lease, policy, snapshot, understudy } from '../testing/fake/snapshots.ts'
import { desiredTasks } from './desired-tasks.ts'
import { slotReportsOf } from './slot-reports.ts'
import { understudyConditionOf } from './understudy-condition.ts'
import { usabilityOf } from './usability.ts'

const machine: Machine = {
  architecture: 'x86_64',
  kernel: '6.12.0',
  criu: '4.2.1',
  cpuFeatures: ['avx2', 'sse2'],
}
const heir = understudy('h')
const slot = lease({ node: 'p', holders: ['a'], heir: { name: 'h', uid: heir.uid, ip: '10.0.0.1' } })

/** A holder that would freeze the memory in its understudy, except for the changes of the test. */
const world = (memory: Partial<Kept>, over: Partial<Snapshot> = {}) =>
  snapshot({
    machine,
    pods: [heir],
    slots: [slot],
    kept: new Map([['default.web.0.0123abcd', kept({ machine, ...memory })]]),
    proven: new Set([policy().restoreHash]),
    ...over,
  })
const typesOf = (s: Snapshot) => desiredTasks(s).map(({ type }) => type)

describe('D6.placement: a holder that cannot run a generation is not usable', () => {
  it('one that can is', () => {
    expect(usabilityOf(world({}), slot)).toEqual({ usable: 'Staged' })
    expect(typesOf(world({}))).toContain('freeze')
  })

  it.each<[string, Partial<Kept>, string]>([
    ['another processor', { machine: { ...machine, cpuFeatures: ['avx512f', 'sse2'] } }, 'CpuDiffers'],
    ['another architecture', { machine: { ...machine, architecture: 'aarch64' } }, 'ArchitectureDiffers'],
    ['a newer kernel', { machine: { ...machine, kernel: '6.13.1' } }, 'KernelOlder'],
    ['a newer CRIU', { machine: { ...machine, criu: '4.3' } }, 'CriuOlder'],
    ['another image', { imageIds: new Map([['app', 'sha256:2']]) }, 'ImageDiffers'],
  ])('memory of %s', (_, memory, reason) => {
    const s = world(memory)
    const use = usabilityOf(s, slot)
    expect(use.usable).toBeUndefined()
    expect(use.reason).toBe(reason)
    // The message says what to do about it.
    expect(use.message).toMatch(/; (use|upgrade|run|name) /)
    // The agent does not try a restore that cannot succeed, and reports why.
    expect(typesOf(s)).not.toContain('freeze')
    expect(typesOf(s)).not.toContain('verifyRestore')
    const [report] = slotReportsOf(s, { latest: () => undefined, progress: () => undefined })
    expect(report).toMatchObject({ role: 'holder', reason })
    expect(report?.usable).toBeUndefined()
    expect(understudyConditionOf(s, heir)).toMatchObject({ status: 'False', reason })
  })

  it('an image that is not known yet is not another one', () => {
    const pods = [understudy('h', { containers: [container({ imageId: '' })] })]
    expect(usabilityOf(world({ imageIds: new Map([['app', 'sha256:2']]) }, { pods }), slot).usable).toBe(
      'Staged',
    )
  })
})

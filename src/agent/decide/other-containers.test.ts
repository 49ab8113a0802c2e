import { describe, expect, it } from 'vitest'
import type { SlotLease } from '../../api/slot-lease.ts'
import { container, lease, nameOf, pod, snapshot } from '../testing/fake/snapshots.ts'
import { desiredTasks } from './desired-tasks.ts'

describe('a primary that runs other containers than its Lease has the memory of', () => {
  const first = lease({ containers: 'app=containerd://c0ffee' })
  it('D7.ids: is not saved: it would take the place of what was saved of the one before', () => {
    const types = (held: SlotLease) =>
      desiredTasks(snapshot({ pods: [pod('p')], slots: [held] })).map(({ type }) => type)
    expect(types(first)).toContain('checkpoint')
    expect(types({ ...first, containers: 'app=containerd://before' })).not.toContain('checkpoint')
    expect(types(lease())).toContain('checkpoint')
  })

  it('D7.unsettled: nor where the Lease names none, and one was started again since the life began', () => {
    const types = (restarts: number, before: number | undefined, held = lease()) =>
      desiredTasks(
        snapshot({
          pods: [pod('p', { containers: [container({ restarts })] })],
          slots: [held],
          ...(before !== undefined && { restarts: new Map([[nameOf(), before]]) }),
        }),
      ).map(({ type }) => type)
    expect(types(1, 0)).not.toContain('checkpoint')
    for (const [restarts, before] of [
      [0, 0],
      [1, 1],
      [1, undefined],
    ] as const)
      expect(types(restarts, before)).toContain('checkpoint')
    // Container ids say more than restart counts.
    expect(types(1, 0, first)).toContain('checkpoint')
  })
})

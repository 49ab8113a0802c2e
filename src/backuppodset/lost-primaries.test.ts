import { describe, expect, it } from 'vitest'
import { annotations, labels } from '../api/labels.ts'
import { createFakeClock } from '../kube/clock.ts'
import type { Pod } from '../kube/resources.ts'
import { createPendingDeletions } from '../slot/act/pending-deletions.ts'
import { createLostPrimaries } from './lost-primaries.ts'

const primary = (name: string, epoch: number, owner = 'live'): Pod => ({
  metadata: {
    name,
    namespace: 'default',
    uid: name,
    resourceVersion: '1',
    labels: { [labels.type]: 'primary', [labels.set]: 'bps', [labels.slot]: '0' },
    annotations: { [annotations.epoch]: String(epoch) },
    ownerReferences: [
      {
        apiVersion: 'backup.example.com/v1alpha1',
        kind: 'BackupPodSet',
        name: 'bps',
        uid: owner,
        controller: true,
      },
    ],
  },
  spec: { containers: [] },
})
const deleted = (object: Pod) => ({ type: 'deleted', object, old: object, initial: false }) as const
const added = (object: Pod) => ({ type: 'added', object, initial: false }) as const
const make = () => createLostPrimaries({ key: 'default/bps', uid: 'live' }, createFakeClock(), () => false)

describe('losses', () => {
  it('are those of the set that lives, not of a namesake before it or of another owner', () => {
    const losses = make()
    losses.note(deleted(primary('theirs', 9, 'dead')))
    expect(losses.of().size).toBe(0)
    losses.note(deleted(primary('ours', 3)))
    expect(losses.of().get(0)).toMatchObject({ name: 'ours', epoch: 3, reason: 'PodDeleted' })
  })

  it('are repaired by a later epoch of the slot, whoever promoted it; an older one repairs nothing', () => {
    const losses = make()
    losses.note(deleted(primary('lost', 3)))
    losses.note(added(primary('older', 2)))
    expect(losses.of().size).toBe(1)
    losses.note(added(primary('successor', 4)))
    expect(losses.of().size).toBe(0)
  })
})

it('a pod that the cache has let go already gets no pending deletion: nothing would ever clear it', () => {
  const pendingDeletions = createPendingDeletions(({ name }) => (name === 'shown' ? 'shown' : undefined))
  pendingDeletions.add({ namespace: 'default', name: 'gone', uid: 'gone' })
  pendingDeletions.add({ namespace: 'default', name: 'shown', uid: 'shown' })
  expect([pendingDeletions.has('gone'), pendingDeletions.has('shown')]).toEqual([false, true])
  pendingDeletions.forget('shown')
  expect(pendingDeletions.has('shown')).toBe(false)
})

import { describe, expect, it } from 'vitest'
import { annotations, labels } from '../api/labels.ts'
import { podConditions, servingReasons } from '../api/pod-contract.ts'
import { formatServingRecord, servingRecordAnnotation } from '../api/serving-record.ts'
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
const make = (clock = createFakeClock()) =>
  createLostPrimaries({ key: 'default/bps', uid: 'live' }, clock, () => false)

describe('losses', () => {
  it('are those of the set that lives, not of a namesake before it or of another owner', () => {
    const losses = make()
    losses.note(deleted(primary('theirs', 9, 'dead')))
    expect(losses.of().size).toBe(0)
    losses.note(deleted(primary('ours', 3)))
    expect(losses.of().get(0)).toMatchObject({ name: 'ours', epoch: 3, reason: 'PodDeleted' })
  })

  it.each([
    ['Died', 'as its agent has seen', {}],
    ['Ended', 'by its agent, or while that did not look', { byItself: false as const }],
  ])('MP-29: have the reason %s if the app has ended %s', (reason, _, how) => {
    const losses = make()
    const old = primary('ours', 3)
    const message = 'container app (containerd://1) has ended'
    const record = formatServingRecord({ diedWith: 'slot', ...how }, message) ?? ''
    const object: Pod = {
      ...old,
      metadata: {
        ...old.metadata,
        annotations: { ...old.metadata.annotations, [servingRecordAnnotation]: record },
      },
      status: {
        conditions: [{ type: podConditions.serving, status: 'False', reason: servingReasons.died, message }],
      },
    }
    losses.note({ type: 'updated', object, old, initial: false })
    expect(losses.of().get(0)).toMatchObject({ reason })
  })

  it('are repaired by a later epoch of the slot, whoever promoted it; an older one repairs nothing', () => {
    const losses = make()
    losses.note(deleted(primary('lost', 3)))
    losses.note(added(primary('older', 2)))
    expect(losses.of().size).toBe(1)
    losses.note(added(primary('successor', 4)))
    expect(losses.of().size).toBe(0)
  })

  it('that are seen during a pass are not forgotten at its end', async () => {
    const clock = createFakeClock()
    const losses = make(clock)
    losses.note(deleted(primary('released', 3)))
    const began = clock.monotonic()
    await clock.advance(5)
    losses.clear(began)
    expect(losses.of().size).toBe(0)
    losses.note(deleted(primary('lost', 3)))
    losses.clear(began)
    expect(losses.of().get(0)).toMatchObject({ name: 'lost' })
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

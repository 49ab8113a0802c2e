import { expect, it } from 'vitest'
import type { BackupPodSet } from '../api/backuppodset.ts'
import { numberedSlotLeaseBody, parseNumberedSlotLease } from '../api/numbered-slot.ts'
import { formatPolicy, type SlotPolicy } from '../api/slot-policy.ts'
import { createFakeClock } from '../kube/clock.ts'
import { KubeError } from '../kube/errors.ts'
import type { Lease } from '../kube/resources.ts'
import { createStore } from '../kube/store.ts'
import { makeObject } from '../kube/testing/fake-api.ts'
import { leaseIndexes } from '../slot/observe/slot-leases.ts'
import { makeLease } from '../slot/testing/slots.ts'
import { reconcile } from './reconcile.ts'
import { makePrimary } from './testing/memory.ts'
import { makeMemoryDeps, makeReconcileContext, makeReconcileDeps } from './testing/reconcile.ts'

const policy: SlotPolicy = {
  ...{ mode: 'Frozen', intervalMs: 1_000, maxFreezePercent: 2, containers: ['app'], keep: 2 },
  ...{ disk: true, volumeBytes: 0, paused: false, restoreHash: '0123456789abcdef' },
}
const leaseOf = (slot: number, owner: string | undefined, said: SlotPolicy | undefined): Lease => {
  const { metadata, spec } = numberedSlotLeaseBody({
    ...makeLease(makePrimary(`p${slot}`, slot)),
    ...(said && { policy: said }),
  })
  const ref = { apiVersion: 'v1', kind: 'BackupPodSet', name: 'bps', controller: true }
  return {
    metadata: {
      ...{ ...metadata, uid: `l${slot}`, resourceVersion: `${slot}` },
      ownerReferences: owner === undefined ? [] : [{ ...ref, uid: owner }],
    },
    spec,
  }
}

/** Makes a pass over `default/bps` and returns the slots that it paused. */
async function paused(
  metadata: Partial<BackupPodSet['metadata']> | undefined,
  leases: readonly Lease[],
  fails?: KubeError,
): Promise<readonly (number | undefined)[]> {
  const store = createStore<Lease>({ indexes: leaseIndexes })
  for (const lease of leases) store.upsert(lease)
  const clock = createFakeClock()
  const sets = createStore<BackupPodSet>()
  if (metadata !== undefined)
    sets.upsert(
      makeObject({
        metadata: { namespace: 'default', name: 'bps', ...metadata },
        spec: { replicas: 1, template: {} },
      }),
    )
  const slots: (number | undefined)[] = []
  const deps = makeReconcileDeps({
    ...{ sets, clock },
    // The pass ends there, for a set that stays.
    record: { namespace: { isKnown: () => true, ask: async () => true, note: () => undefined } },
    memory: makeMemoryDeps(store, clock),
    writePolicy: async (_: string, object: Lease, to: SlotPolicy) => {
      if (fails) throw fails
      expect(formatPolicy(to)).toBe(formatPolicy({ ...policy, paused: true }))
      slots.push(parseNumberedSlotLease(object)?.slot)
    },
  })
  await reconcile(deps, 'default/bps', makeReconcileContext())
  return slots.sort()
}

const both = [leaseOf(0, 'before', policy), leaseOf(1, 'now', policy)]

it('D7.policy: the slots of a deleted set are paused: its pods end in their own time, and nobody succeeds them', async () => {
  expect(await paused(undefined, both)).toEqual([0, 1])
  const ending = { uid: 'now', deletionTimestamp: '2030-01-01T00:00:00Z' }
  expect(await paused(ending, both)).toEqual([0, 1])
  // Its pods were left on purpose.
  expect(await paused(undefined, [leaseOf(0, undefined, policy)])).toEqual([0])
})

it('D7.policy: those of a set that stays are left alone, and those of one of its name before it are not', async () => {
  expect(await paused({ uid: 'now' }, both)).toEqual([0])
  expect(await paused({ uid: 'now' }, [leaseOf(0, undefined, policy)])).toEqual([])
})

it('D7.policy: that is written once, and not where there is nothing to change', async () => {
  const done = [leaseOf(0, 'before', { ...policy, paused: true }), leaseOf(1, 'before', undefined)]
  expect(await paused(undefined, done)).toEqual([])
  // The garbage collector may be faster.
  for (const code of ['Conflict', 'NotFound'] as const)
    expect(await paused(undefined, both, new KubeError(code, 'x'))).toEqual([])
  await expect(paused(undefined, both, new KubeError('Unavailable', 'x'))).rejects.toThrow('x')
})

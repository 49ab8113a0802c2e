import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { slotName } from '../../checkpoint/manifest.ts'
import { dutiesOf } from './duties-of.ts'
import type { Duty } from './duty.ts'
import type { Snapshot } from './snapshot.ts'
import { container, died, kept, lease, nameOf, pod, policy, snapshot, usableAt } from './testing/snapshots.ts'

describe('any world', () => {
  const names = ['p', 'q', 'h', 'i'] as const
  const podArb = (name: string) =>
    fc
      .record({
        kind: fc.constantFrom('primary', 'hotbackup', 'coldbackup', 'retired'),
        slot: fc.constantFrom(undefined, 'web-0', 'web-1'),
        epoch: fc.integer({ min: 0, max: 2 }),
        ip: fc.constantFrom(undefined, '10.0.0.1'),
        understudy: fc.boolean(),
        ready: fc.boolean(),
        terminating: fc.boolean(),
        serving: fc.constantFrom(undefined, died(nameOf()), {
          status: 'True',
          reason: 'OnStage',
          message: '',
          record: {},
        }),
        containers: fc.constantFrom(
          [container()],
          [container({ running: false })],
          [container({ containerId: undefined, running: false })],
          [container({ memoryLimit: 1_000 })],
          [],
        ),
      })
      .map(over => pod(name, over))
  const leaseArb = (name: string) =>
    fc
      .record({
        holder: fc.constantFrom(...names).map(name => ({ name, uid: `uid-${name}` })),
        epoch: fc.integer({ min: 1, max: 3 }),
        node: fc.constantFrom(undefined, 'a', 'b'),
        heir: fc.constantFrom(
          undefined,
          ...names.map(name => ({ name, uid: `uid-${name}`, ip: '10.0.0.2' })),
        ),
        holders: fc.subarray(['a', 'b']),
      })
      .map(over => lease({ ...over, name }))
  const worlds = fc
    .record({
      able: fc.boolean(),
      pods: fc.subarray([...names]).chain(chosen => fc.tuple(...chosen.map(podArb))),
      slots: fc.subarray(['web-0', 'web-1']).chain(chosen => fc.tuple(...chosen.map(leaseArb))),
      mode: fc.constantFrom('Frozen' as const, 'Staged' as const, undefined),
      reported: fc.boolean(),
      isKept: fc.boolean(),
      proven: fc.boolean(),
      stages: fc.array(
        fc.record({
          uid: fc.constantFrom(...names.map(name => `uid-${name}`)),
          name: fc.constantFrom('web-0', 'web-1'),
          state: fc.constantFrom('Frozen' as const, 'Thawed' as const, 'OnStage' as const),
        }),
      ),
      dead: fc.subarray(names.map(name => `uid-${name}`)),
    })
    .map(
      (w): Snapshot =>
        snapshot({
          able: w.able,
          pods: w.pods,
          slots: w.slots.map(each => ({ ...each, policy: w.mode && policy({ mode: w.mode }) })),
          reports: new Map(w.reported ? [['b', usableAt('b', lease())]] : []),
          kept: new Map(w.isKept ? w.slots.map(each => [slotName(each), kept()]) : []),
          proven: new Set(w.proven ? [kept().restoreHash] : []),
          stages: new Map(
            w.stages.map(({ uid, name, state }) => [
              uid,
              { slot: nameOf({ name }), epoch: 1, generation: 5, state },
            ]),
          ),
          dead: new Map(w.dead.map(uid => [uid, nameOf()])),
        }),
    )
  const holds = (check: (duties: readonly Duty[], world: Snapshot) => void) =>
    fc.assert(
      fc.property(worlds, world => check(dutiesOf(world), world)),
      { numRuns: 2_000 },
    )

  it('no two duties have one key, and at most one of two slots works on the memory of one pod', () => {
    holds(duties => {
      const keys = duties.map(({ key }) => key)
      // Two Leases that name one pod are a client's mistake: then keys collide, and only one duty is done.
      const perPod = new Map<string, Set<string>>()
      for (const duty of duties)
        if (duty.memoryOf !== undefined)
          perPod.set(duty.memoryOf, (perPod.get(duty.memoryOf) ?? new Set()).add(duty.type))
      for (const kinds of perPod.values()) {
        expect(kinds.has('checkpoint') && (kinds.has('freeze') || kinds.has('verifyRestore'))).toBe(false)
        expect(kinds.has('freeze') && kinds.has('verifyRestore')).toBe(false)
        expect(kinds.has('promote') && (kinds.has('freeze') || kinds.has('verifyRestore'))).toBe(false)
      }
      expect(keys.length).toBeGreaterThanOrEqual(new Set(keys).size)
    })
  })

  it('D7.when: only what serves, is not on its way out and is kept elsewhere is saved', () => {
    holds((duties, world) => {
      for (const duty of duties) {
        if (duty.type !== 'checkpoint') continue
        expect(duty.pod.terminating).toBe(false)
        expect(duty.pod.uid).toBe(duty.lease.holder.uid)
        expect(world.dead.get(duty.pod.uid)).not.toBe(slotName(duty.lease))
        expect(duty.lease.holders.some(node => node !== world.node)).toBe(true)
      }
    })
  })

  it('nothing is ever brought back in a pod that has a role, or in one that is no understudy', () => {
    holds((duties, world) => {
      const holders = new Set(world.slots.map(({ holder }) => holder.uid))
      for (const duty of duties) {
        if (duty.type !== 'freeze' && duty.type !== 'verifyRestore' && duty.type !== 'discard') continue
        expect(holders.has(duty.pod.uid)).toBe(false)
        expect(
          duty.pod.kind === 'hotbackup' || (duty.type === 'discard' && duty.pod.kind === 'coldbackup'),
        ).toBe(true)
        if (duty.pod.terminating) expect(duty.type, 'memory leaves a pod that ends').toBe('discard')
        else expect([duty.pod.understudy, world.dead.has(duty.pod.uid)]).toEqual([true, false])
      }
    })
  })

  it('nobody goes on stage but whom the Lease names', () => {
    holds(duties => {
      for (const duty of duties) if (duty.type === 'promote') expect(duty.lease.holder.uid).toBe(duty.pod.uid)
    })
  })

  it('nobody is ended who holds the slot and stays', () => {
    holds(duties => {
      for (const duty of duties)
        if (duty.type === 'stopPrimary')
          expect(
            duty.pod.terminating ||
              duty.lease.ending === duty.pod.uid ||
              duty.lease.holder.uid !== duty.pod.uid,
          ).toBe(true)
    })
  })
})

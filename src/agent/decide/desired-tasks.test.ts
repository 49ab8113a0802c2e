import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Snapshot } from '../observe/snapshot.ts'
import {
  container,
  died,
  kept,
  lease,
  nameOf,
  pod,
  policy,
  snapshot,
  usableAt,
} from '../testing/fake/snapshots.ts'
import { desiredTasks } from './desired-tasks.ts'
import type { Task } from './task.ts'

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
  const holds = (check: (tasks: readonly Task[], world: Snapshot) => void) =>
    fc.assert(
      fc.property(worlds, world => check(desiredTasks(world), world)),
      { numRuns: 2_000 },
    )

  it('no two duties have one key, and at most one of two slots works on the memory of one pod', () => {
    holds(tasks => {
      const keys = tasks.map(({ key }) => key)
      // Two Leases that name one pod are a client's mistake: then keys collide, and only one task is done.
      const perPod = new Map<string, Set<string>>()
      for (const task of tasks)
        if (task.memoryOf !== undefined)
          perPod.set(task.memoryOf, (perPod.get(task.memoryOf) ?? new Set()).add(task.type))
      for (const kinds of perPod.values()) {
        expect(kinds.has('checkpoint') && (kinds.has('freeze') || kinds.has('verifyRestore'))).toBe(false)
        expect(kinds.has('freeze') && kinds.has('verifyRestore')).toBe(false)
        expect(kinds.has('promote') && (kinds.has('freeze') || kinds.has('verifyRestore'))).toBe(false)
      }
      expect(keys.length).toBeGreaterThanOrEqual(new Set(keys).size)
    })
  })

  it('D7.when: only what serves, is not on its way out and is kept elsewhere is saved', () => {
    holds((tasks, world) => {
      for (const task of tasks) {
        if (task.type !== 'checkpoint') continue
        expect(task.pod.terminating).toBe(false)
        expect(task.pod.uid).toBe(task.lease.holder.uid)
        expect(world.dead.get(task.pod.uid)).not.toBe(slotName(task.lease))
        expect(task.lease.holders.some(node => node !== world.node)).toBe(true)
      }
    })
  })

  it('nothing is ever brought back in a pod that has a role, or in one that is no understudy', () => {
    holds((tasks, world) => {
      const holders = new Set(world.slots.map(({ holder }) => holder.uid))
      for (const task of tasks) {
        if (task.type !== 'freeze' && task.type !== 'verifyRestore' && task.type !== 'discard') continue
        expect(holders.has(task.pod.uid)).toBe(false)
        expect(
          task.pod.kind === 'hotbackup' || (task.type === 'discard' && task.pod.kind === 'coldbackup'),
        ).toBe(true)
        if (task.pod.terminating) expect(task.type, 'memory leaves a pod that ends').toBe('discard')
        else expect([task.pod.understudy, world.dead.has(task.pod.uid)]).toEqual([true, false])
      }
    })
  })

  it('nobody goes on stage but whom the Lease names', () => {
    holds(tasks => {
      for (const task of tasks) if (task.type === 'promote') expect(task.lease.holder.uid).toBe(task.pod.uid)
    })
  })

  it('nobody is ended who holds the slot and stays', () => {
    holds(tasks => {
      for (const task of tasks)
        if (task.type === 'stopPrimary')
          expect(
            task.pod.terminating ||
              task.lease.ending === task.pod.uid ||
              task.lease.holder.uid !== task.pod.uid,
          ).toBe(true)
    })
  })
})

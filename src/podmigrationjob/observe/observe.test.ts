import { expect, it } from 'vitest'
import { roomGate } from '../../api/pod-migration-job.ts'
import { type Reservation, reservations } from '../../api/reservation.ts'
import type { KubeObject } from '../../kube/object.ts'
import type { Pod } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import { argsWith } from '../testing/worlds.ts'
import { nothing } from './claims.ts'
import { observe } from './observe.ts'

const storeOf = <T extends KubeObject>(...objects: readonly T[]) => {
  const store = createStore<T>()
  store.replace(objects, 1n)
  return store
}
const meta = (name: string, more: object = {}) => ({ name, uid: name, resourceVersion: '1', ...more })
const gated = (name: string, label: string): Pod => ({
  metadata: meta(name, { namespace: 'shop', labels: { 'backup.example.com/reservation': label } }),
  spec: { containers: [], schedulingGates: [{ name: roomGate }] },
})
const reservation: Reservation = {
  metadata: meta('room'),
  spec: { owners: [{ controller: { namespace: 'shop', name: 'web-h' } }], template: {} },
}

it('room is counted only while the pod of a Reservation waits for it: a gate that a tenant writes costs nothing', () => {
  const counted = (pod: Pod) => {
    const asked: string[] = []
    observe([], [{ resource: reservations, reservation }], argsWith(), {
      world: {
        ...{ pods: storeOf(pod), replicaSets: storeOf(), deployments: storeOf(), statefulSets: storeOf() },
        ...{ disruptionBudgets: storeOf(), configMaps: storeOf(), nodes: storeOf() },
      },
      ...{ sets: storeOf(), migrations: storeOf(), since: { pass: () => () => 0 } },
      ...{ clock: { monotonic: () => 0 }, requests: { of: () => 'none' } },
      roomOf: each => {
        asked.push(each.metadata.name)
        return nothing()
      },
    })
    return asked
  }
  expect(counted(gated('room', 'room'))).toEqual(['room'])
  expect(counted(gated('tenant', 'room'))).toEqual([])
  expect(counted(gated('room', 'other'))).toEqual([])
})

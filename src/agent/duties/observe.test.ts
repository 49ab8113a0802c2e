import { describe, expect, it } from 'vitest'
import type { BackupPodSet } from '../../api/backuppodset.ts'
import { labels } from '../../api/labels.ts'
import type { NodeReport } from '../../api/node-report.ts'
import { restartsAnnotation, slotLeaseBody } from '../../api/slot-lease.ts'
import { slotName } from '../../checkpoint/manifest.ts'
import type { Lease, Pod } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import { createObserver, type World } from './observe.ts'
import { lease } from './testing/snapshots.ts'

const set = {
  metadata: { name: 'web', namespace: 'default', uid: 'now', resourceVersion: '1' },
  spec: {
    replicas: 1,
    checkpoint: {},
    template: { spec: { containers: [{ name: 'app', image: 'web:1' }] } },
  },
} as BackupPodSet

const observerOf = (
  sets: World['sets'],
  leases: World['leases'] = createStore(),
  pods: World['pods'] = createStore(),
) =>
  createObserver({
    ...{ node: 'a', pods, sets, leases, reports: createStore<NodeReport>() },
    ...{
      store: { list: () => [] },
      proven: new Set(),
      dead: new Map(),
      handoverPauses: { isOn: () => false },
    },
    understudies: { stages: () => new Map(), spoiled: () => new Set() },
  } as unknown as World)

const slotsSeen = (owners: readonly string[], there = true) => {
  const [sets, leases] = [createStore<BackupPodSet>(), createStore<Lease>()]
  if (there) sets.upsert(set)
  const { metadata, spec } = slotLeaseBody(lease())
  const ownerReferences = owners.map(uid => ({ apiVersion: 'v1', kind: 'BackupPodSet', name: 'web', uid }))
  leases.upsert({ metadata: { ...metadata, uid: 'l', resourceVersion: '1', ownerReferences }, spec })
  return observerOf(sets, leases)({ able: true, sentinel: '1' }).slots.length
}

it('D7.owner: slots of a deleted set are not those of one that was made under its name', () => {
  expect(slotsSeen(['now'])).toBe(1)
  expect(slotsSeen(['before'])).toBe(0)
  // The set was deleted without its pods, on purpose.
  expect(slotsSeen([])).toBe(1)
  // Nothing is known of a set that no longer exists, or not yet.
  expect(slotsSeen(['before'], false)).toBe(1)
})

it('D7.unsettled: how often containers had been started again is read of a Lease, and of a pod', () => {
  const [sets, leases, pods] = [createStore<BackupPodSet>(), createStore<Lease>(), createStore<Pod>()]
  sets.upsert(set)
  const { metadata, spec } = slotLeaseBody(lease())
  const annotations = { ...metadata.annotations, [restartsAnnotation]: '2' }
  leases.upsert({ metadata: { ...metadata, annotations, uid: 'l', resourceVersion: '1' }, spec })
  pods.upsert({
    metadata: {
      ...{ name: 'p', namespace: 'default', uid: 'uid-p', resourceVersion: '1' },
      labels: { [labels.set]: 'web' },
    },
    spec: { containers: [{ name: 'app', image: 'web:1' }] },
    status: {
      containerStatuses: [{ name: 'app', image: 'web:1', imageID: '', ready: true, restartCount: 3 }],
    },
  } as Pod)
  const seen = observerOf(sets, leases, pods)({ able: true, sentinel: '1' })
  expect(seen.restarts).toEqual(new Map([[slotName(lease()), 2]]))
  expect(seen.pods.map(pod => pod.containers[0]?.restarts)).toEqual([3])
})

it('what a spec says of memory is read once, and again when the spec has changed', () => {
  const sets = createStore<BackupPodSet>()
  const observe = observerOf(sets)
  const settings = () => observe({ able: true, sentinel: '1' }).settings.get('default/web')
  const write = (resourceVersion: string, generation: number, interval: string) =>
    sets.upsert({
      metadata: { ...set.metadata, resourceVersion, generation },
      spec: { ...set.spec, checkpoint: { interval } },
      status: { replicas: Number(resourceVersion) },
    } as BackupPodSet)
  write('1', 1, '7s')
  const first = settings()
  expect(first?.intervalMs).toBe(7_000)
  // Only the status has changed.
  write('2', 1, '7s')
  expect(settings()).toBe(first)
  write('3', 2, '9s')
  expect(settings()?.intervalMs).toBe(9_000)
  // Another set with the same name.
  sets.remove('default/web')
  expect(settings()).toBeUndefined()
  sets.upsert({ ...set, metadata: { ...set.metadata, uid: 'next', generation: 2 } })
  expect(settings()?.intervalMs).not.toBe(9_000)
})

describe('D7.unreadable: a spec that this version refuses', () => {
  const sets = () => createStore<BackupPodSet>()
  let version = 1
  const write = (store: ReturnType<typeof sets>, spec: object, uid = 'now') => {
    version += 1
    const metadata = { ...set.metadata, uid, resourceVersion: String(version) }
    store.upsert({ metadata, spec: { ...set.spec, ...spec } } as BackupPodSet)
  }
  const seen = (observe: ReturnType<typeof observerOf>) => {
    const { settings, memoryless } = observe({ able: true, sentinel: '1' })
    const own = settings.get('default/web')
    return own === undefined
      ? memoryless.has('default/web')
        ? 'none'
        : 'unknown'
      : [own.intervalMs, own.paused]
  }

  it('leaves the one before it in force, and can be paused', () => {
    const store = sets()
    const observe = observerOf(store)
    write(store, { checkpoint: { interval: '7s' } })
    expect(seen(observe)).toEqual([7_000, false])
    write(store, { checkpoint: { interval: '9s' }, antiAffinity: 'OfTomorrow' })
    expect(seen(observe)).toEqual([7_000, false])
    write(store, { checkpoint: { interval: '9s' }, antiAffinity: 'OfTomorrow', paused: true })
    expect(seen(observe)).toEqual([7_000, true])
    write(store, { checkpoint: { interval: '9s' } })
    expect(seen(observe)).toEqual([9_000, false])
    // No spec of the other set with this name was accepted yet.
    write(store, { checkpoint: { interval: '5s' }, antiAffinity: 'OfTomorrow' }, 'another')
    expect(seen(observe)).toEqual([5_000, false])
  })

  it('is followed as far as it can be read by who has not seen the one before', () => {
    const store = sets()
    write(store, { checkpoint: { interval: '5s' }, antiAffinity: 'OfTomorrow' })
    expect(seen(observerOf(store))).toEqual([5_000, false])
    // It is unknown whether it keeps memory, so the snapshot does not say that it keeps none.
    write(store, { antiAffinity: 'OfTomorrow', template: 'of tomorrow' })
    expect(seen(observerOf(store))).toBe('unknown')
  })

  it('that keeps no memory is known by what it says', () => {
    const store = sets()
    const observe = observerOf(store)
    write(store, { checkpoint: undefined })
    expect(seen(observe)).toBe('none')
    write(store, { checkpoint: undefined, antiAffinity: 'OfTomorrow' })
    expect(seen(observe)).toBe('none')
  })
})

import { expect, it } from 'vitest'
import type { BackupPodSet } from '../api/backuppodset.ts'
import { createFakeClock } from '../kube/clock.ts'
import { RetryLater } from '../kube/reconcile.ts'
import { createStore } from '../kube/store.ts'
import { fakeApi } from '../kube/testing/fake-api.ts'
import type { Missing } from './missing.ts'
import { reconcile } from './reconcile.ts'
import { createReporter } from './report.ts'
import { makeReconcileContext, makeReconcileDeps } from './testing/reconcile.ts'

const template = { spec: { containers: [{ name: 'app', image: 'a', ports: [{ containerPort: 80 }] }] } }
const current = (checkpoint?: object): BackupPodSet => ({
  metadata: { name: 'web', namespace: 'default', uid: 'set', resourceVersion: '1', generation: 3 },
  spec: { replicas: 1, hotBackups: 1, template, ...(checkpoint && { checkpoint }) } as BackupPodSet['spec'],
  status: { observedGeneration: 3, readyReplicas: 1 },
})

/** Returns how far a pass got, and its writes. */
function world(set: BackupPodSet) {
  const sets = createStore<BackupPodSet>()
  sets.upsert(set)
  const clock = createFakeClock()
  let missing: readonly Missing[] = []
  let writes = 0
  const api = fakeApi({
    replace: async (_, __, body) => {
      writes += 1
      const it = body as BackupPodSet
      const written = { ...it, metadata: { ...it.metadata, resourceVersion: `${writes + 1}` } }
      sets.upsert(written)
      return written
    },
  })
  class Begun extends Error {}
  const nothing = () => undefined
  const deps = makeReconcileDeps({
    ...{ sets, clock },
    missingForMemory: () => missing,
    record: {
      reporter: createReporter(api, clock),
      failoverHistory: {
        ...{ note: nothing, of: () => [] },
        open() {
          throw new Begun()
        },
      },
    },
  })
  const pass = () =>
    reconcile(deps, 'default/web', makeReconcileContext()).then(
      () => 'done',
      (error: unknown) => {
        if (error instanceof Begun) return 'begun'
        if (error instanceof RetryLater) return `later: ${error.message}`
        throw error
      },
    )
  const conditions = () => sets.get('default/web')?.status?.conditions ?? []
  const know = (all: readonly Missing[]) => {
    missing = all
  }
  return { sets, clock, pass, conditions, know, writes: () => writes }
}

const nodes = { resource: 'Nodes', why: 'nodes is forbidden: User "understudy" cannot list' }
const slices = { resource: 'EndpointSlices', why: undefined }

it('D6.caches: a set with memory says which kinds its operator does not know, when it lasts', async () => {
  const { clock, pass, conditions, know, sets, writes } = world(current({}))
  know([nodes, slices])
  expect(await pass()).toMatch(/^later: .*Nodes, EndpointSlices/)
  await clock.advance(9_000)
  expect(await pass()).toMatch(/^later/)
  // An operator that has just started reports nothing.
  expect(writes()).toBe(0)
  await clock.advance(1_000)
  expect(await pass()).toMatch(/^later/)
  expect(conditions().map(({ type, status, reason }) => `${type} ${status} ${reason}`)).toEqual([
    'Degraded True CacheIncomplete',
    'CheckpointReady False CacheIncomplete',
  ])
  const { message = '' } = conditions()[0] ?? {}
  expect(message).toContain('Nodes: nodes is forbidden')
  expect(message).toContain('EndpointSlices: no complete answer')
  expect(message).toContain('kubectl apply -k deploy/')
  // Known facts stay, and an unchanged status is not written again.
  expect(sets.get('default/web')?.status).toMatchObject({ observedGeneration: 3, readyReplicas: 1 })
  await pass()
  expect(writes()).toBe(1)
  know([])
  expect(await pass()).toBe('begun')
  // When a list is missing again, the time counts from then.
  await clock.advance(60_000)
  know([slices])
  await pass()
  expect(writes()).toBe(1)
})

it('D6.caches: sets without memory need none of these', async () => {
  const { pass, know, clock, writes } = world(current())
  know([nodes])
  await clock.advance(60_000)
  expect(await pass()).toBe('begun')
  expect(writes()).toBe(0)
})

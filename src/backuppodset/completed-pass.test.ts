import { describe, expect, it } from 'vitest'
import { type BackupPodSet, backupPodSets } from '../api/backuppodset.ts'
import { annotations, labels } from '../api/labels.ts'
import { numberedSlotLeaseBody } from '../api/numbered-slot.ts'
import { memoryAnnotation, memoryKept } from '../api/pod-contract.ts'
import { createFakeClock } from '../kube/clock.ts'
import { KubeError } from '../kube/errors.ts'
import type { Lease, Pod } from '../kube/resources.ts'
import { createStore } from '../kube/store.ts'
import { fakeApi } from '../kube/testing/fake-api.ts'
import { leaseIndexes } from '../slot/observe/slot-leases.ts'
import { makeHolder, makeLease } from '../slot/testing/slots.ts'
import { podIndexes } from './pod-indexes.ts'
import { reconcile } from './reconcile.ts'
import { createReporter } from './report.ts'
import { makeActDeps } from './testing/context.ts'
import { makeMemoryDeps, makeReconcileContext, makeReconcileDeps } from './testing/reconcile.ts'

const named = { namespace: 'default', resourceVersion: '1' }
const owner = { apiVersion: 'backup.example.com/v1alpha1', kind: 'BackupPodSet', name: 'web', uid: 'set' }
const owned = { ownerReferences: [{ ...owner, controller: true }] }
const set: BackupPodSet = {
  metadata: { ...named, name: 'web', uid: 'set', generation: 1 },
  spec: {
    ...{ replicas: 1, hotBackups: 0, coldBackups: 0, checkpoint: {} },
    template: { spec: { restartPolicy: 'OnFailure', containers: [{ name: 'app', image: 'a' }] } },
  },
}
const done: Pod = {
  metadata: {
    ...{ ...named, name: 'web-0', uid: 'p0', ...owned },
    labels: { [labels.set]: 'web', [labels.type]: 'primary', [labels.slot]: '0' },
    annotations: { [annotations.epoch]: '1', [memoryAnnotation]: memoryKept },
  },
  spec: { containers: [{ name: 'app' }] },
  status: {
    phase: 'Succeeded',
    containerStatuses: [
      {
        ...{ name: 'app', image: '', imageID: '', ready: false, restartCount: 0 },
        state: { terminated: { exitCode: 0, finishedAt: '2030-01-01T00:00:05Z' } },
      },
    ],
  },
}
const slot = makeLease(makeHolder('web-0', 0), {
  ...{ name: 'web-0', group: 'web', owner: 'set', holder: { name: 'web-0', uid: 'p0' } },
})

/** A set whose pod has ended with success, under an operator that ends at a write of the given kind. */
function world() {
  const clock = createFakeClock()
  const sets = createStore<BackupPodSet>()
  const pods = createStore<Pod>({ indexes: podIndexes })
  const leases = createStore<Lease>({ indexes: leaseIndexes })
  sets.upsert(set)
  pods.upsert(done)
  const { metadata, spec } = numberedSlotLeaseBody(slot)
  leases.upsert({ spec, metadata: { ...metadata, ...named, uid: 'lease', ...owned } })
  const writes: string[] = []
  let failing: string | undefined
  const write = (what: string) => {
    if (what === failing) throw new KubeError('Unavailable', 'the process has ended')
    writes.push(what)
  }
  const api = fakeApi({
    replace: async ({ kind }, _, body) => {
      write(`replace ${kind}`)
      const metadata = { ...set.metadata, resourceVersion: '2' }
      const { status = {} } = body
      if (kind === backupPodSets.kind) sets.upsert({ ...set, metadata, status })
      return { ...body, metadata }
    },
    delete: async ({ kind }, { name }) => {
      write(`delete ${kind}`)
      leases.remove(`default/${name}`)
    },
    // The policy of the slot: agents follow it.
    patch: async (_, __, { body }) => ({ ...body, metadata: { ...named, name: 'web-0', uid: 'lease' } }),
    get: async (_, { name }) => {
      throw new KubeError('NotFound', name)
    },
    create: async ({ kind }) => {
      throw new Error(`a ${kind} is made`)
    },
  })
  const deps = makeReconcileDeps({
    ...{ sets, pods, clock, api, record: { reporter: createReporter(api, clock) } },
    memory: makeMemoryDeps(leases, clock),
    act: makeActDeps(clock, sets, { api, urgentApi: api, pods }),
  })
  const pass = async (at?: string) => {
    failing = at
    await reconcile(deps, 'default/web', makeReconcileContext()).catch(() => undefined)
  }
  return { pods, writes, pass, status: () => sets.get('default/web')?.status }
}

describe('MP-29: a pass that finds the end of the work', () => {
  it('keeps the memory until the status says so, although its operator ends before that', async () => {
    const { pods, writes, pass, status } = world()
    await pass('replace BackupPodSet')
    expect([writes, status()]).toEqual([[], undefined])
    await pass()
    expect(writes).toEqual(['replace BackupPodSet'])
    expect(status()?.completion).toEqual({ pod: 'web-0', at: '2030-01-01T00:00:05Z' })
    // From here on the pod is not needed.
    pods.remove('default/web-0')
    await pass('delete Lease')
    await pass()
    expect(writes.filter(each => each !== 'replace BackupPodSet')).toEqual(['delete Lease'])
    await pass()
    expect(status()).toMatchObject({ replicas: 0, completion: { pod: 'web-0' } })
  })
})

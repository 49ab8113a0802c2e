/** A local copy of a real API server's objects, for the scheduler, the garbage collector and the observers. */
import { backupPodSets } from '../../../src/api/backuppodset.ts'
import { migrations } from '../../../src/api/migration.ts'
import { nodeReports } from '../../../src/api/node-report.ts'
import type { Api } from '../../../src/kube/api-types.ts'
import { systemClock as clock } from '../../../src/kube/clock.ts'
import { isKubeError } from '../../../src/kube/errors.ts'
import { silentLog as log } from '../../../src/kube/log.ts'
import { type KubeObject, keyOfRef } from '../../../src/kube/object.ts'
import { systemRandom as random } from '../../../src/kube/random.ts'
import { createReflector } from '../../../src/kube/reflector.ts'
import {
  controllerRevisions,
  endpointSlices,
  leases,
  nodes,
  pods,
  type Resource,
  resourceName,
  services,
} from '../../../src/kube/resources.ts'
import { createStore, type Store } from '../../../src/kube/store.ts'
import type { Objects } from '../../../src/kube/testing/api-server.ts'

export interface Mirror {
  readonly objects: Objects
  /** Waits for all writes that no caller awaits; throws the first unexpected error. */
  settled(): Promise<void>
}

const said = { added: 'ADDED', updated: 'MODIFIED', deleted: 'DELETED' } as const

/** All kinds of objects that a round creates. */
export const kinds: readonly Resource<KubeObject>[] = [
  ...[pods, leases, services, endpointSlices, controllerRevisions, backupPodSets, nodeReports],
  ...[migrations, nodes],
]

/** Resolves when all existing objects are known. */
export async function createMirror(api: Api, signal: AbortSignal): Promise<Mirror> {
  const stores = new Map<string, Store<KubeObject>>()
  const writes = new Set<Promise<void>>()
  const failures: unknown[] = []
  for (const resource of kinds) {
    const store = createStore<KubeObject>()
    stores.set(resourceName(resource), store)
    const reflector = createReflector({ api, resource, store, clock, random, log })
    void reflector.run(signal).catch((error: unknown) => failures.push(error))
    await reflector.synced(signal)
  }
  const storeOf = (resource: Resource<KubeObject>): Store<KubeObject> => {
    const store = stores.get(resourceName(resource))
    if (store === undefined) throw new Error(`${resourceName(resource)} are not watched`)
    return store
  }
  const write = (asked: Promise<unknown>) => {
    const done = asked
      .then(
        () => undefined,
        (error: unknown) => {
          // The writer acts on slightly stale objects, so its write may come too late.
          if (!signal.aborted && !isKubeError(error, 'NotFound', 'Conflict')) failures.push(error)
        },
      )
      .finally(() => writes.delete(done))
    writes.add(done)
  }
  return {
    objects: {
      find: <T extends KubeObject>(resource: Resource<T>, ref: Parameters<typeof keyOfRef>[0]) =>
        storeOf(resource).get(keyOfRef(ref)) as T | undefined,
      list: <T extends KubeObject>(resource: Resource<T>) =>
        storeOf(resource).list() as unknown as readonly T[],
      create: (resource, body, namespace) => write(api.create(resource, body, { namespace })),
      patch: (resource, ref, type, body, subresource) =>
        write(api.patch(resource, ref, { type, body }, { subresource })),
      bind({ namespace, name }, node) {
        const target = { apiVersion: 'v1', kind: 'Node', name: node }
        const body = { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target }
        write(api.request('POST', `/api/v1/namespaces/${namespace}/pods/${name}/binding`, { body }))
      },
      delete: (resource, ref, preconditions, gracePeriodSeconds) =>
        write(api.delete(resource, ref, { ...preconditions, gracePeriodSeconds })),
      subscribe(listener) {
        for (const [name, store] of stores)
          store.subscribe(change => {
            const { object, old } = change
            listener(name, { type: said[change.type], object, old })
          })
      },
    },
    async settled() {
      await Promise.all(writes)
      if (failures.length > 0) throw failures[0]
    },
  }
}

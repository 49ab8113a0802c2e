import { describe, expect, it } from 'vitest'
import { type BackupPodSet, type BackupPodSetStatus, backupPodSets } from '../api/backuppodset.ts'
import { annotations, labels, type PodKind } from '../api/labels.ts'
import { createFakeClock } from '../kube/clock.ts'
import { KubeError } from '../kube/errors.ts'
import type { Pod } from '../kube/resources.ts'
import { createStore } from '../kube/store.ts'
import { fakeApi, makeObject } from '../kube/testing/fake-api.ts'
import { createPendingDeletions } from '../slot/act/pending-deletions.ts'
import type { SetEvent } from './action-events.ts'
import { podIndexes } from './pod-indexes.ts'
import { reconcile } from './reconcile.ts'
import { createReporter } from './report.ts'
import { makeActDeps } from './testing/context.ts'
import { makeReconcileContext, makeReconcileDeps } from './testing/reconcile.ts'

const good = { replicas: 2, hotBackups: 1, template: { spec: { containers: [{ name: 'app', image: 'a' }] } } }
const setOf = (spec: object, generation: number, status?: BackupPodSetStatus): BackupPodSet => ({
  metadata: { name: 'web', namespace: 'default', uid: 'set', resourceVersion: '1', generation },
  spec: spec as BackupPodSet['spec'],
  ...(status && { status }),
})
const podOf = (name: string, kind: PodKind, slot?: number): Pod => ({
  metadata: {
    name,
    namespace: 'default',
    ...{ uid: name, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
    labels: {
      [labels.set]: 'web',
      [labels.type]: kind,
      ...(slot !== undefined && { [labels.slot]: `${slot}` }),
    },
    annotations: { [annotations.epoch]: '1' },
    ownerReferences: [
      {
        apiVersion: 'backup.example.com/v1alpha1',
        ...{ kind: backupPodSets.kind, name: 'web', uid: 'set', controller: true },
      },
    ],
  },
  spec: { containers: [] },
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
})

/** A set and its pods under an operator that has just started; lists all its writes. */
function world(pods: readonly Pod[], current: BackupPodSet) {
  const sets = createStore<BackupPodSet>()
  const cache = createStore<Pod>({ indexes: podIndexes })
  for (const pod of pods) cache.upsert(pod)
  const clock = createFakeClock()
  const writes: string[] = []
  const notices: SetEvent[] = []
  const api = fakeApi({
    create: async (_, body) => {
      const { metadata, spec } = body as Pod
      writes.push(`create ${metadata.labels?.[labels.type]} of ${spec?.containers[0]?.image}`)
      return makeObject(body)
    },
    patch: async (_, { name }, { body }) => {
      const { [labels.type]: kind, [labels.slot]: slot } = body.metadata?.labels ?? {}
      writes.push(`${name} becomes ${kind} ${slot}`)
      const old = pods.find(({ metadata }) => metadata.name === name)
      if (old === undefined) throw new KubeError('NotFound', name)
      const merged = { ...old.metadata.labels, ...body.metadata?.labels }
      return { ...old, metadata: { ...old.metadata, labels: merged } }
    },
    delete: async (_, { name }) => {
      writes.push(`delete ${name}`)
    },
    replace: async (_, __, body) => {
      const set = body as BackupPodSet
      const written = {
        ...set,
        metadata: { ...set.metadata, resourceVersion: `${Number(set.metadata.resourceVersion) + 1}` },
      }
      sets.upsert(written)
      return written
    },
  })
  const nothing = () => undefined
  const pendingDeletions = createPendingDeletions(nothing)
  const deps = makeReconcileDeps({
    ...{ sets, pods: cache, clock, record: { reporter: createReporter(api, clock) } },
    isDeleted: pendingDeletions.has,
    notify: (_, told) => notices.push(...told),
    act: makeActDeps(clock, sets, { api, urgentApi: api, pods: cache, pendingDeletions }),
  })
  sets.upsert(current)
  const conditions = () =>
    sets
      .get('default/web')
      ?.status?.conditions?.map(({ type, status, reason }) => `${type} ${status} ${reason}`)
  const pass = () => reconcile(deps, 'default/web', makeReconcileContext())
  return { sets, cache, clock, writes, notices, conditions, pass }
}

const running = { observedGeneration: 1, replicas: 2, hotbackups: 1, coldbackups: 0 }
const broken = { ...good, antiAffinity: 'OfALaterVersion' }

describe('a set whose spec is refused while its primaries run', () => {
  it('R21: a backup takes over also after a restart, and nothing is made or deleted', async () => {
    const pods = [podOf('p0', 'primary', 0), podOf('h', 'hotbackup')]
    const { pass, writes, conditions, notices } = world(pods, setOf(broken, 2, running))
    await pass()
    expect(writes).toEqual(['h becomes primary 1'])
    expect(conditions()).toEqual(
      expect.arrayContaining(['Ready False InvalidValue', 'Degraded True InvalidValue']),
    )
    await pass()
    expect(notices.filter(({ action }) => action === 'Validate')).toHaveLength(1)
  })

  it('R21: what this process had accepted stays in force: it fails over and refills, of the template before', async () => {
    const pods = [podOf('p0', 'primary', 0), podOf('p1', 'primary', 1), podOf('h', 'hotbackup')]
    const { pass, writes, sets, cache } = world(pods, setOf(good, 1, running))
    await pass()
    writes.length = 0
    const template = { spec: { containers: [{ name: 'app', image: 'another' }] } }
    const { status } = sets.get('default/web') ?? {}
    sets.upsert(setOf({ ...broken, replicas: 0, template }, 2, status))
    cache.remove('default/p1')
    await pass()
    expect(writes).toEqual(['h becomes primary 1', 'create hotbackup of a'])
    expect(sets.get('default/web')?.status).toMatchObject({
      observedGeneration: 2,
      summary: { replicas: '2/2' },
    })
  })

  it('R21: a refusal that changes only its reason is written, although later', async () => {
    const { pass, sets, conditions, clock } = world([], setOf(broken, 1))
    await pass()
    const { status } = sets.get('default/web') ?? {}
    sets.upsert(setOf({ ...good, template: undefined }, 1, status))
    const { requeueAfterMs = 0 } = await pass()
    expect(requeueAfterMs).toBeGreaterThan(0)
    await clock.advance(requeueAfterMs)
    await pass()
    expect(conditions()).toContain('Degraded True TemplateMissing')
  })
})

import { describe, expect, it } from 'vitest'
import type { BackupPodSet } from '../../api/backuppodset.ts'
import { evictionCostAnnotation, koordinatorQosLabel } from '../../api/pod-migration-job.ts'
import type { KubeObject } from '../../kube/object.ts'
import type { Deployment, Pod, PodDisruptionBudget, ReplicaSet, StatefulSet } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import { disruptionBudgetsIn, podFacts, workloadFacts } from './pod-facts.ts'
import { withoutSpec } from './world-caches.ts'

const meta = (name: string, more: object = {}) => ({
  ...{ name, namespace: 'shop', uid: `uid-${name}`, resourceVersion: '1', generation: 1, ...more },
})
const owned = (kind: string, name: string) => ({
  ownerReferences: [{ apiVersion: 'apps/v1', kind, name, uid: `uid-${name}`, controller: true }],
})
const pod = (name: string, owner: object, spec: object = {}, metadata: object = {}): Pod => ({
  metadata: meta(name, { ...owner, ...metadata }),
  spec: { containers: [{ name: 'app', image: 'app' }], nodeName: 'n1', ...spec },
  status: { phase: 'Running', qosClass: 'Burstable', conditions: [{ type: 'Ready', status: 'True' }] },
})

function stores({
  pods = [],
  replicaSets = [],
  deployments = [],
  budgets = [],
  sets = [],
}: {
  readonly pods?: readonly Pod[]
  readonly replicaSets?: readonly ReplicaSet[]
  readonly deployments?: readonly Deployment[]
  readonly budgets?: readonly PodDisruptionBudget[]
  readonly sets?: readonly BackupPodSet[]
}) {
  const storeOf = <T extends KubeObject>(objects: readonly T[]) => {
    const store = createStore<T>()
    store.replace(objects, 1n)
    return store
  }
  return {
    // As the caches keep them.
    pods: storeOf(pods.map(withoutSpec)),
    ...{ replicaSets: storeOf(replicaSets), deployments: storeOf(deployments) },
    ...{ statefulSets: storeOf<StatefulSet>([]), disruptionBudgets: storeOf(budgets) },
    sets: storeOf(sets),
  }
}

const replicaSet: ReplicaSet = { metadata: meta('web-1', owned('Deployment', 'web')) }
const deployment = (status: object, replicas = 2): Deployment => ({
  metadata: meta('web'),
  spec: { replicas, selector: {}, template: {} },
  status: { observedGeneration: 1, ...status },
})

describe('PJ15: the workload of a pod', () => {
  const pods = [pod('a', owned('ReplicaSet', 'web-1')), pod('b', owned('ReplicaSet', 'web-1'))]
  const facts = (given: Parameters<typeof stores>[0]) => {
    const all = stores(given)
    const found = podFacts(all)
    return { pod: found.get('shop/a'), workload: workloadFacts(found, all).get('Deployment/shop/web') }
  }

  it('is the Deployment behind its ReplicaSet, with all its pods', () => {
    const done = { replicas: 2, updatedReplicas: 2 }
    const { pod, workload } = facts({ pods, replicaSets: [replicaSet], deployments: [deployment(done, 3)] })
    expect(pod?.owner).toEqual({ type: 'workload', kind: 'Deployment', key: 'Deployment/shop/web' })
    expect(workload).toEqual({
      desired: 3,
      isRolling: true,
      healthy: new Set(['uid-a', 'uid-b']),
      unhealthy: new Set(),
    })
  })

  it('is unknown as long as the ReplicaSet is, or another one has its name', () => {
    expect(facts({ pods }).pod?.owner).toEqual({ type: 'unknown', name: 'ReplicaSet web-1' })
    const other = { ...replicaSet, metadata: { ...replicaSet.metadata, uid: 'another' } }
    expect(facts({ pods, replicaSets: [other] }).pod?.owner.type).toBe('unknown')
  })

  it('PJ29: rolls out while pods of the old revision are there, or its controller has not seen its last change', () => {
    const isRolling = (status: object) =>
      facts({ pods, replicaSets: [replicaSet], deployments: [deployment(status)] }).workload?.isRolling
    expect(isRolling({ replicas: 2, updatedReplicas: 2 })).toBe(false)
    expect(isRolling({ replicas: 3, updatedReplicas: 2 })).toBe(true)
    expect(isRolling({ replicas: 2, updatedReplicas: 1 })).toBe(true)
    expect(isRolling({ replicas: 2, updatedReplicas: 2, observedGeneration: 0 })).toBe(true)
  })
})

describe('PJ15: a BackupPodSet', () => {
  it('PJ29: rolls out while pods of the old revision are there, or the operator has not seen its last change', () => {
    const isRolling = (status: BackupPodSet['status'], more: object = {}) => {
      const spec = { template: {}, replicas: 1, hotBackups: 1, ...more }
      const own = { ...meta('web'), generation: 1 }
      const all = stores({
        pods: [pod('a', owned('BackupPodSet', 'web'))],
        sets: [{ metadata: own, spec, ...(status && { status }) }],
      })
      return workloadFacts(podFacts(all), all).get('BackupPodSet/shop/web')?.isRolling
    }
    const seen = { observedGeneration: 1, replicas: 1, hotbackups: 1 }
    expect(isRolling(undefined)).toBe(true)
    expect(isRolling({ observedGeneration: 0 })).toBe(true)
    expect(isRolling({ ...seen, updatedPods: 2 })).toBe(false)
    expect(isRolling({ ...seen, updatedPods: 1 })).toBe(true)
    // There, pods of the old revision stay for as long as their user likes.
    expect(isRolling({ ...seen, updatedPods: 1 }, { updateStrategy: { type: 'OnDelete' } })).toBe(false)
    expect(isRolling({ ...seen, updatedPods: 1 }, { checkpoint: {} })).toBe(false)
    // Nothing is kept of these primaries, so they roll.
    expect(isRolling({ ...seen, updatedPods: 1 }, { checkpoint: {}, hotBackup: { mode: 'Warm' } })).toBe(true)
  })
})

describe('facts of a pod', () => {
  const of = (spec: object, metadata: object = {}) =>
    podFacts(stores({ pods: [pod('a', {}, spec, metadata)] })).get('shop/a')

  it('volumes, priority, cost and class, as the cache keeps them', () => {
    expect(of({ volumes: [{ name: 'v', emptyDir: {} }] })).toMatchObject({
      hasLocalStorage: true,
      hasClaim: false,
    })
    expect(of({ volumes: [{ name: 'v', hostPath: { path: '/' } }] })).toMatchObject({ hasLocalStorage: true })
    const claim = { name: 'v', persistentVolumeClaim: { claimName: 'c' } }
    expect(of({ volumes: [claim] })).toMatchObject({ hasLocalStorage: false, hasClaim: true })
    expect(of({ volumes: [{ name: 'v', configMap: { name: 'c' } }] })).toMatchObject({
      hasLocalStorage: false,
    })
    expect(of({ priority: 2_000_000_000 })).toMatchObject({ isSystemCritical: true })
    expect(of({}, { annotations: { [evictionCostAnnotation]: '-3' } })).toMatchObject({ evictionCost: -3 })
    expect(of({})).toMatchObject({ qos: 'LS', owner: { type: 'none' }, isStatic: false })
    expect(of({}, { labels: { [koordinatorQosLabel]: 'LSE' } })).toMatchObject({ qos: 'LSE' })
    expect(of({}, { annotations: { 'kubernetes.io/config.mirror': 'x' } })).toMatchObject({ isStatic: true })
  })

  it('the disruption budgets of its namespace that select it; a missing selector selects none, an empty one all', () => {
    const budget = (name: string, selector: object | undefined, more: object = {}): PodDisruptionBudget => ({
      metadata: meta(name, more),
      spec: { ...(selector && { selector }) },
      status: {
        observedGeneration: 1,
        disruptionsAllowed: 2,
        currentHealthy: 3,
        desiredHealthy: 1,
        expectedPods: 3,
      },
    })
    const budgets = [
      budget('all', {}),
      budget('none', undefined),
      budget('mine', { matchLabels: { app: 'a' } }),
      budget('other', { matchLabels: { app: 'b' } }),
      budget('elsewhere', {}, { namespace: 'another' }),
    ]
    const labelled = pod('a', {}, {}, { labels: { app: 'a' } })
    expect(podFacts(stores({ pods: [labelled], budgets })).get('shop/a')?.disruptionBudgets).toEqual([
      'shop/all',
      'shop/mine',
    ])
    expect(disruptionBudgetsIn(budgets).get('shop/mine')).toMatchObject({ isCurrent: true, allowed: 2 })
    const changed = budget('mine', {}, { generation: 2 })
    expect(disruptionBudgetsIn([changed]).get('shop/mine')).toMatchObject({ isCurrent: false })
  })
})

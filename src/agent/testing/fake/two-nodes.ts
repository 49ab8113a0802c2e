/** Two nodes with one slot: pod `p` on node `a` is its primary, and pod `h` on node `b` its heir. */
import { afterEach, beforeEach, expect, vi } from 'vitest'
import { labels } from '../../../api/labels.ts'
import {
  holdInitContainer,
  podConditions,
  probesAnnotation,
  savedAnnotation,
} from '../../../api/pod-contract.ts'
import type { SlotLease } from '../../../api/slot-lease.ts'
import type { Pod } from '../../../kube/resources.ts'
import { createFakeCluster, type FakeCluster } from './cluster.ts'
import { createFakeMemory, dispose, type FakeMemory } from './memory.ts'
import { type FakeAgent, startFakeAgent } from './node.ts'
import { lease, policy } from './snapshots.ts'

const app = { name: 'app', image: 'web:1', ports: [{ containerPort: 80 }] }

/** Marks that the operator writes on pods, so that agents need to know nothing about a set's template. */
const marks = (probes?: object) => ({
  labels: { [labels.restoreHash]: policy().restoreHash },
  annotations: {
    [savedAnnotation]: 'app',
    ...(probes && { [probesAnnotation]: JSON.stringify({ app: probes }) }),
  },
})

/** A pod of the set `web` as the API server has it; all kinds but `primary` are understudies. */
export function podOf(
  name: string,
  type: string,
  over: { containerId?: string; deleted?: boolean; probes?: object } = {},
): Pod {
  const isUnderstudy = type !== 'primary'
  const marked = marks(isUnderstudy ? over.probes : undefined)
  return {
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      resourceVersion: '1',
      labels: {
        ...{ [labels.set]: 'web', [labels.type]: type, ...marked.labels },
        ...(isUnderstudy ? {} : { [labels.slot]: '0' }),
      },
      annotations: marked.annotations,
      ...(over.deleted ? { deletionTimestamp: '2030-01-01T00:00:00Z' } : {}),
    },
    spec: {
      containers: [isUnderstudy ? app : { ...app, ...over.probes }],
      ...(isUnderstudy ? { initContainers: [{ name: holdInitContainer }] } : {}),
    },
    status: {
      phase: 'Running',
      podIP: isUnderstudy ? '10.0.0.2' : '10.0.0.1',
      conditions: [{ type: 'Ready', status: isUnderstudy ? 'False' : 'True' }],
      containerStatuses: [
        {
          ...{ name: 'app', image: 'web:1', imageID: 'sha256:1', ready: true, restartCount: 0 },
          containerID: over.containerId ?? `containerd://${name}`,
          state: { running: { startedAt: '2020-01-01T00:00:00Z' } },
        },
      ],
    },
  }
}

/** The slot of pod `p` on node `a`, with the heir `h` on node `b`. */
export const atFirst = (): SlotLease =>
  lease({ holders: ['b'], heir: { name: 'h', uid: 'uid-h', ip: '10.0.0.2' }, node: 'a' })
/** The same slot once `h` was called. */
export const called = (): SlotLease =>
  lease({ holder: { name: 'h', uid: 'uid-h' }, epoch: 2, node: 'b', heir: undefined, holders: [] })

export interface TwoNodes {
  readonly cluster: FakeCluster
  readonly a: FakeMemory
  readonly b: FakeMemory
}

/** Makes new nodes for each test, and ends their agents after it. @param use receives them. */
export function useTwoNodes(use: (nodes: TwoNodes) => void) {
  let cluster: FakeCluster
  let a: FakeMemory
  let b: FakeMemory
  const agents = new Set<FakeAgent>()
  const start = async (
    node: string,
    memory: FakeMemory,
    ...rest: Parameters<typeof startFakeAgent> extends [unknown, unknown, unknown, ...infer R] ? R : never
  ) => {
    const agent = await startFakeAgent(cluster, node, memory, ...rest)
    agents.add(agent)
    return agent
  }
  const stop = async (agent: FakeAgent) => {
    agents.delete(agent)
    await agent.stop()
  }
  const serving = (node: string, name: string) => cluster.condition(node, name, podConditions.serving)
  const frozen = () => b.clones.get('uid-h')
  /** Resolves when the present memory is frozen in the understudy and the holder's report says so. */
  const untilNewerElsewhere = () =>
    vi.waitFor(() =>
      expect(cluster.condition('b', 'h', podConditions.understudy)).toMatchObject({
        reason: 'RestoreFailed',
        message: expect.stringContaining('newer memory'),
      }),
    )
  const untilFrozen = (word: string) =>
    vi.waitFor(() => {
      expect(frozen()?.word).toBe(word)
      expect(cluster.reports.get('b')?.status?.slots[0]?.usable).toBe('Frozen')
    })
  beforeEach(async () => {
    cluster = createFakeCluster(['a', 'b', 'c'])
    a = await createFakeMemory()
    b = await createFakeMemory()
    a.running.set('uid-p', 'one')
    cluster.put('a', podOf('p', 'primary'))
    cluster.put('b', podOf('h', 'hotbackup'))
    cluster.setLease(atFirst())
    use({ cluster, a, b })
  })
  afterEach(async () => {
    await Promise.all([...agents].map(stop))
    await Promise.all([dispose(a), dispose(b)])
  })
  const stopAll = async () => {
    for (const agent of [...agents]) await stop(agent)
  }
  return { start, stop, stopAll, serving, frozen, untilFrozen, untilNewerElsewhere }
}

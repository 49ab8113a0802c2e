/** A client requests a checkpoint by an annotation on the primary. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { annotations, labels } from '../../api/labels.ts'
import { holdInitContainer } from '../../api/pod-contract.ts'
import type { Pod } from '../../kube/resources.ts'
import { createFakeCluster, type FakeCluster } from '../testing/fake/cluster.ts'
import { createFakeMemory, dispose, type FakeMemory } from '../testing/fake/memory.ts'
import { type FakeAgent, startFakeAgent } from '../testing/fake/node.ts'
import { lease } from '../testing/fake/snapshots.ts'

let cluster: FakeCluster
let memory: FakeMemory
let agent: FakeAgent

const podOf = (name: string, type: string, request?: string): Pod => ({
  metadata: {
    ...{ name, namespace: 'default', uid: `uid-${name}`, resourceVersion: '1' },
    labels: {
      [labels.set]: 'web',
      [labels.type]: type,
      ...(type === 'primary' ? { [labels.slot]: '0' } : {}),
    },
    annotations: request === undefined ? {} : { [annotations.checkpointRequested]: request },
  },
  spec: {
    containers: [{ name: 'app' }],
    ...(type === 'hotbackup' ? { initContainers: [{ name: holdInitContainer }] } : {}),
  },
  status: {
    ...{ phase: 'Running', podIP: '10.0.0.1', conditions: [{ type: 'Ready', status: 'True' }] },
    containerStatuses: [
      {
        ...{ name: 'app', image: 'web:1', imageID: 'sha256:1', ready: true, restartCount: 0 },
        ...{ containerID: `containerd://${name}`, state: { running: { startedAt: '2020-01-01T00:00:00Z' } } },
      },
    ],
  },
})

const reported = () => {
  const slot = cluster.reports.get('a')?.status?.slots[0]
  return { generation: slot?.generation, answered: slot?.answeredRequest }
}
const shows = (generation: number, answered: string | undefined) =>
  vi.waitFor(() => expect(reported()).toEqual({ generation, answered }))

beforeEach(async () => {
  cluster = createFakeCluster(['a', 'b'])
  memory = await createFakeMemory()
  // The pace takes no checkpoint of its own during the test.
  cluster.writePolicy({ intervalMs: 3_600_000 })
  memory.running.set('uid-p', 'first')
  cluster.put('a', podOf('p', 'primary'))
  cluster.setLease(lease({ holders: ['b'], node: 'a' }))
  agent = await startFakeAgent(cluster, 'a', memory)
  await shows(1, undefined)
})
afterEach(async () => {
  await agent.stop()
  await dispose(memory)
})

it('each new word is one checkpoint at once, and is answered with its generation', async () => {
  cluster.put('a', podOf('p', 'primary', 'one'))
  await shows(2, 'one')
  // The same value again, and a change of another pod: no checkpoint is due.
  cluster.put('a', podOf('p', 'primary', 'one'))
  cluster.put('a', podOf('h', 'hotbackup'))
  cluster.put('a', podOf('p', 'primary', 'two'))
  await shows(3, 'two')
  expect(memory.counts.dumps).toBe(3)
})

it('an agent that starts anew answers what it finds', async () => {
  await agent.stop()
  cluster.put('a', podOf('p', 'primary', 'while-nobody-looked'))
  agent = await startFakeAgent(cluster, 'a', memory)
  await shows(2, 'while-nobody-looked')
})

it('a word that would fill up the report is none', async () => {
  cluster.put('a', podOf('p', 'primary', 'x'.repeat(65)))
  cluster.put('a', podOf('p', 'primary', 'with a space'))
  cluster.put('a', podOf('p', 'primary', 'good'))
  await shows(2, 'good')
})

it('only the report of the source answers', async () => {
  cluster.put('a', podOf('p', 'primary', 'one'))
  await shows(2, 'one')
  expect(cluster.reports.get('a')?.status?.slots).toMatchObject([{ role: 'source' }])
  cluster.setLease(lease({ holders: ['a'], node: 'b', epoch: 2, holder: { name: 'h', uid: 'uid-h' } }))
  await vi.waitFor(() => expect(cluster.reports.get('a')?.status?.slots).toMatchObject([{ role: 'holder' }]))
  expect(reported().answered).toBeUndefined()
})

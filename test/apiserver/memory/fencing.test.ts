import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { type BackupPodSet, backupPodSets } from '../../../src/api/backuppodset.ts'
import { labels } from '../../../src/api/labels.ts'
import { memoryAllowed } from '../../../src/api/memory-permission.ts'
import { nodeReports, silencesAnnotation } from '../../../src/api/node-report.ts'
import { parseNumberedSlotLease } from '../../../src/api/numbered-slot.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import { events, leases, namespaces, pods } from '../../../src/kube/resources.ts'
import { stateSilence } from '../../../src/slot/act/state-silence.ts'
import { eventually } from '../../support/eventually.ts'
import { type FakeKubelet, startFakeKubelet } from '../lib/fake-kubelet.ts'
import { startOperatorHere } from '../lib/operator-here.ts'
import { adminKubeconfig } from '../lib/plane.ts'
import { type FakeAgents, startFakeAgents } from './fake-agents.ts'

let api: Api
let kubelet: FakeKubelet
let agents: FakeAgents
let operator: AsyncDisposable
const namespace = `fencing-${randomBytes(4).toString('hex')}`
const source = 'fence-p'
const { signal } = new AbortController()
const startOperator = () => startOperatorHere(namespace, { agentNamespace: `${namespace}-agents` })

beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  for (const name of [namespace, `${namespace}-agents`])
    await api.create(namespaces, { metadata: { name, labels: memoryAllowed } })
  kubelet = startFakeKubelet(api, namespace, {
    place: ({ metadata }) => (metadata.labels?.[labels.type] === 'primary' ? source : 'fence-a'),
  })
  agents = await startFakeAgents(api, namespace, [source, 'fence-a'], { votes: true })
  operator = startOperator()
})
afterEach(async () => {
  agents.cutOff.clear()
  agents.unheard.clear()
  await agents.report()
})
afterAll(async () => {
  await operator[Symbol.asyncDispose]()
  await agents[Symbol.asyncDispose]()
  await kubelet[Symbol.asyncDispose]()
  await api.close()
})

const leaseOf = async (name: string) => {
  const { items } = await api.list(leases, { namespace, labelSelector: `${labels.set}=${name}` })
  const [lease] = items.flatMap(item => parseNumberedSlotLease(item) ?? [])
  if (lease === undefined) throw new Error(`${name} has no Lease`)
  return lease
}
const reportOf = async (name: string) => api.get(nodeReports, { name })
const silencesOf = async () =>
  Number((await reportOf(source)).metadata.annotations?.[silencesAnnotation] ?? 0)

/** Creates a set with one primary, whose sentinel has acknowledged its voters. */
async function armed(name: string, timeoutSeconds = 1) {
  const failover = { nodeTimeout: `${timeoutSeconds}s` }
  await api.create(
    backupPodSets,
    {
      ...{ apiVersion: 'backup.example.com/v1alpha1', kind: 'BackupPodSet', metadata: { name } },
      spec: {
        ...{ replicas: 1, hotBackups: 1, checkpoint: { copies: 1 }, failover },
        template: { spec: { containers: [{ name: 'app', image: 'app' }] } },
      },
    },
    { namespace },
  )
  return eventually(async () => {
    const lease = await leaseOf(name)
    const { status } = await api.get<BackupPodSet>(backupPodSets, { namespace, name })
    expect(status?.slots).toMatchObject([{ protection: 'Frozen' }])
    expect(lease).toMatchObject({ node: source, fence: { isArmed: true, timeoutMs: timeoutSeconds * 1_000 } })
    expect(lease.fence?.voters).toHaveLength(2)
    return lease
  })
}
/** Waits until another pod has the slot. */
const successorOf = (name: string, epoch: number) =>
  eventually(async () => {
    const lease = await leaseOf(name)
    expect(lease.epoch).toBe(epoch + 1)
    const { status } = await api.get<BackupPodSet>(backupPodSets, { namespace, name })
    expect(status?.lastFailover).toMatchObject({ slot: 0, reason: 'NodeLost', to: lease.holder.name })
    return lease
  })
const drop = (name: string) => api.delete(backupPodSets, { namespace, name })

it('D8.fenced: the voters of a silent node fence its primary off, the API server states it last, and the heir takes over', async () => {
  const before = await armed('lost')
  const silences = await silencesOf()
  agents.cutOff.add(source)
  agents.unheard.add(source)
  await agents.report()
  const after = await successorOf('lost', before.epoch)
  expect(after).toMatchObject({
    holder: { uid: before.heir?.uid },
    fence: { term: (before.fence?.term ?? 0) + 1 },
  })
  expect(await silencesOf()).toBe(silences + 1)
  await eventually(async () => {
    const { items } = await api.list(events, {
      namespace,
      fieldSelector: 'regarding.name=lost,reason=FailedOver',
    })
    expect(items[0]?.note).toContain(`${before.holder.name} (NodeLost)`)
  })
  // The former primary goes, although no agent says that it has stopped.
  await eventually(async () => {
    const { items: left } = await api.list(pods, { namespace, labelSelector: `${labels.set}=lost` })
    expect(left.filter(({ metadata }) => metadata.deletionTimestamp === undefined)).not.toContainEqual(
      expect.objectContaining({ metadata: expect.objectContaining({ uid: before.holder.uid }) }),
    )
  })
  await drop('lost')
})

it('D8.heard: a primary whose agent writes on keeps its slot, and gets a new term from voters that did not hear it', async () => {
  // Longer than a pause of this process: its agents write no report meanwhile.
  const before = await armed('heard', 5)
  const silences = await silencesOf()
  agents.unheard.add(source)
  const lease = await eventually(async () => {
    await agents.report()
    const now = await leaseOf('heard')
    expect(now.fence?.term).toBeGreaterThan(before.fence?.term ?? 0)
    return now
  })
  expect(lease).toMatchObject({ holder: before.holder, epoch: before.epoch })
  expect(await silencesOf()).toBe(silences)
  await drop('heard')
})

it('D8.heard: there is no statement of the API server once the agent has written, and one about a report as it is', async () => {
  const seen = await reportOf(source)
  const silences = await silencesOf()
  const state = ({ metadata: { uid, resourceVersion } }: typeof seen) =>
    stateSilence(
      { urgentApi: api, signal },
      { type: 'stateSilence', node: source, report: { uid, resourceVersion }, silences: silences + 1 },
    )
  await agents.report()
  await state(seen)
  expect(await silencesOf()).toBe(silences)
  const present = await reportOf(source)
  await state({ ...present, metadata: { ...present.metadata, uid: 'another' } })
  expect(await silencesOf()).toBe(silences)
  // The agent also writes by itself now and then, perhaps between these two.
  await eventually(async () => {
    await state(await reportOf(source))
    expect(await silencesOf()).toBe(silences + 1)
  })
})

it('D8.heir: the next operator promotes by a statement that an earlier one has made', async () => {
  const before = await armed('restarted')
  await operator[Symbol.asyncDispose]()
  agents.cutOff.add(source)
  agents.unheard.add(source)
  await agents.report()
  const { metadata } = await reportOf(source)
  const { uid, resourceVersion } = metadata
  const silences = (await silencesOf()) + 1
  await stateSilence(
    { urgentApi: api, signal },
    { type: 'stateSilence', node: source, report: { uid, resourceVersion }, silences },
  )
  operator = startOperator()
  expect(await successorOf('restarted', before.epoch)).toMatchObject({ holder: { uid: before.heir?.uid } })
  expect(await silencesOf()).toBe(silences)
  await drop('restarted')
})

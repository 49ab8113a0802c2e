/** Disruption budgets and Migrations of drains before a real API server, with agents and kubelets that a test plays. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type BackupPodSet, type BackupPodSetSpec, backupPodSets } from '../../../src/api/backuppodset.ts'
import { annotations, labels } from '../../../src/api/labels.ts'
import { memoryAllowed } from '../../../src/api/memory-permission.ts'
import { migrations } from '../../../src/api/migration.ts'
import { type Api, createApi } from '../../../src/kube/api.ts'
import { loadConnection } from '../../../src/kube/connection.ts'
import {
  events,
  namespaces,
  nodes,
  type Pod,
  podDisruptionBudgets,
  pods,
} from '../../../src/kube/resources.ts'
import { eventually } from '../../support/eventually.ts'
import { type FakeKubelet, startFakeKubelet } from '../lib/fake-kubelet.ts'
import { startOperatorHere } from '../lib/operator-here.ts'
import { adminKubeconfig } from '../lib/plane.ts'
import { type FakeAgents, startFakeAgents } from './fake-agents.ts'

let api: Api
let kubelet: FakeKubelet
let agents: FakeAgents
let operator: AsyncDisposable
const namespace = `drain-${randomBytes(4).toString('hex')}`
const names = ['p', 'a', 'b'].map(name => `${namespace}-${name}`)
const [primaries = '', ...others] = names

const startOperator = () => startOperatorHere(namespace, { agentNamespace: `${namespace}-agents` })

beforeAll(async () => {
  api = createApi({ connection: await loadConnection({ kubeconfig: adminKubeconfig() }) })
  for (const name of [namespace, `${namespace}-agents`])
    await api.create(namespaces, { metadata: { name, labels: memoryAllowed } })
  for (const name of names) await api.create(nodes, { metadata: { name } })
  const place = ({ metadata: { name, labels: own } }: Pod): string =>
    own?.[labels.type] === 'primary' ? primaries : (others[name.length % others.length] ?? '')
  kubelet = startFakeKubelet(api, namespace, { place })
  agents = await startFakeAgents(api, namespace, names)
  operator = startOperator()
})
afterAll(async () => {
  await operator[Symbol.asyncDispose]()
  await agents[Symbol.asyncDispose]()
  await kubelet[Symbol.asyncDispose]()
  for (const name of names) await api.delete(nodes, { name })
  await api.close()
})

interface Ref {
  readonly namespace: string
  readonly name: string
}

/** A set with one primary and one hot backup, whose memory is kept. */
async function covered(name: string, spec: Partial<BackupPodSetSpec> = {}): Promise<Ref> {
  const template = {
    metadata: { labels: { app: name } },
    spec: { containers: [{ name: 'app', image: 'app' }] },
  }
  const body = {
    apiVersion: 'backup.example.com/v1alpha1',
    kind: 'BackupPodSet',
    metadata: { name },
    spec: { replicas: 1, hotBackups: 1, template, checkpoint: {}, ...spec },
  }
  await api.create(backupPodSets, body, { namespace })
  await eventually(async () => {
    const { status } = await api.get<BackupPodSet>(backupPodSets, { namespace, name })
    expect([status?.readyReplicas, status?.readyHotbackups]).toEqual([1, 1])
  })
  return { namespace, name }
}

const podOf = async ({ name }: Ref, kind: string): Promise<string> => {
  const query = { namespace, labelSelector: `${labels.set}=${name},${labels.type}=${kind}` }
  const [pod] = (await api.list(pods, query)).items
  return pod?.metadata.name ?? ''
}

const budgetsOf = async (ref: Ref) =>
  (await api.list(podDisruptionBudgets, { namespace })).items
    .map(({ metadata }) => metadata.name)
    .filter(name => name.startsWith(ref.name))
const budgets = (ref: Ref, wanted: readonly string[]) =>
  eventually(async () => expect(await budgetsOf(ref)).toEqual(wanted))

const evict = (name: string) =>
  api.request('POST', `/api/v1/namespaces/${namespace}/pods/${name}/eviction`, {
    body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name } },
  })

describe('D17.away', () => {
  it('D17.away: the eviction of a primary is refused with 429 while no operator runs, and that of its hot backup is not', async () => {
    const ref = await covered('away')
    await budgets(ref, ['away-primaries'])
    await operator[Symbol.asyncDispose]()
    await expect(evict(await podOf(ref, 'primary'))).rejects.toMatchObject({ status: 429 })
    await expect(evict(await podOf(ref, 'hotbackup'))).resolves.toMatchObject({ status: 201 })
    operator = startOperator()
    await eventually(async () => {
      const { status } = await api.get<BackupPodSet>(backupPodSets, ref)
      expect(status?.readyHotbackups).toBe(1)
    })
  })

  it('a budget of a user takes its place, so that no pod has two, and an event says so', async () => {
    const ref = await covered('theirs')
    await budgets(ref, ['theirs-primaries'])
    const selector = { matchLabels: { app: 'theirs', type: 'primary' } }
    const mine = { metadata: { name: 'mine' }, spec: { minAvailable: 0, selector } }
    await api.create(podDisruptionBudgets, mine, { namespace })
    await budgets(ref, [])
    await eventually(async () => {
      const query = { namespace, fieldSelector: `regarding.name=${ref.name},reason=BudgetAbsent` }
      expect((await api.list(events, query)).items).toHaveLength(1)
    })
    await expect(evict(await podOf(ref, 'primary'))).rejects.toMatchObject({ status: 429 })
    await api.delete(podDisruptionBudgets, { namespace, name: 'mine' })
    await budgets(ref, ['theirs-primaries'])
  })

  it('a set that wants to be evicted, and one without memory, have no budget', async () => {
    const ref = await covered('evicted')
    await budgets(ref, ['evicted-primaries'])
    const spec = { checkpoint: { drain: 'Evict' } }
    await api.patch(backupPodSets, ref, { type: 'merge', body: { spec } })
    await budgets(ref, [])
    await expect(evict(await podOf(ref, 'primary'))).resolves.toMatchObject({ status: 201 })
    const plain = await covered('plain', { hotBackup: { mode: 'Warm' } })
    await budgets(plain, [])
    await expect(evict(await podOf(plain, 'primary'))).resolves.toMatchObject({ status: 201 })
  })

  it('a budget that somebody has weakened is put right', async () => {
    const ref = await covered('weak')
    await budgets(ref, ['weak-primaries'])
    const at = { namespace, name: 'weak-primaries' }
    const strong = (await api.get(podDisruptionBudgets, at)).spec
    await api.patch(podDisruptionBudgets, at, { type: 'merge', body: { spec: { minAvailable: 0 } } })
    await eventually(async () => expect((await api.get(podDisruptionBudgets, at)).spec).toEqual(strong))
  })
})

it('D17.rule: a cordon makes a Migration for each primary, an event says why a drain waits, and an uncordoning calls it off', async () => {
  const ref = await covered('cordoned', { paused: false })
  const primary = await podOf(ref, 'primary')
  // A paused set hands nothing over, so that the Migration waits.
  await api.patch(backupPodSets, ref, { type: 'merge', body: { spec: { paused: true } } })
  const cordon = (unschedulable: boolean) =>
    api.patch(nodes, { name: primaries }, { type: 'merge', body: { spec: { unschedulable } } })
  const drains = async () =>
    (await api.list(migrations, { namespace })).items.filter(({ spec }) => spec.source.name === primary)
  await cordon(true)
  await eventually(async () => {
    const [one] = await drains()
    expect(one?.metadata).toMatchObject({
      name: `${primary}-drain-1`,
      annotations: { [annotations.drainedNode]: primaries },
    })
    expect(one?.status?.conditions?.[0]?.reason).toBe('SetPaused')
  })
  await eventually(async () => {
    const query = { namespace, fieldSelector: `regarding.name=${ref.name},reason=DrainWaits` }
    const [told] = (await api.list(events, query)).items
    expect(told?.note).toContain(`${primary} has not left node ${primaries}: SetPaused`)
  })
  await cordon(false)
  await eventually(async () => expect(await drains()).toEqual([]))
})

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kill } from 'node:process'
import { describe, expect, inject, it } from 'vitest'
import { pidsOf } from '../../playground/pids.ts'
import { annotations, labels } from '../../src/api/labels.ts'
import { memoryPermission } from '../../src/api/memory-permission.ts'
import { migrations } from '../../src/api/migration.ts'
import { loadConnection } from '../../src/kube/connection.ts'
import { isKubeError } from '../../src/kube/errors.ts'
import { isReady } from '../../src/kube/ready.ts'
import { leases, namespaces, type Pod, pods, services } from '../../src/kube/resources.ts'
import { startFaultProxy } from '../apiserver/fault-proxy.ts'
import { startOperator } from '../apiserver/lib/operator-process.ts'
import { eventually } from '../support/eventually.ts'
import { rights } from '../unit/deploy/rights.ts'
import { operatorRequests } from './lib/audit.ts'
import { kubectl, needsNodes, playground } from './lib/cluster.ts'
import { provokeDrain } from './lib/provoke-drain.ts'
import { provokeMigratingPod } from './lib/provoke-migrating-pod.ts'
import { counterTemplate, counterWith, createWorld, replicas, system, type World } from './lib/world.ts'

const why = needsNodes()

const lease = ({ api }: World) => api.get(leases, { namespace: system, name: 'understudy-operator' })
const holder = async (world: World) => (await lease(world)).spec?.holderIdentity ?? ''

/** Between two terms no pod leads. */
const leaderOf = (world: World) =>
  eventually(async () => {
    const leader = await holder(world)
    const pod = (await replicas(world)).find(({ metadata }) => leader.startsWith(`${metadata.name}_`))
    if (pod === undefined) throw new Error(`no pod leads as ${leader}`)
    return { leader, pod }
  })

describe('F35: the operator as it is installed', () => {
  it('two replicas are ready, one leads, in a namespace that enforces restricted pods', async () => {
    await using world = await createWorld()
    await eventually(async () => expect((await replicas(world)).filter(isReady)).toHaveLength(2))
    const namespace = await kubectl('get', 'namespace', system, '-o', 'jsonpath={.metadata.labels}')
    expect(JSON.parse(namespace)).toMatchObject({ 'pod-security.kubernetes.io/enforce': 'restricted' })
    await leaderOf(world)
  })
})

describe.skipIf(why)(`the operator under attack${why ? ` (${why})` : ''}`, () => {
  it('killed in the moment of a failure: the standby leads and repairs, and never makes too many', async () => {
    await using world = await createWorld()
    const set = await world.createSet('standby', { replicas: 2, hotBackups: 1, coldBackups: 1 })
    const before = await set.settled(2, 1, 1)
    await eventually(async () => expect((await replicas(world)).filter(isReady)).toHaveLength(2))
    const { leader, pod } = await leaderOf(world)
    const pids = await pidsOf(pod.metadata.uid, 'node')
    expect(pids.length).toBeGreaterThan(0)
    const [lost] = before.primary
    if (!lost) throw new Error('no primary')
    for (const pid of pids) kill(pid, 'SIGKILL')
    await set.deletePod(lost)
    const after = await eventually(async () => {
      const now = await set.settled(2, 1, 1)
      if (now.primary.some(({ metadata }) => metadata.uid === lost.metadata.uid))
        throw new Error('not deleted yet')
      return now
    })
    expect(await holder(world)).not.toBe(leader)
    expect(after.primary.map(one => one.metadata.uid)).toContain(before.hotbackup[0]?.metadata.uid)
    expect(after.primary.map(one => one.metadata.labels?.[labels.slot]).sort()).toEqual(['0', '1'])
  })

  it('a power cut of a node: pods that were woken from cold are woken again when it is back', async () => {
    await using world = await createWorld()
    const cluster = await playground()
    // Not on the operator's node, whose loss is another case.
    const leader = (await replicas(world)).map(pod => pod.spec?.nodeName)
    const node = cluster.nodes.find(name => !leader.includes(name)) ?? cluster.nodes[0] ?? ''
    const set = await world.createSet('reboot', {
      replicas: 0,
      coldBackups: 1,
      failover: { unreadySeconds: 0, crashLoop: 'Ignore' },
      template: {
        ...counterTemplate,
        spec: { ...counterTemplate.spec, nodeSelector: { 'kubernetes.io/hostname': node } },
      },
    })
    await set.settled(0, 0, 1)
    await set.scale({ replicas: 1, coldBackups: 0 })
    const [primary] = (await set.settled(1, 0, 0)).primary
    const opened = primary?.metadata.annotations?.[annotations.openedGate]
    expect(opened).toMatch(/^containerd:/)
    await cluster.killNode(node)
    await cluster.startNode(node)
    await eventually(async () => {
      const [pod] = await set.pods('primary')
      expect(pod?.metadata.uid).toBe(primary?.metadata.uid)
      const now = pod?.metadata.annotations?.[annotations.openedGate]
      if (now === opened || !pod || !isReady(pod)) throw new Error('not woken again yet')
    }, 120_000)
  })
})

describe.skipIf(why)(`least privilege${why ? ` (${why})` : ''}`, () => {
  /** Uses rights that an ordinary run does not: adoption, and a server that cannot stream its initial lists. */
  async function provoke(world: World) {
    const set = await world.createSet('rights', { replicas: 1, hotBackups: 0 })
    const [pod] = (await set.settled(1, 0, 0)).primary
    if (!pod) throw new Error('no primary')
    const { name } = pod.metadata
    const label = (type: string) =>
      world.api.patch(
        pods,
        { namespace: world.namespace, name },
        { type: 'merge', body: { metadata: { labels: { type } } } },
      )
    await label('debug')
    await eventually(async () => expect((await set.pods('primary')).filter(isReady)).toHaveLength(1))
    await label('hotbackup')
    await eventually(async () => {
      const back = await world.api.get(pods, { namespace: world.namespace, name }).catch((error: unknown) => {
        if (isKubeError(error, 'NotFound')) return undefined
        throw error
      })
      // Adopted, and deleted again as surplus.
      if (back !== undefined && back.metadata.ownerReferences === undefined)
        throw new Error('not adopted yet')
    })

    const { kubeconfig } = inject('cluster')
    const token = (await kubectl('create', 'token', 'understudy-operator', '--namespace', system)).trim()
    const admin = await loadConnection({ kubeconfig })
    const { cert: _, key: __, ...tls } = (await admin.credentials()).tls
    const credentials = { headers: { authorization: `Bearer ${token}` }, tls }
    const proxy = await startFaultProxy({ ...admin, credentials: async () => credentials })
    const dir = await mkdtemp(join(tmpdir(), 'understudy-rights-'))
    try {
      await writeFile(join(dir, 'kubeconfig'), proxy.kubeconfig)
      proxy.status(422, {
        match: ({ query }) => query.get('sendInitialEvents') === 'true',
        count: 1000,
        reason: 'Invalid',
      })
      await using standby = startOperator(join(dir, 'kubeconfig'), system)
      await eventually(() => {
        const synced = standby.log.filter(line => line.includes('"msg":"synced"'))
        // Sets, pods, MigratingPods, Migrations, Leases of slots, reports of nodes, Services, EndpointSlices, nodes, earlier
        // templates, namespaces with memory, disruption budgets.
        expect(synced).toHaveLength(12)
      })
    } finally {
      await proxy.close()
      await rm(dir, { recursive: true })
    }
  }

  /** A set with memory and Services of its own: created, failed over, changed, and scaled down. */
  async function provokeMemory(world: World) {
    const ports = (targetPort: number) => [{ port: 80, targetPort }]
    const set = await world.createSet('kept', {
      replicas: 1,
      hotBackups: 1,
      // No retention: slots that are scaled down are forgotten at once, and the first template with them.
      checkpoint: { interval: '1s', retain: '0s' },
      service: { name: 'all-kept', perSlot: true, ports: ports(8080) },
    })
    const isProtected = async () =>
      expect((await set.get()).status?.slots?.[0]?.protection).toMatch(/Frozen|Staged/)
    await eventually(isProtected)
    const [lost] = await set.pods('primary')
    await set.deletePod(lost as Pod)
    await eventually(async () =>
      expect((await set.get()).status?.lastFailover?.from).toBe(lost?.metadata.name),
    )
    await eventually(isProtected)
    // Before it swaps, the operator asks for the report of the node of the primary.
    const [before] = await set.pods('primary')
    const { namespace, name = '' } = (before as Pod).metadata
    const asked = { metadata: { annotations: { [annotations.handoverRequested]: 'now' } } }
    await world.api.patch(pods, { namespace, name }, { type: 'merge', body: asked })
    await eventually(async () => {
      const slot = (await set.get()).status?.slots?.[0]
      expect(slot?.pod, JSON.stringify(slot)).not.toBe(name)
    })
    await eventually(isProtected)
    await set.patch({ service: { ports: ports(8081) } })
    const service = async () =>
      world.api.get(services, { namespace: world.namespace, name: 'all-kept' }).catch((error: unknown) => {
        if (isKubeError(error, 'NotFound')) return undefined
        throw error
      })
    await eventually(async () => expect((await service())?.spec?.ports?.[0]?.targetPort).toBe(8081))
    await set.patch({ service: null })
    await eventually(async () => expect(await service()).toBeUndefined())
    // After that no pod of the first template is left, so it is forgotten.
    await set.patch({ replicas: 0, hotBackups: 0, template: counterWith({ args: ['--another'] }) })
  }

  /** A set whose template names a claim. The claim does not exist, but the request for it uses the right. */
  async function provokeClaim(world: World) {
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'nowhere' } }]
    const set = await world.createSet('claiming', {
      replicas: 0,
      hotBackups: 0,
      checkpoint: {},
      template: counterWith({}, { volumes }),
    })
    await eventually(async () => {
      const { conditions = [] } = (await set.get()).status ?? {}
      expect(conditions.find(({ type }) => type === 'CheckpointReady')?.reason).toBe('ClaimMissing')
    })
  }

  /** Revokes the permission for memory of a set that has not begun yet. */
  async function provokeRefusal(world: World) {
    const set = await world.createSet('refused', { replicas: 0, hotBackups: 0, checkpoint: {} })
    await set.settled(0, 0, 0)
    const labelsOff = { [memoryPermission.label]: null }
    await world.api.patch(
      namespaces,
      { name: world.namespace },
      { type: 'merge', body: { metadata: { labels: labelsOff } } },
    )
    await eventually(async () => {
      const { conditions = [] } = (await set.get()).status ?? {}
      expect(conditions.find(({ type }) => type === 'Degraded')?.reason).toBe('MemoryNotAllowed')
    })
  }

  /** A Migration that fails, and is deleted soon after. */
  async function provokeMigration({ api, namespace }: World) {
    const spec = { source: { name: 'nobody' }, ttlSecondsAfterFinished: 0 }
    const { group, version, kind } = migrations
    const body = { apiVersion: `${group}/${version}`, kind, metadata: { namespace, name: 'nobody' }, spec }
    await api.create(migrations, body, { namespace })
    await eventually(async () => {
      const isGone = await api.get(migrations, { namespace, name: 'nobody' }).then(
        () => false,
        (error: unknown) => isKubeError(error, 'NotFound'),
      )
      expect(isGone).toBe(true)
    })
  }

  it('F35: nothing it asked for was denied, and nothing it may do was left unused', async () => {
    await using world = await createWorld()
    const set = await world.createSet('privilege', { replicas: 2, hotBackups: 1, coldBackups: 1 })
    const { primary } = await set.settled(2, 1, 1)
    await set.deletePod(primary[0] as Pod)
    await Promise.all([
      provoke(world),
      provokeMemory(world),
      provokeClaim(world),
      provokeMigration(world),
      provokeMigratingPod(world),
    ])
    // These disturb other sets: one cordons a node, the other revokes a permission of the namespace.
    await provokeDrain(world)
    await provokeRefusal(world)
    const { auditLogPath } = await playground()
    await eventually(async () => {
      const { used, denied, total } = await operatorRequests(auditLogPath)
      expect(total).toBeGreaterThan(50)
      expect(denied.join('\n')).toBe('')
      const unused = Object.values(rights)
        .flatMap(role => Object.keys(role))
        .filter(right => !used.has(right))
      expect(unused.filter(right => !accidental.includes(right))).toEqual([])
    })
  })
})

/** Rights that only an accident uses: see `only` in the table. */
const accidental = [
  '/pods get',
  'backup.example.com/nodereports patch',
  'events.k8s.io/events patch',
  'coordination.k8s.io/leases get',
  'discovery.k8s.io/endpointslices get',
]

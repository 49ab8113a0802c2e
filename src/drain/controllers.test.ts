/** Both controllers before caches that a test fills, and an API server that stores what they write. */
import { describe, expect, test } from 'vitest'
import type { BackupPodSet, CheckpointSpec, DrainMode } from '../api/backuppodset.ts'
import { annotations, labels, type PodKind } from '../api/labels.ts'
import type { Migration, MigrationPhase } from '../api/migration.ts'
import { type NumberedSlotLease, numberedSlotLeaseBody } from '../api/numbered-slot.ts'
import { kindLabels } from '../api/pod-kind.ts'
import { bySet, setsNamedBy } from '../api/set-label.ts'
import { createFakeClock } from '../kube/clock.ts'
import type { EventRecord } from '../kube/event-record.ts'
import { silentLog } from '../kube/log.ts'
import type { KubeObject } from '../kube/object.ts'
import { createQueue } from '../kube/queue.ts'
import { seededRandom } from '../kube/random.ts'
import type { Lease, Node, Pod, PodDisruptionBudget } from '../kube/resources.ts'
import { createStore } from '../kube/store.ts'
import { fakeApi } from '../kube/testing/fake-api.ts'
import { leaseIndexes } from '../slot/observe/slot-leases.ts'
import { makeHolder, makeLease } from '../slot/testing/slots.ts'
import { createBudgetController } from './budget-controller.ts'
import { budgetIndexes } from './budget-observe.ts'
import { createDrainController } from './controller.ts'

const namespace = 'default'

interface Start {
  readonly missing?: boolean
}

function scene({ missing = false }: Start = {}) {
  const clock = createFakeClock()
  const sets = createStore<BackupPodSet>()
  const pods = createStore<Pod>({ indexes: { [bySet]: setsNamedBy } })
  const leases = createStore<Lease>({ indexes: leaseIndexes })
  const nodes = createStore<Node>()
  const migrations = createStore<Migration>()
  const budgets = createStore<PodDisruptionBudget>({ indexes: budgetIndexes })
  const told: EventRecord[] = []
  let version = 1
  const meta = (name: string) => {
    version += 1
    return { namespace, name, uid: `uid-${name}`, resourceVersion: `${version}` }
  }
  const stored = (plural: string) => (plural === 'migrations' ? migrations : budgets)
  const put = (plural: string, object: KubeObject) => {
    if (plural === 'migrations') migrations.upsert(object as Migration)
    else budgets.upsert(object as PodDisruptionBudget)
    return object
  }
  const api = fakeApi({
    create: async ({ plural }, body) => {
      const made = { ...body, metadata: { ...body.metadata, ...meta(body.metadata?.name ?? '') } }
      return put(plural, made)
    },
    replace: async ({ plural }, { name }, body) =>
      put(plural, { ...body, metadata: { ...body.metadata, ...meta(name) } }),
    delete: async ({ plural }, { name }) => stored(plural).remove(`${namespace}/${name}`),
  })
  const shared = {
    ...{ api, sets, pods, leases, nodes, migrations, budgets, clock, log: silentLog },
    ...{ random: seededRandom(1), isMissing: () => missing },
    recorder: { record: (event: EventRecord) => void told.push(event), flush: async () => 0, close() {} },
  }
  const drains = createDrainController({ ...shared, queue: createQueue({ clock, name: 'drain' }) })
  const protects = createBudgetController({ ...shared, queue: createQueue({ clock, name: 'budget' }) })
  const stop = new AbortController()
  const running = [drains.run(stop.signal), protects.run(stop.signal)]

  const set = (drain?: DrainMode, checkpoint: CheckpointSpec | undefined = {}) =>
    sets.upsert({
      metadata: { ...meta('bps'), uid: 'set-uid' },
      spec: {
        ...{ replicas: 2, hotBackups: 2 },
        ...(checkpoint && { checkpoint: { ...checkpoint, ...(drain && { drain }) } }),
        template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'app' }] } },
      },
    })
  const pod = (name: string, kind: PodKind, node: string, slot?: number) =>
    pods.upsert({
      metadata: {
        ...meta(name),
        labels: {
          ...{ app: 'web', [labels.set]: 'bps', ...kindLabels(kind) },
          ...(slot !== undefined && { [labels.slot]: `${slot}` }),
        },
      },
      spec: { nodeName: node, containers: [] },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    })
  const lease = (name: string, slot: number, over: Partial<NumberedSlotLease> = {}) => {
    const body = numberedSlotLeaseBody(makeLease(makeHolder(name, slot), over))
    const owner = { apiVersion: 'v1', kind: 'BackupPodSet', name: 'bps', uid: over.owner ?? 'set-uid' }
    leases.upsert({
      ...body,
      metadata: { ...body.metadata, ...meta(body.metadata.name), ownerReferences: [owner] },
    })
  }
  const node = (name: string, unschedulable: boolean, notes: Readonly<Record<string, string>> = {}) => {
    const { namespace: _, ...metadata } = meta(name)
    nodes.upsert({ metadata: { ...metadata, annotations: notes }, spec: { unschedulable } })
  }
  const phase = (name: string, to: MigrationPhase) => {
    const now = migrations.get(`${namespace}/${name}`)
    if (now === undefined) throw new Error(`no ${name}`)
    const status = {
      ...{ phase: to, phaseTimes: [{ phase: to, at: new Date(clock.now()).toISOString() }] },
      conditions: [
        {
          ...({ type: 'Succeeded', status: 'False', reason: 'NoNode', message: 'no other node' } as const),
          ...{ lastTransitionTime: new Date(clock.now()).toISOString(), observedGeneration: 1 },
        },
      ],
    }
    migrations.upsert({ ...now, metadata: { ...now.metadata, ...meta(name) }, status })
  }
  /** Two primaries on one node, and two hot backups elsewhere. */
  const usual = (drain?: DrainMode) => {
    set(drain)
    pod('p0', 'primary', 'n1', 0)
    pod('p1', 'primary', 'n1', 1)
    pod('h0', 'hotbackup', 'n2')
    pod('h1', 'hotbackup', 'n3')
    lease('p0', 0)
    lease('p1', 1)
    for (const name of ['n1', 'n2', 'n3']) node(name, false)
  }
  const names = () => migrations.list().map(({ metadata }) => metadata.name)
  const specs = () =>
    Object.fromEntries(budgets.list().map(({ metadata, spec }) => [metadata.name, spec] as const))
  return {
    ...{ clock, sets, pods, leases, budgets, migrations, told, set, pod, lease, node, phase, usual, meta },
    ...{ names, specs },
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('over'))
      await Promise.all(running)
    },
  }
}

describe('D17.rule', () => {
  test('a cordon makes a Migration for each primary with memory of the node, and for nothing else', async () => {
    await using at = scene()
    at.usual()
    at.pod('p9', 'primary', 'n1', 9)
    await at.clock.advance(2_000)
    expect(at.names()).toEqual([])
    at.node('n1', true)
    await at.clock.advance(2_000)
    expect(at.names().sort()).toEqual(['p0-drain-1', 'p1-drain-1'])
    expect(at.migrations.get('default/p0-drain-1')).toMatchObject({
      metadata: {
        annotations: { [annotations.drainedNode]: 'n1' },
        ownerReferences: [{ kind: 'BackupPodSet', name: 'bps', uid: 'set-uid' }],
      },
      spec: { source: { name: 'p0', uid: 'uid-p0' }, priority: 'SystemCritical' },
    })
    expect(at.told.map(({ reason }) => reason)).toEqual(['Draining', 'Draining'])
    at.node('n2', true)
    await at.clock.advance(2_000)
    expect(at.names()).toHaveLength(2)
  })

  test('one that fails is repeated after a pause, and the event says why', async () => {
    await using at = scene()
    at.usual()
    at.node('n1', true)
    await at.clock.advance(2_000)
    at.phase('p0-drain-1', 'Failed')
    await at.clock.advance(14_000)
    expect(at.names()).not.toContain('p0-drain-2')
    await at.clock.advance(2_000)
    expect(at.names()).toContain('p0-drain-2')
    expect(at.told.at(-1)).toMatchObject({
      ...{ type: 'Warning', reason: 'DrainWaits' },
      note: expect.stringContaining('NoNode: no other node'),
    })
  })

  test('a node that is uncordoned calls off those whose pod still runs, and no other', async () => {
    await using at = scene()
    at.usual()
    at.node('n1', true)
    await at.clock.advance(2_000)
    at.phase('p1-drain-1', 'Stopping')
    at.node('n1', false)
    await at.clock.advance(2_000)
    expect(at.names()).toEqual(['p1-drain-1'])
  })

  test.each<readonly [string, (at: ReturnType<typeof scene>) => void]>([
    ['its set lets it be evicted', at => at.set('Evict')],
    ['nothing of it is saved', at => at.lease('p0', 0, { unsaved: true })],
    ['its slot is kept for later only', at => at.lease('p0', 0, { retainedSince: '2030-01-01T00:00:00Z' })],
    ['another pod has its slot', at => at.lease('other', 0)],
    ['the Lease is of an earlier set', at => at.lease('p0', 0, { owner: 'earlier' })],
    [
      'a user moves it already',
      at => at.migrations.upsert({ metadata: at.meta('mine'), spec: { source: { name: 'p0' } } }),
    ],
  ])('no Migration is made for a primary if %s', async (_, given) => {
    await using at = scene()
    at.usual()
    given(at)
    at.node('n1', true)
    await at.clock.advance(2_000)
    expect(at.names()).not.toContain('p0-drain-1')
  })

  test('names that a user has taken are left, and a Migration of an earlier pod counts for nothing', async () => {
    await using at = scene()
    at.usual()
    at.migrations.upsert({
      ...{ metadata: at.meta('p0-drain-1'), spec: { source: { name: 'p0', uid: 'another' } } },
      status: { phase: 'Failed' },
    })
    at.node('n1', true)
    await at.clock.advance(2_000)
    expect(at.names()).toContain('p0-drain-2')
  })
})

describe('D17.budget', () => {
  test('a set with memory gets both budgets, and they follow the number of its hot backups', async () => {
    await using at = scene()
    at.usual()
    await at.clock.advance(2_000)
    expect(at.specs()).toEqual({
      'bps-primaries': {
        selector: { matchLabels: { [labels.set]: 'bps', type: 'primary' } },
        ...{ minAvailable: 2_147_483_647, unhealthyPodEvictionPolicy: 'IfHealthyBudget' },
      },
      'bps-hotbackups': {
        selector: { matchLabels: { [labels.set]: 'bps', type: 'hotbackup' } },
        ...{ minAvailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' },
      },
    })
    at.pods.remove('default/h1')
    await at.clock.advance(50_000)
    expect(at.specs()).toHaveProperty('bps-hotbackups')
    await at.clock.advance(20_000)
    expect(at.specs()).not.toHaveProperty('bps-hotbackups')
    at.pod('h2', 'hotbackup', 'n3')
    await at.clock.advance(2_000)
    expect(at.specs()).toHaveProperty('bps-hotbackups')
  })

  test('they end with the wish, or when nothing is saved any more', async () => {
    await using at = scene()
    at.usual()
    await at.clock.advance(2_000)
    at.set('Evict')
    await at.clock.advance(2_000)
    expect(at.specs()).toEqual({})
    at.set('Move')
    await at.clock.advance(2_000)
    expect(Object.keys(at.specs())).toHaveLength(2)
    at.lease('p0', 0, { unsaved: true })
    at.lease('p1', 1, { unsaved: true })
    await at.clock.advance(2_000)
    expect(at.specs()).toEqual({})
  })

  test('a budget of a user that selects primaries takes their place, and an event says so once', async () => {
    await using at = scene()
    at.usual()
    await at.clock.advance(2_000)
    at.budgets.upsert({
      metadata: at.meta('theirs'),
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'web', type: 'primary' } } },
    })
    await at.clock.advance(70_000)
    expect(Object.keys(at.specs()).sort()).toEqual(['bps-hotbackups', 'theirs'])
    expect(at.told.map(({ reason, note }) => [reason, note.includes('theirs')])).toEqual([
      ['BudgetAbsent', true],
    ])
    at.budgets.remove('default/theirs')
    await at.clock.advance(2_000)
    expect(Object.keys(at.specs()).sort()).toEqual(['bps-hotbackups', 'bps-primaries'])
  })

  test('a budget of a user counts before the first pod exists', async () => {
    await using at = scene()
    at.budgets.upsert({ metadata: at.meta('theirs'), spec: { maxUnavailable: 1, selector: {} } })
    at.set()
    at.lease('p0', 0)
    await at.clock.advance(2_000)
    expect(Object.keys(at.specs())).toEqual(['theirs'])
  })

  test('nothing is written while the budgets of users are not known', async () => {
    await using at = scene({ missing: true })
    at.usual()
    at.node('n1', true)
    await at.clock.advance(10_000)
    expect([at.specs(), at.names()]).toEqual([{}, []])
  })
})

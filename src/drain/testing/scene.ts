/** Both controllers before caches that a test fills, and an API server that stores what they write. */
import type { BackupPodSet, CheckpointSpec, DrainMode } from '../../api/backuppodset.ts'
import { labels, type PodKind } from '../../api/labels.ts'
import type { Migration, MigrationPhase } from '../../api/migration.ts'
import { type NumberedSlotLease, numberedSlotLeaseBody } from '../../api/numbered-slot.ts'
import { kindLabels } from '../../api/pod-kind.ts'
import { bySet, setsNamedBy } from '../../api/set-label.ts'
import { createFakeClock } from '../../kube/clock.ts'
import { KubeError } from '../../kube/errors.ts'
import type { EventRecord } from '../../kube/event-record.ts'
import { silentLog } from '../../kube/log.ts'
import type { KubeObject } from '../../kube/object.ts'
import { createQueue } from '../../kube/queue.ts'
import { seededRandom } from '../../kube/random.ts'
import type { Lease, Node, Pod, PodDisruptionBudget } from '../../kube/resources.ts'
import { createStore } from '../../kube/store.ts'
import { fakeApi } from '../../kube/testing/fake-api.ts'
import { leaseIndexes } from '../../slot/observe/slot-leases.ts'
import { makeHolder, makeLease } from '../../slot/testing/slots.ts'
import { createBudgetController } from '../budget-controller.ts'
import { budgetIndexes } from '../budget-observe.ts'
import { createDrainController } from '../controller.ts'

const namespace = 'default'

interface Start {
  /** The API server refuses every creation of that kind. */
  readonly refuses?: 'migrations' | 'poddisruptionbudgets'
  readonly missing?: boolean
}

export function scene({ missing = false, refuses }: Start = {}) {
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
      if (plural === refuses) throw new KubeError('Forbidden', 'exceeded quota')
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
  const phase = (name: string, to: MigrationPhase, reason = 'NoNode') => {
    const now = migrations.get(`${namespace}/${name}`)
    if (now === undefined) throw new Error(`no ${name}`)
    const status = {
      ...{ phase: to, phaseTimes: [{ phase: to, at: new Date(clock.now()).toISOString() }] },
      conditions: [
        {
          ...({ type: 'Succeeded', status: to === 'Failed' ? 'False' : 'Unknown' } as const),
          ...{ reason, message: 'no other node' },
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

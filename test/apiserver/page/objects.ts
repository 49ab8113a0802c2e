/** Sets with their pods, nodes and moves, as operator and agents would have written them. */
import { type BackupPodSetStatus, backupPodSets } from '../../../src/api/backuppodset.ts'
import { labels } from '../../../src/api/labels.ts'
import { type MigrationStatus, migrations } from '../../../src/api/migration.ts'
import { type NodeReportStatus, nodeReports, type SlotReport } from '../../../src/api/node-report.ts'
import { slotLeaseName } from '../../../src/api/numbered-slot.ts'
import { holdInitContainer, podConditions } from '../../../src/api/pod-contract.ts'
import type { LastFailover, SlotStatus } from '../../../src/api/slot-status.ts'
import type { Api } from '../../../src/kube/api.ts'
import type { KubeObject } from '../../../src/kube/object.ts'
import { apiVersionOf, type Pod, pods, type Resource } from '../../../src/kube/resources.ts'

const kindOf = <T extends KubeObject>(resource: Resource<T>) => ({
  apiVersion: apiVersionOf(resource),
  kind: resource.kind,
})

export const ago = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString()

export interface SetOptions {
  readonly slots: readonly SlotStatus[]
  readonly failovers?: readonly LastFailover[]
  readonly drills?: boolean
  readonly hotBackups?: number
}

const condition = (type: string, status: 'True' | 'False', reason: string) => ({
  ...{ type, status, reason, message: '', lastTransitionTime: ago(60), observedGeneration: 1 },
})

/** A slot whose primary `NAME-SLOT` runs on a node. */
export const slotOn = (
  name: string,
  slot: number,
  node: string,
  more: Partial<SlotStatus> = {},
): SlotStatus => ({
  ...{ slot, pod: `${name}-${slot}`, node, epoch: 1, ready: true, generation: 7, savedAt: ago(1) },
  ...{ usableOn: ['n2'], protection: 'Frozen', ...more },
})

export async function putSet(api: Api, namespace: string, name: string, options: SetOptions): Promise<void> {
  const { slots, drills = false, hotBackups = 1 } = options
  await api.create(
    backupPodSets,
    {
      ...kindOf(backupPodSets),
      metadata: { name, ...(drills && { annotations: { 'backup.example.com/drill': 'allowed' } }) },
      spec: {
        ...{ replicas: slots.length, hotBackups, checkpoint: { interval: '1s' } },
        template: { spec: { containers: [{ name: 'app', image: 'app' }] } },
      },
    },
    { namespace },
  )
  await tellSet(api, namespace, name, options)
}

/** Writes the status of a set. */
export async function tellSet(
  api: Api,
  namespace: string,
  name: string,
  { slots, failovers = [], hotBackups = 1 }: SetOptions,
): Promise<void> {
  const [lastFailover] = failovers
  const status: BackupPodSetStatus = {
    ...{
      observedGeneration: 1,
      replicas: slots.length,
      readyReplicas: slots.filter(({ ready }) => ready).length,
    },
    ...{ hotbackups: hotBackups, readyHotbackups: hotBackups, coldbackups: 0, gatedColdbackups: 0 },
    ...{ slots, failovers, ...(lastFailover && { lastFailover }) },
    conditions: [
      condition('Ready', 'True', 'AllInPlace'),
      condition('Progressing', 'False', 'Settled'),
      condition('Degraded', 'False', 'AsExpected'),
      condition('Paused', 'False', 'Running'),
      condition('CheckpointReady', 'True', 'AllProtected'),
    ],
  }
  await api.patch(
    backupPodSets,
    { namespace, name },
    { type: 'merge', body: { status } },
    { subresource: 'status' },
  )
}

/** Creates a pod of a set that is ready: a primary with a slot, or a hot backup that has memory frozen. */
export async function putPod(
  api: Api,
  namespace: string,
  set: string,
  { name, node, slot }: { readonly name: string; readonly node: string; readonly slot?: number },
): Promise<Pod> {
  const isPrimary = slot !== undefined
  const pod = await api.create<Pod>(
    pods,
    {
      ...{ apiVersion: 'v1', kind: 'Pod' },
      metadata: {
        name,
        labels: {
          ...{ type: isPrimary ? 'primary' : 'hotbackup', [labels.set]: set },
          ...(isPrimary && { [labels.slot]: String(slot) }),
        },
      },
      spec: {
        nodeName: node,
        terminationGracePeriodSeconds: 0,
        ...(isPrimary ? {} : { initContainers: [{ name: holdInitContainer, image: 'app' }] }),
        containers: [{ name: 'app', image: 'app' }],
      },
    },
    { namespace },
  )
  const told = isPrimary
    ? { type: 'Ready', status: 'True' }
    : { type: podConditions.understudy, status: 'True', reason: 'Frozen', message: '' }
  const status = { phase: 'Running', conditions: [told] }
  await api.patch(pods, { namespace, name }, { type: 'merge', body: { status } }, { subresource: 'status' })
  return pod
}

/** Creates the report of a node's agent. */
export async function putReport(api: Api, name: string, slots: readonly SlotReport[]): Promise<void> {
  await api.create(nodeReports, { ...kindOf(nodeReports), metadata: { name } })
  await tellReport(api, name, slots)
}

export async function tellReport(api: Api, name: string, slots: readonly SlotReport[]): Promise<void> {
  const status: NodeReportStatus = {
    ...{
      version: '0.1.0',
      address: '10.0.0.1:9443',
      fingerprint: 'ab'.repeat(32),
      kernel: '6.18',
      criu: '4.2',
    },
    ...{ architecture: 'x86_64', checks: [], ready: true, slots, updatedAt: ago(0) },
  }
  await api.patch(nodeReports, { name }, { type: 'merge', body: { status } }, { subresource: 'status' })
}

/** The report of a node that has the memory of a slot frozen in an understudy. */
export const frozenFor = (
  namespace: string,
  set: string,
  slot: number,
  understudyUid: string,
): SlotReport => ({
  ...{
    namespace,
    name: slotLeaseName(set, slot),
    incarnation: '0a1b2c3d',
    role: 'holder',
    generation: 8,
    epoch: 1,
  },
  ...{ usable: 'Frozen', understudyUid, takenAt: ago(0.5), bytes: 3_000_000 },
})

export const failoverOf = (slot: number, from: string, to: string, secondsAgo: number): LastFailover => ({
  ...{
    slot,
    from,
    to,
    reason: 'Died',
    seconds: 0.42,
    at: ago(secondsAgo),
    how: 'Frozen',
    generation: 7,
    stateAge: 0.6,
  },
  phases: { lease: 0.05, serving: 0.27, published: 0.1 },
})

export async function putMigration(
  api: Api,
  namespace: string,
  name: string,
  pod: string,
  status: MigrationStatus,
): Promise<void> {
  await api.create(
    migrations,
    { ...kindOf(migrations), metadata: { name }, spec: { source: { name: pod } } },
    { namespace },
  )
  await api.patch(
    migrations,
    { namespace, name },
    { type: 'merge', body: { status } },
    { subresource: 'status' },
  )
}

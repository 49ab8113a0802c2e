import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Heartbeats, NodeReport, SlotReport } from '../../../api/node-report.ts'
import { formatServingRecord, servingRecordAnnotation } from '../../../api/serving-record.ts'
import type { SlotKey } from '../../../api/slot-key.ts'
import { parseSlotLease, type SlotLease, slotLeaseBody, slotOfPod } from '../../../api/slot-lease.ts'
import type { SlotPolicy } from '../../../api/slot-policy.ts'
import type { GenerationStore } from '../../../checkpoint/store.ts'
import { systemClock as clock } from '../../../kube/clock.ts'
import { KubeError } from '../../../kube/errors.ts'
import type { Lease, Pod } from '../../../kube/resources.ts'
import { createStore, type MutableStore } from '../../../kube/store.ts'
import type { Inquiry, PodKey } from '../../observe/inquiry.ts'
import type { PodView } from '../../observe/snapshot.ts'
import { conditionsIn, type PodCondition } from '../../report/conditions.ts'
import type { Agree } from '../../tasks/agree.ts'
import type { PodCapabilities } from '../../tasks/task-context.ts'
import { policy } from './snapshots.ts'

/** The state of the API server, which all nodes see. */
export interface FakeCluster {
  readonly pods: Map<string, MutableStore<Pod>>
  readonly leases: MutableStore<Lease>
  readonly reports: MutableStore<NodeReport>
  readonly stores: Map<string, GenerationStore>
  /** Leases as the API server has them; `leases` has the versions that agents have seen. */
  readonly truth: Map<string, Lease>
  /** By node: how its agent answers uses of grants. */
  readonly agents: Map<string, Agree>
  /** By node: what reports say of the sentinel there. */
  readonly heartbeats: Map<string, Heartbeats>
  /** Uids of pods that exist without our labels. */
  readonly unlabelled: Set<string>
  /** Uids of pods that the kubelet does not call ready. */
  readonly unready: Set<string>
  /** True while the API server answers no request. */
  isAway: boolean
  /** The API server answers no write of a condition. */
  takesNoWrites: boolean
  /** The API server's word about the presence of a pod. Default: what the caches of the agents show. */
  presence: (() => Promise<boolean>) | undefined
  operatorLeads: boolean
  /** Puts or replaces a pod on a node. */
  put(node: string, pod: Pod): void
  /** Policy that the operator writes into every Lease; undefined: its version writes no policies. */
  policy: SlotPolicy | undefined
  setLease(lease: SlotLease, seen?: boolean): void
  /** Changes the policy, also in the Leases that exist. */
  writePolicy(over: Partial<SlotPolicy> | undefined): void
  pod(node: string, name: string): Pod | undefined
  condition(
    node: string,
    name: string,
    type: string,
  ): { status: string; reason?: string; message?: string } | undefined
}

export let version = 1

const nextVersion = () => String(version++)

export function createFakeCluster(nodes: readonly string[]): FakeCluster {
  const pods = new Map(nodes.map(node => [node, createStore<Pod>()]))
  const cluster: FakeCluster = {
    pods,
    leases: createStore(),
    reports: createStore(),
    stores: new Map(),
    truth: new Map(),
    agents: new Map(),
    heartbeats: new Map(),
    unlabelled: new Set(),
    unready: new Set(),
    isAway: false,
    takesNoWrites: false,
    presence: undefined,
    operatorLeads: true,
    policy: policy({ intervalMs: 200 }),
    put(node, pod) {
      pods.get(node)?.upsert({ ...pod, metadata: { ...pod.metadata, resourceVersion: nextVersion() } })
    },
    setLease(lease, seen = true) {
      const { policy: _, ...rest } = lease
      const said = cluster.policy && { policy: cluster.policy }
      const { metadata, spec } = slotLeaseBody({ ...rest, ...said })
      const body = { metadata: { ...metadata, uid: metadata.name, resourceVersion: nextVersion() }, spec }
      cluster.truth.set(`${metadata.namespace}/${metadata.name}`, body)
      if (seen) cluster.leases.upsert(body)
    },
    writePolicy(over) {
      cluster.policy = over && policy({ intervalMs: 200, ...over })
      for (const lease of cluster.truth.values()) {
        const said = parseSlotLease(lease)
        if (said) cluster.setLease(said)
      }
    },
    pod: (node, name) => pods.get(node)?.get(`default/${name}`),
    condition: (node, name, type) =>
      cluster.pod(node, name)?.status?.conditions?.find(condition => condition.type === type),
  }
  return cluster
}

export async function pull(
  cluster: FakeCluster,
  address: string,
  store: GenerationStore,
  slot: SlotKey,
  signal: AbortSignal,
) {
  for (;;) {
    signal.throwIfAborted()
    const next = cluster.stores.get(address)?.latest(slot)
    const ours = store.latest(slot)
    const isNewer =
      next !== undefined &&
      (ours === undefined ||
        next.manifest.epoch > ours.manifest.epoch ||
        (next.manifest.epoch === ours.manifest.epoch && next.manifest.generation > ours.manifest.generation))
    if (isNewer) {
      const draft = await store.begin(slot, next.manifest.generation)
      await writeFile(join(draft.dir, 'word'), await readFile(join(next.dir, 'word')).catch(() => ''))
      const { files: _, bytes: __, ...manifest } = next.manifest
      return draft.commit(manifest)
    }
    await clock.sleep(5, signal)
  }
}

/** The questions of a node's agent to the API server. */
export function fakeInquiry(cluster: FakeCluster, node: string): Inquiry {
  const stays = ({ namespace, name, uid }: PodKey) =>
    [...cluster.pods.values()]
      .map(store => store.get(`${namespace}/${name}`))
      .find(pod => pod?.metadata.uid === uid && pod.metadata.deletionTimestamp === undefined)
  return {
    lease: async ({ namespace, name }) => {
      if (cluster.isAway) throw new KubeError('Unavailable', 'away')
      const lease = cluster.truth.get(`${namespace}/${name}`)
      return lease && parseSlotLease(lease)
    },
    isThere: async pod =>
      cluster.presence === undefined ? stays(pod) !== undefined : await cluster.presence(),
    async couldTake(pod, slot) {
      if (cluster.isAway) throw new KubeError('Unavailable', 'away')
      const found = stays(pod)
      return found !== undefined && (slotOfPod(found.metadata) ?? slot) === slot
    },
    isReady: async ({ uid }) => {
      if (cluster.isAway) throw new KubeError('Unavailable', 'away')
      return !cluster.unready.has(uid)
    },
    async presenceOf(uid) {
      if (cluster.unlabelled.has(uid)) return 'Released'
      const pod = cluster.pods
        .get(node)
        ?.list()
        .find(({ metadata }) => metadata.uid === uid)
      return pod?.status?.phase === 'Running' ? 'Here' : 'Gone'
    },
    operatorLeads: async () => {
      if (cluster.isAway) throw new KubeError('Unavailable', 'away')
      return cluster.operatorLeads
    },
  }
}

/** Writes a condition of a pod of this node, as agents do. */
export const patchIn =
  (cluster: FakeCluster, node: string): PodCapabilities['patch'] =>
  async (pod: PodView, condition: PodCondition) => {
    if (cluster.takesNoWrites) throw new KubeError('Unavailable', 'away')
    const current = cluster.pods.get(node)?.get(`${pod.namespace}/${pod.name}`)
    if (current === undefined || current.metadata.uid !== pod.uid) return undefined
    const { record, gate } = condition
    if (gate !== undefined && gate.ifVersion !== current.metadata.resourceVersion) return undefined
    const written = conditionsIn(condition)
    const types = new Set<string>(written.map(({ type }) => type))
    const rest = (current.status?.conditions ?? []).filter(({ type }) => !types.has(type))
    const text = record && formatServingRecord(record, condition.message)
    const annotations = {
      ...current.metadata.annotations,
      ...(text !== undefined && { [servingRecordAnnotation]: text }),
    }
    cluster.put(node, {
      ...current,
      metadata: { ...current.metadata, annotations },
      status: { ...current.status, conditions: [...rest, ...written] },
    })
    return { annotations }
  }

/** Writes the report of a node, unless it says that already. */
export function reportIn(cluster: FakeCluster, node: string, slots: readonly SlotReport[]): void {
  const old = cluster.reports.get(node)
  const heartbeats = cluster.heartbeats.get(node)
  if (JSON.stringify(old?.status?.slots) === JSON.stringify(slots)) return
  cluster.reports.upsert({
    metadata: { name: node, uid: node, resourceVersion: nextVersion() },
    status: {
      ...{ version: '1', address: node, fingerprint: node, kernel: '6', criu: '4', architecture: 'x86_64' },
      ...{ checks: [], ready: true, slots, slotsKnown: true, updatedAt: '2030-01-01T00:00:00Z' },
      ...(heartbeats && { heartbeats }),
    },
  })
}

/** The set under attack, and what clients and nemeses know about it. */
import type { Cluster } from '../playground/cluster.ts'
import { type BackupPodSetSpec, backupPodSets } from '../src/api/backuppodset.ts'
import { memoryAllowed } from '../src/api/memory-permission.ts'
import { type NumberedSlotLease, slotLeaseName } from '../src/api/numbered-slot.ts'
import type { Api } from '../src/kube/api.ts'
import { namespaces, type Pod, services } from '../src/kube/resources.ts'
import { counter } from '../zoo/slots.ts'
import { liveness, nodeTimeoutMs } from './bounds.ts'
import { baseOf } from './check/facts.ts'
import { answerIn } from './client/http.ts'
import { type Birth, now } from './history.ts'
import type { Recorder } from './recorder.ts'

export const setName = 'drilled'
export const slotCount = 2
export const allSlots: readonly number[] = [...Array(slotCount).keys()]
export const port = 8080

export interface Stage {
  readonly api: Api
  readonly cluster: Cluster
  readonly namespace: string
  readonly recorder: Recorder
  /** Node of the clients; no pod of the set is there, and no fault hits it. */
  readonly clientNode: string
  readonly signal: AbortSignal
}

/** A primary that a nemesis can aim at. */
export interface Primary {
  readonly slot: number
  readonly lease: NumberedSlotLease
  readonly pod: Pod
  readonly node: string
}

/** Returns the primaries that exist, by slot. */
export const primariesOf = ({ recorder }: Pick<Stage, 'recorder'>): Primary[] =>
  [...recorder.slots.values()].flatMap(lease => {
    const pod = recorder.pods.get(lease.holder.uid)
    const node = pod?.spec?.nodeName
    return pod === undefined || node === undefined ? [] : [{ slot: lease.slot, lease, pod, node }]
  })

/** Returns the slots whose primary is on one of these nodes. */
export const slotsOn = (stage: Pick<Stage, 'recorder'>, nodes: readonly string[]): number[] =>
  primariesOf(stage)
    .filter(({ node }) => nodes.includes(node))
    .map(({ slot }) => slot)

/** Returns the slots of which no memory is saved without one of these nodes: it has their primary or their heir. */
export const savedThrough = (stage: Pick<Stage, 'recorder'>, nodes: readonly string[]): number[] =>
  primariesOf(stage)
    .filter(({ node, lease: { heir, holders } }) => {
      const heirs = heir === undefined ? undefined : holders[0]
      return heirs === undefined || nodes.includes(node) || nodes.includes(heirs)
    })
    .map(({ slot }) => slot)

/** Returns the names of the set's pods on one of these nodes. */
export const podsOn = ({ recorder }: Pick<Stage, 'recorder'>, nodes: readonly string[]): string[] =>
  [...recorder.pods.values()]
    .filter(({ spec }) => nodes.includes(spec?.nodeName ?? ''))
    .map(({ metadata }) => metadata.name)

/** Nodes that nemeses may hit. */
export const targetNodes = ({ cluster, clientNode }: Pick<Stage, 'cluster' | 'clientNode'>): string[] =>
  cluster.nodes.filter(node => node !== clientNode)

export type FailoverOptions = Partial<BackupPodSetSpec['failover']>

export function specOf(clientNode: string, more: FailoverOptions = {}) {
  const { metadata, spec } = counter.template
  const elsewhere = { key: 'kubernetes.io/hostname', operator: 'NotIn', values: [clientNode] }
  return {
    replicas: slotCount,
    hotBackups: 2,
    // A busy node may take long for each dump. Without this, it would save less often.
    checkpoint: { interval: '1s', maxFreezePercent: 50 },
    failover: { nodeTimeout: `${nodeTimeoutMs / 1000}s`, liveness, ...more },
    service: { perSlot: true, ports: [{ port }] },
    template: {
      metadata,
      spec: {
        ...spec,
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{ matchExpressions: [elsewhere] }],
            },
          },
        },
        containers: (spec?.containers ?? []).map(container => ({
          ...container,
          // The agent probes much more often; the kubelet's own probes must not be faster than a fence.
          livenessProbe: {
            httpGet: { path: '/healthz', port },
            periodSeconds: 20,
            failureThreshold: 6,
            timeoutSeconds: 1,
          },
        })),
      },
    },
  }
}

export async function createSet(api: Api, namespace: string, spec: object): Promise<void> {
  await api.create(namespaces, { metadata: { name: namespace, labels: memoryAllowed } })
  await api.create(
    backupPodSets,
    {
      apiVersion: 'backup.example.com/v1alpha1',
      kind: 'BackupPodSet',
      metadata: { namespace, name: setName },
      spec,
    },
    { namespace },
  )
}

/** Gives each slot its own range of numbers, and notes the life of its memory. */
export async function bear(stage: Stage): Promise<Birth[]> {
  const births: Birth[] = []
  for (const { slot, pod } of primariesOf(stage)) {
    const url = `http://${pod.status?.podIP ?? ''}:${port}`
    const base = baseOf(slot)
    await fetch(`${url}/state`, { method: 'POST', body: JSON.stringify({ count: base }) })
    const response = await fetch(`${url}/peek`)
    const answer = answerIn(`HTTP/1.1 200 OK\r\n\r\n${await response.text()}`)
    if (answer?.count !== base) throw new Error(`slot ${slot} did not take its number`)
    births.push({ type: 'birth', at: now(), slot, startedAt: answer.startedAt, base })
  }
  return births
}

/** Returns the address of the Service of each slot. */
export async function serviceAddresses({ api, namespace }: Stage): Promise<Map<number, string>> {
  const found = new Map<number, string>()
  for (let slot = 0; slot < slotCount; slot += 1) {
    const { spec } = await api.get(services, { namespace, name: slotLeaseName(setName, slot) })
    found.set(slot, spec?.clusterIP ?? '')
  }
  return found
}

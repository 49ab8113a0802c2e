/** The slots of a set of counters, as seen by a client and a cluster administrator. */
import { kill } from 'node:process'
import { pidsOf } from '../playground/pids.ts'
import { type Patience, until } from '../playground/until.ts'
import { type BackupPodSetSpec, backupPodSets } from '../src/api/backuppodset.ts'
import { labels } from '../src/api/labels.ts'
import { nodeReports, parseReport, type SlotReport } from '../src/api/node-report.ts'
import { type NumberedSlotLease, parseNumberedSlotLease } from '../src/api/numbered-slot.ts'
import type { Api } from '../src/kube/api.ts'
import { isKubeError } from '../src/kube/errors.ts'
import { leases, type Pod, pods } from '../src/kube/resources.ts'
import { specimen } from './specimens.ts'

export interface CounterSet {
  readonly api: Api
  readonly namespace: string
  readonly name: string
  /** Limit of each wait; default: 120 s. */
  readonly patience?: Patience
}

export const counter = specimen('counter')

const usual: Patience = { patienceMs: 120_000, pollMs: 50 }

export const addressOf = (pod: Pod): string => {
  if (pod.status?.podIP === undefined) throw new Error(`${pod.metadata.name} has no address`)
  return pod.status.podIP
}

/** Creates the set, with counters whose memory is saved every second. */
export const createCounters = ({ api, namespace, name }: CounterSet, spec: Partial<BackupPodSetSpec>) =>
  api.create(
    backupPodSets,
    {
      apiVersion: 'backup.example.com/v1alpha1',
      kind: 'BackupPodSet',
      metadata: { namespace, name },
      spec: { checkpoint: { interval: '1s' }, template: counter.template, ...spec },
    },
    { namespace },
  )

/** Returns the Leases of a set's slots, by slot. */
export async function slotsOf({ api, namespace, name }: CounterSet): Promise<NumberedSlotLease[]> {
  const { items } = await api.list(leases, { namespace, labelSelector: `${labels.set}=${name}` })
  return items.flatMap(lease => parseNumberedSlotLease(lease) ?? []).sort((a, b) => a.slot - b.slot)
}

export const holderOf = ({ api, namespace }: CounterSet, { holder }: NumberedSlotLease): Promise<Pod> =>
  api.get(pods, { namespace, name: holder.name })

/**
 * Waits until every slot has memory that was saved after this call.
 * @param usable how a successor must be able to get it; default: in an understudy that waits already
 */
export async function saved(
  set: CounterSet,
  usable: readonly NonNullable<SlotReport['usable']>[] = ['Frozen', 'Staged'],
): Promise<void> {
  const since = Date.now()
  const lives = (await slotsOf(set)).map(({ incarnation }) => incarnation)
  let seen: readonly SlotReport[] = []
  try {
    await until(
      `memory of now for ${lives.length} slots`,
      async () => {
        const { items } = await set.api.list(nodeReports, {})
        seen = items.flatMap(report => parseReport(report).status?.slots ?? [])
        const ready = seen
          .filter(each => each.usable !== undefined && usable.includes(each.usable))
          .filter(({ takenAt }) => Date.parse(takenAt ?? '') > since)
          .map(({ incarnation }) => incarnation)
        return lives.every(life => ready.includes(life))
      },
      set.patience ?? usual,
    )
  } catch (cause) {
    const about = seen.filter(({ incarnation }) => lives.includes(incarnation))
    const told = { since: new Date(since).toISOString(), slots: about, pods: await podsOf(set) }
    throw new Error(JSON.stringify(told), { cause })
  }
}

/** Where the pods of a set are and what is true of them, for errors. */
async function podsOf({ api, namespace, name }: CounterSet): Promise<readonly object[]> {
  const { items } = await api.list(pods, { namespace, labelSelector: `${labels.set}=${name}` })
  return items.map(({ metadata, spec, status }) => ({
    ...{ name: metadata.name, type: metadata.labels?.[labels.type], node: spec?.nodeName },
    conditions: (status?.conditions ?? []).map(({ type, status, reason }) =>
      [type, status, reason].join(' '),
    ),
  }))
}

/** Adds until each slot's counter has a different number. @returns the numbers, by position in `slotsOf` */
export async function count(set: CounterSet, base: number): Promise<number[]> {
  const numbers: number[] = []
  for (const lease of await slotsOf(set)) {
    const ip = addressOf(await holderOf(set, lease))
    for (let i = 0; i < base + lease.slot * 3; i += 1) await counter.add(ip)
    numbers.push(await counter.read(ip))
  }
  return numbers
}

/** Sends SIGKILL to the application of a pod. */
export async function killApp(pod: Pod): Promise<void> {
  const [pid] = await pidsOf(pod.metadata.uid, counter.program)
  if (pid === undefined) throw new Error(`no counter runs in ${pod.metadata.name}`)
  kill(pid, 'SIGKILL')
}

/** Namespace of the agents. */
export const agentsNamespace = 'understudy-agents'

/** Returns the agents of all nodes. */
export async function agentPods(api: Api): Promise<readonly Pod[]> {
  const labelSelector = 'app.kubernetes.io/component=agent'
  return (await api.list(pods, { namespace: agentsNamespace, labelSelector })).items
}

/** Sends SIGKILL to the agents of all nodes. */
export async function killAgents(api: Api): Promise<void> {
  for (const { metadata } of await agentPods(api))
    for (const pid of await pidsOf(metadata.uid, 'node')) kill(pid, 'SIGKILL')
}

/** Waits for the next epoch of a slot. */
export const promoted = (set: CounterSet, before: NumberedSlotLease): Promise<NumberedSlotLease> =>
  until(
    `a successor in slot ${before.slot}`,
    async () =>
      (await slotsOf(set)).find(
        ({ incarnation, epoch }) => incarnation === before.incarnation && epoch > before.epoch,
      ),
    set.patience ?? usual,
  )

/** Resolves with the first number that a client reads from a slot's primary, who may be a later one than the lease says. */
export const readSlot = (set: CounterSet, lease: NumberedSlotLease): Promise<number> =>
  until(
    `an answer of slot ${lease.slot}`,
    async () => {
      const now = (await slotsOf(set)).find(({ incarnation }) => incarnation === lease.incarnation) ?? lease
      // A successor that could not serve makes way for the next one, and may be gone by now.
      const pod = await holderOf(set, now).catch((error: unknown) => {
        if (!isKubeError(error, 'NotFound')) throw error
        return undefined
      })
      const ip = pod?.status?.podIP
      if (ip === undefined) return undefined
      return counter.read(ip).then(
        value => ({ value }),
        () => undefined,
      )
    },
    set.patience ?? usual,
  ).then(({ value }) => value)

/**
 * Returns the restarts of all containers of the set's pods and how each ended last, by pod, without pods that have none.
 * @param killed pod whose container the kubelet may have restarted before the pod was retired
 */
export async function restartsOf(
  { api, namespace, name }: CounterSet,
  killed?: Pod,
): Promise<Record<string, readonly string[]>> {
  const { items } = await api.list(pods, { namespace, labelSelector: `${labels.set}=${name}` })
  return Object.fromEntries(
    items
      .filter(({ metadata }) => metadata.labels?.[labels.type] !== 'retired')
      .filter(({ metadata }) => metadata.uid !== killed?.metadata.uid)
      .map(({ metadata, status }): [string, string[]] => [
        `${metadata.labels?.[labels.type]} ${metadata.name}`,
        (status?.containerStatuses ?? [])
          .filter(({ restartCount }) => restartCount > 0)
          .map(it => `${it.name} ${it.restartCount}: ${JSON.stringify(it.lastState)}`),
      ])
      .filter(([, restarts]) => restarts.length > 0),
  )
}

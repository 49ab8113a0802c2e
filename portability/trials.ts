/** The trials of a node: an app in some setting dies, and its successor has its memory. */

import { until } from '../playground/until.ts'
import { type BackupPodSetSpec, backupPodSets } from '../src/api/backuppodset.ts'
import { isAtGate } from '../src/api/gate.ts'
import { labels } from '../src/api/labels.ts'
import { nodeReports, parseReport, type SlotReport } from '../src/api/node-report.ts'
import type { NumberedSlotLease } from '../src/api/numbered-slot.ts'
import type { Api } from '../src/kube/api.ts'
import { isKubeError } from '../src/kube/errors.ts'
import { isReady } from '../src/kube/ready.ts'
import { type Pod, pods } from '../src/kube/resources.ts'
import { must } from '../zoo/http-specimen.ts'
import {
  addressOf,
  type CounterSet,
  count,
  counter,
  createCounters,
  holderOf,
  promoted,
  readSlot,
  slotsOf,
} from '../zoo/slots.ts'
import { type GuestNode, patience } from './node.ts'

/** The backup that takes over. */
type Backup = 'hot' | 'cold'
type Settings = NonNullable<NonNullable<BackupPodSetSpec['template']['spec']>['securityContext']>
type ContainerSettings = NonNullable<
  NonNullable<BackupPodSetSpec['template']['spec']>['containers'][number]['securityContext']
>

export interface Trial {
  readonly name: TrialName
  readonly title: string
  readonly backup: Backup
  readonly pod: Settings
  readonly container: ContainerSettings
}

export const trialNames = ['frozen', 'cold', 'user', 'read-only'] as const
export type TrialName = (typeof trialNames)[number]

/** As the restricted profile of Pod Security wants it. */
const restricted = {
  pod: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
  container: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
} as const

export const trials: readonly Trial[] = [
  { name: 'frozen', title: 'Frozen', backup: 'hot', pod: { runAsUser: 0, runAsGroup: 0 }, container: {} },
  { name: 'cold', title: 'cold wake', backup: 'cold', pod: {}, container: {} },
  {
    name: 'user',
    title: 'uid 1000',
    backup: 'hot',
    pod: { ...restricted.pod, runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000 },
    container: restricted.container,
  },
  {
    name: 'read-only',
    title: 'read-only root',
    backup: 'hot',
    pod: restricted.pod,
    container: { ...restricted.container, readOnlyRootFilesystem: true },
  },
]

export interface TrialStage {
  readonly api: Api
  readonly namespace: string
  readonly nodes: readonly GuestNode[]
  readonly say: (text: string) => void
  /** Called while the pods of a failed trial still exist. */
  readonly failed: () => Promise<void>
  readonly signal: AbortSignal
}

export interface Success {
  /** From the kill to the successor's first answer, which was right. */
  readonly seconds: number
  /** Label of the security module on the restored process; empty if there is none. */
  readonly label: string
}

/**
 * Returns the set of a trial. Its pods are on these nodes alone, each on another one. Emulated nodes are many times slower than
 * others, so the set has time.
 */
export function specOf({ backup, pod, container }: Trial, nodes: readonly string[]): BackupPodSetSpec {
  const { metadata, spec } = counter.template
  const [app] = spec?.containers ?? []
  if (app === undefined) throw new Error('the counter has no container')
  const onThem = { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [...nodes] }] }
  return {
    replicas: 1,
    hotBackups: backup === 'hot' ? 1 : 0,
    coldBackups: backup === 'cold' ? 1 : 0,
    wakeupTimeout: 60,
    checkpoint: { interval: '15s', maxFreezePercent: 50 },
    antiAffinity: 'Required',
    // A slow node is not a silent one, and a slow pod is not a dead one.
    failover: { nodeTimeout: '60s', fencing: 'None', unreadySeconds: 0 },
    template: {
      ...(metadata && { metadata }),
      spec: {
        ...spec,
        affinity: {
          nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [onThem] } },
        },
        securityContext: pod,
        containers: [
          {
            ...app,
            securityContext: container,
            // Without a request, the pods would get no time while the agent and the kubelet have work.
            resources: { requests: { cpu: '150m' }, limits: { memory: '64Mi' } },
            readinessProbe: { ...app.readinessProbe, periodSeconds: 2, timeoutSeconds: 10 },
          },
        ],
      },
    },
  }
}

/**
 * Runs one trial and removes its pods.
 * @throws Error that says which step did not happen, or which value was wrong
 */
export async function runTrial(stage: TrialStage, trial: Trial): Promise<Success> {
  const { api, namespace, nodes, say, signal } = stage
  const set: CounterSet = { api, namespace, name: trial.name, patience: { ...patience, signal } }
  say('pods start')
  await createCounters(
    set,
    specOf(
      trial,
      nodes.map(({ name }) => name),
    ),
  )
  try {
    const before = await begun(stage, set)
    const dead = await holderOf(set, before)
    const node = nodeOf(stage, dead)
    say('first saved state')
    await savedIn(stage, node, trial.backup, before)
    const [expected = 0] = await count(set, 7)
    say(`saved state with ${expected}`)
    await savedIn(stage, node, trial.backup, before)
    say(`${dead.metadata.name} is killed`)
    const since = performance.now()
    await kill(node, dead)
    const after = await promoted(set, before)
    const read = await readSlot(set, after)
    const seconds = (performance.now() - since) / 1000
    must('the memory of the successor', read, expected)
    must('its incarnation', after.incarnation, before.incarnation)
    const heir = await holderOf(set, after)
    must('its restarts', heir.status?.containerStatuses?.[0]?.restartCount, 0)
    await counter.add(addressOf(heir))
    must('its memory after one more request', await counter.read(addressOf(heir)), expected + 1)
    await tookOver(stage, set, trial.backup)
    return { seconds, label: await labelOf(nodeOf(stage, heir), heir) }
  } catch (error) {
    await stage.failed()
    throw error
  } finally {
    await removed(stage, set)
  }
}

/** Waits until the primary and its backup are in place. */
async function begun({ api, namespace, signal }: TrialStage, set: CounterSet): Promise<NumberedSlotLease> {
  const labelSelector = `${labels.set}=${set.name}`
  return until(
    'a primary and its backup',
    async () => {
      const { items } = await api.list(pods, { namespace, labelSelector }, { signal })
      // A hot backup is not ready before it serves: the wait for a frozen clone follows.
      const isPlaced = (pod: Pod): boolean => {
        const type = pod.metadata.labels?.[labels.type]
        return type === 'coldbackup' ? isAtGate(pod) : type === 'hotbackup' || isReady(pod)
      }
      if (items.length < 2 || !items.every(isPlaced)) return undefined
      return (await slotsOf(set))[0]
    },
    { ...patience, signal },
  )
}

/** Returns the node of a pod. */
function nodeOf({ nodes }: TrialStage, { metadata, spec }: Pod): GuestNode {
  const node = nodes.find(({ name }) => name === spec?.nodeName)
  if (node === undefined) throw new Error(`${metadata.name} is on ${spec?.nodeName}`)
  return node
}

/** Waits until the successor could get memory that was saved after this call, by the clock of the primary's node. */
async function savedIn(
  { api, signal }: TrialStage,
  node: GuestNode,
  backup: Backup,
  { incarnation }: NumberedSlotLease,
): Promise<void> {
  const since = Number(await node.inNode(['date', '+%s%3N']))
  const usable = backup === 'hot' ? 'Frozen' : 'Cold'
  const isMeant = (slot: SlotReport): boolean =>
    slot.incarnation === incarnation && slot.usable === usable && Date.parse(slot.takenAt ?? '') > since
  let seen: readonly SlotReport[] = []
  try {
    await until(
      `a saved state that is ${usable}`,
      async () => {
        const { items } = await api.list(nodeReports, {}, { signal })
        seen = items.flatMap(report => parseReport(report).status?.slots ?? [])
        return seen.some(isMeant)
      },
      { ...patience, signal },
    )
  } catch (cause) {
    signal.throwIfAborted()
    throw new Error(`no saved state that is ${usable} in time: ${JSON.stringify(seen)}`, { cause })
  }
}

/** Waits until the set says which backup took over, and refuses another kind than the meant one. */
async function tookOver(
  { api, namespace, signal }: TrialStage,
  set: CounterSet,
  backup: Backup,
): Promise<void> {
  const how = await until(
    `the last failover of ${set.name}`,
    async () =>
      (await api.get(backupPodSets, { namespace, name: set.name }, { signal })).status?.lastFailover?.how,
    { ...patience, signal },
  )
  must('the origin of its memory', how, backup === 'hot' ? 'Frozen' : 'Cold')
}

/** Sends SIGKILL to the app, from inside the node. */
const kill = (node: GuestNode, pod: Pod): Promise<string> =>
  node.inNode(['sh', '-c', `kill -KILL ${pidsOf(pod)}`])

const labelOf = async (node: GuestNode, pod: Pod): Promise<string> =>
  (await node.inNode(['sh', '-c', `cat /proc/${pidsOf(pod)}/attr/current 2>/dev/null || true`]))
    .replaceAll('\0', '')
    .trim()

/** A shell expression with the ids of the counters in a pod. systemd writes the uid with underscores. */
const pidsOf = ({ metadata: { uid } }: Pod): string =>
  `$(for p in $(pgrep -x counter); do if grep -q '${uid.replaceAll('-', '[-_]')}' /proc/$p/cgroup; then echo $p; fi; done)`

/** Deletes the set and waits until its pods are gone, so that the next trial has the node for itself. */
async function removed({ api, namespace, signal }: TrialStage, { name }: CounterSet): Promise<void> {
  // After an interruption the whole cluster ends.
  if (signal.aborted) return
  await api
    .delete(backupPodSets, { namespace, name }, { propagationPolicy: 'Background' })
    .catch((error: unknown) => {
      if (!isKubeError(error, 'NotFound')) throw error
    })
  const labelSelector = `${labels.set}=${name}`
  await until(
    `the pods of ${name} are gone`,
    async () => (await api.list(pods, { namespace, labelSelector })).items.length === 0,
    { ...patience, signal },
  )
}

/**
 * The trial of each specimen: several refreshes, a failover that keeps its state, and another failover from the
 * promoted pod. Only values that a client reads count, never a label.
 */
import { kill } from 'node:process'
import { until as waitUntil } from '../playground/until.ts'
import { backupPodSets } from '../src/api/backuppodset.ts'
import { labels } from '../src/api/labels.ts'
import { nodeReports, type SlotReport } from '../src/api/node-report.ts'
import { parseNumberedSlotLease, slotLeaseName } from '../src/api/numbered-slot.ts'
import type { Api } from '../src/kube/api.ts'
import { leases, type Pod, pods } from '../src/kube/resources.ts'
import type { Specimen } from './specimens.ts'

export interface Stage {
  readonly api: Api
  readonly namespace: string
  /** Returns the ids, as this machine sees them, of a pod's processes that run this program. */
  readonly pidsOf: (podUid: string, program: string) => Promise<readonly number[]>
  readonly say?: (text: string) => void
  /** Time limit of each wait; default 150 s. */
  readonly patienceMs?: number
}

export interface Performance {
  readonly specimen: string
  readonly refreshes: number
  readonly failovers: readonly Takeover[]
}

export interface Takeover {
  readonly from: string
  readonly to: string
  readonly protection: string
  /** The state just before the kill, and the first one read after it. */
  readonly expected: number
  readonly read: number
  /** Milliseconds from the kill to the successor's first right answer, at its own address. */
  readonly ms: number
  readonly restarts: number
}

const patience = { patienceMs: 150_000, pollMs: 20 } as const

export async function perform(
  given: Stage,
  specimen: Specimen,
  { refreshes, mode }: { readonly refreshes: number; readonly mode?: 'Frozen' | 'Staged' },
): Promise<Performance> {
  const { patienceMs } = specimen
  const stage = patienceMs === undefined ? given : { ...given, patienceMs }
  const { api, namespace } = stage
  const ref = { namespace, name: specimen.name }
  await api.create(
    backupPodSets,
    {
      apiVersion: 'backup.example.com/v1alpha1',
      kind: 'BackupPodSet',
      metadata: { name: specimen.name, namespace },
      spec: {
        replicas: 1,
        hotBackups: 1,
        // Once a second, even if a busy node takes long for each: only the state is judged.
        checkpoint: { interval: '1s', maxFreezePercent: 50, ...specimen.checkpoint },
        ...(mode ? { hotBackup: { mode } } : {}),
        template: specimen.template,
      },
    },
    { namespace },
  )
  try {
    const failovers: Takeover[] = []
    const first = await primaryOf(stage, specimen.name)
    // A pod has its address before its program listens.
    await answerOf(stage, specimen, first)
    await specimen.prepare?.(addressOf(first))
    for (let round = 1; round <= 2; round += 1) {
      const endLoad = await specimen.load?.(addressOf(await primaryOf(stage, specimen.name)))
      await refreshed(stage, specimen, refreshes)
      await endLoad?.()
      failovers.push(await failOver(stage, specimen))
      stage.say?.(`${specimen.name}: failover ${round} took ${failovers.at(-1)?.ms.toFixed(0)} ms`)
    }
    return { specimen: specimen.name, refreshes, failovers }
  } finally {
    await api.delete(backupPodSets, ref, { propagationPolicy: 'Foreground' })
  }
}

/** Waits until the understudy could take over and has since been refreshed that many times. */
async function refreshed(stage: Stage, specimen: Specimen, times: number): Promise<void> {
  const first = await usable(stage, specimen.name, () => true)
  const enough = first.generation + times
  await usable(stage, specimen.name, ({ generation }) => generation >= enough)
}

async function failOver(stage: Stage, specimen: Specimen): Promise<Takeover> {
  const { api, namespace } = stage
  const before = await primaryOf(stage, specimen.name)
  const ip = addressOf(before)
  for (let i = 0; i < 5; i += 1) await specimen.add(ip)
  const expected = await specimen.read(ip)
  // Wait for a generation with the last change; source and caller share a clock.
  const now = Date.now()
  const { usable: protection } = await usable(
    stage,
    specimen.name,
    ({ takenAt }) => Date.parse(takenAt ?? '') > now,
  )
  const pids = await stage.pidsOf(before.metadata.uid, specimen.program)
  const [pid] = [...pids].sort((a, b) => a - b)
  if (pid === undefined) throw new Error(`${specimen.program} does not run in ${before.metadata.name}`)
  const killedAt = performance.now()
  kill(pid, 'SIGKILL')
  const after = await until(stage, `a successor of ${before.metadata.name}`, async () => {
    const lease = parseNumberedSlotLease(
      await api.get(leases, { namespace, name: slotLeaseName(specimen.name, 0) }),
    )
    if (lease === undefined || lease.holder.uid === before.metadata.uid) return undefined
    return api.get(pods, { namespace, name: lease.holder.name })
  })
  const read = await answerOf(stage, specimen, after)
  const ms = performance.now() - killedAt
  if (read !== expected)
    throw new Error(`${specimen.name}: ${read} was read from ${after.metadata.name} instead of ${expected}`)
  await specimen.check?.(addressOf(after), expected)
  // It must also continue to count, not only remember.
  await specimen.add(addressOf(after))
  if ((await specimen.read(addressOf(after))) !== expected + 1) throw new Error('the state does not go on')
  const seen = await api.get(pods, { namespace, name: after.metadata.name })
  return {
    from: before.metadata.name,
    to: after.metadata.name,
    protection,
    expected,
    read,
    ms,
    restarts: (seen.status?.containerStatuses ?? []).reduce((sum, { restartCount }) => sum + restartCount, 0),
  }
}

type Usable = SlotReport & { readonly usable: 'Frozen' | 'Staged' }

/**
 * Waits until an understudy could restore a matching memory; a node that only keeps a copy may have it sooner. Reads
 * the node's reports, because the set's status shows only some of the generations.
 */
function usable(stage: Stage, name: string, isMeant: (report: Usable) => boolean): Promise<Usable> {
  const { api, namespace } = stage
  return until(stage, `a saved state of ${name} in an understudy`, async () =>
    (await api.list(nodeReports, {})).items
      .flatMap(({ status }) => status?.slots ?? [])
      .filter(slot => slot.namespace === namespace && slot.name === slotLeaseName(name, 0))
      .find((slot): slot is Usable => isUsable(slot) && isMeant(slot)),
  )
}

const isUsable = (slot: SlotReport): slot is Usable => slot.usable === 'Frozen' || slot.usable === 'Staged'

async function primaryOf(stage: Stage, name: string): Promise<Pod> {
  const { api, namespace } = stage
  return until(stage, `a primary of ${name}`, async () => {
    const { items } = await api.list(pods, {
      namespace,
      labelSelector: `${labels.set}=${name},${labels.type}=primary`,
    })
    return items.find(pod => pod.metadata.deletionTimestamp === undefined && pod.status?.podIP !== undefined)
  })
}

/** Resolves with the first state that a client can read from this pod. */
const answerOf = (stage: Stage, specimen: Specimen, pod: Pod): Promise<number> =>
  until(stage, `an answer of ${pod.metadata.name}`, () =>
    specimen.read(addressOf(pod)).catch(() => undefined),
  )

function addressOf(pod: Pod): string {
  const ip = pod.status?.podIP
  if (ip === undefined) throw new Error(`${pod.metadata.name} has no address`)
  return ip
}

const until = <T>(
  { patienceMs = patience.patienceMs }: Stage,
  what: string,
  ask: () => Promise<T | undefined | false>,
): Promise<T> => waitUntil(what, ask, { ...patience, patienceMs })

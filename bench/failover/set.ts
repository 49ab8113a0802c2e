import { until as waitUntil } from '../../playground/until.ts'
import { backupPodSets, type FailoverSpec } from '../../src/api/backuppodset.ts'
import { labels } from '../../src/api/labels.ts'
import { nodeReports } from '../../src/api/node-report.ts'
import { type NumberedSlotLease, parseNumberedSlotLease, slotLeaseName } from '../../src/api/numbered-slot.ts'
import { podConditions, servingReasons } from '../../src/api/pod-contract.ts'
import type { SlotStatus } from '../../src/api/slot-status.ts'
import { type Lease, leases, type Pod, services } from '../../src/kube/resources.ts'
import { type BenchContext, demand } from '../bench.ts'
import { type KeptClients, keptClients, startKeptClients } from '../node/kept.ts'
import { type Outage, outageOf, outageWhileThere } from '../node/outage.ts'
import type { Prober } from '../node/probe.ts'
import { counterPort, counterTemplate, setOf } from '../objects.ts'
import { type Recording, record, type Stamped } from '../observe/recording.ts'
import { clientNode, openScene, proxyRestMs, type Scene, timeoutMs } from '../observe/scene.ts'
import { isLeaving } from '../observe/state.ts'
import type { Sampler } from '../report.ts'
import { memoryOf } from './memory.ts'
import { clientOf, hangCounter, killCounter } from './scene.ts'

/**
 * Origin of the successor: a hot backup in either mode, a Frozen one with a grant of either kind, a cold backup, or a pod that is
 * created for the slot. `Hung`: a Frozen one, of an app that stops instead of ending.
 */
export type Mode = 'Frozen' | 'Announced' | 'Granted' | 'Staged' | 'Hung' | 'Cold' | 'Fresh'

const hot = (mode: 'Frozen' | 'Staged', failover: FailoverSpec = {}) =>
  ({ hotbackup: 1, coldbackup: 0, protection: mode, spec: { hotBackup: { mode }, failover } }) as const

const liveness = { periodMilliseconds: 200, failureThreshold: 2 } as const
/** The time to notice a hung app that the settings promise. */
const detectionMs = liveness.failureThreshold * liveness.periodMilliseconds
/** Rare and slow, so that the kubelet's own probes never decide a trial. */
const livenessProbe = {
  httpGet: { path: '/healthz', port: counterPort },
  periodSeconds: 60,
  failureThreshold: 3,
}

const backups = {
  Frozen: hot('Frozen'),
  Announced: hot('Frozen', { grant: 'Announced' }),
  Granted: hot('Frozen', { grant: 'Heir' }),
  Staged: hot('Staged', { grant: 'Heir' }),
  Hung: hot('Frozen', { grant: 'Heir', liveness }),
  Cold: { hotbackup: 0, coldbackup: 1, protection: 'Cold', spec: {} },
  Fresh: { hotbackup: 0, coldbackup: 0, protection: 'Cold', spec: {} },
} as const

const intervalSeconds = 1

/**
 * Kills the only primary's app repeatedly: each time its only backup succeeds it, and the operator creates another
 * backup.
 */
export async function ofSet(
  context: BenchContext,
  namespace: string,
  mode: Mode,
  samples: Sampler,
): Promise<void> {
  const { api, clock, signal, images } = context
  const name = mode.toLowerCase()
  const ref = { namespace, name }
  const until: Until = (what, ask) => waitUntil(what, ask, { patienceMs: timeoutMs, pollMs: 100, signal })
  const { hotbackup, coldbackup, spec } = backups[mode]
  await api.create(
    backupPodSets,
    setOf(
      name,
      { primary: 1, hotbackup, coldbackup },
      counterTemplate(images.counter, name, mode === 'Hung' ? { livenessProbe } : {}),
      {
        checkpoint: { interval: `${intervalSeconds}s` },
        ...spec,
        service: { perSlot: true, ports: [{ port: counterPort }] },
      },
    ),
    { namespace, signal },
  )
  await until(`the Service of slot 0 of ${name}`, () =>
    api.get(services, { namespace, name: slotLeaseName(name, 0) }).catch(() => undefined),
  )
  const scene = await openScene(context, namespace, slotLeaseName(name, 0), `${labels.set}=${name}`)
  const stop = new AbortController()
  const orders = await record(api, leases, {
    namespace,
    labelSelector: `${labels.set}=${name}`,
    now: clock.now,
    signal: AbortSignal.any([signal, stop.signal]),
  })
  const cluster = demand(context.playground, 'a playground')
  const kept = startKeptClients(cluster, clientNode(context), scene.address, counterPort)
  const bench: Bench = { context, namespace, mode, name, scene, orders, samples, until, kept }
  let whole = 0
  try {
    for (let trial = 1; trial <= context.n; trial++) whole += (await runTrial(bench, trial)) ? 1 : 0
    context.say(`${mode}: no connection failed or hung in ${whole} of ${context.n} kills`)
  } finally {
    stop.abort()
    await Promise.all([scene.end(), kept.stop()])
    await api.delete(backupPodSets, ref, { propagationPolicy: 'Background' })
  }
}

type Until = <T>(what: string, ask: () => Promise<T | undefined | false>) => Promise<T>

/** A set under measurement. */
interface Bench {
  readonly context: BenchContext
  readonly namespace: string
  readonly mode: Mode
  readonly name: string
  readonly scene: Scene
  /** The Leases of the set's slots. */
  readonly orders: Recording<Lease>
  readonly samples: Sampler
  readonly until: Until
  readonly kept: KeptClients
}

/** @returns whether no client that opens a connection for each request met one that failed or hung */
async function runTrial(bench: Bench, trial: number): Promise<boolean> {
  const { context, mode, scene, orders, until } = bench
  const { pods, slices, prober } = scene
  const before = await until(`${mode} protection`, () => readySlot(bench))
  // Wait for two refreshes, so that the trial is no special case of a first generation.
  const enough = (before.generation ?? 0) + 2
  await until('two refreshes', async () => (await generation(bench)) >= enough)
  await prober.steady(50, 0, timeoutMs)
  await until('all clients connected', async () => bench.kept.up === keptClients)
  await slices.quiet(proxyRestMs)
  const lease = await until('the Lease of slot 0', async () => {
    const now = [...orders.live.values()].map(parseNumberedSlotLease)[0]
    return !['Announced', 'Granted'].includes(mode) || isGranted(now) ? now : undefined
  })
  const primary = demand(pods.live.get(lease.holder.uid), 'the primary')
  const direct = await clientOf(context, primary)
  let isWhole = false
  try {
    await direct.steady(20, 0, timeoutMs)
    const seen = await killPrimary(bench, primary, lease)
    const { outage, ageMs } = tell(bench, primary, direct, seen)
    isWhole = outage.failed === 0
    context.say(
      `${mode} ${trial}/${context.n}: outage ${outage.ms.toFixed(0)} ms, ${outage.failed} failed${outage.failures.map(each => ` (${each})`).join('')}, state ${ageMs.toFixed(0)} ms old; ${tellKept(bench, seen.killedAt)}`,
    )
  } finally {
    await direct.stop()
  }
  await until('the loser to go', async () => {
    const loser = pods.live.get(primary.metadata.uid)
    return loser === undefined || isLeaving(loser)
  })
  return isWhole
}

/** Notes how clients that keep a connection saw the failover. @returns it in words */
function tellKept({ name, samples, kept }: Bench, killedAt: number): string {
  const breaks = kept.breaks.filter(({ at }) => at >= killedAt)
  for (const { at, servedAt, attempts } of breaks) {
    samples.add(`${name} kept connection, kill to reset`, 's', (at - killedAt) / 1000)
    samples.add(`${name} kept connection, reset to served`, 's', (servedAt - at) / 1000)
    samples.add(`${name} kept connection, connects until served`, 'requests', attempts)
  }
  const served = breaks.map(({ at, servedAt }) => servedAt - at)
  const failed = new Set(breaks.flatMap(({ error, failed }) => [error, ...failed]))
  return `kept: ${breaks.length} broken, served after at most ${Math.max(0, ...served).toFixed(0)} ms (${[...failed].join(', ')})`
}

/** Times by the bench's clock, ms. */
interface Failover {
  readonly killedAt: number
  /** When the newest memory was saved that another node kept before the kill. */
  readonly keptAt: number
  readonly promoted: Stamped<Lease>
  readonly serving: Stamped<Pod>
}

async function killPrimary(bench: Bench, primary: Pod, lease: NumberedSlotLease): Promise<Failover> {
  const { context, scene, orders, until } = bench
  const { clock } = context
  const { pods, slices, prober } = scene
  for (const each of [pods, slices, orders, prober, bench.kept]) each.forget()
  clock.anchor()
  // The client's earlier answers determine a memory's age, so they must begin before that memory was saved.
  const begunAt = clock.now()
  await until('memory of what the client has seen', async () => (await keptAt(bench)) > begunAt + pastMs)
  const kept = await keptAt(bench)
  const hang = bench.mode === 'Hung' ? await hangCounter(context, primary) : undefined
  const killedAt = hang?.at ?? (await killCounter(context, primary))
  const promoted = await until('the promotion', async () =>
    orders.events.find(({ object }) => object.spec?.holderIdentity !== lease.holder.uid),
  ).finally(hang?.end)
  const successor = demand(promoted.object.spec?.holderIdentity, 'its successor')
  const serving = await until('the successor on stage', async () =>
    pods.events.find(({ object }) => object.metadata.uid === successor && isServing(object)),
  )
  await prober.steady(50, serving.at + 1_000, timeoutMs)
  await until('all kept clients served again', async () => bench.kept.breaks.length >= keptClients)
  return { killedAt, keptAt: kept, promoted, serving }
}

function tell(
  { name, mode, scene, samples }: Bench,
  primary: Pod,
  direct: Prober,
  { killedAt, keptAt, promoted, serving }: Failover,
): { readonly outage: Outage; readonly ageMs: number } {
  const { pods, slices, prober } = scene
  const { podIP = '' } = serving.object.status ?? {}
  const died = demand(
    pods.events.find(({ object }) => object.metadata.uid === primary.metadata.uid && isDead(object)),
    'the report of the death',
  )
  const switched = slices.events.find(({ object }) =>
    object.endpoints?.some(({ addresses }) => addresses.includes(podIP)),
  )
  const outage = outageOf(prober.probes, killedAt)
  const note = (what: string, ms: number) => samples.add(`${name} ${what}`, 's', ms / 1000)
  const there = outageWhileThere(direct.probes, killedAt)
  if (there !== undefined) note('pod', there.ms)
  note('service', outage.ms)
  samples.add(`${name} service, failed connections per kill`, 'requests', outage.failed)
  if (mode === 'Hung') note('service, beyond the time to notice', outage.ms - detectionMs)
  const memory = memoryOf(prober.probes, killedAt, keptAt)
  note('service, kill to first right answer', memory.firstAnswer - killedAt)
  if (memory.slowest !== undefined) note('service, slowest answer', memory.slowest)
  note('phase: kill to death reported', died.at - killedAt)
  note('phase: kill to on stage', serving.at - killedAt)
  // With a grant the successor waits for neither the report nor the order.
  if (died.at <= promoted.at && promoted.at <= serving.at) {
    note('phase: death reported to order given', promoted.at - died.at)
    note('phase: order given to on stage', serving.at - promoted.at)
  }
  if (switched !== undefined) note('phase: on stage to endpoint written', switched.at - serving.at)
  note('state age at the kill', memory.age)
  return { outage, ageMs: memory.age }
}

/** Reads the reports: the set's status is refreshed only once a minute. */
async function reports({ context, name }: Bench) {
  const { items } = await context.api.list(nodeReports, {})
  return items.flatMap(({ status }) => status?.slots ?? []).filter(it => it.name === slotLeaseName(name, 0))
}

const generation = async (bench: Bench) => Math.max(0, ...(await reports(bench)).map(it => it.generation))

/** Unix ms of the newest memory that another node reports as kept: the restored memory must be at least as new. */
async function keptAt(bench: Bench): Promise<number> {
  const kept = (await reports(bench)).filter(({ role }) => role === 'holder')
  return Math.max(0, ...kept.map(({ takenAt }) => (takenAt === undefined ? 0 : Date.parse(takenAt))))
}

async function readySlot({ context, namespace, name, mode }: Bench): Promise<SlotStatus | undefined> {
  const { coldbackup, protection } = backups[mode]
  const { status } = await context.api.get(backupPodSets, { namespace, name })
  const seen = status?.slots?.[0]
  if (status?.gatedColdbackups !== coldbackup || seen?.protection !== protection) return undefined
  return (seen.generation ?? 0) > 0 ? seen : undefined
}

/** Length of the client's record before the memory in question. */
const pastMs = 1_500

const isGranted = (lease: NumberedSlotLease | undefined) =>
  lease?.grant?.heir !== undefined && !lease.grant.isRevoked

const conditionOf = (pod: Pod) => pod.status?.conditions?.find(({ type }) => type === podConditions.serving)
const isServing = (pod: Pod) => conditionOf(pod)?.status === 'True' && !isDead(pod)
const isDead = (pod: Pod) => conditionOf(pod)?.reason === servingReasons.died

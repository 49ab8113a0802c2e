import { until as waitUntil } from '../../playground/until.ts'
import { backupPodSets } from '../../src/api/backuppodset.ts'
import { labels } from '../../src/api/labels.ts'
import { nodeReports } from '../../src/api/node-report.ts'
import { podConditions } from '../../src/api/pod-contract.ts'
import { parseSlotLease, slotLeaseName } from '../../src/api/slot-lease.ts'
import { leases, type Pod, services } from '../../src/kube/resources.ts'
import { type BenchContext, demand } from '../bench.ts'
import { outageOf, outageWhileThere } from '../node/outage.ts'
import type { Probe } from '../node/probe.ts'
import { counterPort, counterTemplate, setOf } from '../objects.ts'
import { record } from '../observe/recording.ts'
import { openScene, proxyRestMs, timeoutMs } from '../observe/scene.ts'
import { isLeaving } from '../observe/state.ts'
import type { Sampler } from '../report.ts'
import { clientOf, killCounter } from './scene.ts'

/** Origin of the successor: a hot backup in either mode, a cold one, or a pod that is created for the slot. */
export const modes = ['Frozen', 'Staged', 'Cold', 'Fresh'] as const
export type Mode = (typeof modes)[number]

const backups = {
  Frozen: { hotbackup: 1, coldbackup: 0, protection: 'Frozen' },
  Staged: { hotbackup: 1, coldbackup: 0, protection: 'Staged' },
  Cold: { hotbackup: 0, coldbackup: 1, protection: 'Cold' },
  Fresh: { hotbackup: 0, coldbackup: 0, protection: 'Cold' },
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
  const until = <T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> =>
    waitUntil(what, ask, { patienceMs: timeoutMs, pollMs: 100, signal })
  const { hotbackup, coldbackup, protection } = backups[mode]
  await api.create(
    backupPodSets,
    setOf(name, { primary: 1, hotbackup, coldbackup }, counterTemplate(images.counter, name), {
      checkpoint: { interval: `${intervalSeconds}s` },
      ...(mode === 'Frozen' || mode === 'Staged' ? { hotBackup: { mode } } : {}),
      service: { perSlot: true, ports: [{ port: counterPort }] },
    }),
    { namespace, signal },
  )
  await until(`the Service of slot 0 of ${name}`, () =>
    api.get(services, { namespace, name: slotLeaseName(name, 0) }).catch(() => undefined),
  )
  const scene = await openScene(context, namespace, slotLeaseName(name, 0), `${labels.set}=${name}`)
  const { pods, slices, prober, end } = scene
  const stop = new AbortController()
  const orders = await record(api, leases, {
    namespace,
    labelSelector: `${labels.set}=${name}`,
    now: clock.now,
    signal: AbortSignal.any([signal, stop.signal]),
  })
  // Read the reports: the set's status is refreshed only once a minute.
  const reports = async () => {
    const { items } = await api.list(nodeReports, {})
    return items.flatMap(({ status }) => status?.slots ?? []).filter(it => it.set === name)
  }
  const generation = async () => Math.max(0, ...(await reports()).map(it => it.generation))
  /** Unix ms of the newest memory that another node reports as kept: the restored memory must be at least as new. */
  const keptAt = async () => {
    const kept = (await reports()).filter(({ role }) => role === 'holder')
    return Math.max(0, ...kept.map(({ takenAt }) => (takenAt === undefined ? 0 : Date.parse(takenAt))))
  }
  const isReady = async () => {
    const { status } = await api.get(backupPodSets, ref)
    const seen = status?.slots?.[0]
    if (status?.gatedColdbackups !== coldbackup || seen?.protection !== protection) return undefined
    return (seen.generation ?? 0) > 0 ? seen : undefined
  }
  try {
    for (let trial = 1; trial <= context.n; trial++) {
      const before = await until(`${mode} protection`, isReady)
      // Wait for two refreshes, so that the trial is no special case of a first generation.
      const enough = (before.generation ?? 0) + 2
      await until('two refreshes', async () => (await generation()) >= enough)
      await prober.steady(50, 0, timeoutMs)
      await slices.quiet(proxyRestMs)
      const lease = demand([...orders.live.values()].map(parseSlotLease)[0], 'the Lease of slot 0')
      const primary = demand(pods.live.get(lease.holder.uid), 'the primary')
      const direct = clientOf(context, primary)
      try {
        await direct.steady(20, 0, timeoutMs)
        for (const each of [pods, slices, orders, prober]) each.forget()
        clock.anchor()
        // The client's earlier answers determine a memory's age, so they must begin before that memory was saved.
        const begunAt = clock.now()
        await until('memory of what the client has seen', async () => (await keptAt()) > begunAt + pastMs)
        const kept = await keptAt()
        const killedAt = await killCounter(context, primary)
        const promoted = await until('the promotion', async () =>
          orders.events.find(({ object }) => object.spec?.holderIdentity !== lease.holder.uid),
        )
        const successor = demand(promoted.object.spec?.holderIdentity, 'its successor')
        const serving = await until('the successor on stage', async () =>
          pods.events.find(({ object }) => object.metadata.uid === successor && isServing(object)),
        )
        const { podIP = '' } = serving.object.status ?? {}
        await prober.steady(50, serving.at + 1_000, timeoutMs)
        const died = demand(
          pods.events.find(({ object }) => object.metadata.uid === primary.metadata.uid && isDead(object)),
          'the report of the death',
        )
        const switched = slices.events.find(({ object }) =>
          object.endpoints?.some(({ addresses }) => addresses.includes(podIP)),
        )
        const outage = outageOf(prober.probes, killedAt)
        const note = (what: string, ms: number) => samples.add(`${name} ${what}`, 's', ms / 1000)
        note('pod', outageWhileThere(direct.probes, killedAt).ms)
        note('service', outage.ms)
        const memory = memoryOf(prober.probes, killedAt, kept)
        note('service, kill to first right answer', memory.firstAnswer - killedAt)
        if (memory.slowest !== undefined) note('service, slowest answer', memory.slowest)
        note('phase: kill to death reported', died.at - killedAt)
        note('phase: death reported to order given', promoted.at - died.at)
        note('phase: order given to on stage', serving.at - promoted.at)
        if (switched !== undefined) note('phase: on stage to endpoint written', switched.at - serving.at)
        note('state age at the kill', memory.age)
        context.say(
          `${mode} ${trial}/${context.n}: outage ${outage.ms.toFixed(0)} ms, state ${memory.age.toFixed(0)} ms old`,
        )
      } finally {
        await direct.stop()
      }
      await until('the loser to go', async () => {
        const loser = pods.live.get(primary.metadata.uid)
        return loser === undefined || isLeaving(loser)
      })
    }
  } finally {
    stop.abort()
    await end()
    await api.delete(backupPodSets, ref, { propagationPolicy: 'Background' })
  }
}

/** Length of the client's record before the memory in question. */
const pastMs = 1_500
/** Tolerance between the clocks of client and node (here the same clock) and the moments of reading them. */
const clocksMs = 50

const conditionOf = (pod: Pod) => pod.status?.conditions?.find(({ type }) => type === podConditions.serving)
const isServing = (pod: Pod) => conditionOf(pod)?.status === 'True'
const isDead = (pod: Pod) => conditionOf(pod)?.status === 'False'

interface Memory {
  /** Unix ms of the first answer from the restored memory. */
  readonly firstAnswer: number
  /** How long before the kill that memory was saved, ms. */
  readonly age: number
  /** The longest wait for an answer among requests that began within a second after the kill, ms. */
  readonly slowest: number | undefined
}

/**
 * Derives the successor's memory from the client's numbers. It begins with the lowest number after the kill, because
 * the dying process may still have answered a request or two.
 * @param keptAt Unix ms of the newest memory that another node kept before the kill. Its age depends on the interval
 * and
 *   on the machine: a busy one also saves slowly.
 * @throws Error if the restored memory is older, above all if it is empty
 */
function memoryOf(probes: readonly Probe[], killedAt: number, keptAt: number): Memory {
  const all = answered(probes)
  const after = all.filter(({ at }) => at >= killedAt)
  const [first] = after.toSorted((a, b) => a.count - b.count)
  if (first === undefined) throw new Error('the client got no answer after the kill')
  const before = all.filter(({ at, ms }) => at + ms < killedAt)
  // Every answer before the stop is part of the saved memory.
  const oldest = before.findLast(({ at, ms }) => at + ms < keptAt - clocksMs)
  if (oldest === undefined) throw new Error('the client began too late to measure the age of the memory')
  if (first.count < oldest.count)
    throw new Error(
      `an answer carried ${first.count}, which is older than ${oldest.count}, saved ${(killedAt - keptAt).toFixed(0)} ms before the kill`,
    )
  const slow = after.filter(({ at }) => at < killedAt + 1_000).map(({ ms }) => ms)
  // This request itself has added one.
  const last = before.findLast(({ count }) => count < first.count)
  return {
    firstAnswer: first.at + first.ms,
    age: last === undefined ? 0 : Math.max(0, killedAt - (last.at + last.ms)),
    slowest: slow.length === 0 ? undefined : Math.max(...slow),
  }
}

const answered = (probes: readonly Probe[]) =>
  probes
    .flatMap(({ at, ms, count }) => (count === undefined ? [] : [{ at, ms, count }]))
    .sort((a, b) => a.at - b.at)

import { backupPodSets } from '../../src/api/backuppodset.ts'
import { labels, type PodKind } from '../../src/api/labels.ts'
import { type Pod, pods as podResource, services } from '../../src/kube/resources.ts'
import { type BenchContext, demand } from '../bench.ts'
import { programmedAt } from '../node/nft-monitor.ts'
import { answersFromBackups, firstAnswerOf, outageOf } from '../node/outage.ts'
import { counterTemplate, primariesOf, serviceOf, setOf } from '../objects.ts'
import { type AuditLog, betweenAnswers, openAuditLog } from '../observe/audit.ts'
import { openScene, proxyRestMs, type Scene, timeoutMs } from '../observe/scene.ts'
import { isInPlace, isLeaving, kindOf } from '../observe/state.ts'
import { deletionAccepted, podWrites } from '../observe/writes.ts'
import { operatorUser } from '../operator.ts'
import type { Sampler } from '../report.ts'
import { readyInSliceAt } from './endpoints.ts'

/** Repeatedly deletes a primary of a set with so many primaries. */
export async function ofSet(
  context: BenchContext,
  namespace: string,
  primaries: number,
  samples: Sampler,
): Promise<void> {
  const { api, signal, images } = context
  const name = `web-${primaries}`
  const wanted = { primary: primaries, hotbackup: 1, coldbackup: 1 }
  await api.create(services, serviceOf(name, primariesOf(name)), { namespace, signal })
  await api.create(backupPodSets, setOf(name, wanted, counterTemplate(images.counter, name)), {
    namespace,
    signal,
  })
  const scene = await openScene(context, namespace, name, `${labels.set}=${name}`)
  const { pods, end } = scene
  const audit = openAuditLog(demand(context.playground, 'a playground').auditLogPath)
  const bench = { context, namespace, name, wanted, scene, audit, samples }
  try {
    if (!isInPlace(pods.live.values(), wanted))
      await pods.next({
        what: `${name} in place`,
        timeoutMs,
        holds: live => isInPlace(live.values(), wanted),
      })
    /** Since when each pod has been a primary, by name. */
    const primarySince = new Map<string, number>()
    for (let trial = 1; trial <= context.n; trial++) {
      const seen = await deletePrimary(bench, primarySince)
      await tell(bench, seen)
      const astray = answersFromBackups(scene.prober.probes, primarySince)
      samples.add(`${primaries}P requests that reached backups`, 'requests', astray.length)
      const created = podWrites(seen.known, pods.events).filter(({ type }) => type === 'created').length
      if (created !== 1) throw new Error(`${created} pods were created where one was missing`)
      const { ms } = outageOf(scene.prober.probes, seen.requested)
      context.say(
        `${primaries}P ${trial}/${context.n}: label ${(seen.movedAt - seen.accepted).toFixed(0)} ms, outage ${ms.toFixed(0)} ms`,
      )
    }
  } finally {
    await end()
    await api.delete(backupPodSets, { namespace, name })
  }
}

/** A set under measurement. */
interface SetBench {
  readonly context: BenchContext
  readonly namespace: string
  readonly name: string
  readonly wanted: Readonly<Record<PodKind, number>>
  readonly scene: Scene
  readonly audit: AuditLog
  readonly samples: Sampler
}

/** Times by the bench's clock, ms. */
interface Promoted {
  /** The pods before the deletion, by uid. */
  readonly known: ReadonlyMap<string, Pod>
  readonly victim: Pod
  readonly heir: Pod
  readonly requested: number
  /** The API server had accepted the deletion. */
  readonly accepted: number
  /** The heir got its label. */
  readonly movedAt: number
  /** The set was in place again. */
  readonly restoredAt: number
}

/** @param primarySince since when each pod has been a primary, by name */
async function deletePrimary(
  { context, namespace, name, wanted, scene, audit }: SetBench,
  primarySince: Map<string, number>,
): Promise<Promoted> {
  const { api, clock, signal } = context
  const { pods, slices, prober, nft } = scene
  await prober.steady(50, 0, timeoutMs)
  await slices.quiet(proxyRestMs)
  await pods.quiet(proxyRestMs)
  const known = new Map(pods.live)
  for (const pod of known.values()) if (kindOf(pod) === 'primary') primarySince.set(pod.metadata.name, 0)
  const victims = [...known.values()].filter(pod => kindOf(pod) === 'primary')
  const victim = demand(victims[Math.floor(Math.random() * victims.length)], 'a primary')
  for (const each of [pods, slices, prober, nft]) each.forget()
  await audit.skip()
  clock.anchor()
  const moved = pods.next({
    what: 'the label moves',
    timeoutMs,
    holds: (_, { object }) =>
      kindOf(object) === 'primary' && kindOf(known.get(object.metadata.uid) ?? object) === 'hotbackup',
  })
  const restored = pods.next({
    what: `${name} in place again`,
    timeoutMs,
    holds: live => {
      const old = live.get(victim.metadata.uid)
      return (old === undefined || isLeaving(old)) && isInPlace(live.values(), wanted)
    },
  })
  const requested = clock.now()
  await api.delete(podResource, { namespace, name: victim.metadata.name }, {}, { signal })
  const response = clock.now()
  const { at: movedAt, object: heir } = await moved
  // The watch reports the change late, so an answer before its event does not prove a mistake.
  primarySince.set(heir.metadata.name, requested)
  const { at: restoredAt } = await restored
  await prober.steady(20, movedAt, timeoutMs)
  await slices.quiet(proxyRestMs)
  const accepted = deletionAccepted(response, victim.metadata.uid, pods.events)
  return { known, victim, heir, requested, accepted, movedAt, restoredAt }
}

async function tell({ wanted, scene, audit, samples }: SetBench, seen: Promoted): Promise<void> {
  const { victim, heir, requested, accepted, movedAt, restoredAt } = seen
  const { slices, prober, nft } = scene
  const primaries = wanted.primary
  const address = demand(heir.status?.podIP, 'an address of the new primary')
  const note = (what: string, from: number, to: number) =>
    samples.add(`${primaries}P ${what}`, 's', (to - from) / 1000)
  const written = demand(readyInSliceAt(slices.events, address), 'the new primary in the EndpointSlice')
  const programmed = demand(programmedAt(nft.lines, address), 'the new primary in the packet filter')
  const answered = demand(
    firstAnswerOf(prober.probes, new Set([heir.metadata.name])),
    'an answer of the new primary',
  )
  const outage = outageOf(prober.probes, requested)
  note('deletion accepted to label moved', accepted, Math.max(movedAt, accepted))
  const betweenWrites = await byAuditLog(audit, victim, heir)
  note('deletion accepted to label moved, by the audit log', 0, betweenWrites)
  note('split: label moved to EndpointSlice written', movedAt, Math.max(written, movedAt))
  note('split: EndpointSlice written to kube-proxy done', written, programmed)
  note(
    'split: kube-proxy done to first answer of the new primary',
    programmed,
    Math.max(answered, programmed),
  )
  note('deletion accepted to first answer of the new primary', accepted, answered)
  note('deletion accepted to set in place again', accepted, restoredAt)
  samples.add(`${primaries}P outage for a client of the Service`, 's', outage.ms / 1000)
  samples.add(`${primaries}P failed requests`, 'requests', outage.failed)
  samples.add(`${primaries}P EndpointSlice changes`, 'changes', slices.events.length)
}

/** Returns the ms from the answer to the deletion to the answer to the operator's write of the label. */
async function byAuditLog(audit: AuditLog, victim: Pod, heir: Pod): Promise<number> {
  return betweenAnswers(
    await audit.read(),
    ({ verb, resource, name: pod }) =>
      verb === 'delete' && resource === 'pods' && pod === victim.metadata.name,
    ({ verb, resource, name: pod, user }) =>
      verb === 'patch' && resource === 'pods' && pod === heir.metadata.name && user === operatorUser,
  )
}

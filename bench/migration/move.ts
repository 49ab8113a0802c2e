import { backupPodSets } from '../../src/api/backuppodset.ts'
import { isFinished, migrations } from '../../src/api/migration.ts'
import { systemClock } from '../../src/kube/clock.ts'
import { apiVersionOf, type Pod } from '../../src/kube/resources.ts'
import { type BenchContext, demand } from '../bench.ts'
import type { Load, Subject } from '../checkpoint/subjects.ts'
import { longestGap } from '../node/outage.ts'
import type { Prober } from '../node/probe.ts'
import { primariesOf, setOf } from '../objects.ts'
import { podsOf, runningPod, untilLarge as until } from '../observe/pods.ts'
import { proxyRestMs, timeoutMs } from '../observe/scene.ts'
import type { Sampler } from '../report.ts'
import { atRest } from './at-rest.ts'
import { addressOf, clientOfService } from './service.ts'

/** An application that moves, with its load. */
export interface Moving {
  /** As it appears in the names of its cases. */
  readonly name: string
  readonly subject: Subject
}

/** A load has its full rate before the pod moves, ms. */
const warmUpMs = 2_000

/** How a pod comes to move. */
export interface Trigger {
  /** Creates the workload with one pod. */
  create(context: BenchContext, namespace: string, subject: Subject): Promise<void>
  /** Requests one move, and resolves when that has ended well. */
  move(context: BenchContext, namespace: string, set: string, pod: Pod): Promise<Moved>
  remove(context: BenchContext, namespace: string, set: string): Promise<unknown>
}

export interface Moved {
  /** As the operator saw it. */
  readonly stoppedMs: number | undefined
}

/** A Migration moves the only primary of a set. */
export const byMigration: Trigger = {
  async create({ api, signal, images }, namespace, { set, template, interval }) {
    const counts = { primary: 1, hotbackup: 0, coldbackup: 0 }
    const options = { checkpoint: { interval } }
    await api.create(backupPodSets, setOf(set, counts, template(images), options), { namespace, signal })
  },
  async move({ api, signal }, namespace, set, { metadata: source }) {
    const { metadata } = await api.create(migrations, migrationOf(set, source), { namespace, signal })
    const ended = await until('the end of the move', async () => {
      const now = await api.get(migrations, { namespace, name: metadata.name }, { signal })
      return isFinished(now) && now
    })
    if (ended.status?.phase !== 'Succeeded')
      throw new Error(`the move has failed: ${JSON.stringify(ended.status?.conditions)}`)
    return { stoppedMs: ended.status.downtimeMilliseconds }
  },
  remove: ({ api }, namespace, set) =>
    api.delete(backupPodSets, { namespace, name: set }, { propagationPolicy: 'Foreground' }),
}

/** Moves the only pod of a workload from node to node. */
export async function moveTrials(
  context: BenchContext,
  namespace: string,
  { name, subject }: Moving,
  trigger: Trigger,
  samples: Sampler,
): Promise<void> {
  const { n } = context
  const { set, prepare } = subject
  await trigger.create(context, namespace, subject)
  const prober = await clientOfService(context, namespace, set, primariesOf(set))
  try {
    const first = await runningPod(context, namespace, set, 'primary')
    await prepare(addressOf(first))
    for (let trial = 1; trial <= n; trial += 1) {
      const taken = await oneMove(context, { namespace, subject, prober, trigger })
      samples.add(`${name}: outage at the Service`, 's', taken.outageMs / 1000)
      samples.add(`${name}: request to end`, 's', taken.totalMs / 1000)
      if (taken.stoppedMs !== undefined)
        samples.add(`${name}: stop, seen by the operator`, 's', taken.stoppedMs / 1000)
      context.say(`${name} ${trial}/${n}: ${taken.outageMs.toFixed(0)} ms of ${taken.totalMs.toFixed(0)} ms`)
    }
  } finally {
    await prober.stop()
    await trigger.remove(context, namespace, set)
    await until('the end of the set', async () => (await podsOf(context, namespace, set)).length === 0)
  }
}

interface Taken {
  readonly outageMs: number
  /** From the request until the move has succeeded. */
  readonly totalMs: number
  readonly stoppedMs: number | undefined
}

async function oneMove(
  context: BenchContext,
  {
    namespace,
    subject,
    prober,
    trigger,
  }: { namespace: string; subject: Subject; prober: Prober; trigger: Trigger },
): Promise<Taken> {
  const { clock, signal } = context
  const { set } = subject
  const primary = await runningPod(context, namespace, set, 'primary')
  await atRest(context, namespace, set)
  const load = await subject.load?.(addressOf(primary))
  try {
    await systemClock.sleep(warmUpMs, signal)
    await prober.steady(50, clock.now(), timeoutMs)
    const keys = demand(prober.probes.at(-1)?.count, 'the number of keys')
    prober.forget()
    const askedAt = clock.now()
    const { stoppedMs } = await trigger.move(context, namespace, set, primary)
    const endedAt = clock.now()
    await prober.steady(50, endedAt + proxyRestMs, timeoutMs)
    const found = prober.probes.at(-1)?.count
    if (found !== keys) throw new Error(`${found} keys after the move, ${keys} before`)
    return {
      outageMs: longestGap(prober.probes, askedAt),
      totalMs: endedAt - askedAt,
      stoppedMs,
    }
  } finally {
    await stopLoad(load)
  }
}

function migrationOf(set: string, { name, uid }: { readonly name: string; readonly uid: string }): object {
  return {
    apiVersion: apiVersionOf(migrations),
    kind: migrations.kind,
    metadata: { generateName: `${set}-` },
    spec: { source: { name, uid } },
  }
}

/** The connection of the load ends with the move. */
async function stopLoad(load: Load | undefined): Promise<void> {
  await load?.stop().catch(() => undefined)
}

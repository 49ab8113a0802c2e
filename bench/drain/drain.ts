import { run } from '../../build/run.ts'
import { startClients } from '../../drill/client/clients.ts'
import type { Call } from '../../drill/history.ts'
import type { Cluster } from '../../playground/cluster.ts'
import { systemClock } from '../../src/kube/clock.ts'
import { counter } from '../../zoo/slots.ts'
import { type Bench, type BenchContext, demand } from '../bench.ts'
import { inNamespace } from '../namespace.ts'
import { untilLarge as until } from '../observe/pods.ts'
import type { Sampler } from '../report.ts'
import { accountOf } from './ledger.ts'
import { createWorkloads, isAtRest, port, primaryOf, type Workload } from './workloads.ts'

const counts = { moving: 10, sets: 5 } as const
/** Each client adds so often. */
const everyMs = 50
/** Traffic before and after each drain, ms. */
const steadyMs = 5_000

interface Scene {
  readonly context: BenchContext
  readonly cluster: Cluster
  readonly namespace: string
  readonly workloads: readonly Workload[]
  /** Calls of the clients until now, by the number of the workload. */
  readonly calls: Map<number, Call[]>
}

const kubectl = ({ cluster }: Pick<Scene, 'cluster'>, ...args: readonly string[]): Promise<string> =>
  run(cluster.kubectl, ['--kubeconfig', cluster.kubeconfigPath, ...args])

export const drain: Bench = {
  name: 'drain',
  title: `kubectl drain of a node with ${counts.moving} MigratingPods and ${counts.sets} primaries of sets under load, and the same back`,
  trials: 1,
  needs: ['operator', 'playground'],
  run: async (context, samples) => {
    const cluster = demand(context.playground, 'a playground')
    await inNamespace(context.api, 'bench-drain', context.signal, namespace =>
      trials({ context, cluster }, namespace, samples),
    )
    return samples.report('drain')
  },
}

async function trials(
  { context, cluster }: Pick<Scene, 'context' | 'cluster'>,
  namespace: string,
  samples: Sampler,
): Promise<void> {
  const [home = '', ...others] = cluster.nodes
  const calls = new Map<number, Call[]>()
  const uncordon = () => kubectl({ cluster }, 'uncordon', ...cluster.nodes)
  try {
    await kubectl({ cluster }, 'cordon', ...others)
    const workloads = await createWorkloads(context, namespace, counts)
    const scene: Scene = { context, cluster, namespace, workloads, calls }
    await until('primaries', async () => (await placesOf(scene)).every(node => node === home))
    await uncordon()
    await atRest(scene)
    // The clients are on a node that is not drained at first; a drain ends no process of a playground's node itself.
    const clients = startClients(cluster, others[0] ?? home, 'drain-', entry => {
      if (entry.type === 'call') calls.set(entry.slot, [...(calls.get(entry.slot) ?? []), entry])
    })
    const targets = workloads.map(
      ({ host }, slot) => ({ client: 'fresh', slot, host, port, everyMs }) as const,
    )
    try {
      clients.ask(targets)
      for (let trial = 1; trial <= context.n; trial += 1) {
        await away(scene, [home], 'away', samples)
        await away(scene, others, 'back', samples)
      }
    } finally {
      await clients.stop()
    }
    await audit(scene, samples)
  } finally {
    await uncordon()
  }
}

/** Drains these nodes as an administrator does, and tells how long each client waited meanwhile. */
async function away(scene: Scene, nodes: readonly string[], word: string, samples: Sampler): Promise<void> {
  const { context, calls, workloads } = scene
  const { signal } = context
  await systemClock.sleep(steadyMs, signal)
  const before = workloads.map((_, slot) => calls.get(slot)?.length ?? 0)
  const askedAt = performance.now()
  await kubectl(scene, 'drain', ...nodes, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=900s')
  const seconds = (performance.now() - askedAt) / 1000
  samples.add(`drain ${word}: until kubectl ends`, 's', seconds)
  const left = (await placesOf(scene)).filter(node => node !== undefined && nodes.includes(node))
  if (left.length > 0) throw new Error(`kubectl drain ended, and ${left.length} primaries are still there`)
  await systemClock.sleep(steadyMs, signal)
  for (const [slot, { kind }] of workloads.entries()) {
    const during = (calls.get(slot) ?? []).slice(before[slot])
    const { gapMs } = accountOf(during, Number.POSITIVE_INFINITY)
    samples.add(`drain ${word}: longest wait of a client of a ${kind}`, 's', gapMs / 1000)
  }
  context.say(`drain ${word}: ${seconds.toFixed(0)} s`)
  await kubectl(scene, 'uncordon', ...nodes)
  await atRest(scene)
}

/** @throws Error if a state lacks an addition that a client was answered */
async function audit(scene: Scene, samples: Sampler): Promise<void> {
  const { context, namespace, workloads, calls } = scene
  let [answered, failed] = [0, 0]
  for (const [slot, workload] of workloads.entries()) {
    const pod = demand(await primaryOf(context, namespace, workload), `a primary of ${workload.name}`)
    const state = await counter.read(demand(pod.status?.podIP, 'an address'))
    const account = accountOf(calls.get(slot) ?? [], state)
    answered += account.answered
    failed += account.failed
    if (account.answered === 0) throw new Error(`no client of ${workload.name} was answered`)
    if (account.lost > 0)
      throw new Error(`${workload.name} has ${state}, and ${account.lost} answered additions are lost`)
  }
  samples.add('answered additions, all in the states', 'requests', answered)
  samples.add('calls without an answer', 'requests', failed)
  context.say(`${answered} answered additions are in the states; ${failed} calls had no answer`)
}

const placesOf = async ({ context, namespace, workloads }: Scene): Promise<readonly (string | undefined)[]> =>
  Promise.all(workloads.map(async each => (await primaryOf(context, namespace, each))?.spec?.nodeName))

const atRest = ({ context, namespace, workloads }: Scene) =>
  until('memory on other nodes', async () =>
    (await Promise.all(workloads.map(each => isAtRest(context, namespace, each)))).every(Boolean),
  )

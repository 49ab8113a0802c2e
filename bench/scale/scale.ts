import { KWOK_LABEL, KWOK_TAINT } from '../../playground/kwok.ts'
import { type BackupPodSet, backupPodSets } from '../../src/api/backuppodset.ts'
import { labels } from '../../src/api/labels.ts'
import { systemClock } from '../../src/kube/clock.ts'
import { deployments, type Pod, pods as podResource } from '../../src/kube/resources.ts'
import { type Bench, type BenchContext, demand } from '../bench.ts'
import { withoutPrecedence } from '../machine.ts'
import { inNamespace } from '../namespace.ts'
import { counterTemplate, deploymentOf, setOf, sizesOf } from '../objects.ts'
import { actingPasses, readLog } from '../observe/operator-log.ts'
import { type Recording, record, type Stamped } from '../observe/recording.ts'
import { allReady, isInPlace } from '../observe/state.ts'
import { podWrites, statusWrites } from '../observe/writes.ts'
import { operatorNamespace } from '../operator.ts'
import type { Sampler } from '../report.ts'

export const scale: Bench = {
  name: 'scale',
  title: 'a new set of 200 primaries, 50 hot and 50 cold backups on fake nodes; beside a Deployment of 300',
  trials: 3,
  needs: ['operator', 'playground'],
  run: async (context, samples) => {
    const playground = demand(context.playground, 'a playground')
    const fake = await withoutPrecedence(() => playground.startKwok({ nodes: 10, signal: context.signal }))
    try {
      await inNamespace(context.api, 'bench-scale', context.signal, async namespace => {
        for (let trial = 1; trial <= context.n; trial++) {
          const rate = await ofSet(context, namespace, samples)
          const stock = await ofDeployment(context, namespace, samples)
          context.say(
            `${trial}/${context.n}: ${rate.toFixed(0)} pods/s, Deployment ${stock.toFixed(0)} pods/s`,
          )
        }
      })
    } finally {
      await fake.stop()
    }
    return samples.report('scale', {
      'pods created per second': { Deployment: { case: 'Deployment: pods created per second' } },
      'request to last pod created': { Deployment: { case: 'Deployment: request to last pod created' } },
      'request to all in place': { Deployment: { case: 'Deployment: request to all Ready' } },
    })
  },
}

const wanted = { primary: 200, hotbackup: 50, coldbackup: 50 }
const all = 300
const timeoutMs = 180_000
const restMs = 5_000
/** Within this time the operator probes all gates twice, even if each of them makes it wait. */
const gatesMs = 20_000

const onFakeNodes = {
  nodeSelector: KWOK_LABEL,
  tolerations: [{ key: KWOK_TAINT.key, operator: 'Exists' }],
}

/** @returns pods/s */
async function ofSet(context: BenchContext, namespace: string, samples: Sampler): Promise<number> {
  const { api, clock, images } = context
  const operator = demand(context.operator, 'the operator')
  const stop = new AbortController()
  const signal = AbortSignal.any([context.signal, stop.signal])
  const name = 'large'
  const ref = { namespace, name }
  const nothing = { primary: 0, hotbackup: 0, coldbackup: 0 }
  const template = counterTemplate(images.counter, name, onFakeNodes)
  try {
    const [pods, sets] = await Promise.all([
      record(api, podResource, { namespace, labelSelector: `${labels.set}=${name}`, now: clock.now, signal }),
      record(api, backupPodSets, { namespace, now: clock.now, signal }),
    ])
    await api.create(backupPodSets, setOf(name, nothing, template), { namespace, signal })
    await systemClock.sleep(restMs, signal)
    const leading = await operator.leader()
    const knownSets = new Map(sets.live)
    sets.forget()
    clock.anchor()
    const reached = pods.next({
      what: 'all 300 in place',
      timeoutMs,
      holds: live => live.size === all && isInPlace(live.values(), wanted),
    })
    const requested = clock.now()
    await api.patch(backupPodSets, ref, { type: 'merge', body: { spec: sizesOf(wanted) } }, { signal })
    const { at: inPlace } = await reached
    await sets.quiet(restMs)
    const writes = statusWrites<BackupPodSet>(knownSets, sets.events)
    // A degraded set would measure something else: passes and writes that do not happen on a healthy cluster.
    await systemClock.sleep(gatesMs, signal)
    const { status } = await api.get(backupPodSets, ref, { signal })
    const told = status?.conditions?.find(({ type, status }) => type === 'Degraded' && status === 'True')
    if (told !== undefined) throw new Error(`the set is degraded: ${told.reason}: ${told.message}`)
    const log = await readLog(api, { namespace: operatorNamespace, name: leading.metadata.name }, requested)
    const created = createdIn(pods)
    const rate = noteCreations('', requested, created, samples)
    samples.add('request to all in place', 's', (inPlace - requested) / 1000)
    samples.add('passes that wrote to pods', 'passes', actingPasses(log, ref).length)
    samples.add('pods created', 'writes', created.length)
    samples.add('status writes', 'writes', writes)

    pods.forget()
    const gone = pods.next({ what: 'all pods are gone', timeoutMs, holds: live => live.size === 0 })
    clock.anchor()
    const ended = clock.now()
    await api.patch(backupPodSets, ref, { type: 'merge', body: { spec: sizesOf(nothing) } }, { signal })
    samples.add('scale 300 to 0', 's', ((await gone).at - ended) / 1000)
    await api.delete(backupPodSets, ref, {}, { signal })
    return rate
  } finally {
    stop.abort()
  }
}

/** @returns pods/s */
async function ofDeployment(context: BenchContext, namespace: string, samples: Sampler): Promise<number> {
  const { api, clock, images } = context
  const stop = new AbortController()
  const signal = AbortSignal.any([context.signal, stop.signal])
  const name = 'plain'
  const ref = { namespace, name }
  const template = counterTemplate(images.counter, name, onFakeNodes)
  try {
    const pods = await record(api, podResource, {
      namespace,
      labelSelector: `app=${name}`,
      now: clock.now,
      signal,
    })
    await api.create(deployments, deploymentOf(name, 0, template), { namespace, signal })
    await systemClock.sleep(restMs, signal)
    clock.anchor()
    const reached = pods.next({
      what: 'all 300 Ready',
      timeoutMs,
      holds: live => allReady(live.values(), all),
    })
    const requested = clock.now()
    await api.patch(deployments, ref, { type: 'merge', body: { spec: { replicas: all } } }, { signal })
    const { at } = await reached
    const rate = noteCreations('Deployment: ', requested, createdIn(pods), samples)
    samples.add('Deployment: request to all Ready', 's', (at - requested) / 1000)
    const gone = pods.next({ what: 'all pods are gone', timeoutMs, holds: live => live.size === 0 })
    await api.delete(deployments, ref, { propagationPolicy: 'Background' }, { signal })
    await gone
    return rate
  } finally {
    stop.abort()
  }
}

const createdIn = (pods: Recording<Pod>): readonly number[] =>
  podWrites(new Map(), pods.events as readonly Stamped<Pod>[]).flatMap(({ type, at }) =>
    type === 'created' ? [at] : [],
  )

function noteCreations(
  prefix: string,
  requested: number,
  times: readonly number[],
  samples: Sampler,
): number {
  const first = demand(times[0], 'a pod')
  const last = demand(times.at(-1), 'a pod')
  const rate = (times.length - 1) / ((last - first) / 1000)
  samples.add(`${prefix}pods created per second`, 'pods/s', rate)
  samples.add(`${prefix}request to first pod created`, 's', (first - requested) / 1000)
  samples.add(`${prefix}request to last pod created`, 's', (last - requested) / 1000)
  return rate
}

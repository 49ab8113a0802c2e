import { deployments, pods as podResource, services } from '../../src/kube/resources.ts'
import { type BenchContext, demand } from '../bench.ts'
import { firstAnswerOf, outageOf } from '../node/outage.ts'
import { counterTemplate, deploymentOf, serviceOf } from '../objects.ts'
import { openScene, proxyRestMs, type Scene, timeoutMs } from '../observe/scene.ts'
import { allReady, isLeaving, isReady } from '../observe/state.ts'
import { deletionAccepted } from '../observe/writes.ts'
import type { Sampler } from '../report.ts'

/** The same measurement for a pod of a Deployment with as many replicas. */
export async function ofDeployment(
  context: BenchContext,
  namespace: string,
  replicas: number,
  samples: Sampler,
): Promise<void> {
  const { api, signal, images } = context
  const name = `plain-${replicas}`
  await api.create(services, serviceOf(name, { app: name }), { namespace, signal })
  await api.create(deployments, deploymentOf(name, replicas, counterTemplate(images.counter, name)), {
    namespace,
    signal,
  })
  const scene = await openScene(context, namespace, name, `app=${name}`)
  const { prober, end } = scene
  try {
    for (let trial = 1; trial <= context.n; trial++) {
      const seen = await deleteOne(context, namespace, name, replicas, scene)
      tell(samples, replicas, seen, scene)
      const { ms } = outageOf(prober.probes, seen.requested)
      context.say(`${replicas}P Deployment ${trial}/${context.n}: outage ${ms.toFixed(0)} ms`)
    }
  } finally {
    await end()
    await api.delete(deployments, { namespace, name }, { propagationPolicy: 'Background' })
  }
}

/** By the bench's clock, ms. */
interface Replaced {
  readonly requested: number
  /** The API server had accepted the deletion. */
  readonly accepted: number
  readonly readyAt: number
  /** The new pod answered for the first time. */
  readonly answered: number
}

async function deleteOne(
  { api, clock, signal }: BenchContext,
  namespace: string,
  name: string,
  replicas: number,
  { pods, slices, prober }: Scene,
): Promise<Replaced> {
  if (!allReady(pods.live.values(), replicas))
    await pods.next({
      what: `${name} Ready`,
      timeoutMs,
      holds: live => allReady(live.values(), replicas),
    })
  await prober.steady(50, 0, timeoutMs)
  await slices.quiet(proxyRestMs)
  await pods.quiet(proxyRestMs)
  const known = new Set(pods.live.keys())
  const victim = demand(
    [...pods.live.values()].find(pod => !isLeaving(pod)),
    'a pod',
  )
  for (const each of [pods, slices, prober]) each.forget()
  clock.anchor()
  const ready = pods.next({
    what: 'a new pod is Ready',
    timeoutMs,
    holds: (_, { object }) => !known.has(object.metadata.uid) && isReady(object),
  })
  const requested = clock.now()
  await api.delete(podResource, { namespace, name: victim.metadata.name }, {}, { signal })
  const response = clock.now()
  const { at: readyAt, object: heir } = await ready
  await prober.steady(20, readyAt, timeoutMs)
  await slices.quiet(proxyRestMs)
  await prober.steady(20, readyAt, timeoutMs)
  const accepted = deletionAccepted(response, victim.metadata.uid, pods.events)
  const answered = demand(
    firstAnswerOf(prober.probes, new Set([heir.metadata.name])),
    'an answer of the new pod',
  )
  return { requested, accepted, readyAt, answered }
}

function tell(samples: Sampler, replicas: number, seen: Replaced, { prober, slices }: Scene): void {
  const note = (what: string, from: number, to: number) =>
    samples.add(`${replicas}P Deployment ${what}`, 's', (to - from) / 1000)
  const { requested, accepted, readyAt, answered } = seen
  const outage = outageOf(prober.probes, requested)
  note('deletion accepted to new pod Ready', accepted, readyAt)
  note('deletion accepted to first answer of the new pod', accepted, answered)
  samples.add(`${replicas}P Deployment outage`, 's', outage.ms / 1000)
  samples.add(`${replicas}P Deployment failed requests`, 'requests', outage.failed)
  samples.add(`${replicas}P Deployment EndpointSlice changes`, 'changes', slices.events.length)
}

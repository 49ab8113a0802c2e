import { deployments, pods as podResource, services } from '../../src/kube/resources.ts'
import { type BenchContext, demand } from '../bench.ts'
import { outageOf } from '../node/outage.ts'
import { counterTemplate, deploymentOf, serviceOf } from '../objects.ts'
import { openScene, proxyRestMs, timeoutMs } from '../observe/scene.ts'
import { allReady, isLeaving, isReady } from '../observe/state.ts'
import type { Sampler } from '../report.ts'
import { clientOf, killCounter } from './scene.ts'

/** A baseline needs no hundred trials, of which each takes ten seconds. */
const enoughTrials = 20

/**
 * Baseline without Understudy: the kubelet restarts a dead container, or the Deployment replaces a deleted pod. No
 * memory survives.
 */
export async function ofDeployment(
  context: BenchContext,
  namespace: string,
  samples: Sampler,
): Promise<void> {
  const { api, clock, signal, images } = context
  const name = 'plain'
  const trials = Math.min(context.n, enoughTrials)
  await api.create(services, serviceOf(name, { app: name }), { namespace, signal })
  await api.create(deployments, deploymentOf(name, 1, counterTemplate(images.counter, name)), {
    namespace,
    signal,
  })
  const { pods, slices, prober, end } = await openScene(context, namespace, name, `app=${name}`)
  const rest = async () => {
    await prober.steady(50, 0, timeoutMs)
    await slices.quiet(proxyRestMs)
  }
  try {
    if (!allReady(pods.live.values(), 1))
      await pods.next({ what: `${name} Ready`, timeoutMs, holds: live => allReady(live.values(), 1) })
    for (let trial = 1; trial <= trials; trial++) {
      await rest()
      const pod = demand(
        [...pods.live.values()].find(it => !isLeaving(it)),
        'a pod',
      )
      const direct = await clientOf(context, pod)
      try {
        await direct.steady(20, 0, timeoutMs)
        prober.forget()
        const killedAt = await killCounter(context, pod)
        await direct.steady(20, killedAt + 100, timeoutMs)
        await prober.steady(50, killedAt + 1_500, timeoutMs)
        const inPlace = outageOf(prober.probes, killedAt)
        samples.add('Deployment, restart in place: pod', 's', outageOf(direct.probes, killedAt).ms / 1000)
        samples.add('Deployment, restart in place: service', 's', inPlace.ms / 1000)
        // A second death of the same container would run into the kubelet's back-off, so each trial has a new pod.
        await rest()
        prober.forget()
        const replaced = pods.next({
          what: 'a new pod is Ready',
          timeoutMs,
          holds: (_, { object }) => object.metadata.uid !== pod.metadata.uid && isReady(object),
        })
        const deletedAt = clock.now()
        await api.delete(podResource, { namespace, name: pod.metadata.name }, {}, { signal })
        const { at } = await replaced
        await prober.steady(50, at + 1_500, timeoutMs)
        const replacement = outageOf(prober.probes, deletedAt)
        samples.add('Deployment, pod deleted: service', 's', replacement.ms / 1000)
        context.say(
          `Deployment ${trial}/${trials}: restart ${inPlace.ms.toFixed(0)} ms, replacement ${replacement.ms.toFixed(0)} ms`,
        )
      } finally {
        await direct.stop()
      }
    }
  } finally {
    await end()
    await api.delete(deployments, { namespace, name }, { propagationPolicy: 'Background' })
  }
}

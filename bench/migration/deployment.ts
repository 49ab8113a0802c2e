import { systemClock } from '../../src/kube/clock.ts'
import { deployments, pods } from '../../src/kube/resources.ts'
import { type BenchContext, demand } from '../bench.ts'
import { redis } from '../checkpoint/subjects.ts'
import { longestGap } from '../node/outage.ts'
import { deploymentOf } from '../objects.ts'
import { untilLarge as until } from '../observe/pods.ts'
import { proxyRestMs, timeoutMs } from '../observe/scene.ts'
import { isReady } from '../observe/state.ts'
import type { Baselines, Sampler } from '../report.ts'
import { clientOfService } from './service.ts'

/** The case of the Deployment, which the others are compared with. */
export const outageCase = 'Deployment, pod deleted: outage at the Service'

/**
 * Returns the baselines of moves: the figure of the published system, if it has one, and the Deployment of the same run.
 * @param cases names of the moves, with the figure, s.
 */
export const baselinesOf = (
  cases: readonly { readonly name: string; readonly published: number | undefined }[],
): Baselines =>
  Object.fromEntries(
    cases.map(({ name, published }) => [
      `${name}: outage at the Service`,
      {
        ...(published !== undefined && { 'published system': published }),
        Deployment: { case: outageCase },
      },
    ]),
  )

/** Baseline without Understudy: the pod of a Deployment is deleted, and another one begins without its memory. */
export async function ofDeployment(
  context: BenchContext,
  namespace: string,
  samples: Sampler,
): Promise<void> {
  const { api, clock, signal, images, n } = context
  const name = 'plain'
  const template = redis('3MB', 0).template(images)
  const labels = demand(template.metadata?.labels, 'labels')
  await api.create(deployments, deploymentOf(name, 1, template), { namespace, signal })
  const prober = await clientOfService(context, namespace, name, labels)
  try {
    for (let trial = 1; trial <= n; trial += 1) {
      await prober.steady(50, clock.now(), timeoutMs)
      await systemClock.sleep(proxyRestMs, signal)
      const { items } = await api.list(pods, { namespace }, { signal })
      const before = demand(items.find(isReady), 'a pod')
      prober.forget()
      const deletedAt = clock.now()
      await api.delete(pods, { namespace, name: before.metadata.name }, {}, { signal })
      await until('a new pod', async () => {
        const now = await api.list(pods, { namespace }, { signal })
        return now.items.some(pod => pod.metadata.uid !== before.metadata.uid && isReady(pod))
      })
      await prober.steady(50, clock.now() + proxyRestMs, timeoutMs)
      const ms = longestGap(prober.probes, deletedAt)
      samples.add(outageCase, 's', ms / 1000)
      context.say(`Deployment ${trial}/${n}: ${ms.toFixed(0)} ms`)
    }
  } finally {
    await prober.stop()
    await api.delete(deployments, { namespace, name }, { propagationPolicy: 'Foreground' })
  }
}

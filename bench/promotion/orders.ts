import { labels } from '../../src/api/labels.ts'
import type { Api } from '../../src/kube/api.ts'
import { systemClock } from '../../src/kube/clock.ts'
import { isKubeError } from '../../src/kube/errors.ts'
import {
  apiVersionOf,
  endpointSlices,
  type Pod,
  pods as podResource,
  services,
} from '../../src/kube/resources.ts'
import { type BenchContext, demand } from '../bench.ts'
import { outageOf } from '../node/outage.ts'
import { counterPort, counterTemplate, serviceOf } from '../objects.ts'
import { openScene, proxyRestMs } from '../observe/scene.ts'
import { isReady } from '../observe/state.ts'
import type { Sampler } from '../report.ts'

/** Two bare pods, one labelled primary, and a way to promote the other. */
interface Change {
  readonly api: Api
  readonly namespace: string
  readonly loser: Pod
  readonly winner: Pod
  readonly slice: string
  readonly signal: AbortSignal
}

interface Order {
  readonly title: string
  /** How long the loser's process keeps running after its deletion. */
  readonly stopAfterSeconds?: number
  /** The Service has no selector; the bench writes its EndpointSlice. */
  readonly ownSlice?: true
  perform(change: Change): Promise<void>
}

/** The time between two accepted requests of an operator that reacts to the first. */
const reactionMs = 10

export const orders: readonly [Order, ...Order[]] = [
  {
    title: 'delete, then label on',
    async perform(it) {
      await remove(it)
      await systemClock.sleep(reactionMs, it.signal)
      await relabel(it, it.winner, 'primary')
    },
  },
  {
    title: 'delete with a 2 s preStop, then label on',
    stopAfterSeconds: 2,
    async perform(it) {
      await remove(it)
      await systemClock.sleep(reactionMs, it.signal)
      await relabel(it, it.winner, 'primary')
    },
  },
  {
    title: 'label on, then delete',
    async perform(it) {
      await relabel(it, it.winner, 'primary')
      await remove(it)
    },
  },
  {
    title: 'label on, delete a proxy sync later',
    async perform(it) {
      await relabel(it, it.winner, 'primary')
      await systemClock.sleep(proxyRestMs, it.signal)
      await remove(it)
    },
  },
  {
    title: 'label off, label on, delete later',
    async perform(it) {
      await relabel(it, it.loser, 'retired')
      await relabel(it, it.winner, 'primary')
      await systemClock.sleep(2 * proxyRestMs, it.signal)
      await remove(it)
    },
  },
  {
    title: 'label on, label off, delete later',
    async perform(it) {
      await relabel(it, it.winner, 'primary')
      await relabel(it, it.loser, 'retired')
      await systemClock.sleep(2 * proxyRestMs, it.signal)
      await remove(it)
    },
  },
  {
    title: 'delete, then one write of an own EndpointSlice',
    ownSlice: true,
    async perform(it) {
      await remove(it)
      await systemClock.sleep(reactionMs, it.signal)
      await pointTo(it, it.winner)
    },
  },
  {
    title: 'one write of an own EndpointSlice, then delete',
    ownSlice: true,
    async perform(it) {
      await pointTo(it, it.winner)
      await systemClock.sleep(proxyRestMs, it.signal)
      await remove(it)
    },
  },
]

/**
 * Measures the outage of each order as a client sees it. A third of the trials suffices: the orders differ by far more
 * than they scatter.
 */
export async function measureOrders(
  context: BenchContext,
  namespace: string,
  samples: Sampler,
): Promise<void> {
  const trials = Math.max(1, Math.ceil(context.n / 3))
  for (const [index, order] of orders.entries()) {
    for (let trial = 1; trial <= trials; trial++) {
      const ms = await measureOrder(context, namespace, order, `order-${index}-${trial}`)
      samples.add(`order: ${order.title}`, 's', ms / 1000)
      context.say(`order "${order.title}" ${trial}/${trials}: outage ${ms.toFixed(0)} ms`)
    }
  }
}

async function measureOrder(
  context: BenchContext,
  namespace: string,
  order: Order,
  name: string,
): Promise<number> {
  const { api, clock, signal, images } = context
  const template = counterTemplate(images.counter, name, {
    ...(order.stopAfterSeconds === undefined ? {} : { stopAfterSeconds: order.stopAfterSeconds }),
  })
  const podOf = (suffix: string, type: string) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `${name}-${suffix}`, labels: { ...template.metadata?.labels, [labels.type]: type } },
    spec: template.spec,
  })
  const selector = { app: name, [labels.type]: 'primary' }
  await api.create(services, serviceOf(name, order.ownSlice ? undefined : selector), { namespace, signal })
  const { pods, slices, prober, end } = await openScene(context, namespace, name, `app=${name}`)
  try {
    const ready = pods.next({
      what: `pods of ${name} are Ready`,
      timeoutMs: 60_000,
      holds: live => live.size === 2 && [...live.values()].every(isReady),
    })
    await api.create(podResource, podOf('a', 'primary'), { namespace, signal })
    await api.create(podResource, podOf('b', 'hotbackup'), { namespace, signal })
    await ready
    const named = (suffix: string) =>
      demand(
        [...pods.live.values()].find(({ metadata }) => metadata.name === `${name}-${suffix}`),
        'a pod',
      )
    const change = { api, namespace, loser: named('a'), winner: named('b'), slice: name, signal }
    if (order.ownSlice) await api.create(endpointSlices, sliceOf(change, change.loser), { namespace, signal })
    await prober.steady(50, 0, 60_000)
    await slices.quiet(proxyRestMs)
    prober.forget()
    clock.anchor()
    const began = clock.now()
    await order.perform(change)
    const performed = clock.now()
    await prober.steady(50, performed + 500, 60_000)
    await slices.quiet(proxyRestMs)
    await prober.steady(50, performed + 500, 60_000)
    return outageOf(prober.probes, began).ms
  } finally {
    await end()
    await api.delete(services, { namespace, name })
    for (const pod of pods.live.values())
      await api
        .delete(podResource, { namespace, name: pod.metadata.name }, { gracePeriodSeconds: 0 })
        .catch((error: unknown) => {
          // Already gone since the list: the order under test deletes too.
          if (!isKubeError(error, 'NotFound')) throw error
        })
  }
}

const relabel = ({ api, namespace, signal }: Change, pod: Pod, type: string) =>
  api.patch(
    podResource,
    { namespace, name: pod.metadata.name },
    { type: 'merge', body: { metadata: { labels: { [labels.type]: type } } } },
    { signal },
  )

const remove = ({ api, namespace, loser, signal }: Change) =>
  api.delete(podResource, { namespace, name: loser.metadata.name }, {}, { signal })

const pointTo = (it: Change, pod: Pod) =>
  it.api.patch(
    endpointSlices,
    { namespace: it.namespace, name: it.slice },
    { type: 'merge', body: { endpoints: [endpointOf(pod)] } },
    { signal: it.signal },
  )

const sliceOf = ({ slice }: Change, pod: Pod) => ({
  apiVersion: apiVersionOf(endpointSlices),
  kind: endpointSlices.kind,
  metadata: { name: slice, labels: { 'kubernetes.io/service-name': slice } },
  addressType: 'IPv4',
  endpoints: [endpointOf(pod)],
  ports: [{ name: 'http', port: counterPort, protocol: 'TCP' }],
})

const endpointOf = (pod: Pod) => ({
  addresses: [demand(pod.status?.podIP, 'an address of the pod')],
  conditions: { ready: true },
})

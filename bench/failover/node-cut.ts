import type { Cluster } from '../../playground/cluster.ts'
import { until as waitUntil } from '../../playground/until.ts'
import { backupPodSets } from '../../src/api/backuppodset.ts'
import { labels } from '../../src/api/labels.ts'
import { type NumberedSlotLease, parseNumberedSlotLease, slotLeaseName } from '../../src/api/numbered-slot.ts'
import { systemClock } from '../../src/kube/clock.ts'
import { deployments, leases, pods, services } from '../../src/kube/resources.ts'
import { type Bench, type BenchContext, demand } from '../bench.ts'
import { inNamespace } from '../namespace.ts'
import { outageOf } from '../node/outage.ts'
import { counterPort, counterTemplate, deploymentOf, serviceOf, setOf } from '../objects.ts'
import { clientNode, openScene, type Scene } from '../observe/scene.ts'
import { isLeaving, isReady } from '../observe/state.ts'
import type { Sampler } from '../report.ts'

export const nodeCut: Bench = {
  name: 'node-cut',
  title: 'the node of the only primary is cut off: what clients see, at two time-outs; beside a Deployment',
  trials: 20,
  needs: ['operator', 'playground'],
  run: async (context, samples) => {
    await inNamespace(context.api, 'bench-node-cut', context.signal, async namespace => {
      for (const nodeTimeout of ['3s', '1s']) await ofSet(context, namespace, nodeTimeout, samples)
      for (const each of kubernetes) await ofDeployment(context, namespace, each, samples)
    })
    const deployment = {
      'Deployment, tolerationSeconds 0': { case: 'Deployment, tolerationSeconds 0: service' },
      Deployment: { case: 'Deployment: service' },
    }
    return samples.report('node-cut', {
      '3s: service': deployment,
      '1s: service': deployment,
    })
  },
}

/** The cluster is at rest before a cut. Until then kube-proxy, which syncs once a second after a burst, may still be behind. */
const restMs = 5_000

/** One trial of so many may also cut the leading operator off. */
const share = 4

/** Kubernetes gives a node up after 50 s, and evicts its pods then or later. */
const patienceMs = 600_000

interface Site {
  readonly context: BenchContext
  readonly cluster: Cluster
  readonly scene: Scene
  /** The client's node: it is never cut. */
  readonly client: string
  until<T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T>
}

/** Pods are on the other nodes. */
const elsewhere = (client: string) => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'NotIn', values: [client] }] },
        ],
      },
    },
  },
})

async function open(
  context: BenchContext,
  namespace: string,
  service: string,
  selector: string,
): Promise<Site> {
  const { api, signal } = context
  const cluster = demand(context.playground, 'a playground')
  const until: Site['until'] = (what, ask) => waitUntil(what, ask, { patienceMs, pollMs: 100, signal })
  await until(`the Service ${service}`, () =>
    api.get(services, { namespace, name: service }).catch(() => undefined),
  )
  const scene = await openScene(context, namespace, service, selector)
  return { context, cluster, scene, client: clientNode(context), until }
}

/** Cuts a node, waits for an answer of another pod, and joins the node. @returns ms without an answer */
async function cut({ context, cluster, scene }: Site, node: string): Promise<number> {
  const { prober } = scene
  await systemClock.sleep(restMs, context.signal)
  await prober.steady(50, 0, patienceMs)
  prober.forget()
  const at = context.clock.now()
  try {
    await cluster.cutNode(node)
    // Answers that were on their way are over by then.
    await prober.steady(50, at + 500, patienceMs)
  } finally {
    await cluster.joinNode(node)
  }
  return outageOf(prober.probes, at).ms
}

async function ofSet(
  context: BenchContext,
  namespace: string,
  nodeTimeout: string,
  samples: Sampler,
): Promise<void> {
  const { api, images, signal } = context
  const operator = demand(context.operator, 'an operator')
  const client = clientNode(context)
  const name = `cut-${nodeTimeout}`
  await api.create(
    backupPodSets,
    setOf(
      name,
      { primary: 1, hotbackup: 1, coldbackup: 0 },
      counterTemplate(images.counter, name, elsewhere(client)),
      {
        checkpoint: { interval: '1s' },
        failover: { nodeTimeout },
        service: { perSlot: true, ports: [{ port: counterPort }] },
      },
    ),
    { namespace, signal },
  )
  const site = await open(context, namespace, slotLeaseName(name, 0), `${labels.set}=${name}`)
  try {
    const done = { elsewhere: 0, there: 0 }
    while (done.elsewhere < context.n) {
      const { node = '' } = await site.until('a frozen understudy and a primary with voters', () =>
        readySlot(context, namespace, name),
      )
      const leader = await operator.leader()
      const isThere = leader.spec?.nodeName === node
      if (isThere && done.there * share >= context.n) {
        // Another operator leads from now on.
        await api.delete(pods, leader.metadata)
        await operator.settled()
        continue
      }
      done[isThere ? 'there' : 'elsewhere'] += 1
      const ms = await cut(site, node)
      samples.add(`${nodeTimeout}: service${isThere ? ', node of the leading operator' : ''}`, 's', ms / 1000)
      const which = isThere ? 'with the leader' : `${done.elsewhere}/${context.n}`
      context.say(`${nodeTimeout} ${which}: outage ${ms.toFixed(0)} ms`)
    }
  } finally {
    await site.scene.end()
    await api.delete(backupPodSets, { namespace, name }, { propagationPolicy: 'Background' })
  }
}

async function readySlot(
  { api }: BenchContext,
  namespace: string,
  name: string,
): Promise<NumberedSlotLease | undefined> {
  const { status } = await api.get(backupPodSets, { namespace, name })
  if (status?.slots?.[0]?.protection !== 'Frozen') return undefined
  const lease = parseNumberedSlotLease(await api.get(leases, { namespace, name: slotLeaseName(name, 0) }))
  return lease?.fence?.isArmed === true && lease.fence.next === undefined ? lease : undefined
}

/** Kubernetes' own way: a new pod without the memory. Few trials, for each takes as long as Kubernetes waits. */
const kubernetes = [
  { title: 'Deployment, tolerationSeconds 0', app: 'eager', tolerationSeconds: 0, trials: 2 },
  { title: 'Deployment', app: 'stock', tolerationSeconds: undefined, trials: 1 },
] as const

async function ofDeployment(
  context: BenchContext,
  namespace: string,
  { title, app, tolerationSeconds, trials }: (typeof kubernetes)[number],
  samples: Sampler,
): Promise<void> {
  const { api, images, signal } = context
  const client = clientNode(context)
  const tolerations =
    tolerationSeconds === undefined
      ? []
      : ['not-ready', 'unreachable'].map(state => ({
          ...{
            key: `node.kubernetes.io/${state}`,
            operator: 'Exists',
            effect: 'NoExecute',
            tolerationSeconds,
          },
        }))
  const template = counterTemplate(images.counter, app, { ...elsewhere(client), tolerations })
  await api.create(services, serviceOf(app, { app }), { namespace, signal })
  await api.create(deployments, deploymentOf(app, 1, template), { namespace, signal })
  const site = await open(context, namespace, app, `app=${app}`)
  try {
    for (let trial = 1; trial <= Math.min(trials, context.n); trial += 1) {
      const pod = await site.until('a pod that is Ready', async () =>
        [...site.scene.pods.live.values()].find(each => isReady(each) && !isLeaving(each)),
      )
      const ms = await cut(site, pod.spec?.nodeName ?? '')
      samples.add(`${title}: service`, 's', ms / 1000)
      context.say(`${title} ${trial}/${trials}: outage ${ms.toFixed(0)} ms`)
    }
  } finally {
    await site.scene.end()
    await api.delete(deployments, { namespace, name: app }, { propagationPolicy: 'Background' })
  }
}

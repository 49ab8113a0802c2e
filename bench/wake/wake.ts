import { randomBytes } from 'node:crypto'
import { isAtGate } from '../../src/api/gate.ts'
import { injectedResources } from '../../src/api/injected-resources.ts'
import { gateContainer, gatePort } from '../../src/backuppodset/pod/gate-container.ts'
import { systemClock } from '../../src/kube/clock.ts'
import { type Pod, pods as podResource } from '../../src/kube/resources.ts'
import { tokenDigest } from '../../src/slot/gate/token.ts'
import { wake as sendWake } from '../../src/slot/gate/wake.ts'
import { type Bench, type BenchContext, demand } from '../bench.ts'
import { inNamespace } from '../namespace.ts'
import { cgroupMemoryOf, memoryOf, pidInPod } from '../node/process.ts'
import { counterPort, counterTemplate } from '../objects.ts'
import { type Recording, record } from '../observe/recording.ts'
import { isReady } from '../observe/state.ts'
import { wakeningOf } from '../observe/wakening.ts'
import type { Sampler } from '../report.ts'

export const wake: Bench = {
  name: 'wake',
  title: 'a cold pod from the wake message to Ready, by step, beside a gate that ends; memory of a gated pod',
  trials: 30,
  needs: ['playground'],
  run: async (context, samples) => {
    await inNamespace(context.api, 'bench-wake', context.signal, async namespace => {
      const pods = await record(context.api, podResource, {
        namespace,
        now: context.clock.now,
        signal: context.signal,
      })
      for (let trial = 1; trial <= context.n; trial++) {
        const total = await wakeOne(context, namespace, pods, `gated-${trial}`, false, samples)
        const ending = await wakeOne(context, namespace, pods, `ending-${trial}`, true, samples)
        context.say(
          `${trial}/${context.n}: ${(total / 1000).toFixed(3)} s, a gate that ends ${(ending / 1000).toFixed(3)} s`,
        )
      }
    })
    return samples.report('wake', {
      ...Object.fromEntries(
        stepsOfWaking.map(step => [step, { 'a gate that ends': { case: `${step}${ofEnding}` } }]),
      ),
      'gated pod: waker Rss': { 'hot backup (counter)': { case: 'hot pod: counter Rss' } },
      'gated pod: waker Pss': { 'hot backup (counter)': { case: 'hot pod: counter Pss' } },
    })
  },
}

const timeoutMs = 30_000
const ofEnding = ', a gate that ends'
const stepsOfWaking = [
  'message to Ready',
  'message to app started',
  'split: message to answer',
  'split: answer to kubelet noticed',
  'split: kubelet noticed to app started (runtime)',
  'split: app started to Ready (first probe, status write)',
] as const
type Step = (typeof stepsOfWaking)[number]

/** If a template has this port, its gate ends when it opens and so frees the port. */
const onItsPort = [{ name: 'app', ports: [{ containerPort: gatePort }] }]

/** Wakes one gated pod that no set owns, so that only gate, kubelet and runtime are measured. @returns ms in all */
async function wakeOne(
  context: BenchContext,
  namespace: string,
  pods: Recording<Pod>,
  name: string,
  ends: boolean,
  samples: Sampler,
): Promise<number> {
  const { api, clock, signal } = context
  const token = randomBytes(32).toString('hex')
  const pod = await atItsGate(context, namespace, pods, name, tokenDigest(token), ends)
  const { uid } = pod.metadata
  const host = demand(pod.status?.podIP, 'an address of the pod')
  const gate = demand(await pidInPod(uid, 'waker'), 'the process of the gate')
  if (!ends) {
    await noteMemory('gated pod: waker', gate, samples)
    samples.add("gated pod: gate's memory cgroup", 'bytes', await cgroupMemoryOf(gate))
  }

  // A cold backup is usually idle for long before it is woken, and the kubelet's last news of it is older than its last
  // relist. It relists once a second, and trials must not all begin at the same phase of that second.
  await systemClock.sleep(3000 + Math.random() * 1000, signal)
  pods.forget()
  clock.anchor()
  const ready = pods.next({
    what: `${name} is Ready`,
    timeoutMs,
    holds: (_, { object }) => object.metadata.uid === uid && isReady(object),
  })
  const sent = clock.now()
  const reply = await sendWake({ host, port: gatePort, token, kind: 'hotbackup', timeoutMs, signal })
  const replied = clock.now()
  if (reply.type !== 'woken') throw new Error(`the gate of ${name} answered ${reply.type}`)
  const readyAt = (await ready).at
  const started = await startedAt(host, signal)
  const { noticed } = wakeningOf(uid, Number(reply.atNs / 1000n) / 1000, pods.events)
  const note = (what: Step, from: number, to: number) =>
    samples.add(ends ? `${what}${ofEnding}` : what, 's', (to - from) / 1000)
  note('message to Ready', sent, readyAt)
  note('message to app started', sent, started)
  note('split: message to answer', sent, replied)
  note('split: answer to kubelet noticed', replied, Math.max(replied, noticed))
  note('split: kubelet noticed to app started (runtime)', noticed, Math.max(noticed, started))
  note('split: app started to Ready (first probe, status write)', started, readyAt)

  if (!ends)
    await noteMemory(
      'hot pod: counter',
      demand(await pidInPod(uid, 'counter'), 'the process of the app'),
      samples,
    )
  await api.delete(podResource, { namespace, name }, {}, { signal })
  return readyAt - sent
}

/** Creates a cold backup that no set owns. Resolves when its gate waits. */
async function atItsGate(
  { api, signal, images }: BenchContext,
  namespace: string,
  pods: Recording<Pod>,
  name: string,
  digest: string,
  ends: boolean,
): Promise<Pod> {
  const gated = pods.next({
    what: `gate of ${name} runs`,
    timeoutMs,
    holds: (_, { object }) => object.metadata.name === name && isAtGate(object),
  })
  const template = counterTemplate(images.counter, name)
  const containers = template.spec?.containers ?? []
  await api.create(
    podResource,
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: {
        ...template.spec,
        initContainers: [
          gateContainer(images.waker, digest, ends ? onItsPort : containers, injectedResources),
        ],
      },
    },
    { namespace, signal },
  )
  return (await gated).object
}

async function noteMemory(what: string, pid: number, samples: Sampler): Promise<void> {
  const { rss, pss, private: own } = await memoryOf(pid)
  samples.add(`${what} Rss`, 'bytes', rss)
  samples.add(`${what} Pss`, 'bytes', pss)
  samples.add(`${what} private`, 'bytes', own)
}

/** Returns the start of the counter's process, as it reports it, Unix ms. */
async function startedAt(host: string, signal: AbortSignal): Promise<number> {
  const response = await fetch(`http://${host}:${counterPort}/peek`, { signal })
  const { startedAt } = (await response.json()) as { startedAt: number }
  return startedAt
}

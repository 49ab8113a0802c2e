import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../playground/until.ts'
import { daemonSets, pods } from '../../src/kube/resources.ts'
import {
  addressOf,
  agentPods,
  agentsNamespace,
  type CounterSet,
  counter,
  createCounters,
  holderOf,
  killAgents,
  killApp,
  promoted,
  readSlot,
  restartsOf,
  saved,
  slotsOf,
} from '../../zoo/slots.ts'
import { type Endurance, type EnduranceContext, must } from './endurance.ts'

const upgrades = 2

/** Longest time for which a primary may leave a client without an answer, ms. */
const patienceOfClient = 1_000

/**
 * Kills agents at any moment of a dump, a transfer or a restore, and upgrades them: no pod may be promoted, and no
 * memory may be lost.
 */
export const agents: Endurance = {
  name: 'agents',
  title: 'agents are killed at random moments, and upgraded twice: primaries go on, memory stays whole',
  n: 20,
  run: async context => {
    const { api, namespace, n, signal, say } = context
    const set: CounterSet = { api, namespace, name: 'guarded' }
    await createCounters(set, { replicas: 1, hotBackups: 1 })
    await until('a slot', async () => (await slotsOf(set)).length === 1, {
      patienceMs: 120_000,
      pollMs: 200,
      signal,
    })
    await saved(set)
    const [first] = await slotsOf(set)
    if (first === undefined) throw new Error('the slot is gone')
    const client = startClient(addressOf(await holderOf(set, first)))
    try {
      for (let round = 1; round <= n; round += 1) {
        await sleep(Math.random() * 1_500, undefined, { signal })
        await killAgents(api)
        await renewAgents(context)
        await saved(set)
        say(`${round}/${n}: killed; the slowest answer so far took ${client.slowest().toFixed(0)} ms`)
      }
      for (let round = 1; round <= upgrades; round += 1) {
        await upgrade(context, round)
        await saved(set)
        say(`upgrade ${round}/${upgrades}: the slowest answer so far took ${client.slowest().toFixed(0)} ms`)
      }
    } finally {
      await client.stop()
    }
    const [now] = await slotsOf(set)
    if (now === undefined) throw new Error('the slot is gone')
    must(
      'the slot has another holder',
      [now.epoch, now.incarnation, now.holder.uid],
      ([epoch, life, uid]) => epoch === first.epoch && life === first.incarnation && uid === first.holder.uid,
    )
    must('restarts', await restartsOf(set), seen => Object.keys(seen).length === 0)
    must('slowest answer, ms', Math.round(client.slowest()), ms => ms <= patienceOfClient)
    must('failed requests', client.failed(), failed => failed.length === 0)
    // The copy that was kept throughout is also right: it has the state that a client left.
    const ip = addressOf(await holderOf(set, now))
    const expected = await counter.read(ip)
    must('counted', expected, value => value === client.added())
    await saved(set)
    await killApp(await holderOf(set, now))
    const read = await readSlot(set, await promoted(set, now))
    must(`came back, instead of ${expected}, with`, read, value => value === expected)
    return [
      `${n} kills of all agents, ${upgrades} upgrades: nobody promoted, ${client.added()} requests, none failed, ` +
        `slowest answer ${client.slowest().toFixed(0)} ms; afterwards ${read} of ${expected} came back`,
    ]
  },
}

/** A client that counts without a pause. */
function startClient(ip: string) {
  let added = 0
  let slowest = 0
  const failed: string[] = []
  const stop = new AbortController()
  const done = (async () => {
    while (!stop.signal.aborted) {
      const begun = performance.now()
      try {
        await counter.add(ip)
        added += 1
      } catch (error) {
        failed.push(String(error))
      }
      slowest = Math.max(slowest, performance.now() - begun)
      await sleep(10)
    }
  })()
  return {
    added: () => added,
    failed: () => failed,
    slowest: () => slowest,
    async stop() {
      stop.abort()
      await done
    },
  }
}

/** The kubelet delays restarts of a crashing container more and more, up to minutes; a new pod starts at once. */
async function renewAgents({ api }: EnduranceContext): Promise<void> {
  for (const { metadata } of await agentPods(api))
    await api.delete(pods, { namespace: agentsNamespace, name: metadata.name })
}

/** Rolls every agent to a new pod, as another version of the image would. */
async function upgrade({ api, signal }: EnduranceContext, round: number): Promise<void> {
  const ref = { namespace: agentsNamespace, name: 'understudy-agent' }
  await api.patch(daemonSets, ref, {
    type: 'merge',
    body: {
      spec: { template: { metadata: { annotations: { 'endurance/upgrade': `${Date.now()}-${round}` } } } },
    },
  })
  await until(
    'the agents rolled',
    async () => {
      const { metadata, status } = await api.get(daemonSets, ref)
      return (
        status !== undefined &&
        status.observedGeneration === metadata.generation &&
        status.updatedNumberScheduled === status.desiredNumberScheduled &&
        status.numberReady === status.desiredNumberScheduled
      )
    },
    { patienceMs: 300_000, pollMs: 500, signal },
  )
}

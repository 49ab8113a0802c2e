/**
 * The samples by use, each through the death of its program, seen by its clients. The playground has no registry, so images of the same
 * programs (`standIns`) take the place of the public ones; the rest of each sample is applied as it is.
 */

import { kill } from 'node:process'
import { describe, expect, it } from 'vitest'
import { ensureImages } from '../../../images/build.ts'
import { pidsOf } from '../../../playground/pids.ts'
import { isReady } from '../../../src/kube/ready.ts'
import { deployments, nodes, type Pod, pods, services } from '../../../src/kube/resources.ts'
import { connectRedis } from '../../../zoo/redis.ts'
import { addressOf } from '../../../zoo/slots.ts'
import { eventually } from '../../support/eventually.ts'
import { kubectl, needsNodes, playground } from '../lib/cluster.ts'
import { type Player, play } from '../lib/player.ts'
import { answer, applySample, holder, killed, safe } from '../lib/samples.ts'
import { createWorld, restartsOf, type TestSet, type World } from '../lib/world.ts'

const patienceMs = 120_000

/** Memory is saved as often as the interval says: on a busy machine, the default would make it rarer. */
const oftenSaved = (set: TestSet) => set.patch({ checkpoint: { maxFreezePercent: 50 } })

/** Waits until a slot has a primary that is ready. */
const begun = (world: World, set: TestSet, slot = 0) =>
  eventually(async () => {
    const found = await holder(world, set, slot)
    if (!isReady(found.pod)) throw new Error(`${found.pod.metadata.name} is not ready`)
    return found
  }, 2 * patienceMs)

/** One command of a connection of its own. */
async function redis(ip: string, ...words: readonly string[]): Promise<string> {
  const client = await connectRedis(ip)
  try {
    return await client.send([words])
  } finally {
    client.close()
  }
}

const size = async (ip: string): Promise<number> => Number((await redis(ip, 'DBSIZE')).slice(1))

async function addKeys(ip: string, prefix: string, count: number): Promise<void> {
  const client = await connectRedis(ip)
  await client.send(
    Array.from({ length: count }, (_, index) => ['SET', `${prefix}:${index}`, 'x'.repeat(100)]),
  )
  client.close()
}

const replicaOf = ({ api, namespace }: World): Promise<Pod> =>
  eventually(async () => {
    const { items } = await api.list(pods, { namespace, labelSelector: 'app=redis-replica' })
    const [pod] = items
    if (pod?.status?.podIP === undefined) throw new Error('no replica yet')
    return pod
  }, patienceMs)

/** Reads the number of keys all the time. @returns a function that ends it and returns the numbers */
function watchSize(ip: string): () => Promise<readonly number[]> {
  const seen: number[] = []
  let stopped = false
  const run = (async () => {
    while (!stopped) {
      // While it loads its master's data, a replica refuses to answer.
      const value = await size(ip).catch(() => undefined)
      if (value !== undefined) seen.push(value)
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  })()
  return async () => {
    stopped = true
    await run
    return seen
  }
}

async function playGame(world: World, slot: number): Promise<Player> {
  const { api, namespace } = world
  const port = await eventually(async () => {
    const { spec } = await api.get(services, { namespace, name: `game-${slot}` })
    expect(spec?.type).toBe('LoadBalancer')
    const nodePort = spec?.ports?.[0]?.nodePort
    if (nodePort === undefined) throw new Error('no node port')
    return nodePort
  })
  const { items } = await api.list(nodes, {})
  const address = items[0]?.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address
  if (address === undefined) throw new Error('no address of a node')
  return play(address, port, `player of match ${slot}`)
}

describe.skipIf(needsNodes())('D19.samples: samples by use, whose program is killed', () => {
  it('redis.yaml: a master without persistence keeps its keys, and its replica is not emptied', async () => {
    await using world = await createWorld()
    const set = await applySample(world, 'redis.yaml', 'redis-master')
    await oftenSaved(set)
    const master = await begun(world, set)
    const replica = await replicaOf(world)
    await addKeys(master.ip, 'early', 200)
    await eventually(async () => expect(await size(addressOf(replica))).toBe(200), patienceMs)
    await safe(world, set)
    const sizes = watchSize(addressOf(replica))
    await addKeys(master.ip, 'late', 20)
    const next = addressOf(await killed(world, set, 'redis-server'))
    const kept = await eventually(() => size(next), patienceMs)
    expect(kept).toBeGreaterThanOrEqual(200)
    expect(kept).toBeLessThanOrEqual(220)
    await redis(next, 'SET', 'after', 'yes')
    await eventually(async () => {
      expect(await redis(addressOf(replica), 'GET', 'after')).toBe('yes')
      expect(await size(addressOf(replica))).toBe(await size(next))
    }, patienceMs)
    const seen = await sizes()
    // It has followed the whole time, and has never had less than what was saved.
    expect(Math.max(...seen)).toBeGreaterThanOrEqual(220)
    expect(Math.min(...seen)).toBeGreaterThanOrEqual(200)
    expect(restartsOf(await replicaOf(world))).toBe(0)
  }, 400_000)

  it('the same master in a Deployment loses its keys, and its replica is emptied: why there is redis.yaml', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    const set = await applySample(world, 'redis.yaml', 'redis-master')
    const { spec } = await set.get()
    await kubectl('delete', '-n', namespace, 'bps/redis-master', '--wait')
    const labels = { app: 'plain' }
    await api.create(
      deployments,
      {
        metadata: { name: 'redis-master', namespace },
        spec: { selector: { matchLabels: labels }, template: { ...spec.template, metadata: { labels } } },
      },
      { namespace },
    )
    await eventually(async () => {
      const ports = [{ port: 6379 }]
      await api.create(
        services,
        { metadata: { name: 'redis-master' }, spec: { selector: labels, ports } },
        { namespace },
      )
    }, patienceMs)
    const masterOf = () =>
      eventually(async () => {
        const { items } = await api.list(pods, { namespace, labelSelector: 'app=plain' })
        const pod = items.find(isReady)
        if (pod === undefined) throw new Error('no master yet')
        return pod
      }, patienceMs)
    const master = await masterOf()
    const replica = addressOf(await replicaOf(world))
    await addKeys(addressOf(master), 'early', 200)
    await eventually(async () => expect(await size(replica)).toBe(200), patienceMs)
    for (const pid of await pidsOf(master.metadata.uid, 'redis-server')) kill(pid, 'SIGKILL')
    await eventually(async () => expect(await size(replica)).toBe(0), patienceMs)
  }, 400_000)

  it('game-server.yaml: a player over UDP at a node port keeps playing, and the other match does not notice', async () => {
    await using world = await createWorld()
    const { api, namespace } = world
    const set = await applySample(world, 'game-server.yaml', 'game')
    await oftenSaved(set)
    for (const slot of [0, 1]) await begun(world, set, slot)
    await using ada = await playGame(world, 0)
    await using bob = await playGame(world, 1)
    await eventually(() => {
      expect(ada.last().packets).toBeGreaterThan(20)
      expect(bob.last().packets).toBeGreaterThan(20)
    }, patienceMs)
    const floor = ada.last()
    await safe(world, set)
    const before = await api.get(services, { namespace, name: 'game-0' })
    const [lastOfAda, lastOfBob] = [ada.last(), bob.last()]
    const at = ada.moments.length
    await killed(world, set, 'node', 0)
    await eventually(() => expect(ada.moments.length).toBeGreaterThan(at + 60), patienceMs)
    const after = ada.moments.filter(({ seq }) => seq > lastOfAda.seq + 20)
    // The match continues where it was saved: no packet and no tick before that is forgotten, and the position follows the ticks.
    expect(after[0]?.packets).toBeGreaterThanOrEqual(floor.packets)
    expect(after[0]?.tick).toBeGreaterThanOrEqual(floor.tick)
    for (const { tick, x, players } of after) {
      expect(x).toBeGreaterThan(0)
      expect(x).toBeLessThanOrEqual(tick)
      expect(players).toBe(1)
    }
    // The other match: every packet is counted once.
    const { seq, packets } = bob.last()
    expect(seq - packets).toBe(lastOfBob.seq - lastOfBob.packets)
    const { spec } = await api.get(services, { namespace, name: 'game-0' })
    expect(spec?.ports).toEqual(before.spec?.ports)
    expect(spec?.clusterIP).toBe(before.spec?.clusterIP)
  }, 400_000)

  it('session-store.yaml: users stay logged in', async () => {
    await using world = await createWorld()
    const set = await applySample(world, 'session-store.yaml', 'sessions')
    await oftenSaved(set)
    await begun(world, set)
    const login = await answer(world, set, '/login?user=ada', { method: 'POST' })
    const { id } = (await login.json()) as { id: string }
    for (let visit = 1; visit <= 3; visit += 1) await answer(world, set, `/session/${id}`)
    await safe(world, set)
    await killed(world, set, 'node')
    const session = await (await answer(world, set, `/session/${id}`)).json()
    expect(session).toEqual({ user: 'ada', visits: 4 })
    expect(await (await answer(world, set, '/count')).json()).toEqual({ sessions: 1 })
  }, 400_000)

  it('simulation.yaml: without a hot backup, a new pod continues the work', async () => {
    await using world = await createWorld()
    const set = await applySample(world, 'simulation.yaml', 'simulation')
    await oftenSaved(set)
    await begun(world, set)
    const progress = async () => {
      const { step, state } = (await (await answer(world, set, '/')).json()) as {
        step: number
        state: string
      }
      return { step, state: BigInt(state) }
    }
    const floor = await progress()
    await safe(world, set)
    await killed(world, set, 'python3')
    const first = await progress()
    // Memory may have been saved before the next step of the program was done: then the copy begins at the floor itself.
    expect(first.step).toBeGreaterThanOrEqual(floor.step)
    // Every step was done once, in order: the state is that of a program that was never interrupted.
    let state = 42n
    for (let step = 0; step < first.step; step += 1)
      state = BigInt.asUintN(64, state * 6_364_136_223_846_793_005n + 1_442_695_040_888_963_407n)
    expect(first.state).toBe(state)
    await eventually(async () => expect((await progress()).step).toBeGreaterThan(first.step))
  }, 400_000)

  it('jvm-service.yaml: carts stay filled', async () => {
    const { 'zoo-java': java } = await ensureImages(['zoo-java'])
    await (await playground()).loadImages([java.path])
    await using world = await createWorld()
    const set = await applySample(world, 'jvm-service.yaml', 'carts')
    await oftenSaved(set)
    await begun(world, set)
    for (const item of ['tea', 'milk']) await answer(world, set, `/ada?${item}`, { method: 'POST' })
    await safe(world, set)
    await killed(world, set, 'java')
    expect(await (await answer(world, set, '/ada')).text()).toBe('tea,milk\n')
    await answer(world, set, '/ada?sugar', { method: 'POST' })
    expect(await (await answer(world, set, '/ada')).text()).toBe('tea,milk,sugar\n')
  }, 600_000)

  it('http-state.yaml: scores stay, without an agent', async () => {
    await using world = await createWorld()
    const set = await applySample(world, 'http-state.yaml', 'scores')
    const [first] = (await set.settled(1, 1, 0, patienceMs)).primary
    if (first === undefined) throw new Error('no primary')
    const scores = async () => {
      const [pod] = await set.pods('primary')
      if (pod === undefined) throw new Error('no primary')
      const response = await fetch(`http://${addressOf(pod)}:8080/`, { signal: AbortSignal.timeout(5_000) })
      return { uid: pod.metadata.uid, scores: await response.json() }
    }
    for (let times = 0; times < 5; times += 1)
      await fetch(`http://${addressOf(first)}:8080/score/ada`, { method: 'POST' })
    // The hot backup gets each state that is pulled.
    await eventually(async () => {
      const [backup] = await set.pods('hotbackup')
      if (backup === undefined) throw new Error('no backup')
      const response = await fetch(`http://${addressOf(backup)}:8080/`)
      expect(await response.json()).toEqual({ ada: 5 })
    }, patienceMs)
    await set.deletePod(first, 0)
    await eventually(async () => {
      const now = await scores()
      expect(now.uid).not.toBe(first.metadata.uid)
      expect(now.scores).toEqual({ ada: 5 })
    }, patienceMs)
  }, 400_000)
})

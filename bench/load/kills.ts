import { execFile } from 'node:child_process'
import { kill } from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Cluster } from '../../playground/cluster.ts'
import { pods } from '../../src/kube/resources.ts'
import { redisPort } from '../../zoo/redis.ts'
import { type Bench, type BenchContext, demand } from '../bench.ts'
import { agentMetrics } from '../checkpoint/agent-metrics.ts'
import { inNamespace } from '../namespace.ts'
import { pidInPod } from '../node/process.ts'
import type { Sampler } from '../report.ts'
import { buildCrowd, type Crowd, type Life } from './crowd.ts'
import { type Loaded, labelOf, loadedSet, type Usage, untilLoaded } from './loaded.ts'
import { countersOf, countersOfMachine, grown, networks } from './lost-packets.ts'
import { watchSaves } from './saves.ts'
import { noteAge } from './state-age.ts'

export const loadKills: Bench = {
  name: 'load-kills',
  title: 'kill -9 of a redis with many busy connections: age of its state, beside one connection',
  trials: 30,
  needs: ['operator', 'playground'],
  run: async (context, samples) => {
    const { connections, perSecond } = context.load
    const usages: Usage[] = [
      { connections: 1, perSecond },
      { connections, perSecond },
    ]
    await inNamespace(context.api, 'bench-load', context.signal, async namespace => {
      for (const usage of usages) await measure(context, namespace, usage, samples)
    })
    const [one, many] = usages.map(labelOf)
    const cases = [
      'freeze',
      "freeze, by CRIU's statistics",
      'between saves',
      'state age at the kill',
      'outage',
    ]
    return samples.report(
      'load-kills',
      one === many
        ? {}
        : Object.fromEntries(
            cases.map(it => [`${many}: ${it}`, { 'one connection': { case: `${one}: ${it}` } }]),
          ),
    )
  },
}

/** Between two kills, in addition to the time until a backup exists again. */
const workMs = 3_000
const firstPort = 40_000
const knockMs = 5
/** Of clients with few ports: each knock costs one for a minute. */
const rareKnockMs = 1_000

const run = promisify(execFile)

async function measure(
  context: BenchContext,
  namespace: string,
  usage: Usage,
  samples: Sampler,
): Promise<void> {
  const { n, say, load } = context
  const label = labelOf(usage)
  const name = `load-${usage.connections}`
  const playground = demand(context.playground, 'a playground')
  const set = await loadedSet(context, namespace, name, load.interval)
  const start = await buildCrowd()
  const { node } = await set.lease()
  // Not the node of the first primary; later primaries may move to the client's node.
  const from = demand(
    playground.nodes.findLast(it => it !== node),
    'another node',
  )
  const order = { address: set.address, port: redisPort, ...usage }
  const portsBack = await narrow(playground, from, load.ports)
  const crowd = start(playground, from, {
    ...order,
    knockMs: load.ports === undefined ? knockMs : rareKnockMs,
  })
  const withinBound: boolean[] = []
  try {
    for (let trial = 1; trial <= n; trial += 1) {
      const { text, ok } = await oneKill(context, set, crowd, { label, usage, namespace }, samples)
      withinBound.push(ok)
      say(`${label} ${trial}/${n}: ${text}`)
    }
  } finally {
    await crowd.stop()
    await portsBack()
    await set.end()
  }
  const good = withinBound.filter(Boolean).length
  say(`${label}: at most 2 x interval + pipeline old in ${good} of ${withinBound.length} kills`)
}

/** Gives the clients of a node so many ports. @returns a function that gives them its own back */
async function narrow(
  cluster: Cluster,
  node: string,
  ports: number | undefined,
): Promise<() => Promise<void>> {
  const setting = '/proc/sys/net/ipv4/ip_local_port_range'
  const inNetwork = async (command: string) => {
    const [program = '', ...args] = cluster.argvInNetwork(node, ['sh', '-c', command])
    return (await run(program, args)).stdout.trim()
  }
  if (ports === undefined) return async () => {}
  const own = await inNetwork(`cat ${setting}`)
  await inNetwork(`echo ${firstPort} ${firstPort + ports - 1} > ${setting}`)
  return async () => {
    await inNetwork(`echo ${own} > ${setting}`)
  }
}

interface Trial {
  readonly label: string
  readonly usage: Usage
  readonly namespace: string
}

async function oneKill(
  context: BenchContext,
  set: Loaded,
  crowd: Crowd,
  { label, usage, namespace }: Trial,
  samples: Sampler,
): Promise<{ readonly text: string; readonly ok: boolean }> {
  const { api, clock, load, signal } = context
  const note = (what: string, seconds: number) => samples.add(`${label}: ${what}`, 's', seconds)
  const allUp = async () => {
    const life = await crowd.tell()
    return life.up === usage.connections && life.first > 0 && life
  }
  await untilLoaded(context, 'all clients connected', allUp)
  await set.protected()
  const lease = await set.lease()
  const source = await agentMetrics(api, demand(lease.node, 'a node'), signal)
  const saves = watchSaves(source, ({ frozen, criuFrozen, pipeline, gap }) => {
    note('freeze', frozen)
    note("freeze, by CRIU's statistics", criuFrozen)
    note('pipeline on its node', pipeline)
    if (gap !== undefined) note('between saves', gap)
  })
  await sleep(workMs + Math.random() * 2_000 * load.intervalSeconds, undefined, { signal })
  await saves.stop()
  const { silent } = await crowd.tell()
  samples.add(`${label}: clients that waited for five seconds`, 'requests', silent)
  const pid = demand(await pidInPod(lease.holder.uid, 'redis-server'), 'the process of redis')
  const heir = demand(lease.heir, 'an heir')
  const pace = await set.pace()
  const lost = await watchLosses(lease.holder.uid, heir.uid)
  clock.anchor()
  crowd.kill()
  // The `kill` order travels through a pipe; a client that connects at this moment still reaches the dying redis.
  await sleep(2)
  const killedAt = clock.now()
  kill(pid, 'SIGKILL')
  const promoted = await set.promoted(lease)
  const life = await untilLoaded(context, 'all clients served again', allUp)
  const drops = life.hung > 0 ? await lost() : ''
  await untilLoaded(context, 'the dead one gone', () =>
    api.get(pods, { namespace, name: lease.holder.name }).then(
      ({ metadata }) => metadata.uid !== lease.holder.uid || metadata.deletionTimestamp !== undefined,
      () => true,
    ),
  )
  if (life.saved === 0) throw new Error('the age of the memory is unknown: the slot started empty')
  const age = Math.max(0, killedAt - life.saved) / 1000
  const { intervalSeconds } = load
  const { text: old, ok } = noteAge(samples, `${label}: `, { age, intervalSeconds, ...pace })
  note('outage', (life.first - killedAt) / 1000)
  note('longest connect', life.longest / 1000)
  samples.add(`${label}: connects that hung`, 'requests', life.hung)
  const to = promoted.holder.uid === heir.uid ? '' : ', not by the heir'
  const waited = silent === 0 ? '' : `; before it ${silent} clients had no answer for 5 s`
  const text = `${old}; outage ${(life.first - killedAt).toFixed(0)} ms${to}; ${hangs(life, killedAt, drops)}${waited}`
  return { text, ok }
}

/** Returns a function that tells which counters of lost packets have grown since, and where. */
async function watchLosses(dead: string, heir: string): Promise<() => Promise<string>> {
  // The sandbox of a dead pod outlives its app for a while.
  const [deadPause, heirPause] = await Promise.all([pidInPod(dead, 'pause'), pidInPod(heir, 'pause')])
  const machine = await countersOfMachine()
  const names = new Map([
    [deadPause, 'the dead'],
    [heirPause, 'the heir'],
  ])
  const watched = await Promise.all(
    (await networks()).map(async ({ pid, pids, programs }) => ({
      pid,
      where: pids.flatMap(each => names.get(each) ?? [])[0] ?? programs.join(' and '),
      before: await countersOf(pid),
    })),
  )
  return async () => {
    const told = await Promise.all(
      watched.map(async ({ where, pid, before }) => ({ where, more: grown(before, await countersOf(pid)) })),
    )
    return [...told, { where: 'the machine', more: grown(machine, await countersOfMachine()) }]
      .filter(({ more }) => more.length > 0)
      .map(({ where, more }) => `${where}: ${more.join(', ')}`)
      .join('; ')
  }
}

const hangs = ({ hung, longest, refused, slow }: Life, killedAt: number, drops: string): string =>
  `connects: ${refused} refused, longest ${longest.toFixed(0)} ms, ${hung} hung${
    slow.length === 0
      ? ''
      : ` (begun ${slow.map(({ at, knock }) => `${(at - killedAt).toFixed(0)}${knock ? 'k' : ''}`).join(' ')} ms after the kill; ${drops})`
  }`

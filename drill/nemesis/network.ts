/** Faults of single links, by packet filters on a node, and of a node's whole network, by its queue. */
import { run } from '../../playground/exec.ts'
import { electionMs, silenceMs } from '../bounds.ts'
import type { Random } from '../random.ts'
import { primariesOf, type Stage, savedThrough, slotsOn, targetNodes } from '../stage.ts'
import { type Blow, type Nemesis, nothing, plain } from './nemesis.ts'

const directions = ['both', 'in', 'out'] as const
type Direction = (typeof directions)[number]

const table = ['inet', 'drill'] as const

/** Filters the packets of a node. A node without power has none, and comes back without filters. */
async function filter({ cluster }: Stage, node: string, chains: readonly string[]): Promise<void> {
  if (!(await cluster.hasPower(node))) return
  await cluster.inNode(node, ['nft', `table ${table.join(' ')} { ${chains.join('; ')}; }`])
}

/** Drops packets between a node with its pods and these networks. */
async function drop(stage: Stage, node: string, far: readonly string[], direction: Direction): Promise<void> {
  const set = `{ ${far.join(', ')} }`
  const comes = direction === 'out' ? [] : [`ip saddr ${set}`]
  const goes = direction === 'in' ? [] : [`ip daddr ${set}`]
  // A chain without rules is a syntax error.
  const chains = Object.entries({ input: comes, output: goes, forward: [...comes, ...goes] })
    .filter(([, rules]) => rules.length > 0)
    .map(([hook, rules]) => {
      const drops = rules.map(rule => `${rule} drop;`).join(' ')
      return `chain ${hook} { type filter hook ${hook} priority -10; ${drops} }`
    })
  await filter(stage, node, chains)
}

/** After a reboot it is gone already. */
const undrop = async ({ cluster }: Stage, node: string): Promise<void> => {
  await cluster.inNode(node, ['nft', 'delete', 'table', ...table]).catch(nothing)
}

const queueOf = ({ cluster }: Stage, node: string, words: readonly string[]): Promise<string> => {
  const label = cluster.plan.nodes.find(({ name }) => name === node)?.label ?? ''
  return run(['ip', 'netns', 'exec', label, 'tc', 'qdisc', ...words])
}

const unqueue = async (stage: Stage, node: string): Promise<void> => {
  await queueOf(stage, node, ['del', 'dev', 'eth0', 'root']).catch(nothing)
}

/** Ends what a drill that crashed has left in the network of a node. */
export async function healNetwork(stage: Stage, node: string): Promise<void> {
  await stage.cluster.resumeNode(node)
  await stage.cluster.joinNode(node)
  await undrop(stage, node)
  await unqueue(stage, node)
}

/** Returns the addresses of a node and its pods. */
const networksOf = ({ cluster: { plan } }: Stage, machine: string): string[] => {
  if (machine === 'cp') return [plan.controlPlane.address]
  const found = plan.nodes.find(({ name }) => name === machine)
  return found === undefined ? [] : [found.address, found.podCidr]
}

interface Link {
  readonly name: string
  readonly proves: string
  readonly far: (stage: Stage, random: Random, node: string) => string
  readonly effect: (stage: Stage, ends: readonly [node: string, far: string], holdMs: number) => Partial<Blow>
}

const ofLink = ({ name, proves, far: farOf, effect }: Link): Nemesis => ({
  name,
  proves,
  family: 'network',
  aim: async (stage, random) => {
    const { node } = random.of(primariesOf(stage))
    const far = farOf(stage, random, node)
    const direction = random.of(directions)
    const holdMs = random.between(3_000, 20_000)
    return {
      ...plain,
      target: `${node} and ${far}, ${direction === 'both' ? 'both ways' : `only ${direction}`}`,
      holdMs,
      unsaved: savedThrough(stage, [node]),
      ...effect(stage, [node, far], holdMs),
      strike: () => drop(stage, node, networksOf(stage, far), direction),
      heal: () => undrop(stage, node),
    }
  },
})

export const cutPeers = ofLink({
  name: 'cut-peers',
  proves: 'a primary that one other node does not hear, or that does not hear it, serves on',
  far: (stage, random, node) => random.of(targetNodes(stage).filter(other => other !== node)),
  effect: (_, ends, holdMs) => ({ silences: ends, outageMs: holdMs + silenceMs }),
})

export const cutApi = ofLink({
  name: 'cut-api',
  proves: 'a primary whose node cannot reach the API server serves on by the answers of its holders',
  far: () => 'cp',
  // The leading operator may be there.
  effect: (_, __, holdMs) => ({ silences: 'Api', outageMs: holdMs + silenceMs + electionMs }),
})

export const cutClients = ofLink({
  name: 'cut-clients',
  proves: 'a primary that only its clients cannot reach keeps its slot, and serves them as soon as it can',
  far: ({ clientNode }) => clientNode,
  // A client's kernel repeats a packet after one second, then after two more.
  effect: (stage, [node], holdMs) => ({ slots: slotsOn(stage, [node]), outageMs: holdMs + 3_000 }),
})

/** Heartbeats may be lost, so a takeover is no fault: it must only be a correct one. */
const degraded = (stage: Stage, node: string): Pick<Blow, 'slots' | 'mayPromote' | 'outageMs'> => ({
  slots: slotsOn(stage, [node]),
  mayPromote: true,
  outageMs: silenceMs,
})

export const lossy: Nemesis = {
  name: 'lossy',
  proves: 'a node that loses up to a quarter of its packets keeps every promise',
  family: 'network',
  aim: async (stage, random) => {
    const { node } = random.of(primariesOf(stage))
    const percent = 5 + random.below(20)
    const chain = (hook: string, link: string) =>
      `chain ${hook} { type filter hook ${hook} priority -10; ${link} "eth0" numgen random mod 100 < ${percent} drop; }`
    const chains = [chain('prerouting', 'iifname'), chain('postrouting', 'oifname')]
    return {
      ...plain,
      ...degraded(stage, node),
      target: `${node} loses ${percent} %`,
      unsaved: savedThrough(stage, [node]),
      holdMs: random.between(5_000, 20_000),
      strike: () => filter(stage, node, chains),
      heal: () => undrop(stage, node),
    }
  },
}

export const slow: Nemesis = {
  name: 'slow',
  proves: 'a node whose network has hardly any room keeps every promise',
  family: 'network',
  aim: async (stage, random) => {
    const { node } = random.of(primariesOf(stage))
    const kilobits = 500 + random.below(1_500)
    return {
      ...plain,
      ...degraded(stage, node),
      target: `${node} sends ${kilobits} kbit/s`,
      unsaved: savedThrough(stage, [node]),
      holdMs: random.between(5_000, 20_000),
      strike: async () => {
        const shape = ['tbf', 'rate', `${kilobits}kbit`, 'burst', '10kb', 'latency', '400ms']
        await queueOf(stage, node, ['add', 'dev', 'eth0', 'root', ...shape])
      },
      heal: () => unqueue(stage, node),
    }
  },
}

/** Faults of a whole node, which always has a primary. */
import { electionMs, silenceMs } from '../bounds.ts'
import type { Random } from '../random.ts'
import { podsOn, primariesOf, type Stage, savedThrough, slotsOn } from '../stage.ts'
import { type Blow, type Nemesis, plain } from './nemesis.ts'

const against = (stage: Stage, random: Random) => againstNode(stage, random.of(primariesOf(stage)).node)

/** Returns the facts about a fault that takes a node away for so long that its slots may change hands. */
export const againstNode = (stage: Stage, node: string): Omit<Blow, 'strike' | 'heal' | 'holdMs'> => ({
  ...plain,
  target: node,
  slots: slotsOn(stage, [node]),
  pods: podsOn(stage, [node]),
  mayPromote: true,
  silences: [node],
  unsaved: savedThrough(stage, [node]),
  // The leading operator may be there.
  outageMs: silenceMs + electionMs,
})

interface Kind {
  readonly name: string
  readonly proves: string
  readonly holdMs: (random: Random) => number
  /** The kubelet may start its pods before the agent. */
  readonly boots?: boolean
  readonly strike: (stage: Stage, node: string) => Promise<void>
  readonly heal: (stage: Stage, node: string) => Promise<void>
}

const ofNode = ({ name, proves, holdMs, boots = false, strike, heal }: Kind): Nemesis => ({
  name,
  proves,
  family: 'node',
  aim: async (stage, random) => {
    const blow = against(stage, random)
    return {
      ...blow,
      holdMs: holdMs(random),
      mayAnswerEmpty: boots,
      strike: () => strike(stage, blow.target),
      heal: () => heal(stage, blow.target),
    }
  },
})

const powerOn = ({ cluster, signal }: Stage, node: string) => cluster.startNode(node, { signal })

export const powerCut = ofNode({
  name: 'power-cut',
  proves: 'a node that loses power is replaced long before Kubernetes gives it up, and comes back clean',
  holdMs: random => random.between(8_000, 20_000),
  strike: ({ cluster }, node) => cluster.killNode(node),
  boots: true,
  heal: powerOn,
})

export const reboot = ofNode({
  name: 'reboot',
  proves: 'a node that reboots at once brings no pod of an old epoch back',
  holdMs: () => 0,
  strike: ({ cluster }, node) => cluster.killNode(node),
  boots: true,
  heal: powerOn,
})

export const pauseNode = ofNode({
  name: 'pause',
  proves: 'a node that was stopped for 1 to 30 s lets no answer of a primary out that has a successor',
  holdMs: random => random.between(1_000, 30_000),
  strike: ({ cluster }, node) => cluster.pauseNode(node),
  heal: ({ cluster }, node) => cluster.resumeNode(node),
})

export const cutNode = ofNode({
  name: 'cut',
  proves: 'a primary whose node is cut off has stopped before its slot continues elsewhere',
  holdMs: random => random.between(1_000, 25_000),
  strike: ({ cluster }, node) => cluster.cutNode(node),
  heal: ({ cluster }, node) => cluster.joinNode(node),
})

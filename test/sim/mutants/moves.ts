/** Fixes of what moving primaries have shown. */
import type { Scenario } from '../model/round.ts'
import type { Mutant } from './mutant.ts'

const moving = {
  ...{ seed: 0, nodes: 3, replicas: 1, hotBackups: 0, coldBackups: 0, copies: 1, containers: 'one' },
  ...{ memory: true, moves: true },
} as const satisfies Omit<Scenario, 'steps'>

const anywhere = { type: 'move', primary: 0, to: undefined, maxDowntimeMs: undefined } as const

export const ofMoves: readonly Mutant[] = [
  {
    finding: 'D16.nowhere',
    name: 'nowhere-counts',
    what: 'a slot whose primary is deleted waits for the pod of its move, which no node takes',
    mutations: [
      {
        file: 'src/backuppodset/decide/memory.ts',
        find: 'pod.node === undefined && pod.stage?.confined === true',
        replace: "pod.node === '' && pod.stage?.confined === true",
      },
    ],
    scenarios: [
      {
        ...moving,
        seed: 1,
        steps: [
          { afterMs: 0, command: { ...anywhere, to: 0 } },
          { afterMs: 1_176, command: { type: 'cutPrimarysNode', primary: 0, forMs: 2_000, apiOnly: false } },
          { afterMs: 0, command: { type: 'deletePod', pod: 0, force: false } },
          { afterMs: 0, command: { type: 'drain', node: 0, forMs: 2_000 } },
        ],
      },
    ],
  },
  {
    finding: 'D16.handed',
    name: 'moved-by-loss',
    what: 'a Migration says that it has moved a pod whose app had ended before, and whose last changes are lost',
    mutations: [
      {
        file: 'src/migration/observe.ts',
        find: 'isLoss: handedOverBy === tookOver,',
        replace: "isLoss: handedOverBy === '',",
      },
    ],
    scenarios: [
      {
        ...moving,
        coldBackups: 1,
        steps: [
          { afterMs: 0, command: anywhere },
          { afterMs: 0, command: { type: 'endApp', primary: 0, container: 'app' } },
          { afterMs: 0, command: anywhere },
        ],
      },
    ],
  },
  {
    finding: 'D8.blind',
    name: 'retained-storms',
    what: 'the end of a slot that a smaller set has no place for looks like the silence of its node, and holds up takeovers',
    mutations: [
      {
        file: 'src/slot/observe/storm.ts',
        find: 'lease.retainedSince === undefined',
        replace: "lease.retainedSince !== ''",
      },
    ],
    scenarios: [
      {
        ...moving,
        ...{ seed: 14, replicas: 2, hotBackups: 1, coldBackups: 1, nodeTimeoutMs: 1_500 },
        steps: [
          { afterMs: 0, command: { ...anywhere, to: 0 } },
          { afterMs: 0, command: { type: 'scale', replicas: 1 } },
          { afterMs: 9_262, command: { type: 'cutPrimarysNode', primary: 0, forMs: 10_240, apiOnly: false } },
          { afterMs: 239, command: { type: 'endAgent', node: 2, how: 'stop', forMs: 2_000 } },
        ],
      },
    ],
  },
]

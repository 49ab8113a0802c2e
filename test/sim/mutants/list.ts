/** Fixes, each taken back in one place, with scenarios in which that shows. */
import type { Command } from '../model/commands.ts'
import type { Scenario } from '../model/round.ts'
import type { Mutant } from './mutant.ts'

/** What happens, on each node in turn and by several chances: which of them is the primary's is not known before. */
const onEachNode = (
  steps: (node: number) => readonly (readonly [afterMs: number, command: Command])[],
): Scenario[] =>
  [1, 2, 3].flatMap(seed =>
    [0, 1, 2].map(node => ({
      ...{
        seed,
        nodes: 3,
        replicas: 1,
        hotBackups: 1,
        coldBackups: 0,
        copies: 1,
        containers: 'one' as const,
      },
      steps: steps(node).map(([afterMs, command]) => ({ afterMs, command })),
    })),
  )

const endApp: Command = { type: 'endApp', primary: 0, container: 'app' }
const endAgent = (node: number, forMs: number): Command => ({ type: 'endAgent', node, how: 'kill', forMs })

export const mutants: readonly Mutant[] = [
  {
    name: 'unusable-is-gone',
    what: 'what cannot be used at this moment counts as gone',
    mutations: [
      {
        file: 'src/backuppodset/memory/knowledge.ts',
        find: 'slot === undefined || (slot.copies.length === 0 && slot.unasked.length === 0)',
        replace: 'slot === undefined || usableOf(slot).length === 0',
      },
    ],
    // The agent of the node that keeps it has just started when the app ends.
    scenarios: onEachNode(node => [
      [0, endAgent(node, 2_000)],
      [3_000, endApp],
    ]),
  },
  {
    name: 'untold-restart',
    what: 'a restart of which no agent has spoken begins a new life',
    mutations: [
      {
        file: 'src/backuppodset/memory/knowledge.ts',
        find: 'slot === undefined || (slot.copies.length === 0 && slot.unasked.length === 0)',
        replace:
          'slot === undefined || slot.replacedSince !== undefined || (slot.copies.length === 0 && slot.unasked.length === 0)',
      },
    ],
    scenarios: onEachNode(node => [
      [0, endAgent(node, 25_000)],
      [500, endApp],
    ]),
  },
  {
    name: 'impostor',
    what: 'what runs in the place of a dead app is taken for it',
    mutations: [
      {
        file: 'src/agent/duties/duties-of.ts',
        find: "  containers !== undefined &&\n  containerId !== undefined &&\n  !containers.split(',')",
        replace: "  containers === 'none' &&\n  containerId !== undefined &&\n  !containers.split(',')",
      },
    ],
    scenarios: onEachNode(node => [[0, { type: 'powerOff', node, forMs: 2_000 }]]),
  },
]

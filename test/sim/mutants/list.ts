/** Fixes, each taken back in one place, with a scenario in which that shows. */
import type { Mutant } from './mutant.ts'

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
    scenarios: [
      {
        seed: 1073741800,
        nodes: 4,
        replicas: 1,
        hotBackups: 1,
        coldBackups: 0,
        copies: 1,
        containers: 'sidecar',
        steps: [
          { afterMs: 8, command: { type: 'endApp', primary: 1, container: 'app' } },
          { afterMs: 827, command: { type: 'deletePod', pod: 4, force: true } },
        ],
      },
    ],
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
    scenarios: [
      {
        seed: 942862496,
        nodes: 5,
        replicas: 2,
        hotBackups: 2,
        coldBackups: 1,
        copies: 2,
        containers: 'one',
        steps: [{ afterMs: 119, command: { type: 'powerOff', node: 4, forMs: 15429 } }],
      },
    ],
  },
  {
    name: 'impostor',
    what: 'what runs in the place of a dead app is taken for it',
    mutations: [
      {
        file: 'src/agent/duties/duties-of.ts',
        find: '  containers !== undefined &&\n  containerId !== undefined &&\n  !containers.split',
        replace: "  containers === 'never' &&\n  containerId !== undefined &&\n  !containers.split",
      },
    ],
    scenarios: [
      {
        seed: 7,
        nodes: 5,
        replicas: 2,
        hotBackups: 2,
        coldBackups: 0,
        copies: 1,
        containers: 'one',
        steps: [
          { afterMs: 2, command: { type: 'powerOff', node: 3, forMs: 2004 } },
          { afterMs: 1, command: { type: 'endApp', primary: 2, container: 'app' } },
          { afterMs: 7, command: { type: 'deletePod', pod: 4, force: true } },
        ],
      },
    ],
  },
  {
    name: 'unsaved-restart',
    what: 'restarts of containers that are not saved count',
    mutations: [
      {
        file: 'src/backuppodset/memory/stage.ts',
        find: '.filter(({ name }) => saved?.includes(name) ?? true)',
        replace: '.filter(({ name }) => name === name)',
      },
      {
        file: 'src/backuppodset/memory/observe.ts',
        find: '  if (lease.containers !== undefined)\n    return stage.containers !== undefined && stage.containers !== lease.containers\n',
        replace: '',
      },
    ],
    scenarios: [
      {
        seed: 938970027,
        nodes: 5,
        replicas: 1,
        hotBackups: 2,
        coldBackups: 0,
        copies: 1,
        containers: 'sidecar',
        steps: [
          { afterMs: 5988, command: { type: 'scale', replicas: 2 } },
          { afterMs: 44, command: { type: 'endAgent', node: 3, how: 'stop', forMs: 30545 } },
          { afterMs: 9570, command: { type: 'powerOff', node: 4, forMs: 37515 } },
          { afterMs: 553, command: { type: 'endApp', primary: 1, container: 'app' } },
          { afterMs: 5623, command: { type: 'handOver', primary: 0 } },
          { afterMs: 211, command: { type: 'cutNode', node: 1, forMs: 4272, apiOnly: false } },
        ],
      },
    ],
  },
]

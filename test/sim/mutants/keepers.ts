/** Who keeps memory, and who is asked for it: docs/adr/0115-who-keeps-and-who-is-asked.md. */
import type { Mutant } from './mutant.ts'
import { bySeeds, endApp, wait } from './scenarios.ts'

export const ofKeepers: readonly Mutant[] = [
  {
    finding: 'kept 1',
    name: 'source-not-asked',
    what: 'the node of the last primary is no holder when that has ended',
    mutations: [
      {
        file: 'src/backuppodset/memory/knowledge.ts',
        find: 'if (node === lease.node && !isVacant) return []',
        replace: 'if (node === lease.node) return []',
      },
      {
        file: 'src/backuppodset/memory/observe.ts',
        find: '(isHolders(each) || isVacant) && isKept(each.slot)',
        replace: 'isHolders(each) && isKept(each.slot)',
      },
    ],
    // One machine is lost for good, and the one that has followed it loses its app.
    scenarios: bySeeds([1, 2], { nodes: 2, copies: 2 }, [
      [0, { type: 'losePrimarysNode', primary: 0, forMs: 4_000_000 }],
      [60_000, endApp()],
      [120_000, wait],
    ]),
  },
  {
    finding: 'kept 5',
    name: 'any-copy-will-do',
    what: 'a copy is let go because another node has some copy, however old',
    mutations: [
      {
        file: 'src/backuppodset/decide/assignments.ts',
        find: 'newest !== undefined && copy.timely && stepsBehind(toldOf(copy, lease), toldOf(newest, lease)) === 0',
        replace: '!copy.stale',
      },
    ],
    // A machine with old copies dies, and a backup is bound to it before the scheduler knows.
    scenarios: [
      {
        ...{
          seed: 359_125_987,
          nodes: 3,
          replicas: 3,
          hotBackups: 1,
          coldBackups: 0,
          copies: 1,
          containers: 'two',
        },
        steps: [
          { afterMs: 14, command: { type: 'pauseOperator', index: 5, forMs: 5462 } },
          { afterMs: 10256, command: { type: 'deleteNamed', of: 'primary', force: false } },
          { afterMs: 39, command: { type: 'powerOff', node: 1, forMs: 29146 } },
          { afterMs: 30, command: { type: 'cutOperator', index: 4, forMs: 3646 } },
          { afterMs: 801, command: { type: 'deleteNamed', of: 'primary', force: true } },
          { afterMs: 10968, command: { type: 'editSpec', spec: { updateStrategy: { type: 'OnDelete' } } } },
          {
            afterMs: 58,
            command: { type: 'troubleOperator', index: 4, refusals: 0.3, lostAnswers: 0.5, forMs: 35599 },
          },
          { afterMs: 50, command: { type: 'deleteNamed', of: 'primary', force: false } },
          { afterMs: 647, command: { type: 'editSpec', spec: { checkpoint: { copies: 3 } } } },
        ],
      },
    ],
  },
]

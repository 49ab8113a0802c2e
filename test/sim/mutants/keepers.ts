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
]

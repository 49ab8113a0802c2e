/** What a pod leaves that is deleted: docs/adr/0116-findings-of-two-attacks.md, "Found by the simulation since". */
import type { Mutant } from './mutant.ts'
import { atEach, endApp, slow } from './scenarios.ts'

export const ofEnds: readonly Mutant[] = [
  {
    finding: 'found 1',
    name: 'thaw-unwatched',
    what: 'who was thawed is watched only once it has answered',
    mutations: [
      {
        file: 'src/agent/duties/promote.ts',
        find: 'await watchThaw(work, pod, clone, signal)',
        replace: '',
      },
    ],
    // Its node is slow to answer; the pod that was called is deleted by force meanwhile, and its successor goes on.
    scenarios: atEach([100, 125, 150], [100776238], { nodes: 4 }, ms => [
      [0, slow(1, { startMs: 500, answerMs: 500 }, 2_000)],
      [0, endApp()],
      [ms, { type: 'deletePod', pod: 1, force: true }],
      [262, endApp(1)],
    ]),
  },
  {
    finding: 'found 6',
    name: 'consent-ends',
    what: 'a primary that stands still for its successor goes on when its agent ends',
    mutations: [
      {
        file: 'src/agent/duties/hand-over.ts',
        find: 'if (!isPromised || !endsWithAgent) await',
        replace: 'await',
      },
    ],
    // The agents are exchanged in the middle of it.
    scenarios: atEach([85, 100, 115, 130, 145, 160, 180, 200], [111236396, 3], { hotBackups: 2 }, ms => [
      [0, { type: 'handOver', primary: 0 }],
      [ms, { type: 'rollAgents' }],
    ]),
  },
]

/** Guards that keep a slot from having two primaries by a grant: docs/adr/0129-heir-grant.md. */
import type { Mutant } from './mutant.ts'
import { bySeeds, onEachNode, wait } from './scenarios.ts'

const granted = { grants: true }
const two = { ...granted, nodes: 4, hotBackups: 2, copies: 2 }
const announced = { ...two, announced: true, nodeTimeoutMs: 3_000 }
const cutPrimarysNode = { type: 'cutPrimarysNode', primary: 0, forMs: 24_000, apiOnly: true } as const
const endApp = { type: 'endApp', primary: 0, container: 'app' } as const

export const ofGrant: readonly Mutant[] = [
  {
    finding: 'grant',
    name: 'another-called',
    what: 'another pod is called while the heir may have taken the slot by its grant',
    mutations: [
      {
        file: 'src/slot/decide/grant.ts',
        find: 'return outstanding === undefined || outstanding.heir.uid === uid',
        replace: 'return outstanding === undefined || uid.length > 0',
      },
    ],
    // The heir's node cannot say that it serves.
    scenarios: onEachNode([1, 2], two, node => [
      [9_000, { type: 'cutNode', node, forMs: 40_000, apiOnly: true }],
      [300, endApp],
      [30_000, wait],
    ]),
  },
  {
    finding: 'grant',
    name: 'grant-forgotten',
    what: 'the next agent of the heir does not know that the earlier one has agreed',
    mutations: [
      {
        file: 'src/agent/state/grants.ts',
        find: 'new Map(files.left.map(record => [slotName(record.slot), record]))',
        replace: 'new Map(files.left.slice(0, 0).map(record => [slotName(record.slot), record]))',
      },
    ],
    scenarios: onEachNode([1, 2], granted, node => [
      [9_000, { type: 'endOperator', index: 0, how: 'kill', forMs: 20_000 }],
      [0, { type: 'endOperator', index: 1, how: 'kill', forMs: 20_000 }],
      [300, endApp],
      [2_000, { type: 'endAgent', node, how: 'kill', forMs: 1_000 }],
      [25_000, wait],
    ]),
  },
  {
    finding: 'grant',
    name: 'gone-heir-awaited',
    what: 'a slot waits for ever for an heir that has used its grant and was deleted since',
    mutations: [
      {
        file: 'src/slot/observe/grants.ts',
        find: "isEnded(heir) ? 'Over' : heirStateOf(heir, deps)",
        replace: 'heirStateOf(heir, deps)',
      },
    ],
    scenarios: bySeeds([1, 2], granted, [
      [9_000, { type: 'endOperator', index: 0, how: 'kill', forMs: 10_000 }],
      [0, { type: 'endOperator', index: 1, how: 'kill', forMs: 10_000 }],
      [300, endApp],
      [3_000, { type: 'deleteNamed', of: 'hotbackup', force: true }],
      [20_000, wait],
    ]),
  },
  {
    finding: 'grant',
    name: 'go-before-death',
    what: 'the agent of a living primary tells that of the heir to take the slot',
    mutations: [
      {
        file: 'src/agent/decide/primary-tasks.ts',
        find: 'const tasks: Task[] = [',
        replace: 'const tasks: Task[] = [...ofGrant(snapshot, slot, pod),',
      },
      {
        file: 'src/agent/decide/grants.ts',
        find: ' || snapshot.dead.get(pod.uid) !== name) return []',
        replace: ' || snapshot.dead.get(pod.uid) === "") return []',
      },
      {
        file: 'src/agent/tasks/say-go.ts',
        find: 'await endWatched(sentinel, watches)',
        replace: 'await endWatched(sentinel, [])',
      },
    ],
    scenarios: bySeeds([1, 2], { ...granted, nodeTimeoutMs: 3_000 }, [[12_000, wait]]),
  },
  {
    finding: 'grant',
    name: 'ended-grant-used',
    what: 'an heir resumes by a grant that the operator has ended on its pod',
    mutations: [
      {
        file: 'src/agent/tasks/tell-resuming.ts',
        find: 'if (grantsOver(written.annotations, lease.incarnation) < number) return true',
        replace: 'if (number > 0) return true',
      },
    ],
    // The nodes of primary and heir are cut off, and reach each other when the primary dies. The grant has been ended since, and
    // another pod is called.
    scenarios: onEachNode([1, 2], announced, node => [
      [9_000, cutPrimarysNode],
      [0, { type: 'cutNode', node, forMs: 24_000, apiOnly: true }],
      [16_000, { type: 'lagAgent', node, resource: 'leases', lagMs: -1, forMs: 30_000 }],
      [0, { type: 'lagAgent', node, resource: 'pods', lagMs: -1, forMs: 30_000 }],
      [1_000, endApp],
      [25_000, wait],
    ]),
  },
]

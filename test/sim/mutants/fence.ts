/** Guards that keep a slot from having two primaries: docs/adr/0128-fencing.md. */
import type { Command } from '../model/commands.ts'
import type { Mutant, Mutation } from './mutant.ts'
import { bySeeds, onEachNode, type Steps, takenBackUnasked, wait } from './scenarios.ts'

const voted = { nodeTimeoutMs: 3_000, hotBackups: 1 }

const cutOff = (forMs: number, apiOnly = false): Command => ({
  ...{ type: 'cutPrimarysNode', primary: 0, forMs, apiOnly },
})
/** The node learns late of the next primary. */
const deaf = (node: number, forMs: number): Steps =>
  (['leases', 'pods'] as const).map(resource => [0, { type: 'lagAgent', node, resource, lagMs: -1, forMs }])

/** The API server's answer resumes a stopped primary without another look at its Lease. */
const answeredUnasked: Mutation = {
  file: 'src/agent/tasks/api-voter.ts',
  find: 'if (fenced.has(name) && !(await looks(name))) return',
  replace: 'if (fenced.has(name) && looks === undefined) return',
}

export const ofFence: readonly Mutant[] = [
  {
    finding: 'fence',
    name: 'one-statement',
    what: 'one voter that hears nothing is enough for a takeover',
    mutations: [
      {
        file: 'src/slot/decide/fence/verdict.ts',
        find: 'if (mayPromote && isFenced(fence, votes.silent))',
        replace: 'if (mayPromote && votes.silent.size > 0)',
      },
    ],
    // Only the link between the primary and its holder is cut: it serves on by the answers of the API server.
    scenarios: onEachNode([1], voted, node => [
      [9_000, { type: 'cutLink', from: node, to: (node + 1) % 3, both: true, forMs: 12_000 }],
      [10_000, wait],
    ]),
  },
  {
    finding: 'fence',
    name: 'hasty-statement',
    what: 'a voter states silence while its answers still count',
    mutations: [
      {
        file: 'src/slot/decide/fence/voter.ts',
        find: 'now - heardAt >= nodeTimeoutMs',
        replace: 'now - heardAt >= nodeTimeoutMs / 3',
      },
    ],
    scenarios: bySeeds([1, 2], { ...voted, nodes: 4, hotBackups: 2, copies: 2 }, [
      [9_000, cutOff(8_000)],
      [8_000, wait],
    ]),
  },
  {
    finding: 'fence',
    name: 'long-answers',
    what: 'an answer counts for longer than its voter waits',
    mutations: [
      {
        file: 'src/slot/decide/fence/primary.ts',
        find: 'const answerCountsFor = 2 / 3',
        replace: 'const answerCountsFor = 2',
      },
    ],
    scenarios: bySeeds([1, 2], voted, [
      [9_000, cutOff(8_000)],
      [8_000, wait],
    ]),
  },
  {
    finding: 'fence',
    name: 'same-server',
    what: 'the API server answers a primary after it has stated its silence',
    mutations: [
      {
        file: 'src/agent/report/api-answer.ts',
        find: "const silences = metadata.annotations?.[silencesAnnotation] ?? '0'",
        replace: "const silences = metadata.annotations === null ? silencesAnnotation : '0'",
      },
      // Another defence: the agent asks for the Lease.
      answeredUnasked,
    ],
    // The node is back while its agent does not yet know of the successor.
    scenarios: onEachNode([1, 2], voted, node => [
      [9_000, cutOff(6_000)],
      ...deaf(node, 12_000),
      [12_000, wait],
    ]),
  },
  {
    finding: 'fence',
    name: 'taken-back',
    what: 'a voter answers a primary after it has stated its silence',
    mutations: [
      {
        file: 'src/slot/decide/fence/voter.ts',
        find: 'epoch > stated',
        replace: 'epoch >= stated',
      },
      // Another defence: the agent asks for the Lease.
      answeredUnasked,
    ],
    // Both holders state its silence. One of them hears it again before that holder knows of the successor.
    scenarios: [1, 2, 3].flatMap(other =>
      onEachNode([3], { ...voted, nodes: 4, copies: 2 }, node => [
        [9_000, cutOff(5_000)],
        ...deaf(node, 12_000),
        ...deaf((node + other) % 4, 12_000),
        [12_000, wait],
      ]),
    ),
  },
  {
    finding: 'fence',
    name: 'deletion-decides',
    what: 'a deleted primary that its voters hear is given up when Kubernetes hears nothing of its node',
    mutations: [
      {
        file: 'src/backuppodset/decide/vacancies.ts',
        find: '(isExpectedToGo(slot, s.monotonicNow) || isOutOfReach(s, slot))',
        replace: 'isExpectedToGo(slot, s.monotonicNow)',
      },
    ],
    scenarios: bySeeds([1, 2], voted, [
      [9_000, cutOff(20_000, true)],
      [500, { type: 'deleteNamed', of: 'primary', force: false }],
      [18_000, wait],
    ]),
  },
  {
    finding: 'fence',
    name: 'gone-means-ended',
    what: 'a primary whose pod was deleted by force counts as ended, although its node has just been cut off',
    mutations: [
      {
        file: 'src/slot/observe/observe-slot.ts',
        find: ': goneBy(lease, source?.slot.ended, since)',
        replace: ': goneBy(lease, lease.holder.uid, since)',
      },
    ],
    scenarios: bySeeds([1, 2], voted, [
      [9_000, cutOff(6_000)],
      [0, { type: 'deleteNamed', of: 'primary', force: true }],
      [8_000, wait],
    ]),
  },
  {
    finding: 'fence',
    name: 'resumes-without-lease',
    what: 'a pod that has lost its slot resumes because its set and the Lease are gone',
    mutations: [
      {
        file: 'src/agent/tasks/guard.ts',
        find: '!(await inquiry.isThere(pod, signal))',
        replace: 'pod.uid === ""',
      },
    ],
    // The agent of the successor and the operators do not hear of the new set while the node of the old primary returns.
    scenarios: bySeeds([17], { nodeTimeoutMs: 1_500 }, [
      [0, cutOff(2_782)],
      [1_387, { type: 'lagAgent', node: 3, resource: 'reports', lagMs: -1, forMs: 2_000 }],
      [393, { type: 'deletePod', pod: 1, force: false }],
      [100, { type: 'cutNode', node: 0, forMs: 1_855, apiOnly: true }],
      [78, { type: 'cutOperator', index: 0, forMs: 2_000 }],
      [0, { type: 'cutOperator', index: 1, forMs: 2_000 }],
      [0, { type: 'recreateSet' }],
      [12_000, wait],
    ]),
  },
  {
    finding: 'fence',
    name: 'server-is-back',
    what: 'the API server counts as a voter again when an agent writes after a statement about its node',
    mutations: [
      {
        file: 'src/slot/observe/votes.ts',
        find: 'const isSilent = unheardMs >= fence.timeoutMs || !isStated',
        replace: 'const isSilent = unheardMs >= fence.timeoutMs',
      },
    ],
    // Two primaries are cut off on one node. One is replaced; the holder of the other one starts again meanwhile.
    scenarios: bySeeds([1], { ...voted, replicas: 2, hotBackups: 2, coldBackups: 1, unreadySeconds: 30 }, [
      [0, { type: 'powerOff', node: 0, forMs: 13_000 }],
      [246, cutOff(20_000)],
      [22_000, wait],
    ]),
  },
  {
    finding: 'fence',
    name: 'recovers-at-resync',
    what: 'the operator does not look again at a primary that its voters have fenced, and that no other pod could replace',
    mutations: [
      {
        file: 'src/slot/decide/fence/verdict.ts',
        find: "{ type: 'NothingUsable', lookAgainMs: untilHeard(votes.statedAt, votes, fence, s.monotonicNow) }",
        replace: "{ type: 'NothingUsable' }",
      },
    ],
    // The machine wakes up after its last answer has ended, and nothing of the primary has been saved yet. An app that is
    // stopped does not answer its probe, so that nothing is saved either before the agent hears of the stop.
    scenarios: [9_560, 9_900, 10_500, 12_000].flatMap(forMs =>
      bySeeds([0], { nodes: 4, hotBackups: 0, copies: 2, probes: true, nodeTimeoutMs: 10_000 }, [
        [0, { type: 'pausePrimarysMachine', primary: 0, forMs }],
      ]),
    ),
  },
  {
    finding: 'fence',
    name: 'stopped-by-pause',
    what: 'a primary that its voters have stopped gets no new term during a pause, because another pod could take over after it',
    mutations: [
      {
        file: 'src/slot/decide/fence/paused.ts',
        find: '{ slot: { ...slot, copies: [] }, pod }',
        replace: '{ slot, pod }',
      },
    ],
    scenarios: bySeeds(
      [1],
      { hotBackups: 0, copies: 2, probes: false, unreadySeconds: 4, nodeTimeoutMs: 1_500, graves: true },
      [
        [1_717, { type: 'pauseSet', forMs: 17_881 }],
        [11, cutOff(2_000)],
        [8_501, { type: 'endApp', primary: 0, container: 'app' }],
      ],
    ),
  },
  {
    finding: 'fence',
    name: 'unready-while-fenced',
    what: 'the time for which a primary was stopped by its voters counts as unready once it runs again',
    mutations: [
      {
        file: 'src/backuppodset/decide/losses.ts',
        find: '[settledSince, unfencedSince].map',
        replace: '[settledSince].map',
      },
    ],
    // Its successor can be called only after the same disturbance.
    scenarios: bySeeds(
      [19],
      { ...voted, replicas: 2, containers: 'sidecar', probes: false, unreadySeconds: 4, graves: true },
      [
        [0, { type: 'cutPrimarysNode', primary: 3, forMs: 22_030, apiOnly: true }],
        [0, { type: 'deletePod', pod: 2, force: true }],
        [3_932, { type: 'deletePod', pod: 0, force: true }],
        [3_130, { type: 'deletePod', pod: 1, force: true }],
        [136, { type: 'pauseAgent', node: 2, forMs: 4_827 }],
        [4_837, { type: 'cutNode', node: 0, forMs: 13_504, apiOnly: false }],
      ],
    ),
  },
  {
    finding: 'found 44',
    name: 'answered-after-handover',
    what: 'the API server answers a stopped primary whose slot was handed over while its node was cut off',
    mutations: [answeredUnasked, takenBackUnasked],
    scenarios: bySeeds([0, 1, 2], voted, [
      [0, { type: 'pauseSet', forMs: 4_331 }],
      [3_182, { type: 'lagAgent', node: 4, resource: 'pods', lagMs: -1, forMs: 18_986 }],
      [18, { type: 'handOver', primary: 5 }],
      [1_025, { type: 'lagOperator', index: 0, resource: 'leases', lagMs: 5_721, forMs: 26_293 }],
      [3_723, cutOff(28_172)],
    ]),
  },
  {
    finding: 'found 45',
    name: 'answered-in-one-term',
    what: 'the API server answers a stopped primary in the term that it has, and not in the next one',
    mutations: [
      {
        file: 'src/agent/tasks/api-voter.ts',
        find: '[...terms].map(term => sentinel',
        replace: '[...terms].slice(0, 1).map(term => sentinel',
      },
    ],
    scenarios: bySeeds(
      [0],
      { hotBackups: 0, copies: 2, probes: false, unreadySeconds: 4, nodeTimeoutMs: 3_000, graves: true },
      [
        [1_488, { type: 'pausePrimarysMachine', primary: 0, forMs: 3_506 }],
        [230, { type: 'powerOff', node: 1, forMs: 4_759 }],
        [0, { type: 'endApp', primary: 0, container: 'app' }],
      ],
    ),
  },
]

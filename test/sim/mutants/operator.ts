/**
 * Fixes of findings about the operator, as docs/adr/0112 numbers them.
 *
 * Long because it is a list of mutants with their scenarios.
 */
import type { Command } from '../model/commands.ts'
import type { Mutant } from './mutant.ts'
import {
  atEach,
  bySeeds,
  endAgent,
  endApp,
  hangApp,
  lag,
  latecomersRun,
  leavesUntold,
  onEachNode,
  resumingIsNothing,
  type Steps,
  slow,
  startingIsAbsent,
  takenBackUnasked,
  wait,
} from './scenarios.ts'

/** Otherwise the operator that has asked calls a handover off by the time of its request. */
const neverOverdue = {
  file: 'src/backuppodset/decide/handover-turns.ts',
  find: ' && !isOverdue(slot, s)',
  replace: '',
} as const

/** Rolls to a template that fits the memory. */
const roll: Steps = [
  [
    8_000,
    {
      type: 'editSpec',
      spec: {
        updateStrategy: { type: 'RollingUpdate' },
        template: { metadata: { labels: { version: '2' } } },
      },
    },
  ],
  [60_000, wait],
]

/** The primary's agent ends while the primary is stopped; when it is back, one of the two nodes is unreachable. */
const handoverInVain = (cut: number): Steps => [
  [6_000, { type: 'handOver', primary: 0 }],
  [33, { type: 'endAgent', node: 0, how: 'stop', forMs: 13_000 }],
  [3_000, { type: 'cutPeers', node: cut, forMs: 20_000 }],
  [20_000, wait],
]

export const ofOperator: readonly Mutant[] = [
  {
    finding: 'R1',
    name: 'namesake',
    what: 'a set takes the Leases of one of its name that was deleted for its own',
    mutations: [
      {
        file: 'src/slot/observe/slot-leases.ts',
        find: 'ownerReferences.length > 0 && ownerReferences.every(owner => owner.uid !== uid)',
        replace: 'ownerReferences.length > 99 && ownerReferences.every(owner => owner.uid !== uid)',
      },
      {
        file: 'src/agent/observe/pod-facts.ts',
        find: 'pod.owner === undefined || owner === pod.owner',
        replace: 'pod.owner === undefined || owner.length > 0',
      },
    ],
    scenarios: bySeeds([1, 2], {}, [
      [3_000, { type: 'slowCollector', forMs: 15_000 }],
      ...[0, 1, 2].map(
        node =>
          [
            0,
            { type: 'lagAgent', node, resource: 'leases', lagMs: 6_000, forMs: 10_000 } satisfies Command,
          ] as const,
      ),
      [0, { type: 'recreateSet' }],
      [20_000, wait],
    ]),
  },
  {
    finding: 'R2',
    name: 'old-caches',
    what: 'a leader begins its term on what its caches showed before',
    mutations: [
      {
        file: 'src/kube/freshen.ts',
        find: '    await Promise.race([all, late()])\n',
        replace: '    if (patienceMs < 0) await Promise.race([all, late()])\n',
      },
    ],
    scenarios: [0, 1].flatMap(leader =>
      bySeeds([4, 5], { nodes: 4, hotBackups: 3 }, [
        [3_000, lag(1 - leader, 'pods', 20_000)],
        [0, { type: 'editBackups', hot: 1, cold: 0 }],
        [100, { type: 'endOperator', index: leader, how: 'stop', forMs: 20_000 }],
        [15_000, wait],
      ]),
    ),
  },
  {
    finding: 'R3',
    name: 'silence-is-failure',
    what: 'a promotion fails where a cache is silent',
    mutations: [
      latecomersRun,
      {
        file: 'src/slot/act/await-serving.ts',
        find: '  return resultOf(await read(ref, signal), uid) ?? result ?? late\n',
        replace: '  return result ?? late\n',
      },
    ],
    scenarios: atEach([15, 25, 35], [1], { nodes: 4, hotBackups: 2, copies: 2 }, ms => [
      [14_000, endApp()],
      [ms, lag(0, 'pods', 20_000)],
      [0, lag(1, 'pods', 20_000)],
      [20_000, wait],
    ]),
  },
  {
    finding: 'R12',
    name: 'lowest-number',
    what: 'the successor of a lost primary takes the lowest free number',
    mutations: [
      {
        file: 'src/backuppodset/decide/pulled.ts',
        find: '.filter(({ slot }) => !used.has(slot)).sort',
        replace: '.filter(() => s.pulled !== undefined).sort',
      },
    ],
    scenarios: [0, 1, 2].flatMap(pod =>
      bySeeds([2, 3], { nodes: 4, replicas: 3, memory: false }, [
        [1_000, { type: 'scale', replicas: 2 }],
        [10_000, { type: 'deletePod', pod, force: false }],
        [10_000, wait],
      ]),
    ),
  },
  {
    finding: 'R13',
    name: 'no-compare',
    what: 'a Lease that the cache does not show is overwritten',
    mutations: [
      {
        file: 'src/slot/act/write-lease.ts',
        find: 'if (parseNumberedSlotLease(existing) !== undefined)\n',
        replace: 'if (parseNumberedSlotLease(existing) === undefined)\n',
      },
    ],
    scenarios: bySeeds([1, 2], { hotBackups: 2 }, [
      ...[0, 1].flatMap(
        index =>
          [
            [0, lag(index, 'leases', 20_000)],
            [0, { type: 'loseCreates', index, forMs: 6_000 } satisfies Command],
          ] as const,
      ),
      [0, { type: 'scale', replicas: 2 }],
      [20_000, wait],
    ]),
  },
  {
    finding: 'sim 4',
    name: 'handover-fails',
    what: 'a primary that stands still for its successor counts as one that does not answer',
    mutations: [
      {
        file: 'src/backuppodset/decide/losses.ts',
        find: 'memory.lease.handover === undefined) return',
        replace: 'memory.lease.handover !== uid) return',
      },
    ],
    scenarios: bySeeds([1, 2], {}, [
      ...[0, 1, 2].map(node => [node === 0 ? 3_000 : 0, slow(node, { restoreMs: 6_000 }, 60_000)] as const),
      [100, { type: 'handOver', primary: 0 }],
      [25_000, wait],
    ]),
  },
  {
    finding: 'found 12',
    name: 'stands-in-vain',
    what: 'a primary that an exchanged agent has stopped once more is ended for the time that the first one took',
    mutations: [
      {
        file: 'src/backuppodset/decide/handover-turns.ts',
        find: 's.now < (handoverOverAt(s, primary) ?? Number.POSITIVE_INFINITY)',
        replace: 'primary.slot !== undefined',
      },
      neverOverdue,
    ],
    scenarios: bySeeds([48], { nodes: 4 }, handoverInVain(1)),
  },
  {
    finding: 'found 12',
    name: 'no-time-to-answer',
    what: 'a handover that comes to nothing leaves its primary no time to answer again',
    mutations: [
      startingIsAbsent,
      resumingIsNothing,
      neverOverdue,
      {
        file: 'src/backuppodset/decide/losses.ts',
        find: 'return overAt + limitMs',
        replace: 'return overAt',
      },
    ],
    scenarios: bySeeds([5], { nodes: 4 }, handoverInVain(0)),
  },
  {
    finding: 'found 17',
    name: 'earlier-consent',
    what: 'a slot is handed over on a late word of a handover that was called off since',
    mutations: [
      {
        file: 'src/slot/decide/handover.ts',
        find: '(source.standsForHandover ?? slot.lease.handovers) === slot.lease.handovers',
        replace: 'source !== undefined',
      },
      {
        file: 'src/slot/act/promote.ts',
        find: 'if (action.standing) await requireStanding',
        replace: 'if (action.standing && false) await requireStanding',
      },
    ],
    scenarios: bySeeds(
      [2],
      { nodes: 4, replicas: 2, hotBackups: 2, coldBackups: 1, copies: 2, containers: 'two', graves: false },
      [
        [7_322, lag(0, 'reports', 17_162, 5_683)],
        [11_092, { type: 'handOver', primary: 4 }],
        [20_000, wait],
      ],
    ),
  },
  {
    finding: 'found 28',
    name: 'earlier-leader',
    what: 'a leader counts a handover that an earlier leader requested from the moment at which it saw the report',
    mutations: [
      {
        file: 'src/slot/decide/handover.ts',
        find: `sourceSeenAt === undefined || handoverRequestedAt === undefined
    ? Number.NEGATIVE_INFINITY
    : Math.min(sourceSeenAt, handoverRequestedAt)`,
        replace:
          'sourceSeenAt === undefined ? 0 : Math.min(sourceSeenAt, handoverRequestedAt ?? sourceSeenAt)',
      },
      {
        file: 'src/slot/decide/assignments.ts',
        find: 'handover === before && present?.handoverRequestedAt !== undefined',
        replace: 'handover === before',
      },
      takenBackUnasked,
    ],
    // The leader dies after its request, and the node of the primary cannot withdraw its report. The next leader reads
    // the report nine seconds late. The restore ends when the primary runs again.
    scenarios: onEachNode([1, 2], {}, node => [
      ...[0, 1, 2].map(each => [each === 0 ? 3_000 : 0, slow(each, { restoreMs: 15_000 }, 60_000)] as const),
      [0, { type: 'pauseOperator', index: 1, forMs: 9_000 }],
      [50, { type: 'handOver', primary: 0 }],
      [300, { type: 'endOperator', index: 0, how: 'kill', forMs: 40_000 }],
      [0, { type: 'cutNode', node, forMs: 30_000, apiOnly: true }],
      [25_000, wait],
    ]),
  },
  {
    finding: 'sim 4',
    name: 'called-off-fails',
    what: 'a handover that is called off leaves its primary no time to answer again',
    mutations: [
      {
        file: 'src/backuppodset/decide/losses.ts',
        find: '[settledSince, unfencedSince].map',
        replace: '[unfencedSince].map',
      },
    ],
    // Restoring the last generation takes longer than the handover may.
    scenarios: bySeeds([1, 2], {}, [
      ...[0, 1, 2].map(node => [node === 0 ? 3_000 : 0, slow(node, { restoreMs: 16_000 }, 60_000)] as const),
      [100, { type: 'handOver', primary: 0 }],
      [25_000, wait],
    ]),
  },
  {
    finding: 'sim 5',
    name: 'called-counts',
    what: 'a pod that is called and not on stage yet takes the place of a slot that is served',
    mutations: [
      {
        file: 'src/backuppodset/decide/memory.ts',
        find: 'marksOf(s, leaving)',
        replace: 'marksOf(s, leaving.filter(pod => !pod.waking))',
      },
    ],
    scenarios: bySeeds([1, 2, 3], { nodes: 4, replicas: 3 }, [
      ...[0, 1, 2, 3].map(node => [node === 0 ? 3_000 : 0, slow(node, { answerMs: 6_000 }, 30_000)] as const),
      [100, { type: 'deletePod', pod: 0, force: true }],
      [2_000, { type: 'scale', replicas: 2 }],
      [15_000, wait],
    ]),
  },
  {
    finding: 'found 35',
    name: 'called-off-delays',
    what: 'while a promotion that is called off has not ended, no primary is replaced',
    mutations: [
      {
        file: 'src/backuppodset/decide/memory.ts',
        find: 'leaving.every(({ uid }) => called.has(uid))',
        replace: 'leaving.length === 0',
      },
    ],
    // A cold backup is called when the set becomes smaller, and then the node of the other slot's primary is cut off.
    scenarios: bySeeds(
      [2],
      {
        ...{ nodes: 4, replicas: 2, hotBackups: 0, coldBackups: 1, copies: 2 },
        ...{ memory: true, probes: false, unreadySeconds: 4, nodeTimeoutMs: 3_000, graves: true },
      },
      [
        [0, { type: 'deletePod', pod: 0, force: false }],
        [0, { type: 'lagAgent', node: 0, resource: 'pods', lagMs: -1, forMs: 3_203 }],
        [3_846, { type: 'scale', replicas: 1 }],
        [147, { type: 'cutPrimarysNode', primary: 3, forMs: 35_760, apiOnly: false }],
        [268, { type: 'jumpClock', node: 3, byMs: 30_622 }],
      ],
    ),
  },
  {
    finding: 'found 35',
    name: 'called-off-takes',
    what: 'a promotion that is called off takes the place of a slot that loses its primary',
    mutations: [
      {
        file: 'src/backuppodset/decide/vacancies.ts',
        find: 'cast.primaries.length + calledOff.length',
        replace: 'cast.primaries.length + 0 * calledOff.length',
      },
    ],
    scenarios: bySeeds([1, 2, 3], { nodes: 4, replicas: 3, hotBackups: 2 }, [
      ...[0, 1, 2, 3].map(node => [node === 0 ? 3_000 : 0, slow(node, { answerMs: 6_000 }, 30_000)] as const),
      [100, { type: 'deletePod', pod: 0, force: true }],
      [2_000, { type: 'scale', replicas: 2 }],
      [1_000, { type: 'deletePod', pod: 1, force: true }],
      [500, { type: 'deletePod', pod: 1, force: true }],
      [15_000, wait],
    ]),
  },
  {
    finding: 'sim 2',
    name: 'latecomer-runs',
    what: 'who was called and did not answer in time is not ended before another one is called',
    mutations: [latecomersRun],
    // It is thawed and does not answer in its time, and its node receives Leases late.
    scenarios: onEachNode([3], {}, node => [
      ...[0, 1, 2].map(each => [each === 0 ? 3_000 : 0, slow(each, { answerMs: 12_000 }, 30_000)] as const),
      [0, { type: 'lagAgent', node, resource: 'leases', lagMs: 4_600, forMs: 30_000 }],
      [100, hangApp(30_000)],
      [15_000, wait],
    ]),
  },
  {
    finding: 'fence',
    name: 'starting-is-absent',
    what: 'another pod is called at once where the agent of a called pod only starts, although the pod runs',
    mutations: [startingIsAbsent, resumingIsNothing],
    // The agent ends between the thaw and its report, and the next one starts just before the pod is late.
    scenarios: atEach([32, 34, 36], [7], { nodeTimeoutMs: 3_000, hotBackups: 2 }, ms => [
      [3_000, endApp()],
      [ms, { type: 'endAgent', node: 1, how: 'stop', forMs: 9_500 }],
      [12_000, wait],
    ]),
  },
  {
    finding: 'fence',
    name: 'late-is-gone',
    what: 'another pod is called beside a pod that resumes because the agent of that stays away',
    mutations: [resumingIsNothing],
    // The agent ends between the thaw and its report.
    scenarios: atEach([32, 34, 36], [7], { nodeTimeoutMs: 3_000, hotBackups: 2 }, ms => [
      [3_000, endApp()],
      [ms, { type: 'endAgent', node: 1, how: 'stop', forMs: 35_000 }],
      [40_000, wait],
    ]),
  },
  {
    finding: 'luck 12',
    name: 'no-relay',
    what: 'a roll with memory waits for ever for a hot backup that is not beside its primary',
    mutations: [
      {
        file: 'src/backuppodset/decide/rollout-with-memory.ts',
        find: 'if (turn === undefined) return makeRelay(s, random)',
        replace: 'if (turn === undefined) return s.set.replicas < 0 ? makeRelay(s, random) : []',
      },
    ],
    scenarios: [
      ...bySeeds([1, 2], { nodes: 2, replicas: 2, hotBackups: 0 }, roll),
      ...bySeeds([1, 2], { nodes: 2, replicas: 2, hotBackups: 1 }, roll),
      ...bySeeds([1], { replicas: 2, hotBackups: 0, coldBackups: 1 }, roll),
    ],
  },
  {
    finding: 'luck 12',
    name: 'trial-forgets',
    what: 'a trial on the node of a primary that stands still takes back that it does',
    mutations: [
      {
        file: 'src/agent/state/progress.ts',
        find: 'const { standing } = slots.get(slot) ?? {}',
        replace: 'const standing = undefined',
      },
    ],
    scenarios: bySeeds([5], { nodes: 2, hotBackups: 2, containers: 'sidecar' }, roll),
  },
  {
    finding: 'found 15',
    name: 'made-goes-first',
    what: 'a hot backup that works is deleted before one that does not, because it was made for one slot',
    mutations: [
      {
        file: 'src/backuppodset/decide/select.ts',
        find: '(isMadeForOne(pod) ? 0 : 0.5)',
        replace: '(isMadeForOne(pod) ? 0 : 2 ** 36)',
      },
    ],
    // The cold backup that becomes a hot one starts slowly. The slot loses its primary again, a pod is created for it,
    // and another cold backup takes the slot.
    scenarios: bySeeds([0, 2, 4], { nodes: 4, coldBackups: 1 }, [
      [3_000, wait],
      ...[0, 1, 2, 3].map(node => [0, slow(node, { startMs: 4_000 }, 150)] as const),
      [0, endApp()],
      [100, endApp()],
      [60, wait],
      ...[0, 1, 2, 3].map(node => [0, slow(node, { restoreMs: 1_000 }, 5_000)] as const),
      [10_000, wait],
    ]),
  },
  {
    finding: 'found 16',
    name: 'errand-stays',
    what: 'a pod that was made for a slot which the set has no place for any more takes no other',
    mutations: [
      {
        file: 'src/backuppodset/decide/relay.ts',
        find: 'slot === undefined || isRetained(slot) || isServed(facts, slot)',
        replace: 'slot !== undefined && isServed(facts, slot)',
      },
    ],
    // It is the only backup, and a replacement would have to start first.
    scenarios: bySeeds([0, 1], { nodes: 4, replicas: 2, hotBackups: 0 }, [
      [4_000, endApp()],
      [150, { type: 'editSpec', spec: { replicas: 1, hotBackups: 1 } }],
      [8_000, wait],
      ...[0, 1, 2, 3].map(node => [0, slow(node, { startMs: 60_000 }, 60_000)] as const),
      [0, endApp()],
      [50_000, wait],
    ]),
  },
  {
    finding: 'found 31',
    name: 'old-word-holds',
    what: 'after a restart of its node, a backup counts as ready by the condition that its agent wrote before',
    mutations: [
      startingIsAbsent,
      resumingIsNothing,
      {
        file: 'src/slot/observe/stage.ts',
        find: 'containers.every(({ state }) => state?.running !== undefined)',
        replace: 'containers.every(({ state }) => state !== undefined)',
      },
      leavesUntold,
    ],
    // Its node is back, and the backup that was created meanwhile is ready before it.
    scenarios: bySeeds(
      [499],
      {
        ...{ nodes: 4, replicas: 2, hotBackups: 2, coldBackups: 1, containers: 'two' },
        ...{ memory: true, probes: false, unreadySeconds: 4, graves: true },
      },
      [
        [3_990, { type: 'powerOff', node: 0, forMs: 15_325 }],
        [5_081, endApp(1, 'side')],
        [170, { type: 'endOperator', index: 3, how: 'stop', forMs: 26_830 }],
        [207, endApp(2, 'app')],
      ],
    ),
  },
  {
    finding: 'found 33',
    name: 'stranded-stays',
    what: 'a hot backup beside the primary that it should cover stays there for ever',
    mutations: [
      {
        file: 'src/backuppodset/decide/stranded.ts',
        find: 'stranded === undefined || stranded.dueAt > s.monotonicNow',
        replace: 'stranded?.uid !== s.set.uid',
      },
    ],
    // Two nodes of three lose their power, so the pods are together on the third one when these are back.
    scenarios: bySeeds([1], { copies: 2 }, [
      [8_000, { type: 'powerOff', node: 0, forMs: 90_000 }],
      [2_000, { type: 'powerOff', node: 1, forMs: 90_000 }],
      [320_000, wait],
    ]),
  },
  {
    finding: 'found 33',
    name: 'stranded-for-nothing',
    what: 'a hot backup is replaced as stranded, though the agents of all other nodes have been silent for 12 s',
    mutations: [
      {
        file: 'src/slot/decide/uncovered.ts',
        find: ' && closed !== true && !silent',
        replace: ' && !silent',
      },
    ],
    scenarios: bySeeds([7], { replicas: 2, hotBackups: 2, coldBackups: 1 }, [
      [0, { type: 'deletePod', pod: 0, force: false }],
      [500, endAgent(0, 25_000)],
      [0, endAgent(1, 25_000)],
      [20_000, wait],
    ]),
  },
  {
    finding: 'found 36',
    name: 'given-up-as-it-comes',
    what: 'a called pod that begins to resume is ended, because its agent was away for all the time that a call may take',
    mutations: [
      {
        file: 'src/slot/decide/ending.ts',
        find: 'resumingSince !== undefined && lease.ending !== pod.uid',
        replace: 'resumingSince !== undefined && lease.ending === pod.uid',
      },
    ],
    // The heir's agent is away, and then the API server. The agent's first report gives the operator another pod to call.
    scenarios: bySeeds([142], { hotBackups: 2, unreadySeconds: 30 }, [
      [136, { type: 'endAgent', node: 0, how: 'stop', forMs: 4_739 }],
      [58, endApp()],
      [3_038, { type: 'cutPrimarysNode', primary: 0, forMs: 17_072, apiOnly: false }],
      [1_091, { type: 'apiAway', forMs: 13_954 }],
      [3_783, { type: 'powerOff', node: 1, forMs: 20_680 }],
      [10_666, wait],
    ]),
  },
  {
    finding: 'found 37',
    name: 'patience-begins-again',
    what: 'another leader waits once more for a primary that was already told to end for being unready',
    mutations: [
      {
        file: 'src/backuppodset/decide/losses.ts',
        find: 'if (memory.lease.ending === uid) return unreadySince',
        replace: '',
      },
    ],
    scenarios: bySeeds(
      [59_711_968, 3],
      { memory: true, probes: false, unreadySeconds: 4, grants: false, graves: true },
      [
        [1_501, { type: 'pausePrimarysMachine', primary: 0, forMs: 35_973 }],
        [9_854, { type: 'lagAgent', node: 0, resource: 'pods', lagMs: -1, forMs: 2_000 }],
        [11_988, { type: 'endOperator', index: 1, how: 'stop', forMs: 2_000 }],
        [8_156, endApp()],
        [3, { type: 'pauseAgent', node: 0, forMs: 500 }],
      ],
    ),
  },
]

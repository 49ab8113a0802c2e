/**
 * Fixes of findings about memory, as docs/adr/0112 numbers them.
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
  endsUnasked,
  hangApp,
  lag,
  latecomersRun,
  leavesUntold,
  onEachNode,
  type Steps,
  slow,
  strangersGetIn,
  takenBackUnasked,
  wait,
} from './scenarios.ts'

const knowledge = 'src/slot/decide/knowledge.ts'
const isGone = 'slot === undefined || (slot.copies.length === 0 && slot.unasked.length === 0)'

/** A set grows, its agents see pods late, and it is paused before its Leases name containers; then a new app ends. */
const unsettled = (pausedMs: number, lateMs: number) =>
  onEachNode([3, 7], { hotBackups: 0, coldBackups: 1 }, node => [
    [0, { type: 'scale', replicas: 2 }],
    [56, { type: 'lagAgent', node, resource: 'pods', lagMs: 100, forMs: 2_000 }],
    [144, { type: 'pauseSet', forMs: pausedMs }],
    [576, endApp(1)],
    // So that the operators act on the end of the pause before the agents do.
    ...[0, 1, 2].map(
      each =>
        [
          each === 0 ? 200 : 0,
          { type: 'lagAgent', node: each, resource: 'leases', lagMs: lateMs, forMs: pausedMs + 10_000 },
        ] satisfies Steps[number],
    ),
    [pausedMs + 4_000, wait],
  ])

export const ofMemory: readonly Mutant[] = [
  {
    finding: 'memory 1',
    name: 'starts-with-nothing',
    what: 'an agent that starts says that it keeps nothing',
    mutations: [
      {
        file: 'src/agent/report/report.ts',
        find: 'slotsKnown: slots !== undefined',
        replace: 'slotsKnown: true',
      },
      {
        file: 'src/agent/report/report.ts',
        find: '...(said && listed(said))',
        replace: '...listed(said ?? [])',
      },
    ],
    // The primary's machine is back, empty, before the agent of the node that keeps its memory is.
    scenarios: onEachNode([1, 2], {}, node => [
      [0, endAgent(node, 16_000)],
      [100, { type: 'losePrimarysNode', primary: 0, forMs: 2_000 }],
      [30_000, wait],
    ]),
  },
  {
    finding: 'memory 1',
    name: 'unusable-is-gone',
    what: 'what cannot be used at this moment counts as gone',
    mutations: [
      endsUnasked,
      {
        file: knowledge,
        find: isGone,
        replace: 'slot === undefined || usableOf(slot).length === 0',
      },
      leavesUntold,
    ],
    // The agent of the node that keeps it has just started when the app ends.
    scenarios: onEachNode([1], {}, node => [
      [0, endAgent(node, 2_000)],
      [4_000, endApp()],
    ]),
  },
  {
    finding: 'memory 2',
    name: 'untold-restart',
    what: 'a restart of which no agent has spoken begins a new life',
    mutations: [
      endsUnasked,
      {
        file: knowledge,
        find: isGone,
        replace: `slot === undefined || slot.replacedSince !== undefined || (slot.copies.length === 0 && slot.unasked.length === 0)`,
      },
    ],
    scenarios: onEachNode([1], {}, node => [
      [0, endAgent(node, 25_000)],
      [500, endApp()],
    ]),
  },
  {
    finding: 'memory 3',
    name: 'impostor',
    what: 'what runs in the place of a dead app is taken for it',
    mutations: [
      {
        file: 'src/agent/decide/slot-facts.ts',
        find: "  containers !== undefined &&\n  containerId !== undefined &&\n  !containers.split(',')",
        replace: "  containers === 'none' &&\n  containerId !== undefined &&\n  !containers.split(',')",
      },
    ],
    scenarios: bySeeds([1, 2], {}, [[0, { type: 'losePrimarysNode', primary: 0, forMs: 2_000 }]]),
  },
  {
    finding: 'memory 4',
    name: 'all-containers',
    what: 'a container that is not saved counts as one that is',
    mutations: [
      {
        file: 'src/api/pod-contract.ts',
        find: '.map(({ name }) => name).filter(name => saved?.includes(name) ?? true)',
        replace: '.map(({ name }) => name).filter(name => saved !== undefined || name !== undefined)',
      },
    ],
    scenarios: bySeeds([1, 2], { containers: 'sidecar' }, [
      [3_000, endApp(0, 'proxy')],
      [20_000, wait],
    ]),
  },
  {
    finding: 'memory 5',
    name: 'promoted-is-ready',
    what: 'a promoted pod is ready by the word of its dead node',
    mutations: [
      {
        file: 'src/slot/observe/stage.ts',
        find: 'unpublishedMs !== undefined && unpublishedMs > publishedMs',
        replace: 'unpublishedMs !== undefined && unpublishedMs > Number.POSITIVE_INFINITY',
      },
    ],
    scenarios: bySeeds([1, 2], { nodes: 4, copies: 2, hotBackups: 2 }, [
      [3_000, endApp()],
      [15_000, { type: 'losePrimarysNode', primary: 0, forMs: 90_000 }],
      [50_000, wait],
    ]),
  },
  {
    finding: 'memory 7',
    name: 'grave-of-another',
    what: 'the grave of a dead primary leads to an heir that has another slot by now',
    mutations: [
      {
        file: 'src/agent/decide/primary-tasks.ts',
        find: 'return [...ofDead(snapshot, slot, pod), ...ofGrant(snapshot, slot, pod)]',
        replace: 'return [...ofGrant(snapshot, slot, pod)]',
      },
      strangersGetIn,
    ],
    scenarios: bySeeds([1, 2], { replicas: 2, nodes: 4, copies: 2 }, [
      [3_000, endApp(0)],
      ...[0, 1, 2, 3].map(node => [0, slow(node, { startMs: 5_000 }, 6_000)] as const),
      [0, endApp(1)],
    ]),
  },
  {
    finding: 'memory 7',
    name: 'grave-of-the-dead',
    what: 'the grave of a dead primary leads to an heir that has had another slot, and so to the heir of that slot',
    mutations: [
      {
        file: 'src/agent/observe/inquiry.ts',
        find: '(slotOfPod(found.metadata) ?? slot) === slot',
        replace: '(slotOfPod(found.metadata) ?? slot) !== undefined',
      },
      {
        // The pod that is made for the slot becomes its heir, and hides that.
        file: 'src/slot/decide/vacant-leases.ts',
        find: 'const isHeirLess = rest.grant === undefined',
        replace: 'const isHeirLess = made === null && rest.grant === undefined',
      },
      strangersGetIn,
    ],
    // Both primaries are deleted while the node of one of them is cut off. The heir of both gets the slot of the other one, loses it
    // with its own node, and redirects to its successor. The Lease of the first slot names it until the operator sees Leases again.
    scenarios: bySeeds(
      [1, 4],
      { replicas: 2, memory: true, probes: false, unreadySeconds: 4, nodeTimeoutMs: 3_000, graves: true },
      [
        [0, { type: 'cutPrimarysNode', primary: 3, forMs: 3_301, apiOnly: false }],
        [0, { type: 'deletePod', pod: 5, force: false }],
        [0, { type: 'deletePod', pod: 0, force: false }],
        [300, { type: 'cutPrimarysNode', primary: 0, forMs: 4_177, apiOnly: false }],
        [295, lag(0, 'leases', 11_129)],
      ],
    ),
  },
  {
    finding: 'memory 8',
    name: 'siblings-run-on',
    what: 'nothing ends the siblings of a dead container where its pod cannot be shut off',
    mutations: [
      {
        file: 'src/agent/tasks/redirect.ts',
        find: '  await endWatched(sentinel, await watchesOf(sentinel, pod.uid, signal))\n',
        replace: '',
      },
      {
        file: 'src/agent/tasks/redirect.ts',
        find: 'return await shut(work, task, task.to, signal)',
        replace: 'return',
      },
      {
        file: 'src/agent/tasks/redirect.ts',
        find: 'if (isLed) await shut(work, task, to, signal)',
        replace: 'if (isLed) continue',
      },
    ],
    scenarios: bySeeds([1, 2], { containers: 'two', graves: false }, [[3_000, endApp(0, 'app')]]),
  },
  {
    finding: 'memory 9',
    name: 'called-beside',
    what: 'a successor is called while the one before may still run',
    mutations: [
      {
        file: 'src/backuppodset/decide/takeovers.ts',
        find: 'mayServe ? msUntilEnded(s, slot, pod) : 0',
        replace: '0',
      },
    ],
    // The previous primary is not deleted until the called successor answers. Its agent sees late that the Lease
    // requires its end.
    scenarios: onEachNode([1], {}, node => [
      ...[0, 1, 2].map(each => [each === 0 ? 3_000 : 0, slow(each, { answerMs: 6_000 }, 30_000)] as const),
      [0, { type: 'lagAgent', node, resource: 'leases', lagMs: 4_000, forMs: 30_000 }],
      [100, hangApp(30_000)],
      [15_000, wait],
    ]),
  },
  {
    finding: 'memory 9',
    name: 'thaw-unasked',
    what: 'an understudy goes on stage by a Lease that may be over',
    mutations: [
      latecomersRun,
      {
        file: 'src/agent/tasks/lease-check.ts',
        find: "      if (!isCalled) throw new AgentError('NotCalled', slotName(lease))\n",
        replace: '',
      },
    ],
    scenarios: onEachNode([1], { hotBackups: 2, copies: 2 }, node => [
      [1_000, slow(node, { restoreMs: 14_000 }, 30_000)],
      [3_000, endApp()],
      [300, { type: 'lagAgent', node, resource: 'leases', lagMs: -1, forMs: 25_000 }],
      [16_000, wait],
    ]),
  },
  {
    finding: 'memory 10',
    name: 'one-failure',
    what: 'one try that fails gives up memory that is kept',
    mutations: [
      {
        file: 'src/backuppodset/decide/last-resort.ts',
        find: "  return left !== undefined && left <= 0 ? 'make' : 'awaited'\n",
        replace:
          "  if (hot.some(({ stage }) => stage?.successorOf === slot.lease.slot && stage.failed)) return 'anew'\n  return left !== undefined && left <= 0 ? 'make' : 'awaited'\n",
      },
    ],
    // The pod created for the slot comes to the node that has no copy and can fetch none.
    scenarios: onEachNode([1, 2], { replicas: 2, hotBackups: 0 }, node => [
      [3_000, { type: 'cutPeers', node, forMs: 20_000 }],
      [0, endApp(1)],
      [25_000, wait],
    ]),
  },
  {
    finding: 'memory 11',
    name: 'frozen-first',
    what: 'old memory that lies frozen comes before newer memory',
    mutations: [
      {
        file: 'src/slot/decide/successors.ts',
        find: 'stepsBehind(told(copy), told(newest), intervalMs) > 0',
        replace: 'stepsBehind(told(copy), told(newest), intervalMs) > 1e9',
      },
    ],
    // Operators that have received no agent's report for a while demand no age, so the called agent refuses no copy.
    scenarios: onEachNode([1], { nodes: 4, hotBackups: 2, copies: 2 }, node => [
      [3_000, { type: 'cutPeers', node, forMs: 60_000 }],
      [14_000, lag(0, 'reports', 40_000)],
      [0, lag(1, 'reports', 40_000)],
      [15_000, endApp()],
    ]),
  },
  {
    finding: 'memory 11',
    name: 'never-fetched',
    what: 'whoever is called goes on with what its node has, however old',
    mutations: [
      {
        file: 'src/agent/tasks/put-on-stage.ts',
        find: '    if (stepsBehind(toldOf(newest.manifest), best, intervalOf(lease)) === 0) return\n',
        replace: '    return\n',
      },
    ],
    // The operators do not see that the node has fallen behind; its agent finds out by itself.
    scenarios: onEachNode([1], { copies: 2 }, node => [
      [3_000, lag(0, 'reports', 25_000)],
      [0, lag(1, 'reports', 25_000)],
      [0, { type: 'cutPeers', node, forMs: 16_000 }],
      [16_001, endApp()],
    ]),
  },
  {
    finding: 'memory 14',
    name: 'off-stage',
    what: 'an understudy that was called off keeps its word, its watch and its grave',
    mutations: [
      latecomersRun,
      {
        file: 'src/agent/tasks/off-stage.ts',
        find: 'if (watches.length === 0 && clone === undefined && !isSaid) return',
        replace: 'if (watches.length >= 0 || clone !== undefined || isSaid) return',
      },
    ],
    // It answers after another pod was called instead, and before its agent has heard of that.
    scenarios: bySeeds([1], { hotBackups: 2, copies: 2 }, [
      ...[0, 1, 2].map(node => [node === 0 ? 3_000 : 0, slow(node, { answerMs: 10_300 }, 4_000)] as const),
      [0, endApp()],
      ...[0, 1, 2].map(
        node =>
          [
            node === 0 ? 9_000 : 0,
            { type: 'lagAgent', node, resource: 'leases', lagMs: 1_500, forMs: 6_000 } satisfies Command,
          ] as const,
      ),
      [20_000, endApp()],
      [40_000, wait],
    ]),
  },
  {
    finding: 'memory 15',
    name: 'by-clocks',
    what: 'the clocks of nodes say which memory is newer',
    mutations: [
      {
        file: 'src/slot/decide/age.ts',
        find: '  return b.epoch - a.epoch || b.generation - a.generation\n',
        replace: '  return b.takenAt - a.takenAt\n',
      },
    ],
    scenarios: bySeeds([4], { hotBackups: 2, copies: 2 }, [
      [0, { type: 'jumpClock', node: 0, byMs: 120_000 }],
      [8_000, endApp()],
      [20, { type: 'cutPeers', node: 0, forMs: 60_000 }],
      [16_000, endApp()],
    ]),
  },
  {
    finding: 'memory 15',
    name: 'by-the-wall-clock',
    what: 'how long a primary that is being deleted is waited for is told by two clocks',
    mutations: [
      {
        file: 'src/slot/observe/slot-primary.ts',
        find: '  const lastsMs = grace * 1000 + afterGraceMs\n',
        replace:
          '  return now + Date.parse(deletionTimestamp ?? "") + afterGraceMs - clock.now()\n  const lastsMs = grace * 1000 + afterGraceMs\n',
      },
    ],
    scenarios: onEachNode([1], {}, node => [
      [0, { type: 'jumpOperatorsClock', index: 0, byMs: 60_000 }],
      [0, { type: 'jumpOperatorsClock', index: 1, byMs: 60_000 }],
      [3_000, endAgent(node, 20_000)],
      [0, { type: 'deletePod', pod: 0, force: false }],
    ]),
  },
  {
    finding: 'memory 16',
    name: 'stop-refused',
    what: 'a stop that is refused suspends probes for ever',
    mutations: [
      {
        file: 'src/agent/tasks/hand-over.ts',
        find: '  try {\n    // A stop of an earlier agent could',
        replace:
          "  await sentinel.stop({ name: 'first', deadlineMs: 1, cgroups })\n  try {\n    // A stop of an earlier agent could",
      },
    ],
    scenarios: bySeeds([1], { hotBackups: 2, copies: 2, probes: true }, [
      [3_000, endApp()],
      ...[0, 1, 2].map(
        node => [4_000, { type: 'refuseStops', node, forMs: 20_000 } satisfies Command] as const,
      ),
      [0, { type: 'handOver', primary: 0 }],
      [10_000, hangApp(200_000)],
      [45_000, wait],
    ]),
  },
  {
    finding: 'memory 17',
    name: 'old-consent',
    what: 'a handover is swapped on a word that is over',
    mutations: [
      {
        file: 'src/slot/decide/handover.ts',
        find: 'monotonicNow < standsUntil(slot) &&',
        replace: 'source.standsForSeconds !== undefined &&',
      },
      {
        file: 'src/slot/act/still-standing.ts',
        find: 'isOfThis && monotonic() < until',
        replace: 'isOfThis',
      },
      takenBackUnasked,
    ],
    // The previous primary is not deleted until its successor answers.
    scenarios: [0, 1].flatMap(node =>
      bySeeds([1, 2], { nodes: 2, unreadySeconds: 30 }, [
        [4_500, { type: 'handOver', primary: 0 }],
        [0, slow(node, { restoreMs: 12_300, answerMs: 6_000 }, 60_000)],
        [1_500, { type: 'lagAgent', node: 1 - node, resource: 'leases', lagMs: 4_500, forMs: 40_000 }],
        [20_000, wait],
      ]),
    ),
  },
  {
    finding: 'memory 18',
    name: 'before-a-look',
    what: 'deaths are judged by a world that was not looked at, and containers are not known by their ids',
    mutations: [
      {
        file: 'src/agent/tasks/engine.ts',
        find: '  present.look()\n  return {\n    changed,\n',
        replace: '  return {\n    changed,\n',
      },
      {
        file: 'src/agent/tasks/engine.ts',
        find: '    onDeath(death) {\n      present.look()\n',
        replace: '    onDeath(death) {\n',
      },
      {
        file: 'src/agent/state/deaths.ts',
        find: 'if (pod === undefined || !holds(pod)) return',
        replace: 'if (pod !== undefined && !holds(pod)) return',
      },
      {
        file: 'src/agent/decide/unnoticed-end.ts',
        find: 'lease && anotherIn(snapshot, lease, pod)',
        replace: 'lease && pod.containers.find(() => false)',
      },
    ],
    scenarios: onEachNode([1], {}, node => [
      [3_000, endAgent(node, 3_000)],
      [2_000, endApp()],
      [15_000, wait],
    ]),
  },
  {
    finding: 'memory 19',
    name: 'died-overwritten',
    what: 'the word of a death can be overwritten, and is not said again',
    mutations: [
      {
        file: 'src/agent/state/deaths.ts',
        find: 'type === podConditions.serving && reason !== servingReasons.died\n',
        replace: 'type === undefined && reason !== servingReasons.died\n',
      },
      {
        file: 'src/agent/state/deaths.ts',
        find: '        tellAgain(pod)\n        return\n',
        replace: '        if (told.size < 0) tellAgain(pod)\n        return\n',
      },
    ],
    // Readiness is probed next, and both writers write at the same time; meanwhile the operators are replaced.
    scenarios: atEach([10_300], [1, 2, 3, 4], { hotBackups: 0, coldBackups: 1, probes: true }, ms => [
      [3_000, endApp()],
      [ms, { type: 'endOperator', index: 0, how: 'kill', forMs: 10_000 }],
      [0, { type: 'endOperator', index: 1, how: 'kill', forMs: 10_000 }],
      [6_000, hangApp(60_000, 0)],
      [20_000, wait],
    ]),
  },
  {
    finding: 'found 10',
    name: 'unsettled-adopted',
    what: 'a Lease that names no containers yet takes what the kubelet has started again for its own',
    mutations: [
      {
        file: 'src/slot/decide/assignments.ts',
        find: ': slot.replacedSince === undefined\n',
        replace: ': slot.lease.epoch > 0\n',
      },
    ],
    scenarios: unsettled(2_000, 4_000),
  },
  {
    finding: 'found 10',
    name: 'unsettled-saved',
    what: 'what the kubelet has started again is saved where a Lease names no containers yet',
    mutations: [
      {
        file: 'src/agent/decide/slot-facts.ts',
        find: 'return restarts > before ?',
        replace: 'return restarts < before ?',
      },
    ],
    scenarios: unsettled(20_000, 0),
  },
]

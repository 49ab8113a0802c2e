/**
 * Which nodes keep memory, and which the operator asks for it: docs/adr/0115-who-keeps-and-who-is-asked.md.
 *
 * Long because it is a list of mutants with their scenarios.
 */
import type { Command } from '../model/commands.ts'
import type { Mutant, Mutation } from './mutant.ts'
import {
  bySeeds,
  endApp,
  endsUnasked,
  hangApp,
  lag,
  leavesUntold,
  onEachNode,
  slow,
  wait,
} from './scenarios.ts'

const claim = { name: 'data', persistentVolumeClaim: { claimName: 'data' } }
/** The template requires a claim that does not exist; the running pods do not have that volume. */
const editOfTemplate: Command = {
  type: 'editSpec',
  spec: { updateStrategy: { type: 'OnDelete' }, template: { spec: { volumes: [claim] } } },
}

const savedUnproven: Mutation = {
  file: 'src/slot/decide/knowledge.ts',
  find: '!(isSaved || kept.includes(node))',
  replace: '!kept.includes(node)',
}

const letGoUnasked: Mutation = {
  file: 'src/slot/decide/knowledge.ts',
  find: '(copy.silent && isKnown) || holders.includes(copy.node)',
  replace: 'copy.node !== undefined || holders.includes(copy.node)',
}

/** A holder cannot reach the other nodes for a while; meanwhile the primary's machine restarts. */
const leftBehind = { replicas: 2, copies: 2 }

const waitsInVain: Mutation = {
  file: 'src/agent/decide/holder-tasks.ts',
  find: 'if (!hasNothing(source, said) && said?.usable === undefined) return',
  replace: 'if (source !== undefined) return',
}

/** The operator asks no more of a called pod than it knew when it called it. */
const leastAsCalled: Mutation = {
  file: 'src/slot/decide/successors.ts',
  find: 'return isMore ? least : atLeast',
  replace: 'return atLeast',
}

/** Only a node that says that it cannot fetch makes the operator wait for the node of a dead primary. */
const onlyStuck: Mutation = {
  file: 'src/slot/decide/source-says.ts',
  find: `!copy.timely ||
  stepsBehind(`,
  replace: 'false && stepsBehind(',
}

export const ofKeepers: readonly Mutant[] = [
  {
    finding: 'kept 1',
    name: 'source-not-asked',
    what: 'the node of the last primary is no holder when that has ended',
    mutations: [
      {
        file: 'src/slot/decide/knowledge.ts',
        find: 'if (node === source && !isVacant) return []',
        replace: 'if (node === lease.node) return []',
      },
      {
        file: 'src/slot/observe/observe-slot.ts',
        find: '(isHolders(each) || isAsked) && isKept(each.slot)',
        replace: 'isHolders(each) && isKept(each.slot)',
      },
    ],
    // One machine is lost for good, and the next primary loses its app.
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
        file: 'src/slot/decide/assignments.ts',
        find: `newest !== undefined &&
    copy.timely &&
    stepsBehind(toldOf(copy, lease), toldOf(newest, lease), intervalMs) === 0`,
        replace: '!copy.stale',
      },
      letGoUnasked,
    ],
    // The heir's node falls behind; then the primary's machine is lost.
    scenarios: onEachNode([1], { nodes: 4, copies: 2 }, node => [
      [5_000, { type: 'cutPeers', node, forMs: 150_000 }],
      [40_000, { type: 'editSpec', spec: { checkpoint: { copies: 1 } } }],
      [2_000, { type: 'losePrimarysNode', primary: 0, forMs: 140_000 }],
      [90_000, wait],
    ]),
  },
  {
    finding: 'found 7',
    name: 'let-go-unasked',
    what: 'a node that was let go is not asked for what it still has',
    mutations: [letGoUnasked],
    // Its copy is dropped in favour of a machine that loses its power at that moment, together with the primary's
    // machine.
    scenarios: bySeeds([1, 2], { nodes: 4, hotBackups: 0, coldBackups: 1 }, [
      [1_215, { type: 'powerOff', node: 5, forMs: 2_000 }],
      [0, { type: 'powerOff', node: 0, forMs: 2_000 }],
      [0, { type: 'deletePod', pod: 0, force: false }],
    ]),
  },
  {
    finding: 'kept 6',
    name: 'older-will-do',
    what: 'an understudy that cannot fetch goes on stage with memory of any age',
    mutations: [
      {
        file: 'src/agent/tasks/lease-check.ts',
        find: 'if (!isTooOld(stored, lease.atLeast, lease)) return',
        replace: 'if (lease.epoch > 0) return',
      },
      {
        file: 'src/agent/tasks/put-on-stage.ts',
        find: 'if (isTooOld(stored, atLeast, lease)) throw',
        replace: 'if (lease.epoch < 0) throw',
      },
      {
        file: 'src/slot/decide/successors.ts',
        find: 'return options.filter(({ rank }) => rank < ranks.stuck)',
        replace: 'return options',
      },
    ],
    scenarios: onEachNode([1], { nodes: 4, copies: 2 }, node => [
      [5_000, { type: 'cutPeers', node, forMs: 150_000 }],
      [50_000, endApp()],
      [30_000, wait],
    ]),
  },
  {
    finding: 'kept 8',
    name: 'refusal-empties',
    what: 'a claim that no pod has yet, and that is not there, throws all memory away',
    mutations: [
      {
        file: 'src/backuppodset/memory/claim-reader.ts',
        find: '({ ...claim, unused: true })',
        replace: '({ ...claim, unused: false })',
      },
      {
        file: 'src/backuppodset/memory/observe.ts',
        find: 'deps.clock.monotonic() - refusedAt >= refusalMs',
        replace: 'deps.clock.monotonic() >= refusedAt',
      },
    ],
    scenarios: bySeeds([1, 2], {}, [
      [0, editOfTemplate],
      [4_000, endApp()],
      [10_000, wait],
    ]),
  },
  {
    finding: 'found 6',
    name: 'source-unheard',
    what: 'who can fetch nothing is called before the node of the dead has said what it has',
    mutations: [
      {
        file: 'src/slot/decide/source-says.ts',
        find: 'const sourceSaysMs = 2_000',
        replace: 'const sourceSaysMs = 0',
      },
      leastAsCalled,
      leavesUntold,
    ],
    // The death is reported some milliseconds before its node's report of its copies.
    scenarios: bySeeds([7], { nodes: 4, replicas: 2, hotBackups: 0, coldBackups: 1 }, [
      [1_409, { type: 'cutPeers', node: 5, forMs: 9_868 }],
      [7_284, slow(0, { startMs: 500, answerMs: 500 }, 2_000)],
      [937, { type: 'deletePod', pod: 5, force: false }],
      [20_000, wait],
    ]),
  },
  {
    finding: 'found 11',
    name: 'gone-unasked',
    what: 'a slot begins anew by reports from before its first memory was saved',
    mutations: [endsUnasked],
    scenarios: bySeeds([9], { hotBackups: 0 }, [
      [500, lag(0, 'reports', 6_100)],
      [0, lag(1, 'reports', 6_100)],
      [6_000, { type: 'deletePod', pod: 0, force: false }],
      [15_000, wait],
    ]),
  },
  {
    finding: 'found 14',
    name: 'tried-as-before',
    what: 'what is tried again goes by what was known at the first try: of no other holder that has newer memory',
    mutations: [
      {
        file: 'src/agent/tasks/runner.ts',
        find: 'slot.task.version === task.version) slot.task = task',
        replace: 'slot.task.version === task.version) continue',
      },
      waitsInVain,
    ],
    // It can reach the others again while that machine is off.
    scenarios: bySeeds([9], leftBehind, [
      [0, { type: 'cutPeers', node: 0, forMs: 3_138 }],
      [4_205, { type: 'powerOff', node: 5, forMs: 2_000 }],
    ]),
  },
  {
    finding: 'found 14',
    name: 'waits-in-vain',
    what: 'a holder waits for newer memory at a source that has nothing any more, and never asks another holder',
    mutations: [waitsInVain],
    // It can reach the others again when that machine is back, without any memory.
    scenarios: bySeeds([9], leftBehind, [
      [0, { type: 'cutPeers', node: 0, forMs: 15_000 }],
      [4_205, { type: 'powerOff', node: 5, forMs: 2_000 }],
    ]),
  },
  {
    finding: 'found 18',
    name: 'holder-unasked',
    what: 'a holder that has fetched memory, and could not say so, is not asked before a slot begins anew',
    mutations: [
      endsUnasked,
      {
        file: 'src/slot/decide/knowledge.ts',
        find: 'isVacant && keepers.length > 0',
        replace: 'isVacant && keepers.length > 99',
      },
    ],
    // The holder reaches the source but not the API server.
    scenarios: bySeeds([5, 108], { nodes: 4, replicas: 2, hotBackups: 0, coldBackups: 1 }, [
      [0, { type: 'cutNode', node: 1, forMs: 6_139, apiOnly: true }],
      [183, { type: 'losePrimarysNode', primary: 0, forMs: 4_073 }],
      [20_000, wait],
    ]),
  },
  {
    finding: 'found 19',
    name: 'death-unheard',
    what: 'a slot begins anew on the word of a death that comes before the report of what its node has saved',
    mutations: [
      {
        file: 'src/slot/decide/knowledge.ts',
        find: 'isDeath || isSavedElsewhere',
        replace: 'isSavedElsewhere',
      },
      leavesUntold,
    ],
    // Its first memory is saved while the node is cut off.
    scenarios: bySeeds([19], { hotBackups: 0 }, [
      [0, { type: 'rollAgents' }],
      [2_522, { type: 'cutNode', node: 0, forMs: 9_272, apiOnly: false }],
      [6_000, endApp()],
      [20_000, wait],
    ]),
  },
  {
    finding: 'found 20',
    name: 'death-forgotten',
    what: 'a slot begins anew whose dead primary is deleted before its node has said what it has saved',
    mutations: [
      {
        file: 'src/slot/decide/knowledge.ts',
        find: 'return kept && [...new Set(',
        replace: 'return kept.length >= 0 ? kept : [...new Set(',
      },
    ],
    scenarios: bySeeds([19], { hotBackups: 0 }, [
      [0, { type: 'rollAgents' }],
      [2_522, { type: 'cutNode', node: 0, forMs: 9_272, apiOnly: false }],
      [6_000, endApp()],
      [5_050, { type: 'deletePod', pod: 0, force: true }],
      [20_000, wait],
    ]),
  },
  {
    finding: 'found 22',
    name: 'starts-unasked',
    what: 'a holder that was let go is forgotten while its agent starts',
    mutations: [
      {
        file: 'src/slot/decide/knowledge.ts',
        find: '(copy.silent && isKnown) || holders.includes(copy.node)',
        replace: 'copy.stale || holders.includes(copy.node)',
      },
    ],
    scenarios: bySeeds([1, 2], { nodes: 4, hotBackups: 0, coldBackups: 1 }, [
      [0, { type: 'rollAgents' }],
      [7_082, { type: 'powerOff', node: 5, forMs: 2_000 }],
      [18, { type: 'powerOff', node: 0, forMs: 5_159 }],
    ]),
  },
  {
    finding: 'found 23',
    name: 'one-generation',
    what: 'a pod goes on one generation behind, although several intervals lie between the two',
    mutations: [
      {
        file: 'src/slot/decide/age.ts',
        find: 'const intervalsApart = 1.5',
        replace: 'const intervalsApart = 1e9',
      },
    ],
    scenarios: bySeeds([3, 9], { replicas: 2, hotBackups: 2, copies: 2, probes: false, unreadySeconds: 30 }, [
      [0, { type: 'hangApp', primary: 1, forMs: 16_701 }],
      [3_819, { type: 'endAgent', node: 4, how: 'stop', forMs: 39_184 }],
      [8_321, { type: 'deletePod', pod: 2, force: true }],
      [7_676, { type: 'pauseOperator', index: 2, forMs: 7_999 }],
      [5, { type: 'powerOff', node: 2, forMs: 31_618 }],
    ]),
  },
  {
    finding: 'found 24',
    name: 'stuck-called',
    what: 'a pod that gets no newer memory is called before the node of the dead primary says what it has',
    mutations: [
      {
        file: 'src/slot/decide/source-says.ts',
        find: 'usableOf(slot).some(copy => mayLack(source, copy, slot))',
        replace: 'false',
      },
      leastAsCalled,
      leavesUntold,
    ],
    scenarios: bySeeds([105], { copies: 2, probes: false, unreadySeconds: 4, graves: false }, [
      [2_198, { type: 'cutPeers', node: 0, forMs: 8_966 }],
      [136, { type: 'scale', replicas: 1 }],
      [7_690, { type: 'deletePod', pod: 3, force: false }],
      [34, hangApp(2_000)],
      [218, { type: 'editBackups', hot: 0, cold: 0 }],
    ]),
  },
  {
    finding: 'found 34',
    name: 'silent-called',
    what: 'a pod whose node was silent is called before the node of the dead primary says what it has',
    mutations: [onlyStuck],
    // While one holder is cut off and the set is paused, the other one loses its power, so that the primary is fenced.
    scenarios: bySeeds(
      [92],
      { nodes: 4, hotBackups: 2, copies: 2, unreadySeconds: 4, nodeTimeoutMs: 1_500 },
      [
        [3_437, { type: 'cutNode', node: 2, forMs: 19_503, apiOnly: false }],
        [86, { type: 'powerOff', node: 3, forMs: 5_541 }],
        [8_675, { type: 'pauseSet', forMs: 12_000 }],
        [788, { type: 'powerOff', node: 0, forMs: 6_000 }],
      ],
    ),
  },
  {
    finding: 'found 25',
    name: 'least-as-called',
    what: 'a pod that was called goes on with old memory, although another node has reported newer memory since',
    mutations: [leastAsCalled, onlyStuck, leavesUntold],
    scenarios: bySeeds([56], { replicas: 2, hotBackups: 2, probes: false, unreadySeconds: 4 }, [
      [128, { type: 'cutNode', node: 0, forMs: 8_276, apiOnly: false }],
      [6_585, { type: 'cutNode', node: 0, forMs: 2_000, apiOnly: false }],
      [3, { type: 'handOver', primary: 0 }],
      [141, endApp(1)],
      [111, endApp()],
    ]),
  },
  {
    finding: 'found 30',
    name: 'nothing-asked-stays',
    what: 'a pod that was called while no report was recent goes on with memory of any age',
    mutations: [
      {
        file: 'src/slot/decide/successors.ts',
        find: '(atLeast === undefined || stepsBehind(',
        replace: '(atLeast !== undefined && stepsBehind(',
      },
    ],
    // The operator hears nothing of the nodes while one of them falls behind, and the other has the last memory.
    scenarios: bySeeds([15], { nodes: 4, replicas: 2, hotBackups: 2, coldBackups: 1, copies: 2 }, [
      [0, { type: 'cutPeers', node: 5, forMs: 13_452 }],
      [0, lag(0, 'reports', 13_240)],
      [5_594, { type: 'slowStage', node: 4, startMs: 9_341, restoreMs: 0, answerMs: 6_964, forMs: 13_428 }],
      [1_236, { type: 'slowCollector', forMs: 32_210 }],
      [202, { type: 'endAgent', node: 0, how: 'stop', forMs: 29_938 }],
      [117, { type: 'deletePod', pod: 5, force: false }],
    ]),
  },
  {
    finding: 'found 27',
    name: 'waits-for-ever',
    what: 'a slot waits for ever for a silent holder that never had a copy, while the app that began again is not saved',
    mutations: [
      {
        file: 'src/slot/decide/knowledge.ts',
        find: 'const others = isLong ? [] : lease.holders',
        replace: 'const others = lease.holders',
      },
    ],
    // The holder reaches no other machine and loses its power, and the machine of the primary boots again.
    scenarios: bySeeds([5], { nodes: 4, hotBackups: 0 }, [
      [0, { type: 'cutPeers', node: 3, forMs: 90_000 }],
      [0, { type: 'scale', replicas: 2 }],
      [7_000, { type: 'powerOff', node: 3, forMs: 4_000_000 }],
      [50, { type: 'losePrimarysNode', primary: 1, forMs: 4_000 }],
      [400_000, wait],
    ]),
  },
  {
    finding: 'found 29',
    name: 'let-go-unread',
    what: 'a holder that was let go, and has not read that, is forgotten with its next report',
    mutations: [
      {
        file: 'src/slot/observe/observe-slot.ts',
        find: 'letGoAt === undefined || isMentioned ||',
        replace: 'letGoAt === undefined || (isMentioned && false) ||',
      },
    ],
    // It cannot fetch until it has been let go, and no Lease reaches it. Then the machines of the primary and of the new
    // holder lose their power.
    scenarios: bySeeds([5], { nodes: 4, hotBackups: 0 }, [
      [0, { type: 'cutPeers', node: 3, forMs: 25_000 }],
      [0, { type: 'scale', replicas: 2 }],
      [6_000, { type: 'lagAgent', node: 3, resource: 'leases', lagMs: -1, forMs: 80_000 }],
      [0, { type: 'editBackups', hot: 1, cold: 0 }],
      [60_000, { type: 'losePrimarysNode', primary: 1, forMs: 3_000 }],
      [0, { type: 'powerOff', node: 2, forMs: 3_000 }],
      [60_000, wait],
    ]),
  },
  {
    finding: 'found 38',
    name: 'released-by-old-word',
    what: 'a former holder that is silent is forgotten while no agent that is there reports any memory',
    mutations: [
      {
        file: 'src/slot/decide/knowledge.ts',
        find: '(copy.silent && isKnown) || holders.includes(copy.node)',
        replace: 'copy.silent || holders.includes(copy.node)',
      },
    ],
    // The last report of the primary's node is from before it lost its power.
    scenarios: bySeeds(
      [5],
      { probes: false, memory: true, unreadySeconds: 4, nodeTimeoutMs: 1_500, grants: false, graves: true },
      [
        [0, { type: 'cutPrimarysNode', primary: 0, forMs: 24_503, apiOnly: false }],
        [4_119, { type: 'losePrimarysNode', primary: 0, forMs: 2_000 }],
        [4_341, { type: 'losePrimarysNode', primary: 0, forMs: 9_669 }],
        [6_043, { type: 'cutNode', node: 5, forMs: 6_634, apiOnly: false }],
      ],
    ),
  },
  {
    finding: 'found 40',
    name: 'called-from-unnamed',
    what: 'a successor is called right after the first copy, and the Lease forgets the node that has saved it',
    mutations: [
      savedUnproven,
      {
        file: 'src/slot/decide/successors.ts',
        find: 'kept: keepersOf(slot),',
        replace: 'kept: keepersOf(slot) && slot.lease.kept,',
      },
      {
        file: 'src/slot/decide/vacant-leases.ts',
        find: 'naming.flatMap(',
        replace: 'naming.slice(99).flatMap(',
      },
    ],
    // The source does not reach the API server, and the successor loses its power.
    scenarios: bySeeds(
      [1],
      { replicas: 1, hotBackups: 1, memory: true, probes: false, unreadySeconds: 4, graves: true },
      [
        [0, { type: 'scale', replicas: 2 }],
        [606, { type: 'cutPrimarysNode', primary: 1, forMs: 6_000, apiOnly: true }],
        [400, { type: 'deletePod', pod: 2, force: true }],
        [15, { type: 'powerOff', node: 1, forMs: 1_500 }],
      ],
    ),
  },
  {
    finding: 'found 41',
    name: 'saved-unproven',
    what: 'while a primary is on stage, the first copy of its memory elsewhere proves nothing about its own node',
    mutations: [savedUnproven],
    // Its node does not reach the API server. The other node loses its power, or the voters take the slot away from it.
    scenarios: [
      ...bySeeds([1], { memory: true, probes: false, unreadySeconds: 4, graves: true }, [
        [0, { type: 'scale', replicas: 2 }],
        [606, { type: 'cutPrimarysNode', primary: 1, forMs: 20_000, apiOnly: true }],
        [415, { type: 'powerOff', node: 1, forMs: 1_500 }],
        [10, { type: 'cutPeers', node: 1, forMs: 12_000 }],
        [6_490, { type: 'deletePod', pod: 2, force: true }],
      ]),
      ...bySeeds(
        [1],
        { nodes: 4, memory: true, probes: false, unreadySeconds: 4, nodeTimeoutMs: 3_000, graves: true },
        [
          [0, { type: 'scale', replicas: 2 }],
          [638, { type: 'cutNode', node: 2, forMs: 14_000, apiOnly: true }],
          [150, { type: 'cutNode', node: 2, forMs: 14_000, apiOnly: false }],
          [3_525, { type: 'powerOff', node: 0, forMs: 1_500 }],
        ],
      ),
    ],
  },
  {
    finding: 'found 39',
    name: 'first-copy-unnamed',
    what: 'the first copy of a slot, reported in the moment of its loss, proves nothing about the node of its primary',
    mutations: [
      savedUnproven,
      {
        file: 'src/slot/decide/knowledge.ts',
        find: 'const isSaved = isDeath || isSavedElsewhere(lease, answers)',
        replace: 'const isSaved = isDeath',
      },
    ],
    // The primary's node was cut off when it saved, and its agent ends. The holder loses its power.
    scenarios: bySeeds(
      [9],
      {
        replicas: 2,
        hotBackups: 0,
        memory: true,
        probes: false,
        unreadySeconds: 4,
        grants: false,
        graves: true,
      },
      [
        [0, { type: 'cutPrimarysNode', primary: 3, forMs: 2_423, apiOnly: true }],
        [2_508, { type: 'powerOff', node: 0, forMs: 2_000 }],
        [0, { type: 'deletePod', pod: 3, force: false }],
        [0, { type: 'endAgent', node: 4, how: 'stop', forMs: 6_064 }],
      ],
    ),
  },
]

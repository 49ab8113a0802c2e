/** Remains of deleted pods: docs/adr/0116-findings-of-two-attacks.md, "Found by the simulation since". */
import type { Mutant, Mutation } from './mutant.ts'
import { atEach, bySeeds, endAgent, endApp, onEachNode, slow, strangersGetIn, wait } from './scenarios.ts'

/** Services lead to an app that the kubelet has started in place of another: that hides no error of agents. */
const strangersServe: Mutation = {
  file: 'src/backuppodset/decide/services.ts',
  find: 'primaries.filter(pod => isStranger(s, pod))',
  replace: 'primaries.filter(pod => isStranger(s, pod) && s.now < 0)',
}

/** A primary whose node loses the API server a moment after its pod was deleted. */
const cutOff = { nodeTimeoutMs: 3_000, unreadySeconds: 4 } as const

export const ofEnds: readonly Mutant[] = [
  {
    finding: 'found 1',
    name: 'thaw-unwatched',
    what: 'who was thawed is watched only once it has answered',
    mutations: [
      {
        file: 'src/agent/tasks/put-on-stage.ts',
        find: 'await watchThaw(work, pod, clone, signal)',
        replace: '',
      },
      // Another defence: the agent finds processes that are not watched.
      {
        file: 'src/agent/tasks/stop-primary.ts',
        find: 'await driver.firstProcesses(uid)',
        replace: '[]',
      },
    ],
    // The successor's node is slow, so the successor answers late. Meanwhile it is deleted by force, and the next
    // successor resumes the memory.
    scenarios: atEach([100, 125, 150], [2], { nodes: 4 }, ms => [
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
        file: 'src/agent/tasks/hand-over.ts',
        find: 'if (!isPromised || !endsWithAgent) await',
        replace: 'await',
      },
    ],
    // The agents are replaced in the middle of the handover.
    scenarios: atEach([85, 100, 115, 130, 145, 160, 180, 200], [4], { hotBackups: 2 }, ms => [
      [0, { type: 'handOver', primary: 0 }],
      [ms, { type: 'rollAgents' }],
    ]),
  },
  {
    finding: 'found 3',
    name: 'grace-unheard',
    what: 'the grace of a deleted primary counts from its deletion, whether its node has heard of it or not',
    mutations: [
      {
        file: 'src/slot/observe/slot-primary.ts',
        find: 'if ((!stage.selectable && !resuming) || node === undefined) return',
        replace: 'if (at >= 0) return',
      },
    ],
    // Its agent is replaced meanwhile, so that no agent ends the old primary when its node is back.
    scenarios: onEachNode([1, 2], { replicas: 1, hotBackups: 1 }, node => [
      [5_000, { type: 'cutNode', node, forMs: 7_500, apiOnly: false }],
      [0, { type: 'deleteNamed', of: 'primary', force: false }],
      [0, endAgent(node, 6_500)],
      [12_000, wait],
    ]),
  },
  {
    finding: 'found 3',
    name: 'begins-late',
    what: 'an agent that starts ends nothing before it has read what memory is kept',
    mutations: [
      {
        file: 'src/agent/tasks/engine.ts',
        find: 'begin(signal) {',
        replace: 'begin(signal) {\n      if (clock.now() > 0) return',
      },
      strangersServe,
      strangersGetIn,
    ],
    // Until its agent is back, the redirect of a dead primary leads to its former heir, which has another slot by now.
    scenarios: bySeeds([9], { nodes: 4, replicas: 2 }, [
      [5_000, endAgent(2, 10_000)],
      [200, endApp(0)],
      [5_000, endApp(1)],
      [8_000, wait],
    ]),
  },
  {
    finding: 'found 13',
    name: 'leaderless-waits',
    what: 'who finds no operator at work looks after one again when a grave would be renewed',
    mutations: [
      {
        file: 'src/agent/tasks/redirect.ts',
        find: 'isLed ? renewMs : unknownMs',
        replace: 'isLed ? renewMs : renewMs',
      },
    ],
    // No operator leads when the app ends, and one does again soon. The next pod of the slot starts slowly.
    scenarios: onEachNode([4], { hotBackups: 0, graves: false }, node => [
      [500, slow((node + 1) % 3, { startMs: 15_000 }, 60_000)],
      [0, slow((node + 2) % 3, { startMs: 15_000 }, 60_000)],
      [500, { type: 'endOperator', index: 0, how: 'kill', forMs: 8_000 }],
      [0, { type: 'endOperator', index: 1, how: 'kill', forMs: 8_000 }],
      [6_000, endApp()],
      [20_000, wait],
    ]),
  },
  {
    finding: 'found 26',
    name: 'thawed-again',
    what: 'a new agent resumes a primary that stands still for its successor',
    mutations: [
      {
        file: 'src/agent/tasks/promote.ts',
        find: "clone.stage === 'Thawed' && saysOnStage(",
        replace: "clone.stage !== 'Thawed' && saysOnStage(",
      },
    ],
    scenarios: bySeeds([20], { copies: 2, probes: false, unreadySeconds: 4 }, [
      [236, endApp()],
      [538, { type: 'handOver', primary: 0 }],
      [282, { type: 'rollAgents' }],
      [0, { type: 'endAgent', node: 0, how: 'stop', forMs: 2_000 }],
    ]),
  },
  {
    finding: 'found 32',
    name: 'impostor-handed-over',
    what: 'a handover saves the app that the kubelet started in the place of the one with the memory',
    mutations: [
      {
        file: 'src/agent/decide/primary-tasks.ts',
        find: 'if (maySave && lease.handover !== undefined',
        replace: 'if (snapshot.able && isKeptElsewhere && lease.handover !== undefined',
      },
      strangersServe,
    ],
    // The handover begins before the node loses its power, and the set is paused before an agent is back.
    scenarios: bySeeds(
      [38],
      { replicas: 2, coldBackups: 1, probes: false, unreadySeconds: 4, memory: true, graves: true },
      [
        [0, { type: 'powerOff', node: 0, forMs: 4_667 }],
        [0, { type: 'handOver', primary: 3 }],
        [5_904, { type: 'lagAgent', node: 1, resource: 'pods', lagMs: 9_929, forMs: 36_004 }],
        [3_728, endApp(1)],
        [149, { type: 'pauseSet', forMs: 34_182 }],
      ],
    ),
  },
  {
    finding: 'found 43',
    name: 'heard-while-lagging',
    what: 'a report that is too early to know of a deletion counts as if its node knew',
    mutations: [
      {
        file: 'src/slot/observe/slot-primary.ts',
        find: 'reports.silentFor(node) < now - at - watchLagMs',
        replace: 'reports.silentFor(node) < now - at',
      },
    ],
    scenarios: bySeeds([0, 1, 2], cutOff, [
      [0, { type: 'lagAgent', node: 1, resource: 'pods', lagMs: 2_933, forMs: 3_501 }],
      [0, { type: 'deletePod', pod: 3, force: false }],
      [2_923, { type: 'cutPrimarysNode', primary: 0, forMs: 11_007, apiOnly: true }],
      [9_781, endApp(2)],
    ]),
  },
  {
    finding: 'found 46',
    name: 'strangers-served',
    what: 'a pod that was the heir of two slots, and has one, answers clients of the other',
    mutations: [strangersGetIn],
    // The node of the other slot's primary does not hear of it.
    scenarios: bySeeds([0], { replicas: 2, copies: 1, probes: false, unreadySeconds: 4, graves: true }, [
      [0, { type: 'hangApp', primary: 3, forMs: 6_320, exitsMs: 0 }],
      [10, { type: 'cutPrimarysNode', primary: 4, forMs: 8_133, apiOnly: true }],
      [3, { type: 'endAgent', node: 0, how: 'kill', forMs: 2_001 }],
      [1, { type: 'endApp', primary: 3, container: 'side' }],
      [7_227, { type: 'endApp', primary: 2, container: 'app' }],
    ]),
  },
]

/** Fixes of findings on memory, as docs/adr/0112 numbers them. */
import type { Mutant } from './mutant.ts'
import { bySeeds, endAgent, endApp, hangApp, onEachNode, slow, wait } from './scenarios.ts'

const knowledge = 'src/backuppodset/memory/knowledge.ts'
const isGone = 'slot === undefined || (slot.copies.length === 0 && slot.unasked.length === 0)'
const dutiesOf = 'src/agent/duties/duties-of.ts'

export const ofMemory: readonly Mutant[] = [
  {
    finding: 'memory 1',
    name: 'starts-with-nothing',
    what: 'an agent that starts says that it keeps nothing',
    mutations: [
      {
        file: 'src/agent/report.ts',
        find: 'slotsKnown: slots !== undefined',
        replace: 'slotsKnown: true',
      },
      { file: 'src/agent/report.ts', find: '...(said && listed(said))', replace: '...listed(said ?? [])' },
    ],
    scenarios: onEachNode([1, 2], {}, node => [
      [0, endAgent(node, 1_000)],
      [1_100, endApp()],
    ]),
  },
  {
    finding: 'memory 1',
    name: 'unusable-is-gone',
    what: 'what cannot be used at this moment counts as gone',
    mutations: [
      {
        file: knowledge,
        find: isGone,
        replace: 'slot === undefined || usableOf(slot).length === 0',
      },
    ],
    // The agent of the node that keeps it has just started when the app ends.
    scenarios: onEachNode([1, 2], {}, node => [
      [0, endAgent(node, 2_000)],
      [4_000, endApp()],
    ]),
  },
  {
    finding: 'memory 2',
    name: 'untold-restart',
    what: 'a restart of which no agent has spoken begins a new life',
    mutations: [
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
        file: dutiesOf,
        find: "  containers !== undefined &&\n  containerId !== undefined &&\n  !containers.split(',')",
        replace: "  containers === 'none' &&\n  containerId !== undefined &&\n  !containers.split(',')",
      },
    ],
    scenarios: bySeeds([1, 2, 3], {}, [[0, { type: 'losePrimarysNode', primary: 0, forMs: 2_000 }]]),
  },
  {
    finding: 'memory 4',
    name: 'all-containers',
    what: 'a container that is not saved counts as one that is',
    mutations: [
      {
        file: 'src/api/stage.ts',
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
        file: 'src/backuppodset/memory/stage.ts',
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
        file: dutiesOf,
        find: 'if (isDead(snapshot, pod, name)) return ofDead(snapshot, slot, pod)',
        replace: 'if (isDead(snapshot, pod, name)) return []',
      },
    ],
    scenarios: bySeeds([1, 2, 3], { replicas: 2, nodes: 4, copies: 2 }, [
      [3_000, endApp(0)],
      ...[0, 1, 2, 3].map(node => [0, slow(node, { startMs: 5_000 }, 6_000)] as const),
      [0, endApp(1)],
    ]),
  },
  {
    finding: 'memory 8',
    name: 'siblings-run-on',
    what: 'nothing ends the siblings of a dead container where its pod cannot be shut off',
    mutations: [
      {
        file: 'src/agent/duties/redirect.ts',
        find: '  await endWatched(sentinel, await watchesOf(sentinel, pod.uid, signal))\n',
        replace: '',
      },
      {
        file: 'src/agent/duties/redirect.ts',
        find: 'if (!isAwaited) return await shut(work, duty, duty.to, signal)',
        replace: 'if (!isAwaited) return',
      },
      {
        file: 'src/agent/duties/redirect.ts',
        find: 'if (await inquiry.operatorLeads(signal)) await shut(work, duty, to, signal)',
        replace: 'if (await inquiry.operatorLeads(signal)) continue',
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
        file: 'src/backuppodset/decide/memory.ts',
        find: "      reason !== 'Died' &&\n      msUntilEnded(s, slot, pod) > 0\n",
        replace: "      reason !== 'Died' &&\n      msUntilEnded(s, slot, pod) > endingMs\n",
      },
    ],
    scenarios: onEachNode([1, 2], {}, node => [
      [3_000, { type: 'lagAgent', node, resource: 'leases', lagMs: 4_000, forMs: 30_000 }],
      [100, hangApp(30_000)],
      [15_000, wait],
    ]),
  },
  {
    finding: 'memory 9',
    name: 'thaw-unasked',
    what: 'an understudy goes on stage by a Lease that may be over',
    mutations: [
      {
        file: 'src/agent/duties/promote.ts',
        find: "      if (!isCalled) throw new AgentError('NotCalled', slotName(lease))\n",
        replace: '',
      },
    ],
    scenarios: onEachNode([1, 2], { hotBackups: 2, copies: 2 }, node => [
      [1_000, slow(node, { restoreMs: 14_000 }, 30_000)],
      [4_000, endApp()],
      [300, { type: 'lagAgent', node, resource: 'leases', lagMs: -1, forMs: 25_000 }],
      [16_000, wait],
    ]),
  },
]

/** Faults of our own programs: agents, sentinels, operators. Their pods are the drill's to renew afterwards. */
import { pidsOf } from '../../playground/pids.ts'
import { isKubeError } from '../../src/kube/errors.ts'
import { leases, type Pod, pods } from '../../src/kube/resources.ts'
import { agentPods } from '../../zoo/slots.ts'
import { agentStartMs, electionMs, sentinelStartMs, unnoticedMs } from '../bounds.ts'
import { restartsOf } from '../recorder.ts'
import { primariesOf, type Stage, savedThrough, slotsOn, targetNodes } from '../stage.ts'
import { type Nemesis, plain } from './nemesis.ts'
import { processesOn, signalAll } from './processes.ts'

const operatorsNamespace = 'understudy-system'

/** Returns the pods of the operator. */
export const operators = async ({ api }: Pick<Stage, 'api'>): Promise<readonly Pod[]> =>
  (
    await api.list(pods, {
      namespace: operatorsNamespace,
      labelSelector: 'app.kubernetes.io/component=operator',
    })
  ).items

/**
 * Replaces our pods that have restarted: the kubelet delays restarts more and more, up to minutes, and a new pod starts
 * at once.
 */
export async function renewParts({ api }: Pick<Stage, 'api'>): Promise<void> {
  const all = [...(await agentPods(api)), ...(await operators({ api }))]
  for (const { metadata } of all.filter(pod => restartsOf(pod) > 0))
    await api.delete(pods, { namespace: metadata.namespace, name: metadata.name }).catch((error: unknown) => {
      if (!isKubeError(error, 'NotFound')) throw error
    })
}

const agentsOn = async ({ api }: Stage, nodes: readonly string[]): Promise<Pod[]> =>
  (await agentPods(api)).filter(({ spec }) => nodes.includes(spec?.nodeName ?? ''))

const killing = (name: string, proves: string, choose: (stage: Stage) => 'one' | 'all'): Nemesis => ({
  name,
  proves,
  family: 'agent',
  aim: async (stage, random) => {
    const nodes = choose(stage) === 'all' ? [...stage.cluster.nodes] : [random.of(targetNodes(stage))]
    return {
      ...plain,
      target: `agents of ${nodes.join(', ')}`,
      unsaved: savedThrough(stage, nodes),
      silences: 'Api',
      outageMs: unnoticedMs + agentStartMs,
      strike: async () => {
        for (const { metadata } of await agentsOn(stage, nodes))
          signalAll(await pidsOf(metadata.uid, 'node'), 'SIGKILL')
      },
    }
  },
})

export const killAgent = killing(
  'agent',
  'an agent that is killed at any point promotes no pod and stops no app for good',
  () => 'one',
)

export const killAllAgents = killing('agents', 'the same with all agents at once', () => 'all')

export const killSentinel: Nemesis = {
  name: 'sentinel',
  proves: 'a sentinel that is killed leaves no app stopped, and the next one keeps its promises',
  family: 'agent',
  aim: async (stage, random) => {
    const { node } = random.of(primariesOf(stage))
    return {
      ...plain,
      target: `sentinel of ${node}`,
      slots: slotsOn(stage, [node]),
      // A dump during which it dies does not count.
      unsaved: savedThrough(stage, [node]),
      outageMs: sentinelStartMs,
      strike: async () => signalAll(await processesOn(stage.cluster, node, 'sentinel'), 'SIGKILL'),
    }
  },
}

export const killOperator: Nemesis = {
  name: 'operator',
  proves: 'the standby finishes what the killed leader began, and repeats nothing',
  family: 'operator',
  aim: async stage => {
    const { api } = stage
    const lease = await api.get(leases, { namespace: operatorsNamespace, name: 'understudy-operator' })
    // Identities are `<pod>_<random>`.
    const leader = lease.spec?.holderIdentity?.split('_')[0]
    const found = (await operators(stage)).find(({ metadata }) => metadata.name === leader)
    return {
      ...plain,
      target: leader ?? 'no leader',
      outageMs: electionMs,
      strike: async () => {
        if (found !== undefined) signalAll(await pidsOf(found.metadata.uid, 'node'), 'SIGKILL')
      },
    }
  },
}

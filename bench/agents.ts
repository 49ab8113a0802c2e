import { daemonSets } from '../src/kube/resources.ts'
import { type BenchContext, demand } from './bench.ts'
import { untilLarge as until } from './observe/pods.ts'

const agents = { namespace: 'understudy-agents', name: 'understudy-agent' }

async function argumentsOf({ api, signal }: BenchContext): Promise<readonly string[]> {
  const { spec } = await api.get(daemonSets, agents, { signal })
  const container = spec?.template.spec?.containers.find(({ name }) => name === 'agent')
  return demand(container?.args, 'a DaemonSet of agents')
}

/** Restarts the agents with these arguments, and waits until all of them run. */
async function setArguments({ api, signal }: BenchContext, args: readonly string[]): Promise<void> {
  const containers = [{ name: 'agent', args }]
  await api.patch(
    daemonSets,
    agents,
    { type: 'strategic', body: { spec: { template: { spec: { containers } } } } },
    { signal },
  )
  await until('the agents with their arguments', async () => {
    const { metadata, spec, status } = await api.get(daemonSets, agents, { signal })
    const wanted = status?.desiredNumberScheduled ?? 0
    return (
      spec !== undefined &&
      (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0) &&
      wanted > 0 &&
      status?.updatedNumberScheduled === wanted &&
      status.numberAvailable === wanted
    )
  })
}

/** Has agents record the writes of pods, always or for moves alone, while it works. */
export async function withRecord(
  context: BenchContext,
  when: 'Always' | 'Moves',
  work: () => Promise<void>,
): Promise<void> {
  const original = await argumentsOf(context)
  await setArguments(context, [...original, `--record-writes=${when}`])
  try {
    await work()
  } finally {
    await setArguments(context, original)
  }
}

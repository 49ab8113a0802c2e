/** The facts about the sets of a test that its failure tells: later its namespace is deleted. */
import { onTestFailed } from 'vitest'
import { backupPodSets } from '../../../src/api/backuppodset.ts'
import { operatorElection } from '../../../src/api/election.ts'
import type { Api } from '../../../src/kube/api.ts'
import { events, pods } from '../../../src/kube/resources.ts'
import { agentsNamespace } from '../../../zoo/slots.ts'
import { kubectl, needsNodes, playground } from './cluster.ts'

declare module 'vitest' {
  export interface TaskMeta {
    /** Facts about the cluster beside a failure, a line each. */
    story?: readonly string[]
  }
}

interface Facts {
  readonly lines: readonly string[]
  /** Names and uids of pods; the agents' logs name either. */
  readonly pods: readonly string[]
}

const mostLines = 60
const mostCharacters = 400
/** A sentinel that had no processor says so, and names no pod: it is why all of its node were silent. */
const late = '"the loop '

/** Tells of a namespace if the test that runs now fails. @returns a function that keeps the facts for it before they are deleted */
export function tellOnFailure(of: { readonly api: Api; readonly namespace: string }): () => Promise<void> {
  let kept: Promise<Facts> | undefined
  onTestFailed(async ({ task }) => {
    const { lines, pods } = await (kept ?? factsOf(of))
    task.meta.story = [...lines, ...(await logsAbout([of.namespace, ...pods]))].map(line =>
      line.slice(0, mostCharacters),
    )
    console.error(task.meta.story.join('\n'))
  }, 60_000)
  return async () => {
    kept = factsOf(of)
    // If it cannot read them, the namespace is deleted all the same, and a failure tells why.
    await kept.catch(() => undefined)
  }
}

async function factsOf({
  api,
  namespace,
}: {
  readonly api: Api
  readonly namespace: string
}): Promise<Facts> {
  const [sets, all, told] = await Promise.all([
    api.list(backupPodSets, { namespace }),
    api.list(pods, { namespace }),
    api.list(events, { namespace, fieldSelector: 'type=Warning' }),
  ])
  return {
    lines: [
      ...sets.items.map(
        ({ metadata, status }) =>
          `${metadata.name}: last failover ${JSON.stringify(status?.lastFailover)}, slots ${JSON.stringify(status?.slots)}`,
      ),
      ...told.items
        .slice(-mostLines)
        .map(({ reason, regarding, note }) => `${reason} ${regarding?.kind} ${regarding?.name}: ${note}`),
    ],
    pods: all.items.flatMap(({ metadata }) => [metadata.name, metadata.uid]),
  }
}

/** Returns the last lines of the agents, operators and sentinels that have one of these words. */
async function logsAbout(words: readonly string[]): Promise<readonly string[]> {
  const of = async (namespace: string, component: string) => {
    const pods = ['-l', `app.kubernetes.io/component=${component}`, '--max-log-requests=20']
    return about(await kubectl('-n', namespace, 'logs', ...pods, '--tail=-1'))
  }
  const about = (log: string, from?: string) =>
    log
      .split('\n')
      .filter(line => [...words, late].some(word => line.includes(word)))
      .map(line => shortened(line, from))
  const lines = await Promise.all([
    ...[of(agentsNamespace, 'agent'), of(operatorElection.namespace, 'operator')],
    ...(needsNodes() === undefined ? await sentinelLogs() : []).map(({ node, log }) =>
      about(log, `${node} sentinel`),
    ),
  ])
  return lines.flat().sort().slice(-mostLines)
}

/** The sentinels of a playground: they say whom they have not heard. */
async function sentinelLogs() {
  const { nodes, inNode } = await playground()
  return Promise.all(
    nodes.map(async node => ({
      node,
      // A node without an agent has none.
      log: await inNode(node, ['cat', '/run/understudy/sentinel.log']).catch(() => ''),
    })),
  )
}

/** Returns a line of a log with its time first, and without what is the same in each of them. */
function shortened(line: string, from?: string): string {
  try {
    const { time, hostname, level, pid, reconcileID, controller, ...rest } = JSON.parse(line)
    // Sentinels write milliseconds.
    const at = typeof time === 'number' ? new Date(time).toISOString() : time
    return `${at} ${from ?? hostname} ${JSON.stringify(rest)}`
  } catch {
    return line
  }
}

import { labels } from '../../api/labels.ts'
import type { Migration } from '../../api/migration.ts'
import { memoryAnnotation } from '../../api/pod-contract.ts'
import { isKubeError, messageOf } from '../../kube/errors.ts'
import { nodes, type Pod } from '../../kube/resources.ts'
import { CliError } from '../failure.ts'
import { noSuchNode, primariesOn } from '../nodes.ts'
import type { Session } from '../session.ts'
import { migrate } from './migrate.ts'
import { movedLine } from './move.ts'

export interface EvacuateOptions {
  /** Seconds. */
  readonly timeout: number
}

/** The end of the move of one primary. */
interface Evacuated {
  readonly pod: string
  readonly moved?: Migration
  /** Why it has stayed. */
  readonly why?: string
}

/**
 * Cordons a node, and moves every primary whose memory is kept to other nodes. Migrations wait for each other as their budgets ask.
 * Primaries without memory stay: `kubectl drain` replaces them like any pod.
 *
 * @throws CliError if a primary has stayed; KubeError.
 */
export async function evacuate(session: Session, node: string, { timeout }: EvacuateOptions): Promise<void> {
  const { terminal, output } = session
  await cordon(session, node)
  const primaries = (await primariesOn(session, node)).filter(
    ({ metadata }) => metadata.annotations?.[memoryAnnotation] !== undefined,
  )
  const results = await Promise.all(primaries.map(pod => evacuateOne(session, pod, timeout * 1000)))
  if (output === 'json') terminal.out(JSON.stringify({ node, primaries: results }, undefined, 2))
  else
    for (const line of [
      ...results.map(({ pod, moved, why }) =>
        moved ? `${pod}: ${movedLine(moved)}` : `${pod}: stays: ${why}`,
      ),
      `${results.filter(({ moved }) => moved).length} of ${results.length} primaries with memory have left node ${node}; it is cordoned`,
    ])
      terminal.out(line)
  const stayed = results.filter(({ moved }) => moved === undefined)
  if (stayed.length > 0)
    throw new CliError(`${stayed.length} primaries have stayed on node ${node}`, {
      advice: 'remove the reason and run the command again; `kubectl uncordon` lets pods go there again',
    })
}

async function evacuateOne(session: Session, { metadata }: Pod, timeoutMs: number): Promise<Evacuated> {
  const { namespace = '', name, uid } = metadata
  const pod = `${namespace}/${name}`
  const set = metadata.labels?.[labels.set] ?? 'pod'
  try {
    const moved = await migrate(
      session,
      {
        ...{ namespace, pod: { name, uid }, prefix: `${set}-evacuate-`, title: `move ${pod}` },
        spec: { priority: 'SystemCritical' },
      },
      timeoutMs,
    )
    return { pod, moved }
  } catch (error) {
    session.signal.throwIfAborted()
    return { pod, why: messageOf(error) }
  }
}

async function cordon({ api, call }: Session, name: string): Promise<void> {
  const body = { spec: { unschedulable: true } }
  await api.patch(nodes, { name }, { type: 'merge', body }, call).catch((error: unknown) => {
    if (isKubeError(error, 'NotFound')) throw noSuchNode(name)
    throw error
  })
}

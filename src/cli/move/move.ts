import type { Migration, MigrationTechnique } from '../../api/migration.ts'
import { isKubeError } from '../../kube/errors.ts'
import { nodes } from '../../kube/resources.ts'
import { slotHolding } from '../checkpoint/slots.ts'
import { findSet } from '../find-set.ts'
import { noSuchNode } from '../nodes.ts'
import { encoded, isData } from '../output/answer.ts'
import { duration } from '../output/quantities.ts'
import type { Session } from '../session.ts'
import { migrate, withKind } from './migrate.ts'

export interface MoveOptions {
  /** Name of the node; absent: any other one. */
  readonly to?: string
  /** A duration such as `300ms`. */
  readonly maxDowntime?: string
  /** Absent: `Live`. */
  readonly technique?: MigrationTechnique
  /** Seconds. */
  readonly timeout: number
}

/**
 * Moves the primary of a slot to another node with its memory.
 *
 * @param place number of the slot, or name of its primary
 * @throws CliError with exit code 4 after it was called off; CliError, KubeError.
 */
export async function move(
  session: Session,
  name: string,
  place: string,
  options: MoveOptions,
): Promise<void> {
  const { namespace, output, terminal } = session
  const set = await findSet(session, name)
  const { pod, slot } = slotHolding(set, place)
  const addedNodeSelector = options.to === undefined ? undefined : await selectorOf(session, options.to)
  const ended = await migrate(
    session,
    {
      ...{ namespace, pod: { name: pod }, prefix: `${name}-${slot}-` },
      spec: {
        ...(addedNodeSelector && { addedNodeSelector }),
        ...(options.maxDowntime !== undefined && { maxDowntime: options.maxDowntime }),
        ...(options.technique !== undefined && { technique: options.technique }),
      },
      title: `slot ${slot}: move ${pod}`,
    },
    options.timeout * 1000,
  )
  terminal.out(isData(output) ? encoded(output, withKind(ended)) : `slot ${slot}: ${movedLine(ended)}`)
}

/** Tells where the pod was and is now, and for how long it was stopped. */
export function movedLine({ spec, status }: Migration): string {
  const { source, target, downtimeMilliseconds: ms, predictedDowntimeMilliseconds: predicted } = status ?? {}
  const beside = predicted === undefined ? '' : ` (predicted: ${duration(predicted / 1000)})`
  const stood = ms === undefined ? '' : `; it was stopped for ${duration(ms / 1000)}${beside}`
  return `${spec.source.name} on ${source?.node} → ${target?.name} on ${target?.node}, with all its memory${stood}`
}

/** By the label for host names, because a Migration selects by labels. */
async function selectorOf({ api, call }: Session, node: string): Promise<Record<string, string>> {
  const label = 'kubernetes.io/hostname'
  const found = await api.get(nodes, { name: node }, call).catch((error: unknown) => {
    // Users of a namespace may not read nodes. There, the label has the name of the node.
    if (isKubeError(error, 'Forbidden')) return undefined
    if (isKubeError(error, 'NotFound')) throw noSuchNode(node)
    throw error
  })
  return { [label]: found?.metadata.labels?.[label] ?? node }
}

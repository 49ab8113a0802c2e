import { isOutOfService, outOfService, type Taint } from '../../api/out-of-service.ts'
import { isKubeError } from '../../kube/errors.ts'
import { isReady } from '../../kube/ready.ts'
import { type Node, nodes, type Pod } from '../../kube/resources.ts'
import { CliError, exitCodes } from '../failure.ts'
import { noSuchNode, primariesOn } from '../nodes.ts'
import { answer } from '../output/answer.ts'
import type { Session } from '../session.ts'

export interface FenceOptions {
  /** Also while Kubernetes reports the node as Ready. */
  readonly force?: boolean
}

/**
 * Declares that nothing runs on a node any more, by the taint of Kubernetes for that: its primaries get their
 * successors at once, and Kubernetes deletes its pods.
 *
 * @throws CliError with exit code 3 before any change, if the node is Ready.
 */
export async function fence(session: Session, name: string, { force }: FenceOptions): Promise<void> {
  const primaries = namesOf(await primariesOn(session, name))
  const isChanged = await change(session, name, node => {
    if (isOutOfService(node.spec?.taints)) return undefined
    if (isReady(node) && force !== true)
      throw new CliError(`node ${name} is Ready: what runs there would run twice`, {
        advice: 'power the node off first; with --force if you know that nothing of it can be reached',
        exitCode: exitCodes.refused,
      })
    return [...(node.spec?.taints ?? []), { key: outOfService, value: 'nodeshutdown', effect: 'NoExecute' }]
  })
  tell(session, { node: name, isFenced: true, primaries }, [
    isChanged ? `node ${name} is out of service` : `node ${name} was out of service already`,
    ...primaries.map(each => `  ${each} gets its successor`),
    `  → once the node has been started again: kubectl understudy unfence ${name}`,
  ])
}

/** Takes the declaration back. */
export async function unfence(session: Session, name: string): Promise<void> {
  const isChanged = await change(session, name, ({ spec }) =>
    isOutOfService(spec?.taints) ? spec?.taints?.filter(({ key }) => key !== outOfService) : undefined,
  )
  tell(session, { node: name, isFenced: false }, [
    isChanged ? `node ${name} is in service again` : `node ${name} was not out of service`,
  ])
}

/**
 * Changes the taints of a node, which others change as well.
 *
 * @param taintsOf returns the new taints; undefined: nothing is to be changed.
 * @returns whether there was anything to change.
 */
async function change(
  { api, call }: Session,
  name: string,
  taintsOf: (node: Node) => readonly Taint[] | undefined,
): Promise<boolean> {
  for (;;) {
    const node = await api.get(nodes, { name }, call).catch((error: unknown) => {
      if (!isKubeError(error, 'NotFound')) throw error
      throw noSuchNode(name)
    })
    const taints = taintsOf(node)
    if (taints === undefined) return false
    const { uid, resourceVersion } = node.metadata
    const body = { metadata: { uid, resourceVersion }, spec: { taints } }
    try {
      await api.patch(nodes, { name }, { type: 'merge', body }, call)
      return true
    } catch (error) {
      if (!isKubeError(error, 'Conflict')) throw error
    }
  }
}

const namesOf = (primaries: readonly Pod[]): readonly string[] =>
  primaries.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).sort()

const tell = (session: Session, result: object, lines: readonly string[]): void =>
  answer(session, 'Fence', result, () => lines.join('\n'))

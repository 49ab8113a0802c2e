/** Nodes, for the commands that are about one. */
import { labels } from '../api/labels.ts'
import { listAll } from '../kube/list-all.ts'
import { type Pod, pods } from '../kube/resources.ts'
import { CliError } from './failure.ts'
import type { Session } from './session.ts'

export const noSuchNode = (name: string): CliError =>
  new CliError(`there is no node ${name}`, { advice: 'kubectl get nodes lists them' })

/** Returns the primaries on a node, of all namespaces. */
export async function primariesOn({ api, call }: Session, node: string): Promise<readonly Pod[]> {
  const query = { labelSelector: `${labels.role}=primary`, fieldSelector: `spec.nodeName=${node}` }
  return (await listAll(api, pods, query, call)).objects
}
